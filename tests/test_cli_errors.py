"""Mistakes: exit code 2, one sentence on standard error that says what to do, no file left."""

import json
import os
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LinearRegression
from skops.io import dump

GOOD = "place,x,z,y\n" + "".join(f"{'abcd'[i % 4]},{i},{i * i % 7},{i % 3}\n" for i in range(40))
# What each command needs besides the file; the target is y.
NEEDS = {
    "rank": ("-t", "y"),
    "select": ("-t", "y", "-d", "place"),
    "transfer": ("-t", "y", "-s", "shelf", "--drop", "place"),
    "size": ("--x", "x", "--y", "y"),
}
every_command = pytest.mark.parametrize("command", NEEDS)


class Hostile:
    """Leaves a trace where it is unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return open, (str(self.trace), "w")


@pytest.fixture
def ask(holdtrue, tmp_path):
    """Refusal of a command that is given a file with this content."""
    (tmp_path / "shelf").mkdir()
    dump(LinearRegression().fit([[0.0, 0.0], [1.0, 2.0]], [0.0, 1.0]), tmp_path / "shelf/sum.skops")

    def refusal(command, content, *extra, name="t.csv"):
        place = tmp_path / name
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
        return holdtrue.refuses(command, name, *NEEDS[command], *extra)

    return refusal


# --- files --------------------------------------------------------------------------------------


@every_command
@pytest.mark.parametrize(
    "name, content, told",
    [
        ("t.csv", "", "t.csv is empty"),
        ("t.csv", "place,x,z,y\n", "t.csv has a header of 4 columns and no rows"),
        ("t.csv", GOOD + "a,1\n", "line 42 of t.csv has 2 fields, expected 4"),
        ("t.csv", GOOD.replace("place", "x"), "distinct. t.csv has 'x' as column 1 and column 2"),
        ("t.csv", bytes(range(256)) * 20, ""),
        ("t.csv", "\x00\x01\x02", ""),
        ("t.csv", b"PK\x03\x04" + GOOD.encode(), "a zip file. Unpack it"),
        ("t.csv", GOOD.encode("utf-16")[2:], ""),
        ("t.csv", GOOD + '"a,1,2,3\n', ""),
        ("t.jsonl", '{"y": 1, "x": 2}\n{"y": 1, "x"\n', "line 2 of t.jsonl is not valid JSON"),
        ("t.jsonl", "[1, 2]\n", "object 1 of t.jsonl must hold one JSON object"),
        ("t.jsonl", '{"y": 1}\n{"y": ["one"]}\n', "line 2 of t.jsonl has a list in 'y'"),
        ("t.parquet", b"PAR1 and then nothing", "t.parquet"),
        ("t.feather", b"ARROW1\x00\x00 and then nothing", "t.feather"),
        ("t.duckdb", b"01234567DUCK and then nothing", "t.duckdb"),
        ("t.csv.gz", b"\x1f\x8b\x08 and then nothing", "the gzip file is damaged or cut off"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(command, name, content, told, ask):
    assert told in ask(command, content, name=name)


@every_command
def test_a_truncated_parquet_file_is_named(command, ask, tmp_path):
    pq.write_table(pa.table({"x": np.arange(1000), "y": np.arange(1000)}), tmp_path / "whole")
    whole = (tmp_path / "whole").read_bytes()
    assert "t.parquet" in ask(command, whole[: len(whole) // 2], name="t.parquet")


@every_command
def test_a_missing_file_is_named(command, holdtrue):
    told = holdtrue.refuses(command, "nowhere.csv", *NEEDS[command])
    assert told.startswith("no file 'nowhere.csv'. Pass the path of a CSV, Parquet")


@pytest.mark.parametrize("file", [".", "empty"])
def test_a_folder_without_tables_is_refused(file, holdtrue, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "note.txt").write_text("no table")
    assert holdtrue.refuses("rank", file, "-t", "y")


def test_options_of_other_kinds_of_files_are_refused(ask, tmp_path):
    assert "DuckDB and Excel files only" in ask("rank", GOOD, "--table", "t")
    assert "no encoding 'klingon'" in ask("rank", GOOD, "--encoding", "klingon")
    assert "expects NAME=KIND" in ask("rank", GOOD, "--type", "x")
    assert "must be one of" in ask("rank", GOOD, "--type", "x=colour")
    assert "no column 'w'" in ask("rank", GOOD, "--type", "w=text")
    told = ask("rank", GOOD, "--type", "place=number")
    assert "cannot be read as 'number'. Got 'a' in line 2" in told


# --- columns ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("rank", "t.csv", "-t", "Targt"),
        ("rank", "t.csv", "-t", "y", "--drop", "Targt"),
        ("select", "t.csv", "-t", "Targt", "-d", "place"),
        ("select", "t.csv", "-t", "y", "-d", "Targt"),
        ("select", "t.csv", "-t", "y", "-d", "place", "--drop", "Targt"),
        ("select", "t.csv", "-t", "y", "-d", "place", "--keep", "Targt"),
        ("transfer", "t.csv", "-t", "Targt", "-s", "."),
        ("size", "t.csv", "--x", "Targt", "--y", "y"),
        ("size", "t.csv", "--x", "x", "--y", "Targt"),
    ],
    ids=" ".join,
)
def test_an_unknown_column_is_named_with_the_nearest_one(arguments, holdtrue, tmp_path):
    (tmp_path / "t.csv").write_text(GOOD.replace("z", "target"))
    told = holdtrue.refuses(*arguments)
    assert "'Targt'" in told
    assert "Did you mean 'target'?" in told


@pytest.mark.parametrize(
    "arguments",
    [
        ("select", "t.csv", "-t", "y", "-d", "y"),
        ("size", "t.csv", "--x", "y", "--y", "y"),
        ("size", "t.csv", "--x", "x", "--x", "x", "--y", "y"),
    ],
    ids=" ".join,
)
def test_one_column_cannot_play_two_parts(arguments, holdtrue, tmp_path):
    (tmp_path / "t.csv").write_text(GOOD)
    assert "must name different columns" in holdtrue.refuses(*arguments)


@pytest.mark.parametrize("command", ["rank", "select", "transfer"])
def test_the_target_cannot_be_dropped_nor_can_everything(command, ask):
    told = "'y' is the column of --target and cannot be in --drop. Leave it out there"
    assert told in ask(command, GOOD, "--drop", "y")
    rest = ("--drop", "place") if command == "rank" else ()
    told = ask(command, GOOD, "--drop", "x", "--drop", "z", *rest)
    assert "no column" in told


@pytest.mark.parametrize("command", ["rank", "select", "transfer"])
@pytest.mark.parametrize("hole", ["", "NA", "nan"])
def test_a_target_with_holes_is_refused_on_request(command, hole, ask):
    lines = GOOD.splitlines()
    lines[3] = lines[3][:-1] + hole
    told = ask(command, "\n".join(lines), "--missing-target", "error")
    assert "the target 'y' must not be missing. Got 1 missing of 40 rows." in told


def test_a_domain_with_holes_is_refused_on_request(ask):
    told = ask("select", GOOD.replace("\na,", "\n,", 2), "--missing-target", "error")
    assert "the domain 'place' must not be missing. Got 2 missing of 40 rows." in told


@pytest.mark.parametrize("command", ["rank", "select", "transfer"])
def test_a_target_without_any_value_is_refused(command, ask):
    lines = GOOD.splitlines()
    empty = [lines[0], *(line[:-1] for line in lines[1:])]
    assert "'y' has no value in any row" in ask(command, "\n".join(empty))


def test_weights_that_are_all_0_are_named_so(ask):
    head, *lines = GOOD.splitlines()
    table = "\n".join([f"{head},w", *(f"{line},0" for line in lines)])
    assert "column 'w' has no weight but 0 in any row" in ask("rank", table, "--weights", "w")


@pytest.mark.parametrize("command", ["rank", "select", "transfer"])
@pytest.mark.parametrize("kind", ["text", "integer"])
def test_more_than_a_hundred_classes_are_refused_and_the_option_is_named(command, kind, ask):
    names = [f"{'c' if kind == 'text' else ''}{i}" for i in range(101)]
    rows = [f"{'ab'[i % 2]},{i},{i * i % 7},{name}" for i, name in enumerate(names * 2)]
    table = "\n".join(["place,x,z,y", *rows])
    told = ask(command, table, "--target-type", "classes")
    assert "the target 'y' must have at most 100 classes. Got 101." in told
    assert ("--target-type numeric" in told) == (kind == "integer")


@pytest.mark.parametrize("command", ["rank", "select", "transfer"])
@pytest.mark.parametrize("value", ["yes", "1", "0.5", "2020-01-01"])
def test_a_constant_target_is_refused(command, value, ask):
    lines = GOOD.splitlines()
    constant = [lines[0], *(f"{line[:-1]}{value}" for line in lines[1:])]
    assert ask(command, "\n".join(constant))


@pytest.mark.parametrize("command", ["rank", "select", "transfer"])
def test_text_is_no_number_to_predict(command, ask):
    texts = GOOD.replace(",0\n", ",no\n")
    assert "must hold numbers for" in ask(command, texts, "--target-type", "numeric")


def test_a_single_domain_is_refused(ask):
    lines = GOOD.splitlines()
    single = [lines[0], *(f"a{line[1:]}" for line in lines[1:])]
    assert "needs at least 2 domains, got 1 ('a'" in ask("select", "\n".join(single))


def test_text_where_numbers_are_needed_is_refused(holdtrue, ask):
    told = ask("size", GOOD.replace("\n1", "\none"), "--x", "place")
    assert "column 'place' must hold numbers. Got string" in told
    assert "--drop place" in holdtrue.refuses("transfer", "t.csv", "-t", "y", "-s", "shelf")


def test_rows_are_counted_among_those_that_are_left(holdtrue, tmp_path):
    (tmp_path / "shelf").mkdir()
    (tmp_path / "t.csv").write_text("x,y\n1,\n2,a\n,b\n4,b\n")
    told = holdtrue.refuses("transfer", "t.csv", "-t", "y", "-s", "shelf")
    assert "Got nan in row 2 of the 3 that are left." in told


@every_command
def test_a_single_row_is_refused(command, ask):
    assert ask(command, "\n".join(GOOD.splitlines()[:2]))


def test_columns_without_a_value_leave_nothing_to_choose_from(ask):
    empty = "place,x,y\n" + "".join(f"{'ab'[i % 2]},,{i}\n" for i in range(8))
    assert "all values are missing" in ask("select", empty)
    assert ask("transfer", empty)
    assert ask("size", empty)


# --- options ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command, option, value, told",
    [
        ("rank", "--criterion", "gingr", "Did you mean 'ginger'?"),
        ("rank", "--target-type", "class", "Did you mean 'classes'?"),
        ("rank", "--missing-target", "keep", "--missing-target must be one of 'drop', 'error'"),
        ("rank", "--alpha", "0", "alpha must be between 0 and 1"),
        ("rank", "--alpha", "1.5", "alpha must be between 0 and 1"),
        ("rank", "--alpha", "nan", "alpha must be between 0 and 1"),
        ("rank", "--alpha", "small", "--alpha must be"),
        ("rank", "--top", "0", "--top must be"),
        ("rank", "--seed", "-1", "--seed must be"),
        ("rank", "--seed", "1e3", "--seed must be"),
        ("select", "--rule", "moderate", "Did you mean 'moderated'?"),
        ("select", "--stop", "held_out", "Did you mean 'held_out_domain'?"),
        ("select", "--target-type", "number", "--target-type must be one of"),
        ("select", "--alpha", "2", "alpha must be"),
        ("select", "--max-steps", "0", "--max-steps must be"),
        ("transfer", "--lam", "much", "--lam must be a number or loo. Got 'much'"),
        ("transfer", "--lam", "-1", "lam must be"),
        ("transfer", "--lam", "inf", "lam must be"),
        ("transfer", "--target-type", "x", "--target-type must be one of"),
        ("transfer", "--candidates", "0", "--candidates must be"),
        ("size", "--basis", "fourie", "Did you mean 'fourier'?"),
        ("size", "--criterion", "deee", "Did you mean 'dee'?"),
        ("size", "--max-terms", "1000", "--max-terms must be"),
    ],
)
def test_a_wrong_value_is_refused_and_the_right_ones_are_told(command, option, value, told, ask):
    assert told in ask(command, GOOD, option, value)


def test_a_wrong_option_is_refused_with_the_nearest_one(ask, holdtrue):
    told = ask("rank", GOOD, "--quite")
    assert told == "no option --quite. Did you mean '--quiet'? See holdtrue rank --help."
    told = holdtrue.refuses("rank", "t.csv", "--hlp")
    assert told == "no option --hlp. Did you mean '--help'? See holdtrue rank --help."
    assert "missing option '--target'" in holdtrue.refuses("rank", "t.csv")
    assert "'--seed' requires an argument" in holdtrue.refuses("rank", "t.csv", "--seed")
    ended = holdtrue("rnk", "t.csv")
    assert ended.code == 2
    assert ended.err.startswith("holdtrue: no such command 'rnk'")


@pytest.mark.parametrize(
    "arguments, option",
    [
        (("rank", "t.csv", "-t", "y", "-t", "x"), "--target"),
        (("rank", "t.csv", "-t", "y", "--target=y"), "--target"),
        (("select", "t.csv", "-t", "y", "--groups", "place", "--domain", "z"), "--domain"),
        (("size", "t.csv", "--x", "x", "--y", "y", "--seed", "1", "--seed", "2"), "--seed"),
    ],
)
def test_an_option_that_is_given_twice_is_refused(arguments, option, holdtrue):
    told = holdtrue.refuses(*arguments)
    several = " Several targets: --target a,b." if option == "--target" else ""
    once = f"option {option} must be given once.{several}"
    assert told == f"{once} See holdtrue {arguments[0]} --help."


# --- outputs ------------------------------------------------------------------------------------


@every_command
def test_an_output_that_cannot_be_written_is_refused_before_any_work(command, holdtrue, tmp_path):
    (tmp_path / "there.html").write_text("mine")
    asked = (
        command,
        "nowhere.csv",
        *NEEDS[command],
    )  # no file either: the output is looked at first
    assert "there.html exists already" in holdtrue.refuses(*asked, "--out", "there.html")
    assert "no folder 'no/where'" in holdtrue.refuses(*asked, "--out", "no/where/r.html")
    assert "must end in .html, .md or .json" in holdtrue.refuses(*asked, "--out", "r.pdf")
    told = holdtrue.refuses(*asked, "--out", "r.json", "--json", "r.json")
    assert "each output needs a file of its own" in told
    assert "cannot both go to standard output" in holdtrue.refuses(*asked, "--json", "--csv")
    assert (tmp_path / "there.html").read_text() == "mine"


def test_the_input_is_never_replaced(holdtrue, tmp_path):
    (tmp_path / "t.csv").write_text(GOOD)
    (tmp_path / "same.csv").symlink_to("t.csv")
    for name in ("t.csv", "same.csv"):
        told = holdtrue.refuses("rank", "t.csv", "-t", "y", "--csv", name, "--force")
        assert f"{name} is the input" in told
    (tmp_path / "s.json").write_text("{}")
    assert "is the input" in holdtrue.refuses("report", "s.json", "--out", "s.json", "--force")
    assert (tmp_path / "t.csv").read_text() == GOOD


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_to_is_named(ask, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    assert "locked" in ask("rank", GOOD, "--out", "locked/r.html")


def test_a_disk_that_refuses_is_named_and_nothing_is_left(ask, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("holdtrue.files.os.fsync", full)
    assert "No space left on device" in ask("rank", GOOD, "--out", "r.html")


# --- transfer -----------------------------------------------------------------------------------


def test_a_folder_of_sources_that_is_missing_or_empty_is_refused(holdtrue, ask, tmp_path):
    (tmp_path / "shelf" / "sum.skops").rename(tmp_path / "shelf" / "readme.txt")
    assert "no model files in 'shelf'" in ask("transfer", GOOD)
    asked = ("transfer", "t.csv", "-t", "y", "--drop", "place", "-s")
    assert "must be a folder of models. Got 'nowhere'" in holdtrue.refuses(*asked, "nowhere")
    assert "must be a folder of models. Got 't.csv'" in holdtrue.refuses(*asked, "t.csv")


@pytest.mark.parametrize("ending", [".onnx", ".skops", ".pkl", ".joblib"])
@pytest.mark.parametrize("skip", [(), ("--skip-broken",)])
def test_a_hostile_pickle_is_never_run(ending, skip, ask, tmp_path):
    trace = tmp_path / "trace"
    hostile = pickle.dumps(Hostile(trace))
    (tmp_path / "shelf" / "sum.skops").unlink()
    (tmp_path / "shelf" / f"bad{ending}").write_bytes(hostile)
    assert f"bad{ending}" in ask("transfer", GOOD, *skip)
    assert not trace.exists()
    pickle.loads(hostile).close()
    assert trace.exists()  # it would have been


@pytest.mark.parametrize("skip", [(), ("--skip-broken",)])
def test_a_model_that_is_broken_is_named(skip, ask, tmp_path):
    (tmp_path / "shelf" / "sum.skops").write_bytes(b"PK\x03\x04 torn")
    told = ask("transfer", GOOD, *skip)
    assert "sum.skops" in told
    assert ("no model in shelf can be used" in told) == bool(skip)


# --- report -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[1, 2]",
        b'"text"',
        b"\xff\xfe\x00",
        b'{"format": "other"}',
        b'{"format": "holdtrue.Summary"}',
        b'{"format": "holdtrue.Summary", "version": 2}',
        b'{"format": "holdtrue.Summary", "version": 1}',
        b'{"format": "holdtrue.SelectionPath"}',
        b'{"format": "holdtrue.SelectionPath", "version": 1, "order": "x"}',
        b"[" * 100_000,
        b'{"format": "holdtrue.Summary", "version": 1, "table": NaN}',
    ],
    ids=lambda content: content[:50].decode("latin-1"),
)
def test_a_json_file_that_is_no_summary_is_refused(content, holdtrue, tmp_path):
    (tmp_path / "s.json").write_bytes(content)
    told = holdtrue.refuses("report", "s.json")
    assert "s.json" in told


def test_a_damaged_summary_is_refused_wherever_it_is_damaged(holdtrue, tmp_path):
    (tmp_path / "t.csv").write_text(GOOD)
    assert holdtrue("select", "t.csv", "-t", "y", "-d", "place", "--json", "s.json", "-q").code == 0
    whole = json.loads((tmp_path / "s.json").read_text("utf-8"))
    for key in set(whole) - {"command", "question", "answer"}:
        for value in (None, 3, "text", [3], {"a": 3}):
            (tmp_path / "bad.json").write_text(json.dumps(whole | {key: value}))
            ended = holdtrue("report", "bad.json", "--out", "r.html", "--force", "-q")
            assert ended.code in (0, 2), (key, value, ended)
            assert ended.code == 2 or key in ("asked", "reproduce", "wary", "charts"), (key, value)
    assert holdtrue.refuses("report", "nowhere.json").startswith("no file 'nowhere.json'")


# --- odd but right ------------------------------------------------------------------------------


def test_whole_numbers_beyond_64_bits_are_read_or_refused(holdtrue, tmp_path):
    lines = [f"{10**30 + i},{i},{i * 3 % 5},{'ab'[i % 2]}" for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["big,x,y,place", *lines]))
    for asked in (("rank", "t.csv", "-t", "y"), ("select", "t.csv", "-t", "y", "-d", "place")):
        assert holdtrue(*asked, "--quiet").code == 0
    assert holdtrue.refuses("size", "t.csv", "--x", "big", "--y", "y")
    ended = holdtrue("size", "t.csv", "--x", "big", "--y", "y", "--type", "big=number", "-q")
    assert ended.code in (0, 2)
    pq.write_table(
        pa.table({"x": pa.array([2**64 - 1 - i for i in range(40)], pa.uint64()), "y": range(40)}),
        tmp_path / "t.parquet",
    )
    assert holdtrue("rank", "t.parquet", "-t", "y", "-q").code == 0
    assert holdtrue("size", "t.parquet", "--x", "x", "--y", "y", "-q").code in (0, 2)


def test_a_cache_that_is_a_file_is_refused(holdtrue, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,a\n2,b\n")
    (tmp_path / "shelf").mkdir()
    asked = ("transfer", "t.csv", "-t", "y", "-s", "shelf", "--cache", "t.csv")
    assert "--cache must be a folder. Got 't.csv'." in holdtrue.refuses(*asked)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("rank --min-skill x", "--min-skill must be a number. Got 'x'."),
        ("rank --alpha=x", "--alpha must be a number. Got 'x'."),
        ("rank --min-skill 2", "--min-skill must be at least 0 and below 1"),
        ("rank --top 0", "--top must be a whole number of at least 1. Got '0'."),
        ("rank --criterion x", "--criterion must be one of 'log_loss',"),
        ("rank --drop zz", "no column 'zz' in a.csv. It has "),
        ("rank --json a.txt", "--json must end in .json, or stand alone. Got 'a.txt'."),
        ("rank --no-values no", "takes one FILE. Got 'no' too."),
        ("rank --nonsense", "no option --nonsense. See"),
        ("rank --table x", "--table is for DuckDB and Excel files only."),
        ("select -d site --keep none", "no feature 'none' (--keep). There are 'x'"),
        ("select -d site --max-steps no", "--max-steps must be a whole number of at least 1."),
        ("compare --models mean --scoring roc_auc", "scoring 'roc auc' cannot judge model"),
        ("compare --models mean --model none.skops", "no file 'none.skops' (--model)."),
        ("compare --models mean --checkpoint .", "--checkpoint must be a file."),
        ("transfer -s . --candidates 0", "--candidates must be a whole number of at least 1."),
        (
            "size --x x --max-terms 99",
            "with 12 rows. Pass --max-terms 11 or less, or leave it out.",
        ),
    ],
)
def test_a_wrong_value_is_told_by_the_name_of_its_option(asked, told, holdtrue, tmp_path):
    rows = [f"{k},{k % 5 + k / 9},{'AB'[k % 2]}" for k in range(12)]
    (tmp_path / "a.csv").write_text("\n".join(["x,y,site", *rows]) + "\n")
    command, *options = asked.split()
    target = "--y" if command == "size" else "-t"
    assert told in holdtrue.refuses(command, "a.csv", target, "y", *options)
