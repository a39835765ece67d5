"""Tables in: files and frames, of which one column or one batch is in memory at a time."""

from holdtrue.tables.opening import FILES, Fingerprint, Table, open_table

__all__ = ["FILES", "Fingerprint", "Table", "open_table"]
