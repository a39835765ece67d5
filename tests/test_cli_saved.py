"""From a file to a model that is used: --save, predict, check, and the same in Python."""

import csv
import errno
import importlib.util
import json
import subprocess
import sys
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from holdtrue import GreedyTLClassifier, TableEncoder, load_model
from holdtrue.demo import write_data
from holdtrue.errors import FileError
from holdtrue.files import written_whole

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("skops"), reason="skops is missing")

QUESTIONS = {
    "rank": "rank customers.csv --target left",
    "select": "select hospitals.csv --target recovery --domain hospital",
    "compare": "compare hospitals.csv -t recovery -d hospital --models mean,steady_ridge",
    "transfer": "transfer new_task.csv --target label --sources shelf --max-selected 3",
    "size": "size points.csv --x x --y y",
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory, command_line):
    """The demo's samples, with the summary and the model of every command."""
    folder = tmp_path_factory.mktemp("saved") / "try"
    write_data(folder, seed=0)
    summaries = {}
    for name, line in QUESTIONS.items():
        ended = command_line(folder)(*line.split(), "--save", f"{name}.skops", "--json")
        assert ended.code == 0, ended
        summaries[name] = json.loads(ended.out)
    return folder, summaries


every_question = pytest.mark.parametrize("command", QUESTIONS)


def table_of(command):
    return QUESTIONS[command].split()[1]


def read(text):
    return list(csv.DictReader(StringIO(text)))


@every_question
def test_a_saved_model_predicts_every_row_of_a_table(command, asked, command_line):
    folder, summaries = asked
    ended = command_line(folder)("predict", f"{command}.skops", table_of(command))
    assert ended.code == 0, ended
    n_rows = len((folder / table_of(command)).read_text("utf-8").splitlines()) - 1
    assert len(ended.out.splitlines()) == n_rows + 1
    with chdir(folder):
        model = load_model(f"{command}.skops")
        expected = model.predict(table_of(command))
    printed = [row["prediction"] for row in read(ended.out)]
    if model.classes is None:
        np.testing.assert_array_equal(np.array(printed, dtype=float), expected)
    else:
        assert printed == [str(value).lower() for value in expected]
        shares = np.array([[*row.values()][1:] for row in read(ended.out)], dtype=float)
        np.testing.assert_allclose(shares.sum(axis=1), 1)
    answer, (promise, _, _) = summaries[command]["answer"], str(model.promise).rpartition(", ")
    assert f"Kept in {command}.skops: {model.label}." in answer
    assert answer.count(promise) == 1  # once, be it by the command or by --save
    assert model.made_by["command"] == summaries[command]["reproduce"]["command"]


@every_question
def test_the_python_lines_of_an_answer_do_the_same(command, asked):
    folder, summaries = asked
    lines = summaries[command]["reproduce"]["python"]
    names = {}
    with chdir(folder), redirect_stdout(StringIO()) as printed:
        exec(compile(lines, command, "exec"), names)
    path = summaries[command]["path"]
    first = printed.getvalue().splitlines()[0]
    if command == "rank":
        assert path["order"] == [names["table"].names.index(n) for n in path["names"]]
        assert [line.split()[1] for line in printed.getvalue().splitlines()[1:6]] == path["names"]
    elif command == "compare":
        assert summaries[command]["path"]["reason"] in first
    else:
        assert path["reason"] in printed.getvalue() or path["names"][0] in printed.getvalue()
    assert "load_model" in lines
    assert names["model"].target in QUESTIONS[command]


def test_the_python_lines_read_the_file_as_the_command_did(command_line, tmp_path):
    rows = "".join(f"{'né' if i % 2 else 'où'};{i % 2}\n" for i in range(40))
    (tmp_path / "t.csv").write_text(f"mot;y\n{rows}", encoding="latin-1")
    asking = ["rank", "t.csv", "-t", "y", "--encoding", "latin-1", "--save", "m.skops", "--json"]
    ended = command_line(tmp_path)(*asking)
    assert ended.code == 0, ended
    with chdir(tmp_path), redirect_stdout(StringIO()) as printed:
        exec(json.loads(ended.out)["reproduce"]["python"], {})
    assert printed.getvalue().splitlines()[-2].startswith("[0 1 0 1")


