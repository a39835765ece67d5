import csv
import io
import json
import math
import re
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console

from holdtrue import SelectionPath
from holdtrue.charts import Dot, Dots, Heat, number
from holdtrue.cli.write import Outputs
from holdtrue.evidence import SizeEvidence
from holdtrue.report.render import to_csv, to_html, to_markdown
from holdtrue.report.summary import Summary, Table
from holdtrue.report.terminal import show

EVIL = "</script><script>alert(1)</script>"


def summary(name=EVIL, **changed):
    path = SelectionPath([1, 0], [name, "age"], [1.0, 0.4, math.inf], 1, f"least at {name}")
    columns = {"name": "name", "score": f"error {name}", "kept": "kept"}
    rows = [
        {"name": name, "score": 0.4, "kept": True},
        {"name": "=1+1", "score": math.nan, "kept": False},
        {"name": None, "score": None, "kept": False},
    ]
    built = Summary(
        command="rank",
        question=f"Which predict {name}?",
        answer=f"One of 2: {name}.",
        path=path,
        table=Table(f"All of {name}", columns, rows, ("name", "score")),
        charts=(path.chart(), Heat(name, name, [name], [name], [[0.5]], [True])),
        wary=((f"Ids: {name}", f"{name} looks like an id."),),
        asked={"target": name},
        reproduce={"command": f"holdtrue rank x.csv --target {name}"},
    )
    return replace(built, **changed)


def test_a_summary_survives_json():
    text = summary().to_json()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not valid JSON"))
    again = Summary.from_json(text)
    assert again.to_json() == text
    assert to_html([again]) == to_html([summary()])


def test_a_bare_path_has_a_summary_of_its_own():
    path = summary().path
    bare = Summary.from_json(path.to_json())
    assert bare.path == path
    assert [row["score"] for row in bare.table.rows] == [1.0, 0.4, math.inf]
    assert [row["skill"] for row in bare.table.rows] == [0.0, 0.6, -math.inf]
    assert "(skill 0.6)" in bare.answer


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda text: text[:-20], "not valid JSON"),
        (lambda text: "[]", "format"),
        (lambda text: text.replace('"version": 1', '"version": 9', 1), "version 9"),
        (lambda text: text.replace('"chosen_size": 1', '"chosen_size": 7'), "damaged"),
        (lambda text: text.replace('"rows"', '"wors"'), "damaged"),
        (lambda text: text.replace('"kind": "Heat"', '"kind": "Pie"'), "damaged"),
        (lambda text: text.replace("0.4", "NaN"), "not valid JSON"),
        (lambda text: "[" * 100_000, "not valid JSON"),
        (lambda text: "", "not valid JSON"),
    ],
)
def test_a_damaged_summary_is_refused_in_a_sentence(damage, message):
    with pytest.raises(ValueError, match=f"^Summary: .*{message}"):
        Summary.from_json(damage(summary().to_json()))


def test_html_holds_all_it_needs_and_nothing_from_elsewhere():
    page = to_html([summary("dose")])
    assert "<svg" in page
    assert "One of 2: dose." in page
    assert len(page.encode()) < 1e6
    for outside in ("src=", "http://", "https://", "@import", "url("):
        left = page.replace("http://www.w3.org/2000/svg", "")
        assert outside not in left


def test_names_from_data_never_become_markup():
    page = to_html([summary()])
    assert page.count("<script") == 1  # our own
    assert "alert(1)</script>" not in page


def test_a_long_table_stays_below_a_megabyte_and_says_what_is_missing():
    row = {"name": "a" * 150, "score": 0.123456789, "kept": True}
    table = Table("long", {"name": "name", "score": "s", "kept": "k"}, [row] * 20_000, ("name",))
    page = to_html([summary("dose", table=table)])
    assert len(page.encode()) < 1e6
    assert "The first 1,000 of 20,000 rows" in page


def test_markdown_escapes_what_would_be_markup():
    text = to_markdown(summary("a|b*c"))
    assert "a\\|b\\*c" in text
    assert "## What to be wary of" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in rows}) == 1


def test_csv_has_exact_numbers_and_no_formulas():
    table = summary('x,\n"y').table
    rows = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert rows[0] == {"name": 'x,\n"y', "score": "0.4", "kept": "True"}
    assert rows[1]["name"] == "'=1+1"
    assert rows[1]["score"] == rows[2]["score"] == rows[2]["name"] == ""


