"""
Twelve sites, one fit, and no row leaves any of them
====================================================

T-Greedy needs the rows of a domain only through their moments. Each site adds up its own, sends a
few kilobytes, and the sums of all sites give the very fit that all rows would have given.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from holdtrue import DomainsDisplay, Moments, TGreedyRegressor
from holdtrue.datasets import make_domains

data = make_domains(12, 10_000, n_features=30, n_steady=5, random_state=0)

sent = []  # what travels: bytes, no pickle, no row
for site in range(12):
    rows = data.groups == site
    moments = Moments.from_arrays(data.X[rows], data.y[rows], groups=data.groups[rows])
    sent.append(moments.to_bytes())

received = [Moments.from_bytes(each) for each in sent]
from_sums = TGreedyRegressor().fit_statistics(sum(received[1:], received[0]))
from_rows = TGreedyRegressor().fit(data.X, data.y, groups=data.groups)
print("The same features:", np.array_equal(from_sums.path_.order, from_rows.path_.order))
print("Largest difference of a coefficient:", np.abs(from_sums.coef_ - from_rows.coef_).max())
rows_size = data.X.nbytes + data.y.nbytes
print(f"Rows: {rows_size / 1e6:.1f} MB. Sums: {sum(map(len, sent)) / 1e6:.3f} MB.")

# %%
# A site can leave again: `without` takes its sums out, and the fit follows.
eleven = TGreedyRegressor().fit_statistics(sum(received[1:], received[0]).without(0))
print(
    f"Error to expect at a new site: {from_sums.new_domain_score_:.1f} from twelve sites,", end=" "
)
print(f"{eleven.new_domain_score_:.1f} without the first.")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
bars = left.bar(["rows", "sums"], [rows_size, sum(map(len, sent))], color=["#D55E00", "#0072B2"])
left.bar_label(bars, [f"{rows_size / 1e6:.0f} MB", f"{sum(map(len, sent)) / 1e3:.0f} kB"])
left.set(yscale="log", ylabel="bytes that travel", ylim=(1e4, 3e8))
left.set_title("120,000 rows of 30 features, 12 sites", loc="left", fontsize="medium")
DomainsDisplay(from_sums.path_).plot_effects(right, max_features=10)
right.set_title("Effects by site, from sums alone", loc="left", fontsize="medium")
# sphinx_gallery_thumbnail_path = "images/card_site_sums.svg"
