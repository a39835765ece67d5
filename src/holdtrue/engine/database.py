"""Tables of DuckDB and PostgreSQL: profiles are made by two GROUP BYs; only they come here.

The inner one sums the target by value (or by bin), the outer one counts the values with equal sums.
Statements only read; names are quoted, and labels are parameters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from holdtrue.columns.bins import N_MOMENTS, BinCounter
from holdtrue.columns.counting import label_key
from holdtrue.columns.distinct import distinct
from holdtrue.columns.values import ORDERED, refused
from holdtrue.engine import speaking
from holdtrue.engine.table import FEW, EngineTable, EngineTarget, Labels, Profiles, rows_by_class
from holdtrue.errors import InputError, InputTypeError, speaks
from holdtrue.sums import Profile
from holdtrue.sums.group_profile import GroupProfile

__all__ = ["DatabaseTable", "arrow_reader"]

_ROWS = 1 << 16
# How PostgreSQL's types are read: the type in Arrow, and the expression of a column.
_TEXT = (pa.string(), 'CAST({} AS text) COLLATE "C"')
_FLOAT = (pa.float64(), "NULLIF(CAST({} AS float8), CAST('NaN' AS float8)) + 0.0")
_POSTGRES = {
    "bool": (pa.bool_(), "{}"), "int2": (pa.int16(), "{}"), "int4": (pa.int32(), "{}"),
    "int8": (pa.int64(), "{}"), "float4": _FLOAT, "float8": _FLOAT, "numeric": _FLOAT,
    "date": (pa.date32(), "{}"), "time": (pa.time64("us"), "{}"), "bytea": (pa.binary(), "{}"),
    "timestamp": (pa.timestamp("us"), "{}"), "timestamptz": (pa.timestamp("us", "UTC"), "{}"),
    "text": _TEXT, "varchar": _TEXT, "bpchar": _TEXT, "name": _TEXT, "uuid": _TEXT,
}  # fmt: skip
# Sums by number of rows, as in `holdtrue.sums.profile`: b is a value's mean minus the center.
_SUMS = ("b", "b*b", "b*b*b", "b*b*b*b", "s2", "s2*b", "s2*b*b", "s3", "s3*b", "s4")


class DatabaseTable(EngineTable):
    """A table or view of DuckDB or PostgreSQL, for `rank_columns`, `GingerSelector` and `Moments`.

    Parameters
    ----------
    connection : connection of duckdb or psycopg
    name : str or (schema, table)
    columns : sequence of str, optional
        By default all.

    Examples
    --------
    >>> import duckdb
    >>> from holdtrue import rank_columns
    >>> from holdtrue.engine.database import DatabaseTable
    >>> connection = duckdb.connect()
    >>> _ = connection.execute("CREATE TABLE t AS SELECT i % 3 AS plan, i % 3 = 0 AS gone, "
    ...                        "'u' || i AS id FROM range(60) r(i)")
    >>> [row["column"] for row in rank_columns(DatabaseTable(connection, "t"), "gone")]
    ['plan', 'id']
    """

    @speaks
    def __init__(
        self, connection: Any, name: str | tuple[str, str], columns: Sequence[str] | None = None
    ):
        home = type(connection).__module__.split(".")[0]
        if home not in ("duckdb", "_duckdb", "psycopg"):
            raise InputTypeError(f"expected a connection of duckdb or psycopg. Got one of {home}.")
        self._connection, self._name = connection, name
        self._is_duckdb = home != "psycopg"
        self._mark = "?" if self._is_duckdb else "%s"
        self._from = ".".join(map(self._quoted, (name,) if isinstance(name, str) else name))
        types, self._read = self._schema()
        super().__init__(types if columns is None else {name: types[name] for name in columns})

    def select(self, columns: Sequence[str]) -> DatabaseTable:
        """The table with these columns only; nothing is computed."""
        return DatabaseTable(self._connection, self._name, columns)

    def sum(self, make: Callable[[Any], Any], columns: Sequence[str]) -> Any:
        """``make(table)`` of all rows, which come here some at a time, added up."""
        listed = ", ".join(f"{self._read[name]} AS {self._quoted(name)}" for name in columns)
        total: Any = 0
        for table in self._tables(f"SELECT {listed} FROM {self._from}", columns):
            total = total + make(table)
        if isinstance(total, int):
            raise InputError("the table has no rows.")
        return total

    def labels(self, columns: Sequence[str]) -> Labels:
        """Different values of some columns with their rows, as long as they are few."""
        seen, missing, n_rows = {}, Counter[str](), 0
        for name in columns:
            value = self._read[name]
            few = self._rows(
                f"SELECT {value}, count(*) FROM {self._from} WHERE {value} IS NOT NULL "
                f"GROUP BY 1 LIMIT {FEW}"
            )
            [(n_rows, n_present)] = self._rows(f"SELECT count(*), count({value}) FROM {self._from}")
            seen[name] = Counter({label_key(label): n for label, n in few})
            missing[name] = n_rows - n_present
        if not n_rows:
            raise InputError("the table has no rows.")
        return Labels(seen, missing, n_rows)

    def profiles(self, kinds: Mapping[str, str], target: EngineTarget, max_bins: int) -> Profiles:
        """Profiles of columns, one at a time."""
        for name, kind in kinds.items():
            value = self._read[name]
            if target.groups is not None:
                source = self._source(target, f"{value} AS k, {self._read[target.groups]} AS g")
                rows = self._rows(self._sums(source, target, "k, g"), target)
                values, value_of = _occurring(name, [row[0] for row in rows])
                _, group_of = _occurring(target.groups, [row[1] for row in rows])
                table = _table([row[2:] for row in rows], target)
                target.check(rows_by_class(table))
                pairs = np.stack([value_of, group_of], axis=1)
                yield GroupProfile.from_pairs(kind, values, pairs, table, target.classes, max_bins)
                continue
            missing = self._ordered(self._source(target, "0 AS k", f"{value} IS NULL"), target)
            source = self._source(target, f"{value} AS k", f"{value} IS NOT NULL")
            profile = self._profile(kind, source, target, missing)
            target.check(rows_by_class(missing) + rows_by_class(profile.rows, profile.repeats))
            n_values = int(profile.repeats.sum())
            if kind in ORDERED and n_values:
                counter = BinCounter(float(profile.repeats @ profile.rows_by_value), max_bins)
                if n_values > max_bins:
                    source = _between(counter.ranks, source)
                counter.add(self._ordered(source, target))
                counter.n_values = n_values
                profile = replace(profile, bins=tuple(table for _, table in counter.bins()))
            yield profile

    def _profile(
        self, kind: str, source: str, target: EngineTarget, missing: np.ndarray
    ) -> Profile:
        """Profile without bins: the values that have equal sums, or as many rows, together."""
        sums, center = self._sums(source, target), 0.0
        if target.classes is None:
            [(mean,)] = self._rows(f"SELECT avg(y) FROM ({source}) AS r", target)
            center, added = mean or 0.0, ", ".join(f"sum({term})" for term in _SUMS)
            about = f"SELECT *, s1 - ({center!r}) AS b FROM ({sums}) AS s"
            query = f"SELECT s0, {added}, count(*) FROM ({about}) AS v GROUP BY s0"
        else:
            by = ", ".join(f"s{k}" for k in range(len(target.classes)))
            query = f"SELECT {by}, count(*) FROM ({sums}) AS v GROUP BY {by}"
        rows = self._rows(query, target)
        repeats = np.array([row[-1] for row in rows], dtype=np.int64)
        table = _table([row[:-1] for row in rows], target, len(_SUMS) + 1)
        return Profile(kind, target.classes, table, repeats, missing, (), center)

    # --- statements ---

    def _source(self, target: EngineTarget, keys: str, where: str = "1 = 1") -> str:
        """Rows with their keys, such as ``a AS k``, and the target y."""
        y = self._read[target.name]
        if target.classes is None:
            is_truth = pa.types.is_boolean(self.types[target.name])
            y = f"CAST({f'CAST({y} AS int)' if is_truth else y} AS float8)"
        return f"SELECT {keys}, {y} AS y FROM {self._from} WHERE {where}"

    def _sums(self, source: str, target: EngineTarget, keys: str = "k") -> str:
        """Sums s0, s1, ... by keys: rows by class, or rows, mean and moments about the mean."""
        if target.classes is not None:
            classes = range(len(target.classes))
            counts = (f"count(CASE WHEN y = {self._mark} THEN 1 END) AS s{k}" for k in classes)
            return f"SELECT {keys}, {', '.join(counts)} FROM ({source}) AS r GROUP BY {keys}"
        around = f"SELECT *, y - avg(y) OVER (PARTITION BY {keys}) AS d FROM ({source}) AS r"
        return (
            f"SELECT {keys}, CAST(count(*) AS float8) AS s0, avg(y) AS s1, sum(d*d) AS s2, "
            f"sum(d*d*d) AS s3, sum(d*d*d*d) AS s4 FROM ({around}) AS a GROUP BY {keys}"
        )

    def _ordered(self, source: str, target: EngineTarget) -> np.ndarray:
        """Table of sums in the order of the keys."""
        rows = self._rows(f"{self._sums(source, target)} ORDER BY k", target)
        return _table([row[1:] for row in rows], target)

    # --- the connection ---

    def _quoted(self, name: str) -> str:
        name = name if self._is_duckdb else name.replace("%", "%%")
        return '"' + name.replace('"', '""') + '"'

    def _schema(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Type of each column in Arrow, and the expression that reads it."""
        query = f"SELECT * FROM {self._from} LIMIT 0"
        types, read = {}, {}
        if self._is_duckdb:
            with self._speaking():
                schema = arrow_reader(self._connection, query, _ROWS).schema
            for field in schema:
                expression = _FLOAT[1] if pa.types.is_floating(field.type) else "{}"
                types[field.name] = field.type
                read[field.name] = expression.format(self._quoted(field.name))
            return types, read
        with self._connection.cursor() as cursor:
            with self._speaking():
                cursor.execute(query, [])
            for column in cursor.description:
                kind = self._connection.adapters.types.get(column.type_code)
                if kind is None or kind.name not in _POSTGRES:
                    raise refused(column.name, f"{column.type_code if kind is None else kind.name}")
                types[column.name], expression = _POSTGRES[kind.name]
                read[column.name] = expression.format(self._quoted(column.name))
        return types, read

    def _rows(self, query: str, target: EngineTarget | None = None) -> list[tuple[Any, ...]]:
        """Rows of a query whose parameters, if the target has classes, are these."""
        labels = [] if target is None else list(target.classes or ())
        if self._is_duckdb:
            with self._speaking():
                return self._connection.execute(query, labels).fetchall()
        from psycopg.rows import tuple_row

        with self._speaking(), self._connection.cursor(row_factory=tuple_row) as cursor:
            return cursor.execute(query, labels).fetchall()

    def _tables(self, query: str, columns: Sequence[str]) -> Iterator[Any]:
        """Arrow tables of the rows of a query, some at a time."""
        if self._is_duckdb:
            with self._speaking():
                for batch in arrow_reader(self._connection, query, _ROWS):
                    yield pa.Table.from_batches([batch])
            return
        from psycopg.rows import tuple_row

        kinds = [self.types[name] for name in columns]
        with (
            self._speaking(),
            self._connection.transaction(),
            self._connection.cursor("holdtrue", row_factory=tuple_row) as cursor,
        ):
            cursor.execute(query, [])
            while rows := cursor.fetchmany(_ROWS):
                values = zip(*rows, strict=True)
                yield pa.table(list(map(pa.array, values, kinds)), names=list(columns))

    def _speaking(self) -> Any:
        return speaking("DuckDB" if self._is_duckdb else "PostgreSQL")