@pytest.mark.parametrize("command", ["predict", "check"])
def test_a_mistake_in_a_table_from_a_pipe_is_told_as_that_of_a_file_is(command, asked):
    # A pipe can be read once: that columns are missing was said of a file only.
    folder, _ = asked
    table = (folder / "customers.csv").read_text("utf-8").replace("plan", "plam", 1)
    ended = subprocess.run(
        [Path(sys.executable).parent / "holdtrue", command, folder / "rank.skops", "-"],
        input=table, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    assert "Missing: 'plan' Did you mean 'plam'?" in ended.stderr


def test_the_whole_way_from_a_file_to_a_promise_that_is_checked(asked, command_line, tmp_path):
    """rank, select and compare have chosen; predict and check see twenty other hospitals."""
    folder, summaries = asked
    run = command_line(folder)
    assert "5 features of 40 are steady" in summaries["select"]["answer"]
    done = run("predict", "select.skops", "new_hospitals.csv", "--out", tmp_path / "p.csv")
    assert done.code == 0
    assert done.err.endswith(f"wrote 2,000 predictions to {tmp_path / 'p.csv'}\n")
    for command in ("select", "compare"):
        ended = run(
            "check", f"{command}.skops", "new_hospitals.csv", "--json", "--out", tmp_path / "c.html"
        )
        assert ended.code == 0, ended
        summary = json.loads(ended.out)
        n_within = 20
        assert f"The promise was kept: {n_within} of 20 lie within" in summary["answer"]
        table = {row["group"]: row for row in summary["table"]["rows"]}
        assert set(table) == {"all rows", *(f"hospital {k}" for k in range(13, 33))}
        assert all(row["rows"] == 100 for name, row in table.items() if name != "all rows")
        words = [row["within"] for name, row in table.items() if name != "all rows"]
        assert words.count("yes") == n_within
        assert words.count("better") == 20 - n_within  # below the interval
        (tmp_path / "c.html").unlink()
    # By hand, from the two files.
    truth = [row["recovery"] for row in read((folder / "new_hospitals.csv").read_text("utf-8"))]
    predicted = [row["prediction"] for row in read((tmp_path / "p.csv").read_text("utf-8"))]
    losses = (np.array(predicted, dtype=float) - np.array(truth, dtype=float)) ** 2
    ended = run("check", "select.skops", "new_hospitals.csv", "--json")
    overall = json.loads(ended.out)["table"]["rows"][0]
    assert overall["error"] == pytest.approx(losses.mean())


def test_a_broken_promise_is_said_and_the_exit_code_stays_0(asked, command_line, tmp_path):
    folder, _ = asked
    rows = read((folder / "new_hospitals.csv").read_text("utf-8"))
    for row in rows:
        row["recovery"] = str(30 + float(row["recovery"]))
    with (tmp_path / "shifted.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    ended = command_line(folder)("check", "select.skops", tmp_path / "shifted.csv")
    assert ended.code == 0
    assert "The promise was not kept: 0 of 20 lie within" in " ".join(ended.out.split())


def test_a_ranking_is_saved_as_an_encoder_of_the_columns_that_predict(asked):
    folder, _ = asked
    model = load_model(folder / "rank.skops")
    assert model.names == ["plan", "spend"]
    assert type(model.encoder).__name__ == "GingerEncoder"
    assert model.promise.unit == "share wrong"
    assert 0.3 < model.promise.error < 0.36 < model.promise.without
    values = {"plan": ["free", "gold"], "spend": [10.0, None]}
    import pyarrow as pa

    assert model.predict_proba(pa.table(values)).shape == (2, 2)


def test_models_of_a_shelf_read_their_columns_by_name(command_line, tmp_path):
    import pyarrow as pa
    import skops.io
    from pyarrow import csv as arrow_csv
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(30, 4)), columns=["a", "<b>", "ü", "other"])
    (tmp_path / "shelf").mkdir()
    names = ["ü", "a", "<b>"]
    source = Ridge().fit(rows[names], rows["ü"] - 2 * rows["a"])
    skops.io.dump(source, tmp_path / "shelf" / "old.skops")
    rows["y"] = 3 * source.predict(rows[names]) + 1 + 0.1 * rng.normal(size=30)
    line = "transfer task.csv -t y -s shelf --lam 1e-6 --max-selected 1 --save new.skops --force"
    promises = []
    for order in (list(rows), list(rows)[::-1]):
        arrow_csv.write_csv(pa.Table.from_pandas(rows[order]), tmp_path / "task.csv")
        ended = command_line(tmp_path)(*line.split())
        assert ended.code == 0, ended
        assert "feature names" not in ended.out + ended.err
        model = load_model(tmp_path / "new.skops")
        promises.append(model.promise.error)
        assert np.mean((model.predict(rows) - rows["y"]) ** 2) < 0.1
    assert promises == pytest.approx([promises[0]] * 2)
    assert promises[0] < 0.1


