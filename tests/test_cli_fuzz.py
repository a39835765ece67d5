"""Malformed tables to every command: an answer or one sentence, never anything else."""

import copy
import json
import os
import random
import re
import warnings
from decimal import Decimal
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression
from skops.io import dump

pytestmark = pytest.mark.attack

LONE = "\ud800"  # a surrogate: text in Python, but in no file of UTF-8
NASTY = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "[bold red]",
    "[/]",
    "a\nb",
    "a\rb",
    "\x1b[31m",
    "\x00",
    "\u202eevil",
    LONE,
    "=cmd()",
    "-",
    "--out",
    "",
    " ",
    "y",
    "é",
    "你好",
    "😀",
    "a,b",
    'a"b',
    "{{ 7 * 7 }}",
    "`|*_",
    "x" * 300,
]
VALUES = [
    *("", "NA", "?", "inf", "1e400", "0", "-1", "007", "0.5", "1e-320", "0x1F", "1,5", '"', '"a'),
    *("9223372036854775808", "123456789012345678901234567890", "true", "9999-99-99", "2020-01-01"),
    *NASTY[:12],
]
unicode_text = st.sampled_from([name for name in NASTY if name != LONE]) | st.text(max_size=6)
text = unicode_text | st.just(LONE)
N_EXAMPLES = 200 if "HOLDTRUE_ATTACK" in os.environ else 60
fuzzed = settings(max_examples=N_EXAMPLES, phases=[Phase.explicit, Phase.generate])


# --- tables that can be read, and hold anything ---------------------------------------------------

KINDS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "few": lambda rng, n: rng.integers(0, 3, n),
    "two": lambda rng, n: rng.integers(0, 2, n).astype(bool),
    "letters": lambda rng, n: rng.choice(["a", "b", "c"], n),
    "nasty": lambda rng, n: rng.choice(NASTY[:7] + NASTY[10:], n),
    "ids": lambda rng, n: rng.permutation(n).astype(str),
    "huge": lambda rng, n: rng.integers(2**63, 2**64, n, dtype=np.uint64),
    "extreme": lambda rng, n: rng.choice([1e300, -1e300, 5e-324, 1.0, 0.0], n),
    "infinite": lambda rng, n: rng.choice([np.inf, -np.inf, np.nan, 1.0, 2.0], n),
    "constant": lambda rng, n: np.full(n, rng.integers(0, 9)),
    "missing": lambda rng, n: pa.nulls(n),
    "holes": lambda rng, n: pa.array(rng.normal(size=n), mask=rng.random(n) < 0.3),
    "text holes": lambda rng, n: pa.array(rng.choice(["a", "b"], n), mask=rng.random(n) < 0.3),
    "days": lambda rng, n: pa.array(rng.integers(-(10**6), 10**5, n), pa.int32()).cast("date32"),
    "times": lambda rng, n: pa.array(rng.integers(0, 2**62, n), pa.timestamp("ns", "UTC")),
    "lasting": lambda rng, n: pa.array(rng.integers(0, 9, n), pa.duration("s")),
    "exact": lambda rng, n: pa.array([Decimal(int(i)) / 7 for i in rng.integers(0, 9, n)]),
    "lists": lambda rng, n: pa.array([[1, 2]] * n),
    "bytes": lambda rng, n: pa.array([b"\xff\x00", b"a"] * n)[:n],
    "codes": lambda rng, n: pa.array(rng.choice(["u", "v"], n)).dictionary_encode(),
}
TARGETS = ["normal", "few", "two", "letters", "nasty", "exact"]


