"""
Which features will still work at the next hospital?
====================================================

Eight hospitals, two hundred features. Three features have the same effect everywhere. Twelve have
an effect that differs from hospital to hospital, and in eight of them its average looks real. The
usual greedy choice takes what helps most at these eight; T-Greedy takes what helps at each of them.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from holdtrue import DomainsDisplay, TGreedyRegressor
from holdtrue.datasets import make_domains


def hospitals(seed):
    return make_domains(8, 100, n_features=200, n_fickle=12, n_new_domains=20, random_state=seed)


def error(model, X, y):
    return np.mean((model.predict(X) - y) ** 2)


data = hospitals(seed=1)
print("Eight hospitals, 200 features: 0-2 are steady, 3-14 flip from hospital to hospital.\n")
print("  rule        first six features          at these 8   at 20 new ones")
for rule in ("greedy", "t", "moderated"):
    model = TGreedyRegressor(rule, stop="max_steps", max_steps=6)
    model.fit(data.X, data.y, groups=data.groups)
    here, there = model.source_score_, error(model, data.X_new, data.y_new)
    print(f"  {rule:10}  {model.path_.order.tolist()!s:26} {here:8.1f} {there:14.1f}")

# %%
# How many features, and what to expect at a new hospital: each hospital is held out in turn.
model = TGreedyRegressor(max_steps=20).fit(data.X, data.y, groups=data.groups)
low, high = model.new_domain_interval_
print(f"\nKept: {sorted(model.path_.chosen.tolist())}. Why: {model.path_.reason}.")
print(f"Squared error to expect at a new hospital: {model.new_domain_score_:.1f}", end="")
print(f" ({low:.1f} to {high:.1f}); at 20 new ones it was ", end="")
print(f"{error(model, data.X_new, data.y_new):.1f}; predicting the mean ", end="")
print(f"{np.mean((data.y.mean() - data.y_new) ** 2):.1f}.")

# %%
# One sample proves nothing. Twenty of them, six features each:
rules = ("greedy", "t", "moderated")
kept = {rule: [] for rule in rules}
errors = {rule: [] for rule in rules}
for seed in range(20):
    other = hospitals(seed)
    for rule in rules:
        fit = TGreedyRegressor(rule, stop="max_steps", max_steps=6)
        fit.fit(other.X, other.y, groups=other.groups)
        kept[rule].append(len(set(fit.path_.chosen) & set(other.steady)))
        errors[rule].append((fit.source_score_, error(fit, other.X_new, other.y_new)))
print("\nTwenty such samples:\n")
print("  rule        steady features found   at the 8   at 20 new ones")
for rule in rules:
    here, there = np.mean(errors[rule], axis=0)
    print(f"  {rule:10} {np.mean(kept[rule]):15.2f} of 3 {here:12.1f} {there:12.1f}")

# %%
# The picture: errors of the source and of held-out hospitals, the effects, and T along the path.
figure, axes = plt.subplot_mosaic(
    [["errors", "t"], ["effects", "effects"]],
    figsize=(9, 7.5),
    layout="constrained",
    height_ratios=[1, 1.3],
)
display = DomainsDisplay.from_estimator(
    model, axes=[axes[name] for name in ("errors", "effects", "t")]
)
# sphinx_gallery_thumbnail_path = "images/card_domains.svg"
