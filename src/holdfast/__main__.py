"""``holdfast``, and ``python -m holdfast``."""

import sys


def main() -> None:
    """Run the command line; an interruption while it is still being imported is one too."""
    try:
        from holdfast.cli import main as run

        run()
    except KeyboardInterrupt:
        print("holdfast: interrupted before anything was done.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
