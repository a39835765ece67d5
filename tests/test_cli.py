"""The command as a person uses it: every command, every output, answers that are known."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from contextlib import chdir, redirect_stdout
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from holdtrue import NestedRegressor, SelectionPath, __version__
from holdtrue.charts import number
from holdtrue.datasets import make_curve, make_customers, make_domains

COMMAND = Path(sys.executable).parent / "holdtrue"
COMMANDS = (
    *("rank", "select", "compare", "transfer", "size"),
    *("predict", "check", "sums", "report", "demo"),
)
STEADY, FICKLE = ("age", "pressure", "dose"), ("coding", "ward")


def customers():
    data = make_customers(1000, random_state=0)
    return pa.table(data.columns | {"left": np.where(data.left, "yes", "no")})


def hospitals():
    data = make_domains(20, 40, n_features=12, n_fickle=2, random_state=0)
    names = [*STEADY, *FICKLE, *(f"lab{j}" for j in range(7))]
    columns = dict(zip(names, data.X.T, strict=True))
    return pa.table(columns | {"recovery": data.y, "hospital": [f"h{d}" for d in data.groups]})


def curve():
    data = make_curve("four_terms", n_samples=20, noise=0.3, n_unlabeled=40, random_state=0)
    x = np.concatenate([data.X[:, 0], data.X_unlabeled[:, 0]])
    return pa.table({"x": x, "y": pa.array([*data.y, *[None] * 40])})


def rows_of_the_task(n_rows, rng):
    """The class is the sign of a product, which no linear function of the columns shows."""
    X = rng.normal(size=(n_rows, 6))
    X[:, :2] += rng.choice([-2, 2], size=(n_rows, 2))
    return X, X[:, 0] * X[:, 1] > 0


def task():
    X, y = rows_of_the_task(24, np.random.default_rng(0))
    columns = {f"x{j}": X[:, j] for j in range(6)}
    return pa.table(columns | {"label": np.where(y, "cat", "dog")})


def fill_shelf(folder):
    """Models of the same task (two) and of labels drawn at random (six), as ONNX and skops."""
    from skl2onnx import to_onnx
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures
    from skops import io as skops

    folder.mkdir()
    rng = np.random.default_rng(1)
    X, right = rows_of_the_task(400, rng)
    for j in range(8):
        learner = LogisticRegression(max_iter=1000)
        model = make_pipeline(PolynomialFeatures(2), learner)
        model.fit(X, right if j < 2 else rng.random(400) < 0.5)
        name = f"{'helpful' if j < 2 else 'other'}{j}"
        if j % 2:
            skops.dump(model, folder / f"{name}.skops")
        else:
            options = {id(learner): {"zipmap": False}}
            made = to_onnx(model, X[:1].astype(np.float32), options=options)
            (folder / f"{name}.onnx").write_bytes(made.SerializeToString())


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One table for each command, as CSV and as Parquet, and a shelf of models."""
    folder = tmp_path_factory.mktemp("files")
    for make in (customers, hospitals, curve, task):
        pa.csv.write_csv(make(), folder / f"{make.__name__}.csv")
        pq.write_table(make(), folder / f"{make.__name__}.parquet")
    fill_shelf(folder / "shelf")
    return folder


def questions(files, ending="csv"):
    return {
        "rank": ("rank", files / f"customers.{ending}", "--target", "left"),
        "select": (
            *("select", files / f"hospitals.{ending}"),
            *("--target", "recovery", "--domain", "hospital", "--no-average"),
        ),
        "compare": (
            *("compare", files / f"hospitals.{ending}"),
            *("--target", "recovery", "--domain", "hospital", "--models", "mean,ridge"),
        ),
        "transfer": (
            *("transfer", files / f"task.{ending}"),
            *("--target", "label", "--sources", files / "shelf", "--max-selected", 4),
        ),
        "size": ("size", files / f"curve.{ending}", "--x", "x", "--y", "y"),
    }


every_question = pytest.mark.parametrize(
    "command", ["rank", "select", "compare", "transfer", "size"]
)


def said(ended):
    """The summary that --json wrote to standard output."""
    assert ended.code == 0, ended
    assert ended.err == "", ended
    return json.loads(ended.out)


# --- the installed command ----------------------------------------------------------------------


