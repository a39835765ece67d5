"""Sums that add: what a fit needs of the rows, so that parts of a table can be summed apart."""

from __future__ import annotations

from holdfast.moments import Moments

__all__ = ["Moments"]
