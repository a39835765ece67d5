"""Which source serves which target, over many targets: numbers and their picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from holdtrue.report.plots import _pyplot

__all__ = ["TransferDisplay", "transfer_matrix"]


class TransferDisplay:
    """Weights of sources for targets, and their picture with related ones side by side.

    Build one with `transfer_matrix`; call `plot` to draw it.

    Parameters
    ----------
    weights : ndarray of shape (n_targets, n_sources)
        What one standard deviation of a source adds to the score of a target.
    targets, sources : sequence of str

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    image_ : matplotlib AxesImage

    Examples
    --------
    >>> import numpy as np
    >>> from holdtrue import TransferDisplay
    >>> weights = np.array([[0.5, 0.0], [0.0, 0.7]])
    >>> display = TransferDisplay(weights, targets=["cat", "car"], sources=["dog", "bus"])
    >>> display.to_dict()
    {'target': ['cat', 'car'], 'source': ['dog', 'bus'], 'weight': [0.5, 0.7]}
    >>> display.plot(target_groups=["animal", "vehicle"])  # doctest: +SKIP
    """

    ax_: Any
    figure_: Any
    image_: Any

    def __init__(self, weights: np.ndarray, targets: Sequence[str], sources: Sequence[str]):
        self.weights = np.asarray(weights, dtype=np.float64)
        self.targets = [str(name) for name in targets]
        self.sources = [str(name) for name in sources]
        expected = (len(self.targets), len(self.sources))
        if self.weights.shape != expected:
            raise ValueError(
                "TransferDisplay: weights must have a row per target and a column per source, "
                f"shape {expected}. Got shape {self.weights.shape}."
            )

    def to_dict(self) -> dict[str, list[Any]]:
        """The weights that are not zero, as a table with columns target, source and weight."""
        rows, columns = np.nonzero(self.weights)
        return {
            "target": [self.targets[i] for i in rows],
            "source": [self.sources[j] for j in columns],
            "weight": self.weights[rows, columns].tolist(),
        }

    def plot(
        self,
        target_groups: Sequence[str] | None = None,
        source_groups: Sequence[str] | None = None,
        *,
        ax: Any = None,
    ) -> TransferDisplay:
        """Draw targets as columns and sources as rows, the darker the larger the weight.

        Parameters
        ----------
        target_groups, source_groups : sequence of str, optional
            A label for each target and each source. Those with the same label stand together, in
            the order of first appearance of the label, between lines.
        ax : matplotlib Axes, optional
        """
        columns, column_groups = _arranged("target_groups", self.targets, target_groups)
        rows, row_groups = _arranged("source_groups", self.sources, source_groups)
        if ax is None:
            ax = _pyplot("TransferDisplay").subplots(figsize=(7, 6), layout="constrained")[1]
        shown = np.abs(self.weights[np.ix_(columns, rows)].T)
        self.image_ = ax.imshow(shown, aspect="auto", cmap="Blues", interpolation="nearest", vmin=0)
        for axis, names, order, groups, line in (
            (ax.xaxis, self.targets, columns, column_groups, ax.axvline),
            (ax.yaxis, self.sources, rows, row_groups, ax.axhline),
        ):
            if groups:
                for _, stop, _ in groups[:-1]:
                    line(stop - 0.5, color="#8A8A8A", linewidth=0.6)
                axis.set_ticks(
                    [(start + stop - 1) / 2 for start, stop, _ in groups],
                    [label for *_, label in groups],
                )
            elif len(names) <= 40:
                axis.set_ticks(np.arange(len(names)), [names[i] for i in order])
        ax.tick_params(axis="x", rotation=90)
        ax.set(xlabel="target", ylabel="source")
        ax.figure.colorbar(self.image_, ax=ax, label="weight (absolute)")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def transfer_matrix(models: Any, *, targets: Sequence[str] | None = None) -> TransferDisplay:
    """Weights of the sources for many targets that were fitted on one pool.

    Parameters
    ----------
    models : mapping of target to model, sequence of models, or one model
        Fitted GreedyTL estimators or rivals that share their sources. In a mapping, a list of
        models stands for one target, and its weights are averaged, as over draws of the rows. A
        model of more than two classes has a row for each class.
    targets : sequence of str, optional
        Names of the rows where ``models`` is no mapping. Default: classes or numbers.

    Returns
    -------
    display : TransferDisplay
        ``display.weights`` are the numbers, ``display.plot(...)`` the picture.

    Examples
    --------
    >>> from holdtrue import GreedyTLClassifier, transfer_matrix
    >>> from holdtrue.datasets import make_sources
    >>> data = make_sources(n_sources=50, random_state=0)
    >>> model = GreedyTLClassifier(data.sources, max_selected=3).fit(data.X, data.y)
    >>> transfer_matrix({"the task": model}).weights.shape
    (1, 50)
    """
    rows: list[np.ndarray] = []
    names: list[str] = []
    known: list[str] | None = None
    for name, group in _listed(models):
        weights = []
        for model in group:
            check_is_fitted(model, "source_weights_")
            if known is None:
                known = list(model.source_names_)
            elif list(model.source_names_) != known:
                raise ValueError(
                    f"transfer_matrix: all models must share their sources. The model of {name!r} "
                    f"has {len(model.source_names_)} sources, the first one {len(known)} or others."
                )
            weights.append(np.atleast_2d(model.source_weights_))
        if len({part.shape for part in weights}) != 1:
            raise ValueError(f"transfer_matrix: the models of {name!r} differ in their classes.")
        mean = np.mean(weights, axis=0)
        rows.extend(mean)
        labels = getattr(group[0], "classes_", [])
        names.extend([name] if len(mean) == 1 else [str(label) for label in labels])
    if known is None:
        raise ValueError("transfer_matrix: expected at least one fitted model. Got none.")
    if targets is not None:
        if len(targets) != len(rows):
            raise ValueError(
                f"transfer_matrix: targets must name {len(rows)} rows. Got {len(targets)} names."
            )
        names = [str(name) for name in targets]
    return TransferDisplay(np.array(rows), names, known)


def _listed(models: Any) -> list[tuple[str, list[Any]]]:
    if isinstance(models, Mapping):
        return [
            (str(name), list(group) if isinstance(group, (list, tuple)) else [group])
            for name, group in models.items()
        ]
    if hasattr(models, "fit"):
        models = [models]
    return [(str(i), [model]) for i, model in enumerate(models)]


def _arranged(
    name: str, items: list[str], groups: Sequence[str] | None
) -> tuple[np.ndarray, list[tuple[int, int, str]]]:
    """Order that brings groups together, and where each one starts and stops in it."""
    if groups is None:
        return np.arange(len(items)), []
    if len(groups) != len(items):
        raise ValueError(
            f"TransferDisplay.plot: {name} must have one label for each of {len(items)}. "
            f"Got {len(groups)} labels."
        )
    labels = list(dict.fromkeys(map(str, groups)))
    codes = np.array([labels.index(str(group)) for group in groups])
    stops = np.cumsum(np.bincount(codes, minlength=len(labels)))
    starts = np.append(0, stops[:-1])
    spans = [(int(a), int(b), label) for a, b, label in zip(starts, stops, labels, strict=True)]
    return np.argsort(codes, kind="stable"), spans
