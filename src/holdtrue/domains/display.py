"""Pictures of a fit over domains: errors, effects, and T along the path."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdtrue.charts import Heat, Lines, Series
from holdtrue.charts.axes import draw, new_axes
from holdtrue.errors import InputError, speaks
from holdtrue.evidence import DomainEvidence, natural_order
from holdtrue.path import Display, SelectionPath

__all__ = ["DomainsDisplay", "effects_chart", "errors_chart", "strongest_effects", "t_chart"]

_MOST_CURVES = 40  # with more domains their curves only blacken the picture
_MOST_ENTERED = 8  # rows for features that entered and were not chosen


def errors_chart(path: SelectionPath, domain: str = "domain") -> Lines:
    """Error where the model was fitted, and at each domain held out, against the steps.

    ``domain`` is what a domain is called, such as "hospital".
    """
    held_out = path.evidence_as(DomainEvidence).held_out
    sizes = range(path.n_steps + 1)
    series = []
    if path.train_scores is not None:
        series.append(Series("where it was fitted", sizes, path.train_scores.tolist(), "train"))
    if held_out.size and np.isfinite(path.scores).any():
        if held_out.shape[1] <= _MOST_CURVES:
            series += [Series("", sizes, column.tolist(), "thin") for column in held_out.T]
        series.append(Series(f"at each {domain} held out (mean)", sizes, path.scores.tolist()))
    return Lines(
        title="Error where it was fitted and where it was not",
        text=f"{path.size_words}: {path.reason}.",
        x_label="steps taken",
        y_label=path.unit,
        series=series,
        chosen=path.chosen_size,
        chosen_label=f"chosen: {path.size_words}",
    )


def effects_chart(
    path: SelectionPath,
    domain: str = "domain",
    *,
    target: int | None = None,
    max_features: int = 25,
) -> Heat:
    """Effect of each feature in each domain: those chosen, those that entered, the strongest.

    ``target``: whose effects, where several classes are told from the rest. Default: for each
    feature those on the class where they are strongest.
    """
    evidence = path.evidence_as(DomainEvidence)
    effects = strongest_effects(evidence) if target is None else evidence.effects[target]
    chosen, entered = path.chosen.tolist(), list(dict.fromkeys(path.order.tolist()))
    rest = np.argsort(-np.abs(effects).max(axis=1, initial=0.0), kind="stable").tolist()
    rows = list(dict.fromkeys([*chosen, *entered[:_MOST_ENTERED], *rest]))[:max_features]
    order = natural_order(evidence.domains)
    return Heat(
        title=f"Effect of each feature at each {domain}",
        text="Rows are features, columns domains; a row with both signs is a feature whose effect "
        "is not the same everywhere.",
        rows=[evidence.names[j] for j in rows],
        columns=[evidence.domains[d] for d in order],
        values=effects[np.ix_(rows, order)].tolist(),
        kept=[j in chosen for j in rows],
    )


def t_chart(path: SelectionPath) -> Lines:
    """``|T|`` of each step's feature as it enters, and the level that chance reaches."""
    evidence = path.evidence_as(DomainEvidence)
    steps = range(1, len(evidence.step_t) + 1)
    return Lines(
        title="T of each feature as it enters",
        text="T is the mean effect over domains in standard errors. Above the dotted line a step "
        "is beyond chance (Bonferroni). A step may improve a feature that is already in.",
        x_label="step",
        y_label="how steady the effect is, |T|",
        series=[
            Series("level of chance", steps, evidence.chance_levels.tolist(), "level"),
            Series("|T| on entry", steps, np.abs(evidence.step_t).tolist()),
        ],
        chosen=path.chosen_size or None,
        chosen_label=f"chosen: {path.size_words}",
        scale="from zero",
    )


def strongest_effects(evidence: DomainEvidence, *, within: bool = False) -> np.ndarray:
    """Effects of shape (n_features, n_domains), each feature's on its strongest target.

    ``within``: about each domain's own means, where a feature that does not vary within a domain
    has none.
    """
    effects = evidence.effects
    strongest = np.abs(effects.mean(axis=2)).argmax(axis=0)
    if within and evidence.effects_within.size:
        effects = evidence.effects_within
    picked: np.ndarray = effects[strongest, np.arange(effects.shape[1])]
    return picked


class DomainsDisplay(Display):
    """Three plots of a fit over domains: errors, effects, and T along the path.

    Build one with `from_estimator`; each plot can be drawn alone on an axis of your own.

    Parameters
    ----------
    path : SelectionPath
        Of a T-Greedy estimator or a `SimilarityLearner`, fitted with groups.
    target : int
        Whose effects to draw, where several classes are told from the rest.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    PathDisplay : The errors alone, of any path.

    Examples
    --------
    >>> from holdtrue import DomainsDisplay, TGreedyRegressor
    >>> from holdtrue.datasets import make_domains
    >>> data = make_domains(random_state=1)
    >>> model = TGreedyRegressor().fit(data.X, data.y, groups=data.groups)
    >>> display = DomainsDisplay.from_estimator(model)  # doctest: +SKIP
    """

    _evidence = DomainEvidence
    axes_: Any
    figure_: Any

    @speaks
    def __init__(self, path: SelectionPath, target: int = 0):
        super().__init__(path)
        if not path.evidence_as(DomainEvidence).domains:
            raise InputError(
                "the model was fitted without domains. "
                "Pass the domain of each row as fit(X, y, groups=...)."
            )
        self.target = target

    @classmethod
    @speaks
    def from_path(cls, path: SelectionPath, *, target: int = 0, **options: Any) -> DomainsDisplay:
        """Draw a path; ``target`` as in the class, options are those of `plot`."""
        return cls(path, target).plot(**options)

    @speaks
    def plot(self, axes: Any = None) -> DomainsDisplay:
        """Draw all three, on three axes if given."""
        axes = new_axes(1, 3, size=(15, 4.5)) if axes is None else axes
        for plot, ax in zip((self.plot_errors, self.plot_effects, self.plot_t), axes, strict=True):
            plot(ax)
        self.axes_, self.figure_ = np.asarray(axes), axes[0].figure
        return self

    @speaks
    def plot_errors(self, ax: Any) -> None:
        """Error on the source domains, and on domains held out, against the number of steps."""
        draw(errors_chart(self.path), ax)

    @speaks
    def plot_effects(self, ax: Any, *, max_features: int = 15) -> None:
        """Heat map of the effect of each feature in each domain, those chosen first."""
        draw(effects_chart(self.path, target=self.target, max_features=max_features), ax)

    @speaks
    def plot_t(self, ax: Any) -> None:
        """``|T|`` of each step's feature as it enters, against the level of chance."""
        draw(t_chart(self.path), ax)
