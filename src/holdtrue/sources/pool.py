"""SourcePool: trained models as columns of scores, run when they are needed and not before."""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse
from sklearn.utils import _safe_indexing, gen_batches

from holdtrue.errors import InputError, caution, check_choice, did_you_mean, speaks
from holdtrue.progress import progress
from holdtrue.sources.formats import FORMATS, PICKLES, Refused, open_model, sentence
from holdtrue.sources.score_cache import ScoreCache
from holdtrue.sources.source import Column, Source, score_names
from holdtrue.validation import check_flags, unfit_sizes

__all__ = ["SourcePool"]

_BATCH = 10_000


class SourcePool:
    """Trained models, each a column of scores or, with K > 2 classes, K columns.

    A model that no fit asks for is never run. Files are opened, a millisecond each, when the pool
    is first used, to see how many columns each gives; models in memory are not looked into before a
    fit asks for them.

    Parameters
    ----------
    sources : iterable of (name, source) or of sources, or mapping of name to source
        A source is one of

        - a fitted estimator: its ``decision_function``, else the log-odds of ``predict_proba``,
          else ``predict``. With K > 2 classes it gives K sources, ``"name: class"``. One that was
          fitted on named columns reads these of a frame, whatever others there are;
        - a callable: an array of rows in, one score per row out. The rows are read-only; one that
          fails because of that is run on a copy;
        - the path of a file: ``.onnx`` (needs ``holdtrue[onnx]``), ``.skops`` (needs
          ``holdtrue[skops]``), or ``.pkl``, ``.pickle`` and ``.joblib`` with ``allow_pickle``.
    allow_pickle : bool, default=False
        Whether files may be unpickled. **Unpickling runs whatever code the file holds**, with your
        rights, before anything can be checked: pass True only for files that you or people you
        trust have written and nobody else could have changed. ONNX and skops files run no code of
        theirs; skops files with types that skops does not know as safe are refused all the same.
    allow_external_data : bool, default=False
        Whether an ONNX model may keep its weights in other files of its own folder. Files elsewhere
        are never read.
    on_error : {"raise", "skip"}, default="raise"
        What to do with a source that cannot be opened, fails, returns NaN or the wrong shape:
        raise an error that names it, or leave it out with a warning.
    cache : path, optional
        Folder in which scores are kept, in one file for each model and set of rows. A second fit
        on the same rows runs no source again, and an interrupted one goes on where it stopped.
        Scores are known by the rows, the content of a file, and all that a model holds when a fit
        asks for it; a callable by its name, code, defaults and what it encloses, or what the object
        holds. Global variables that it reads, and functions that it calls by name, are **not**
        looked at: empty the folder when they change. What cannot be pickled is run at every fit.
        A damaged file is computed again, with a warning. Default: scores live as long as the fit.

    Attributes
    ----------
    n_runs : int
        How often a source was run on a batch of rows since the pool was made.

    See Also
    --------
    GreedyTLClassifier : Chooses among the sources of a pool.

    Examples
    --------
    >>> import numpy as np
    >>> from holdtrue import SourcePool
    >>> pool = SourcePool([("sum", lambda X: X.sum(axis=1)), ("first", lambda X: X[:, 0])])
    >>> pool.names
    ['sum', 'first']
    >>> pool.scores(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[3., 1.], [7., 3.]])
    """

    @speaks
    def __init__(
        self,
        sources: Iterable[Any],
        *,
        allow_pickle: bool = False,
        allow_external_data: bool = False,
        on_error: str = "raise",
        cache: Any = None,
    ):
        check_choice("on_error", on_error, ("raise", "skip"))
        check_flags(allow_pickle=allow_pickle, allow_external_data=allow_external_data)
        self.allow_pickle = allow_pickle
        self.allow_external_data = allow_external_data
        self.on_error = on_error
        self.cache = None if cache is None else Path(cache)
        self.n_runs = 0
        self._given = [_named(i, source) for i, source in enumerate(_listed(sources))]
        _check_names([name for name, _ in self._given])
        self._columns = [i for i, pair in enumerate(self._given) if isinstance(pair[1], Column)]
        # What may give several columns of scores; a callable gives one.
        self._wide = [
            i
            for i, (_, given) in enumerate(self._given)
            if hasattr(given, "predict") or _is_file(given)
        ]
        self._forget()

    @classmethod
    @speaks
    def from_columns(cls, columns: Iterable[str | int]) -> SourcePool:
        """Pool of columns of X that hold scores already, by name or by number.

        These columns are sources and no longer features.

        Examples
        --------
        >>> from holdtrue import SourcePool
        >>> SourcePool.from_columns(["cars_2019", "dogs"]).names
        ['cars_2019', 'dogs']
        """
        keys = [columns] if isinstance(columns, str) else list(columns)
        for key in keys:
            if not isinstance(key, (str, numbers.Integral)):
                raise InputError(f"columns must be names or whole numbers. Got {key!r}.")
        return cls([(str(key), Column(key)) for key in keys])

    @classmethod
    @speaks
    def from_folder(cls, path: Any, **options: Any) -> SourcePool:
        """Pool of the model files in a folder, sorted by name; other files are left alone.

        Parameters
        ----------
        path : path
        **options
            ``allow_pickle``, ``allow_external_data``, ``on_error`` and ``cache`` of the pool.
        """
        folder = Path(path)
        if not folder.is_dir():
            raise InputError(f"{str(folder)!r} is not a folder.")
        files = sorted(file for file in folder.iterdir() if file.suffix.lower() in FORMATS)
        if not files:
            raise InputError(
                f"no model files in {str(folder)!r}. "
                f"Expected names that end in {', '.join(FORMATS)}."
            )
        stems = [file.stem for file in files]
        names = [f.name if stems.count(f.stem) > 1 else f.stem for f in files]
        return cls(list(zip(names, files, strict=True)), **options)

    # --- what the pool holds ---

    @property
    def names(self) -> list[str]:
        """Names of the sources, one for each column of scores. Opens files, runs nothing."""
        return list(self._layout()[0])

    @property
    def columns(self) -> list[str | int]:
        """The columns of X that are sources, for a pool made with `from_columns`."""
        return [self._given[i][1].key for i in self._columns]

    def column_places(self, n_columns: int, names: Sequence[str] | None) -> list[int]:
        """Which columns of X are sources."""
        places = []
        for i in self._columns:
            name, column = self._given[i]
            try:
                places.append(column.place(n_columns, names))
            except Refused as error:
                raise InputError(f"source {i} ({name!r}) {error}") from error
        return places

    def files_of(self, columns: np.ndarray) -> tuple[list[Path], np.ndarray]:
        """Files that give these columns of scores, and all columns that they give.

        Models that are not in a file of a format that runs no code are refused.
        """
        first = self._layout()[1]
        models = np.unique(np.searchsorted(first, columns, side="right") - 1)
        files = [self._given[i][1] for i in models]
        for i, file in zip(models, files, strict=True):
            if not isinstance(file, Path) or file.suffix.lower() in PICKLES:
                raise InputError(
                    f"source {self._given[i][0]!r} must be an .onnx or .skops file to be kept. "
                    "Convert it, or leave it out."
                )
        every = [np.arange(first[i], first[i + 1]) for i in models]
        return files, np.concatenate([np.empty(0, dtype=np.intp), *every])

    def __len__(self) -> int:
        return len(self._layout()[0])

    def __repr__(self) -> str:
        return f"SourcePool({len(self._given)} models)"

    def __getstate__(self) -> dict[str, Any]:
        # Sessions of onnxruntime cannot be copied: a copy opens its files anew.
        state = self.__dict__.copy()
        for name in ("_opened", "_names", "_first"):
            del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def _forget(self) -> None:
        self._opened: dict[int, Source] = {}
        self._names: list[str] = []
        self._first: np.ndarray | None = None

    def _layout(self) -> tuple[list[str], np.ndarray]:
        """Names of the columns, and where those of each model begin."""
        if self._first is None:
            names: list[Any] = [name for name, _ in self._given]
            width = np.ones(len(names), dtype=np.intp)
            if self._wide:
                for i in self._wide:
                    names[i] = self._names_of(i)
                    width[i] = len(names[i])
                names = [n for item in names for n in ([item] if isinstance(item, str) else item)]
                _check_names(names)
            self._names = names
            self._first = np.concatenate([[0], np.cumsum(width)])
        return self._names, self._first

    def _names_of(self, i: int) -> list[str]:
        name, given = self._given[i]
        try:
            return self._open(i).names if isinstance(given, Path) else score_names(name, given)
        except Refused as error:
            self._fail(i, name, error, skip=self.on_error == "skip")
            return []

    def _open(self, i: int) -> Source:
        if i not in self._opened:
            name, model = self._given[i]
            if isinstance(model, Path):
                model = open_model(
                    model,
                    allow_pickle=self.allow_pickle,
                    allow_external_data=self.allow_external_data,
                )
            self._opened[i] = Source.of(name, model)
        return self._opened[i]

    def _fail(self, i: int, name: str, error: Refused, *, skip: bool) -> None:
        message = f"source {i} ({name!r}) {error}"
        if not skip:
            raise InputError(message) from error
        caution(f"SourcePool: {message} It is left out.")

    # --- scores ---

    @speaks
    def scores(self, X: Any) -> np.ndarray:
        """Scores of all sources for the rows of X, shape (n_samples, n_sources)."""
        rows = X if sparse.issparse(X) else np.asarray(X)
        return PoolOn(self, rows, X, _frame_names(X)).columns(np.arange(len(self)))


