"""Speed of GreedyTL: beside OMP, Algorithm 1 and abess; lazy pools; many targets; 2,000 files.

    python -m benchmarks.sources              every part, then table and figure
    python -m benchmarks.sources kernel       one part (kernel, estimate, lazy, targets, files)
    python -m benchmarks.sources --report     tables and figure from the CSVs alone

Times are CPU times of one thread, the ways in turn, and the tables have ratios of medians: the
machine may be busy, the ratios hold. Where two ways must pick the same candidates, the run stops
if they do not.
"""

from __future__ import annotations

import multiprocessing
import pickle
import resource
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.sources_report import report
from experiments.records import asked_options, progress, write_csv
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import (
    LogisticRegression,
    OrthogonalMatchingPursuit,
    OrthogonalMatchingPursuitCV,
    orthogonal_mp,
)
from threadpoolctl import threadpool_limits

from holdtrue import GreedyTLClassifier, GreedyTLRegressor, SourcePool
from holdtrue.sources import choose, kernel, scale

RESULTS = Path(__file__).parent / "results" / "sources"
# (m, p, k), how often each way is timed, and how often the slow ones.
SIZES = (((20, 4_995, 20), 31, 5), ((200, 50_000, 50), 3, 1), ((2_000, 20_000, 100), 1, 1))
ABESS_SECONDS = 20  # of CPU; a path that takes longer is stopped
POOLS = (1_000, 10_000, 100_000)
N_TARGETS, N_ALONE = 1_000, 20
N_FILES, N_SLOW = 2_000, 5


