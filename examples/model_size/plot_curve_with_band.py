"""
A curve through thirty patients, and how far it may be off
==========================================================

The diabetes data of scikit-learn: body mass index, and the state of the disease a year later.
Thirty patients are given, 412 kept aside. `NestedRegressor` averages over sizes and bases, each by
how likely it makes the thirty, and says how far the *curve* may be off. A single size of a
polynomial follows the points that it was given.
"""

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import train_test_split

from holdtrue import NestedRegressor

data = load_diabetes(scaled=False)
bmi, state = data.data[:, [2]], data.target


def models():
    kernel = ConstantKernel(1.0) * RBF(5.0, (1, 100)) + WhiteKernel()
    polynomial = NestedRegressor("legendre", criterion="aic", predict="chosen", random_state=0)
    return {
        "average": NestedRegressor(random_state=0),
        "polynomial by AIC": polynomial,
        "Gaussian process": GaussianProcessRegressor(kernel, normalize_y=True),
    }


# %%
# Thirty times thirty patients; the error is that on the 412 others.
errors = {name: [] for name in models()}
promised = []
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # that AIC is not for thirty rows is what is shown here
    for seed in range(30):
        few, rest, y_few, y_rest = train_test_split(bmi, state, train_size=30, random_state=seed)
        fits = {name: model.fit(few, y_few) for name, model in models().items()}
        promised.append(fits["average"].new_error_)
        for name, fit in fits.items():
            errors[name].append(np.mean((fit.predict(rest) - y_rest) ** 2))
print("Squared error on 412 patients, over that of the mean of all:  median, worst of 30")
for name, values in errors.items():
    print(f"  {name:18} {np.median(values) / state.var():5.2f} {max(values) / state.var():9.3g}")
print(f"  promised by the average: {np.median(promised) / state.var():.2f}")

# %%
few, rest, y_few, y_rest = train_test_split(bmi, state, train_size=30, random_state=1)
grid = np.linspace(few.min(), few.max(), 300)[:, None]
model = NestedRegressor(random_state=0).fit(few, y_few)
curve, deviation = model.predict(grid, return_std=True)
figure, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
ax.plot(rest, y_rest, "o", color="#BBBBBB", markersize=3, label="412 patients kept aside")
ax.fill_between(
    grid[:, 0], curve - 2 * deviation, curve + 2 * deviation, color="#0072B2", alpha=0.2
)
ax.plot(grid, curve, color="#0072B2", linewidth=2.5, label="the average, ± 2 deviations")
ax.plot(few, y_few, "ko", markersize=5, label="30 patients given")
ax.set(xlabel="body mass index", ylabel="state of the disease after a year")
ax.set_title("What thirty patients say, and how far it may be off", loc="left", fontsize="medium")
ax.legend(frameon=False, loc="upper left")
# sphinx_gallery_thumbnail_path = "images/card_band.svg"
