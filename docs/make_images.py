"""Make the committed pictures: `make pictures`.

The examples draw those of the manual, `cards.py` the small ones of gallery and home page; the
report is a screenshot, which needs chromium (`make browser`). What each picture shows, as words and
numbers, is written to `images/drawn.json`; `tests/test_documents.py` compares that with what would
be drawn now.
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

from holdtrue.datasets import make_customers

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
DRAWN = IMAGES / "drawn.json"
TEMPLATES = ROOT / "src" / "holdtrue" / "report" / "templates"
CARD = runpy.run_path(str(ROOT / "docs" / "cards.py"))["card"]
EXAMPLES = {  # name of the pictures: example
    "audit": "categories/plot_audit_a_forest",
    "categories": "categories/plot_ids_that_remember",
    "encoder": "categories/plot_encoder",
    "groups": "categories/plot_new_rows_or_new_patients",
    "promise": "categories/plot_promise_kept",
    "compare": "domains/plot_which_model_at_a_new_hospital",
    "domains": "domains/plot_features_that_hold",
    "similarity": "domains/plot_same_or_different",
    "site_sums": "domains/plot_sums_that_add",
    "within": "domains/plot_within_species",
    "band": "model_size/plot_curve_with_band",
    "model_size": "model_size/plot_how_large_a_model",
    "order": "model_size/plot_in_which_order",
    "matrix": "sources/plot_which_digit_helps_which",
    "shelf": "sources/plot_onnx_shelf",
    "sources": "sources/plot_sources_that_help",
}
ONLY_CARDS = {"order", "promise", "shelf", "site_sums"}  # the manual shows no figure of these


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


def drawn_by(name):
    """Pictures of one example by name: the last figure that it leaves open, and its card."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("error")
        example = ROOT / "examples" / f"{EXAMPLES[name]}.py"
        shown = runpy.run_path(str(example), run_name="__main__")
    figure = plt.gcf()
    return {
        **({} if name in ONLY_CARDS else {f"{name}.png": figure}),
        f"card_{name}.svg": CARD(name, shown),
    }


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
    """A screenshot of the top of a page, so narrow that its text is read where it is shown."""
    options = ["--headless=new", "--no-sandbox", "--hide-scrollbars", "--window-size=560,900"]
    options += ["--force-device-scale-factor=1.5"]
    options += ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if dark else []
    subprocess.run(
        ["chromium", *options, f"--screenshot={picture}", str(page)], check=True, timeout=300
    )


def main():
    drawn = {}
    for name in EXAMPLES:
        for file, figure in drawn_by(name).items():
            card = {"transparent": True, "metadata": {"Date": None}} if ".svg" in file else {}
            with plt.rc_context({"svg.hashsalt": "holdtrue", "savefig.dpi": 100}):
                figure.savefig(IMAGES / file, **card)
            drawn[Path(file).stem] = described(figure)
        plt.close("all")
    with tempfile.TemporaryDirectory() as folder:
        drawn["report"] = report(folder)
        photograph(Path(folder) / "rank.html", IMAGES / "report.png")
        photograph(Path(folder) / "rank.html", IMAGES / "report_dark.png", dark=True)
    lines = (f'"{name}": {json.dumps(what, ensure_ascii=False)}' for name, what in drawn.items())
    DRAWN.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
