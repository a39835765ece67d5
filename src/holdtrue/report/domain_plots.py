"""Drawings of a fit over domains. The display holds numbers; matplotlib comes when it draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from holdtrue.path import SelectionPath
from holdtrue.report.plots import _BLUE, _GREY, _ORANGE, _fit_scale, _pyplot

__all__ = ["DomainsDisplay"]


class DomainsDisplay:
    """Three plots of a fit over domains: errors, effects, and T along the path.

    Build one with `from_estimator`; each plot can be drawn alone on an axis of your own.

    Parameters
    ----------
    path : SelectionPath
    held_out : ndarray of shape (n_steps + 1, n_domains) or None
        Error in each domain of the walk that did not see it.
    effects : ndarray of shape (n_features, n_domains)
    names : sequence of str
        Of the features.
    domains : sequence
        Labels of the domains.
    t, levels : ndarray of shape (n_steps,)
        T of each step's feature and the level of chance.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from holdtrue import DomainsDisplay, TGreedyRegressor
    >>> from holdtrue.datasets import make_domains
    >>> data = make_domains(random_state=0)
    >>> model = TGreedyRegressor().fit(data.X, data.y, groups=data.groups)
    >>> display = DomainsDisplay.from_estimator(model)  # doctest: +SKIP
    """

    axes_: Any
    figure_: Any

    def __init__(
        self,
        path: SelectionPath,
        held_out: np.ndarray | None,
        effects: np.ndarray,
        names: Any,
        domains: Any,
        t: np.ndarray,
        levels: np.ndarray,
    ):
        self.path = path
        self.held_out = held_out
        self.effects = effects
        self.names = names
        self.domains = domains
        self.t = t
        self.levels = levels

    @classmethod
    def from_estimator(cls, estimator: Any, *, target: int = 0, axes: Any = None) -> DomainsDisplay:
        """Draw all three for a fitted T-Greedy estimator or `SimilarityLearner`.

        Parameters
        ----------
        estimator : TGreedySelector, TGreedyClassifier, TGreedyRegressor or SimilarityLearner
            Fitted with groups.
        target : int
            Whose effects to draw, where several classes are told from the rest.
        axes : three matplotlib Axes, optional
        """
        check_is_fitted(estimator, "path_")
        effects = getattr(estimator, "domain_effects_", None)
        if effects is None:
            raise ValueError(
                f"DomainsDisplay: {type(estimator).__name__} was fitted without domains. "
                "Pass the domain of each row as fit(X, y, groups=...)."
            )
        names = getattr(estimator, "feature_names_in_", None)
        if names is None:
            names = [f"x{j}" for j in range(estimator.n_features_in_)]
        display = cls(
            estimator.path_,
            getattr(estimator, "held_out_scores_", None),
            effects if effects.ndim == 2 else effects[target],
            list(names),
            list(estimator.domains_),
            estimator.t_statistics_,
            estimator.chance_levels_,
        )
        return display.plot(axes=axes)

    def plot(self, axes: Any = None) -> DomainsDisplay:
        """Draw all three, on three axes if given."""
        if axes is None:
            axes = _pyplot("DomainsDisplay").subplots(
                1, 3, figsize=(15, 4.5), layout="constrained"
            )[1]
        for draw, ax in zip((self.plot_errors, self.plot_effects, self.plot_t), axes, strict=True):
            draw(ax)
        self.axes_, self.figure_ = np.asarray(axes), axes[0].figure
        return self

    def plot_errors(self, ax: Any) -> None:
        """Error on the source domains, and on domains held out, against the number of steps."""
        path = self.path
        sizes = np.arange(path.n_steps + 1)
        if self.held_out is not None:
            for column in self.held_out.T:
                ax.plot(sizes, column, color=_BLUE, linewidth=0.6, alpha=0.35)
            ax.plot(sizes, path.scores, color=_BLUE, linewidth=2, label="domains held out")
        ax.plot(sizes, path.train_scores, "--", color=_GREY, linewidth=2, label="source domains")
        ax.axvline(path.chosen_size, color=_ORANGE, label=f"chosen: {path.chosen_size}")
        train = np.asarray(path.train_scores)
        wanted = train if self.held_out is None else path.scores
        _fit_scale(ax, np.concatenate([wanted, train]), wanted)
        ax.set(xlabel="steps", ylabel=path.unit)
        ax.set_title("errors: source and unseen domains", loc="left", fontsize="medium")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(frameon=False)

    def plot_effects(self, ax: Any, *, max_features: int = 15) -> None:
        """Heat map of the effect of each feature in each domain, those of the path first."""
        first = list(dict.fromkeys(self.path.order.tolist()))
        rest = np.argsort(-np.abs(self.effects).mean(axis=1), kind="stable").tolist()
        shown = list(dict.fromkeys([*first, *rest]))[:max_features]
        values = self.effects[shown]
        largest = float(np.abs(values).max()) or 1.0
        image = ax.imshow(values, cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto")
        chosen = set(self.path.chosen.tolist())
        labels = [f"{self.names[i]} *" if i in chosen else str(self.names[i]) for i in shown]
        ax.set_yticks(np.arange(len(shown)), labels, fontsize="small")
        ax.set_xticks(np.arange(len(self.domains)), [str(name) for name in self.domains])
        ax.tick_params(axis="x", labelrotation=90 if len(self.domains) > 12 else 0)
        ax.set(xlabel="domain")
        ax.set_title("effects: which flip their sign (* chosen)", loc="left", fontsize="medium")
        ax.figure.colorbar(image, ax=ax)

    def plot_t(self, ax: Any) -> None:
        """``|T|`` of each step's feature as it enters, against the level of chance."""
        steps = np.arange(1, len(self.t) + 1)
        entered = steps <= self.path.chosen_size
        ax.plot(steps, np.abs(self.t), color=_GREY, linewidth=0.8)
        ax.scatter(steps[entered], np.abs(self.t[entered]), s=16, color=_BLUE, label="chosen")
        ax.scatter(steps[~entered], np.abs(self.t[~entered]), s=16, color=_GREY, label="explored")
        ax.plot(steps, self.levels, "--", color=_ORANGE, label="chance (Bonferroni)")
        finite = np.abs(self.t[np.isfinite(self.t)])
        if len(finite) and finite.min() > 0 and finite.max() > 100 * finite.min():
            ax.set_yscale("log")
        ax.set(xlabel="step", ylabel="|T| on entry")
        ax.set_title("T along the path", loc="left", fontsize="medium")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(frameon=False)
