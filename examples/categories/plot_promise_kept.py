"""
Is the promise kept? Thirty columns of the breast cancer data
=============================================================

Every column of a ranking has a promise: the share of new rows that a rule on this column alone
would get wrong. Here the promise is made on a hundred tumours and met on the other 469, twenty
times over. Beside it stands what the rows of the fit say about the same rules.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from holdtrue import rank_columns
from holdtrue.categories import OneColumnClassifier

X, malignant = load_breast_cancer(return_X_y=True, as_frame=True)
malignant = malignant == 0


def wrong(rule, rows, truth):
    return 1 - rule.score(rows, truth)


promised, on_the_fit, met = ([] for _ in range(3))
for seed in range(20):
    few, rest, y_few, y_rest = train_test_split(X, malignant, train_size=100, random_state=seed)
    table = rank_columns(few, y_few).to_frame("pandas").set_index("column")
    rules = {name: OneColumnClassifier("majority").fit(few[[name]], y_few) for name in X}
    promised.append([table["share_wrong"][name] for name in X])
    on_the_fit.append([wrong(rules[name], few[[name]], y_few) for name in X])
    met.append([wrong(rules[name], rest[[name]], y_rest) for name in X])

promised, on_the_fit, met = (np.mean(values, axis=0) for values in (promised, on_the_fit, met))
print("Share wrong, mean over 20 draws of 100 tumours and 30 columns")
for says, values in {
    "on the rows of the fit": on_the_fit,
    "promised": promised,
    "met": met,
}.items():
    print(f"  {says:24}{values.mean():7.1%}")

# %%
# A dot for each column. On the line, the promise is kept; above it, too much was promised.
figure, ax = plt.subplots(figsize=(6.4, 5.2), layout="constrained")
top = 100 * max(met.max(), promised.max()) * 1.08
ax.plot([0, top], [0, top], color="#8A8A8A", linewidth=1)
ax.plot(100 * on_the_fit, 100 * met, "o", color="#D55E00", label="said by the rows of the fit")
ax.plot(100 * promised, 100 * met, "o", color="#0072B2", label="promised by rank_columns")
for name, x, y in zip(X, promised, met, strict=True):
    if name in ("worst perimeter", "mean texture", "mean symmetry"):
        ax.annotate(name, (100 * x, 100 * y), (8, -14), textcoords="offset points")
ax.set(xlim=(0, top), ylim=(0, top), xlabel="wrong, as said beforehand (%)")
ax.set_ylabel("wrong on 469 tumours nobody has seen (%)")
ax.set_title("A rule on one column, learned from 100 tumours", loc="left", fontsize="medium")
ax.legend(frameon=False, loc="upper left")
# sphinx_gallery_thumbnail_path = "images/card_promise.svg"