def test_a_table_whose_rows_do_not_fit_is_refused():
    with pytest.raises(ValueError, match="a row has"):
        Table("t", {"a": "a"}, [{"b": 1}], ())
    with pytest.raises(ValueError, match="more than text"):
        Table("t", {"a": "a"}, [{"a": [1]}], ())
    with pytest.raises(ValueError, match="brief"):
        Table("t", {"a": "a"}, [], ("b",))


# --- damaged files ---


def full_record():
    """The JSON of a summary with charts of every kind and evidence, parsed."""
    plain = summary("dose")
    evidence = SizeEvidence([1, 2], {"train": [1.0, 0.5]}, {"dee": 1}, "dee")
    charts = (
        *plain.charts,
        Dots("t", "t", "x", [Dot("a", 1.0, 0.5, 2.0, 1.5, "id", "a note")], "line", {"id": "id"}),
    )
    path = replace(plain.path, evidence=evidence)
    return json.loads(replace(plain, charts=charts, path=path).to_json())


def places(record, above=()):
    """Where every value of parsed JSON stands."""
    yield above
    items = record.items() if isinstance(record, dict) else enumerate(record)
    for key, value in items:
        here = (*above, key)
        yield from places(value, here) if isinstance(value, (dict, list)) else [here]


PLACES = list(places(full_record()))
NUMBERS = st.sampled_from([0, -1, 7, 10**400, 1e308, -1e308, 5e-324, 1e150])
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), NUMBERS,
    st.sampled_from([[], {}, "inf", "nan", [[]], [None], {"number": "x"}, {"kind": "Chart"}]),
    st.lists(st.one_of(st.integers(), st.text(max_size=2)), max_size=3),
)  # fmt: skip


@pytest.mark.attack
@settings(max_examples=400)
@given(st.sampled_from(PLACES), st.sampled_from(["set", "delete", "repeat"]), VALUES)
@example(("charts", 0), "set", {"kind": "Chart", "title": "t", "text": "t"})
@example(("table", "rows", 0, "score"), "set", 10**400)
@example(("path", "scores", 0), "set", 1e308)
def test_a_damaged_file_is_refused_or_rendered_and_never_fails_otherwise(place, change, value):
    record = full_record()
    parent, key = record, place[-1] if place else None
    for step in place[:-1]:
        parent = parent[step]
    if not place:
        record = value
    elif change == "set":
        parent[key] = value
    elif change == "delete":
        del parent[key]
    elif isinstance(parent, list):
        parent.insert(key, parent[key])
    else:
        parent[f"{key}s"] = parent[key]
    try:
        damaged = Summary.from_json(json.dumps(record))
    except ValueError:
        return
    to_html([damaged])
    to_markdown(damaged)
    to_csv(damaged.table)
    show(damaged, 20, Console(file=io.StringIO()))
    assert Summary.from_json(damaged.to_json()).to_json() == damaged.to_json()


# --- where it goes ---


