"""`holdtrue sums` at each site, `holdtrue select --sums` at the centre."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from holdtrue.datasets import make_domains

ROLES = ("--target", "cured", "--domain", "hospital")


@pytest.fixture
def sites(tmp_path):
    """Two sites and the rows of both; a plan, and a class, are at one of them only."""
    data = make_domains(8, 30, n_features=6, n_fickle=1, random_state=0)
    rng = np.random.default_rng(0)
    first = data.groups < 4
    columns = {f"x{j}": data.X[:, j] for j in range(6)}
    columns["plan"] = rng.choice(["free", "paid"], len(data.y))
    columns["plan"][:9] = "gold"
    cured = np.where(data.y > np.median(data.y), "yes", "no")
    cured[-30:-10] = "unknown"
    hospital = [f"h{d}" for d in data.groups]
    table = pa.table(columns | {"cured": cured, "hospital": hospital})
    pq.write_table(table, tmp_path / "all.parquet")
    for name, rows in {"north": first, "south": ~first}.items():
        pq.write_table(table.filter(pa.array(rows)), tmp_path / f"{name}.parquet")
    return table


def write_sums(holdtrue, *options):
    for name in ("north", "south"):
        ended = holdtrue("sums", f"{name}.parquet", *ROLES, "--out", f"{name}.sums", *options)
        assert ended.code == 0, ended
    return ended


def test_the_answer_from_sums_is_that_on_the_joined_rows(sites, holdtrue, tmp_path):
    told = write_sums(holdtrue)
    assert "2 values by name: plan\n" in told.out
    assert told.err == "wrote south.sums\n"
    ended = holdtrue("select", "--sums", "north.sums", "south.sums", "--json")
    found = json.loads(ended.out)
    asked = ("select", "all.parquet", *ROLES, "--no-average", "--json")
    whole = json.loads(holdtrue(*asked).out)
    assert whole["answer"].startswith(found["answer"])  # rows could let the average compete
    assert found["asked"]["data"] == "north.sums, south.sums (sums)"
    for ours, theirs in zip(found["table"]["rows"], whole["table"]["rows"], strict=True):
        assert ours.keys() == theirs.keys()
        for name, value in ours.items():
            is_number = isinstance(value, float)
            assert value == (pytest.approx(theirs[name], rel=1e-9) if is_number else theirs[name])
    assert holdtrue("select", "--sums", "north.sums", "south.sums", "--out", "r.html").code == 0
    assert "plan=gold" in (tmp_path / "r.html").read_text("utf-8")
    hidden = holdtrue("select", "--sums", "north.sums", "south.sums", "--no-values", "--json").out
    assert "gold" not in hidden


def test_rows_without_a_target_are_counted_over_all_sites(sites, holdtrue, tmp_path):
    for name, n_missing in {"north": 2, "south": 3}.items():
        table = pq.read_table(tmp_path / f"{name}.parquet")
        gone = pa.array(np.arange(len(table)) < n_missing)
        cured = pc.if_else(gone, None, table["cured"])
        pq.write_table(table.set_column(7, "cured", cured), tmp_path / f"{name}.parquet")
    write_sums(holdtrue)
    ended = holdtrue("select", "--sums", "north.sums", "south.sums", "--json")
    assert "5 of 240 rows have no 'cured' and are left out." in ended.out


def test_sums_are_replaced_only_by_force_and_never_the_input(sites, holdtrue, tmp_path):
    write_sums(holdtrue)
    asked = ("sums", "north.parquet", *ROLES)
    assert "exists already" in holdtrue.refuses(*asked, "--out", "north.sums")
    assert "is the input" in holdtrue.refuses(*asked, "--out", "north.parquet", "--force")
    before = (tmp_path / "north.sums").read_bytes()
    ended = holdtrue(*asked, "--out", "north.sums", "--force", "--quiet")
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert (tmp_path / "north.sums").read_bytes() == before
    assert holdtrue.refuses(*asked).startswith("missing option '--out'")


def test_the_floor_is_that_of_the_option(sites, holdtrue):
    ended = holdtrue("sums", "north.parquet", *ROLES, "--min-count", "5", "--out", "n.sums")
    assert ended.code == 0, ended
    told = holdtrue.refuses("sums", "north.parquet", *ROLES, "--min-count", "99", "--out", "o.sums")
    assert told.startswith("the domain 'h0' of 'hospital' has 30 rows, below the min_count of 99.")


@pytest.mark.parametrize(
    "options, sentence",
    [
        (["--target", "cured"], "--target goes with holdtrue sums, at each site."),
        (["--type", "plan=text"], "--type goes with holdtrue sums, at each site."),
        (["--average"], "--average needs rows, and sums have none."),
        (["north.sums"], "north.sums and north.sums hold the same sums. Name each site once."),
        (["gone.sums"], "no file 'gone.sums'. Pass files that holdtrue sums wrote."),
        (["north.parquet"], "north.parquet is not a file that holdtrue sums wrote"),
        (["--drop", "plam"], "no column 'plam' in north.sums. Did you mean 'plan'?"),
        (["other.sums"], "other.sums differs from north.sums: a column 'Plan' more; no column"),
    ],
)
def test_a_mistake_in_sums_is_a_sentence(options, sentence, sites, holdtrue, tmp_path):
    write_sums(holdtrue)
    names = [name.replace("plan", "Plan") for name in sites.column_names]
    pq.write_table(sites.rename_columns(names), tmp_path / "other.parquet")
    holdtrue("sums", "other.parquet", *ROLES, "--out", "other.sums")
    assert sentence in holdtrue.refuses("select", "--sums", "north.sums", "south.sums", *options)


def test_one_file_of_rows_is_expected_without_sums(sites, holdtrue):
    asked = ("select", "north.parquet", "south.parquet", *ROLES)
    assert holdtrue.refuses(*asked).startswith("expected one FILE. Got 2.")
    assert "missing option '--domain'" in holdtrue.refuses("select", "all.parquet", "-t", "cured")
    sums = ("sums", "all.parquet", "-t", "cured", "-d", "x0", "--out", "a.sums", "--drop", "x0")
    assert "cannot be in --drop" in holdtrue.refuses(*sums)
