"""The rule and the length of a walk, chosen by domains that took no part in it."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit
from sklearn.utils.parallel import Parallel, delayed

from holdtrue.domains import kernel
from holdtrue.domains.bounds import bound_factor, domains_needed
from holdtrue.domains.kernel import RULES, Walk
from holdtrue.path import SelectionPath
from holdtrue.progress import progress_bar
from holdtrue.validation import check_choice, is_number

STOPS = (
    "auto",
    "held_out_domain",
    "held_out_domain_1se",
    "bonferroni",
    "bound",
    "sign_flip",
    "max_steps",
)
_MAX_SINGLE = 20  # more domains than this are held out in parts: pairs of all take too long
_PARTS = 10
_MIN_PATTERNS = 1000
_DEFAULT_STEPS = 300


@dataclass(frozen=True)
class Plan:
    """How to walk and when to stop.

    Attributes
    ----------
    stop : str
        One of ``STOPS`` but for ``"auto"``.
    max_steps : int
    n_fixed : int
        The least size.
    alpha : float
    nested : bool
        Whether to estimate the error of the whole procedure on a new domain.
    n_jobs : int or None
    """

    stop: str
    max_steps: int
    n_fixed: int
    alpha: float
    nested: bool
    n_jobs: int | None

    @property
    def by_held_out(self) -> bool:
        """Whether held-out domains choose the length."""
        return self.stop.startswith("held_out_domain")


@dataclass(frozen=True, eq=False)
class Selection:
    """What was chosen, and the evidence.

    Attributes
    ----------
    rule : str
    size : int
    held_out : ndarray of shape (n_steps + 1, n_domains) or None
        Squared error in each domain of the walk that did not see it, size by size.
    nested : ndarray of shape (n_domains,) or None
        Squared error in each domain, rule and length chosen without it.
    curves : dict of ndarray of shape (n_steps + 1,)
        Mean held-out error of every rule that was tried.
    reason : str
    """

    rule: str
    size: int
    held_out: np.ndarray | None
    nested: np.ndarray | None
    curves: dict[str, np.ndarray]
    reason: str


@dataclass(frozen=True, eq=False)
class _Result:
    """Of one walk: the size at which its own test stopped it, and the losses of every size."""

    own_size: int
    losses: np.ndarray


def check_parameters(owner: str, rule: Any, stop: Any, max_steps: Any) -> None:
    """Refuse a rule, a stop or a number of steps that does not exist."""
    check_choice(owner, "rule", rule, ("auto", *RULES))
    check_choice(owner, "stop", stop, STOPS)
    if max_steps is not None and not (is_number(max_steps, numbers.Integral) and max_steps >= 1):
        raise ValueError(
            f"{owner}: max_steps must be a whole number of at least 1, or None. Got {max_steps!r}."
        )
    if stop == "max_steps" and max_steps is None:
        raise ValueError(
            f"{owner}: stop='max_steps' needs the number of steps. Got max_steps=None. "
            "Pass max_steps=10, or another stop."
        )


def resolved_stop(
    owner: str, rule: str, stop: str, *, grouped: bool, n: float, n_candidates: int, alpha: float
) -> str:
    """The stop that is meant, once the domains are known; one that can say nothing is refused.

    Parameters
    ----------
    owner, rule, stop : str
    grouped : bool
        Whether the caller named the domains.
    n : float
        Number of domains.
    n_candidates : int
    alpha : float
    """
    if rule == "auto" and n < 3:
        raise ValueError(
            f"{owner}: rule='auto' needs at least 3 domains, so that two are left. Got {n:g}. "
            "Pass rule='moderated'."
        )
    if stop == "auto":
        return "held_out_domain" if grouped and n >= 3 else "bonferroni"
    if stop.startswith("held_out") and n < 3:
        raise ValueError(
            f"{owner}: stop={stop!r} needs at least 3 domains, so that two are left. "
            f"Got {n:g}. Pass stop='bonferroni' or stop='max_steps'."
        )
    if stop == "bound":
        needed = domains_needed(math.log(n_candidates), alpha)
        if n < needed:
            raise ValueError(
                f"{owner}: stop='bound' says nothing here: Theorem 1 needs at least {needed} "
                f"domains for {n_candidates} candidates at alpha={alpha:g}. Got {n:g}. "
                "Pass stop='held_out_domain' or stop='bonferroni'."
            )
    if stop == "sign_flip" and 2.0 ** (1 - n) > alpha:
        least = math.ceil(1 - math.log2(alpha))
        raise ValueError(
            f"{owner}: stop='sign_flip' cannot reject with {n:g} domains: its least p-value is "
            f"{2.0 ** (1 - n):.3g}, above alpha={alpha:g}. It needs {least} domains or more. "
            "Pass stop='held_out_domain' or stop='bonferroni'."
        )
    return stop


def default_steps(n_features: int, n_targets: int, stepwise: bool) -> int:
    """Length of a walk where none was asked for: at most 300 steps for each target."""
    return n_targets * min(n_features if stepwise else 3 * n_features, _DEFAULT_STEPS)


def select(
    walks: Mapping[str, Walk],
    walk_without: Callable[[str, np.ndarray], Walk],
    weight: np.ndarray,
    plan: Plan,
    units: np.ndarray | None = None,
) -> Selection:
    """Take the walks, and choose the rule and the length.

    Parameters
    ----------
    walks : dict of Walk
        One per rule to be tried, not yet walked. They are walked here, so that the caller can read
        what there is of them after an interruption.
    walk_without : callable
        ``(rule, held)`` gives a fresh walk that holds these domains (indices) out.
    weight : ndarray of shape (n_domains,)
    plan : Plan
    units : ndarray of int, shape (n_domains,), optional
        Domains of one number are held out together.
    """
    own_sizes = {rule: _walked(walk, plan, full=True) for rule, walk in walks.items()}
    n = len(weight)
    if n < 3 or not (plan.nested or plan.by_held_out or len(walks) > 1):
        (rule,) = walks
        size = own_sizes[rule]
        nested = np.full(n, np.nan) if plan.nested else None
        return Selection(rule, size, None, nested, {}, _why_tested(walks[rule], plan, size))

    units = np.arange(n) if units is None else units
    n_units = int(units.max()) + 1
    part_of = units % (n_units if n_units <= _MAX_SINGLE else _PARTS)
    parts = [np.flatnonzero(part_of == a) for a in range(part_of.max() + 1)]
    n_steps = {rule: len(walk.order) for rule, walk in walks.items()}
    wanted: list[tuple[int, ...]] = [(a,) for a in range(len(parts))]
    chooses = plan.by_held_out or len(walks) > 1
    if plan.nested and chooses and n - 2 * len(parts[0]) >= 2:
        # A walk without the parts a and b serves twice: to judge b for a, and a for b.
        wanted += [(a, b) for a in range(len(parts)) for b in range(a)]

    def one(rule: str, key: tuple[int, ...]) -> _Result:
        walk = walk_without(rule, np.concatenate([parts[a] for a in key]))
        size = _walked(walk, plan, full=False, least=n_steps[rule])
        losses = np.array(walk.losses)
        short = max(n_steps[rule], size) + 1 - len(losses)
        tick()
        return _Result(size, np.pad(losses, ((0, max(short, 0)), (0, 0)), mode="edge"))

    tasks = [(rule, key) for rule in walks for key in wanted]
    with progress_bar("held-out walks", len(tasks)) as tick:
        done = Parallel(n_jobs=plan.n_jobs, prefer="threads")(delayed(one)(*task) for task in tasks)
    results = dict(zip(tasks, done, strict=True))

    def held_out(rule: str, without: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Losses (n_steps + 1, n_domains) of unseen domains, and each one's at its own size."""
        table = np.full((n_steps[rule] + 1, n), np.nan)
        own = np.full(n, np.nan)
        for a, part in enumerate(parts):
            if a != without:
                key = (a,) if without is None else (max(a, without), min(a, without))
                result = results[rule, key]
                table[:, part] = result.losses[: len(table), part]
                own[part] = result.losses[result.own_size, part]
        return table, own

    def best(without: int | None) -> tuple[str, int | None]:
        """Rule and length with the least error on held-out domains, ``without`` a part of them."""
        choices: list[tuple[float, str, int | None]] = []
        for rule in walks:
            table, own = held_out(rule, without)
            seen = ~np.isnan(own)
            w = weight[seen] / weight[seen].sum()
            if not plan.by_held_out:
                choices.append((own[seen] @ w, rule, None))
                continue
            n_seen = weight[seen].sum() if plan.stop.endswith("1se") else None
            size = _least(table[plan.n_fixed :, seen], w, n_seen)
            choices.append((table[plan.n_fixed + size, seen] @ w, rule, plan.n_fixed + size))
        _, rule, length = min(choices, key=lambda choice: choice[0])
        return rule, length

    rule, length = best(None)
    size = own_sizes[rule] if length is None else length
    curves = {name: held_out(name, None)[0] @ weight / weight.sum() for name in walks}
    nested = None
    if plan.nested:
        nested = np.full(n, np.nan)
        for a, part in enumerate(parts):
            if chooses and len(wanted) == len(parts):
                break  # too few domains to leave two out
            chosen, length = best(a) if chooses else (rule, None)
            result = results[chosen, (a,)]
            at = result.own_size if length is None else length
            if plan.stop != "sign_flip" or 2.0 ** (1 - n + len(part)) <= plan.alpha:
                nested[part] = result.losses[at, part]
    reason = (
        _why_held_out(curves[rule], size, plan, weight, len(parts))
        if plan.by_held_out
        else _why_tested(walks[rule], plan, size)
    )
    if len(walks) > 1:
        reason += f"; rule {rule!r} has the least error on held-out domains"
    return Selection(rule, size, held_out(rule, None)[0], nested, curves, reason)