def test_outputs_write_every_format_and_leave_nothing_else(tmp_path, capsys):
    names = {kind: str(tmp_path / f"out.{kind}") for kind in ("html", "json", "csv")}
    Outputs(names["html"], names["json"], names["csv"]).write(summary("dose"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.csv", "out.html", "out.json"]
    said = capsys.readouterr()
    assert "One of 2: dose." in said.out
    assert f"wrote {names['html']}" in said.err


def test_standard_output_holds_the_json_and_nothing_else(capsys):
    Outputs(json="-").write(summary("dose"))
    assert json.loads(capsys.readouterr().out)["answer"] == "One of 2: dose."


def test_quiet_says_nothing(tmp_path, capsys):
    Outputs(out=str(tmp_path / "a.md"), quiet=True).write(summary("dose"))
    assert capsys.readouterr() == ("", "")


def test_top_shortens_the_table_everywhere(capsys):
    Outputs(csv="-", top=1).write(summary("dose"))
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize(
    "given, message",
    [
        ({"out": "a.pdf"}, "must end in .html, .md or .json"),
        ({"json": "-", "csv": "-"}, "both go to standard output"),
        ({"out": "a.json", "json": "a.json"}, "a file of its own"),
        ({"out": "nowhere/a.html"}, "no folder 'nowhere'"),
        ({"out": "there.html"}, "exists already. Pass --force"),
        ({"csv": "folder.csv"}, "is a folder"),
        ({"csv": "in.csv", "source": "in.csv", "force": True}, "is the input"),
    ],
)
def test_outputs_that_cannot_be_are_refused_before_any_work(tmp_path, monkeypatch, given, message):
    monkeypatch.chdir(tmp_path)
    for name in ("there.html", "in.csv"):
        (tmp_path / name).write_text("mine")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match=f"{message}"):
        Outputs(**given)
    assert (tmp_path / "there.html").read_text() == "mine"


def test_force_replaces_and_a_failure_leaves_the_old_file(tmp_path, monkeypatch):
    place = tmp_path / "a.md"
    place.write_text("mine")
    Outputs(str(place), force=True, quiet=True).write(summary("dose"))
    assert "dose" in place.read_text()
    place.write_text("mine")
    monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        Outputs(str(place), force=True, quiet=True).write(summary("dose"))
    assert place.read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["a.md"]


@pytest.mark.parametrize("width", [10, 24, 40, 60, 80, 200])
def test_a_narrow_terminal_cuts_no_number_and_says_what_is_missing(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    values = (123456.789, 0.000123456, -98765.4321)
    columns = {"name": "name", "first": "first", "second": "second", "third": "third", "of": "of"}
    rows = [
        dict(zip(columns, ("a name that is far too long " * 3, *values, "words " * 9), strict=True))
    ]
    path = summary("dose").path
    show(Summary("rank", "Q?", "A.", path, Table("", columns, rows, tuple(columns))), 20)
    shown = capsys.readouterr().out
    assert shown.startswith("Q?\n")
    whole = [number(value) in shown for value in values]
    assert whole == sorted(whole, reverse=True)  # from the left
    assert whole[0] == (width > 10)
    left_out = re.findall(r"(\d+) more columns? in", " ".join(shown.split()))
    assert sum(whole) + ("words" in shown) + 1 + int((left_out or [0])[0]) == len(columns)
    assert all(len(line) <= width for line in shown.splitlines())
    assert bool(left_out) == (width < 60)


def test_the_terminal_shows_names_as_they_are(capsys):
    Outputs().write(summary("[red]x[/red]\x1b[31m"))
    shown = capsys.readouterr().out
    assert "[red]x[/red]" in shown
    assert "\x1b[31m" not in shown


def test_a_table_that_was_cut_says_how_much_is_missing(tmp_path, capsys):
    whole = summary("dose")
    Outputs(str(tmp_path / "a.html"), top=1).write(whole)
    n_rows = len(whole.table.rows)
    assert f"and {n_rows - 1} more (--top {n_rows})" in capsys.readouterr().out
    cut = f"The first 1 of {n_rows} rows; --top leaves out more"
    assert cut in (tmp_path / "a.html").read_text()
    Outputs(str(tmp_path / "a.md"), top=1, quiet=True).write(whole)
    assert cut.replace("--", "--") in (tmp_path / "a.md").read_text().replace("\\", "")
    Outputs(str(tmp_path / "a.json"), top=1, quiet=True).write(whole)
    again = Summary.from_json((tmp_path / "a.json").read_text())
    assert again.table.n_left_out == n_rows - 1


def test_a_warning_that_repeats_a_note_is_left_out():
    given = replace(summary("dose"), wary=[("Few domains", "With 3 domains it is luck.")])
    notes = [("A warning of the fit", "Model: with 3 domains it is luck."), ("New", "Other.")]
    assert [what for what, _ in given.with_notes(notes).wary] == ["Few domains", "New"]


def test_words_of_a_table_are_explained_where_they_stand():
    columns = {"criterion": "criterion", "skill": "skill"}
    table = Table("All.", columns, [{"criterion": "dee", "skill": 0.5}], ("criterion",))
    page = to_html([summary("dose", table=table)])
    assert '<abbr title="Direct eigenvalue estimate' in page
    assert "<dt>skill</dt>" in page
    assert 'class="number more"' in page  # skill is not in brief
    assert "- *skill*: Share of the error" in to_markdown(summary("dose", table=table))


def test_a_name_from_the_data_is_not_taken_for_a_word_of_the_table():
    columns = {"group": "low", "column": "column", "weight": "weight"}
    rows = [{"group": "T", "column": "cv", "weight": 0.5}]
    table = Table("All.", columns, rows, ("group", "column", "weight"))
    page = to_html([summary("dose", table=table)])
    explained = re.findall(r"<abbr [^>]*>([^<]*)</abbr>", page)
    assert explained == re.findall(r"<dt>(weight|low|T|cv)</dt>", page) == ["weight"]
    assert re.findall(r"- \*(.*)\*: ", to_markdown(summary("dose", table=table))) == ["weight"]
