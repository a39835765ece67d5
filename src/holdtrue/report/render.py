"""A `Summary` as people read it: HTML in one file, Markdown, CSV."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import math
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from holdtrue import __version__
from holdtrue.charts import number, printable, svg
from holdtrue.charts.chart import shortened
from holdtrue.report.summary import Summary, Table

_MAX_ROWS = 1000  # rows of a table in HTML, which must stay below 1 MB
_MAX_CHARACTERS = 200  # of a name from the data


def to_html(summaries: Sequence[Summary], *, title: str | None = None, intro: str = "") -> str:
    """One HTML page that holds all it needs: no script, style, font or picture from elsewhere.

    Parameters
    ----------
    summaries : sequence of Summary
    title : str, optional
        Default: the command and the data of the first.
    intro : str
        A sentence or two below the title.

    Returns
    -------
    page : str

    Examples
    --------
    >>> from holdtrue import SelectionPath
    >>> from holdtrue.report.render import to_html
    >>> from holdtrue.report.summary import Summary
    >>> path = SelectionPath([0], ["dose"], [1.0, 0.4], 1, "the error is least at 1 feature")
    >>> to_html([Summary.from_json(path.to_json())])[:15]
    '<!DOCTYPE html>'
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("holdtrue.report"),
        autoescape=True,
        trim_blocks=True,
        undefined=StrictUndefined,
        finalize=lambda given: printable(given) if type(given) is str else given,
    )
    templates = resources.files("holdtrue.report").joinpath("templates")
    style, script = (templates.joinpath(f"report.{x}").read_text("utf-8") for x in ("css", "js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    first = summaries[0]
    page = environment.get_template("report.html").render(
        summaries=summaries,
        title=title or ": ".join(filter(None, (first.command, first.asked.get("data")))),
        intro=intro,
        version=__version__,
        style=Markup(style),
        script=Markup(script),
        # Only this script may run, whatever stands in the data.
        script_hash=f"sha256-{digest}",
        drawn=lambda chart, width: Markup(svg.draw(chart, width)),
        numeric=numeric_columns,
        terms_of=terms_of,
        cell=cell,
        exact=_exact,
        caption=lambda table: table_caption(table, _MAX_ROWS),
        max_rows=_MAX_ROWS,
    )
    return str(page)


def table_caption(table: Table, limit: int | None = None) -> str:
    """The caption, and how many rows are not shown; at most ``limit`` are."""
    n_rows, shown = len(table.rows) + table.n_left_out, len(table.rows[:limit])
    if shown == n_rows:
        return table.caption
    rest = "--csv and --json have all of them" if not table.n_left_out else "--top leaves out more"
    return f"{table.caption.rstrip('.')}. The first {shown:,} of {n_rows:,} rows; {rest}."


def to_markdown(summary: Summary) -> str:
    """The summary as Markdown, without its charts."""
    lines = [f"# {_inline(summary.question)}", "", _inline(summary.answer), ""]
    if summary.asked:
        lines += [f"- {_inline(k)}: {_inline(v)}" for k, v in summary.asked.items()] + [""]
    if summary.wary:
        lines += ["## What to be wary of", ""]
        lines += [f"- **{_inline(what)}.** {_inline(why)}" for what, why in summary.wary] + [""]
    table, numbers = summary.table, numeric_columns(summary.table)
    lines += ["## The numbers", "", _inline(table_caption(table)), ""]
    lines.append("| " + " | ".join(_inline(label) for label in table.columns.values()) + " |")
    lines.append("|" + "|".join("--:" if key in numbers else ":--" for key in table.columns) + "|")
    for row in table.rows:
        lines.append("| " + " | ".join(_inline(cell(row[key])) for key in table.columns) + " |")
    words = terms_of(table)
    if words:
        lines += ["", *(f"- *{_inline(word)}*: {_inline(text)}" for word, text in words.items())]
    if summary.reproduce:
        lines += ["", "## How to reproduce", ""]
        for key, value in summary.reproduce.items():
            code = [printable(line).replace("`", " ") for line in value.split("\n")]
            one_line = [f"- {_inline(key)}: `{code[0]}`"]
            fenced = [f"- {_inline(key)}:", "", "```python", *code, "```"]
            lines += one_line if len(code) == 1 else fenced
    return "\n".join(lines) + "\n"


def to_csv(table: Table) -> str:
    """The table as CSV with exact numbers; what is missing is empty.

    A text that a spreadsheet would run as a formula gets an apostrophe in front.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    for row in table.rows:
        writer.writerow([csv_cell(row[key]) for key in table.columns])
    return out.getvalue()


def cell(value: Any) -> str:
    """A cell of a table as a reader sees it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return number(value)
    return shortened(str(value), _MAX_CHARACTERS)


def numeric_columns(table: Table) -> set[str]:
    """Keys of the columns that hold numbers."""

    def is_numeric(value: Any) -> bool:
        return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))

    return {key for key in table.columns if all(is_numeric(row[key]) for row in table.rows)}


