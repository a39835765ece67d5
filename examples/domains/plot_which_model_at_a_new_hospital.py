"""
Which model at a new hospital?
==============================

Twelve hospitals, forty features. Five have the same effect everywhere, four change from hospital to
hospital. Models compete where they were not fitted: each hospital is left out in turn. The verdict
is then checked on twenty hospitals that had no part in the contest.
"""

# %%
import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import RidgeCV

from holdtrue import SteadyRidgeRegressor, TGreedyRegressor, compare_models
from holdtrue.datasets import make_domains

data = make_domains(12, 100, n_features=40, n_steady=5, random_state=1)
models = {
    "T-Greedy": TGreedyRegressor(max_steps=12),
    "SteadyRidge": SteadyRidgeRegressor(),
    "pooled ridge": RidgeCV(np.logspace(-2, 4, 13)),
    "mean": DummyRegressor(),
}
contest = compare_models(models, data.X, data.y, groups=data.groups)
print(contest)

# %%
# The promise: the interval holds the error at *one* new hospital.
for name, model in models.items():
    takes_groups = name in ("T-Greedy", "SteadyRidge")
    given = {"groups": data.groups} if takes_groups else {}
    errors = (clone(model).fit(data.X, data.y, **given).predict(data.X_new) - data.y_new) ** 2
    by_hospital = np.array([errors[data.groups_new == d].mean() for d in set(data.groups_new)])
    low, high = contest.interval(name)
    inside = np.mean((by_hospital >= low) & (by_hospital <= high))
    promised = contest.mean_errors[contest.names.index(name)]
    print(f"{name:13} promised {promised:5.1f}, met {by_hospital.mean():5.1f}; {inside:.0%} inside")

# %%
display = contest.plot()
# sphinx_gallery_thumbnail_path = "images/card_compare.svg"
