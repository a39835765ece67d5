"""A walk and what was chosen from it as a path with its evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from holdtrue.domains import choose
from holdtrue.domains.base import SINGLE_ROWS, class_shares, missing_classes
from holdtrue.domains.bounds import mean_interval, new_domain_interval
from holdtrue.domains.choose import Selection
from holdtrue.domains.kernel import Domains, Walk
from holdtrue.domains.plan import Plan
from holdtrue.errors import shown
from holdtrue.evidence import DomainEvidence
from holdtrue.path import SelectionPath, ShowsPath
from holdtrue.validation import feature_names


class NewDomain(NamedTuple):
    """The error to expect at a domain that was not seen; nan where it is not known."""

    score: float
    interval: tuple[float, float]  # of one new domain
    mean_interval: tuple[float, float]  # of the mean over domains


class Walked(NamedTuple):
    """A walk, what was chosen from it, and what to expect of it."""

    walk: Walk
    selection: Selection
    expected: NewDomain


class WalksDomains(ShowsPath):
    """An estimator whose answer is a walk over domains."""

    def _take_walks(
        self,
        sums: choose.Sums,
        plan: Plan,
        labels: np.ndarray | None,
        classes: np.ndarray | None,
        counted: str,
        *,
        nested_only: bool = False,
    ) -> Walked:
        """Walk, choose, and keep the path and what follows from it; an interrupted path too.

        ``labels`` is None where every row is its own domain, ``classes`` where y is a number.
        ``counted`` says what the domains are, such as ``"8 domains"``, and ends the reason.
        ``nested_only``: expect nothing where the choice has seen the domain that is judged.
        """
        names = feature_names(self)
        walks = {variant: choose.new_walk(sums, plan, variant) for variant in plan.variants}
        try:
            selection = choose.select(walks, sums, plan)
        except KeyboardInterrupt:
            longest = max(walks.values(), key=lambda walk: len(walk.order))
            self.path_ = _path(longest, names, None, 0, "interrupted", None)
            raise
        walk = walks[selection.variant]
        expected = new_domain(selection, plan.alpha, nested_only=nested_only)
        evidence = domain_evidence(
            walk,
            selection,
            names,
            domains=[] if labels is None else [str(label) for label in labels],
            targets=[] if classes is None else [str(c) for c in classes[len(classes) == 2 :]],
            notes=notes_on(walk.domains, labels, classes, selection, expected.score),
            expected=expected,
        )
        reason = f"{selection.reason}; {counted}"
        self.path_ = _path(walk, names, selection.held_out, selection.size, reason, evidence)
        self.support_ = self.path_.support(len(names))
        self.ranking_ = self.path_.ranking(len(names))
        self.steady_ = evidence.steady
        self.rule_ = selection.variant.rule
        self.t_statistics_, self.chance_levels_ = np.array(walk.t), np.array(walk.levels)
        return Walked(walk, selection, expected)


def _path(
    walk: Walk,
    names: Sequence[str],
    held_out: np.ndarray | None,
    size: int,
    reason: str,
    evidence: DomainEvidence | None,
) -> SelectionPath:
    share = walk.domains.copies / walk.domains.copies.sum()
    order = list(walk.order)
    return SelectionPath(
        order=order,
        names=tuple(names[i] for i in order),
        scores=np.full(len(order) + 1, np.nan) if held_out is None else held_out @ share,
        chosen_size=size,
        reason=reason,
        unit="mean squared error",
        train_scores=walk.errors()[: len(order) + 1] @ share,
        evidence=evidence,
    )


def new_domain(selection: Selection, alpha: float, *, nested_only: bool = False) -> NewDomain:
    """Error to expect at a new domain, with both intervals at level ``1 - alpha``."""
    errors, held_out = selection.new_errors, selection.held_out
    known = selection.is_nested or not nested_only
    if not known or errors is None or held_out is None or np.isnan(errors).any():
        unknown = (math.nan, math.nan)
        return NewDomain(math.nan, unknown, unknown)
    return NewDomain(
        float(errors.mean()),
        new_domain_interval(errors, 1 - alpha, float(held_out[0].mean())),
        mean_interval(errors, 1 - alpha),
    )


def domain_evidence(
    walk: Walk,
    selection: Selection,
    names: Sequence[str],
    domains: Sequence[str],
    targets: Sequence[str],
    notes: Sequence[str],
    expected: NewDomain,
) -> DomainEvidence:
    """What the selection rests on, for displays, reports and commands."""
    none = np.empty((len(walk.order) + 1, 0))
    known = selection.new_errors
    scale = np.where(walk.scale > 0, walk.scale, 1.0)[:, None]
    effects = np.where(walk.usable, walk.start / scale, 0.0).transpose(0, 2, 1)
    return DomainEvidence(
        names=tuple(names),
        domains=tuple(domains),
        targets=tuple(targets),
        effects=effects if domains else effects[:, :, :0],
        n_rows=walk.domains.n_rows if domains else np.empty(0),
        t_scores=walk.first_t,
        step_t=np.array(walk.t),
        chance_levels=np.array(walk.levels),
        steady=steady_mask(walk, selection),
        held_out=none if selection.held_out is None else selection.held_out,
        held_out_within=none if selection.within is None else selection.within,
        new_errors=np.empty(0) if known is None or math.isnan(expected.score) else known,
        new_domain_score=expected.score,
        new_domain_low=expected.interval[0],
        new_domain_high=expected.interval[1],
        mean_low=expected.mean_interval[0],
        mean_high=expected.mean_interval[1],
        rule=selection.variant.rule,
        domain_weight=selection.variant.domain_weight,
        center=selection.variant.center,
        notes=tuple(notes),
    )


def steady_mask(walk: Walk, selection: Selection) -> np.ndarray:
    """Which features entered beyond chance, shape (n_features,); fixed ones were not tested."""
    steady = np.zeros(len(walk.e2), dtype=bool)
    for i, t in zip(walk.order[: selection.steady_size], walk.t, strict=False):
        steady[i] |= not math.isnan(t)
    return steady


# --- notes for the reader -----------------------------------------------------------------------


def notes_on(
    sums: Domains,
    labels: np.ndarray | None,
    classes: np.ndarray | None,
    selection: Selection,
    score: float,
) -> list[str]:
    """What a reader of the result must know, in sentences."""
    if labels is None:
        return []
    notes = _thin_domains(sums, labels)
    if classes is not None:
        meaning = (
            "Their effects compare the domain with the others, not its classes. Leave them out if "
            "that is not meant."
        )
        shares = class_shares(sums.mean_y.T)
        notes += missing_classes(shares, sums.n_rows, labels, classes, meaning)
    if len(labels) < 3 and selection.new_errors is not None:
        notes.append(
            "of 2 domains none can be held out, so that new_domain_score_ is not known (nan). It "
            "needs 3 domains, and 4 to be nested."
        )
    if selection.held_out is None or np.isnan(score):
        return notes
    if not selection.is_nested:
        notes.append(
            f"with {len(labels)} domains new_domain_score_ is not nested: the length was "
            "chosen with the help of the domain that is judged, so that it may be too low. A "
            "nested score needs 4 domains."
        )
    empty = float(selection.held_out[0].mean())
    if score > empty and selection.size:
        meaning = (
            "Effects may hold within new domains, but do not tell their means."
            if selection.variant.center == "domain"
            else "What these features say does not carry over to new domains."
        )
        notes.append(
            f"the squared error to expect at a new domain, {score:.4g}, exceeds that of the "
            f"empty selection, {empty:.4g}. {meaning}"
        )
    return notes


def _thin_domains(sums: Domains, labels: np.ndarray) -> list[str]:
    single = np.flatnonzero(sums.n_rows <= 1)
    if len(single) == len(labels):
        return [SINGLE_ROWS]
    if not len(single):
        return []
    return [
        f"{len(single)} of {len(labels)} domains {'has' if len(single) == 1 else 'have'} a single "
        "row, such as "
        f"{shown(labels[single[0]])}. Each counts as much as a large one. Leave them out if one "
        "row cannot speak for its domain, or pass domain_weight='rows'."
    ]
