"""Which walks to take, settled before any work, and the choice among them.

Rule, weighting, centre and length are chosen by domains that took no part in the walk.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from joblib import Parallel, delayed

from holdtrue.domains.bounds import bound_factor, domains_needed
from holdtrue.domains.kernel import RULES, TESTS, TIE, Domains, Walk, domain_weights
from holdtrue.errors import InputError, check_choice, counted
from holdtrue.progress import progress
from holdtrue.validation import check_count

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
_ROUNDING = 1e-12  # share of the error of the empty selection below which a gain is none
_MIN_PATTERNS = 1000
_LONG = 4000  # steps, which take half a second: as long as numba takes to import
_MANY = 10  # fits without a nested score, at least, that one contest makes


# --- the plan -----------------------------------------------------------------------------------


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
    check_count("max_steps", max_steps, 1, "or None")
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


def effects_repeat(domains: Domains, center: str) -> bool:
    """Whether the effects at two domains are equal, or partly so, whatever the data are.

    About the mean of both, one domain's means are off as much as the other's, the other way: their
    product is the same at both, which a T takes for a steady effect.
    """
    return center == "global" and domains.copies.sum() < 3 and means_differ(domains)


def held_out_parts(n_domains: int) -> np.ndarray:
    """Part of each domain, shape (n_domains,): one by one up to 20 domains, else 10 parts."""
    return np.arange(n_domains) % (n_domains if n_domains <= MAX_SINGLE else N_PARTS)


# --- the choice ---------------------------------------------------------------------------------


class Sums(Protocol):
    """What walks are taken on: `Domains`, or sums that depend on which domains are held out."""

    @property
    def copies(self) -> np.ndarray:
        """See `Domains`."""

    @property
    def units(self) -> np.ndarray:
        """See `Domains`."""

    def without(self, held: np.ndarray) -> Domains:
        """Sums for a walk that holds these domains out."""


@dataclass(frozen=True, eq=False)
class Selection:
    """What was chosen, and what held-out domains say about it."""

    variant: Variant
    size: int  # steps to take
    steady_size: int  # steps before the test of the rule says chance for the first time
    # shape (n_steps + 1, n_domains): squared error at each domain of the walk that did not see it,
    # size by size
    held_out: np.ndarray | None
    # shape (n_steps + 1, n_domains): the same about the domain's own mean
    within: np.ndarray | None
    # shape (n_domains,): squared error at each domain, chosen without it where ``is_nested``; nan
    # where unknown
    new_errors: np.ndarray | None
    is_nested: bool
    # shape (n_steps + 1,): mean held-out error of every rule that was tried with the chosen
    # weighting and centre
    rule_curves: dict[str, np.ndarray]
    reason: str


class _Result(NamedTuple):
    """Of one walk: the size at which its test stopped it, and its errors in each part held out.

    The errors have shape (n_kinds, n_sizes, n_domains of the part): whole, and about each domain's
    own mean where the plan needs them.
    """

    tested_size: int
    errors: dict[int, np.ndarray]


class _Choice(NamedTuple):
    """The best length of one variant, and its held-out errors domain by domain."""

    variant: Variant
    size: int | None  # none: where each walk's test stops
    errors: np.ndarray
    within: np.ndarray

    def mean(self, share: np.ndarray) -> float:
        """Held-out error by which variants of one centre compare."""
        return float((self.within if self.variant.center == "domain" else self.errors) @ share)


# --- walks --------------------------------------------------------------------------------------


def new_walk(
    sums: Sums,
    plan: Plan,
    variant: Variant,
    held: Sequence[int] = (),
) -> Walk:
    """A walk at its start that holds these domains out."""
    out = np.array(held, dtype=np.intp)
    domains = sums.without(out)
    return Walk(
        domains,
        domain_weights(domains, variant.domain_weight, out),
        rule=variant.rule,
        stepwise=plan.stepwise,
        center=variant.center,
        unlabelled=plan.unlabelled,
        fixed=plan.fixed,
        alpha=plan.alpha,
    )


def select(walks: Mapping[Variant, Walk], sums: Sums, plan: Plan) -> Selection:
    """Take the walks, one per variant, and choose one of them and its length.

    They are walked here, so that the caller can read them after an interruption.
    """
    n = len(sums.copies)
    holds_out = n >= 3 and (plan.estimate or plan.by_held_out or len(walks) > 1)
    held = _HeldOut(tuple(walks), sums, plan)
    compiled = holds_out and held.is_long
    tested_sizes = {v: _run(walk, plan, None, compiled=compiled) for v, walk in walks.items()}
    if not holds_out:
        (variant,) = walks
        walk, size = walks[variant], tested_sizes[variant]
        return Selection(
            variant,
            size,
            _steady_size(walk, variant, plan, size),
            held_out=None,
            within=None,
            new_errors=np.full(n, np.nan) if plan.estimate else None,
            is_nested=False,
            rule_curves={},
            reason=_why_tested(walk, plan, size),
        )
    held.take_walks(sums, {v: len(walk.order) for v, walk in walks.items()})
    choice = held.best(None)
    variant = choice.variant
    size = tested_sizes[variant] if choice.size is None else choice.size
    table = held.table(variant, None)[:, :-1]
    share = sums.copies / sums.copies.sum()
    reason = (
        _why_held_out(variant, held, size, plan)
        if plan.by_held_out
        else _why_tested(walks[variant], plan, size)
    )
    for name, value in (("rule", variant.rule), ("domain_weight", variant.domain_weight)):
        if len({getattr(v, name) for v in walks}) > 1:
            reason += f"; {name} {value!r} has the least error on held-out domains"
    if variant.center == "domain":
        reason += "; effects within domains"
    curves = {v.rule: held.table(v, None)[0, :-1] @ share for v in walks if v[1:] == variant[1:]}
    return Selection(
        variant,
        size,
        _steady_size(walks[variant], variant, plan, tested_sizes[variant]),
        held_out=table[0],
        within=table[1] if held.has_within else None,
        new_errors=held.new_errors(choice) if plan.estimate else None,
        is_nested=held.has_pairs or not held.chooses,
        rule_curves=curves,
        reason=reason,
    )


class _HeldOut:
    """Walks without each part of the domains, and without each pair of parts.

    A walk without the parts a and b serves twice: to judge b for a, and a for b.
    """

    def __init__(self, variants: tuple[Variant, ...], sums: Sums, plan: Plan):
        self._variants, self._plan, self.copies = variants, plan, sums.copies
        part_of = held_out_parts(int(sums.units.max()) + 1)[sums.units]
        self.parts = [np.flatnonzero(part_of == a) for a in range(part_of.max() + 1)]
        self.chooses = plan.by_held_out or len(variants) > 1
        self.has_within = any(v.center == "domain" for v in variants)
        left = len(sums.copies) - 2 * len(self.parts[0])
        self.has_pairs = plan.estimate and plan.nested and self.chooses and left >= 2
        self._keys: list[tuple[int, ...]] = [(a,) for a in range(len(self.parts))]
        if self.has_pairs:
            self._keys += [(a, b) for a in range(len(self.parts)) for b in range(a)]
        n_fits = 1 if plan.nested else _MANY
        self.is_long = n_fits * len(self._keys) * len(variants) * plan.max_steps > _LONG

    def take_walks(self, sums: Sums, n_steps: Mapping[Variant, int]) -> None:
        """Take every walk, each as long as the one that holds nothing out."""
        self._n_steps = n_steps
        tasks = [(v, key) for v in self._variants for key in self._keys]
        walks = Parallel(n_jobs=self._plan.n_jobs, prefer="threads", return_as="generator")(
            delayed(self._one)(sums, v, key) for v, key in tasks
        )
        done = progress("held-out walks", walks, len(tasks))
        self._results = dict(zip(tasks, done, strict=True))

    def _one(self, sums: Sums, variant: Variant, key: tuple[int, ...]) -> _Result:
        held = np.concatenate([self.parts[a] for a in key]).tolist()
        walk = new_walk(sums, self._plan, variant, held)
        n_steps = self._n_steps[variant]
        size = _run(walk, self._plan, n_steps, compiled=self.is_long)
        kinds = (walk.errors(), walk.errors_within()) if self.has_within else (walk.errors(),)
        errors = np.array(kinds)
        short = max(n_steps, size) + 1 - errors.shape[1]
        if short > 0:  # a walk that ends early stays where it is
            errors = np.concatenate([errors, np.repeat(errors[:, -1:], short, axis=1)], axis=1)
        return _Result(size, {a: errors[:, :, self.parts[a]] for a in key})

    def table(self, variant: Variant, without: int | None) -> np.ndarray:
        """Errors of unseen domains, shape (n_kinds, n_steps + 2, n_domains).

        The last row has the errors at the size where the walk's test stops. ``without`` a part of
        the domains, which is nan in the table.
        """
        n_sizes = self._n_steps[variant] + 1
        table = np.full((1 + self.has_within, n_sizes + 1, len(self.copies)), np.nan)
        for a, part in enumerate(self.parts):
            if a != without:
                key = (a,) if without is None else (max(a, without), min(a, without))
                result = self._results[variant, key]
                table[:, :-1, part] = result.errors[a][:, :n_sizes]
                table[:, -1, part] = result.errors[a][:, result.tested_size]
        return table

    def best(self, without: int | None) -> _Choice:
        """The variant and length with the least held-out error, ``without`` a part of them."""
        plan, n_fixed = self._plan, len(self._plan.fixed)
        seen = np.ones(len(self.copies), dtype=bool)
        if without is not None:
            seen[self.parts[without]] = False
        copies = self.copies[seen]
        share = copies / copies.sum()
        choices: dict[str, _Choice] = {}
        for variant in self._variants:
            table = self.table(variant, without)[..., seen]
            if plan.by_held_out:
                losses = table[int(variant.center == "domain"), n_fixed:-1]
                n_domains = copies.sum() if plan.stop.endswith("1se") else None
                size = n_fixed + _least(losses, share, n_domains)
                choice = _Choice(variant, size, table[0, size], table[-1, size])
            else:
                choice = _Choice(variant, None, table[0, -1], table[-1, -1])
            best = choices.get(variant.center)
            if best is None or choice.mean(share) < best.mean(share) * (1 - TIE):
                choices[variant.center] = choice
        if len(choices) == 2:
            whole, within, empty = choices["global"], choices["domain"], float(table[0, 0] @ share)
            if not _within_is_better(whole, within, share, empty):
                return whole
        return choices.get("domain") or next(iter(choices.values()))

    def new_errors(self, choice: _Choice) -> np.ndarray:
        """Error at each domain of what is chosen without it, or of ``choice`` where it cannot be.

        Shape (n_domains,); nan where a walk without the domain could not have been tested.
        """
        plan, n = self._plan, len(self.copies)
        errors = np.full(n, np.nan)
        for a, part in enumerate(self.parts):
            nested = self.best(a) if self.has_pairs else choice
            result = self._results[nested.variant, (a,)]
            size = result.tested_size if nested.size is None else nested.size
            if plan.stop != "sign_flip" or 2.0 ** (1 - n + len(part)) <= plan.alpha:
                errors[part] = result.errors[a][0, size]
        return errors


def _within_is_better(whole: _Choice, within: _Choice, share: np.ndarray, empty: float) -> bool:
    """Whether effects within domains beat those about the global centre.

    They must lower the error about the domains' own means by more than one standard error, and by
    a larger factor than they raise the whole error: where means differ much, the whole error is
    mostly chance. A domain of one row has no error about its own mean but rounding, and nor has a
    perfect prediction; rounding decides nothing. ``empty`` is the error of the empty selection.
    """
    gain = whole.within - within.within
    mean = gain @ share
    error = math.sqrt((gain - mean) ** 2 @ share / (len(gain) - 1))
    errors = [float(c.errors @ share) for c in (whole, within)]
    factors = [errors[0] * (whole.within @ share), errors[1] * (within.within @ share)]
    # A gain in a single domain is exactly one standard error; either may be 0 but for rounding.
    least = max(error * (1 + TIE), _ROUNDING * empty)
    return bool(mean > least and factors[1] < factors[0])


def _run(walk: Walk, plan: Plan, least: int | None, *, compiled: bool) -> int:
    """Walk on; the size at which the walk's test stops it. See `Walk.run`."""
    n_draws = max(_MIN_PATTERNS, math.ceil(20 / plan.alpha))
    return walk.run(
        plan.max_steps,
        test=plan.stop if plan.stop in TESTS else None,
        bound=bound_factor(walk.n_candidates, plan.alpha) if plan.stop == "bound" else math.inf,
        n_draws=n_draws,
        rng=np.random.RandomState(plan.seed) if plan.stop == "sign_flip" else None,
        least=least,
        compiled=compiled,
    )


