"""First contact: the question that a data scientist would ask of a file, and the first answer.

Run `python -m experiments.first_contact --vega node_modules/vega-datasets/data` after
`npm install vega-datasets`. Each question names what is known of the data beforehand; the answer is
right if its best columns (or chosen features, or recommended model) are among those. Nothing is
prepared: the command is the first that one would type.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from experiments.records import (
    asked_options,
    data_file,
    markdown_table,
    progress,
    read_csv,
    write_csv,
)

RESULTS = Path(__file__).parent / "results"
ARRAY = "an array of objects was refused"


class Question(NamedTuple):
    """A question of a file.

    Attributes
    ----------
    place : str
        ``vega``, ``shared`` or ``sklearn``.
    file, command : str
        FILE in the command stands for the file.
    expected : str
        What is known: names, of which the first of the answer must be one.
    mended : str
        What stood in the way, and is mended.
    """

    place: str
    file: str
    command: str
    expected: str
    mended: str = ""


QUESTIONS = [
    Question(
        "vega", "cars.json", "rank FILE -t Miles_per_Gallon", "Displacement Weight_in_lbs", ARRAY
    ),
    Question(
        *("vega", "movies.json", "rank FILE -t 'IMDB Rating'"),
        *(
            "Rotten_Tomatoes_Rating IMDB_Votes",
            f"{ARRAY}; a title that is a number was refused; 'Jun 12 1998' was text",
        ),
    ),
    Question(
        *("vega", "seattle-weather.csv", "rank FILE -t weather", "precipitation"),
        "the month was not a column: 'date.month' is now",
    ),
    Question(
        *("vega", "flights-20k.json", "rank FILE -t delay", "date.hour"),
        f"{ARRAY}; '2001/01/01 00:47' was text that looks like an id; the hour was not a column",
    ),
    Question("vega", "penguins.json", "rank FILE -t Species", "Flipper_Length_(mm)", ARRAY),
    Question(
        *("vega", "birdstrikes.csv", "rank FILE -t 'Effect Amount of damage'"),
        "Cost_Total_$ Cost_Repair Wildlife_Size",
    ),
    Question(
        *("vega", "stocks.csv", "rank FILE -t price", "symbol"), "'Jan 1 2000' was text, an id"
    ),
    Question(
        *("vega", "github.csv", "rank FILE -t count", "time.hour"),
        "'2015/01/01 01:00:00' was text; the hour was not a column. The expectation was wrong: by "
        "hand, the mean of the hour without the row has a squared error of 17.4, no column 16.8",
    ),
    Question("vega", "zipcodes.csv", "rank FILE -t state --only zip_code,longitude", "longitude"),
    Question(
        *("vega", "jobs.json", "rank FILE -t sex --weights count", "job"),
        f"{ARRAY}; people could not be counted: --weights",
    ),
    Question("vega", "barley.json", "rank FILE -t yield", "site", ARRAY),
    Question(
        *("vega", "gapminder.json", "select FILE -t life_expect -d country", "year fertility"),
        ARRAY,
    ),
    Question(
        *("vega", "gapminder.json"),
        "compare FILE -t life_expect -d year --domain-order time --models ridge,t_greedy,mean",
        "ridge t_greedy elastic_net steady_ridge",
        f"{ARRAY}; earlier years were predicted from later ones: --domain-order time",
    ),
    Question(
        *("vega", "weather.csv", "rank FILE -t temp_max --drop temp_min", "date.month date"),
        "the month was not a column",
    ),
    Question(
        *("vega", "weekly-weather.json", "rank FILE -t day", ""),
        f"{ARRAY}; columns of objects stopped the command: they are left out and named",
    ),
    Question(
        "shared", "adult.parquet", "rank FILE -t income-per-year", "relationship marital-status"
    ),
    Question(
        *("shared", "heart_4sites.parquet", "select FILE -t num -d site"),
        "cp=4 cp exang oldpeak thalach sex",
    ),
    Question("shared", "mushroom.parquet", "rank FILE -t class", "f5"),
    Question(
        "shared",
        "regression/r_MASS_mcycle.parquet",
        "size FILE --x times --y accel",
        "6 7 8 9 10 11 12",
    ),
    Question(
        *("sklearn", "iris.csv", "rank FILE -t target", "petal_length_(cm) petal_width_(cm)"),
    ),
    Question("sklearn", "diabetes.csv", "rank FILE -t target", "bmi s5"),
    Question(
        *("sklearn", "breast_cancer.csv", "rank FILE -t target"),
        "worst_perimeter worst_radius worst_area worst_concave_points mean_concave_points",
    ),
    Question(
        *("sklearn", "wine.csv", "rank FILE -t target,alcohol"),
        "flavanoids proline",
        "two targets took two commands: --target a,b",
    ),
]


def file_of(question: Question, vega: Path, folder: Path) -> Path:
    """The file of a question; those of scikit-learn are written as CSV."""
    if question.place == "vega":
        return vega / question.file
    if question.place == "shared":
        return data_file(question.file, "the README of the data folder")
    import numpy as np
    from sklearn import datasets

    name = question.file.removesuffix(".csv")
    bunch = getattr(datasets, f"load_{name}")()
    labels = getattr(bunch, "target_names", None)
    target = bunch.target if labels is None else labels[bunch.target]
    path = folder / question.file
    lines = [",".join([*bunch.feature_names, "target"])]
    rows = zip(bunch.data.tolist(), np.asarray(target).tolist(), strict=True)
    lines += [",".join(map(str, [*row, label])) for row, label in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def ask(question: Question, vega: Path, folder: Path) -> dict[str, Any]:
    """Run the command, and judge its answer."""
    path = file_of(question, vega, folder)
    words = shlex.split(question.command)
    words[words.index("FILE")] = str(path)
    several = "," in words[words.index("-t") + 1] if "-t" in words else False
    out = folder / "answer.json"
    command = [sys.executable, "-m", "holdtrue", *words, "--json", str(out), "--force", "-q"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    row = {
        "file": question.file,
        "command": question.command.replace("FILE", Path(question.file).name),
        "expected": question.expected,
    }
    if ended.returncode:
        said = ended.stderr.strip().splitlines()[-1]
        return {**row, "found": "", "right": question.expected == "", "answer": said,
                "mended": question.mended}  # fmt: skip
    if several:
        out = sorted(folder.glob("answer-*.json"), key=lambda p: "target" not in p.name)[0]
    summary = json.loads(out.read_text("utf-8"))
    found = first_of(summary).replace(" ", "_")
    right = found in question.expected.split()
    answer = summary["answer"].replace("\n", " ")
    return {**row, "found": found, "right": right, "answer": answer, "mended": question.mended}


def first_of(summary: dict[str, Any]) -> str:
    """The best column, the first steady feature, the recommended model, or the size."""
    rows = summary["table"]["rows"]
    path = summary["path"]
    if summary["command"] == "size":
        return str(path["chosen_size"])
    if summary["command"] == "compare":
        return str(next(row["model"] for row in rows if row["chosen"]))
    if "column" in rows[0]:
        return str(rows[0]["column"])
    return str(path["names"][path["order"][0]]) if path["order"] else "nothing"


def report(out: Path) -> None:
    """The table as Markdown."""
    rows = read_csv(out / "first_contact.csv")
    remarks = {question.file + question.expected: question.mended for question in QUESTIONS}
    rows = [{**row, "mended": remarks[row["file"] + row["expected"]]} for row in rows]
    n_right = sum(row["right"] == "True" for row in rows)
    header = ("file", "command", "expected", "found", "right", "answer", "was wrong, mended")
    table = markdown_table(
        header,
        [
            [str(row[key]).replace("|", "\\|") for key in
             ("file", "command", "expected", "found", "right", "answer", "mended")]
            for row in rows
        ],
    )  # fmt: skip
    text = (
        "# First contact\n\nThe first command that one would type, on files as they are found. "
        f"Expected is what is known beforehand; spaces of names are written as _. {n_right} of "
        f"{len(rows)} answers are as expected.\n\n{table}\n"
    )
    (out / "first_contact.md").write_text(text, encoding="utf-8")
    print(f"{n_right} of {len(rows)} as expected")


def main() -> None:
    options = asked_options(
        __doc__,
        {"questions": ask},
        RESULTS,
        vega={"type": Path, "default": Path("node_modules/vega-datasets/data")},
    )
    if options.parts:
        command = "python -m experiments.first_contact --vega node_modules/vega-datasets/data"
        with tempfile.TemporaryDirectory() as name:
            kept = options.out / "first_contact.csv"
            rows = read_csv(kept) if kept.exists() else []  # an interrupted run goes on
            asked = {row["file"] + row["expected"] for row in rows}
            left = [one for one in QUESTIONS if one.file + one.expected not in asked]
            for question in progress(left, len(left), "questions"):
                rows.append(ask(question, options.vega, Path(name)))
                write_csv(
                    options.out / "first_contact.csv",
                    rows,
                    command=command,
                    seed=options.seed,
                    packages=("pyarrow", "typer"),
                )
    report(options.out)


if __name__ == "__main__":
    main()
