"""Tables and figures of `experiments.categories`, made from its CSVs alone."""

from __future__ import annotations

from pathlib import Path


def report(folder: Path) -> None:
    """Write README.md and the figures beside the CSVs that are there."""