def _steady_size(walk: Walk, variant: Variant, plan: Plan, tested_size: int) -> int:
    """Steps before the test of the rule first says chance: that of the stop, else Bonferroni's."""
    if effects_repeat(walk.domains, variant.center):
        return 0
    if plan.stop in ("bound", "sign_flip"):
        return tested_size
    chance = np.flatnonzero(np.abs(walk.t) < walk.levels())  # False for fixed features
    return int(chance[0]) if len(chance) else len(walk.order)


def _least(losses: np.ndarray, share: np.ndarray, n_domains: float | None) -> int:
    """Size with the least mean loss; given ``n_domains``, the smallest within one standard error.

    The standard error is that of the difference, domain by domain: some domains are harder than
    others at every size, which says nothing about the size.
    """
    best = _first_least(losses @ share)
    if n_domains is None:
        return best
    excess = losses[: best + 1] - losses[best]
    mean = excess @ share
    variance = (excess - mean[:, None]) ** 2 @ share / (n_domains - 1)
    return int(np.argmax(mean <= np.sqrt(variance) * (1 + TIE)))


def _first_least(losses: np.ndarray) -> int:
    """The first of the sizes with the least loss, which rounding does not tell apart."""
    return int(np.argmax(losses <= losses.min() * (1 + TIE)))


