"""The command as a person uses it: every command, every output, answers that are known."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from holdtrue import NestedRegressor, SelectionPath, __version__
from holdtrue.datasets import make_curve, make_customers, make_domains

COMMAND = Path(sys.executable).parent / "holdtrue"
COMMANDS = ("rank", "select", "transfer", "size", "report", "demo")
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
            *("--target", "recovery", "--domain", "hospital"),
        ),
        "transfer": (
            *("transfer", files / f"task.{ending}"),
            *("--target", "label", "--sources", files / "shelf", "--max-selected", 4),
        ),
        "size": ("size", files / f"curve.{ending}", "--x", "x", "--y", "y"),
    }


every_question = pytest.mark.parametrize("command", ["rank", "select", "transfer", "size"])


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
        timeout=60,
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
        timeout=60,
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
        timeout=60,
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
        timeout=60,
        check=False,
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, "")


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


def test_information_gain_is_taken_in_by_the_id(files, holdtrue):
    asked = questions(files)["rank"]
    found = said(holdtrue(*asked, "--criterion", "information_gain", "--json"))
    assert found["asked"]["criterion"] == "information_gain"
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


@pytest.mark.parametrize("command", ["rank", "transfer"])
def test_whole_numbers_that_are_taken_as_many_classes_are_pointed_out(
    command, files, tmp_path, holdtrue
):
    ages = np.random.default_rng(0).integers(20, 70, size=24)
    table = task().set_column(6, "label", pa.array(ages))
    pa.csv.write_csv(table, tmp_path / "ages.csv")
    asked = [*questions(files)[command], "--json"]
    asked[1:4] = [tmp_path / "ages.csv", "--target", "label"]

    def wary(*more):
        return {note["what"]: note["why"] for note in said(holdtrue(*asked, *more))["wary"]}

    assert wary()["Numbers as classes"] == (
        f"'label' is taken as {len(set(ages))} classes; pass --target-type numeric if it is a "
        "quantity."
    )
    assert "Numbers as classes" not in wary("--target-type", "numeric")
    assert "Numbers as classes" not in wary("--target-type", "classes")


@pytest.mark.parametrize(
    ("values", "warned"),
    [
        (np.arange(24.0), True),  # whole, though floats
        (np.repeat(np.arange(6), 4), True),  # six, each rare
        (np.repeat(np.arange(4), 6), False),
        (np.arange(24.0) + 0.5, False),  # a quantity as it is
        ([f"c{j}" for j in range(24)], False),  # names
    ],
)
def test_only_numbers_that_look_like_a_quantity_are_pointed_out(values, warned, tmp_path, holdtrue):
    table = pa.table({"x": np.tile([1.5, 2.5], 12), "y": values})
    pq.write_table(table, tmp_path / "t.parquet")
    found = said(holdtrue("rank", tmp_path / "t.parquet", "--target", "y", "--json"))
    assert any(note["what"] == "Numbers as classes" for note in found["wary"]) == warned


def test_a_table_with_nothing_to_find_is_said_to_have_nothing(tmp_path, holdtrue):
    rng = np.random.default_rng(0)
    noise = {f"x{j}": rng.normal(size=200) for j in range(5)}
    place = np.repeat(list("abcdefgh"), 25)
    table = pa.table(noise | {"y": rng.normal(size=200), "place": place})
    pq.write_table(table, tmp_path / "noise.parquet")
    ranked = said(holdtrue("rank", "noise.parquet", "-t", "y", "--drop", "place", "--json"))
    assert ranked["path"]["chosen_size"] == 0
    assert ranked["answer"].startswith("No column of 5 predicts 'y' on new rows")
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
    assert html.count("<svg") == len(summary["charts"])
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
    from holdtrue.categories.kernel import CRITERIA as OF_COLUMNS
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


def test_the_report_says_how_to_make_it_again(files, tmp_path, holdtrue):
    asked = (*questions(files)["rank"], "--out", "a name.html")
    assert holdtrue(*asked, "--json", "r.json").code == 0
    reproduce = json.loads((tmp_path / "r.json").read_text("utf-8"))["reproduce"]
    assert reproduce["command"].startswith("holdtrue rank ")
    assert reproduce["command"].endswith("--out 'a name.html' --json r.json")
    assert f"holdtrue {__version__}" in reproduce["versions"]
    assert reproduce["data"].startswith("sha256 ")
    assert reproduce["seed"] == "0"


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
        assert "--encoding" in holdtrue.refuses("rank", "t.csv", "-t", "y")


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
    assert re.search(rf"\$ holdtrue {command}\b", ended.out)


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
