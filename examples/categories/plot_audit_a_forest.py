"""
What are a forest's importances worth?
======================================

The diabetes data of scikit-learn: ten measurements of 442 patients, and whether the disease got
worse than in the median patient a year later. Four columns of noise join them. Impurity importances
like them, because a column with many values offers many splits. `audit_importances` asks each
column alone about new rows, fits the forest again without those that say nothing, and flags what it
does not miss.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestClassifier

from holdtrue import audit_importances

X, progress = load_diabetes(return_X_y=True, as_frame=True)
worse = progress > progress.median()
rng = np.random.default_rng(0)
for j in range(1, 5):
    X[f"noise {j}"] = rng.normal(size=len(X))

forest = RandomForestClassifier(100, random_state=0).fit(X, worse)
audit = audit_importances(forest, X, worse)
print(
    audit[["column", "importance", "score", "predicts", "cost", "cost_standard_error", "flagged"]]
    .round(3)
    .to_string()
)

# %%
# Left: what the forest says. Right: the log loss of each column alone on new patients, and that
# of guessing. Noise is orange, and what the audit flags has a ring. One column of noise has luck
# with these patients. Another the forest would miss a little: noise smooths the votes of
# full-grown trees.
table = audit.iloc[::-1]
colors = np.where(table["column"].str.startswith("noise"), "#D55E00", "#0072B2")
rings = np.where(table["flagged"], "#000000", "none")
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.6), sharey=True, layout="constrained")
left.barh(table["column"], table["importance"], color=colors)
left.set_title("Importance in the forest", loc="left", fontsize="medium")
right.scatter(table["score"], table["column"], color=colors, zorder=3)
right.scatter(table["score"], table["column"], s=130, facecolor="none", edgecolor=rings)
right.axvline(np.log(2), color="#8A8A8A", linewidth=1)
right.text(np.log(2), -0.9, "guessing ", ha="right", va="center", color="#666666")
right.set_title("Log loss of each alone on new patients", loc="left", fontsize="medium")
right.grid(axis="y", color="#DDDDDD")
# sphinx_gallery_thumbnail_path = "images/card_audit.svg"
