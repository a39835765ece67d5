"""`Ranking`: columns by their error on new data, as a table, in words and as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import narwhals as nw
import numpy as np

from holdtrue.categories.display import shape_chart
from holdtrue.categories.estimate import score_order
from holdtrue.charts import svg
from holdtrue.errors import caution, speaks
from holdtrue.evidence import ColumnEvidence
from holdtrue.path import SelectionPath, data_frame

__all__ = ["Ranking", "like_groups", "short_verdict", "warn_of_groups"]

# Rows of a ranking that are printed.
_SHOWN = 30
_SHAPES_SHOWN = 9


class Ranking:
    """Columns by their estimated error on new rows, best first; what `rank_columns` returns.

    ``print(ranking)`` shows it, a notebook displays it as a table. ``pandas.DataFrame(ranking)``,
    ``polars.DataFrame(ranking)``, ``pyarrow.table(ranking)`` and ``narwhals.from_native(ranking)``
    take it as the table of `to_frame`; iterating gives its rows as dicts.

    Parameters
    ----------
    path : SelectionPath
        With `ColumnEvidence`.

    Attributes
    ----------
    path : SelectionPath
        The columns that predict, then the others, each part by score.
    """

    @speaks
    def __init__(self, path: SelectionPath):
        self._evidence = path.evidence_as(ColumnEvidence)
        self.path = path

    @property
    def _has_shares(self) -> bool:
        """Whether there is a share of rows that are predicted wrong."""
        return not np.isnan(self._evidence.share_wrong).all()

    def _columns(self) -> dict[str, list[Any]]:
        """The table, column by column."""
        evidence = self._evidence
        columns: dict[str, Any] = {
            "column": evidence.names,
            "score": evidence.scores,
            "standard_error": evidence.standard_errors,
            "low": evidence.low,
            "high": evidence.high,
            "no_column": evidence.no_column,
            "skill": evidence.skill,
            "share_wrong": evidence.share_wrong,
            "n_values": evidence.n_values,
            "coverage": evidence.coverage,
            "kind": evidence.kinds,
            "read_as": evidence.read_as,
            "id_like": evidence.id_like,
            "predicts": evidence.predicts,
            "verdict": evidence.verdicts,
        }
        if not self._has_shares:
            del columns["share_wrong"]
        order = score_order(evidence.scores)
        # Objects, so that a column is a list of Python's own values.
        return {n: np.array(values, dtype=object)[order].tolist() for n, values in columns.items()}

    @speaks
    def to_frame(self, backend: str = "pandas") -> Any:
        """Table with one row per column of the data, best first.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}
            Kind of data frame. The library must be installed.

        Returns
        -------
        frame : data frame
            ``column``; ``score``, lower is better; ``standard_error``; ``low`` and ``high``, its
            interval; ``no_column``, the score without the column; ``skill``, the share of it
            that the column removes; ``share_wrong``, of new rows whose class is not the likeliest
            one (with classes); ``n_values``; ``coverage``, the share of new rows whose value has
            been seen; ``kind`` (category, integer, number, empty); ``read_as`` (values, or how
            many bins); ``id_like``; ``predicts``, whether the gain over no column is beyond its
            standard error; ``verdict``, in words.
        """
        return data_frame(self._columns(), backend)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_frame("pyarrow").__arrow_c_stream__(requested_schema)

    def __narwhals_dataframe__(self) -> Any:
        frame = nw.from_native(self.to_frame("pyarrow"), eager_only=True)
        return frame._compliant_frame

    def __len__(self) -> int:
        return len(self._evidence.names)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        columns = self._columns()
        for row in zip(*columns.values(), strict=True):
            yield dict(zip(columns, row, strict=True))

    @speaks
    def plot(self, **options: Any) -> Any:
        """`RankingDisplay` of the ranking; options are those of its ``plot``."""
        from holdtrue import RankingDisplay

        return RankingDisplay.from_path(self.path, **options)

    def _cells(self) -> tuple[list[str], list[list[str]], str]:
        """Heads and rows of the table that is shown, and the note below it."""
        evidence = self._evidence
        heads = ["", "column", "score", "from", "to", "skill", "wrong", "values", "in short"]
        if not self._has_shares:
            heads.remove("wrong")
        shown = []
        for rank, j in enumerate(score_order(evidence.scores)[:_SHOWN], 1):
            numbers = (evidence.scores[j], evidence.low[j], evidence.high[j])
            shares = [evidence.skill[j]] + [evidence.share_wrong[j]] * self._has_shares
            shown.append(
                [
                    str(rank),
                    evidence.names[j],
                    *(f"{value:.4g}" for value in numbers),
                    *(f"{share:z.0%}" for share in shares),
                    f"{evidence.n_values[j]:,.0f}",
                    short_verdict(evidence, int(j)),
                ]
            )
        rest = len(evidence.names) - len(shown)
        note = f"{self.path.reason}; scores: {self.path.unit}"
        note += f", of {evidence.predictor}" if evidence.predictor else ""
        if evidence.group_like.any():
            alike = [n for n, one in zip(evidence.names, evidence.group_like, strict=True) if one]
            note += f"; {like_groups(alike)}"
        return heads, shown, note + (f"; {rest} more columns in to_frame()" if rest else "")

    def __str__(self) -> str:
        heads, rows, note = self._cells()
        is_text = [head in ("column", "in short") for head in heads]
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if text else cell.rjust(width)
                for cell, width, text in zip(row, widths, is_text, strict=True)
            ).rstrip()
            for row in (heads, *rows)
        ]
        return "\n".join([*lines, note])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        heads, rows, note = self._cells()

        def line(cells: Sequence[str], tag: str) -> str:
            return "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells)

        body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
        shapes = "".join(
            f"<figure style='flex:1 1 300px;max-width:400px;margin:0'><figcaption>"
            f"{escape(shape.column)}</figcaption>{svg.draw(shape_chart(shape), 340)}</figure>"
            for shape in self._evidence.shapes[:_SHAPES_SHOWN]
        )
        return (
            f"<table><caption>{escape(note)}</caption><thead><tr>{line(heads, 'th')}</tr></thead>"
            f"<tbody>{body}</tbody></table>"
            f"<div style='display:flex;flex-wrap:wrap;gap:12px 24px'>{shapes}</div>"
        )


def short_verdict(evidence: ColumnEvidence, j: int) -> str:
    """What to think of a column, in a few words."""
    if evidence.n_values[j] <= 1:
        return "constant"
    if not evidence.predicts[j]:
        result = "no better than no column"
        if evidence.gain_low[j] > 0:
            result = "too little to matter"
    elif evidence.in_sample:
        result = "explains these rows"
    else:
        result = "predicts" if evidence.gain_low[j] > 0 else "may predict"
    if twin := evidence.twin(j):
        result += f", the same as {twin[0]!r}" if twin[1] else f", adds little to {twin[0]!r}"
    return f"looks like an id; {result}" if evidence.id_like[j] else result


def like_groups(names: Sequence[str], by_name: bool = True) -> str:
    """Advice about columns that look like groups.

    ``by_name`` where groups are passed as the name of a column, not as an array.
    """
    return (
        f"rows with the same value of {' or '.join(map(repr, names))} are almost alike in their "
        "target, as those of one person or place are: if new data are new ones, pass groups="
        + (repr(names[0]) if by_name else f"X[{names[0]!r}]")
    )


def warn_of_groups(who: str, alike: Sequence[str], by_name: bool = True) -> None:
    """Warn of the columns, if any, that look like groups."""
    if alike:
        caution(f"{who}: {like_groups(alike, by_name)}.")
