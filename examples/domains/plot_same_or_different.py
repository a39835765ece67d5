"""
Same or different? Digits that were never seen
==============================================

A similarity is learned from pairs of the digits 0 to 7: which pixels tell *same* from *different*
in every class? It is then used on 8s and 9s, which had no part in it.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from holdtrue import SimilarityLearner

pixels, digit = load_digits(return_X_y=True)
varied = pixels.std(axis=0) > 2
X = (pixels[:, varied] - pixels[:, varied].mean(axis=0)) / pixels[:, varied].std(axis=0)
seen = digit < 8
learner = SimilarityLearner(max_steps=40).fit(X[seen], digit[seen])
auroc = learner.zero_shot_auroc(X[~seen], digit[~seen], X_others=X[seen])
print(learner.path_.reason)
print(f"An 8 or 9 against the others, AUROC: {auroc}")

# %%
# Few weights are not always worth it: on these digits the plain product has the smaller squared
# error on held-out classes, and the reason above says so. What the learner adds is the picture on
# the left: where in the image two writings of one sign agree.
new, old = X[~seen], X[seen]
pairs = learner.similarity(new[:60], new[:60])
order = np.argsort(digit[~seen][:60], kind="stable")
weights = np.full(64, np.nan)
weights[varied] = learner.coef_
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
picture = left.imshow(weights.reshape(8, 8), cmap="Blues")
left.set_title("Weight of each pixel, learned from 0 to 7", loc="left", fontsize="medium")
figure.colorbar(picture, ax=left, shrink=0.8)
limit = np.percentile(np.abs(pairs), 98)
picture = right.imshow(pairs[np.ix_(order, order)], cmap="RdBu", vmin=-limit, vmax=limit)
border = int((digit[~seen][:60] == 8).sum())
right.axhline(border - 0.5, color="black", lw=1)
right.axvline(border - 0.5, color="black", lw=1)
right.set(xticks=[border / 2, (border + 60) / 2], xticklabels=["8s", "9s"])
right.set(yticks=[border / 2, (border + 60) / 2], yticklabels=["8s", "9s"])
right.set_title("Similarity of sixty 8s and 9s, never seen", loc="left", fontsize="medium")
figure.colorbar(picture, ax=right, shrink=0.8)
for ax in (left,):
    ax.set(xticks=[], yticks=[])
# sphinx_gallery_thumbnail_path = "images/card_similarity.svg"
