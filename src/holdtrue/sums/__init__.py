"""Sums that add: what a fit needs of the rows, so that parts of a table can be summed apart."""

from holdtrue.sums.counts import Counts
from holdtrue.sums.moments import Moments
from holdtrue.sums.profile import Profile

__all__ = ["Counts", "Moments", "Profile"]