def test_the_models_of_a_shelf_go_with_the_model(asked, tmp_path):
    folder, _ = asked
    content = (folder / "transfer.skops").read_bytes()
    (tmp_path / "alone.skops").write_bytes(content)
    model = load_model(tmp_path / "alone.skops")
    assert isinstance(model.estimator, GreedyTLClassifier)
    assert 1 <= len(model.sources) <= 3
    with chdir(tmp_path):
        alone = model.predict(folder / "new_task.csv")
    np.testing.assert_array_equal(
        alone, load_model(folder / "transfer.skops").predict(folder / "new_task.csv")
    )


def test_a_row_that_lacks_an_input_has_a_line_and_no_prediction(asked, command_line, tmp_path):
    folder, _ = asked
    (tmp_path / "new.csv").write_text("y,x\n1,0.5\n,\n2,\n", "utf-8")
    ended = command_line(folder)("predict", "size.skops", tmp_path / "new.csv")
    lines = ended.out.splitlines()
    assert lines[0] == "prediction"
    assert [bool(line.strip('"')) for line in lines[1:]] == [True, False, False]
    assert "2 of 3 rows lack a number" in ended.err


def test_a_promise_about_years_of_a_date_is_checked_year_by_year(holdtrue, tmp_path):
    rng = np.random.default_rng(0)
    days = np.datetime64("2001-01-01") + np.arange(0, 3650, 20)
    lines = [
        f"{day},{x:.3f},{x + rng.normal():.3f}"
        for day, x in zip(days, rng.normal(size=183), strict=True)
    ]
    for name, part in (("a.csv", lines[:130]), ("b.csv", lines[130:])):
        (tmp_path / name).write_text("day,x,y\n" + "\n".join(part) + "\n", "utf-8")
    asking = ["select", "a.csv", "-t", "y", "--domain", "day.year", "--save", "m.skops", "--quiet"]
    assert holdtrue(*asking).code == 0
    table = json.loads(holdtrue("check", "m.skops", "b.csv", "--json").out)["table"]
    assert {row["group"] for row in table["rows"]} == {"all rows", "2008", "2009", "2010"}


def test_parts_of_dates_and_written_numbers_are_read_again(holdtrue, tmp_path):
    days = np.datetime64("2024-01-01") + np.arange(210)
    lines = [
        f'{day},"${1000 + 7 * k:,}",{2 * (k % 7 > 4) + k % 3 / 9}' for k, day in enumerate(days)
    ]
    for name, part in (("a.csv", lines[:140]), ("b.csv", lines[140:])):
        (tmp_path / name).write_text("day,price,y\n" + "\n".join(part) + "\n", "utf-8")
    assert holdtrue("rank", "a.csv", "--target", "y", "--save", "m.skops", "--quiet").code == 0
    assert "day.weekday" in load_model(tmp_path / "m.skops").names
    assert "The promise was kept" in holdtrue("check", "m.skops", "b.csv").out


def test_a_date_of_which_a_part_is_used_may_be_missing_and_is_named_where_it_is_none(
    holdtrue, tmp_path
):
    days = np.datetime64("2024-01-01") + np.arange(210)
    lines = [f"{day},{k % 7 > 4}" for k, day in enumerate(days)]
    texts = {"a": lines, "missing": [",True"], "none": [lines[0], "soon,True"]}
    for name, part in texts.items():
        (tmp_path / f"{name}.csv").write_text("day,y\n" + "\n".join(part) + "\n", "utf-8")
    assert holdtrue("rank", "a.csv", "--target", "y", "--save", "m.skops", "--quiet").code == 0
    assert load_model(tmp_path / "m.skops").names == ["day.weekday"]
    assert len(holdtrue("predict", "m.skops", "missing.csv").out.splitlines()) == 2
    ended = holdtrue("predict", "m.skops", "none.csv")
    assert ended.code == 2
    assert "column 'day' of none.csv cannot be read as 'date'. Got 'soon' in line 3" in ended.err


def test_predictions_as_parquet(asked, command_line, tmp_path):
    folder, _ = asked
    out = tmp_path / "p.parquet"
    ended = command_line(folder)("predict", "rank.skops", "customers.csv", "--out", out, "--quiet")
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    table = pq.read_table(out)
    assert table.column_names == ["prediction", "probability of false", "probability of true"]
    assert table["prediction"].type == "bool"
    assert table.num_rows == 2000


