"""Words of the tables that not every reader knows, explained in a sentence each."""

from __future__ import annotations

from collections.abc import Mapping

from holdtrue.report.summary import Table

_TERMS: Mapping[str, str] = {
    "skill": "Share of the error without any column or model that is taken away: 1 is perfect, 0 "
    "no better, below 0 harmful.",
    # rank
    "in short": "Predicts: the gain on new data is clear. May predict: chance may give such a "
    "gain. Adds little: another column already tells what this one does.",
    "wrong, %": "New rows, in percent, whose class is not the likeliest by this column alone.",
    "loss": "Cost of the predictions on new data, on average; lower is better.",
    "from": "Lower end of the interval of the loss.",
    "to": "Upper end of the interval of the loss.",
    "without it": "The loss without the column.",
    "values": "Different values of the column, missing included.",
    "known, %": "New rows, in percent, that bring a value seen before. Low for an id.",
    "read as": "By value, or as a number in so many bins, whichever loses less.",
    # select
    "steady": "Whether the effect has the same sign across domains beyond chance.",
    "used": "Whether the predictor uses the feature.",
    "enters at": "Step at which it first enters; later steps may improve features that are in.",
    "error": "Error on data that were left out of the fit; of a path, up to this step.",
    "T": "Mean of the effect over domains, divided by its standard error: far from 0 is steady.",
    "domains +": "Domains in which the feature goes with the target.",
    "domains −": "Domains in which the feature goes against the target.",
    "least": "Least effect in a domain, in standard deviations.",
    "largest": "Largest effect in a domain, in standard deviations.",
    # transfer
    "weight": "What one standard deviation adds to the score of the target.",
    # compare
    "recommended": "The simplest model within a standard error of the best.",
    "low": "Lower end of the interval of the error.",
    "high": "Upper end of the interval of the error.",
    "more than best": "Error above that of the best model, on the same data.",
    "±": "Standard error of the number before it.",
    "features": "Features that a fit uses, on average over the fits without each part.",
    "seconds": "Time of a fit.",
    # size
    "chooses": "Number of terms at which the criterion is least.",
    "estimate there": "The criterion at that size.",
    "dee": "Direct eigenvalue estimate: the error on these points, enlarged by how much farther "
    "the terms reach over new inputs (Chapelle, Vapnik and Bengio 2002).",
    "adj": "Error on these points, adjusted by how far the curves of two sizes are apart over new "
    "inputs (Schuurmans 1997).",
    "seb": "Smallest eigenvalue bound on the error (Chapelle, Vapnik and Bengio 2002).",
    "ucb": "Uniform convergence bound: the error on these points, enlarged by a bound for all "
    "models of the size (Vapnik).",
    "fpe": "Final prediction error: the error on these points times (n + d)/(n − d), d the number "
    "of terms (Akaike).",
    "gcv": "Generalised cross-validation: leave-one-out with an average weight for every point.",
    "cv": "Cross-validation: the error on parts that were left out.",
    "loo": "Leave-one-out: the error at each point of a fit without it.",
    "cpm": "Mallows' Cp: the error on these points plus two noise variances for each term.",
    "bic": "Bayesian information criterion: the price of a term grows with the logarithm of n.",
    "ric": "Risk inflation criterion: the price of a term grows with the logarithm of their "
    "number.",
    "aic": "Akaike's information criterion.",
    "aicc": "Akaike's information criterion, corrected for few points.",
    "adjusted_r2": "One minus R² adjusted for the number of terms.",
    "bayes": "Expected error under the posterior of the coefficients.",
}


def terms_of(table: Table) -> dict[str, str]:
    """Headings and cells of a table that need a word of explanation, with that."""
    texts = [*table.columns.values()]
    texts += [value for row in table.rows for value in row.values() if isinstance(value, str)]
    return {text: _TERMS[text] for text in dict.fromkeys(texts) if text in _TERMS}
