"""Words that answers share."""

from __future__ import annotations

from collections.abc import Sequence

DRAWN = 25  # most rows of a chart


def sentence(clause: str) -> str:
    """The clause with a capital."""
    return clause[:1].upper() + clause[1:]


def count(count: int, thing: str) -> str:
    """How many of what."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")


def verb(count: int, verb: str) -> str:
    """The verb for so many."""
    if verb == "be":
        return "is" if count == 1 else "are"
    return verb + ("s" if count == 1 else "")


def listed(names: Sequence[str], limit: int = 6) -> str:
    """Names in a sentence: the first few, and how many more."""
    shown = [repr(str(name)) for name in names[:limit]]
    if len(names) > limit:
        return f"{', '.join(shown)} and {len(names) - limit} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
