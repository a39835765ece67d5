"""A summary on the terminal: the answer, the table and what to be wary of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from holdtrue.charts import printable
from holdtrue.errors import counted
from holdtrue.report.render import cell, numeric_columns
from holdtrue.report.summary import Summary

_NAME = 18  # least width of the first column of text, which is not wrapped
_TEXT = 10  # of the others


class Terminal(Console):
    """Standard output in colours, where a closed pipe is left to the caller."""

    def __init__(self, *, quiet: bool = False):
        super().__init__(highlight=False, quiet=quiet)

    def on_broken_pipe(self) -> None:
        """Raise the error again; rich would end the program with exit code 1."""
        raise BrokenPipeError


def show(
    summary: Summary, top: int, console: Console | None = None, *, whole: str | None = None
) -> None:
    """Print the summary with the first ``top`` rows of its table.

    ``whole`` says where the rest of the table is; by default the options that show it.
    """
    # Names from the data are Text throughout, so that brackets in them are not markup.
    console = console or Terminal()
    console.print(_text(summary.question, "bold cyan"))
    console.print(_text(summary.answer, "bold"))
    console.print()
    rows = summary.table.rows[:top]
    widths = _widths(summary, rows, console.width)
    console.print(_table(summary, rows, widths))
    left = len(summary.table.rows) - len(rows) + summary.table.n_left_out
    if left:
        where = whole or f"--top {len(rows) + left}"
        console.print(_text(f"and {left:,} more ({where})", "dim"))
    cut = len(summary.table.brief) - len(widths)
    if cut:
        more = f"{counted(cut, 'more column')} in a wider terminal"
        console.print(_text(f"{more} ({whole or '--csv'})", "dim"))
    if summary.wary:
        console.print()
        console.print(_text("What to be wary of", "bold yellow"))
        for what, why in summary.wary:
            note = Text.assemble(_text(f"{what}. ", "bold"), _text(why))
            console.print(Padding(note, (0, 0, 0, 2)))
    if "python" in summary.reproduce:
        console.print()
        console.print(_text("In Python", "bold"))
        for line in summary.reproduce["python"].splitlines():
            console.print(_text(f"  {line}", "dim"), soft_wrap=True)
    console.print()


def _widths(summary: Summary, rows: Sequence[Mapping[str, Any]], width: int) -> dict[str, int]:
    """Width of each column that the terminal has room for.

    Numbers are never cut. Text gives way first, from the right, then columns are left out.
    """
    table = summary.table
    full = {
        key: max(
            _text(text).cell_len for text in (table.columns[key], *(cell(r[key]) for r in rows))
        )
        for key in table.brief
    }
    numbers = numeric_columns(table)
    text = [key for key in table.brief if key not in numbers]
    few = max(_TEXT, width // 5)
    least = {key: min(size, few) if key in text[1:] else size for key, size in full.items()}
    least |= {key: min(full[key], max(_TEXT, min(_NAME, width // 4))) for key in text[:1]}
    while len(least) > 1 and _line(least) > width:
        least.popitem()
        if list(least)[-1] == "low":  # an interval is shown whole or not at all
            least.popitem()
    widths = {key: full[key] for key in least}
    for key in reversed(widths):
        widths[key] = max(least[key], widths[key] - max(_line(widths) - width, 0))
    return widths


def _line(widths: Mapping[str, int]) -> int:
    """Length of a line of the table, two spaces between columns; before rich 15 one more."""
    return sum(widths.values()) + 2 * (len(widths) - 1) + 1


def _table(summary: Summary, rows: Sequence[Mapping[str, Any]], widths: Mapping[str, int]) -> Table:
    given, numbers = summary.table, numeric_columns(summary.table)
    table = Table(box=None, pad_edge=False, header_style="dim")
    text = [key for key in widths if key not in numbers]
    for key, width in widths.items():
        table.add_column(
            _text(given.columns[key]),
            justify="right" if key in numbers else "left",
            overflow="ellipsis",
            no_wrap=key in numbers or key in text[:1],
            max_width=width if key in text[:1] else None,  # others wrap as there is room
        )
    for row in rows:
        taken = row.get("chosen", row.get("predicts", True))
        cells = [_text(cell(row[key])) for key in widths]
        table.add_row(*cells, style="" if taken else "dim")
    return table


def _text(text: str, style: str = "") -> Text:
    return Text(printable(text), style=style)
