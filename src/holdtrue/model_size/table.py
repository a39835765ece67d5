"""Every criterion of every size, in one table."""

from __future__ import annotations

from collections import Counter

import numpy as np

from holdtrue.model_size import kernel
from holdtrue.model_size.bayes import bayes

CRITERIA = (
    "dee", "adj", "seb", "ucb", "fpe", "gcv", "cv", "loo", "cpm", "bic", "ric", "aic", "aicc",
    "adjusted_r2", "bayes",
)  # fmt: skip

# The others estimate the mean squared error on new rows.
UNITS = {"aic": "AIC", "aicc": "corrected AIC", "adjusted_r2": "1 - adjusted R²"}


def criteria(
    fit: kernel.NestedFit,
    C_half: np.ndarray,
    variance: float,
    held_out: np.ndarray,
    *,
    with_bayes: bool = True,
) -> dict[str, np.ndarray]:
    """Table of sizes: ``n_terms``, ``train`` and every criterion, arrays of length D.

    Parameters
    ----------
    fit : NestedFit
    C_half : ndarray of shape (n_rows, D)
        From `moment_factor`, of the kept terms.
    variance : float
        Of the noise, for Cp, BIC and RIC.
    held_out : ndarray of shape (D,)
        From `cross_validation`.
    with_bayes : bool
        Without it the one costly criterion is left out.
    """
    remp, d, n = fit.remp, fit.n_terms, fit.n_samples
    S = kernel.spread(fit, C_half)
    table = {
        "n_terms": d,
        "train": remp,
        "dee": kernel.dee(remp, d, n, S),
        "adj": kernel.adj(fit, S),
        "seb": kernel.seb(remp, d, n),
        "ucb": kernel.ucb(remp, d, n),
        "fpe": kernel.fpe(remp, d, n),
        "gcv": kernel.gcv(remp, d, n),
        "cv": held_out,
        "loo": kernel.leave_one_out(fit),
        "cpm": kernel.cpm(remp, d, n, variance),
        "bic": kernel.bic(remp, d, n, variance),
        "ric": kernel.ric(remp, d, n, variance),
        "aic": kernel.aic(remp, d, n),
        "aicc": kernel.aicc(remp, d, n),
        "adjusted_r2": kernel.adjusted_r2(remp, d, n, fit.rss[1] / (n - 1)),
    }
    if with_bayes:
        table["bayes"] = bayes(fit, C_half)
    return table


def grouped_criteria(fit: kernel.NestedFit, held_out: np.ndarray) -> dict[str, np.ndarray]:
    """Table of sizes with the one criterion that does not take rows for independent."""
    return {"n_terms": fit.n_terms, "train": fit.remp, "cv": held_out}


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


def empty_score(name: str, fit: kernel.NestedFit) -> float:
    """A criterion's value without any term: predicting 0 fits nothing, so nothing is corrected."""
    none, error = np.array([0]), fit.rss[:1] / fit.n_samples
    if name == "aic":
        return float(kernel.aic(error, none, fit.n_samples)[0])
    if name == "aicc":
        return float(kernel.aicc(error, none, fit.n_samples)[0])
    if name == "adjusted_r2":
        variance = fit.rss[1] / (fit.n_samples - 1)
        return float(kernel.adjusted_r2(error, none, fit.n_samples, variance)[0])
    return float(error[0])
