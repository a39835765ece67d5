"""What is to be predicted, how rows count, and which of them are left out together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

# Up to this many rows, copies counted, or groups, one is left out at a time; above, a tenth.
MOST_LEFT_OUT = 50
_N_PARTS = 10


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be predicted, and how rows count."""

    targets: np.ndarray  # numbers, or ±1 for each class against the rest; (n_rows, n_targets)
    weight: np.ndarray  # of each row, positive; weights are repetitions
    balanced: bool = False  # both sides of a target get the same sum of weights
    row_factor: np.ndarray | None = None  # weight of each row's class, where the caller gave them
    groups: np.ndarray | None = None  # rows of one number are left out together
    truncated: bool = False  # targets are ±1: a score beyond them is judged as ±1

    @property
    def n_targets(self) -> int:
        """Number of targets."""
        return self.targets.shape[1]

    @cached_property
    def full_weights(self) -> list[np.ndarray]:
        """Weights of all rows, for each target."""
        return [self.class_weights(self.weight, t) for t in range(self.n_targets)]

    def class_weights(self, weight: np.ndarray, t: int) -> np.ndarray:
        """Weights of the rows for target t, with the sum of those given."""
        total = weight.sum()
        if self.row_factor is not None:
            factored = weight * self.row_factor
            return factored * (total / factored.sum()) if factored.sum() > 0 else weight
        if not self.balanced or not total:
            return weight
        positive = self.targets[:, t] > 0
        sides = [weight @ ~positive, weight @ positive]
        present = sum(side > 0 for side in sides)
        share = [total / (present * side) if side else 0.0 for side in sides]
        return weight * np.where(positive, share[1], share[0])


@dataclass(frozen=True, eq=False)
class Fold:
    """Weights of the rows to fit with, and of those left out; shape (n_rows,) each."""

    train: np.ndarray
    left_out: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """Rows that are left out."""
        return np.flatnonzero(self.left_out)


def one_at_a_time(weight: np.ndarray) -> bool:
    """Whether rows are so few that copies of a row are left out one at a time."""
    return bool(weight.sum() <= MOST_LEFT_OUT)


def make_folds(task: Task, *, in_parts: bool = False) -> list[Fold]:
    """Folds that leave out every row once: one copy of a row, a group, or a tenth of them.

    With ``in_parts`` a tenth is left out however few the rows are.
    """
    weight = task.weight
    if task.groups is None and one_at_a_time(weight) and not (in_parts and len(weight) > _N_PARTS):
        folds = []
        for i in range(len(weight)):
            left_out = np.zeros(len(weight))
            left_out[i] = weight[i]
            train = weight.copy()
            train[i] = max(weight[i] - 1, 0)
            folds.append(Fold(train, left_out))
        return folds
    # Dealt in order of the target, so that every part has its share of each class.
    by_target = np.lexsort(task.targets.T)
    if task.groups is None:
        part = np.empty(len(weight), dtype=np.intp)
        part[by_target] = np.arange(len(weight)) % _N_PARTS
    else:
        n_groups = int(task.groups.max()) + 1
        place = np.empty(len(weight))
        place[by_target] = np.arange(len(weight))
        mean_place = np.bincount(task.groups, place) / np.bincount(task.groups)
        part_of_group = np.empty(n_groups, dtype=np.intp)
        n_parts = n_groups if n_groups <= MOST_LEFT_OUT and not in_parts else _N_PARTS
        part_of_group[np.argsort(mean_place, kind="stable")] = np.arange(n_groups) % n_parts
        part = part_of_group[task.groups]
    return [
        Fold(np.where(part == f, 0, weight), np.where(part == f, weight, 0))
        for f in range(int(part.max()) + 1)
    ]