class PoolOn:
    """A pool on given rows: columns of scores, each computed when it is first asked for.

    ``given`` are the rows of X as the caller passed them, for models that were fitted on named
    columns; ``names`` those of the columns of X. When ``predicting``, every source asked for is
    needed: an error is raised whatever ``on_error`` says, and nothing is kept. Scores that do not
    fit into ``dtype``, to be squared in float64, fail; by default any size is taken.
    """

    def __init__(
        self,
        pool: SourcePool,
        X: Any,
        given: Any,
        names: Sequence[str] | None,
        *,
        predicting: bool = False,
        dtype: Any = None,
    ):
        self.pool = pool
        self.dtype = dtype
        self.X = X
        self.given = given
        self.names = names
        self.skip = pool.on_error == "skip" and not predicting
        self.skipped: set[int] = set()
        self._asked: set[int] = set()
        self._scores: dict[int, np.ndarray] = {}
        self._cache = None
        if pool.cache is not None and not predicting:
            self._cache = ScoreCache(pool.cache, X, names)

    def columns(self, indices: np.ndarray) -> np.ndarray:
        """Scores of the given sources, shape (n_rows, len(indices)); zeros where one failed."""
        _, first = self.pool._layout()
        new = [int(i) for i in indices if int(i) not in self._asked]
        self._asked.update(new)
        # A model of several classes is run for all of them at once.
        unknown = [i for i in new if i not in self._scores and i not in self.skipped]
        sources = {}
        for model in np.unique(np.searchsorted(first, unknown, side="right") - 1).tolist():
            columns = range(first[model], first[model + 1])
            try:  # before any is run
                sources[columns] = self.pool._open(model)
            except Refused as error:
                self._fail(columns, error)
        for columns, source in progress("sources", sources.items(), len(sources)):
            self._run(columns, source)
        scores = np.zeros((self.X.shape[0], len(indices)))
        for column, i in enumerate(indices):
            if i not in self.skipped:
                scores[:, column] = self._scores[int(i)]
        if self.dtype is not None:
            self._check_sizes(indices, scores)
        return scores

    def _check_sizes(self, indices: np.ndarray, scores: np.ndarray) -> None:
        single = self.dtype == np.float32
        for column, size in unfit_sizes(scores, dtype=self.dtype, power=1 if single else 2):
            goal = "for float32, the type of X" if single else "to be squared in float64"
            way_out = ", or pass X in float64" if single else ""
            problem = f"returned scores of size {size:g}, too large or too small {goal}."
            self._fail([int(indices[column])], Refused(f"{problem} Scale them{way_out}."))
            scores[:, column] = 0

    def _run(self, columns: range, source: Source) -> None:
        try:
            kept = self._cache
            scores = self._computed(source) if kept is None else kept.scores(source, self._computed)
        except Refused as error:
            self._fail(columns, error)
            return
        self._scores.update(zip(columns, scores.T, strict=True))

    def _fail(self, columns: Sequence[int], error: Refused) -> None:
        self.pool._fail(columns[0], self.pool._layout()[0][columns[0]], error, skip=self.skip)
        self.skipped.update(columns)

    def constant(self) -> list[int]:
        """Sources that were asked for and gave one score in every row."""
        return sorted(
            i for i in self._asked - self.skipped if np.ptp(np.asarray(self._scores[i])) == 0
        )

    def _computed(self, source: Source) -> np.ndarray:
        """Scores of a source on all rows, shape (n_rows, n_scores), in batches."""
        n_rows = self.X.shape[0]
        known = _frame_names(self.given)
        rows = self.X
        if known is not None and source.columns is not None:
            if missing := [name for name in source.columns if name not in known]:
                hint = did_you_mean(missing[0], known) or ""
                raise Refused(f"was fitted on column {missing[0]!r}, which X does not have.{hint}")
            rows = _frame_columns(self.given, list(source.columns))
        scores = np.empty((n_rows, len(source.names)))
        for batch in gen_batches(n_rows, _BATCH):
            part = rows if n_rows <= _BATCH else _safe_indexing(rows, batch)
            self.pool.n_runs += 1
            try:
                scores[batch] = source.run(part, self.names)
            except Refused:
                raise
            except Exception as error:
                problem = f"failed: {type(error).__name__}: {sentence(error)}"
                if known is not None and rows is self.X:
                    problem += " It was given an array, not the frame."
                raise Refused(problem) from error
        if not np.isfinite(scores).all():
            bad = int((~np.isfinite(scores)).sum())
            raise Refused(f"returned {bad} scores that are NaN or infinite.")
        return scores


