"""Rows of a DuckDB file. Plain SQL: no other library stands between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdtrue.columns.parts import arrow_reader
from holdtrue.errors import InputError, did_you_mean, first_line
from holdtrue.tables.spill import Spill

# Nothing outside the file is read, written or loaded, whatever a query asks for.
_LOCKED: dict[str, Any] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "lock_configuration": "true",
}
_ROWS = 1 << 16


def read_duckdb(path: Path, table: str | None) -> Spill:
    """All rows of a table or view, by default the only one of the file, or of one SELECT.

    The query is run once, since a second run may give its rows in another order.
    """
    import duckdb

    try:
        connection = duckdb.connect(str(path), read_only=True, config=_LOCKED)
    except duckdb.Error as error:
        raise InputError(
            f"{path.name} cannot be opened as a DuckDB file ({first_line(error)}). Close the "
            "program that writes it, or open it with the version of DuckDB that wrote it."
        ) from error
    with connection:
        query = _query(path, connection, table)
        try:
            reader = arrow_reader(connection, query, _ROWS)
            names = list(reader.schema.names)
            repeated = sorted({name for name in names if names.count(name) > 1})
            if repeated:
                raise InputError(
                    f"column names must be distinct. The query gives {repeated[0]!r} "
                    f"{names.count(repeated[0])} times. Rename one with AS."
                )
            spill = Spill()
            for batch in reader:
                spill.append(batch)
        except (duckdb.Error, OSError) as error:
            raise InputError(
                f"DuckDB refuses the query on {path.name}: {first_line(error)}"
            ) from error
    return spill.finish({field.name: field.type for field in reader.schema})


def _query(path: Path, connection: Any, table: str | None) -> str:
    """The one SELECT to run."""
    import duckdb

    listing = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() UNION ALL "
        "SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
    ).fetchall()
    tables = {
        name if schema == "main" else f"{schema}.{name}": (schema, name) for schema, name in listing
    }
    listed = ", ".join(map(repr, tables)) or "none"
    if table is None:
        if len(tables) != 1:
            raise InputError(
                f"{path.name} has {len(tables)} tables ({listed}). Pass the name of one, "
                "or a SELECT, as table= (--table)."
            )
        table = next(iter(tables))
    if table in tables:
        return "SELECT * FROM " + ".".join(quoted(part) for part in tables[table])
    if len(table.split()) < 2:
        raise InputError(
            f"no table {table!r} in {path.name}, which has {listed}." + did_you_mean(table, tables)
        )
    try:
        statements = connection.extract_statements(table)
    except duckdb.Error as error:
        raise InputError(
            f"{table!r} is not a SELECT that DuckDB understands: {first_line(error)}"
        ) from error
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise InputError(f"table must be the name of a table or one SELECT. Got {table!r}.")
    return str(statements[0].query)


def quoted(name: str) -> str:
    """A name as SQL writes it, whatever characters it holds."""
    return '"' + name.replace('"', '""') + '"'
