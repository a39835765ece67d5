"""Tables from files and frames, read one column or one batch at a time."""

from typing import TYPE_CHECKING, Any

from holdtrue.tables.files import FILES
from holdtrue.tables.table import Fingerprint, Table, open_table

if TYPE_CHECKING:
    from holdtrue.tables.encoder import TableEncoder, moments_of, rows_of

__all__ = [
    "FILES",
    "Fingerprint",
    "Table",
    "TableEncoder",
    "moments_of",
    "open_table",
    "rows_of",
]


def __getattr__(name: str) -> Any:
    """What needs scikit-learn is loaded when first used: a table is opened, or refused, without."""
    if name not in __all__:
        raise AttributeError(f"module 'holdtrue.tables' has no attribute {name!r}")
    from holdtrue.tables import encoder

    return getattr(encoder, name)
