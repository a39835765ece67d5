"""Pictures of sources: the weights of what was chosen, and which source serves which target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from holdtrue.charts import Dot, Dots, Heat
from holdtrue.charts.axes import draw, new_axes
from holdtrue.errors import InputError, speaks
from holdtrue.evidence import SourceEvidence
from holdtrue.path import SelectionPath

__all__ = ["TransferDisplay", "strongest_weights", "transfer_matrix", "weights_chart"]


def weights_chart(path: SelectionPath, *, max_candidates: int = 25) -> Dots | None:
    """Weights of the columns and sources that are used, in order of entry; None without any."""
    evidence = path.evidence_as(SourceEvidence)
    weights = strongest_weights(evidence)
    used = [j for j in path.chosen.tolist() if weights[j]][:max_candidates]
    if not used:
        return None
    return Dots(
        title="Weight of what was chosen",
        text="What one standard deviation adds to the score of the target.",
        x_label="weight: what one standard deviation adds",
        dots=[
            Dot(evidence.names[j], weights[j], mark="kept" if weights[j] > 0 else "minus")
            for j in used
        ],
        reference_label="no weight",
        legend={"kept": "with the target", "minus": "against it"},
    )


def strongest_weights(evidence: SourceEvidence) -> np.ndarray:
    """Weight of each candidate for the target where it is largest in size."""
    strongest = np.abs(evidence.weights).argmax(axis=0)
    weights: np.ndarray = evidence.weights[strongest, np.arange(len(strongest))]
    return weights


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

    @speaks
    def __init__(self, weights: np.ndarray, targets: Sequence[str], sources: Sequence[str]):
        self.weights = np.asarray(weights, dtype=np.float64)
        self.targets = [str(name) for name in targets]
        self.sources = [str(name) for name in sources]
        expected = (len(self.targets), len(self.sources))
        if self.weights.shape != expected:
            raise InputError(
                "weights must have a row per target and a column per source, "
                f"shape {expected}. Got shape {self.weights.shape}."
            )

    @classmethod
    @speaks
    def from_estimator(cls, estimator: Any, **options: Any) -> TransferDisplay:
        """Draw the weights of one fitted model; options are those of `plot`."""
        return transfer_matrix(estimator).plot(**options)

    @speaks
    def to_dict(self) -> dict[str, list[Any]]:
        """The weights that are not zero, as a table with columns target, source and weight."""
        rows, columns = np.nonzero(self.weights)
        return {
            "target": [self.targets[i] for i in rows],
            "source": [self.sources[j] for j in columns],
            "weight": self.weights[rows, columns].tolist(),
        }

    @speaks
    def plot(
        self,
        target_groups: Sequence[str] | None = None,
        source_groups: Sequence[str] | None = None,
        *,
        ax: Any = None,
    ) -> TransferDisplay:
        """Draw targets as columns and sources as rows, blue for + and orange for −.

        Parameters
        ----------
        target_groups, source_groups : sequence of str, optional
            A label for each target and each source. Those with the same label stand together, in
            the order of first appearance of the label, between lines.
        ax : matplotlib Axes, optional
        """
        if not self.sources:
            raise InputError(
                "no source to draw: the models were fitted on columns alone. Their weights are in "
                "feature_weights_."
            )
        columns, column_groups = _arranged("target_groups", self.targets, target_groups)
        rows, row_groups = _arranged("source_groups", self.sources, source_groups)
        chart = Heat(
            title="Weights of sources for targets",
            text="Rows are sources, columns targets.",
            rows=[self.sources[i] for i in rows],
            columns=[self.targets[j] for j in columns],
            values=self.weights[np.ix_(columns, rows)].T.tolist(),
            row_groups=row_groups,
            column_groups=column_groups,
        )
        ax = new_axes(size=(7, 6)) if ax is None else ax
        self.image_ = draw(chart, ax)
        ax.set(xlabel="target", ylabel="source")
        self.ax_, self.figure_ = ax, ax.figure
        return self


@speaks
def transfer_matrix(models: Any, *, targets: Sequence[str] | None = None) -> TransferDisplay:
    """Weights of the sources for many targets that were fitted on one pool.

    Parameters
    ----------
    models : mapping of target to model, sequence of models, or one model
        Fitted GreedyTL estimators or rivals that share their sources. In a mapping, a list of
        models stands for one target, and its weights are averaged, as over draws of the rows. A
        model of more than two classes has a row for each class.
    targets : sequence of str, optional
        Names of the rows where ``models`` is not a mapping. Default: classes or numbers.

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
                raise InputError(
                    f"all models must share their sources. The model of {name!r} "
                    f"has {len(model.source_names_)} sources, the first one {len(known)} or others."
                )
            weights.append(np.atleast_2d(model.source_weights_))
        if len({part.shape for part in weights}) != 1:
            raise InputError(f"the models of {name!r} differ in their classes.")
        mean = np.mean(weights, axis=0)
        rows.extend(mean)
        labels = getattr(group[0], "classes_", [])
        names.extend([name] if len(mean) == 1 else [str(label) for label in labels])
    if known is None:
        raise InputError("expected at least one fitted model. Got none.")
    if targets is not None:
        if len(targets) != len(rows):
            raise InputError(f"targets must name {len(rows)} rows. Got {len(targets)} names.")
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
) -> tuple[list[int], list[str]]:
    """Order that brings groups together, by first appearance, and the label of each place."""
    if groups is None:
        return list(range(len(items))), []
    if len(groups) != len(items):
        raise InputError(
            f"{name} must have one label for each of {len(items)}. Got {len(groups)} labels."
        )
    labels = [str(group) for group in groups]
    different = list(dict.fromkeys(labels))
    order = sorted(range(len(items)), key=lambda i: different.index(labels[i]))
    return order, [labels[i] for i in order]
