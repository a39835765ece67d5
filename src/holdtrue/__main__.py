"""``holdtrue``, and ``python -m holdtrue``."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Interruption:
    """What Ctrl-C does: raise `KeyboardInterrupt`, and remember it.

    A library that is being imported may turn the exception into another. Python drops it where it
    cannot be raised, such as in a finaliser, and would print a traceback.
    """

    came = False

    def __call__(self, *_: object) -> None:
        """Be called by Python for SIGINT."""
        self.came = True
        raise KeyboardInterrupt

    def unraisable(self, dropped: Any) -> None:
        """Be called by Python for an exception that it drops."""
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(dropped)


def main() -> None:
    """Run the command line; an interruption while it is still being imported is one too."""
    interruption = Interruption()
    try:
        import signal

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not in the background
            signal.signal(signal.SIGINT, interruption)
            sys.unraisablehook = interruption.unraisable
        # On a busy machine threads that wait by spinning take minutes for a boosting of seconds.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # log2 of the cycles to spin
        from holdtrue.cli import main as run

        try:
            run()
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # only Python's own end is left
    except (KeyboardInterrupt, Exception) as error:
        if not (interruption.came or isinstance(error, KeyboardInterrupt)):
            raise
        print("holdtrue: interrupted before anything was done.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