def path_of(
    estimator: Any,
    walk: Walk,
    weight: np.ndarray,
    held_out: np.ndarray | None,
    size: int,
    reason: str,
) -> SelectionPath:
    """The walk as a path: errors on held-out domains where there were any, and on the others."""
    share = weight / weight.sum()
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        names = [f"x{j}" for j in range(estimator.n_features_in_)]
    n_sizes = len(walk.order) + 1  # an interruption may fall between two lists
    return SelectionPath(
        order=np.array(walk.order, dtype=np.intp),
        names=tuple(names[i] for i in walk.order),
        scores=np.full(n_sizes, np.nan) if held_out is None else held_out @ share,
        chosen_size=size,
        reason=reason,
        unit="mean squared error",
        train_scores=np.array(walk.losses[:n_sizes]) @ share,
    )


def interval(scores: np.ndarray, alpha: float) -> tuple[float, float]:
    """Student's interval for the mean over domains; errors are not negative."""
    n, mean = len(scores), float(scores.mean())
    half = -float(stdtrit(n - 1, alpha / 2)) * float(scores.std(ddof=1)) / math.sqrt(n)
    return max(mean - half, 0.0), mean + half


def _walked(walk: Walk, plan: Plan, *, full: bool, least: int = 0) -> int:
    """Walk on; the size at which the walk's own test stops it.

    The full walk takes one step more than its test allows, so that one sees it fail. The others
    go at least as far as the full one.
    """
    own_size: int | None = None
    tested = plan.stop in ("bonferroni", "bound", "sign_flip")
    signs = copies = np.empty(0)
    if plan.stop == "sign_flip":
        copies = np.repeat(np.arange(len(walk.weight)), np.rint(walk.weight).astype(int))
        n_draws = max(_MIN_PATTERNS, math.ceil(20 / plan.alpha))
        signs = kernel.sign_patterns(len(copies), n_draws, np.random.RandomState(0))
    while len(walk.order) < plan.max_steps:
        significant = True
        if own_size is None and plan.stop == "sign_flip":
            significant = walk.p_value(signs, copies) <= plan.alpha
        if not walk.step():
            break
        if own_size is None and plan.stop == "bonferroni":
            significant = abs(walk.t[-1]) >= walk.levels[-1]
        elif own_size is None and plan.stop == "bound":
            significant = abs(walk.t[-1]) >= bound_factor(walk.n_candidates, plan.alpha)
        if not significant:
            own_size = len(walk.order) - 1
        if tested and own_size is not None and (full or len(walk.order) >= least):
            break
    return len(walk.order) if own_size is None else own_size


