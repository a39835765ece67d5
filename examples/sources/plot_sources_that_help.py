"""
Which of a thousand trained models help a task with twenty labels?
==================================================================

A shelf of a thousand models trained elsewhere, of which twenty help, each with faults of its own;
and twenty labelled rows, whose features show nothing by themselves. `GreedyTLClassifier` finds
models that help and weighs them. Few of many help here, so it is told to stop where the error on
left-out rows is least, ``max_selected="loo"``; the picture shows that error.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from holdtrue import GreedyTLClassifier, PathDisplay, SourcePool
from holdtrue.datasets import make_sources
from holdtrue.sources import BestSource, ForwardRegression, RegularizedLeastSquares

task = make_sources(n_samples=20, n_sources=1000, n_helpful=20, random_state=0)
model = GreedyTLClassifier(task.sources, max_selected="loo").fit(task.X, task.y)

print("Which of 1,000 trained models help a task with 20 labels?\n")
print(f"chosen, in order: {', '.join(model.selected_)}")
print(
    f"of the {len(task.helpful)} that truly help: {len(set(model.selected_) & set(task.helpful))}"
)
print(f"why: {model.path_.reason}")
print(f"right on 1,000 new rows: {model.score(task.X_test, task.y_test):.1%}")

# %%
# One draw proves nothing. Six of them, and other ways to use the same shelf:
shelf = [1000, 200]
ways = {
    "GreedyTL, stopped there": lambda s: GreedyTLClassifier(s, max_selected="loo"),
    "GreedyTL, the paper's rule": GreedyTLClassifier,
    "no transfer (RLS)": lambda s: RegularizedLeastSquares(),
    "all sources + features (RLS)": RegularizedLeastSquares,
    "the source best on 20 rows": BestSource,
    "forward regression": ForwardRegression,
}
right = {way: [[] for _ in shelf] for way in ways}
for seed in range(6):
    for place, size in enumerate(shelf):
        other = make_sources(n_samples=20, n_sources=size, n_helpful=20, random_state=seed)
        for way, make in ways.items():
            fitted = make(other.sources).fit(other.X, other.y)
            right[way][place].append(fitted.score(other.X_test, other.y_test))
print("\nRight on new rows, mean of 6 draws, with 20 helpful models among\n")
print(" " * 32 + "".join(f"{size:>8,}" for size in shelf))
for way, scores in right.items():
    print(f"  {way:30}" + "".join(f"{np.mean(values):8.1%}" for values in scores))

# %%
# A source that is never drawn is never run. With 59 random candidates a step, the bill does not
# grow with the shelf:
print("\nModels run by GreedyTL with 59 candidates a step:\n")
for size in (200, 1_000, 5_000):
    other = make_sources(n_samples=20, n_sources=size, n_helpful=20, random_state=0)
    pool = SourcePool(other.sources)
    drawn = GreedyTLClassifier(pool, n_candidates=59, max_selected=5, random_state=0)
    drawn.fit(other.X, other.y)
    print(f"  {size:6,} on the shelf: {pool.n_runs:4} run")

# %%
# And shelves on which nothing helps:
reported = 0
for seed in range(10):
    other = make_sources(n_samples=20, n_sources=220, n_helpful=20, random_state=seed)
    useless = [source for source in other.sources if source[0] not in other.helpful]
    last = GreedyTLClassifier(useless, max_selected=5, passthrough=False).fit(other.X, other.y)
    reported += last.path_.skill[last.path_.chosen_size] <= 0
print(f"\nOf 10 shelves of 200 models that do not help, {reported} have no skill. The last one:")
print(f"{last.path_.reason}.")

# %%
# The picture: where the path stops and why, and what comes of it.
figure, (path, bars) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
PathDisplay.from_estimator(model, ax=path)
path.set_title("error on left-out rows as models enter", fontsize="medium", loc="left")
for place, size in enumerate(shelf):
    where = np.arange(len(ways)) + 0.4 * (place - 0.5)
    means = [100 * np.mean(scores[place]) for scores in right.values()]
    color = ("#0072B2", "#56B4E9")[place]
    bars.barh(where, means, height=0.38, color=color, label=f"{size:,} models")
bars.set_yticks(np.arange(len(ways)), list(ways))
bars.invert_yaxis()
bars.set(xlim=(40, 100), xlabel="right on new rows (%)")
bars.set_title("20 labels, 20 models that help", fontsize="medium", loc="left")
bars.legend(frameon=False, loc="center right", bbox_to_anchor=(1, 0.585))
# sphinx_gallery_thumbnail_path = "images/card_sources.svg"
