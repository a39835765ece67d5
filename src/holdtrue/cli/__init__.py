"""The command line: options (`app`, `use`, `sums`), the table (`ask`), `answer`, `write`."""

from holdtrue.cli import sums as sums
from holdtrue.cli import use as use
from holdtrue.cli.app import main

__all__ = ["main"]
