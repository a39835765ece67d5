"""A summary on the terminal: the answer, the table and what to be wary of."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from holdfast.charts import printable
from holdfast.report.render import cell, numeric_columns
from holdfast.report.summary import Summary

__all__ = ["Terminal", "show"]


class Terminal(Console):
    """Standard output in colours, where a closed pipe is left to the caller."""

    def __init__(self, *, quiet: bool = False):
        super().__init__(highlight=False, quiet=quiet)

    def on_broken_pipe(self) -> None:
        """Raise the error again; rich would end the program with exit code 1."""
        raise BrokenPipeError


def show(summary: Summary, top: int, console: Console | None = None) -> None:
    """Print the summary with the first ``top`` rows of its table."""
    # Names from the data are Text throughout: brackets in them are no markup.
    console = console or Terminal()
    console.print()
    console.print(_text(summary.question, "bold cyan"))
    console.print(_text(summary.answer, "bold"))
    console.print()
    console.print(_table(summary, top))
    left = len(summary.table.rows) - top
    if left > 0:
        console.print(_text(f"and {left:,} more (--top {len(summary.table.rows)})", "dim"))
    if summary.wary:
        console.print()
        console.print(_text("What to be wary of", "bold yellow"))
        for what, why in summary.wary:
            note = Text.assemble(_text(f"{what}. ", "bold"), _text(why))
            console.print(Padding(note, (0, 0, 0, 2)))
    console.print()


def _table(summary: Summary, top: int) -> Table:
    given, numbers = summary.table, numeric_columns(summary.table)
    table = Table(box=None, pad_edge=False, header_style="dim")
    text = [key for key in given.brief if key not in numbers]
    for key in given.brief:
        table.add_column(
            _text(given.columns[key]),
            justify="right" if key in numbers else "left",
            overflow="ellipsis",
            no_wrap=key in text[:1],
        )
    for row in given.rows[:top]:
        taken = row.get("chosen", row.get("predicts", True))
        cells = [_text(cell(row[key])) for key in given.brief]
        table.add_row(*cells, style="" if taken else "dim")
    return table


def _text(text: str, style: str = "") -> Text:
    return Text(printable(text), style=style)
