"""``holdtrue``, and ``python -m holdtrue``."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CTRL_C = 2  # SIGINT: `signal` itself is imported where its import can be interrupted


class Interruption:
    """What Ctrl-C and SIGTERM do: raise `KeyboardInterrupt` or `SystemExit`, and remember it.

    A library may turn the exception into another. Python drops it where it cannot be raised, such
    as in a finaliser, and prints a traceback; finalisers of what is half made fail, too.
    """

    came = 0  # the signal

    def __call__(self, sign: int, *_: object) -> None:
        """Be called by Python for a signal."""
        self.came = sign
        raise KeyboardInterrupt if sign == _CTRL_C else SystemExit(128 + sign)

    def unraisable(self, dropped: Any) -> None:
        """Be called by Python for an exception that it drops."""
        if not self.came:
            sys.__unraisablehook__(dropped)


def main() -> None:
    """Run the command line; an interruption while it is still being imported is one too."""
    interruption = Interruption()
    try:
        import signal

        sys.unraisablehook = interruption.unraisable
        for sign in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(sign) is not signal.SIG_IGN:  # as Ctrl-C in the background
                signal.signal(sign, interruption)
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
        came = interruption.came or _CTRL_C
        if came == _CTRL_C:
            print("holdtrue: interrupted before anything was done.", file=sys.stderr)
        sys.exit(128 + came)


if __name__ == "__main__":
    main()
