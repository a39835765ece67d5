"""GingerSelector: keep the columns that predict new rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from holdtrue.categories.cells import read_rows
from holdtrue.categories.forward import Candidate, candidates_of, forward_path
from holdtrue.categories.rank import column_path, engine_columns
from holdtrue.categories.ranking import Ranking, warn_of_groups
from holdtrue.categories.score import (
    DEFAULT_CRITERION,
    DEFAULT_MIN_SKILL,
    check_classes,
    check_scoring,
    kinds_of,
    score_column,
    scoring,
)
from holdtrue.columns.counting import Groups, Target, check_group_count
from holdtrue.columns.values import columns_of
from holdtrue.engine import engine_of
from holdtrue.errors import InputError, InputTypeError, caution, check_choice, shown, speaks
from holdtrue.path import ShowsPath, fits_whole
from holdtrue.sums import Counts, Profile
from holdtrue.sums.group_profile import GroupProfile
from holdtrue.targets import TARGET_TYPES, target_kind
from holdtrue.validation import check_count, check_row_count, feature_names, target_rows

__all__ = ["GingerSelector"]


class GingerSelector(SelectorMixin, ShowsPath, BaseEstimator):
    """Keep the columns whose own predictor loses less on new rows than no column at all.

    Each column is scored by the loss that it alone would have on rows not yet seen, estimated
    from counts with each row left out. The predictor is the one that people deploy: shares of the
    classes by value, shrunk to those of all rows by as much as serves the column. A column that
    only remembers its rows, such as an id or a postcode, scores like no column, however many
    values it has. Text, categories, truth values, integers, numbers and dates need no encoding;
    missing is a value of its own.

    Where rows repeat the same subject and new data are new subjects, pass ``groups``. Not to be
    used to read the error of the best of very many columns off its score: the least of many
    estimates is too low. A column that helps only together with another is found by
    ``mode="forward"`` at most.

    Parameters
    ----------
    criterion : {"log_loss", "brier", "error", "squared_error", "ginger", "majority", "gini", \
"misclassification", "information_gain", "gain_ratio"}
        ``"log_loss"``, ``"brier"`` and ``"error"`` are losses of the shrunk shares on new rows, the
        last one the share of rows whose class is not the likeliest. ``"ginger"``, to the letter of
        the paper, and ``"majority"`` estimate the error of the rules that predict as a random row,
        or as the majority, of the same value. The others look at the rows of the fit only and
        serve to compare. Lower is better for all: information gain is given as the entropy that is
        left, gain ratio as one minus the ratio. For a numeric target ``"squared_error"`` is that of
        the value's mean shrunk to the mean of all rows, and so are ``"log_loss"`` and ``"brier"``;
        ``"ginger"`` is that of the plain mean.
    n_features_to_select : int, optional
        How many columns to keep. By default those that beat "no column" by more than
        ``min_gain_se`` standard errors, or with ``mode="forward"`` as many as clearly lower the
        estimate.
    min_features : int
        At least this many columns, the best, are kept. With 0, a fit that keeps nothing warns.
    mode : {"each", "forward"}
        Score columns one by one, or given those already chosen: by the score of their joint
        column, while one lowers it by more than ``sqrt(2 ln p)`` standard errors, p being the
        number of columns left. The best of p seems better than it is.
    target_type : {"auto", "classes", "numeric"}
        ``"auto"`` takes text, truth values and categories as classes, and any target of two
        values; whole numbers if they have at most 20 values, at most a fifth of the rows;
        anything else is numeric. More than 100 classes are refused.
    categorical_features : "from_dtype" or array-like
        Columns to take by value whatever their type: names, indices or a mask. The others go by
        their type: text, categories and truth values by value, floats and dates in bins, integers
        both ways, of which the better stands.
    max_bins : int
        Most bins of a column of numbers. The criterion chooses how many.
    missing : {"category", "ignore"}
        Take missing as a value of its own, or leave those rows out of that column.
    unseen : {"uniform", "prior"}
        How ``"ginger"`` and ``"majority"`` predict a value not seen: all classes alike, as in the
        paper, or as the other rows have it. Shrunk shares are then those of all rows.
    min_gain_se : float
        Standard errors, from the rows' paired differences, by which a column must beat "no
        column". 0 keeps every gain.
    min_skill : float
        Least share of the loss without a column that a column must remove. With many rows
        nearly every column gains something; below half a percent models rarely gain by it. With
        ``min_gain_se=0`` every gain is kept unless another number is given.
    alpha : float
        One minus the confidence of the intervals, column by column.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Estimate of each column; lower is better.
    no_column_scores_ : ndarray of shape (n_features,)
        The same without the column. It differs between columns only where missing rows are left
        out.
    intervals_ : ndarray of shape (n_features, 2)
        For the scores; they stay inside the range of the loss.
    gain_intervals_ : ndarray of shape (n_features, 2)
        For ``no_column_scores_ - scores_``.
    share_wrong_ : ndarray of shape (n_features,)
        Share of new rows whose class is not the likeliest one; NaN for a numeric target.
    coverage_ : ndarray of shape (n_features,)
        Share of new rows whose value has been seen (Good-Turing). Low for an id.
    n_bins_ : ndarray of shape (n_features,)
        Bins that a column is read in; 0 where it is read by value.
    ranking_ : ndarray of shape (n_features,)
        1 for the best: columns kept, then the others, each by score.
    support_ : ndarray of shape (n_features,)
        Mask of the columns kept.
    path_ : SelectionPath
        Columns in that order. With ``mode="each"`` a score is that of the column alone, with
        ``mode="forward"`` that of all columns up to it.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    rank_columns : The same as a table to read, from a frame or a file.
    Counts : What `fit_statistics` needs of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from holdtrue import GingerSelector
    >>> rng = np.random.default_rng(0)
    >>> colour = rng.choice(["red", "blue", "green"], 300)
    >>> X = pd.DataFrame({"id": [f"u{i}" for i in range(300)], "colour": colour})
    >>> y = (colour == "red") ^ (rng.random(300) < 0.1)
    >>> selector = GingerSelector().fit(X, y)
    >>> selector.get_feature_names_out()
    array(['colour'], dtype=object)
    >>> selector.scores_.round(2)
    array([0.64, 0.32])
    """

    feature_names_in_: np.ndarray

    def __init__(
        self,
        criterion: str = DEFAULT_CRITERION,
        *,
        n_features_to_select: int | None = None,
        min_features: int = 0,
        mode: str = "each",
        target_type: str = "auto",
        categorical_features: Any = "from_dtype",
        max_bins: int = 64,
        missing: str = "category",
        unseen: str = "uniform",
        min_gain_se: float = 1.0,
        min_skill: float = DEFAULT_MIN_SKILL,
        alpha: float = 0.05,
    ):
        self.criterion = criterion
        self.n_features_to_select = n_features_to_select
        self.min_features = min_features
        self.mode = mode
        self.target_type = target_type
        self.categorical_features = categorical_features
        self.max_bins = max_bins
        self.missing = missing
        self.unseen = unseen
        self.min_gain_se = min_gain_se
        self.min_skill = min_skill
        self.alpha = alpha

    @fits_whole
    def fit(
        self, X: Any, y: Any, *, groups: Any = None, sample_weight: Any = None
    ) -> GingerSelector:
        """Score every column and choose.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            A frame of Dask or Spark holds its target, and its groups.
        y : array-like of shape (n_samples,), or str
            Classes, or numbers; with a frame of Dask or Spark the name of their column.
        groups : array-like of shape (n_samples,), or str, optional
            The group of each row: a patient, a site, a user. New data are then new groups, and a
            group is left out as a whole. By default new data are new rows.
        sample_weight : array-like of shape (n_samples,), optional
            Whole numbers: weights are repetitions.

        Returns
        -------
        self : GingerSelector
        """
        self._check_parameters()
        engine = engine_of(X)
        if engine is not None:
            self._check_mode()
            names, _, profiles = engine_columns(
                engine,
                y,
                groups,
                criterion=self.criterion,
                options=self._options(),
                target_type=self.target_type,
                categorical_features=self.categorical_features,
                sample_weight=sample_weight,
            )
            self._fit_profiles(dict(zip(names, profiles, strict=True)))
            return self
        labels = target_rows(y)
        table = read_rows(self, X, reset=True)
        check_row_count(labels, len(table))
        target = Target.by_rule(labels, self.target_type, sample_weight)
        columns = dict(zip(feature_names(self), columns_of(table).values(), strict=True))
        subjects = None if groups is None else Groups.from_column(groups, target)
        counts = self._with_kinds(Counts.from_columns(columns, target, subjects))
        self._check_groups(counts)
        candidates: list[Candidate] = []
        if self.mode == "forward":
            candidates = candidates_of(columns, counts.kinds, target, self.max_bins)
        self._choose(counts.profiles(self.max_bins), candidates, target if candidates else None)
        return self

    @fits_whole
    def fit_statistics(self, counts: Counts | Mapping[str, Profile]) -> GingerSelector:
        """Score every column from counts or profiles of a table, and choose.

        Parameters
        ----------
        counts : Counts, or mapping from column name to Profile
            Of classes, or of a numeric target; refused where `target_type` says otherwise. Counts
            of parts of a table add up. Of counts with groups whole groups are left out.

        Returns
        -------
        self : GingerSelector
        """
        self._check_parameters()
        profiles: Any = counts
        if isinstance(counts, Counts):
            self._check_groups(counts)
            counts = self._with_kinds(counts)
            profiles = counts.profiles(self.max_bins)
        if not isinstance(profiles, Mapping) or not all(
            isinstance(profile, Profile | GroupProfile) for profile in profiles.values()
        ):
            raise InputTypeError(
                f"expected Counts, or a dict of Profile by column. Got {type(counts).__name__}. "
                "Build them with Counts.from_frame, or call fit(X, y)."
            )
        self._check_mode()
        if len({profile.classes for profile in profiles.values()}) != 1:
            raise InputError("the profiles must be of one target. Got several, or no column.")
        self._check_target(next(iter(profiles.values())))
        self._fit_profiles(profiles)
        return self

    @speaks
    def transform(self, X: Any) -> Any:
        """X with the chosen columns only; a frame comes back as its own kind of frame.

        Nothing is computed of a frame of Dask or Spark.

        Where none is chosen the rows stay: of pandas as a frame with its index, of Arrow and
        Polars, which need a column to hold rows, as an array of shape (n_samples, 0).

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            With the columns of the fit.

        Returns
        -------
        chosen : frame or ndarray of shape (n_samples, n_chosen)
        """
        check_is_fitted(self, "support_")
        engine = engine_of(X)
        if engine is not None:
            kept_names = [str(name) for name in self.get_feature_names_out()]
            missing = [name for name in kept_names if name not in engine.types]
            if missing:
                raise InputError(
                    "columns at fit and transform differ. Missing: "
                    f"{', '.join(map(repr, missing))}."
                )
            return engine.select(kept_names)
        table = read_rows(self, X, reset=False)
        kept = np.flatnonzero(self.support_).tolist()
        if isinstance(table, np.ndarray):
            return table[:, kept]
        frame = nw.from_native(table, eager_only=True)
        if not kept:
            is_pandas = frame.implementation.is_pandas_like()
            return table.iloc[:, :0] if is_pandas else np.empty((len(frame), 0))
        frame = frame[:, kept]
        config: dict[str, str] = getattr(self, "_sklearn_output_config", {})
        wanted = config.get("transform", get_config()["transform_output"])
        if wanted == "pandas":
            return frame.to_pandas()
        return frame.to_polars() if wanted == "polars" else frame.to_native()

    def _html_repr(self) -> str:
        path = getattr(self, "path_", None)
        if path is None or path.evidence is None or self.mode == "forward":
            return super()._html_repr()
        return str(super(ShowsPath, self)._html_repr()) + Ranking(path)._repr_html_()

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self, "support_")
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags

    # --- checks, all before any work ---

    def _check_parameters(self) -> None:
        check_scoring(self.criterion, *self._options())
        check_choice("mode", self.mode, ("each", "forward"))
        check_choice("target_type", self.target_type, TARGET_TYPES)
        if self.mode == "forward" and self.missing == "ignore":
            raise InputError(
                "mode='forward' compares joint columns on the same rows. "
                "Got missing='ignore', which leaves out others for each column. "
                "Pass missing='category'."
            )
        check_count("n_features_to_select", self.n_features_to_select, 1, "or None")
        check_count("min_features", self.min_features, 0)

    def _options(self) -> tuple[Any, ...]:
        """Fields of `Scoring` after the criterion."""
        names = ("max_bins", "missing", "unseen", "min_gain_se", "min_skill", "alpha")
        return tuple(getattr(self, name) for name in names)

    def _check_mode(self) -> None:
        if self.mode == "forward":
            raise InputError(
                "mode='forward' needs the rows on this machine, because the counts of single "
                "columns do not hold those of joint ones. Call fit(X, y), or pass mode='each'."
            )

    def _check_groups(self, counts: Counts) -> None:
        """Refuse groups that say nothing; counts without groups pass."""
        if counts.groups is None:
            return
        check_group_count(counts.groups)
        scoring(self.criterion, counts.classes, has_groups=True)
        if self.mode == "forward":
            raise InputError(
                "mode='forward' leaves out rows, not groups. Leave groups out, or pass mode='each'."
            )

    def _check_target(self, profile: Profile | GroupProfile) -> None:
        """Refuse counts of a target that this target_type reads in another way."""
        classes = profile.classes
        if classes is None:
            if self.target_type == "classes":
                raise InputError(
                    "target_type='classes' needs counts of classes. Got sums of a numeric "
                    "target. Build them with numeric_target=False, or pass target_type='auto'."
                )
            return
        if self.target_type == "numeric":
            raise InputError(
                f"target_type='numeric' needs sums of a numeric target. Got counts of "
                f"{len(classes)} classes. Build them with numeric_target=True."
            )
        if isinstance(profile, GroupProfile):
            rows = profile.by_value.sums.sum(axis=0)
        else:
            rows = profile.repeats @ profile.rows + profile.missing.sum(axis=0)
        if target_kind(np.array(classes, dtype=object), self.target_type, rows).is_numeric:
            raise InputError(
                f"the target is a number by its values. Got counts of {len(classes)} "
                f"classes, such as {shown(classes[0])}. Build them with numeric_target=True, or "
                "pass target_type='classes'."
            )

    def _with_kinds(self, counts: Counts) -> Counts:
        """Counts in which the columns of categorical_features are categories."""
        kinds = kinds_of(self.categorical_features, counts.names, counts.kinds)
        return replace(counts, kinds=kinds)

    # --- pieces of fit ---

    def _fit_profiles(self, profiles: Mapping[str, Profile | GroupProfile]) -> None:
        """Fit without rows: the names are kept."""
        self.n_features_in_ = len(profiles)
        if list(profiles) != feature_names(self):  # columns of an array have no names
            self.feature_names_in_ = np.array(list(profiles), dtype=object)
        self._choose(profiles)

    def _choose(
        self,
        profiles: Mapping[str, Profile | GroupProfile],
        candidates: Sequence[Candidate] = (),
        rows: Target | None = None,
    ) -> None:
        """Score the profiles and choose; with rows, given the columns already chosen.

        Warns of groups that were not given, and of an empty selection.
        """
        names, n_columns = list(profiles), len(profiles)
        first = next(iter(profiles.values()))
        check_classes(first.classes, first.n_samples)
        if (self.n_features_to_select or 0) > n_columns:
            raise InputError(
                f"n_features_to_select must not exceed the number of columns. "
                f"Got n_features_to_select={self.n_features_to_select} with {n_columns} columns."
            )
        has_groups = isinstance(first, GroupProfile)
        how = scoring(self.criterion, first.classes, has_groups, self._options())
        estimates = [score_column(profile, how) for profile in profiles.values()]
        limits = self.n_features_to_select, self.min_features
        if rows is None:
            self.path_ = column_path(names, estimates, first.classes, how, *limits)
        else:
            self.path_ = forward_path(names, estimates, candidates, rows, how, *limits)
        self.scores_ = np.array([column.score for column in estimates])
        self.no_column_scores_ = np.array([column.no_column for column in estimates])
        self.intervals_ = np.array([column.interval for column in estimates])
        self.gain_intervals_ = np.array([column.gain_interval for column in estimates])
        self.share_wrong_ = np.array([column.estimate.wrong for column in estimates])
        self.coverage_ = np.array([column.coverage for column in estimates])
        self.n_bins_ = np.array([column.n_bins for column in estimates])
        self.support_ = self.path_.support(n_columns)
        self.ranking_ = self.path_.ranking(n_columns)
        alike = [name for name, one in zip(names, estimates, strict=True) if one.is_group_like]
        warn_of_groups("GingerSelector", alike, by_name=False)
        if not self.path_.chosen_size:
            caution(
                f"GingerSelector: keeps nothing, because {self.path_.reason}. The next step of a "
                "pipeline gets a table without columns. Pass min_features=1 to keep the best one."
            )
