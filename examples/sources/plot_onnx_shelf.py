"""
A folder of ONNX heads and a new scanner
========================================

What people have on the shelf are files: heads that were trained and exported long ago. Here 45 of
them, each trained to tell one handwritten digit from another on clean scans, lie in a folder as
ONNX files. A new scanner is bad, and someone labels a dozen of its images: is it a 3 or an 8?
`SourcePool.from_folder` opens the folder, and `GreedyTLClassifier` finds the heads that still help
beside the pixels themselves. No head's training data is needed, and no code in the files is run.
"""

# %%
# The shelf: one file a head, written with skl2onnx as anyone would.
import tempfile
import time
from itertools import combinations
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from skl2onnx import to_onnx
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from holdtrue import GreedyTLClassifier, SourcePool
from holdtrue.sources import BestSource, RegularizedLeastSquares

images, digit = load_digits(return_X_y=True)
images = images.astype(np.float32)
shelf, here = slice(None, 900), slice(900, None)
folder = tempfile.TemporaryDirectory()
for a, b in combinations(range(10), 2):
    rows = np.isin(digit[shelf], (a, b))
    head = LogisticRegression(C=0.01).fit(images[shelf][rows], digit[shelf][rows])
    file = to_onnx(head, images[:1], options={"zipmap": False})
    Path(folder.name, f"{a}_or_{b}.onnx").write_bytes(file.SerializeToString())

start = time.perf_counter()
pool = SourcePool.from_folder(folder.name)
print(f"{len(pool)} heads in the folder, opened in {1000 * (time.perf_counter() - start):.0f} ms")

# %%
# A dozen labels from the new scanner, whose noise is half as large as the ink is dark.
NOISE = 8.0


def scanned(seed, a=3, b=8, n_labels=6):
    """Rows to fit, rows to judge by, of the two digits as the new scanner sees them."""
    rng = np.random.RandomState(seed)
    rows = [rng.permutation(np.flatnonzero(digit[here] == d)) for d in (a, b)]
    noisy = (images[here] + NOISE * rng.standard_normal(images[here].shape)).astype(np.float32)
    train = np.concatenate([of_digit[:n_labels] for of_digit in rows])
    test = np.concatenate([of_digit[n_labels:] for of_digit in rows])
    return noisy[train], digit[here][train], noisy[test], digit[here][test]


X, y, X_test, y_test = scanned(seed=0)
model = GreedyTLClassifier(pool).fit(X, y)
heads = [name for name in model.selected_ if "_or_" in name]
print(f"\nchosen: {len(heads)} heads and {len(model.selected_) - len(heads)} pixels")
print(f"the first heads: {', '.join(heads[:5])}")
print(f"why: {model.path_.reason}")
print(f"right on {len(y_test)} new images: {model.score(X_test, y_test):.1%}")

# %%
# One draw proves nothing. Ten of them, and other ways to use the same folder:
ways = {
    "GreedyTL": lambda: GreedyTLClassifier(pool),
    "heads + pixels (RLS)": lambda: RegularizedLeastSquares(pool),
    "pixels alone (RLS)": RegularizedLeastSquares,
    "pixels alone (logistic)": lambda: LogisticRegression(max_iter=1000),
    "the head best on 12 rows": lambda: BestSource(pool),
}
right = {way: [] for way in ways}
for seed in range(10):
    X, y, X_test, y_test = scanned(seed)
    for way, make in ways.items():
        right[way].append(make().fit(X, y).score(X_test, y_test))
print("\nRight on new images, mean of 10 draws of 12 labels:\n")
for way, scores in right.items():
    error = np.std(scores, ddof=1) / np.sqrt(len(scores))
    print(f"  {way:26} {np.mean(scores):6.1%} ± {error:.1%}")

# %%
# Of the eight strongest heads six know a 3 or an 8. Prediction runs the chosen ones alone.
weights = dict(zip(model.source_names_, model.source_weights_, strict=True))
strongest = sorted(weights, key=lambda name: -abs(weights[name]))[:8]
figure, (left, bars) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
sure = [weights[name] for name in strongest]
left.barh([name.replace("_", " ") for name in strongest], sure, color="#0072B2")
left.invert_yaxis()
left.axvline(0, color="black", linewidth=0.8)
left.set_xlabel("what one standard deviation adds (+ for 8)")
left.set_title("the strongest of 45 heads for “3 or 8?”", fontsize="medium", loc="left")
bars.barh(list(ways), [100 * np.mean(scores) for scores in right.values()], color="#0072B2")
bars.invert_yaxis()
bars.set(xlim=(50, 85), xlabel="right on new images (%)")
bars.set_title("12 labels from a noisy scanner, 10 draws", fontsize="medium", loc="left")
folder.cleanup()
# sphinx_gallery_thumbnail_path = "images/card_shelf.svg"