def _exact(value: Any) -> str:
    if value is None or math.isnan(value):
        return ""
    return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, repr(value))


def csv_cell(value: Any) -> Any:
    """A cell of a CSV file: all digits, empty for nothing, and no formula of a spreadsheet."""
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(value)
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return "'" + value
    return value


def _inline(text: str) -> str:
    """Text that cannot be taken for markup, on one line."""
    text = printable(text)
    for sign in "\\`*_{}[]<>#|":
        text = text.replace(sign, "\\" + sign)
    return text


_TERMS: Mapping[str, str] = {
    "skill": "Share of the error without any column or model that is taken away: 1 is perfect, 0 "
    "no better, below 0 harmful.",
    # rank
    "in short": "Predicts: the gain on new data is clear. May predict: chance may give such a "
    "gain. Adds little: another column already tells what this one does.",
    "wrong, %": "New rows, in percent, whose class is not the likeliest by this column alone.",
    "loss": "Cost of the predictions on new data, on average; lower is better.",
    "from": "Lower end of the interval of the loss.",
    "to": "Upper end of the interval of the loss.",
    "without it": "The loss without the column.",
    "values": "Different values of the column, missing included.",
    "known, %": "New rows, in percent, that bring a value seen before. Low for an id.",
    "read as": "By value, or as a number in so many bins, whichever loses less.",
    # select
    "steady": "Whether, as it enters, its effect has the same sign across domains beyond chance.",
    "used": "Whether the predictor uses the feature.",
    "enters at": "Step at which it first enters; later steps may improve features that are in.",
    "error": "Error on data that were left out of the fit; of a path, up to this step.",
    "T": "Mean over domains of the effect of the feature alone, by its standard error.",
    "domains +": "Domains in which the feature goes with the target.",
    "domains −": "Domains in which the feature goes against the target.",
    "least": "Least effect in a domain, in standard deviations.",
    "largest": "Largest effect in a domain, in standard deviations.",
    # transfer
    "weight": "What one standard deviation adds to the score of the target.",
    # compare
    "recommended": "The simplest model within a standard error of the best.",
    "low": "Lower end of the interval of the error.",
    "high": "Upper end of the interval of the error.",
    "more than best": "Error above that of the best model, on the same data.",
    "±": "Standard error of the number before it.",
    "features": "Features that a fit uses, on average over the fits without each part.",
    "seconds": "Time of a fit.",
    # size
    "chooses": "Number of terms at which the criterion is least.",
    "estimate there": "The criterion at that size.",
    "dee": "Direct eigenvalue estimate: the error on these points, enlarged by how much farther "
    "the terms reach over new inputs (Chapelle, Vapnik and Bengio 2002).",
    "adj": "Error on these points, adjusted by how far the curves of two sizes are apart over new "
    "inputs (Schuurmans 1997).",
    "seb": "Smallest eigenvalue bound on the error (Chapelle, Vapnik and Bengio 2002).",
    "ucb": "Uniform convergence bound: the error on these points, enlarged by a bound for all "
    "models of the size (Vapnik).",
    "fpe": "Final prediction error: the error on these points times (n + d)/(n − d), d the number "
    "of terms (Akaike).",
    "gcv": "Generalised cross-validation: leave-one-out with an average weight for every point.",
    "cv": "Cross-validation: the error on parts that were left out.",
    "loo": "Leave-one-out: the error at each point of a fit without it.",
    "cpm": "Mallows' Cp: the error on these points plus two noise variances for each term.",
    "bic": "Bayesian information criterion: the price of a term grows with the logarithm of n.",
    "ric": "Risk inflation criterion: the price of a term grows with the logarithm of their "
    "number.",
    "aic": "Akaike's information criterion.",
    "aicc": "Akaike's information criterion, corrected for few points.",
    "adjusted_r2": "One minus R² adjusted for the number of terms.",
    "bayes": "Expected error under the posterior of the coefficients.",
}


def terms_of(table: Table) -> dict[str, str]:
    """Headings of a table and criteria in it that need a word of explanation, with that.

    Other cells, and what a group is called, are names from the data, whatever they are.
    """
    texts = [label for key, label in table.columns.items() if key != "group"]
    texts += [row["criterion"] for row in table.rows if "criterion" in row]
    return {text: _TERMS[text] for text in dict.fromkeys(texts) if text in _TERMS}
