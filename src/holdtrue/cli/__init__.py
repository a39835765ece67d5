"""The command line: `app` runs the `commands`: ask a table, answer, write."""

from holdtrue.cli import commands as commands
from holdtrue.cli import use as use
from holdtrue.cli.app import main

__all__ = ["main"]