@every_question
def test_the_installed_command_answers_and_writes_its_report(command, files, tmp_path):
    asked = map(str, questions(files)[command])
    ended = subprocess.run(
        [COMMAND, *asked, "--out", "report.html"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == "wrote report.html\n"
    assert "?" in ended.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert (tmp_path / "report.html").read_text("utf-8").startswith("<!DOCTYPE html>")


def test_the_installed_command_refuses_a_mistake_with_one_sentence(files, tmp_path):
    ended = subprocess.run(
        [COMMAND, "rank", files / "customers.csv", "--target", "lefd"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stdout == ""
    sentence = "holdtrue rank: no column 'lefd' in customers.csv. Did you mean 'left'?\n"
    assert ended.stderr == sentence


def test_a_pipe_that_is_closed_early_ends_the_command_quietly(files, tmp_path):
    line = f"'{COMMAND}' rank '{files / 'customers.csv'}' -t left --csv | head -c 1"
    ended = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "r", "")


def test_a_closed_pipe_is_no_error_however_much_is_still_to_be_written(files, tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [COMMAND, *map(str, questions(files)["rank"])],
        cwd=tmp_path,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=600,
        check=False,
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("file", ["/dev/stdin", "<(cat '{}')"])
def test_a_pipe_is_a_file_like_any_other(file, files, tmp_path):
    place = files / "customers.csv"
    line = f"cat '{place}' | '{COMMAND}' rank {file.format(place)} -t left --csv"
    ended = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[1].startswith("1,plan,")


# --- right answers ------------------------------------------------------------------------------

every_ending = pytest.mark.parametrize("ending", ["csv", "parquet"])


@every_ending
def test_rank_finds_what_predicts_and_what_only_remembers(ending, files, holdtrue):
    found = said(holdtrue(*questions(files, ending)["rank"], "--json"))
    rows = {row["column"]: row for row in found["table"]["rows"]}
    assert {name for name, row in rows.items() if row["predicts"]} == {"plan", "spend"}
    assert found["table"]["rows"][0]["column"] == "plan"
    assert "looks like an id" in rows["customer"]["says"]
    assert found["path"]["chosen_size"] == 2
    assert "'customer'" in found["answer"]
    assert any(note["what"] == "Columns that look like ids" for note in found["wary"])


def test_a_quantity_is_no_id_and_names_are_not_read_as_numbers(tmp_path, holdtrue):
    rng = np.random.default_rng(0)
    heavy = rng.random(400) < 0.5
    weight = np.where(heavy, rng.integers(3500, 5200, 400), rng.integers(1600, 3000, 400))
    names = [f"{'V8' if h else 'mini'} {i if i % 4 else 'x'}" for i, h in enumerate(heavy)]
    columns = {"Weight_in_lbs": weight, "Name": names, "number": rng.permutation(400)}
    pq.write_table(pa.table(columns | {"heavy": heavy}), tmp_path / "cars.parquet")
    found = said(holdtrue("rank", "cars.parquet", "-t", "heavy", "--json"))
    rows = {row["column"]: row for row in found["table"]["rows"]}
    assert rows["Weight_in_lbs"]["says"] == "predicts"
    assert rows["Name"]["says"].startswith("looks like an id; predicts")
    assert "as a number" not in json.dumps(found)
    assert "looks like an id" in rows["number"]["says"]


def test_information_gain_is_taken_in_by_the_id(files, holdtrue):
    asked = questions(files)["rank"]
    found = said(holdtrue(*asked, "--criterion", "information_gain", "--json"))
    assert found["asked"]["judged by"].startswith("entropy left on the rows of the fit")
    scores = {row["column"]: row["score"] for row in found["table"]["rows"]}
    assert min(scores, key=scores.get) == "customer"


@every_ending
def test_select_finds_the_steady_features_and_names_those_that_flip(ending, files, holdtrue):
    found = said(holdtrue(*questions(files, ending)["select"], "--json"))
    entered = {row["enters"]: row["feature"] for row in found["table"]["rows"] if row["chosen"]}
    assert {entered[1], entered[2], entered[3]} == set(STEADY)
    (flips,) = (n["why"] for n in found["wary"] if n["what"] == "Features that flip their sign")
    assert all(repr(name) in flips for name in FICKLE)
    assert found["asked"]["domain"] == "hospital (20)"


def test_a_strict_rule_keeps_the_steady_features_alone(files, holdtrue):
    asked = (*questions(files)["select"], "--stop", "bonferroni", "--json")
    rows = said(holdtrue(*asked))["table"]["rows"]
    assert {row["feature"] for row in rows if row["chosen"]} == set(STEADY)


@every_ending
def test_compare_recommends_the_model_that_holds(ending, files, holdtrue):
    found = said(holdtrue(*questions(files, ending)["compare"], "--json"))
    assert "Take 'ridge' (12 features)" in found["answer"]
    assert "2 models were tried on 20 domains left out in turn." in found["answer"]
    assert found["asked"]["domain"] == "hospital (20)"
    assert found["path"]["evidence"]["recommended"] == "ridge"


@pytest.mark.parametrize("target", ["score", "state"])
def test_select_lets_the_average_compete(target, tmp_path, holdtrue, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(size=150)
    score = x + 0.5 * rng.normal(size=150)
    columns = {"x": x, "noise": rng.normal(size=150), "site": np.repeat(list("abcde"), 30)}
    columns |= {"score": score, "state": np.where(score > 0, "sick", "well")}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    other = "state" if target == "score" else "score"
    asked = ("select", "t.parquet", "-t", target, "-d", "site", "--drop", other, "--json")
    answer = said(holdtrue(*asked))["answer"]
    assert "DomainAverage has 0." in answer
    assert "SteadyRidge has 0." in answer
    assert ("+ goes with state = 'well'" in answer) == (target == "state")
    assert "--average" not in answer
    # Without values domains are numbered; which error belongs to which stays the same.
    hidden = said(holdtrue(*asked, "--no-values"))["answer"]
    assert hidden.split("left-out")[1] == answer.split("left-out")[1]
    without = said(holdtrue(*asked, "--no-average"))["answer"]
    assert "DomainAverage" not in without
    assert without.endswith("predicts better; --average lets it compete.")
    monkeypatch.setattr("holdtrue.cli.select._MOST_CELLS", 299)  # 150 rows of two features
    assert said(holdtrue(*asked))["answer"] == without
    assert said(holdtrue(*asked, "--average"))["answer"] == answer


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("average", ["--average", "--no-average"])
def test_the_python_lines_of_select_fit_what_errs_least(average, weighted, tmp_path, holdtrue):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(120, 6))
    y = np.where(X[:, 0] > 0, 2.0, 0.0) * (X[:, 1] > 0) + X.sum(axis=1) / 6 + rng.normal(size=120)
    columns = {f"x{j}": column for j, column in enumerate(X.T)}
    columns |= {"y": y, "d": np.arange(120) % 6, "w": 1 + np.arange(120) % 2}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    asked = ("select", "t.parquet", "-t", "y", "-d", "d", average, "--json")
    found = said(holdtrue(*asked, *(("--weights", "w") if weighted else ("--drop", "w"))))
    best = "DomainAverage" if average == "--average" else "SteadyRidge"
    error, *_ = re.search(rf"{best} has ([\d.]+) \(", found["answer"]).groups()
    with chdir(tmp_path), redirect_stdout(io.StringIO()) as printed:
        exec(found["reproduce"]["python"], {})
    assert float(printed.getvalue().splitlines()[-1].split()[0]) == pytest.approx(
        float(error), rel=0.01
    )


def test_where_no_domain_can_be_left_out_no_average_is_offered(tmp_path, holdtrue):
    table = {"x": np.arange(40.0) % 7, "y": np.arange(40.0) % 5, "d": np.arange(40) % 2}
    pq.write_table(pa.table(table), tmp_path / "t.parquet")
    for asked in ((), ("--average",), ("--no-average",)):
        found = said(holdtrue("select", "t.parquet", "-t", "y", "-d", "d", *asked, "--json"))
        assert "verage" not in found["answer"]
        assert "of 2 domains none can be held out" in str(found["wary"])


def test_select_predicts_with_what_errs_least(tmp_path, holdtrue):
    # Many effects of one size: T-Greedy's few features are not a standard error behind, but behind.
    rng = np.random.default_rng(1)
    X = rng.normal(size=(240, 30))
    y = X.sum(axis=1) + 5 * rng.normal(size=240)
    columns = {f"x{j}": column for j, column in enumerate(X.T)}
    pq.write_table(pa.table(columns | {"y": y, "d": np.arange(240) % 8}), tmp_path / "t.parquet")
    asked = ("select", "t.parquet", "-t", "y", "-d", "d", "--no-average", "--save", "m.skops")
    answer = said(holdtrue(*asked, "--json", "--quiet"))["answer"]
    assert "To predict at a new d, SteadyRidge errs least" in answer
    assert re.search(r"SteadyRidge has [\d.]+ \([\d.]+ ± [\d.]+ less\)\.", answer)
    assert "Kept in m.skops: SteadyRidge on 30 columns." in answer


def test_compare_without_domains_leaves_rows_out_and_scores_as_asked(files, holdtrue):
    asked = ("compare", files / "customers.parquet", "--target", "left", "--drop", "customer")
    scored = (*asked, "--scoring", "neg_log_loss", "--models", "majority", "--json")
    assert said(holdtrue(*scored))["asked"]["scoring"] == "log loss"
    found = said(holdtrue(*asked, "--models", "majority,steady_ridge", "--json"))
    assert "share wrong" in found["answer"]
    assert "Rows were left out, not groups" in [note["what"] for note in found["wary"]]
    assert "domain lacks" not in str(found["wary"])


def test_compare_goes_on_from_its_checkpoint(files, tmp_path, holdtrue):
    asked = (*questions(files)["compare"], "--checkpoint", "log.jsonl", "--csv")
    first = holdtrue(*asked)
    n_fits = len((tmp_path / "log.jsonl").read_text("utf-8").splitlines()) - 1
    assert n_fits == 3 * 20  # two models and none
    assert holdtrue(*asked) == first  # the seconds too: nothing was fitted again


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--models", "ridge,t_greed"), "Did you mean 't_greedy'?"),
        (("--scoring", "acuracy"), "Did you mean 'accuracy'?"),
        (("--alpha", "2"), "--alpha must lie between 0 and 1. Got 2."),
        (("--checkpoint", "nowhere/log"), "no folder 'nowhere' for the checkpoint"),
    ],
)
def test_a_mistake_in_compare_is_a_sentence(options, sentence, files, holdtrue):
    asked = questions(files)["compare"][:-2]
    ended = holdtrue(*asked, *options)
    assert ended.code == 2
    assert sentence in ended.err
    assert ended.err.startswith("holdtrue compare: ")


@every_ending
def test_transfer_finds_the_models_of_the_same_task(ending, files, holdtrue):
    found = said(holdtrue(*questions(files, ending)["transfer"], "--json"))
    sources = [row["name"] for row in found["table"]["rows"] if row["kind"] == "source"]
    assert found["table"]["rows"][0]["name"].startswith("helpful")
    assert {"helpful0", "helpful1"} <= set(sources)
    assert found["asked"]["sources"].startswith("8 in ")


@every_ending
def test_size_finds_a_curve_of_four_terms(ending, files, holdtrue):
    found = said(holdtrue(*questions(files, ending)["size"], "--json"))
    (dee,) = (row for row in found["table"]["rows"] if row["criterion"] == "dee")
    assert dee["chooses"] in (4, 5)
    assert found["asked"]["points"] == "20"
    assert found["asked"]["points without a target"] == "40"


def test_few_rows_without_a_target_are_pointed_out(tmp_path, holdtrue):
    table = curve().slice(0, 21)
    pa.csv.write_csv(table, tmp_path / "one.csv")
    found = said(holdtrue("size", tmp_path / "one.csv", "--x", "x", "--y", "y", "--json"))
    assert found["asked"]["points without a target"] == "1"
    notes = {note["what"]: note["why"] for note in found["wary"]}
    assert "at 1 row only" in notes["Few rows without a target"]


def test_size_looks_where_rows_have_no_target_and_not_at_the_points_again(files, holdtrue):
    found = said(holdtrue(*questions(files)["size"], "--json"))
    data = make_curve("four_terms", n_samples=20, noise=0.3, n_unlabeled=40, random_state=0)
    model = NestedRegressor(random_state=0).fit(data.X, data.y, X_unlabeled=data.X_unlabeled)
    for row in found["table"]["rows"]:
        own = model.criteria_[row["criterion"]].min()
        assert row["estimate"] == pytest.approx(own), row["criterion"]


READINGS = {
    "two numbers": (np.tile([0, 1], 30), "'label' is taken as 2 classes; --target-type numeric"),
    "grades": (np.tile([1, 2, 3, 4, 5], 12), "'label' is taken as 5 classes; --target-type num"),
    "whole floats": (np.tile([1.0, 2.0, 3.0], 20), "'label' is taken as 3 classes; --target-ty"),
    "ages": (np.arange(60) % 41 + 20, "'label' is taken as a number; --target-type classes"),
    "fractions": (np.arange(60) / 7, "'label' is taken as a number; --target-type classes"),
    "names": (np.tile(["a", "b", "c"], 20), ""),
    "truth": (np.tile([True, False], 30), ""),
}


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("command", ["rank", "select", "transfer"])
def test_the_answer_begins_with_how_the_target_was_read(
    command, reading, files, tmp_path, holdtrue
):
    label, sentence = READINGS[reading]
    rng = np.random.default_rng(0)
    columns = {f"x{j}": rng.normal(size=60) for j in range(6)} | {"label": label}
    if command == "select":
        columns["place"] = np.repeat(list("abcde"), 12)
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    asked = [*questions(files)[command], "--json"]
    asked[1:4] = [tmp_path / "t.parquet", "--target", "label"]
    if command == "select":
        asked[4:6] = ["--groups", "place"]
    answer = said(holdtrue(*asked))["answer"]
    assert answer.startswith(sentence)
    assert bool(sentence) == ("is taken as" in answer)
    kind = "numeric" if "a number" in sentence else "classes"
    forced = said(holdtrue(*asked, "--target-type", kind))["answer"]
    assert forced == answer.removeprefix(f"{answer.split('. ')[0]}. " if sentence else "")


@pytest.mark.parametrize("command", ["rank", "select", "transfer"])
def test_rows_without_a_target_or_domain_are_left_out_and_counted(
    command, files, tmp_path, holdtrue
):
    asked = [*questions(files, "parquet")[command], "--json", "a.json", "--quiet", "--force"]
    table = pq.read_table(asked[1])
    target = asked[3]
    hole = pa.table(
        {name: pa.array([None] * 3, table.schema.field(name).type) for name in table.column_names}
    )
    for name in set(table.column_names) - {target}:
        hole = hole.set_column(hole.column_names.index(name), name, table[name][:3])
    needed = [target]
    holes = hole
    if command == "select":
        place = hole.column_names.index("hospital")
        other = hole.set_column(hole.column_names.index(target), target, table[target][:3])
        nowhere = other.set_column(place, "hospital", pa.nulls(3, pa.string()))
        holes = pa.concat_tables([hole, nowhere])
        needed = [target, "hospital"]
    pq.write_table(pa.concat_tables([holes, table]), tmp_path / "holes.parquet")
    found = []
    for place in (asked[1], tmp_path / "holes.parquet"):
        assert holdtrue(asked[0], place, *asked[2:]).code == 0
        found.append(json.loads((tmp_path / "a.json").read_text("utf-8")))
    whole, left = found
    assert left["table"] == whole["table"]
    assert left["path"] == whole["path"]
    notes = {note["what"]: note["why"] for note in left["wary"]}
    for name in needed:
        n_rows = table.num_rows + holes.num_rows
        assert notes[f"Rows without {name!r}"].startswith(f"3 of {n_rows:,} rows have no {name!r}")
    assert not any(note["what"].startswith("Rows without") for note in whole["wary"])


def test_a_table_with_nothing_to_find_is_said_to_have_nothing(tmp_path, holdtrue):
    rng = np.random.default_rng(0)
    noise = {f"x{j}": rng.normal(size=200) for j in range(5)}
    place = np.repeat(list("abcdefgh"), 25)
    table = pa.table(noise | {"y": rng.normal(size=200), "place": place})
    pq.write_table(table, tmp_path / "noise.parquet")
    ranked = said(holdtrue("rank", "noise.parquet", "-t", "y", "--drop", "place", "--json"))
    assert ranked["path"]["chosen_size"] == 0
    assert "No column of 5 predicts 'y' on new rows" in ranked["answer"]
    chosen = said(holdtrue("select", "noise.parquet", "-t", "y", "-d", "place", "--json"))
    assert chosen["path"]["chosen_size"] == 0


@pytest.mark.parametrize("ending", ["feather", "jsonl", "duckdb", "tsv", "csv.gz"])
def test_every_kind_of_file_gives_the_same_ranking(ending, files, tmp_path, holdtrue):
    table = customers()
    place = tmp_path / f"customers.{ending}"
    if ending == "feather":
        pa.feather.write_feather(table, place)
    elif ending == "jsonl":
        place.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    elif ending == "duckdb":
        with duckdb.connect(place) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE customers AS SELECT * FROM given")
    else:
        options = pa.csv.WriteOptions(delimiter="\t" if ending == "tsv" else ",")
        with pa.output_stream(place) as stream:  # packs what is called .gz
            pa.csv.write_csv(table, stream, options)
    found = said(holdtrue("rank", place, "-t", "left", "--json"))
    wanted = said(holdtrue(*questions(files, "parquet")["rank"], "--json"))
    if ending in ("jsonl", "feather", "duckdb"):
        assert found["table"] == wanted["table"]
    else:  # where postcodes are numbers for all that the text says
        ranked = [[row["column"] for row in s["table"]["rows"]] for s in (found, wanted)]
        assert ranked[0][:2] == ranked[1][:2]


def test_a_query_of_a_duckdb_file_is_a_table(files, tmp_path, holdtrue):
    with duckdb.connect(tmp_path / "shop.duckdb") as connection:
        connection.register("given", customers())
        connection.execute("CREATE TABLE customers AS SELECT * FROM given")
        connection.execute("CREATE TABLE other AS SELECT 1 AS one")
    query = "SELECT plan, spend, \"left\" FROM customers WHERE region = 'north'"
    asked = ("rank", "shop.duckdb", "-t", "left", "--json", "--table")
    assert len(said(holdtrue(*asked, "customers"))["table"]["rows"]) == 5
    assert len(said(holdtrue(*asked, query))["table"]["rows"]) == 2
    assert "customers" in holdtrue.refuses(*asked[:-2])  # two tables: which?


# --- outputs ------------------------------------------------------------------------------------


@every_question
def test_every_output_tells_the_same(command, files, tmp_path, holdtrue):
    asked = questions(files)[command]
    outputs = ("--out", "r.html", "--json", "r.json", "--csv", "r.csv", "--quiet")
    assert holdtrue(*asked, *outputs).code == 0
    summary = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert summary["command"] == command
    rows = list(csv.DictReader(io.StringIO((tmp_path / "r.csv").read_text("utf-8"))))
    assert len(rows) == len(summary["table"]["rows"])
    assert list(rows[0]) == list(summary["table"]["columns"])
    html = (tmp_path / "r.html").read_text("utf-8")
    assert html.count("<tr>") == len(rows) + 1
    assert html.count("<figure>") == len(summary["charts"]) + len(summary["shapes"])
    assert len(html.encode()) < 1_000_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.csv", "r.html", "r.json"]


@every_question
@pytest.mark.parametrize("ending", [".html", ".md"])
def test_report_of_the_json_is_what_out_writes(command, ending, files, tmp_path, holdtrue):
    asked = questions(files)[command]
    assert holdtrue(*asked, "--out", f"a{ending}", "--json", "a.json", "-q").code == 0
    assert holdtrue("report", "a.json", "--out", f"b{ending}", "-q").code == 0
    assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()


def test_out_of_json_is_what_json_writes(files, tmp_path, holdtrue):
    asked = questions(files)["rank"]
    first = holdtrue(*asked, "--out", "a.json", "-q")
    piped = holdtrue(*asked, "--json")
    assert first.out == first.err == ""
    written, shown = json.loads((tmp_path / "a.json").read_text("utf-8")), json.loads(piped.out)
    for summary in (written, shown):
        summary["reproduce"].pop("command")
    assert written == shown


def test_report_writes_beside_the_json_and_reads_a_bare_path(tmp_path, holdtrue):
    path = SelectionPath([1, 0], ["dose", "age"], [1.0, 0.4, 0.5], 1, "the error is least at 1")
    (tmp_path / "path.json").write_text(path.to_json())
    ended = holdtrue("report", "path.json", "--csv", "path.csv")
    assert ended.code == 0
    assert "dose" in ended.out
    assert ended.err.split("wrote ")[1:] == ["path.html\n", "path.csv\n"]
    assert "1 of 2 steps" in (tmp_path / "path.html").read_text("utf-8")


def test_csv_goes_to_standard_output_with_nothing_else(files, holdtrue):
    ended = holdtrue(*questions(files)["select"], "--csv", "--top", 3)
    rows = list(csv.DictReader(io.StringIO(ended.out)))
    assert ended.code == 0
    assert ended.err == ""
    assert [row["feature"] for row in rows] != []
    assert len(rows) == 3
    assert all(abs(float(row["t"])) > 0 for row in rows)


def test_top_shortens_every_output_alike(files, tmp_path, holdtrue):
    asked = questions(files)["rank"]
    ended = holdtrue(*asked, "--top", 2, "--out", "r.md", "--json", "r.json", "--csv", "r.csv")
    assert ended.code == 0
    assert len(json.loads((tmp_path / "r.json").read_text("utf-8"))["table"]["rows"]) == 2
    assert len((tmp_path / "r.csv").read_text("utf-8").splitlines()) == 3
    assert "region" not in ended.out.split("What to be wary")[0]


def test_the_terminal_shows_twenty_rows_and_says_how_to_see_more(tmp_path, holdtrue):
    rng = np.random.default_rng(0)
    table = {f"x{j}": rng.integers(0, 3, 50) for j in range(30)} | {"y": rng.integers(0, 2, 50)}
    pq.write_table(pa.table(table), tmp_path / "wide.parquet")
    ended = holdtrue("rank", "wide.parquet", "-t", "y")
    assert "and 10 more (--top 30)" in ended.out
    assert "more (--top" not in holdtrue("rank", "wide.parquet", "-t", "y", "--top", 30).out


@every_question
def test_the_first_line_is_the_question(command, files, holdtrue):
    assert holdtrue(*questions(files)[command]).out.splitlines()[0].endswith("?")


def test_help_lists_every_criterion(holdtrue):
    from holdtrue.categories.kernel import TERMS as OF_COLUMNS
    from holdtrue.model_size.table import CRITERIA as OF_SIZES

    for command, criteria in (("rank", OF_COLUMNS), ("size", OF_SIZES)):
        listed = set(re.findall(r"\w+", holdtrue(command, "--help").out))
        assert set(criteria) <= listed


@every_question
def test_quiet_says_nothing(command, files, holdtrue):
    ended = holdtrue(*questions(files)[command], "--quiet", "--out", "r.html")
    assert (ended.code, ended.out, ended.err) == (0, "", "")


@pytest.mark.parametrize("command", ["transfer", "size", "select"])
def test_the_same_seed_gives_the_same_bytes(command, files, tmp_path, holdtrue):
    extra = ("--candidates", 5) if command == "transfer" else ()
    written = []
    for _ in range(2):
        asked = (
            *questions(files)[command],
            *extra,
            "--seed",
            7,
            "--out",
            "r.html",
            "-q",
            "--force",
        )
        assert holdtrue(*asked).code == 0
        written.append((tmp_path / "r.html").read_bytes())
    assert written[0] == written[1]
    assert b"<code>7</code>" in written[0]


def test_force_replaces_a_file_and_without_it_the_file_stays(files, tmp_path, holdtrue):
    asked = questions(files)["rank"]
    (tmp_path / "r.md").write_text("mine")
    told = holdtrue.refuses(*asked, "--out", "r.md")
    assert told == "r.md exists already. Pass --force to replace it, or another name."
    assert holdtrue(*asked, "--out", "r.md", "--force").code == 0
    assert (tmp_path / "r.md").read_text("utf-8").startswith("# Which columns")


def test_force_replaces_what_a_link_points_to(files, tmp_path, holdtrue):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "target.md").write_text("mine")
    (tmp_path / "link.md").symlink_to("folder/target.md")
    assert holdtrue(*questions(files)["rank"], "--out", "link.md", "--force").code == 0
    assert (tmp_path / "link.md").is_symlink()
    assert (tmp_path / "folder" / "target.md").read_text("utf-8").startswith("# Which columns")
    assert sorted(path.name for path in (tmp_path / "folder").iterdir()) == ["target.md"]


def test_the_report_says_how_to_make_it_again(files, tmp_path, holdtrue):
    asked = (*questions(files)["rank"], "--out", "a name.html")
    assert holdtrue(*asked, "--json", "r.json").code == 0
    reproduce = json.loads((tmp_path / "r.json").read_text("utf-8"))["reproduce"]
    assert reproduce["command"].startswith("holdtrue rank ")
    assert reproduce["command"].endswith("--out 'a name.html' --json r.json")
    assert f"holdtrue {__version__}" in reproduce["versions"]
    assert reproduce["data"].startswith("sha256 ")
    assert reproduce["seed"] == "0"


@every_question
def test_a_report_does_not_tell_where_files_are(command, files, tmp_path, holdtrue):
    asked = [*questions(files)[command], f"--csv={tmp_path / 'r.csv'}", "--json", "r.json"]
    assert holdtrue(*asked, "--out", tmp_path / "r.html", "-q").code == 0
    command_line = json.loads((tmp_path / "r.json").read_text("utf-8"))["reproduce"]["command"]
    assert f" {asked[1].name} " in command_line
    assert "--csv=r.csv" in command_line
    for name in ("r.html", "r.json"):
        text = (tmp_path / name).read_text("utf-8")
        assert str(tmp_path) not in text
        assert str(files) not in text


def test_no_values_keeps_the_points_out_of_the_report_of_size(files, tmp_path, holdtrue):
    values = [f"{value:.12g}"[:8] for value in curve()["y"].drop_null().to_pylist()]
    asked = (*questions(files)["size"], "--json", "r.json", "--out", "r.html", "-q", "--force")
    assert holdtrue(*asked).code == 0
    assert all(value in (tmp_path / "r.json").read_text("utf-8") for value in values)
    assert holdtrue(*asked, "--no-values").code == 0
    for name in ("r.json", "r.html"):
        assert not any(value in (tmp_path / name).read_text("utf-8") for value in values)


def test_no_values_keeps_the_values_of_columns_out_of_the_report_of_rank(tmp_path, holdtrue):
    table = pa.table({"town": ["Ayr", "Bute"] * 60, "y": ["never", "often"] * 60})
    pq.write_table(table, tmp_path / "t.parquet")
    asked = ("rank", str(tmp_path / "t.parquet"), "-t", "y", "--out", str(tmp_path / "a.html"))
    assert holdtrue(*asked, "--quiet").code == 0
    assert "Bute" in (tmp_path / "a.html").read_text()
    assert holdtrue(*asked, "--quiet", "--force", "--no-values").code == 0
    page = (tmp_path / "a.html").read_text()
    assert not any(value in page for value in ("Ayr", "Bute", "often"))


def test_the_answer_of_rank_names_columns_that_tell_the_same(tmp_path, holdtrue):
    rng = np.random.default_rng(0)
    age = rng.integers(18, 80, 2000)
    y = np.where(age + rng.normal(0, 15, 2000) > 50, "yes", "no")
    pq.write_table(pa.table({"age": age, "age2": age**2, "y": y}), tmp_path / "t.parquet")
    ended = holdtrue("rank", str(tmp_path / "t.parquet"), "-t", "y")
    shown = " ".join(ended.out.split())
    assert "'age2' tells the same as 'age'" in shown
    assert "Columns that tell the same. One of each is enough: 'age2' beside 'age'." in shown
    assert "predicts, the same" in shown


def test_a_warning_that_the_answer_gives_already_is_shown_once(tmp_path, holdtrue):
    person = np.repeat(np.arange(60), 8)
    table = pa.table({"person": [f"p{i}" for i in person], "y": (person % 2).astype(str)})
    pq.write_table(table, tmp_path / "t.parquet")
    ended = holdtrue("rank", str(tmp_path / "t.parquet"), "-t", "y")
    assert "A warning of the fit" not in ended.out
    assert " ".join(ended.out.split()).count("are almost alike in their target") == 1


@pytest.mark.parametrize("domain, words", [("id", "at an id"), ("user", "at a user")])
def test_a_domain_has_the_article_that_it_needs(domain, words, tmp_path, holdtrue):
    rng = np.random.default_rng(0)
    columns = {"x": rng.normal(size=80), "y": rng.normal(size=80), domain: np.arange(80) % 8}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    ended = holdtrue("select", str(tmp_path / "t.parquet"), "-t", "y", "-d", domain)
    assert f"{words} nobody has seen" in " ".join(ended.out.split())


@pytest.mark.parametrize("command", ["select", "compare"])
def test_no_values_numbers_domains_and_levels(command, tmp_path, holdtrue):
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "x": rng.normal(size=80),
            "ward": np.tile(["Zulu", "Yankee", "Xray", "Whisky"], 20),
            "same": ["Victor"] * 80,
            "y": rng.normal(size=80),
            "site": np.repeat(["Quebec", "Romeo", "Sierra", "Tango"], 20),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    asked = (command, "t.parquet", "-t", "y", "-d", "site", "--out", "r.html", "--json", "r.json")
    asked += ("--models", "mean,ridge") if command == "compare" else ()
    secrets = ("Zulu", "Yankee", "Xray", "Whisky", "Victor", "Quebec", "Romeo", "Sierra", "Tango")
    assert holdtrue(*asked, "-q").code == 0
    shown = secrets if command == "select" else secrets[-5:]  # levels are features of select
    assert all(word in (tmp_path / "r.json").read_text("utf-8") for word in shown)
    ended = holdtrue(*asked, "--force", "--no-values")
    assert ended.code == 0
    written = [(tmp_path / name).read_text("utf-8") for name in ("r.json", "r.html")]
    for text in (ended.out, *written):
        assert not any(word in text for word in secrets)
    assert command == "compare" or "ward=value 1" in written[0]
    assert "site 4" in written[0]


@pytest.mark.parametrize("command", ["select", "transfer"])
def test_no_values_numbers_the_classes_of_the_target(command, files, tmp_path, holdtrue):
    table = task()
    place = np.arange(len(table)) % 4
    kinds = np.array(["Zulu", "Yankee", "Xray"])[(np.arange(len(table)) // 4) % 3]
    kinds[place == 3] = "Zulu"  # a domain that lacks a class
    table = table.set_column(table.column_names.index("label"), "label", pa.array(kinds))
    if command == "select":
        table = table.append_column("place", pa.array(place))
    pq.write_table(table, tmp_path / "t.parquet")
    more = ("-d", "place") if command == "select" else ("-s", files / "shelf", "--max-selected", 3)
    asked = (command, "t.parquet", "-t", "label", *more, "--json", "r.json", "-q", "--force")
    assert holdtrue(*asked).code == 0
    assert "Zulu" in (tmp_path / "r.json").read_text("utf-8")
    assert holdtrue(*asked, "--no-values").code == 0
    written = (tmp_path / "r.json").read_text("utf-8")
    assert not any(word in written for word in ("Zulu", "Yankee", "Xray"))
    assert "label 3" in written


def test_warnings_of_libraries_are_in_the_report_and_not_on_the_terminal(files, tmp_path, holdtrue):
    shelf = tmp_path / "mixed"
    shelf.mkdir()
    for model in (files / "shelf").iterdir():
        (shelf / model.name).symlink_to(model)
    (shelf / "torn.onnx").write_bytes(b"\x08\x01 torn")
    asked = ("transfer", files / "task.csv", "-t", "label", "-s", "mixed", "--skip-broken")
    found = said(holdtrue(*asked, "--json"))
    assert any("torn.onnx" in note["why"] for note in found["wary"])
    assert found["asked"]["sources"].startswith("8 in")


# --- reading ------------------------------------------------------------------------------------


def test_type_says_how_a_column_is_read(tmp_path, holdtrue):
    rng = np.random.default_rng(0)
    lines = [f"{rng.integers(100, 104)},{rng.random():.3f},{'ab'[i % 2]}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["zip,spend,y", *lines]))
    kinds = {}
    for given in ([], ["--type", "zip=text"], ["--type", "spend=text", "--type", "zip=number"]):
        found = said(holdtrue("rank", "t.csv", "-t", "y", *given, "--json"))
        kinds[tuple(given[1::2])] = {r["column"]: r["kind"] for r in found["table"]["rows"]}
    assert kinds[()] == {"zip": "integer", "spend": "number"}
    assert kinds[("zip=text",)] == {"zip": "category", "spend": "number"}
    assert kinds[("spend=text", "zip=number")] == {"zip": "number", "spend": "category"}


def test_drop_leaves_columns_out(files, holdtrue):
    asked = (*questions(files)["rank"], "--drop", "customer", "--drop", "postcode")
    found = said(holdtrue(*asked, "--json"))
    assert {row["column"] for row in found["table"]["rows"]} == {"plan", "region", "spend"}
    assert found["asked"]["left out"] == "customer, postcode"
    chosen = said(holdtrue(*questions(files)["select"], "--drop", "lab0", "--json"))
    assert "lab0" not in {row["feature"] for row in chosen["table"]["rows"]}


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_encoding_is_that_of_the_file(encoding, tmp_path, holdtrue):
    text = "straße,größe,y\n" + "".join(
        f"é{i % 3},{i},{'ñ' if i % 3 else 'n'}\n" for i in range(30)
    )
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    found = said(holdtrue("rank", "t.csv", "-t", "y", "--encoding", encoding, "--json"))
    assert found["table"]["rows"][0]["column"] == "straße"
    if encoding == "latin-1":
        refused = holdtrue.refuses("rank", "t.csv", "-t", "y")
        assert refused.strip().endswith("such as --encoding 'latin-1' or 'cp1252'.")


def test_names_may_hold_anything(tmp_path, holdtrue):
    names = ["[bold]x[/bold]", "<b>&\"'", "a\nb", "\x1b[31mred", "=1+1", "😀", "a|b*c_"]
    rng = np.random.default_rng(0)
    columns = {name: rng.integers(0, 2, 60) for name in names}
    columns["[red]y"] = np.where(columns["<b>&\"'"], "</td><script>", "[/]")
    pq.write_table(pa.table(columns), tmp_path / "odd.parquet")
    asked = ("rank", "odd.parquet", "-t", "[red]y", "--out", "r.html", "--csv", "r.csv")
    ended = holdtrue(*asked)
    assert ended.code == 0, ended
    assert "[bold]x[/bold]" in ended.out
    assert "\x1b" not in ended.out
    html = (tmp_path / "r.html").read_text("utf-8")
    assert "<b>" not in html
    assert html.count("<script") == 1
    assert "\x1b" not in html
    with (tmp_path / "r.csv").open(newline="", encoding="utf-8") as file:
        written = [row["column"] for row in csv.DictReader(file)]
    assert sorted(written) == sorted("'=1+1" if n == "=1+1" else n for n in names)


# --- help ---------------------------------------------------------------------------------------


def test_version_is_told(holdtrue):
    assert holdtrue("--version").out == f"holdtrue {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_by_example(command, holdtrue):
    ended = holdtrue(command, "--help")
    assert ended.code == 0
    assert ended.err == ""
    assert re.search(rf"\$\s+holdtrue {command}\b", ended.out)  # old typers fill lines


def test_help_lists_every_command(holdtrue):
    ended = holdtrue("--help")
    assert ended.code == 0
    assert all(f" {command} " in ended.out for command in COMMANDS)


def test_nothing_is_said_of_where_an_error_comes_from_unless_asked(files, holdtrue):
    asked = ("rank", files / "customers.csv", "--target", "lefd")
    assert "Traceback" not in holdtrue(*asked).err
    with pytest.raises(ValueError, match="no column 'lefd'"):
        holdtrue(*asked, "--debug")


# --- demo ---------------------------------------------------------------------------------------


def test_demo_tells_four_stories_and_leaves_a_page(tmp_path, holdtrue):
    ended = holdtrue("demo")
    assert ended.code == 0
    assert ended.err == ""
    page = tmp_path / "holdtrue-demo.html"
    assert ended.out.rstrip().replace("\n", "").endswith(str(page))
    assert ended.out.count("On fresh data: ") == 4
    assert "and 34 more (in the report)" in ended.out
    assert "--" not in ended.out  # demo has no options for its tables
    assert page.read_text("utf-8").count("<article") == 4
    assert page.stat().st_size < 1_000_000
    first = page.read_bytes()
    assert "exists already" in holdtrue.refuses("demo")
    assert holdtrue("demo", "--force", "--quiet").out == ""
    assert page.read_bytes() == first


def test_what_the_demo_promises_is_near_what_it_meets(holdtrue):
    said = " ".join(holdtrue("demo").out.split())
    number = r"([\d.]+)"
    plan, nothing = re.search(rf"wrong for {number}% of new rows against {number}%", said).groups()
    by_id, by_plan = re.search(rf"wrong for {number}%, one on 'plan' for {number}%", said).groups()
    assert float(by_plan) == pytest.approx(float(plan), abs=2)
    assert float(by_id) == pytest.approx(float(nothing), abs=2)
    expected = re.search(rf"error of {number} \(", said)[1]
    met, lasso, mean = re.search(
        rf"squared error is {number}, a pooled Lasso has {number}, the mean {number}", said
    ).groups()
    assert float(met) == pytest.approx(float(expected), rel=0.25)
    assert float(met) < float(lasso) < float(mean)
    estimate = re.search(rf"squared error of {number} at new points", said)[1]
    error = re.search(rf"squared error of {number} on new points", said)[1]
    assert float(error) == pytest.approx(float(estimate), rel=0.4)


def test_demo_says_what_it_leaves_out_without_skops(holdtrue, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    said = holdtrue("demo", "--data", "try").out
    assert "holdtrue transfer try" not in said
    assert "# left out: transfer, --save, predict and check, which need skops" in said


def test_size_leaves_out_whole_groups(holdtrue, tmp_path):
    rng = np.random.default_rng(0)
    place = np.repeat(rng.uniform(size=10), 6) + 0.02 * rng.normal(size=60)
    level = np.sin(6 * place) + 0.3 * np.repeat(rng.normal(size=10), 6)
    who = np.repeat([f"p{i}" for i in range(10)], 6)
    pa.csv.write_csv(pa.table({"x": place, "y": level, "who": who}), tmp_path / "visits.csv")
    asked = ("size", "visits.csv", "--x", "x", "--y", "y")
    alone = said(holdtrue(*asked, "--json"))
    whole = said(holdtrue(*asked, "--groups", "who", "--json"))
    assert whole["answer"].endswith("each value of 'who' is left out as a whole.")
    same = said(holdtrue(*asked, "--domain", "who", "--criterion", "cv", "--json"))
    assert same["path"] == whole["path"]
    # A new person is harder than a new visit of one that is known.
    assert min(whole["path"]["scores"]) > 1.5 * min(alone["path"]["scores"])
    refused = holdtrue(*asked, "--groups", "who", "--criterion", "dee")
    assert refused.code == 2
    assert "--criterion 'dee' assumes that all rows are independent" in refused.err


def test_transfer_leaves_out_whole_groups(holdtrue, files, tmp_path):
    data = task()
    who = pa.array([f"p{i // 2}" for i in range(len(data))])
    pa.csv.write_csv(data.append_column("who", who), tmp_path / "visits.csv")
    asked = ("--target", "label", "--sources", files / "shelf", "--max-selected", 4, "--json")
    alone = said(holdtrue("transfer", files / "task.csv", *asked))
    whole = said(holdtrue("transfer", "visits.csv", *asked, "--groups", "who"))
    assert whole["answer"].endswith("each value of 'who' is left out as a whole.")
    assert whole["path"]["names"] == alone["path"]["names"]  # 'who' is no candidate
    assert whole["path"]["scores"] != alone["path"]["scores"]


# --- what is read -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sales(tmp_path_factory):
    """A shop with sales in two files, whose hour and month matter, and weights."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("sales")
    lines = []
    for _ in range(600):
        year, month = rng.integers(2018, 2024), rng.integers(1, 13)
        day, hour = rng.integers(1, 29), rng.integers(8, 20)
        shop = rng.choice(["north", "south"])
        visits = 20 * (hour in (12, 18)) + 1000 * (month == 12) + rng.integers(10)
        when = f"{year}/{month:02}/{day:02} {hour:02}:00"
        lines.append(f'{when},"${1000 + visits:,}",{shop},{rng.integers(0, 3)},{hour >= 12}')
    for name, part in (("a", lines[:300]), ("b", lines[300:])):
        (folder / f"{name}.csv").write_text("\n".join(["when,takings,shop,n,late", *part]) + "\n")
    return folder


def columns_of(found):
    return [row["column"] for row in found["table"]["rows"]]


def test_written_dates_and_numbers_are_read_and_said(sales, holdtrue):
    found = said(holdtrue("rank", sales / "*.csv", "-t", "takings", "--json"))
    assert found["asked"]["data"] == "*.csv (CSV, 2 files)"
    assert columns_of(found)[0] == "when.month"
    assert {"when", "when.weekday", "when.hour", "shop"} <= set(columns_of(found))
    notes = {note["what"]: note["why"] for note in found["wary"]}
    assert "'takings' ('$1,0" in notes["Texts that are numbers"]
    assert notes["Texts that are dates"].startswith("Text is read as dates in 'when' ('20")
    hidden = said(holdtrue("rank", sales / "*.csv", "-t", "takings", "--json", "--no-values"))
    notes = {note["what"]: note["why"] for note in hidden["wary"]}
    assert "'takings'. --type" in notes["Texts that are numbers"]


def test_dates_that_predict_come_with_a_word_on_later_ones(tmp_path, holdtrue):
    rows = [f"2020-{i // 28 + 1:02}-{i % 28 + 1:02},{i > 150}" for i in range(300)]
    (tmp_path / "a.csv").write_text("\n".join(["day,late", *rows]) + "\n")
    found = said(holdtrue("rank", "a.csv", "-t", "late", "--json"))
    (why,) = [note["why"] for note in found["wary"] if note["what"] == "Dates"]
    assert why.startswith("'day': new rows are taken to have dates from the same time.")


def test_lines_of_python_on_the_terminal_name_files_as_they_were_typed(sales, holdtrue):
    ended = holdtrue("rank", sales / "a.csv", "-t", "late", "--out", "a.md")
    assert f"open_table({str(sales / 'a.csv')!r})" in ended.out
    report = (holdtrue.folder / "a.md").read_text()
    assert "open_table('a.csv')" in report
    assert str(sales) not in report


def test_only_and_drop_take_names_with_commas(sales, holdtrue):
    asked = ("rank", sales / "a.csv", "-t", "late", "--json")
    found = said(holdtrue(*asked, "--only", "when, shop", "--drop", "when.month,when.weekday"))
    assert sorted(columns_of(found)) == ["shop", "when", "when.hour"]
    assert columns_of(found)[0] == "when.hour"
    found = said(holdtrue(*asked, "--only", "when.hour", "--only", "shop"))
    assert sorted(columns_of(found)) == ["shop", "when.hour"]
    told = holdtrue.refuses("rank", sales / "a.csv", "-t", "late", "--only", "shp")
    assert told == "no column 'shp' in a.csv. Did you mean 'shop'?"


def test_weights_are_repetitions(tmp_path, holdtrue):
    rng = np.random.default_rng(1)
    rows = [(rng.integers(4), *rng.normal(size=2).round(2), rng.integers(4)) for _ in range(80)]
    rows = [(f"s{d}", x, round(2 * x + z, 2), int(x > 0), w) for d, x, z, w in rows]
    # Means of numbers that have gaps, and which values are frequent, depend on the weights too.
    shops = rng.permutation([f"p{i}" for i in range(25)] * 4)[:80]
    gaps = ["" if rng.integers(4) == 0 else f"{z:.2f}" for z in rng.normal(size=80)]
    rows = [(*row[:3], z, p, *row[3:]) for row, z, p in zip(rows, gaps, shops, strict=True)]
    text = [",".join(map(str, row)) for row in rows]
    again = [line for line, row in zip(text, rows, strict=True) for _ in range(row[-1])]
    header = "site,x,y,z,shop,up,w"
    (tmp_path / "once.csv").write_text("\n".join([header, *text]) + "\n")
    (tmp_path / "often.csv").write_text("\n".join([header, *again]) + "\n")
    for asked in (
        ("rank", "-t", "up"),
        ("select", "-t", "y", "-d", "site"),
        ("compare", "-t", "y", "-d", "site", "--models", "mean,ridge"),
        (
            *("size", "--x", "x", "--y", "y", "--basis", "legendre"),
            *("--criterion", "aicc", "--max-terms", "6"),
        ),
    ):
        command, *options = asked
        weighted = said(holdtrue(command, "once.csv", *options, "--weights", "w", "--json"))
        repeated = said(holdtrue(command, "often.csv", *options, "--drop", "w", "--json"))
        scores = [np.array(found["path"]["scores"], float) for found in (weighted, repeated)]
        np.testing.assert_allclose(*scores, rtol=1e-6)
        assert weighted["path"]["order"] == repeated["path"]["order"]
        assert weighted["asked"]["weights"] == "w"
        assert any("no weight in 'w', or 0" in note["why"] for note in weighted["wary"])
    for target in ("y", "up"):
        for command in (("select",), ("compare", "--models", "steady_ridge")):
            asked = (*command[1:], "-t", target, "-d", "site", "--only", "x", "-q")
            predicted = []
            for name, more in (("once", ("--weights", "w")), ("often", ())):
                saved = ("--save", "m.skops", "--force", *more)
                assert holdtrue(command[0], f"{name}.csv", *asked, *saved).code == 0
                ended = holdtrue("predict", "m.skops", "once.csv", "--out", "p.csv", "--force")
                assert ended.code == 0, ended
                predicted.append(pa.csv.read_csv(tmp_path / "p.csv").column("prediction"))
            if target == "y":
                np.testing.assert_allclose(*predicted, rtol=1e-6)
            else:
                assert predicted[0] == predicted[1]


def test_weights_that_cannot_be_are_refused(sales, tmp_path, holdtrue):
    (tmp_path / "a.csv").write_text("x,y,w,v,t\n1,0,0.5,-1,a\n2,1,1,1,b\n3,0,1,1,c\n")
    asked = ("rank", "a.csv", "-t", "y", "--weights")
    assert "whole numbers: a row that is left out stands" in holdtrue.refuses(*asked, "w")
    assert "not negative. Got -1 in 'v'" in holdtrue.refuses(*asked, "v")
    assert "not negative. Got string in 't'" in holdtrue.refuses(*asked, "t")
    assert "--target and --weights must name different" in holdtrue.refuses(*asked, "y")
    told = holdtrue.refuses("compare", "a.csv", "-t", "x", "--weights", "w")
    assert told == "--weights in compare needs --domain. Leave it out, or name a domain."


def test_several_targets_are_answered_one_after_the_other(sales, tmp_path, holdtrue):
    asked = ("rank", sales / "a.csv", "--target", "late, takings")
    ended = holdtrue(*asked, "--csv", "r.csv", "--out", "r.html", "-q")
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["r-late.csv", "r-late.html", "r-takings.csv", "r-takings.html"]
    assert "takings" not in (tmp_path / "r-late.csv").read_text("utf-8")
    assert "'late'" in holdtrue(*asked).out
    assert "'takings'" in holdtrue(*asked).out
    told = holdtrue.refuses(*asked, "--json")
    assert told == "standard output takes the answer for one target. Got 2. Name a file."
    told = holdtrue.refuses("rank", sales / "a.csv", "-t", "late,takngs")
    assert told == "no column 'takngs' in a.csv. Did you mean 'takings'?"
    assert holdtrue.refuses(*asked, "--csv", "r.csv") == (
        "r-late.csv exists already. Pass --force to replace it, or another name."
    )


def test_years_are_predicted_from_those_before_them(sales, holdtrue):
    asked = ("compare", sales / "*.csv", "-t", "takings", "-d", "when.year", "--models", "mean")
    by_any = said(holdtrue(*asked, "--json"))
    assert by_any["asked"]["domain"] == "when.year (6)"
    assert "Domains in time" in {note["what"] for note in by_any["wary"]}
    by_time = said(holdtrue(*asked, "--domain-order", "time", "--json"))
    assert by_time["asked"]["domain"] == "when.year (3)"
    assert "Domains in time" not in {note["what"] for note in by_time["wary"]}
    told = holdtrue.refuses("compare", sales / "a.csv", "-t", "late", "--domain-order", "time")
    assert told == "--domain-order time needs a domain, such as --domain year."


def test_select_says_how_the_next_year_is_predicted(sales, holdtrue):
    asked = ("select", sales / "*.csv", "-t", "takings", "-d", "when.year", "--only", "when,n")
    by_time = said(holdtrue(*asked, "--domain-order", "time", "--json", "--save", "m.skops", "-q"))
    assert "Domains in time" not in {note["what"] for note in by_time["wary"]}
    names = ("T-Greedy", "SteadyRidge")
    told = re.search(
        r"Each 'when.year' from those before it: T-Greedy has a mean squared error of (\S+) .*?, "
        r"SteadyRidge (\S+) .*?, the mean (\S+); take ([\w-]+)\.",
        by_time["answer"],
    )
    models = "mean,t_greedy,steady_ridge"
    compared = said(
        holdtrue("compare", *asked[1:], "--models", models, "--domain-order", "time", "--json")
    )
    errors = {row["model"]: number(row["error"]) for row in compared["table"]["rows"]}
    assert told.groups()[:2] == (errors["t_greedy"], errors["steady_ridge"])
    assert told[3] == errors["mean"]
    promised = told[1 + names.index(told[4])]
    assert f"Kept in m.skops: {told[4]} " in by_time["answer"]
    assert f": a mean squared error of {promised} (" in by_time["answer"]
    told = holdtrue.refuses(
        "select", sales / "a.csv", "-t", "takings", "-d", "shop", "--domain-order", "time"
    )
    assert told.startswith("--domain-order time needs at least 5 domains")
    told = holdtrue.refuses("select", "--sums", "a.sums", "--domain-order", "time")
    assert told == "--domain-order needs rows, and sums have none. Leave it out."


def test_nested_columns_are_left_out_and_named(tmp_path, holdtrue):
    rows = [{"y": i % 2, "x": i % 4, "tags": [i]} for i in range(40)]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    found = said(holdtrue("rank", "a.json", "-t", "y", "--json"))
    assert columns_of(found) == ["x"]
    (why,) = (note["why"] for note in found["wary"] if note["what"] == "Columns left out")
    assert why == "'tags': lists and objects are not values."


def test_a_pattern_without_quotes_is_told_so(sales, holdtrue):
    told = holdtrue.refuses("rank", sales / "a.csv", sales / "b.csv", "-t", "late")
    assert told.startswith(f"takes one FILE. Got {str(sales / 'b.csv')!r} too. For several files")


def completed(line, folder):
    """What the shell is offered at the end of a line."""
    words = line.split(" ")
    ended = subprocess.run(
        [COMMAND],
        cwd=folder,
        env={
            **os.environ,
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
            "_HOLDTRUE_COMPLETE": "complete_bash",
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return ended.stdout.split("\n")[:-1]


def test_the_shell_completes_commands_and_columns(sales):
    assert completed("holdtrue tr", sales) == ["transfer"]
    assert completed("holdtrue rank a.csv --target ", sales) == [
        "when", "takings", "shop", "n", "late"
    ]  # fmt: skip
    assert completed("holdtrue rank a.csv -t late --drop when,s", sales) == ["when,shop"]
    assert completed("holdtrue rank gone.csv -t ", sales) == [""]
    line = f"'{COMMAND}' --show-completion"
    shown = subprocess.run(
        ["bash", "-c", f"{line}; true"], capture_output=True, text=True, timeout=600, check=True
    )
    assert "complete -o default -F _holdtrue_completion holdtrue" in shown.stdout
