"""
New rows, or new patients?
==========================

Two hundred patients with six visits each. Whether a visit ends well depends on the patient and on
the dose; the year of birth, the blood group and the ward say nothing. But they tell patients apart,
and five of six visits of a patient stay when one is left out. So they seem to predict, as long as
new data are taken to be new *visits*. With `groups` new data are new *patients*, each left out as a
whole.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from holdtrue import GingerEncoder, rank_columns


def visits(n_patients, seed):
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(n_patients), 6)
    columns = {
        "dose": rng.choice(["low", "high"], len(patient)),
        "born": rng.integers(1930, 2000, n_patients)[patient],
        "blood": rng.choice(["A+", "A-", "B+", "B-", "AB+", "AB-", "0+", "0-"], n_patients)[
            patient
        ],
        "ward": rng.integers(1, 31, n_patients)[patient].astype(str),
    }
    well = rng.random(n_patients)[patient] + 0.35 * (columns["dose"] == "low") > 0.6
    return pd.DataFrame(columns), well, patient


X, well, patient = visits(200, seed=0)
X_new, well_new, _ = visits(5000, seed=1)
print(rank_columns(X, well), end="\n\n")
print(rank_columns(X, well, groups=patient))

# %%
# What is promised of each column, and what its shares are worth at 5,000 patients who were not in
# the data: once learned as if rows were all, once with `groups`, which shrinks what is known of a
# few patients only.
promised, met = {}, {}
for way, groups in {"new visits": None, "new patients": patient}.items():
    table = rank_columns(X, well, groups=groups).to_frame("pandas").set_index("column")
    promised[way] = 100 * table["share_wrong"][list(X)]
    encoder = GingerEncoder(output="probability").fit(X, well, groups=groups)
    predicted = encoder.transform(X_new) > 0.5
    met[way] = pd.Series(100 * np.mean(predicted != well_new[:, None], axis=0), list(X))
print(pd.concat({"promised": pd.DataFrame(promised), "met": pd.DataFrame(met)}, axis=1).round(1))

# %%
figure, ax = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
for way, color, lift in (("new visits", "#D55E00", 0.13), ("new patients", "#0072B2", -0.13)):
    place = np.arange(len(X.columns))[::-1] + lift
    ax.hlines(place, promised[way], met[way], color=color, alpha=0.4, linewidth=3)
    ax.plot(promised[way], place, "o", color=color, markersize=9, label=f"{way}: promised")
    ax.plot(met[way], place, "|", color=color, markersize=16, markeredgewidth=3, label="met")
ax.set_yticks(np.arange(len(X.columns))[::-1], list(X))
ax.set(xlabel="wrong at new patients, by the column alone (%)")
ax.set_title("What a column promises depends on what will be new", loc="left", fontsize="medium")
ax.legend(frameon=False, ncols=2, loc="upper right")
# sphinx_gallery_thumbnail_path = "images/card_groups.svg"
