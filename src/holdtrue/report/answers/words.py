"""Words that answers share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from holdtrue.charts import number
from holdtrue.path import SelectionPath, skill_of

_NO_VOWEL = ("eu", "one", "uni", "use", "usu", "uti")


def capitalised(clause: str) -> str:
    """The clause as the beginning of a sentence."""
    return clause[:1].upper() + clause[1:]


def counted(n: int, noun: str) -> str:
    """The number and the noun, such as "3 columns"."""
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def an(noun: str) -> str:
    """The noun with its article: "a site", "an id", "a user"."""
    sounds = noun.lower()
    is_vowel = sounds.startswith(("a", "e", "i", "o", "u"))
    return f"an {noun}" if is_vowel and not sounds.startswith(_NO_VOWEL) else f"a {noun}"


def verb(n: int, verb: str) -> str:
    """The verb for one thing or for several."""
    if verb == "be":
        return "is" if n == 1 else "are"
    return verb + ("s" if n == 1 else "")


def listed(names: Sequence[str], limit: int = 6) -> str:
    """Names in a sentence: the first few, and how many more."""
    shown = [repr(str(name)) for name in names[:limit]]
    if len(names) > limit:
        return f"{', '.join(shown)} and {len(names) - limit} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def itemised(items: Sequence[str], limit: int = 8) -> str:
    """Clauses joined by semicolons: the first few, and how many more."""
    more = f"; and {len(items) - limit} more" if len(items) > limit else ""
    return "; ".join(items[:limit]) + more


def table_skill(score: float, empty: float) -> float:
    """The skill of a score, to three decimals: more would be noise."""
    return round(float(skill_of(score, empty)), 3)


def skill_words(score: float, empty: float) -> str:
    """The skill of a score in brackets, to two decimals; nothing where it is not known."""
    skill = float(skill_of(score, empty))
    return f" (skill {number(round(skill, 2))})" if math.isfinite(skill) else ""


def step_columns(path: SelectionPath, candidates: Sequence[int]) -> dict[str, tuple[str, Any]]:
    """Columns of a table: when candidates first enter, and the error and skill reached then."""
    first = dict(zip(path.order.tolist()[::-1], range(path.n_steps, 0, -1), strict=True))
    steps = [first.get(j) for j in candidates]
    errors = [None if step is None else float(path.scores[step]) for step in steps]
    skills = [None if error is None else table_skill(error, path.scores[0]) for error in errors]
    return {"enters": ("enters at", steps), "error": ("error", errors), "skill": ("skill", skills)}