def _least(losses: np.ndarray, weight: np.ndarray, n_domains: float | None) -> int:
    """Size with the least mean loss, or the least size within one standard error of so many.

    The error is that of the difference, domain by domain: some domains are harder than others at
    every size, which says nothing about the size.
    """
    best = int(np.argmin(losses @ weight))
    if n_domains is None:
        return best
    excess = losses[: best + 1] - losses[best]
    mean = excess @ weight
    variance = (excess - mean[:, None]) ** 2 @ weight / (n_domains - 1)
    return int(np.argmax(mean <= np.sqrt(variance)))


def _why_held_out(
    curve: np.ndarray, size: int, plan: Plan, weight: np.ndarray, n_parts: int
) -> str:
    n = f"{weight.sum():g}"
    held = "each of" if len(weight) == n_parts else f"{n_parts} parts of"
    if plan.stop.endswith("1se"):
        return (
            f"the least size within one standard error of the least error, which is at "
            f"{_steps(int(np.argmin(curve)))}, holding out {held} {n} domains"
        )
    return f"the error on held-out domains is least at {_steps(size)}, holding out {held} {n}"


def _why_tested(walk: Walk, plan: Plan, size: int) -> str:
    if size < len(walk.order):
        t = abs(walk.t[size])
        if plan.stop == "sign_flip":
            return f"sign_flip: the next feature (|T| = {t:.3g}) is no more than chance"
        level = (
            walk.levels[size]
            if plan.stop == "bonferroni"
            else bound_factor(walk.n_candidates, plan.alpha)
        )
        return f"{plan.stop}: the next |T| is {t:.3g}, below {level:.3g}"
    if walk.ended:
        return "no feature is left that explains anything"
    return f"max_steps={plan.max_steps} reached"


def _steps(count: int) -> str:
    return f"{count} step" if count == 1 else f"{count} steps"