@st.composite
def readable(draw):
    """A table, its target and its domain: usable ones mostly."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_rows = draw(st.sampled_from([1, 2, 3, 10, 40, 40, 40]))
    names = draw(st.lists(unicode_text, min_size=2, max_size=8, unique=True))
    any_kind = st.sampled_from(list(KINDS))
    kinds = [
        draw(st.sampled_from(TARGETS) if draw(st.integers(0, 9)) else any_kind),
        draw(st.sampled_from(["letters", "few", "nasty"]) if draw(st.integers(0, 9)) else any_kind),
        *(draw(any_kind) for _ in names[2:]),
    ]
    columns = [KINDS[kind](rng, n_rows) for kind in kinds]
    return pa.table([pa.array(column) for column in columns], names=names)


@st.composite
def questions(draw, names):
    """A command and its options, for columns of which the first is the target."""
    command = draw(st.sampled_from(["rank", "select", "size", "transfer"]))
    target, second = names[0], names[min(1, len(names) - 1)]
    if command == "size":
        asked = ["--x", draw(st.sampled_from(names[1:] or names)), "--y", target]
        asked += ["--criterion", draw(st.sampled_from(["dee", "cv", "bayes", "seb"]))]
        asked += ["--basis", draw(st.sampled_from(["cosine", "legendre", "bspline", "columns"]))]
        return [command, *asked]
    asked = ["--target", target]
    if command == "select":
        asked += ["--domain", second, "--rule", draw(st.sampled_from(["moderated", "t", "auto"]))]
    if command == "transfer":
        asked += ["--sources", "shelf", *(f"--drop={name}" for name in names[2:])]
    extra = [[], [], [f"--drop={names[-1]}"], ["--type", f"{names[-1]}=text"], ["--top", "1"]]
    extra += [["--target-type", kind] for kind in ("classes", "numeric")]
    return [command, *asked, *draw(st.sampled_from(extra))]


@fuzzed
@given(data=st.data())
def test_any_table_gets_an_answer_or_one_sentence(data, holdtrue, shelf):
    table = data.draw(readable())
    pq.write_table(table, holdtrue.folder / "t.parquet")
    command, *asked = data.draw(questions(table.column_names))
    check(holdtrue, [command, "t.parquet", *asked])


# --- text that is broken -------------------------------------------------------------------------


@st.composite
def broken(draw):
    """A good CSV with one or two things wrong, and the names that it had."""
    names = ["y", "place", "x", draw(text)]
    draw_rows = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = [
        [str(draw_rows.integers(0, 3)), "abc"[i % 3], f"{draw_rows.normal():.3f}", "v"]
        for i in range(draw(st.sampled_from([1, 20, 20, 20])))
    ]
    for _ in range(draw(st.integers(0, 2))):
        row = rows[draw(st.integers(0, len(rows) - 1))]
        place = draw(st.integers(0, 3))
        change = draw(st.sampled_from(["value", "value", "value", "longer", "shorter"]))
        if change == "value" and len(row) > place:
            row[place] = draw(st.sampled_from(VALUES) | text)
        elif change == "longer":
            row.append("more")
        elif row:
            row.pop()
    if draw(st.integers(0, 4)) == 0:
        names[draw(st.integers(0, 3))] = draw(text | st.sampled_from(names))
    separator, end = draw(st.sampled_from([(",", "\n"), (";", "\r\n"), ("\t", "\r"), ("|", "\n")]))
    quoted = [[field.replace('"', '""').join('""') for field in row] for row in [names, *rows]]
    written = quoted if draw(st.booleans()) else [names, *rows]
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-8", "utf-16", "latin-1", "utf-8-sig"]))
    errors = "surrogatepass" if "utf" in encoding else "replace"
    content = end.join(separator.join(row) for row in written).encode(encoding, errors)
    harm = draw(st.sampled_from(["none", "none", "none", "cut", "byte"]))
    at = draw(st.integers(0, max(len(content) - 1, 0)))
    if harm == "cut":
        content = content[:at]
    elif harm == "byte":
        content = content[:at] + draw(st.binary(min_size=1, max_size=3)) + content[at + 1 :]
    return names, content


@fuzzed
@given(data=st.data())
def test_a_broken_csv_gets_an_answer_or_one_sentence(data, holdtrue, shelf):
    names, content = data.draw(broken())
    (holdtrue.folder / "t.csv").write_bytes(content)
    command, *asked = data.draw(questions(names))
    check(holdtrue, [command, "t.csv", *asked])


# --- options and reports --------------------------------------------------------------------------

OPTIONS = {
    "rank": ("--target", "--criterion", "--target-type", "--alpha"),
    "select": ("--target", "--domain", "--groups", "--rule", "--stop", "--max-steps", "--keep"),
    "transfer": ("--target", "--sources", "--max-selected", "--lam", "--candidates", "--cache"),
    "size": ("--x", "--y", "--basis", "--criterion", "--max-terms"),
}
EVERYWHERE = ("--drop", "--type", "--table", "--encoding", "--missing-target", "--seed", "--top")
WORDS = [
    *("y", "place", "x", "shelf", "t.csv", ".", "auto", "numeric", "classes", "loo", "t", "greedy"),
    *(
        "ginger",
        "gini",
        "dee",
        "cosine",
        "sign_flip",
        "0",
        "1",
        "-1",
        "0.5",
        "1e400",
        "nan",
        "drop",
    ),
    *("error", "x=text", "y=bool", "=", "utf-16", "rot13", "SELECT 1", "/dev/null"),
    *NASTY,
]


@st.composite
def any_options(draw):
    """A command with what it needs, mostly, and options with values that may fit."""
    command = draw(st.sampled_from(list(OPTIONS)))
    needed = {
        "rank": ["--target", "y"],
        "select": ["--target", "y", "--domain", "place"],
        "transfer": ["--target", "y", "--sources", "shelf", "--drop", "place"],
        "size": ["--x", "x", "--y", "y"],
    }[command]
    pairs = st.tuples(
        st.sampled_from(OPTIONS[command] + EVERYWHERE),
        st.sampled_from([word for word in WORDS if LONE not in word and "\0" not in word]),
    )
    drawn = [part for pair in draw(st.lists(pairs, max_size=2)) for part in pair]
    flags = draw(st.lists(st.sampled_from(["--no-values", "--quiet", "--stepwise"]), max_size=1))
    return [command, "t.csv", *(needed if draw(st.integers(0, 9)) else []), *drawn, *flags]


@fuzzed
@given(asked=any_options())
def test_any_options_get_an_answer_or_one_sentence(asked, holdtrue, shelf):
    rows = [f"{i % 3},{'abcd'[i % 4]},{i * i % 17},{i}" for i in range(40)]
    (holdtrue.folder / "t.csv").write_text("\n".join(["y,place,x,n", *rows]))
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        ended = holdtrue(*asked)
    assert ended.code in (0, 2), (asked, ended)
    if ended.code == 2:
        assert re.fullmatch(rf"holdtrue {asked[0]}: [^\n]+[.?]\n", ended.err), (asked, ended)
        assert ended.out == ""


@pytest.fixture(scope="module")
def kept(tmp_path_factory, command_line):
    """Folder of summaries that commands wrote."""
    run = command_line(tmp_path_factory.mktemp("kept"))
    rows = [f"{i % 3},{'abcd'[i % 4]},{i * i % 17},{i}" for i in range(40)]
    (run.folder / "t.csv").write_text("\n".join(["y,place,x,n", *rows]))
    assert run("rank", "t.csv", "-t", "y", "-q", "--json", "rank.json").code == 0
    assert run("select", "t.csv", "-t", "x", "-d", "place", "-q", "--json", "select.json").code == 0
    assert run("size", "t.csv", "--x", "n", "--y", "x", "-q", "--json", "size.json").code == 0
    return run.folder


ODD_JSON = [
    None,
    True,
    -1,
    0,
    1e308,
    "",
    "x",
    [],
    {},
    [[]],
    {"number": "nan"},
    {"number": "x"},
    [1],
]


def damaged(record, draw):
    """The record with one part of it replaced, removed or doubled."""
    record = copy.deepcopy(record)
    node = record
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = draw.choice(keys)
        inner = node[key]
        if isinstance(inner, (dict, list)) and inner and draw.random() < 0.8:
            node = inner
            continue
        how = draw.choice(["replace", "replace", "remove", "double"])
        if how == "remove":
            del node[key]
        elif how == "double" and isinstance(node, list):
            node.insert(key, inner)
        else:
            node[key] = draw.choice(ODD_JSON)
        return record


@fuzzed
@given(seed=st.integers(0, 2**32))
def test_a_damaged_report_is_shown_or_refused(seed, kept, holdtrue):
    draw = random.Random(seed)
    name = draw.choice(["rank", "select", "size"])
    record = damaged(json.loads((kept / f"{name}.json").read_text("utf-8")), draw)
    (holdtrue.folder / "s.json").write_text(json.dumps(record))
    ended = holdtrue("report", "s.json", "--out", "r.html", "--force")
    assert ended.code in (0, 2), ended
    if ended.code == 2:
        assert re.fullmatch(r"holdtrue report: s.json: [^\n]+[.?]\n", ended.err), ended


@pytest.mark.parametrize("command", ["rank", "select"])
def test_thousands_of_columns_are_no_trouble(command, holdtrue):
    rng = np.random.default_rng(0)
    lines = [",".join(["y", "place", *(f"c{j}" for j in range(2000))])]
    lines += [
        ",".join(["01"[i % 2], "abc"[i % 3], *map(str, rng.integers(0, 9, 2000))])
        for i in range(12)
    ]
    (holdtrue.folder / "t.csv").write_text("\n".join(lines))
    place = ("--domain", "place", "--max-steps", "5") if command == "select" else ()
    assert check(holdtrue, [command, "t.csv", "--target", "y", *place])


# --- what every run must hold to ------------------------------------------------------------------


@pytest.fixture
def shelf(tmp_path):
    (tmp_path / "shelf").mkdir()
    dump(LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0]), tmp_path / "shelf" / "<b>one.skops")


class Tags(HTMLParser):
    """Elements of a page, and those that its names might have made."""

    def __init__(self):
        super().__init__()
        self.scripts, self.odd = 0, []

    def handle_starttag(self, tag, attributes):
        self.scripts += tag == "script"
        if tag in ("img", "iframe", "b", "object") or any(
            k.startswith("on") for k, _ in attributes
        ):
            self.odd.append((tag, attributes))


def check(holdtrue, asked):
    """Run a command; it must answer, with a page that is sound, or refuse with one sentence."""
    page, summary = (holdtrue.folder / name for name in ("r.html", "r.json"))
    page.unlink(missing_ok=True)
    summary.unlink(missing_ok=True)
    with warnings.catch_warnings():  # as outside of tests: kept for the report, not raised
        warnings.simplefilter("default")
        ended = holdtrue(*asked, "--out", page.name, "--json", summary.name, "--csv", "-")
    assert ended.code in (0, 2), (asked, ended)
    if ended.code == 2:
        assert re.fullmatch(rf"holdtrue {asked[0]}: [^\n]+[.?]\n", ended.err), (asked, ended)
        assert ended.out == ""
        assert not page.exists()
        assert not summary.exists()
        return False
    assert ended.err == "wrote r.html\nwrote r.json\n", (asked, ended)
    tags = Tags()
    tags.feed(page.read_text("utf-8"))
    assert tags.scripts == 1
    assert tags.odd == []
    assert not re.search("[\x00-\x08\x0b-\x1f]", page.read_text("utf-8"))
    json.loads(summary.read_text("utf-8"), parse_constant=pytest.fail)
    assert holdtrue("report", summary.name, "--out", page.name, "--force", "-q").code == 0
    return True
