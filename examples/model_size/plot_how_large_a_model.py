"""
How large a model can twenty points afford?
===========================================

Twenty noisy points of a step, and up to fifteen cosine terms to fit them with. Every further term
brings the fit closer to the points. From some size on it also takes it away from the step.
`NestedRegressor` estimates, for every size, the error on points that it has not seen.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from holdtrue import NestedRegressor, compare_criteria
from holdtrue.datasets import make_curve

NOISE = 0.1
grid = np.linspace(-np.pi, np.pi, 1000)[:, None]


def fitted(seed):
    """A sample, its fit, and the true error of every size: the curve is known."""
    data = make_curve("step", n_samples=20, noise=NOISE, random_state=seed)
    paper = {"basis": "cosine", "criterion": "dee", "predict": "chosen"}
    model = NestedRegressor(**paper, random_state=0, interval=(-np.pi, np.pi))
    model.fit(data.X, data.y)
    fits = list(model.staged_predict(grid))
    true = [np.mean((fit - data.curve(grid[:, 0])) ** 2) + NOISE**2 for fit in fits]
    return data, model, fits, np.array(true)


data, model, fits, true = fitted(seed=2)

print("How large a model can 20 points afford?\n")
print("  terms   error on the   what DEE expects   true error on")
print("            20 points      on new points      new points")
for size in range(1, len(true) + 1):
    train, dee = model.criteria_["train"][size - 1], model.criteria_["dee"][size - 1]
    note = "  <- chosen" if size == model.n_terms_ else ""
    print(f"  {size:4}   {train:10.3f}   {dee:14.3f}   {true[size - 1]:15.3f}{note}")
print(f"\nDEE chooses {model.n_terms_} terms, AIC {model.choices_['aic']}.")
print(f"Why {model.n_terms_}: {model.path_.reason}.")

# %%
# One sample proves nothing. Two hundred of them:
ratios = {name: [] for name in ("bayes", "adj", "dee", "cv", "loo", "gcv", "aic")}
for seed in range(200):
    _, other, _, errors = fitted(seed)
    for name, values in ratios.items():
        values.append(errors[other.choices_[name] - 1] / errors.min())
print("\nTrue error of the chosen size over that of the best size, 200 samples of 20 points:\n")
print("  criterion   median   one in ten is worse than")
for name, values in ratios.items():
    print(f"  {name:9} {np.median(values):8.2f} {np.percentile(values, 90):12.4g}")

# %%
# The picture: the chosen fit beside the one that AIC takes, and all criteria on one path.
figure = plt.figure(figsize=(9.5, 7), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[1, 1.4])
ax = left.subplots()
for name, color in (("aic", "#D55E00"), ("dee", "#0072B2")):
    size = model.choices_[name]
    ax.plot(grid, fits[size - 1], color=color, label=f"{size} terms, chosen by {name.upper()}")
ax.plot(grid, data.curve(grid[:, 0]), color="#8A8A8A", linewidth=3, zorder=1, label="the truth")
ax.plot(data.X[:, 0], data.y, "ko", markersize=5, label="20 points")
ax.set(ylim=(-1, 2), xlabel="x", ylabel="y")
ax.set_title("What 20 points afford", loc="left", fontsize="medium")
ax.legend(frameon=False, loc="upper left")
criteria, choices = right.subplots(2, 1, sharex=True)
compare_criteria(model, axes=[criteria, choices])
criteria.set_title("What each criterion expects of new points", loc="left", fontsize="medium")
# sphinx_gallery_thumbnail_path = "images/card_model_size.svg"
