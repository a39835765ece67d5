"""
Categories as numbers, without the row's own answer in them
===========================================================

Orders of a shop, and whether they come back. The town matters, but most towns have few orders; the
courier matters; so does the price, in the middle more than at both ends; the customer's number says
nothing. `GingerEncoder` turns each column into log odds, shrunk as far as rows left out ask for,
and encodes the rows of the fit out of fold. Beside it: the same shares computed from all rows and
used on the same rows, which is how leaks are made; scikit-learn's TargetEncoder; one-hot columns.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, TargetEncoder

from holdtrue import GingerEncoder

TEXT, N_TOWNS = ["customer", "town", "courier"], 400
effects = np.random.default_rng(1).normal(0, 1.2, N_TOWNS)


def orders(n, seed):
    rng = np.random.default_rng(seed)
    town = np.minimum(rng.zipf(1.4, n), N_TOWNS) - 1
    courier = rng.integers(0, 4, n)
    price = rng.gamma(2.0, 30.0, n)
    odds = effects[town] + 0.5 * (courier == 2) + 1.5 * np.exp(-((price - 60) ** 2) / 600) - 1
    columns = {
        "customer": [f"c{i}" for i in rng.integers(0, n, n)],
        "town": [f"town {t}" for t in town],
        "courier": [f"courier {c}" for c in courier],
        "price": price,
    }
    return pd.DataFrame(columns), rng.random(n) < 1 / (1 + np.exp(-odds))


class InSample(TransformerMixin, BaseEstimator):
    """Mean of the target by value, used on the rows it was computed from."""

    def fit(self, X, y):
        self.means_ = {name: pd.Series(y).groupby(X[name].to_numpy()).mean() for name in X}
        self.mean_ = y.mean()
        return self

    def transform(self, X):
        return np.column_stack([X[name].map(self.means_[name]).fillna(self.mean_) for name in X])


def linear(encoder):
    columns = make_column_transformer((encoder, TEXT), (StandardScaler(), ["price"]))
    return make_pipeline(columns, LogisticRegression(max_iter=1000))


models = {
    "GingerEncoder": lambda: make_pipeline(GingerEncoder(random_state=0), LogisticRegression()),
    "TargetEncoder": lambda: linear(TargetEncoder()),
    "one-hot": lambda: linear(OneHotEncoder(handle_unknown="ignore")),
    "means of the same rows": lambda: linear(InSample()),
}

# %%
# Log loss of a logistic regression on 10,000 new orders, by the number of orders to learn from:
X_new, back_new = orders(10_000, seed=0)
sizes = (250, 500, 1000, 2000, 4000)
losses = {name: [] for name in models}
for n in sizes:
    X, back = orders(n, seed=n)
    for name, make in models.items():
        losses[name].append(log_loss(back_new, make().fit(X, back).predict_proba(X_new)))
print("Log loss on 10,000 new orders\n")
print("  orders learned from   " + "".join(f"{n:>8,}" for n in sizes))
for name, values in losses.items():
    print(f"  {name:22}" + "".join(f"{value:8.3f}" for value in values))
print(
    f"  {'always the same share':22}" + f"{log_loss(back_new, np.full(10_000, back.mean())):8.3f}"
)

# %%
# What the encoder learned from 4,000 orders: how far each column is shrunk, and what for.
encoder = GingerEncoder(output="probability").fit(X, back)
print("\nStrength: rows that the share of all orders counts for")
for name, strength, n_bins in zip(X, encoder.strengths_, encoder.n_bins_, strict=True):
    says = "says nothing about new orders" if np.isinf(strength) else f"{strength:g} rows"
    print(f"  {name:9} {says}" + (f", in {n_bins} bins" if n_bins else ""))

# %%
# The picture: towns with few orders are drawn to the middle, and that is what pays.
by_town = pd.DataFrame({"town": X["town"], "back": back}).groupby("town")["back"]
shares = by_town.agg(["mean", "size"])
probe = X.head(1).loc[np.repeat(X.index[0], len(shares))].assign(town=shares.index)
shrunk = encoder.transform(probe)[:, list(X).index("town")]
figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
for name, values in losses.items():
    axes[0].plot(sizes, values, marker="o", label=name)
axes[0].set(xscale="log", xlabel="orders learned from", ylabel="log loss on new orders")
axes[0].set_xticks(sizes, [f"{n:,}" for n in sizes])
axes[0].minorticks_off()
axes[0].set_title("Logistic regression behind each encoding", loc="left", fontsize="medium")
axes[0].legend(frameon=False)
dots = axes[1].scatter(
    shares["mean"], shrunk, s=12, c=np.log10(shares["size"]), cmap="viridis", alpha=0.8
)
axes[1].plot([0, 1], [0, 1], color="#999999", linewidth=1)
axes[1].set(xlabel="share of the town's orders that came back", ylabel="as encoded")
axes[1].set_title("A dot per town", loc="left", fontsize="medium")
figure.colorbar(dots, ax=axes[1], label="log10 of its orders")
# sphinx_gallery_thumbnail_path = "images/card_encoder.svg"
