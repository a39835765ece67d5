"""A model that was chosen: deployed with its promise, saved, and used on new rows."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdtrue.columns.values import python_values
from holdtrue.compare import compare_models
from holdtrue.compare.field import fit_with_groups
from holdtrue.deployed.contents import KNOWN_TYPES, check_trees, parts_of, slim
from holdtrue.deployed.promise import Promise
from holdtrue.errors import InputError, MissingFileError, SpokenError, did_you_mean, named, speaks
from holdtrue.files import UnfitFile, dump_skops, load_skops
from holdtrue.records import Record
from holdtrue.sources import SourcePool
from holdtrue.tables import Table, TableEncoder, open_table, rows_of
from holdtrue.tables.column_summary import FeatureColumn, as_numbers, stored_kind
from holdtrue.tables.files import TemporaryFolder

_ROWS = 1 << 15
_PARTS = 10  # of the rows, left out in turn
_RARE = 0.02  # share of rows beyond the range that is not worth a note
_READ_AS = ("text", "number", "date", "bool")


@dataclass
class News:
    """What new rows bring that the rows of the fit did not have."""

    n_rows: int = 0
    unseen: Counter[str] = field(default_factory=Counter)  # rows with a value that was not there
    # Rows with a number beyond the range that was there
    outside: Counter[str] = field(default_factory=Counter)
    not_predicted: int = 0  # rows that lack a number which the model needs

    def add(self, columns: tuple[FeatureColumn, ...], rows: pa.Table) -> None:
        """Count the rows."""
        self.n_rows += rows.num_rows
        for column in columns:
            values = rows[column.name]
            if column.kind == "text":
                if column.seen and not pa.types.is_null(values.type):
                    known = pa.array([v for v in column.seen if v is not None], values.type)
                    new = pc.invert(pc.is_in(values.drop_null(), value_set=known))
                    self.unseen += Counter({column.name: pc.sum(new).as_py() or 0})
            elif column.low is not None and column.high is not None:
                numbers = as_numbers(values)
                beyond = (numbers < column.low) | (numbers > column.high)
                self.outside += Counter({column.name: int(beyond.sum())})

    def notes(self) -> list[tuple[str, str]]:
        """The counts in sentences, each after a few words."""

        def listed(counts: Counter[str]) -> str:
            shown = [f"{name!r} ({count:,})" for name, count in counts.most_common(8)]
            more = f" and {len(counts) - 8} more columns" if len(counts) > 8 else ""
            return f"{', '.join(shown)}{more}, of {self.n_rows:,} rows"

        notes = []
        # A few rows in a hundred are beyond any range that was seen.
        outside = Counter({k: n for k, n in self.outside.items() if n > _RARE * self.n_rows})
        if self.unseen:
            text = "Rows with a value that was not there when the model was fitted"
            notes.append(("Unseen values", f"{text}: {listed(self.unseen)}."))
        if outside:
            text = "Rows with a number beyond the range that was there"
            notes.append(("Beyond the range", f"{text}: {listed(outside)}."))
        if self.not_predicted:
            text = f"{self.not_predicted:,} of {self.n_rows:,} rows lack a number that the model "
            notes.append(("Not predicted", text + "needs; their prediction is empty."))
        return notes


class Measured(NamedTuple):
    """Losses of a model on labelled rows."""

    # losses, without, shape (n_rows,): of the model, and of predicting the mean or most frequent
    # class of the fit
    losses: np.ndarray
    without: np.ndarray
    groups: np.ndarray | None  # shape (n_rows,)
    n_unlabelled: int  # rows without a target or group, which are left out
    new_classes: int  # rows of classes that the model does not know
    news: News


@dataclass(frozen=True, eq=False)
class SavedModel(Record):
    """A model with the columns that it reads and the promise that was made of it.

    `holdtrue rank`, `select`, `compare`, `transfer` and `size` write one with ``--save``;
    `load_model` reads it.

    Parameters
    ----------
    label : str
        What it is, in words.
    encoder : transformer
        Fitted `TableEncoder` or `GingerEncoder`: from columns to numbers.
    estimator : estimator
        From those numbers to predictions.
    columns : tuple of FeatureColumn
        What it reads, and what they held when it was fitted.
    target : str
    target_kind : str
        How the target is read: "text", "number", "date", "time" or "bool".
    classes : tuple or None
        Values of the target, in the order of ``estimator.classes_``; None for a number.
    baseline : int, float, str or bool
        What is predicted without a model: the mean, or the most frequent class.
    promise : Promise
    made_by : dict of str
        Command and versions.
    sources : dict of bytes
        Files of the trained models that a `GreedyTLClassifier` uses.

    See Also
    --------
    load_model : Reads the file of one.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import RidgeCV
    >>> from holdtrue.deployed import deploy
    >>> rows = pd.DataFrame({"dose": range(20), "plan": ["a", "b"] * 10})
    >>> rows["y"] = 2.0 * rows["dose"] + (rows["plan"] == "b")
    >>> model = deploy(RidgeCV(), rows, "y")
    >>> model.names
    ['dose', 'plan']
    >>> model.predict(pd.DataFrame({"plan": ["a", None], "dose": [3, 4]})).round()
    array([6., 8.])
    >>> model.promise.unit, model.promise.error < 0.01
    ('mean squared error', True)
    """

    label: str
    encoder: Any
    estimator: Any
    columns: tuple[FeatureColumn, ...]
    target: str
    target_kind: str
    classes: tuple[object, ...] | None
    baseline: Any
    promise: Promise
    made_by: dict[str, str]
    sources: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.columns:
            raise InputError("the model is damaged: it reads no column.")
        if list(getattr(self.encoder, "feature_names_in_", self.names)) != self.names:
            raise InputError("the model is damaged: its encoder reads other columns.")
        for part in parts_of(self.estimator):
            check_trees(part)
        known = getattr(self.estimator, "classes_", ())
        if self.classes is not None and len(self.classes) != len(known):
            raise InputError("the model is damaged: its classes have no names.")
        if self.sources:
            folder = TemporaryFolder()
            object.__setattr__(self, "_folder", folder)  # it goes when the model does
            for name, content in self.sources.items():
                if not isinstance(content, bytes) or Path(name).name != name:
                    raise InputError("the model is damaged: a source is not a file.")
                (folder.path / name).write_bytes(content)
            self.estimator._pool = SourcePool.from_folder(folder.path)

    def __reduce__(self) -> tuple[Any, ...]:
        # Opened sources stay here: their files are in the model.
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return SavedModel, tuple((given | {"estimator": slim(self.estimator)}).values())

    @property
    def names(self) -> list[str]:
        """Columns that the model reads."""
        return [column.name for column in self.columns]

    @property
    def has_probabilities(self) -> bool:
        """Whether `predict_proba` gives probabilities that were meant as such."""
        return self.classes is not None and hasattr(self.estimator, "predict_proba")

    def __repr__(self) -> str:
        return f"<SavedModel of {self.target!r}: {self.label}; {self.promise}>"

    @speaks
    def save(self, path: str | Path) -> None:
        """Write the model to a skops file, whole or not at all; another's model is refused."""
        try:
            dump_skops(self, path, KNOWN_TYPES)
        except UnfitFile as error:
            raise InputError(f"{self.label} {error}") from error

    @speaks
    def read(self, data: Any, *, with_target: bool = False, **options: Any) -> Table:
        """The table, with the columns that the model needs read as they were.

        Parameters
        ----------
        data : path, data frame (pandas, Polars, Arrow) or Table
            As in `predict`.
        with_target : bool
            Whether the target must be there too.
        **options
            ``table`` and ``encoding`` of `open_table`.
        """
        if isinstance(data, Table):
            self._check_columns(data, self.names)
            return data
        kinds = {column.name: column.kind for column in self.columns}
        if with_target:
            kinds[self.target] = self.target_kind
        types = {name: kind for name, kind in kinds.items() if kind in _READ_AS}
        try:
            table = open_table(data, types=types, **options)
        except InputError:
            # Which columns are missing says more than the first that could not be read.
            self._check_columns(open_table(data, **options), kinds)
            raise
        self._check_columns(table, kinds)
        return table

    def _check_columns(self, table: Table, needed: Iterable[str]) -> None:
        """Refuse a table that lacks columns, with all that differs."""
        missing = [name for name in needed if not table.has(name)]
        if not missing:
            return
        known = {*self.names, self.target, self.promise.groups}
        new = [name for name in table.names if name not in known]
        differences = "; ".join(f"{name!r}{did_you_mean(name, new).rstrip()}" for name in missing)
        raise InputError(
            f"the columns differ from those of the model. Missing: {differences}. "
            f"New: {named(new)}. Rename or add the columns."
        )

    def batches(self, table: Table, news: News | None = None) -> Iterator[Any]:
        """Numbers that the estimator reads, batch by batch; ``news`` counts what is new."""
        news = News() if news is None else news
        for batch in table.batches(self.names, _ROWS):
            rows = plain_rows(batch)
            news.add(self.columns, rows)
            with self._guarded():
                X = self.encoder.transform(rows)
            news.not_predicted += int((~np.isfinite(X).all(axis=1)).sum())
            yield X

    @speaks
    def predict(self, data: Any) -> np.ndarray:
        """Predictions, shape (n_rows,): values of the target's classes, or numbers.

        Parameters
        ----------
        data : path, data frame (pandas, Polars, Arrow) or Table
            With the columns of the fit, in any order, and any others.

        Returns
        -------
        ndarray
            NaN, or None among classes, for a row that lacks a number which the model needs.
        """
        return np.concatenate([self.predictions(X)[0] for X in self.batches(self.read(data))])

    @speaks
    def predict_proba(self, data: Any) -> np.ndarray:
        """Probabilities of the classes, shape (n_rows, n_classes), in the order of ``classes``."""
        if not self.has_probabilities:
            raise InputError(f"{self.label} has no probabilities. Call predict.")
        return np.concatenate([self.predictions(X)[1] for X in self.batches(self.read(data))])

    def predictions(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and probabilities of rows of numbers; those of no class where none are."""
        whole = np.isfinite(X).all(axis=1)
        known = self.classes or ()
        shares = np.full((len(X), len(known) if self.has_probabilities else 0), np.nan)
        predicted = np.full(len(X), np.nan if self.classes is None else None)
        if not whole.any():
            return predicted, shares
        with self._guarded():
            if self.has_probabilities:
                shares[whole] = self.estimator.predict_proba(X[whole])
            answers = self.estimator.predict(X[whole])
            if self.classes is None:
                predicted[whole] = answers
                return predicted, shares
            value_of = dict(zip(self.estimator.classes_.tolist(), known, strict=True))
            predicted[whole] = [value_of[label] for label in answers.tolist()]
        return np.array(predicted.tolist()) if whole.all() else predicted, shares

    def measure(self, table: Table, groups: str | None) -> Measured:
        """Losses of the model on the rows that have a target, and a group where one is named."""
        roles = [self.target, *([groups] if groups else [])]
        n_rows = table.n_rows
        table, _ = table.complete(roles)
        truth = table.column(self.target)
        news, new_classes = News(), 0
        predicted = np.concatenate([self.predictions(X)[0] for X in self.batches(table, news)])
        if self.classes is None:
            numbers = as_numbers(truth)
            losses, without = (predicted - numbers) ** 2, (float(self.baseline) - numbers) ** 2
        else:
            values = truth.to_pylist()
            new_classes = sum(value not in self.classes for value in values)
            pairs = zip(values, predicted.tolist(), strict=True)
            wrong = [np.nan if label is None else float(value != label) for value, label in pairs]
            losses = np.array(wrong)
            without = np.array([float(value != self.baseline) for value in values])
        judged = np.isfinite(losses) & np.isfinite(without)
        if not judged.any():
            raise InputError("no row can be judged: each lacks a number that the model needs.")
        labels = None
        if groups is not None:
            labels = np.array([str(v) for v in table.column(groups).to_pylist()])[judged]
        n_unlabelled = n_rows - table.n_rows
        return Measured(losses[judged], without[judged], labels, n_unlabelled, new_classes, news)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Run a part of a model that may come from a damaged file."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                yield
        except SpokenError:
            raise
        except Exception as error:
            reason = " ".join(str(error).split())[:200].rstrip(".")
            raise InputError(
                f"the model is damaged, or of other versions than these: {self.label} fails with "
                f"{type(error).__name__}: {reason}."
            ) from error


@speaks
def load_model(path: str | Path) -> SavedModel:
    """The model that a command wrote with ``--save``.

    The file is data: only types that holdtrue's own models have are built, and none of them runs
    code from the file. A file with any other type is refused, and the type is named.

    Parameters
    ----------
    path : path of a .skops file

    Returns
    -------
    SavedModel

    See Also
    --------
    SavedModel : What can be done with it.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingFileError(f"no file {str(path)!r}. Pass one that --save has written.")
    try:
        model = load_skops(path, KNOWN_TYPES)
    except UnfitFile as error:
        raise InputError(f"{path.name} {error}") from error
    if not isinstance(model, SavedModel):
        raise InputError(
            f"{path.name} holds a {type(model).__name__}, not a model that --save has written."
        )
    return model


def plain_rows(batch: Any) -> pa.Table:
    """Rows with dates of one type, at the fit as later."""
    rows = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    columns = []
    for column in rows.columns:
        is_date = pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)
        columns.append(column.cast(pa.timestamp("us"), safe=False) if is_date else column)
    return pa.table(columns, rows.column_names)


