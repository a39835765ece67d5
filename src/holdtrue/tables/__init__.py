"""Tables from files and frames, read one column or one batch at a time."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from holdtrue.tables.files import FILES
from holdtrue.tables.opening import open_table
from holdtrue.tables.table import Fingerprint, Table

# Loaded when first used: a table is opened, or refused, without scikit-learn.
_HOME = {
    "TableEncoder": "holdtrue.tables.encoder",
    "moments_of": "holdtrue.tables.encode",
    "rows_of": "holdtrue.tables.encode",
}
__all__ = [
    "FILES",
    "Fingerprint",
    "Table",
    "TableEncoder",
    "moments_of",
    "open_table",
    "rows_of",
]

if TYPE_CHECKING:
    from holdtrue.tables.encode import moments_of, rows_of
    from holdtrue.tables.encoder import TableEncoder


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'holdtrue.tables' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
