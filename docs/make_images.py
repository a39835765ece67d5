"""Make the committed pictures: `make pictures`.

The examples draw those of the manual, `cards` those of the home page; the report is a screenshot,
which needs chromium (`make browser`). What each picture shows, as words and numbers, is written to
`images/drawn.json`; `tests/test_documents.py` compares that with what would be drawn now.
"""

import contextlib
import hashlib
import io
import json
import os
import runpy
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
from pyarrow import csv

from holdtrue import GreedyTLClassifier, NestedRegressor, TGreedyRegressor, rank_columns
from holdtrue.datasets import make_curve, make_customers, make_domains, make_sources

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
DRAWN = IMAGES / "drawn.json"
TEMPLATES = ROOT / "src" / "holdtrue" / "report" / "templates"
EXAMPLES = {
    "audit": "categories/plot_audit_a_forest",
    "categories": "categories/plot_ids_that_remember",
    "encoder": "categories/plot_encoder",
    "groups": "categories/plot_new_rows_or_new_patients",
    "compare": "domains/plot_which_model_at_a_new_hospital",
    "domains": "domains/plot_features_that_hold",
    "similarity": "domains/plot_same_or_different",
    "within": "domains/plot_within_species",
    "band": "model_size/plot_curve_with_band",
    "model_size": "model_size/plot_how_large_a_model",
    "matrix": "sources/plot_which_digit_helps_which",
    "sources": "sources/plot_sources_that_help",
}
BLUE, ORANGE, GREY = "#2b8cc4", "#d96a1a", "#8a8a8a"  # seen on white and on black


def described(figure):
    """Words and numbers that a figure shows, by axes. Long series by five of their quantiles."""
    return [_described_axes(ax) for ax in figure.axes]


def _described_axes(ax):
    words = [ax.get_title(loc) for loc in ("left", "center", "right")]
    words += [ax.get_xlabel(), ax.get_ylabel(), *(text.get_text() for text in ax.texts)]
    legend = ax.get_legend()
    words += [text.get_text() for text in legend.get_texts()] if legend else []
    series = [line.get_ydata() for line in ax.lines] + [line.get_xdata() for line in ax.lines]
    series += [each.get_offsets() for each in ax.collections if len(each.get_offsets())]
    series += [image.get_array() for image in ax.images]
    series += [
        [box.get_width(), box.get_height()] for box in ax.patches if hasattr(box, "get_width")
    ]
    return {"words": [word for word in words if word], "numbers": [_quantiles(s) for s in series]}


def _quantiles(values):
    values = np.ma.filled(np.ma.asarray(values, dtype=float), np.nan).ravel()
    values = values[np.isfinite(values)]
    if len(values) > 5:
        values = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
    return [float(f"{v:.4g}") for v in values]


