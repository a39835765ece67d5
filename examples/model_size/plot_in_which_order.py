"""
In which order should columns enter?
====================================

A path needs an order, from simple to complex. The diabetes data with fifty patients: columns as
they stand, principal components, or the order of a LARS path, which looks at the target. For each,
the size is chosen by cross-validation that repeats the order; the average over sizes needs none.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV, LinearRegression, RidgeCV
from sklearn.model_selection import train_test_split

from holdtrue import NestedRegressor

X, y = load_diabetes(return_X_y=True)
ways = {
    "all columns": lambda: LinearRegression(),
    "columns as they stand": lambda: NestedRegressor(
        "columns", criterion="cv", predict="chosen", random_state=0
    ),
    "principal components": lambda: NestedRegressor(
        "pca", criterion="cv", predict="chosen", random_state=0
    ),
    "LARS order": lambda: NestedRegressor("lars", criterion="cv", predict="chosen", random_state=0),
    "average, in LARS order": lambda: NestedRegressor("lars", random_state=0),
    "RidgeCV": lambda: RidgeCV(np.logspace(-4, 2, 25)),
    "LassoCV": lambda: LassoCV(),
}
errors = {way: [] for way in ways}
for seed in range(15):
    few, rest, y_few, y_rest = train_test_split(X, y, train_size=50, random_state=seed)
    for way, make in ways.items():
        predicted = make().fit(few, y_few).predict(rest)
        errors[way].append(np.mean((predicted - y_rest) ** 2) / y_rest.var())
for way, values in sorted(errors.items(), key=lambda item: np.median(item[1])):
    print(f"  {way:24} {np.median(values):.3f}  (worst {max(values):.2f})")

# %%
order = sorted(errors, key=lambda way: -np.median(errors[way]))
figure, ax = plt.subplots(figsize=(7.5, 3.9), layout="constrained")
for place, way in enumerate(order):
    ours = isinstance(ways[way](), NestedRegressor)
    color = "#0072B2" if ours else "#8A8A8A"
    ax.plot(errors[way], np.full(15, place), "o", color=color, alpha=0.35, markersize=5)
    ax.plot(np.median(errors[way]), place, "|", color=color, markersize=22, markeredgewidth=3)
ax.set_yticks(range(len(order)), order)
ax.set(xlabel="squared error on 392 patients, over that of the mean", xlim=(0.45, 1.1))
ax.set_title("Fifty patients, ten columns, fifteen draws", loc="left", fontsize="medium")
# sphinx_gallery_thumbnail_path = "images/card_order.svg"