# --- from a model that was chosen to a `SavedModel` -----------------------------------------------


@speaks
def deploy(
    model: Any,
    data: Any,
    target: str,
    *,
    groups: str | None = None,
    target_type: str = "auto",
    max_levels: int = 20,
    random_state: Any = None,
) -> SavedModel:
    """A model fitted on a table, with the error to expect of it on new data.

    The columns are encoded by `TableEncoder`. The error comes from fits without parts of the rows,
    or of the groups, as in `compare_models`.

    Parameters
    ----------
    model : estimator
        Any that takes numbers. To be written to a file it must be one of holdtrue's, or of those
        that `compare_models` has by name.
    data : path, data frame (pandas, Polars, Arrow) or Table
    target : str
        Rows without it are left out.
    groups : str, optional
        Column of sites, people or years: new data are new ones.
    target_type : {"auto", "classes", "numeric"}
    max_levels : int
        As in `TableEncoder`.
    random_state : int, RandomState or None
        Draws the parts.

    Returns
    -------
    SavedModel

    Examples
    --------
    >>> import pandas as pd
    >>> from holdtrue import SteadyRidgeRegressor
    >>> from holdtrue.deployed import deploy
    >>> from holdtrue.datasets import make_domains
    >>> data = make_domains(n_domains=8, n_features=7, random_state=0)
    >>> rows = pd.DataFrame(data.X).add_prefix("lab ").assign(y=data.y, site=data.groups)
    >>> model = deploy(SteadyRidgeRegressor(), rows, "y", groups="site")
    >>> model.promise.groups
    'site'
    """
    opened = data if isinstance(data, Table) else open_table(data)
    table, _ = opened.complete([target, *([groups] if groups else [])])
    rows = rows_of(table, target, groups, target_type=target_type, max_levels=max_levels)
    used = [column for column in rows.columns if column.features]
    promise = promise_of(model, rows.X, rows.y, rows.groups, groups, random_state=random_state)
    fitted = fit_with_groups(model, rows.X, rows.y, rows.groups)
    return saved_model(type(model).__name__, fitted, used, table, target, promise)