def _frame_names(rows: Any) -> list[str] | None:
    """Names of the columns of a frame or an Arrow table; None for an array."""
    if isinstance(rows, pa.Table):  # whose ``columns`` are the columns themselves
        return list(map(str, rows.column_names))
    return [str(name) for name in rows.columns] if hasattr(rows, "columns") else None


def _frame_columns(rows: Any, names: list[str]) -> Any:
    """Columns of a frame or an Arrow table by name."""
    return rows.select(names) if isinstance(rows, pa.Table) else _safe_indexing(rows, names, axis=1)


# --- what a pool is given -----------------------------------------------------------------------


def _listed(sources: Any) -> list[Any]:
    if _is_file(sources):
        raise InputError(
            f"expected a list of sources. Got the path {str(sources)!r}. "
            "Call SourcePool.from_folder for a folder, or pass [path] for one file."
        )
    try:
        if hasattr(sources, "predict"):  # a Pipeline can be listed, but into its steps
            raise TypeError
        return list(sources.items() if isinstance(sources, Mapping) else sources)
    except TypeError as error:
        raise InputError(
            f"expected a list of (name, source). Got {type(sources).__name__}."
        ) from error


def _is_file(source: Any) -> bool:
    return isinstance(source, (str, Path))


def _named(i: int, source: Any) -> tuple[str, Any]:
    if type(source) is tuple and len(source) == 2:
        name, model = source
        if type(name) is str and callable(model) and not isinstance(model, type):
            return source  # nothing to change, nothing to allocate
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[0], str):
        name, source = str(source[0]), source[1]
    else:
        name = Path(source).stem if _is_file(source) else f"source{i}"
    if _is_file(source):
        source = Path(source)
        if source.suffix.lower() not in FORMATS:
            raise InputError(
                f"source {name!r} must be a file that ends in {', '.join(FORMATS)}. "
                f"Got {source.name!r}."
            )
    elif isinstance(source, type) or not (
        isinstance(source, Column) or hasattr(source, "predict") or callable(source)
    ):
        raise InputError(
            f"source {name!r} must be a fitted model, a callable or the path of a "
            f"file. Got {source!r}."
        )
    return name, source


def _check_names(names: list[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise InputError(f"names must differ. Got {twice!r} twice. Rename one of the sources.")
