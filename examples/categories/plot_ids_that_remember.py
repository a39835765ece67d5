"""
Which columns predict, and which only remember?
===============================================

Two thousand customers, and whether they left. A customer's number and postcode say nothing about
it, but they have so many values that on these rows they explain everything. Information gain puts
them first, and a random forest leans on them. `GingerSelector` asks another question: how often
would this column be wrong on customers that nobody has seen yet?
"""

# %%
import matplotlib.pyplot as plt
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from holdtrue import (
    GingerSelector,
    GingerTreeClassifier,
    RankingDisplay,
    audit_importances,
    rank_columns,
)
from holdtrue.datasets import make_customers

data = make_customers(2000, n_new=10_000, random_state=0)
X, left = pd.DataFrame(data.columns), data.left
table = rank_columns(X, left).to_frame().set_index("column")
bits = rank_columns(X, left, criterion="information_gain").to_frame().set_index("column")
entropy = float(bits["no_column"].iloc[0])

# %%
# A forest on the same columns, categories as codes, as is often done:
codes = X.apply(lambda column: column if column.dtype == float else pd.factorize(column)[0])
forest = RandomForestClassifier(100, random_state=0).fit(codes, left)
audit = audit_importances(forest, codes, left).set_index("column")

print("Who leaves? Five columns, 2,000 customers\n")
print("  column     values   information gain   forest's     Ginger: error    seen")
print("                        explains         importance   on new rows    before")
for name in bits.index:
    gain, row = 1 - bits["score"][name] / entropy, table.loc[name]
    importance = audit["importance"][name]
    print(
        f"  {name:9} {row['n_values']:7,} {gain:14.0%} {importance:16.2f} {row['score']:16.3f}"
        f" {row['coverage']:13.0%}"
    )
print(f"\nWithout any column: {table['no_column'].iloc[0]:.3f}.")
for name in ("customer", "plan"):
    print(f"{name}: {table['verdict'][name]}.")
useless = audit.index[(audit["importance"] > 0.1) & ~audit["predicts"]]
print(f"Important to the forest, and of no use by themselves: {', '.join(useless)}.")

# %%
# What it costs to believe an id: two trees with one child per value on 10,000 new customers. The
# first splits on the customer's number, and has nothing to say about a customer it has not met.
# (A forest of yes-or-no splits on codes loses little by such columns. But its importances cannot be
# read.)
selector = GingerSelector().fit(X, left)
X_new, left_new = pd.DataFrame(data.new_columns), data.new_left
print("\nError of a tree on 10,000 new customers:")
for criterion in ("information_gain", "ginger"):
    tree = GingerTreeClassifier(criterion).fit(X, left)
    error = 1 - tree.score(X_new, left_new)
    used = ", ".join(X.columns[tree.support_])
    print(f"  {error:.3f} grown by {criterion}: splits on {used}")
print(f"  {min(left_new.mean(), 1 - left_new.mean()):.3f} always the same answer")

# %%
# The picture: what the rows of the fit say, and what Ginger expects of new ones.
figure, axes = plt.subplot_mosaic(
    [["gain", "forest"], ["ginger", "ginger"]], figsize=(9, 5.6), layout="constrained"
)
names = list(bits.index)[::-1]
colors = ["#D55E00" if table["id_like"][name] else "#0072B2" for name in names]
axes["gain"].barh(names, [1 - bits["score"][name] / entropy for name in names], color=colors)
axes["gain"].set_title("Information gain: share explained", loc="left", fontsize="medium")
axes["forest"].barh(names, [audit["importance"][name] for name in names], color=colors)
axes["forest"].set_title("Random forest: impurity importance", loc="left", fontsize="medium")
RankingDisplay.from_estimator(selector, ax=axes["ginger"])
axes["ginger"].set_title("Ginger: " + selector.path_.reason, loc="left", fontsize="medium")
# sphinx_gallery_thumbnail_path = "images/card_categories.svg"
