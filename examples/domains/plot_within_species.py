"""
An effect that turns round when rows are pooled
===============================================

Fisher's irises. Over all flowers, wide sepals are *short* ones. Within each of the three species
they are *long* ones. A pooled fit learns the wrong sign, because it learns which species a flower
is; `center="domain"` takes effects from within the species.
"""

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from holdtrue import TGreedyRegressor

iris = load_iris()
length, width = iris.data[:, 0], iris.data[:, [1]]
species = iris.target_names[iris.target]

slopes = {}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # three domains are too few for a nested score: see below
    for center in ("global", "domain"):
        model = TGreedyRegressor(center=center, stop="max_steps", max_steps=1)
        slopes[center] = model.fit(width, length, groups=species)
for center, model in slopes.items():
    print(f"center={center!r:9} slope {model.coef_[0]:+.2f}, in the species", end=" ")
    print(np.round(np.ravel(model.domain_effects_), 2))
print(f"pooled least squares   {np.polyfit(width[:, 0], length, 1)[0]:+.2f}")

# %%
# Three species are three domains, and three prove little: that a slope holds in a *fourth*
# species is likely, not shown. `new_domain_score_` needs four domains to be nested, and a warning
# says so.
figure, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
for name, color in zip(iris.target_names, ("#0072B2", "#009E73", "#CC79A7"), strict=True):
    rows = species == name
    x = width[rows, 0]
    ax.plot(x, length[rows], "o", color=color, alpha=0.5, label=name)
    ends = np.array([x.min(), x.max()])
    ax.plot(
        ends, length[rows].mean() + slopes["domain"].coef_[0] * (ends - x.mean()), color=color, lw=3
    )
ends = np.array([width.min(), width.max()])
ax.plot(
    ends,
    np.polyval(np.polyfit(width[:, 0], length, 1), ends),
    "--",
    color="#D55E00",
    label="pooled",
)
ax.set(xlabel="width of the sepal (cm)", ylabel="length of the sepal (cm)")
ax.set_title(
    "One slope within the species, another over all flowers", loc="left", fontsize="medium"
)
ax.legend(frameon=False, ncols=2)
# sphinx_gallery_thumbnail_path = "images/card_within.svg"
