"""A model that was chosen: saved with its promise, and used on new rows."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdtrue.deployed.contents import KNOWN_TYPES, check_trees, parts_of, slim
from holdtrue.deployed.promise import Promise
from holdtrue.errors import InputError, MissingFileError, SpokenError, did_you_mean, named, speaks
from holdtrue.files import UnfitFile, dump_skops, load_skops
from holdtrue.records import Record
from holdtrue.sources import SourcePool
from holdtrue.tables import Table, open_table
from holdtrue.tables.column_summary import FeatureColumn, as_numbers
from holdtrue.tables.files import TemporaryFolder, found_files

_ROWS = 1 << 15
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
            self.estimator.feature_names_in_ = np.array(self.names, dtype=object)

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
        if isinstance(data, (str, Path)):
            data = found_files(data)  # once: a pipe is not read again
        try:
            table = open_table(data, types=types, **options)
        except InputError:
            # Which columns are missing says more than the first that could not be read.
            table = open_table(data, **options)
            unread = _unread_dates(table, kinds)
            self._check_columns(table, [name for name in kinds if name not in unread])
            if not unread:
                raise
            types = {name: kind for name, kind in types.items() if name not in unread}
            types |= dict.fromkeys(unread.values(), "date")
            table = open_table(data, types=types, **options)
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
        rows: Any = X[whole]
        if self.sources:  # which may know the columns that they read by name
            rows = pa.table(dict(zip(self.names, rows.T, strict=True)))
        with self._guarded():
            if self.has_probabilities:
                shares[whole] = self.estimator.predict_proba(rows)
            answers = np.asarray(self.estimator.predict(rows)).reshape(int(whole.sum()))
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


def _unread_dates(table: Table, names: Iterable[str]) -> dict[str, str]:
    """Parts of dates, as ``day.month``, that the table lacks, with columns that look like none.

    A date that is missing in every row, or a text in one, does not look like a date.
    """
    columns = {name: name.rpartition(".")[0] for name in names if not table.has(name)}
    return {name: column for name, column in columns.items() if table.has(column)}


def plain_rows(batch: Any) -> pa.Table:
    """Rows with dates of one type, at the fit as later."""
    rows = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    columns = []
    for column in rows.columns:
        is_date = pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)
        columns.append(column.cast(pa.timestamp("us"), safe=False) if is_date else column)
    return pa.table(columns, rows.column_names)