def cpu(function: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of this process, and what the function returned."""
    start = time.process_time()
    value = function()
    return time.process_time() - start, value


def wall(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, value


# --- one fit beside its rivals ------------------------------------------------------------------


def algorithm1(Z: np.ndarray, y: np.ndarray, Lam: float, k: int, steps: int) -> list[int]:
    """Algorithm 1 as printed, all candidates of a step in one product; ``steps`` of the k picks."""
    m = len(y)
    G, K = np.eye(m) / Lam, np.zeros((m, m))
    zy = y @ Z
    order: list[int] = []
    for _ in range(min(k, steps)):
        GZ = G @ Z
        zgz = np.einsum("ij,ij->j", Z, GZ)
        gy = G @ y
        zgy = gy @ Z
        left = (y @ K) @ GZ
        # yᵀ (K + zzᵀ) G' y with G' = G - G z zᵀ G / (1 + zᵀ G z)
        ratio = zgy / (1 + zgz)
        score = y @ K @ gy - left * ratio + zy * (zgy - zgz * ratio)
        score[order] = -np.inf
        i = int(score.argmax())
        order.append(i)
        K += np.outer(Z[:, i], Z[:, i])
        G -= np.outer(GZ[:, i], GZ[:, i]) / (1 + zgz[i])
    return order


def abess_seconds(Z: np.ndarray, y: np.ndarray, k: int) -> float:
    """CPU seconds of abess's path of the sizes 0..k, in a process of its own that can be stopped.

    Returns the limit where the path was stopped.
    """
    from abess.linear import LinearRegression

    def fit(pipe: Any) -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (ABESS_SECONDS, ABESS_SECONDS + 5))
        model = LinearRegression(support_size=range(k + 1), thread=1)
        pipe.send(cpu(lambda: model.fit(Z, y, is_normal=False))[0])

    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    process = fork.Process(target=fit, args=(there,))
    process.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        return float(ABESS_SECONDS)
    finally:
        process.join()


def kernel_rows(m: int, p: int, k: int, repeats: int, few: int, seed: int) -> list[dict[str, Any]]:
    """Median CPU times of one fit of k candidates, way by way, at one size."""
    rng = np.random.RandomState(seed)
    Z = rng.standard_normal((m, p))
    Z *= np.sqrt(m / (Z**2).sum(axis=0))
    y = Z[:, : 2 * k] @ rng.standard_normal(2 * k) + rng.standard_normal(m)
    y *= np.sqrt(m / (y @ y))
    single, y32 = Z.astype(np.float32), y.astype(np.float32)
    fortran, fortran32 = np.asfortranarray(Z), np.asfortranarray(single)
    # The printed algorithm at the third size takes most of an hour: one step, times k.
    steps = k if m < 1_000 else 1

    def reads(vector: np.ndarray, matrix: np.ndarray) -> None:
        for _ in range(k):
            vector @ matrix

    ways: dict[str, tuple[Callable[[], Any], int]] = {
        "holdtrue": (lambda: kernel.greedy(Z, y, m, 1.0, k, 0.0), repeats),
        "OMP": (lambda: orthogonal_mp(Z, y, n_nonzero_coefs=k), repeats),
        "OMP, column order": (lambda: orthogonal_mp(fortran, y, n_nonzero_coefs=k), repeats),
        "read Z k times": (lambda: reads(y, Z), repeats),
        "holdtrue, float32": (lambda: kernel.greedy(single, y, m, 1.0, k, 0.0), repeats),
        "OMP, float32": (lambda: orthogonal_mp(fortran32, y32, n_nonzero_coefs=k), repeats),
        "read Z k times, float32": (lambda: reads(y32, single), repeats),
        "Algorithm 1": (lambda: algorithm1(Z, y, float(m), k, steps), few),
        "abess": (lambda: abess_seconds(Z, y, k), few),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    picks: dict[str, Any] = {}
    failed: dict[str, str] = {}
    ways["holdtrue"][0]()  # warm
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for turn in range(repeats):
            for name, (function, often) in ways.items():
                if turn >= often or name in failed:
                    continue
                try:
                    seconds, picks[name] = cpu(function)
                    times[name].append(picks[name] if name == "abess" else seconds)
                except ImportError as error:
                    failed[name] = str(error)
    order = picks["holdtrue"].order
    assert len(order) == k
    np.testing.assert_array_equal(order, picks["holdtrue, float32"].order)
    np.testing.assert_array_equal(order[:steps], picks["Algorithm 1"])
    assert np.count_nonzero(picks["OMP"]) == k
    rows = []
    for name, taken in times.items():
        note = failed.get(name, "")
        if name == "Algorithm 1" and steps < k:
            taken = [seconds * k / steps for seconds in taken]
            note = f"{steps} step timed, times {k}"
        if name == "abess" and ABESS_SECONDS in taken:
            note = f"stopped after {ABESS_SECONDS} s of CPU: the time is a lower bound"
        rows.append(
            {"m": m, "p": p, "k": k, "way": name, "repeats": len(taken),
             "cpu_ms": 1000 * float(np.median(taken)) if taken else "not run",
             "least_ms": 1000 * min(taken) if taken else "not run", "note": note}
        )  # fmt: skip
    return rows


def run_kernel(seed: int) -> Iterator[dict[str, Any]]:
    """One fit of k candidates at the three sizes, float64 and float32."""
    for size, repeats, few in progress(SIZES, len(SIZES), "kernel"):
        yield from kernel_rows(*size, repeats, few, seed)


# --- whole fits, with the error on left-out rows -------------------------------------------------

# (m, p, k), and how often each way is timed.
FITS = (((20, 4_995, 15), 21), ((200, 50_000, 50), 1), ((30, 5_000, None), 2))


def estimate_rows(m: int, p: int, k: int | None, repeats: int, seed: int) -> list[dict[str, Any]]:
    """Median CPU times of fits with and without the estimate, beside scikit-learn's."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((m, p))
    y = X[:, :40] @ rng.standard_normal(40) + rng.standard_normal(m)
    n_folds = m if m <= 50 else 10
    ways: dict[str, Callable[[], Any]] = {
        "GreedyTL": lambda: GreedyTLRegressor(max_selected=k).fit(X, y),
        "GreedyTL, estimate=False": lambda: GreedyTLRegressor(max_selected=k, estimate=False).fit(
            X, y
        ),
        "GreedyTL-59": lambda: GreedyTLRegressor(
            max_selected=k, n_candidates=59, random_state=0
        ).fit(X, y),
    }
    if k is None:
        ways["GreedyTL, lam='loo'"] = lambda: GreedyTLRegressor(lam="loo").fit(X, y)
    else:
        ways["classes, estimate=False"] = lambda: GreedyTLClassifier(
            max_selected=k, estimate=False
        ).fit(X, y > 0)
        ways["OMP"] = lambda: OrthogonalMatchingPursuit(n_nonzero_coefs=k).fit(X, y)
        ways["OMPCV"] = lambda: OrthogonalMatchingPursuitCV(cv=n_folds, max_iter=k).fit(X, y)
    ways["GreedyTL"]()  # warm
    times: dict[str, list[float]] = {name: [] for name in ways}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(repeats):
            for name, function in ways.items():
                times[name].append(cpu(function)[0])
    return [
        {"m": m, "p": p, "k": k or "tol", "folds": n_folds, "way": name, "repeats": repeats,
         "cpu_ms": 1000 * float(np.median(taken)), "least_ms": 1000 * min(taken)}
        for name, taken in times.items()
    ]  # fmt: skip


def run_estimate(seed: int) -> Iterator[dict[str, Any]]:
    """Whole fits at three sizes."""
    for size, repeats in progress(FITS, len(FITS), "estimate"):
        yield from estimate_rows(*size, repeats, seed)


# --- lazy sources -------------------------------------------------------------------------------


class Drawn:
    """A source whose weights are drawn when it is run: a pool of any size takes no memory."""

    def __init__(self, seed: int):
        self.seed = seed

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Scores of the rows."""
        return X @ np.random.RandomState(self.seed).standard_normal(X.shape[1])


def run_lazy(seed: int) -> Iterator[dict[str, Any]]:
    """Sources run and CPU time of GreedyTL-59, beside GreedyTL, by the size of the pool."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((20, 40))
    y = np.where(X[:, :3].sum(axis=1) > np.median(X[:, :3].sum(axis=1)), 1, -1)
    new = rng.standard_normal((100, 40))
    ways = (("GreedyTL-59", 59, 20, 5), ("GreedyTL-59", 59, None, 3), ("GreedyTL", None, 20, 1))
    for size in progress(POOLS, len(POOLS), "lazy"):
        sources = [(f"s{j}", Drawn(j)) for j in range(size)]
        for name, count, most, repeats in ways:
            if count is None and size > 10_000:
                continue
            taken = []
            for repeat in range(repeats):
                listing, pool = cpu(lambda sources=sources: SourcePool(sources))
                model = GreedyTLClassifier(
                    pool, n_candidates=count, max_selected=most, random_state=seed + repeat
                )
                fitting, _ = cpu(lambda model=model: model.fit(X, y))
                run = pool.n_runs
                predicting, _ = cpu(lambda model=model: model.predict(new))
                steps = len(model.path_.order)
                taken.append((listing, fitting, predicting, run, pool.n_runs - run, steps))
            median = np.median(taken, axis=0)
            yield {
                "method": name, "pool": size, "repeats": repeats, "rows": 20,
                "max_selected": most or "none", "list_ms": 1000 * float(median[0]),
                "fit_ms": 1000 * float(median[1]), "predict_ms": 1000 * float(median[2]),
                "sources_run": float(median[3]), "sources_run_predict": float(median[4]),
                "selected": float(median[5]),
            }  # fmt: skip


# --- many targets that share rows ---------------------------------------------------------------


def target_row(m: int, p: int, k: int, seed: int) -> dict[str, Any]:
    """CPU time a target: through one Gram matrix, and each by itself."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((m, p))
    Y = X[:, : 3 * k] @ rng.standard_normal((3 * k, N_TARGETS)) * 0.3
    Y += rng.standard_normal((m, N_TARGETS))
    weight = np.ones(m)
    search = choose.Search(k, 0.0, X, np.arange(p))
    together, fits = cpu(lambda: choose.fit_targets(Y, weight, 1.0, search))
    Z, T = scale.standardised(X, weight)[0], scale.standardised(Y, weight)[0]
    alone = []
    for t in range(N_ALONE):
        seconds, fit = cpu(lambda t=t: kernel.greedy(Z, T[:, t], m, 1.0, k, 0.0))
        alone.append(seconds)
        np.testing.assert_array_equal(fit.order, fits[t].order)
    return {
        "m": m, "p": p, "k": k, "targets": N_TARGETS,
        "gram_ms_per_target": 1000 * together / N_TARGETS, "targets_alone": N_ALONE,
        "alone_ms_per_target": 1000 * float(np.median(alone)),
        "ratio": float(np.median(alone)) * N_TARGETS / together,
    }  # fmt: skip


def run_targets(seed: int) -> list[dict[str, Any]]:
    """1,000 targets that share rows, at three sizes."""
    sizes = ((20, 1_000, 10), (200, 2_000, 20), (2_000, 2_000, 20))
    return [target_row(*size, seed) for size in progress(sizes, len(sizes), "targets")]


# --- 2,000 files --------------------------------------------------------------------------------


class Hostile:
    """A pickle that would leave a mark if anything opened it."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def write_files(folder: Path, n_files: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Fill the folder with models, half ONNX, half skops, six bad and a few slow; rows to fit."""
    import skops.io
    from skl2onnx import to_onnx

    X, y = make_classification(
        4_000, 30, n_informative=10, n_clusters_per_class=4, random_state=seed
    )
    rng = np.random.RandomState(seed)
    for j in range(n_files - 6 - N_SLOW):
        chosen = rng.choice(np.arange(100, 4_000), 60, replace=False)
        model = LogisticRegression(C=0.1, max_iter=50).fit(X[chosen], y[chosen])
        if j % 2:
            made = to_onnx(model, X[:1].astype(np.float32), options={"zipmap": False})
            (folder / f"model{j:04d}.onnx").write_bytes(made.SerializeToString())
        else:
            skops.io.dump(model, folder / f"model{j:04d}.skops")
    for j in range(N_SLOW):
        forest = RandomForestClassifier(200, random_state=j).fit(X[100:2_000], y[100:2_000])
        made = to_onnx(forest, X[:1].astype(np.float32), options={"zipmap": False})
        (folder / f"slow{j}.onnx").write_bytes(made.SerializeToString())
    (folder / "empty.onnx").write_bytes(b"")
    (folder / "noise.onnx").write_bytes(rng.bytes(1_000))
    (folder / "cut.skops").write_bytes((folder / "model0000.skops").read_bytes()[:500])
    (folder / "words.skops").write_text("not a model", encoding="utf-8")
    (folder / "pickled.pkl").write_bytes(pickle.dumps(model))
    (folder / "hostile.onnx").write_bytes(pickle.dumps(Hostile(folder / "opened")))
    return X[:20], y[:20]


class Stopped(SourcePool):
    """A pool that is interrupted when it begins the run after so many."""

    most = 0
    _runs = 0

    @property
    def n_runs(self) -> int:
        """As in SourcePool."""
        return self._runs

    @n_runs.setter
    def n_runs(self, value: int) -> None:
        if value > self.most > 0:
            raise KeyboardInterrupt
        self._runs = value


def run_files(seed: int) -> list[dict[str, Any]]:
    """Time and sources run of the stages of a pool of files."""
    rows = []

    def stage(name: str, function: Callable[[], Any], pool: SourcePool | None, note: str) -> Any:
        before = pool.n_runs if pool is not None else 0
        start = time.process_time()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            seconds, value = wall(function)
        rows.append(
            {"files": N_FILES, "stage": name, "wall_s": seconds,
             "cpu_s": time.process_time() - start,
             "sources_run": pool.n_runs - before if pool is not None else 0,
             "left_out": sum("left out" in str(w.message) for w in said), "note": note}
        )  # fmt: skip
        return value

    with tempfile.TemporaryDirectory() as place:
        folder, cache = Path(place) / "shelf", Path(place) / "cache"
        folder.mkdir()
        X, y = stage("write the files", lambda: write_files(folder, N_FILES, seed), None, "")
        options = {"on_error": "skip", "cache": cache}
        pool = stage("from_folder", lambda: Stopped.from_folder(folder, **options), None, "")
        stage("open the files", lambda: len(pool), pool, "the first use does it")
        few = GreedyTLClassifier(pool, n_candidates=59, max_selected=5, random_state=seed)
        stage("fit, GreedyTL-59", lambda: few.fit(X, y), pool, "runs what it draws")
        drawn = pool.n_runs
        pool.most = (drawn + len(pool)) // 2
        whole = GreedyTLClassifier(pool, max_selected=20)

        def interrupted() -> None:
            try:
                whole.fit(X, y)
            except KeyboardInterrupt:
                assert whole.path_.reason == "interrupted"
            else:
                raise AssertionError("nothing stopped the fit")

        stage("first fit, GreedyTL, interrupted", interrupted, pool, "half of what is left")
        other = SourcePool.from_folder(folder, **options)
        again = GreedyTLClassifier(other, max_selected=20)
        stage("resumed in a new pool", lambda: again.fit(X, y), other, "opens the files, runs rest")
        assert pool.n_runs + other.n_runs == len(other), "a source was run twice or not at all"
        stage("second fit", lambda: again.fit(X, y), other, "cached")
        third = SourcePool.from_folder(folder, **options)
        whole = GreedyTLClassifier(third, max_selected=20)
        stage("fit in a third pool", lambda: whole.fit(X, y), third, "opens the files, cached")
        stage("predict 20 rows", lambda: whole.predict(X), third, "runs the chosen only")
        assert again.selected_ == whole.selected_
        assert not (folder / "opened").exists(), "the hostile pickle was opened"
    return rows


PARTS = {
    "kernel": run_kernel,
    "estimate": run_estimate,
    "lazy": run_lazy,
    "targets": run_targets,
    "files": run_files,
}


def main() -> None:
    """Run the parts that were asked for, then make the tables there are CSVs for."""
    options = asked_options(__doc__, PARTS, RESULTS)
    for part in options.parts:
        rows = []
        with threadpool_limits(1):
            for row in PARTS[part](options.seed):  # a run that is stopped keeps what it has
                rows.append(row)
                write_csv(
                    options.out / f"{part}.csv", rows, seed=options.seed,
                    command=f"python -m benchmarks.sources {part}",
                    packages=("abess", "onnxruntime", "skops", "skl2onnx"),
                )  # fmt: skip
    report(options.out)
    print((options.out / "README.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
