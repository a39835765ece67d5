"""Which walks to take and when to stop: checked and settled before any work."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from holdtrue.domains.bounds import domains_needed
from holdtrue.domains.kernel import RULES, Domains
from holdtrue.errors import InputError, check_choice, shown
from holdtrue.validation import is_number

STOPS = (
    "auto",
    "held_out_domain",
    "held_out_domain_1se",
    "bonferroni",
    "bound",
    "sign_flip",
    "max_steps",
)
WEIGHTINGS = ("equal", "rows")
CENTERS = ("global", "domain")
_DEFAULT_STEPS = 300
MAX_SINGLE = 20  # more domains than this are held out in parts: pairs of all take too long
N_PARTS = 10
# From this ratio of variances, between domains' means of y by within domains, centres matter.
_MEANS_DIFFER = 0.1


class Variant(NamedTuple):
    """One way to walk."""

    rule: str
    domain_weight: str
    center: str


@dataclass(frozen=True, eq=False)
class Plan:
    """Which walks to take and when to stop."""

    variants: tuple[Variant, ...]  # those to choose from
    stop: str  # one of ``STOPS`` but for ``"auto"``
    max_steps: int  # fixed features included
    fixed: tuple[int, ...] = ()  # features that enter first; a selection has at least these
    stepwise: bool = False
    unlabelled: tuple[np.ndarray, np.ndarray] | None = None  # see `Walk`
    alpha: float = 0.05
    estimate: bool = True  # whether to estimate the error of the whole procedure at a new domain
    nested: bool = True  # whether that estimate chooses anew without each domain, where it can
    seed: int = 0  # draws sign patterns
    n_jobs: int | None = None

    @property
    def by_held_out(self) -> bool:
        """Whether held-out domains choose the length."""
        return self.stop.startswith("held_out_domain")


def check_parameters(rule: Any, stop: Any, max_steps: Any) -> None:
    """Refuse a rule, a stop or a number of steps that does not exist."""
    check_choice("rule", rule, ("auto", *RULES))
    check_choice("stop", stop, STOPS)
    if max_steps is not None and not (is_number(max_steps, numbers.Integral) and max_steps >= 1):
        raise InputError(
            f"max_steps must be a whole number of at least 1, or None. Got {shown(max_steps)}."
        )
    if stop == "max_steps" and max_steps is None:
        raise InputError(
            "stop='max_steps' needs the number of steps. Got max_steps=None. "
            "Pass max_steps=10, or another stop."
        )


def resolved_stop(stop: str, *, grouped: bool, n: float, n_candidates: int, alpha: float) -> str:
    """The stop that is meant for n domains; one that can say nothing is refused.

    ``grouped``: whether the caller named the domains.
    """
    if stop == "auto":
        return "held_out_domain" if grouped and n >= 3 else "bonferroni"
    if stop.startswith("held_out") and n < 3:
        raise InputError(
            f"stop={stop!r} needs at least 3 domains, so that two are left. "
            f"Got {n:g}. Pass stop='bonferroni' or stop='max_steps'."
        )
    if stop == "bound":
        needed = domains_needed(math.log(n_candidates), alpha)
        if n < needed:
            raise InputError(
                f"stop='bound' says nothing here: Theorem 1 needs at least {needed} "
                f"domains for {n_candidates} candidates at alpha={alpha:g}. Got {n:g}. "
                "Pass stop='held_out_domain' or stop='bonferroni'."
            )
    if stop == "sign_flip" and 2.0 ** (1 - n) > alpha:
        least = math.ceil(1 - math.log2(alpha))
        raise InputError(
            f"stop='sign_flip' cannot reject with {n:g} domains: its least p-value is "
            f"{2.0 ** (1 - n):.3g}, above alpha={alpha:g}. It needs {least} domains or more. "
            "Pass stop='held_out_domain' or stop='bonferroni'."
        )
    return stop


def variants_of(
    rule: str, domain_weight: str, centers: Sequence[str], n: float
) -> tuple[Variant, ...]:
    """Every way to walk that is to be compared; "auto" stands for all rules or weightings."""
    for name, value, usual in (
        ("rule", rule, "moderated"),
        ("domain_weight", domain_weight, "equal"),
    ):
        if value == "auto" and n < 3:
            raise InputError(
                f"{name}='auto' needs at least 3 domains, so that two are left. Got {n:g}. "
                f"Pass {name}={usual!r}."
            )
    return tuple(
        Variant(one_rule, weighting, center)
        for center in centers
        for weighting in (WEIGHTINGS if domain_weight == "auto" else (domain_weight,))
        for one_rule in (("moderated", "t", "greedy") if rule == "auto" else (rule,))
    )


def default_steps(n_features: int, n_targets: int, stepwise: bool) -> int:
    """Length of a walk where none was asked for: at most 300 steps for each target."""
    return n_targets * min(n_features if stepwise else 3 * n_features, _DEFAULT_STEPS)


def means_differ(domains: Domains) -> bool:
    """Whether the domains' means of some target differ enough for the centre to matter.

    More, that is, than by a tenth of the variance within domains and by the sampling of rows.
    """
    between, within = domains.mean_y.var(axis=1), domains.var_y.mean(axis=1)
    sampling = (domains.var_y / domains.n_rows).mean(axis=1)
    return bool((between > _MEANS_DIFFER * within + sampling).any())


def held_out_parts(n_domains: int) -> np.ndarray:
    """Part of each domain, shape (n_domains,): one by one up to 20 domains, else 10 parts."""
    return np.arange(n_domains) % (n_domains if n_domains <= MAX_SINGLE else N_PARTS)
