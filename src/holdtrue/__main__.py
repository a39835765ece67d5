"""``holdtrue``, and ``python -m holdtrue``."""

import sys


def main() -> None:
    """Run the command line; an interruption while it is still being imported is one too."""
    try:
        from holdtrue.cli import main as run

        run()
    except KeyboardInterrupt:
        print("holdtrue: interrupted before anything was done.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