def drawn_by(example):
    """The last figure that an example leaves open."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("error")
        runpy.run_path(str(ROOT / "examples" / f"{example}.py"), run_name="__main__")
    return plt.gcf()


def cards():
    """Four small pictures, one a question, from fits of the library."""
    figures = {}
    for name, draw in (
        ("card_categories", _card_categories),
        ("card_domains", _card_domains),
        ("card_sources", _card_sources),
        ("card_model_size", _card_model_size),
    ):
        figure, ax = plt.subplots(figsize=(4, 2.3), layout="constrained")
        draw(ax)
        ax.spines[["top", "right"]].set_visible(False)
        for spine in ax.spines.values():
            spine.set_color(GREY)
        ax.tick_params(colors=GREY, labelcolor=GREY)
        for label in (ax.xaxis.label, ax.yaxis.label):
            label.set_color(GREY)
        figures[name] = figure
    return figures


def _card_categories(ax):
    data = make_customers(2000, n_new=10_000, random_state=1)
    table = pa.table(data.columns)
    names = ["spend", "plan", "postcode", "customer"]
    for criterion, color, lift, label in (
        ("information_gain", ORANGE, 0.2, "on the rows at hand"),
        ("log_loss", BLUE, -0.2, "on new rows"),
    ):
        rows = {row["column"]: row for row in rank_columns(table, data.left, criterion=criterion)}
        explained = [100 * (1 - rows[n]["score"] / rows[n]["no_column"]) for n in names]
        ax.barh(np.arange(4) + lift, explained, height=0.38, color=color, label=label)
    ax.set_yticks(range(4), names)
    ax.set(xlabel="explained (%)")
    ax.legend(frameon=False, labelcolor=GREY, loc="lower right")


def _card_domains(ax):
    data = make_domains(12, 100, n_steady=5, random_state=1)
    effects = TGreedyRegressor().fit(data.X, data.y, groups=data.groups).domain_effects_
    hospitals = np.arange(1, 13)
    by_spread = effects[np.argsort(effects.std(axis=1))]
    steady, fickle = effects[data.steady[1]], by_spread[-1]
    ax.axhline(0, color=GREY, linewidth=1)
    ax.plot(hospitals, fickle, "o-", color=ORANGE, linewidth=1, label="changes")
    ax.plot(hospitals, steady, "o-", color=BLUE, linewidth=1, label="holds")
    ax.set(xlabel="hospital", ylabel="effect", xticks=[1, 4, 8, 12])
    ax.legend(
        frameon=False, labelcolor=GREY, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 0.95)
    )


def _card_sources(ax):
    task = make_sources(n_samples=20, n_sources=1000, n_helpful=20, random_state=0)
    path = GreedyTLClassifier(task.sources, max_selected="loo").fit(task.X, task.y).path_
    ax.plot(path.scores[:31], color=BLUE)
    ax.plot(path.chosen_size, path.scores[path.chosen_size], "o", color=ORANGE, markersize=9)
    ax.annotate(
        f"take {path.chosen_size} of 1,000",
        (path.chosen_size, path.scores[path.chosen_size]),
        (10, -2),
        textcoords="offset points",
        color=GREY,
    )
    ax.set(xlabel="models chosen", ylabel="error on left-out rows", ylim=(0.35, 1.05))


def _card_model_size(ax):
    data = make_curve("four_terms", n_samples=20, noise=0.3, random_state=1)
    model = NestedRegressor(random_state=1).fit(data.X, data.y, X_unlabeled=data.X_unlabeled)
    grid = np.linspace(data.X.min(), data.X.max(), 300)[:, None]
    curve, deviation = model.predict(grid, return_std=True)
    many = list(model.staged_predict(grid))[model.choices_["aic"] - 1]
    ax.plot(grid, many, color=ORANGE, linewidth=1.2, label=f"{model.choices_['aic']} terms")
    ax.fill_between(grid[:, 0], curve - 2 * deviation, curve + 2 * deviation, color=BLUE, alpha=0.3)
    ax.plot(grid, curve, color=BLUE, linewidth=2.5, label="averaged")
    ax.plot(data.X, data.y, "o", color=GREY, markersize=5)
    low, high = data.y.min(), data.y.max()
    ax.set(ylim=(low - 0.9 * (high - low), high + 0.5 * (high - low)), xlabel="x", ylabel="y")
    ax.legend(frameon=False, labelcolor=GREY, ncols=2, loc="lower left")


def report(folder):
    """Write the report of the README into a folder; returns what it says."""
    customers = make_customers(2000, n_new=10_000, random_state=1)  # those of the demo
    csv.write_csv(
        pa.table({**customers.columns, "left": customers.left}), Path(folder) / "customers.csv"
    )
    command = (sys.executable, "-m", "holdtrue", "rank", "customers.csv", "--target", "left")
    written = ("--out", "rank.html", "--json", "rank.json", "--quiet")
    subprocess.run([*command, *written], check=True, timeout=300, cwd=folder)
    said = json.loads((Path(folder) / "rank.json").read_text("utf-8"))
    looks = hashlib.sha256()
    for file in sorted(TEMPLATES.iterdir()):
        looks.update(file.read_bytes())
    kept = ("question", "answer", "wary", "table", "charts")
    return {"looks": looks.hexdigest()[:16], **{name: said[name] for name in kept}}


def photograph(page, picture, *, dark=False):
    """A screenshot of the top of a page."""
    options = ["--headless=new", "--no-sandbox", "--hide-scrollbars", "--window-size=1000,1100"]
    options += ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if dark else []
    subprocess.run(
        ["chromium", *options, f"--screenshot={picture}", str(page)], check=True, timeout=300
    )


def main():
    drawn = {}
    for name, example in EXAMPLES.items():
        figure = drawn_by(example)
        figure.savefig(IMAGES / f"{name}.png", dpi=100)
        drawn[name] = described(figure)
        plt.close("all")
    with plt.rc_context({"svg.hashsalt": "holdtrue", "font.size": 11}):
        for name, figure in cards().items():
            path = IMAGES / f"{name}.svg"
            figure.savefig(path, transparent=True, metadata={"Date": None})
            drawn[name] = described(figure)
        plt.close("all")
    with tempfile.TemporaryDirectory() as folder:
        drawn["report"] = report(folder)
        photograph(Path(folder) / "rank.html", IMAGES / "report.png")
        photograph(Path(folder) / "rank.html", IMAGES / "report_dark.png", dark=True)
    lines = (f'"{name}": {json.dumps(what, ensure_ascii=False)}' for name, what in drawn.items())
    DRAWN.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
