"""GingerEncoder: each column becomes what its value says about the target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from holdtrue.categories.cells import read_rows
from holdtrue.categories.encoding import (
    Counted,
    Encoding,
    Rows,
    Settings,
    check_folds,
    count_by_fold,
    encode_out_of_fold,
    folds_of,
    learn,
    no_column_loss,
)
from holdtrue.categories.pairs import Half, best_pairs, count_pair, joint_column, pair_out_of_fold
from holdtrue.categories.ranking import warn_of_groups
from holdtrue.categories.score import (
    check_classes,
    kinds_of,
    looks_like_group,
    may_be_group,
)
from holdtrue.columns.bins import present_values, whole_part
from holdtrue.columns.counting import Groups, Target, check_group_count
from holdtrue.columns.distinct import distinct
from holdtrue.columns.values import column_kind, columns_of
from holdtrue.errors import InputError, caution, check_choice, speaks
from holdtrue.path import SelectionPath, ShowsPath, fits_whole
from holdtrue.sums import Profile
from holdtrue.targets import TARGET_TYPES
from holdtrue.validation import check_count, check_flags, check_row_count, target_rows

__all__ = ["GingerEncoder"]

_LOSSES = {"log_loss": "log loss", "brier": "Brier loss", "squared_error": "squared error"}
_OUTPUTS = ("auto", "log_odds", "probability", "mean")


class GingerEncoder(ShowsPath, TransformerMixin, BaseEstimator):
    """Encode each column by what its value says about the target, shrunk to what all rows say.

    A value with class counts c becomes ``(c + a π)/(n + a)``, π being the shares of all rows, as
    log odds, probability or, for a numeric target, as a mean. The strength a of each column is
    the one that errs least on rows left out, in closed form; a column that says nothing gets an
    infinite one and becomes a constant. Numbers and dates are cut into bins by the same rule, so
    that text, categories, numbers and missing values go in together.

    ``fit_transform`` encodes every row from the other folds, as a fit on them would: what follows
    in a pipeline never sees a number that contains the row's own target. ``transform`` uses
    all rows of the fit; the two differ by design.

    Not to be used where columns matter only jointly (see ``pairs``), nor where few numeric columns
    act smoothly: bins are coarse, and the numbers themselves serve a model better.

    Parameters
    ----------
    criterion : {"log_loss", "brier"}
        Left-out loss that chooses strengths and bins. A numeric target always has squared error.
    output : {"auto", "log_odds", "probability", "mean"}
        ``"auto"`` is log odds for classes and the mean for a numeric target.
    average : bool
        Average over all strengths and numbers of bins, weighed by the likelihood of the rows left
        out, instead of choosing one of each; between the middles of bins the numbers are
        interpolated. A linear model after it errs less on small samples. ``strengths_``,
        ``scores_`` and ``n_bins_`` are still those of the best.
    pairs : int
        Add up to this many joint columns of two: those that gain most over the better of the two.
        All pairs are tried, so that time grows with the square of the number of columns.
    cv : int, splitter or iterable of (train, test)
        Folds of ``fit_transform``; fewer where there are fewer rows or groups. Classes are spread
        evenly over a number of folds. Otherwise every row must be in one test part.
    drop_useless : bool
        Leave out columns that say nothing about new rows, instead of a constant.
    target_type : {"auto", "classes", "numeric"}
        As in `GingerSelector`, as are the next two.
    categorical_features : "from_dtype" or array-like
    max_bins : int
    random_state : int, RandomState instance or None
        For the folds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or None for a numeric target
    target_type_ : {"classes", "numeric"}
    strengths_ : ndarray of shape (n_features,)
        Rows that the prior counts for; infinite where the column says nothing.
    scores_ : ndarray of shape (n_features,)
        Left-out loss of each column's encoding; lower is better.
    n_bins_ : ndarray of shape (n_features,)
        Bins that a column is read in; 0 where it is read by value.
    pairs_ : list of pairs of int
        Columns of the joint columns, the one that gains most first.
    support_ : ndarray of shape (n_features,)
        Mask of the columns that say something.
    ranking_ : ndarray of shape (n_features,)
        1 for the column of least loss.
    path_ : SelectionPath
        Columns by their left-out loss.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    GingerSelector : Keeps columns as they are.
    sklearn.preprocessing.TargetEncoder : One strength by an estimate of variances; no groups in
        the strength, no bins, no pairs.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from holdtrue import GingerEncoder
    >>> rng = np.random.default_rng(0)
    >>> colour = rng.choice(["red", "blue", "green"], 300)
    >>> X = pd.DataFrame({"id": [f"u{i}" for i in range(300)], "colour": colour})
    >>> y = (colour == "red") ^ (rng.random(300) < 0.1)
    >>> encoder = GingerEncoder(output="probability", drop_useless=True).fit(X, y)
    >>> encoder.get_feature_names_out()
    array(['colour'], dtype=object)
    >>> new = pd.DataFrame({"id": ["new", "new"], "colour": ["red", "violet"]})
    >>> encoder.transform(new).round(2)
    array([[0.9 ],
           [0.34]])
    >>> model = make_pipeline(GingerEncoder(random_state=0), LogisticRegression()).fit(X, y)
    >>> model.predict(new)
    array([ True, False])
    """

    feature_names_in_: np.ndarray
    _encodings: list[Encoding]

    def __init__(
        self,
        criterion: str = "log_loss",
        *,
        output: str = "auto",
        average: bool = False,
        pairs: int = 0,
        cv: int = 5,
        drop_useless: bool = False,
        target_type: str = "auto",
        categorical_features: Any = "from_dtype",
        max_bins: int = 64,
        random_state: Any = None,
    ):
        self.criterion = criterion
        self.output = output
        self.average = average
        self.pairs = pairs
        self.cv = cv
        self.drop_useless = drop_useless
        self.target_type = target_type
        self.categorical_features = categorical_features
        self.max_bins = max_bins
        self.random_state = random_state

    @fits_whole
    def fit(
        self, X: Any, y: Any, *, groups: Any = None, sample_weight: Any = None
    ) -> GingerEncoder:
        """Learn the encodings from all rows.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Classes, or numbers.
        groups : array-like of shape (n_samples,), optional
            What will be new, such as patients: strengths and bins are chosen by the loss on groups
            left out whole.
        sample_weight : array-like of shape (n_samples,), optional
            Whole numbers: weights are repetitions.

        Returns
        -------
        self : GingerEncoder
        """
        table, rows = self._read(X, y, groups, sample_weight)
        self._learn(table, rows)
        return self

    @fits_whole
    def fit_transform(
        self, X: Any, y: Any = None, *, groups: Any = None, sample_weight: Any = None
    ) -> np.ndarray:
        """Learn the encodings, and encode each row from the folds that it is not in.

        Which columns say nothing, and which pairs are joined, is decided on all rows.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Classes, or numbers.
        groups : array-like of shape (n_samples,), optional
            As in `fit`; rows of a group are in one fold.
        sample_weight : array-like of shape (n_samples,), optional
            Whole numbers: weights are repetitions.

        Returns
        -------
        encoded : ndarray of shape (n_samples, n_outputs)
        """
        table, rows = self._read(X, y, groups, sample_weight)
        rng = check_random_state(self.random_state)
        folds = folds_of(self.cv, rows.target, rows.group, rng)
        encoded = self._learn(table, rows._replace(folds=folds))
        assert encoded is not None
        return encoded

    @speaks
    def transform(self, X: Any) -> np.ndarray:
        """Encode rows by all rows of the fit; a value not seen gets what all rows say.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            With the columns of the fit.

        Returns
        -------
        encoded : ndarray of shape (n_samples, n_outputs)
        """
        check_is_fitted(self, "strengths_")
        table = columns_of(read_rows(self, X, reset=False))
        n_outputs = self._encodings[0].numbers.shape[1]
        out = _room(table, len(self._kept) * n_outputs)
        columns = iter(out.T)
        joined = {half for pair in self.pairs_ for half in pair}
        cells: dict[int, np.ndarray] = {}  # of the rows, for pairs
        for j, (name, column) in enumerate(table.items()):
            if j not in self._kept and j not in joined:
                continue
            encoding = self._encodings[j]
            values, codes = distinct(name, column)
            cell = encoding.cells.of_values(values)
            if j in self._kept:
                _fill(columns, encoding.numbers[cell], codes)
            if j in joined:
                cells[j] = encoding.joined(cell)[codes]
        for (i, j), encoding in zip(self.pairs_, self._encodings[len(table) :], strict=True):
            column = joint_column(cells[i], cells[j], self._encodings[j].n_joined)
            values, codes = distinct(encoding.cells.name, column)
            _fill(columns, encoding.numbers[encoding.cells.of_values(values)], codes)
        return out

    @speaks
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns out: of the column, ``a&b`` for a pair, ``<column>_<class>``.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns in, where the fit saw no names.

        Returns
        -------
        names : ndarray of str, shape (n_outputs,)
        """
        check_is_fitted(self, "strengths_")
        return self._names_out([str(n) for n in _check_feature_names_in(self, input_features)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        # fit_transform is out of fold: it differs from fit().transform() by design.
        tags.non_deterministic = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        # Arrow's arrays are kept as bytes: skops cannot write them, and could not trust them.
        state = dict(super().__getstate__())
        if "_encodings" in state:
            state["_settings"] = tuple(self._settings)
            state["_encodings"] = [
                encoding if encoding.cells.dtype is None else encoding.to_bytes()
                for encoding in self._encodings
            ]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_encodings" in state:
            self._settings = Settings(*state["_settings"])
            self._encodings = [
                Encoding.from_bytes(each) if isinstance(each, bytes) else each
                for each in state["_encodings"]
            ]

    # --- checks, all before any work ---

    def _check_parameters(self) -> None:
        check_choice("criterion", self.criterion, ("log_loss", "brier"))
        check_choice("output", self.output, _OUTPUTS)
        check_choice("target_type", self.target_type, TARGET_TYPES)
        for name, least in (("pairs", 0), ("max_bins", 2)):
            check_count(name, getattr(self, name), least)
        check_folds(self.cv)
        check_flags(average=self.average, drop_useless=self.drop_useless)

    def _read(self, X: Any, y: Any, groups: Any, sample_weight: Any) -> tuple[dict[str, Any], Rows]:
        """Columns by name and the rows' target and groups; sets what is known of the target."""
        self._check_parameters()
        labels = target_rows(y)
        table = columns_of(read_rows(self, X, reset=True))
        check_row_count(labels, len(next(iter(table.values()))))
        target = Target.by_rule(labels, self.target_type, sample_weight)
        is_numeric = target.classes is None
        check_classes(target.classes, target.n_samples)
        self._settings = Settings(
            "squared_error" if is_numeric else self.criterion,
            int(self.max_bins),
            self._output(is_numeric),
            bool(self.average),
        )
        group = None
        if groups is not None:
            subjects = Groups.from_column(groups, target)
            check_group_count(subjects.labels)
            group = subjects.codes
        self.target_type_ = "numeric" if is_numeric else "classes"
        self.classes_ = (
            None if target.classes is None else np.array(target.classes, dtype=labels.dtype)
        )
        return table, Rows(target, group, None)

    def _output(self, is_numeric: bool) -> str:
        if self.output == "auto":
            return "mean" if is_numeric else "log_odds"
        if is_numeric and self.output != "mean":
            raise InputError(
                f"output={self.output!r} needs classes, and the target is numeric. Pass "
                "output='mean', or target_type='classes'."
            )
        if not is_numeric and self.output == "mean":
            raise InputError(
                "output='mean' needs a numeric target. Got classes. Pass output='probability', or "
                "target_type='numeric'."
            )
        return self.output

    def _names_out(self, names: list[str]) -> np.ndarray:
        inputs = [names[j] for j in self._kept if j < len(names)]
        inputs += [f"{names[i]}&{names[j]}" for i, j in self.pairs_]
        if self.classes_ is not None and len(self.classes_) > 2:
            inputs = [f"{name}_{label}" for name in inputs for label in self.classes_.tolist()]
        return np.array(inputs, dtype=object)

    def _check_names(self, names_out: np.ndarray, what_is_new: str) -> None:
        """Refuse names out that come twice; warn where there are none."""
        twice = [name for name, n_times in Counter(names_out.tolist()).items() if n_times > 1]
        if twice:
            raise InputError(
                f"columns out must have different names. Got {', '.join(map(repr, twice))} more "
                "than once. Rename the columns or classes."
            )
        if not len(names_out):
            caution(
                f"GingerEncoder: no column says anything about {what_is_new}, and "
                "drop_useless=True leaves none. Pass drop_useless=False for constants."
            )

    # --- pieces of fit ---

    def _learn(self, table: Mapping[str, Any], rows: Rows) -> np.ndarray | None:
        """Learn every encoding; with folds, give the rows' numbers out of fold."""
        settings = self._settings
        names = list(table)
        kinds = kinds_of(self.categorical_features, names, map(column_kind, table.values()))
        n_classes = 0 if self.classes_ is None else len(self.classes_)
        n_outputs = n_classes if n_classes > 2 else 1
        out = None
        if rows.folds is not None:
            n_pairs = len(names) * (len(names) - 1) // 2
            n_columns = len(names) + min(int(self.pairs), n_pairs)
            out = _room(table, n_columns * n_outputs)
        columns = iter(()) if out is None else iter(out.T)
        self._encodings = []
        self._kept: list[int] = []
        halves: list[Half] = []
        alike: list[str] = []
        no_column = np.nan
        what_is_new = "new rows" if rows.group is None else "new groups"
        for j, (name, column) in enumerate(table.items()):
            counted = count_by_fold(name, kinds[j], column, rows)
            encoding, place = learn(counted, settings)
            if j == 0:
                no_column = no_column_loss(counted, settings.loss)
            self._encodings.append(encoding)
            if rows.group is None and _looks_like_group(counted, rows.target):
                alike.append(name)
            if self.pairs:
                halves.append(Half(counted, encoding, place[counted.codes]))
            if encoding.is_useless and self.drop_useless:
                continue
            self._kept.append(j)
            if out is None:
                continue
            if encoding.is_useless:
                for number, place in zip(encoding.numbers[-1], columns, strict=False):
                    place.fill(number)
            else:
                _fill(columns, encode_out_of_fold(counted, settings), counted.cell)
        self.pairs_ = best_pairs(halves, rows, settings, int(self.pairs))
        for i, j in self.pairs_:
            counted = count_pair(halves[i], halves[j], rows)
            self._encodings.append(learn(counted, settings)[0])
            if out is not None:
                numbers = pair_out_of_fold(halves[i], halves[j], rows, settings)
                _fill(columns, numbers, np.arange(len(numbers)))
        self._kept += range(len(names), len(self._encodings))
        self._check_names(self._names_out(names), what_is_new)
        warn_of_groups("GingerEncoder", alike, by_name=False)
        self._keep_results(names, no_column, what_is_new)
        return None if out is None else out[:, : len(self._kept) * n_outputs]

    def _keep_results(self, names: list[str], no_column: float, what_is_new: str) -> None:
        """Set the attributes of the fit."""
        singles = self._encodings[: len(names)]
        self.strengths_ = np.array([encoding.strength for encoding in singles])
        self.scores_ = np.array([encoding.score for encoding in singles])
        self.n_bins_ = np.array([encoding.n_bins for encoding in singles])
        useless = np.isinf(self.strengths_)
        self.scores_[useless] = no_column
        order = np.lexsort((self.scores_, useless))
        size = int(np.count_nonzero(~useless))
        self.path_ = SelectionPath(
            order=order,
            names=tuple(names[j] for j in order),
            scores=np.append(no_column, self.scores_[order]),
            chosen_size=size,
            reason=f"{size} of {len(names)} columns say something about {what_is_new}",
            unit=f"{_LOSSES[self._settings.loss]} on {what_is_new}",
        )
        self.support_ = self.path_.support(len(names))
        self.ranking_ = self.path_.ranking(len(names))


def _room(table: Mapping[str, Any], n_columns: int) -> np.ndarray:
    """Array for the numbers out, column by column in memory; float32 where every column is."""
    types = {str(getattr(column, "type", "object")) for column in table.values()}
    dtype = np.float32 if types == {"float"} else np.float64
    n_rows = len(next(iter(table.values())))
    return np.empty((n_rows, n_columns), dtype=dtype, order="F")


def _fill(columns: Iterator[np.ndarray], numbers: np.ndarray, codes: np.ndarray) -> None:
    """Write the next columns out: every row has the numbers of its code."""
    for values, column in zip(numbers.T, columns, strict=False):
        values = np.ascontiguousarray(values, dtype=column.dtype)
        # Codes are within bounds; mode="clip" saves NumPy the check.
        np.take(values, codes, out=column, mode="clip")


def _looks_like_group(counted: Counted, target: Target) -> bool:
    """Whether rows of one value look like one subject's, where the column has many values."""
    if counted.kind == "number" or not may_be_group(len(counted.values), target.n_samples):
        return False
    part = whole_part("category", *present_values(counted.values, counted.total))
    profile = Profile.from_parts("category", [part], target.n_samples, target.classes)
    return looks_like_group(profile)