def promise_of(
    model: Any,
    X: Any,
    y: np.ndarray,
    labels: np.ndarray | None,
    groups: str | None,
    *,
    random_state: Any = None,
) -> Promise:
    """The error of a model, everything about it chosen anew without the rows that judge it.

    ``y`` holds numbers, or classes as text; ``labels`` the group of each row, which are left out as
    a whole and called ``groups``.
    """
    is_numeric = y.dtype.kind == "f"
    parts = None
    if not is_numeric and labels is None:
        values, counts = np.unique(y, return_counts=True)
        if counts.min() < 2:
            raise InputError(
                f"the error on new rows needs at least 2 rows of each class. Got 1 of "
                f"{str(values[counts.argmin()])!r}. Leave that row out, or if the values "
                "are amounts pass target_type='numeric' (--target-type numeric)."
            )
        parts = int(min(_PARTS, counts.min()))
    contest = compare_models(
        {"model": model},
        X,
        y,
        groups=labels,
        cv=parts,
        target_type="numeric" if is_numeric else "classes",
        random_state=random_state,
    )
    return Promise.from_contest(contest, "model", groups)


def saved_model(
    name: str,
    estimator: Any,
    columns: Sequence[FeatureColumn],
    table: Table,
    target: str,
    promise: Promise,
    encoder: Any = None,
    *,
    sources: Mapping[str, bytes] | None = None,
    sample_weight: np.ndarray | None = None,
) -> SavedModel:
    """A fitted model as it is saved.

    ``table`` has the target of every row of the fit, ``sample_weight`` their weights. The default
    encoder is that of the columns.
    """
    estimator = slim(estimator)
    column = table.column(target)
    kind = stored_kind(column.type)
    classes: tuple[Any, ...] | None = None
    baseline: Any
    if hasattr(estimator, "classes_"):
        values = python_values(column)
        by_text = {str(value): value for value in values}
        if not all(isinstance(value, (bool, int, float, str)) for value in by_text.values()):
            kind, by_text = "text", {text: text for text in by_text}
        classes = tuple(by_text[str(name)] for name in estimator.classes_.tolist())
        texts, codes = np.unique([str(value) for value in values], return_inverse=True)
        baseline = by_text[str(texts[np.bincount(codes, sample_weight).argmax()])]
    else:
        baseline = float(np.average(as_numbers(column), weights=sample_weight))
    used = f"{len(columns):,} column{'s' * (len(columns) != 1)}"
    if sources is not None:
        used = f"{len(sources)} source{'s' * (len(sources) != 1)}"
    return SavedModel(
        label=f"{name} {'on' if sources is None else 'with'} {used}",
        encoder=encoder or TableEncoder.from_columns(columns),
        estimator=estimator,
        columns=tuple(columns),
        target=target,
        target_kind=kind,
        classes=classes,
        baseline=baseline,
        promise=promise,
        made_by={},
        sources=dict(sources or {}),
    )