# --- in words -----------------------------------------------------------------------------------


def _why_held_out(variant: Variant, held: _HeldOut, size: int, plan: Plan) -> str:
    n_domains, n_parts = len(held.copies), len(held.parts)
    n = f"{held.copies.sum():g}"
    which = "each of" if n_domains == n_parts else f"{n_parts} parts of"
    is_within = variant.center == "domain"
    what = "error about the mean of each held-out domain" if is_within else "error"
    if plan.stop.endswith("1se"):
        least = _first_least(held.table(variant, None)[int(is_within), :-1] @ held.copies)
        return (
            f"the smallest size within one standard error of the least {what}, which is at "
            f"{counted(least, 'step')}, holding out {which} {n} domains"
        )
    where = "" if is_within else " on held-out domains"
    return f"the {what}{where} is least at {counted(size, 'step')}, holding out {which} {n}"


def _why_tested(walk: Walk, plan: Plan, size: int) -> str:
    if size < len(walk.order):
        t = abs(walk.t[size])
        if plan.stop == "sign_flip":
            return f"sign_flip: the next feature (|T| = {t:.3g}) is no more than chance"
        level = (
            walk.levels()[size]
            if plan.stop == "bonferroni"
            else bound_factor(walk.n_candidates, plan.alpha)
        )
        return f"{plan.stop}: the next |T| is {t:.3g}, below {level:.3g}"
    if walk.ended:
        return "no feature is left that explains anything"
    return f"max_steps={plan.max_steps} reached"
