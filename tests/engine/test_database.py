"""Tables of DuckDB and PostgreSQL: the same numbers as on one machine, and only reading."""

import os
import shutil
import subprocess
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from holdtrue import GingerSelector, Moments, rank_columns
from holdtrue.engine.database import DatabaseTable

pytestmark = pytest.mark.filterwarnings("ignore:rank_columns. rows with the same value")


def in_duckdb(frame):
    connection = duckdb.connect()
    connection.register("frame", frame)
    connection.execute('CREATE TABLE "odd ""name%" AS SELECT * FROM frame')
    connection.unregister("frame")
    return connection


@pytest.fixture(scope="module")
def postgres(tmp_path_factory):
    """A connection to a server of its own on a socket in a folder."""
    if not os.environ.get("HOLDTRUE_CLUSTER"):
        pytest.skip("needs PostgreSQL and psycopg; run by `make cluster`")
    import psycopg

    programs = [shutil.which("pg_ctl"), *Path("/usr/lib/postgresql").glob("*/bin/pg_ctl")]
    pg_ctl = str(next(filter(None, programs)))
    folder = tmp_path_factory.mktemp("postgres")
    run = []
    if os.getuid() == 0:  # the server refuses to run as root
        run = ["runuser", "-u", "postgres", "--"]
        for place in (folder, *folder.parents[:3]):
            place.chmod(0o755)
        shutil.chown(folder, "postgres")
    start = ["-o", f"-c listen_addresses='' -k {folder}", "-l", str(folder / "log"), "-w"]
    data = ["-D", str(folder / "data")]
    subprocess.run([*run, pg_ctl, "init", *data, "-s", "-o", "-A trust -U postgres"], check=True)
    subprocess.run([*run, pg_ctl, "start", *data, *start], check=True, stdout=subprocess.DEVNULL)
    try:
        with psycopg.connect(host=str(folder), user="postgres", dbname="postgres") as connection:
            yield connection
    finally:
        subprocess.run([*run, pg_ctl, "stop", *data, "-m", "fast", "-s"], check=True)


POSTGRES_TYPES = {
    "count": "bigint", "x": "float8", "z": "float8", "day": "timestamp", "price": "float8",
    "flag": "boolean", "site": "integer", "gain": "float8",
}  # fmt: skip


@pytest.fixture(params=["duckdb", "postgres"])
def table_of(request):
    """Puts a frame into a table of each database."""
    if request.param == "duckdb":
        return lambda frame: DatabaseTable(in_duckdb(frame), 'odd "name%')
    connection = request.getfixturevalue("postgres")

    def put(frame):
        columns = ", ".join(f'"{name}" {POSTGRES_TYPES.get(name, "text")}' for name in frame)
        connection.execute(
            f'DROP TABLE IF EXISTS "odd ""name%"; CREATE TABLE "odd ""name%" ({columns})'
        )
        with connection.cursor().copy('COPY "odd ""name%" FROM STDIN') as copy:
            for row in frame.astype(object).where(frame.notna() | (frame != frame), None).values:
                copy.write_row(row)
        return DatabaseTable(connection, 'odd "name%')

    return put


@pytest.mark.parametrize("target, other", [("sold", "gain"), ("gain", "sold")])
@pytest.mark.parametrize("groups", [None, "site"])
@pytest.mark.parametrize("max_bins", [64, 5])
def test_a_database_ranks_as_one_machine_does(
    table_of, target, other, groups, max_bins, mixed_frame, assert_same_ranking
):
    frame = mixed_frame().drop(columns=other)
    assert_same_ranking(table_of(frame), frame, target, groups=groups, max_bins=max_bins)


def test_the_selector_takes_a_table_of_a_database_and_gives_one_back(table_of, mixed_frame):
    frame = mixed_frame(600).drop(columns="gain")
    one = GingerSelector().fit(frame.drop(columns="sold"), frame["sold"])
    table = table_of(frame)
    other = GingerSelector().fit(table, "sold")
    np.testing.assert_allclose(other.scores_, one.scores_, rtol=1e-12)
    assert other.transform(table).names == list(one.get_feature_names_out())


def test_moments_of_a_database_are_those_of_one_machine(table_of, mixed_frame):
    frame = mixed_frame()[["count", "x", "flag", "site", "gain"]]
    one = Moments.from_frame(frame, target="gain", domain="site")
    other = Moments.from_engine(table_of(frame), target="gain", domain="site")
    assert other.domains == one.domains
    for name in ("n_samples", "mean_x", "scatter_xx", "scatter_xy"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-12, atol=1e-9)


def test_what_a_database_cannot_do_is_refused_in_a_sentence(mixed_frame):
    connection = in_duckdb(mixed_frame(90))
    table = DatabaseTable(connection, 'odd "name%')
    with pytest.raises(ValueError, match=r"rank_columns: no column 'solt'. Did you mean 'sold'"):
        rank_columns(table, "solt")
    with pytest.raises(ValueError, match="the target must not be missing"):
        rank_columns(table, "colour")
    with pytest.raises(ValueError, match="n_jobs is for data on this machine"):
        rank_columns(table, "sold", n_jobs=2)
    with pytest.raises(TypeError, match="DatabaseTable: expected a connection of duckdb or psyc"):
        DatabaseTable("postgresql://here", "visits")
    with pytest.raises(RuntimeError, match=r"DatabaseTable: DuckDB failed: .*visits"):
        DatabaseTable(connection, ("main", "visits"))
    connection.execute("CREATE TABLE nested AS SELECT [1] AS a, 1 AS y; CREATE TABLE empty (y int)")
    with pytest.raises(TypeError, match="column 'a' holds values that cannot be counted"):
        rank_columns(DatabaseTable(connection, "nested"), "y")
    with pytest.raises(ValueError, match="the table has no rows"):
        Moments.from_engine(DatabaseTable(connection, "empty"))


def test_a_table_that_changes_between_passes_is_refused(mixed_frame, monkeypatch):
    connection = in_duckdb(mixed_frame(90))
    table = DatabaseTable(connection, 'odd "name%')
    profiles = table.profiles

    def later(*arguments):
        connection.execute('DELETE FROM "odd ""name%" WHERE site < 9')
        return profiles(*arguments)

    monkeypatch.setattr(table, "profiles", later)
    with pytest.raises(ValueError, match="the table changed between passes"):
        rank_columns(table, "sold")


def test_labels_are_parameters_and_never_part_of_a_statement(
    table_of, assert_same_ranking, mixed_frame
):
    frame = mixed_frame(120)[["zip", "x", "sold"]]
    frame["sold"] = frame["sold"].replace({"yes": "'; DROP TABLE t; --", "no": "a ? b %s"})
    assert_same_ranking(table_of(frame), frame, "sold")


def test_whole_numbers_between_those_that_occur_are_no_values_with_groups():
    rng = np.random.default_rng(0)
    wind = 5 * rng.geometric(0.12, 3000).clip(2, 33)  # distinct() tables 10, 11, ..., 165
    frame = pd.DataFrame({"wind": wind, "ship": 10 * rng.integers(0, 90, 3000)})
    frame["left"] = wind + rng.normal(scale=4, size=3000) > 40
    there = rank_columns(DatabaseTable(in_duckdb(frame), 'odd "name%'), "left", groups="ship")
    here = rank_columns(frame, "left", groups="ship")
    assert there.path.evidence.read_as == here.path.evidence.read_as
    np.testing.assert_allclose(there.path.scores, here.path.scores, rtol=1e-12)
    errors = [r.path.evidence.standard_errors for r in (there, here)]
    np.testing.assert_allclose(*errors, rtol=1e-9)