def test_mistakes_are_refused_before_any_work(asked, command_line, tmp_path):
    folder, _ = asked
    run = command_line(folder)
    rank = QUESTIONS["rank"].split()
    assert "--save must end in .skops. Got 'model.pkl'" in run.refuses(*rank, "--save", "model.pkl")
    assert "rank.skops exists already" in run.refuses(*rank, "--save", "rank.skops")
    assert "no folder 'none'" in run.refuses(*rank, "--save", "none/rank.skops")
    predict = ("predict", "rank.skops")
    assert "must end in .csv or .parquet" in run.refuses(*predict, "customers.csv", "-o", "p.txt")
    assert "is the input" in run.refuses(
        *predict, "customers.csv", "-o", "customers.csv", "--force"
    )
    sentence = run.refuses(*predict, "hospitals.csv")
    assert "Missing: 'plan'; 'spend'. New: " in sentence
    assert "no file 'none.skops'" in run.refuses("predict", "none.skops", "customers.csv")
    assert "is not a skops file" in run.refuses("check", "customers.csv", "customers.csv")
    assert (
        "Missing: 'recovery'" in run.refuses("check", "select.skops", "no_target.csv")
        if ((folder / "no_target.csv").exists())
        else True
    )


def test_without_skops_a_sentence_says_what_to_install(asked, command_line, monkeypatch):
    import sys

    folder, _ = asked
    monkeypatch.setitem(sys.modules, "skops", None)
    sentence = command_line(folder).refuses("predict", "rank.skops", "customers.csv")
    assert "pip install 'holdtrue[skops]'" in sentence


def test_a_model_of_ones_own_takes_part_in_the_contest(asked, command_line, tmp_path):
    from sklearn.linear_model import Ridge
    from sklearn.neighbors import KNeighborsRegressor
    from skops.io import dump

    folder, _ = asked
    dump(Ridge(alpha=10.0), tmp_path / "mine.skops")
    run = command_line(folder)
    question = ("compare", "hospitals.csv", "--target", "recovery", "--domain", "hospital")
    ended = run(*question, "--models", "mean", "--model", tmp_path / "mine.skops", "--json")
    summary = json.loads(ended.out)
    assert {row["model"] for row in summary["table"]["rows"]} == {"mean", "mine"}
    assert "models['mine'] = load_skops('mine.skops')" in summary["reproduce"]["python"]
    dump(TableEncoder(), tmp_path / "odd.skops")
    assert "TableEncoder" in run.refuses(*question, "--model", tmp_path / "odd.skops")
    dump(KNeighborsRegressor(), tmp_path / "ridge.skops")
    assert "is a model of the field" in run.refuses(*question, "--model", tmp_path / "ridge.skops")


@every_question
def test_a_model_saved_with_weights_is_that_of_repeated_rows(command, asked, command_line):
    """The promise, what is predicted without a model, and the predictions are the same."""
    folder, _ = asked
    header, *lines = (folder / table_of(command)).read_text("utf-8").splitlines()[:401]
    times = [k % 3 for k in range(len(lines))]
    once = [f"{line},{w}" for line, w in zip(lines, times, strict=True)]
    often = [line for line, w in zip(lines, times, strict=True) for _ in range(w)]
    (folder / "once.csv").write_text("\n".join([f"{header},w", *once]) + "\n", "utf-8")
    (folder / "often.csv").write_text("\n".join([header, *often]) + "\n", "utf-8")
    question = QUESTIONS[command].replace(table_of(command), "{}").split()
    saved = []
    for name, more in (("once", ["--weights", "w"]), ("often", [])):
        words = [word.format(f"{name}.csv") for word in question]
        ended = command_line(folder)(*words, *more, "-q", "--save", f"{name}.skops", "--force")
        assert ended.code == 0, ended
        saved.append(load_model(folder / f"{name}.skops"))
    weighted, repeated = saved
    promises = [(p.error, p.low, p.high, p.without) for p in (weighted.promise, repeated.promise)]
    assert promises[0] == pytest.approx(promises[1], rel=1e-6)
    assert weighted.promise.n_left_out == repeated.promise.n_left_out
    assert weighted.baseline == (
        repeated.baseline if weighted.classes else pytest.approx(repeated.baseline)
    )
    rows = folder / table_of(command)
    if weighted.classes is None:
        np.testing.assert_allclose(weighted.predict(rows), repeated.predict(rows), rtol=1e-5)
    else:
        assert (weighted.predict(rows) == repeated.predict(rows)).all()


