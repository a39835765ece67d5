"""
Which digit helps which?
========================

Scikit-learn's digits, seen sharply in the past and blurred today. Ten models tell one digit each
from the others, on sharp images. For every digit there is a new task: twelve labelled *blurred*
images. GreedyTL chooses from the shelf; the matrix shows what it took for what.
"""

# %%
import numpy as np
from scipy.ndimage import uniform_filter
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from holdtrue import GreedyTLClassifier, transfer_matrix

images, digit = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
past, today = np.array_split(rng.permutation(len(digit)), 2)
blurred = uniform_filter(images.reshape(-1, 8, 8), size=(1, 3, 3)).reshape(-1, 64)
blurred += rng.normal(0, 2, blurred.shape)

shelf = []
for d in range(10):
    head = LogisticRegression(C=0.01, max_iter=500).fit(images[past], digit[past] == d)
    shelf.append((f"is it a {d}?", head))

# %%
# Twelve labels for each task, six of each class; the rest of today's images judges.
models, right = {}, []
for d in range(10):
    yes, no = (rng.permutation(today[(digit[today] == d) == is_d]) for is_d in (True, False))
    few = np.r_[yes[:6], no[:6]]
    test = np.setdiff1d(today, few)
    with_shelf = GreedyTLClassifier(shelf, max_selected=4, passthrough=False).fit(
        blurred[few], digit[few] == d
    )
    alone = GreedyTLClassifier(max_selected=4).fit(blurred[few], digit[few] == d)
    models[f"{d}, blurred"] = with_shelf
    balanced = []
    for model in (with_shelf, alone):
        hit = model.predict(blurred[test]) == (digit[test] == d)
        balanced.append(np.mean([hit[digit[test] == d].mean(), hit[digit[test] != d].mean()]))
    right.append(balanced)
print("Balanced accuracy with the shelf, and without:", np.mean(right, axis=0).round(3))

# %%
display = transfer_matrix(models).plot()
# sphinx_gallery_thumbnail_path = "images/card_matrix.svg"