def arrow_reader(connection: Any, query: str, n_rows: int) -> Any:
    """Record batches of what a query of DuckDB gives, for old and new versions of it."""
    relation = connection.sql(query)
    newer = hasattr(relation, "to_arrow_reader")
    return (relation.to_arrow_reader if newer else relation.fetch_arrow_reader)(n_rows)


def _between(ranks: np.ndarray, source: str) -> str:
    """Rows with the number of ranks that lie before their value as the key: where bins may end."""
    cases = " ".join(f"WHEN n_before < {int(rank)} THEN {i}" for i, rank in enumerate(ranks))
    ranked = f"SELECT rank() OVER (ORDER BY k) - 1 AS n_before, y FROM ({source}) AS r"
    return f"SELECT CASE {cases} ELSE {len(ranks)} END AS k, y FROM ({ranked}) AS n"


def _occurring(name: str, labels: list[Any]) -> tuple[pa.Array, np.ndarray]:
    """Values that occur, and the place of each label; `distinct` may have whole numbers between."""
    values, codes = distinct(name, pa.array(labels))
    used, places = np.unique(codes, return_inverse=True)
    return values.take(pa.array(used)), places


def _table(rows: list[Any], target: EngineTarget, width: int = N_MOMENTS) -> np.ndarray:
    """Sums as a table, of whole numbers if the target has classes."""
    if target.classes is None:
        return np.array(rows, dtype=np.float64).reshape(-1, width)
    return np.array(rows, dtype=np.int64).reshape(-1, len(target.classes))