@every_question
def test_weights_that_a_saved_model_cannot_repeat_are_refused_before_the_fit(
    command, asked, command_line, monkeypatch
):
    folder, _ = asked
    header, *lines = (folder / table_of(command)).read_text("utf-8").splitlines()[:41]
    halves = "\n".join([f"{header},w", *(f"{line},1.5" for line in lines)])
    (folder / "halves.csv").write_text(f"{halves}\n", "utf-8")
    for module in ("rank", "select", "compare", "transfer", "size"):
        monkeypatch.setattr(f"holdtrue.cli.{module}.kept_warnings", None)  # around every fit
    question = QUESTIONS[command].replace(table_of(command), "halves.csv").split()
    ended = command_line(folder)(*question, "--weights", "w", "--save", "none.skops")
    assert ended.code == 2
    assert "--weights must name a column of whole numbers" in ended.err
    assert not (folder / "none.skops").exists()


def test_a_model_of_ones_own_reads_the_columns_that_it_was_fitted_on(asked, command_line, tmp_path):
    pd = pytest.importorskip("pandas")
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from skops.io import dump

    folder, _ = asked
    rows = pd.read_csv(folder / "customers.csv")
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["plan"]), (StandardScaler(), ["spend"])
    )
    model = make_pipeline(columns, LogisticRegression())
    dump(model, tmp_path / "not_fitted.skops")
    dump(model.fit(rows[["spend", "plan"]], rows["left"]), tmp_path / "fitted.skops")
    encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=50)
    dump(make_pipeline(encoder, LogisticRegression()), tmp_path / "every_column.skops")
    run = command_line(folder)
    question = ("compare", "customers.csv", "-t", "left", "--models", "majority")
    names = ("not_fitted", "fitted", "every_column")
    files = [word for name in names for word in ("--model", tmp_path / f"{name}.skops")]
    ended = run(*question, *files, "--json", "--save", "own.skops")
    assert ended.code == 0, ended
    summary = json.loads(ended.out)
    errors = {row["model"]: row["error"] for row in summary["table"]["rows"]}
    assert errors["not_fitted"] == errors["fitted"] < 0.9 * errors["majority"]
    assert "is your own model, which --save does not keep" in summary["answer"]
    assert not (folder / "own.skops").exists()
    with chdir(tmp_path), redirect_stdout(StringIO()) as printed:
        lines = summary["reproduce"]["python"].replace("customers.csv", f"{folder}/customers.csv")
        exec(compile(lines, "compare", "exec"), {})
    assert "every_column" in printed.getvalue()
    assert lines.count("cv=StratifiedKFold(n_splits=10") == 4  # all leave out the same rows

    renamed = rows.rename(columns={"spend": "spent"})
    renamed.to_csv(tmp_path / "renamed.csv", index=False)
    told = run.refuses("compare", tmp_path / "renamed.csv", *question[2:], *files[2:4])
    assert "model 'fitted' (--model) reads columns that renamed.csv (CSV) lacks: 'spend'" in told
    assert "Did you mean 'spent'?" in told
    assert "'spend'" in run.refuses("compare", tmp_path / "renamed.csv", *question[2:], *files[:2])


@pytest.mark.parametrize("is_noise", [True, False])
def test_a_model_that_is_worse_than_none_is_kept_with_a_warning(is_noise, tmp_path, holdtrue):
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, 24)
    y = rng.standard_normal(24) if is_noise else np.sin(3 * x)
    np.savetxt(
        tmp_path / "a.csv", np.column_stack([x, y]), delimiter=",", header="x,y", comments=""
    )
    options = "--x x --y y --basis fourier --criterion aic --save m.skops --quiet"
    ended = holdtrue("size", "a.csv", *options.split(), "--json")
    assert ended.code == 0, ended
    answer = json.loads(ended.out)["answer"]
    assert ("That is worse than without a model: do not rely on it." in answer) == is_noise


def test_a_class_of_one_row_is_told_with_the_option_once(tmp_path, holdtrue):
    (tmp_path / "a.csv").write_text("x,y\n1,n\n2,n\n3,n\n4,m\n")
    told = holdtrue.refuses("rank", "a.csv", "-t", "y", "--save", "m.skops")
    assert told.endswith("or if the values are amounts pass --target-type 'numeric'.")


def test_a_full_disk_is_told_with_the_name_that_was_asked_for(tmp_path):
    full = r"m\.skops cannot be written \(No space left"
    with pytest.raises(FileError, match=full), written_whole(tmp_path / "m.skops"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert not list(tmp_path.iterdir())
    gone = r"gone.m\.skops cannot be written \(No such file"
    with pytest.raises(FileError, match=gone), written_whole(tmp_path / "gone" / "m.skops"):
        pass
