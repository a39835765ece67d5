import errno
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from holdtrue import SourcePool

X = np.random.default_rng(0).normal(size=(40, 5))
N_KILLS = 50 if "HOLDTRUE_ATTACK" in os.environ else 8


class Linear:
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, X):
        return X @ self.weight


def pool(cache, n=6, seed=0):
    rng = np.random.default_rng(seed)
    return SourcePool([(f"s{i}", Linear(rng.normal(size=5))) for i in range(n)], cache=cache)


def truth(n=6, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([X @ rng.normal(size=5) for _ in range(n)])


def entries(folder):
    return sorted(folder.rglob("*.scores"))


def damage_end(path):
    path.write_bytes(path.read_bytes()[:-40])


def damage_value(path):
    content = bytearray(path.read_bytes())
    content[-8:] = np.float64(3.5).tobytes()
    path.write_bytes(content)


def damage_nan(path):
    content = bytearray(path.read_bytes())
    content[-8:] = np.float64(np.nan).tobytes()
    path.write_bytes(content)


def damage_empty(path):
    path.write_bytes(b"")


def damage_longer(path):
    path.write_bytes(path.read_bytes() + bytes(8))


def damage_head(path):
    path.write_bytes(b"X" + path.read_bytes()[1:])


def damage_swap(path):
    other = next(entry for entry in entries(path.parent) if entry != path)
    path.write_bytes(other.read_bytes())


DAMAGES = [
    damage_end, damage_value, damage_nan, damage_empty, damage_longer, damage_head, damage_swap,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_computed_again_and_said(damage, tmp_path):
    pool(tmp_path).scores(X)
    damage(entries(tmp_path)[2])
    again = pool(tmp_path)
    with pytest.warns(UserWarning, match=r"kept scores of source 's\d' are damaged: .*again"):
        np.testing.assert_array_equal(again.scores(X), truth())
    assert again.n_runs == 1
    healed = pool(tmp_path)
    np.testing.assert_array_equal(healed.scores(X), truth())
    assert healed.n_runs == 0


@pytest.mark.filterwarnings("ignore:SourcePool")
def test_an_entry_that_is_a_folder_is_computed_at_every_fit(tmp_path):
    pool(tmp_path).scores(X)
    place = entries(tmp_path)[2]
    place.unlink()
    place.mkdir()
    for _ in range(2):
        again = pool(tmp_path)
        np.testing.assert_array_equal(again.scores(X), truth())
        assert again.n_runs == 1


def test_a_missing_entry_is_computed_again(tmp_path):
    pool(tmp_path).scores(X)
    entries(tmp_path)[0].unlink()
    again = pool(tmp_path)
    np.testing.assert_array_equal(again.scores(X), truth())
    assert again.n_runs == 1


def test_other_models_under_the_same_names_keep_their_own_scores(tmp_path):
    one, two = pool(tmp_path, seed=1), pool(tmp_path, seed=2)
    np.testing.assert_array_equal(one.scores(X), truth(seed=1))
    np.testing.assert_array_equal(two.scores(X), truth(seed=2))
    np.testing.assert_array_equal(pool(tmp_path, seed=1).scores(X), truth(seed=1))


def test_a_column_is_known_by_its_place_too(tmp_path):
    import pandas as pd

    for names in ("abcde", "edcba"):
        frame = pd.DataFrame(X, columns=list(names))
        columns = SourcePool.from_columns(["a", "b"])
        columns.cache = tmp_path
        np.testing.assert_array_equal(columns.scores(frame), frame[["a", "b"]])


def test_a_full_disk_is_said_once_and_scores_are_right(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    first = pool(tmp_path)
    with pytest.warns(UserWarning, match="scores cannot be kept in .*No space left") as caught:
        np.testing.assert_array_equal(first.scores(X), truth())
    assert len(caught) == 1
    assert not list(tmp_path.rglob("*.scores"))
    assert not list(tmp_path.rglob("*.partial"))


def test_a_cache_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"cache must be a folder. Got the file"):
        pool(tmp_path / "file").scores(X)


def test_hidden_values_of_a_source_are_refused():
    masked = SourcePool([("m", lambda X: np.ma.masked_less(X[:, 0], 0))])
    with pytest.raises(
        ValueError, match=r"source 0 \('m'\) returned a masked array with \d+ hidden"
    ):
        masked.scores(X)
    whole = SourcePool([("m", lambda X: np.ma.masked_less(X[:, 0], -99))])
    np.testing.assert_array_equal(whole.scores(X)[:, 0], X[:, 0])


# --- processes that share a cache and are killed ---


def keep_scoring(folder, n_done):
    """Pools of other models with the same names, again and again; a wrong score is an error."""
    warnings.simplefilter("ignore")
    while True:
        for seed in range(3):
            for n in (5, 9):
                np.testing.assert_array_equal(pool(folder, n, seed).scores(X), truth(n, seed))
                n_done.value += 1
        shutil.rmtree(folder, ignore_errors=True)


def kill_at_random(folder, n_kills, seed):
    """Kill one of two processes n times, and start it anew; tell how many left a partial file."""
    rng, context = np.random.default_rng(seed), multiprocessing.get_context("fork")
    # Without locks, which a process could hold when it is killed; each has one writer.
    done = [context.Value("q", 0, lock=False), context.Value("q", 0, lock=False)]

    def start(i):
        process = context.Process(target=keep_scoring, args=(folder, done[i]), daemon=True)
        process.start()
        return process

    workers, n_partial = [start(0), start(1)], 0
    for _ in range(n_kills):
        i = int(rng.integers(2))
        enough = done[i].value + rng.integers(1, 15)
        while done[i].value < enough and all(worker.is_alive() for worker in workers):
            time.sleep(rng.uniform(0, 0.003))
        workers[i].kill()
        workers[i].join()
        assert [worker.exitcode for worker in workers] in ([-9, None], [None, -9]), "a wrong score"
        # `rglob` would fail where the other process removes a folder that it is about to list.
        files = [Path(place, name) for place, _, names in os.walk(folder) for name in names]
        partial = [path for path in files if path.suffix == ".partial"]
        n_partial += len(partial)
        for path in partial:
            path.unlink(missing_ok=True)
        workers[i] = start(i)
    print(f"{n_partial} files were not whole when a process was killed")
    for worker in workers:
        worker.kill()
        worker.join()
    for seed in range(3):
        np.testing.assert_array_equal(pool(folder, 9, seed).scores(X), truth(9, seed))


@pytest.mark.attack
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@given(seed=st.integers(0, 2**32))
@settings(max_examples=1, phases=[Phase.generate])
def test_processes_that_share_a_cache_and_are_killed_leave_no_wrong_score(seed):
    code = (  # a process of its own, with a single thread, so that it can be forked
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); "
        "import test_cache; from pathlib import Path; "
        f"test_cache.kill_at_random(Path(sys.argv[1]), {N_KILLS}, {seed})"
    )
    with TemporaryDirectory() as folder:
        asked = [sys.executable, "-W", "ignore", "-c", code, f"{folder}/cache"]
        ended = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    print(ended.stdout)
