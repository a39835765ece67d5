"""The criteria by name, and what they say in words."""

from __future__ import annotations

from collections import Counter

import numpy as np

from holdtrue.errors import counted
from holdtrue.model_size import kernel

CRITERIA = (
    "dee", "adj", "seb", "ucb", "fpe", "gcv", "cv", "loo", "cpm", "bic", "ric", "aic", "aicc",
    "adjusted_r2", "bayes",
)  # fmt: skip

# The others estimate the mean squared error on new rows.
UNITS = {"aic": "AIC", "aicc": "corrected AIC", "adjusted_r2": "1 - adjusted R²"}


def agreement(choices: dict[str, int]) -> str:
    """Whether the criteria agree, in a clause."""
    votes = Counter(choices.values())
    size, count = votes.most_common(1)[0]
    if len(choices) == 1:
        return "no other criterion was asked"
    if len(votes) == 1:
        return f"all {len(choices)} criteria agree"
    return (
        f"the {len(choices)} criteria choose {min(votes)} to {max(votes)}, most often {size} "
        f"({count} of them)"
    )


def reason_of(
    fit: kernel.NestedFit,
    choices: dict[str, int],
    criterion: str,
    weights: dict[str, float],
    *,
    n_columns: int,
    averaged: bool,
    grouped: bool,
    late: bool,
) -> str:
    """Why a size was chosen and what predicts, in words.

    ``weights`` are those of the bases, ``n_columns`` counts also terms that depend on earlier ones,
    ``late``: columns late in the order cannot enter at any size.
    """
    n_sizes = len(fit.z)
    if fit.rss[1] == 0:
        parts = ["the target is constant, so one term fits it exactly"]
    else:
        parts = [f"{criterion} is least at {counted(choices[criterion], 'term')} of {n_sizes}"]
        parts.append(agreement(choices))
        dropped = n_columns - n_sizes
        if dropped:
            were = "was" if dropped == 1 else "were"
            parts.append(f"{counted(dropped, 'term')} depended on earlier ones and {were} left out")
    shown = sorted((-weight, name) for name, weight in weights.items() if weight >= 0.005)
    if averaged:
        bases = "; ".join(f"{name} {-weight:.0%}" for weight, name in shown)
        bases = f" and bases ({bases})" if len(weights) > 1 else ""
        parts.append(f"predictions average over all sizes{bases}")
        if late:
            parts.append(
                "columns late in the order enter the average alone, which shrinks all alike: if "
                "few of them matter, basis='omp' finds them"
            )
    elif len(weights) > 1:
        why = "predicts left-out groups best" if grouped else "is the likeliest basis"
        parts.append(f"{shown[0][1]} {why}")
    if grouped:
        parts.append("new data are new groups")
    return "; ".join(parts)


def empty_score(name: str, fit: kernel.NestedFit) -> float:
    """A criterion's value without any term: predicting 0 fits nothing, so nothing is corrected."""
    none, error = np.array([0]), fit.rss[:1] / fit.n_samples
    if name in ("aic", "aicc"):
        error = getattr(kernel, name)(error, none, fit.n_samples)
    elif name == "adjusted_r2":
        variance = fit.rss[1] / (fit.n_samples - 1)
        error = kernel.adjusted_r2(error, none, fit.n_samples, variance)
    return float(error[0])
