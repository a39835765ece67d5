"""SimilarityLearner: a similarity that holds for classes nobody has seen."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names_in, check_array, check_is_fitted

from holdtrue.domains import choose, kernel
from holdtrue.domains.base import WalksDomains, working_memory
from holdtrue.domains.covariances import RowColumns, domains_from_rows
from holdtrue.domains.kernel import StoredColumns
from holdtrue.errors import InputError, counted, plain, shown, speaks
from holdtrue.evidence import DomainEvidence
from holdtrue.path import fits_whole
from holdtrue.validation import check_magnitude, is_number, numeric_rows

_ALPHA = 0.05


class SimilarityLearner(TransformerMixin, WalksDomains, BaseEstimator):
    """Learn ``s(x, x') = Σ w_i x_i x'_i``: +1 for rows of one class, -1 for rows of two.

    For classes that were not seen (zero-shot): the features are those whose products tell same from
    different in every class, each class being a domain of T-Greedy [1]_.

    Parameters
    ----------
    rule : {"moderated", "t", "greedy", "auto"}, default="moderated"
        What a step maximises; see `TGreedySelector`.
    pairs : "all" or int, default="all"
        ``"all"``: every pair of rows, in closed form from the moments of the classes. A number:
        that many pairs of rows of one class, and as many of two classes, are drawn for each class,
        as in the papers.
    stop : str, default="auto"
        When to stop; see `TGreedySelector`. ``"auto"`` is ``"held_out_domain"`` with 3 classes or
        more, a held-out class taking no part in the other classes' pairs.
    max_steps : int, optional
        Default: ``min(3 n_features, 300)``.
    random_state : int, RandomState or None, default=None
        Draws pairs, unless ``pairs="all"``, and the flips of ``stop="sign_flip"`` where there are
        more than 16 classes.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights w.
    classes_ : ndarray of shape (n_classes,)
    domains_ : ndarray
        The classes that served as domains. One with a single row has no pair of its own and serves
        in the other classes' pairs only.
    signs_ : ndarray of shape (n_chosen,)
        Signs of the chosen weights; see `transform`.
    path_ : SelectionPath
        Features in order of entry, with the squared error on held-out classes.
    support_, ranking_ : ndarray of shape (n_features,)
    steady_ : ndarray of bool, shape (n_features,)
        Features that entered beyond chance; see `TGreedySelector`.
    rule_ : str
        The rule that was used.
    t_statistics_, chance_levels_ : ndarray of shape (n_steps,)
        T of each step's feature as it enters, and Bonferroni's level for it.
    domain_effects_ : ndarray of shape (n_features, n_domains)
        Effect of each feature's product in each class before any step, in units of its root mean
        square: positive if rows of that class agree more with each other than with the rest.
    held_out_scores_ : ndarray of shape (n_steps + 1, n_domains)
        Squared error over the pairs of each class, of the walk that did not see it.
    new_domain_score_ : float
        Squared error to expect on a new class; rule and length are chosen without it. nan with
        fewer than 4 classes. 1 is the error of saying nothing.
    new_domain_interval_ : (float, float)
        Holds the error at one new class with probability .95.
    mean_interval_ : (float, float)
        Student's interval for the mean error over new classes.
    plain_score_ : float
        Squared error on held-out classes of the plain product ``c x·x'``, c by least squares; nan
        where no class was held out. ``path_.reason`` says whether the learned weights beat it. If
        not, use the plain product.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        When the columns of X have names.

    See Also
    --------
    TGreedyClassifier : Classes that are all known, in domains that are not.

    Notes
    -----
    When **not** to use it: when the classes to come are those of the fit, a classifier knows more.
    It has one weight per feature and no products of two features, so features should be ready-made
    (a network's, say); centre and scale them first, since ``x_i x'_i`` of a feature that is large
    everywhere is large for every pair. A feature that hardly varies but in one class is excluded.

    A class's pairs of two contain rows of the other classes: the domains are not independent, and
    the levels of ``"bonferroni"`` and ``"sign_flip"`` are rough.

    References
    ----------
    .. [1] D. Foster, S. Kakade, R. Salakhutdinov, "Domain Adaptation: Overfitting and Small Sample
       Statistics" (2011), section 4.2.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from holdtrue import SimilarityLearner
    >>> X, y = load_digits(return_X_y=True)
    >>> X = X[:, X.std(axis=0) > 2]
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> seen = y < 8
    >>> learner = SimilarityLearner().fit(X[seen], y[seen])
    >>> {digit: round(a, 1) for digit, a in learner.zero_shot_auroc(X[~seen], y[~seen]).items()}
    {8: 0.7, 9: 0.8}
    """

    def __init__(
        self,
        rule: str = "moderated",
        *,
        pairs: str | int = "all",
        stop: str = "auto",
        max_steps: int | None = None,
        random_state: Any = None,
    ):
        self.rule = rule
        self.pairs = pairs
        self.stop = stop
        self.max_steps = max_steps
        self.random_state = random_state

    @fits_whole
    def fit(self, X: Any, y: Any) -> SimilarityLearner:
        """Learn the weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class of each row.

        Returns
        -------
        self : SimilarityLearner
        """
        choose.check_parameters(self.rule, self.stop, self.max_steps)
        if self.pairs != "all" and not (
            is_number(self.pairs, numbers.Integral) and int(self.pairs) >= 1
        ):
            raise InputError(
                f"pairs must be 'all' or a whole number of at least 1. Got {shown(self.pairs)}."
            )
        X, y = numeric_rows(self, X, y, reset=True, y_numeric=False)
        X = np.ascontiguousarray(X)  # sums do not depend on the layout
        check_magnitude("X", np.array([X.max(), X.min()]).reshape(-1, 1), dtype=X.dtype, power=4)
        check_classification_targets(y)
        self.classes_, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        if len(self.classes_) < 2:
            raise InputError(f"needs at least 2 classes. Got 1 class, {shown(self.classes_[0])}.")
        plural = np.flatnonzero(counts > 1)
        if len(plural) < 2:
            raise InputError(
                f"needs at least 2 classes with 2 rows or more, since a row is never "
                f"paired with itself. Got {len(plural)} of {len(self.classes_)} classes in "
                f"{counted(len(y), 'sample')}."
            )
        self.domains_ = self.classes_[plural]
        n = len(plural)
        stop = choose.resolved_stop(
            self.stop, grouped=True, n=n, n_candidates=X.shape[1], alpha=_ALPHA
        )
        rng = check_random_state(self.random_state)
        settled = choose.Plan(
            choose.variants_of(self.rule, "equal", ("none",), n),
            stop,
            self.max_steps or choose.default_steps(X.shape[1], 1, stepwise=False),
            alpha=_ALPHA,
            estimate=stop != "max_steps",
            seed=rng.randint(2**31) if stop == "sign_flip" else 0,
        )
        rows = [X[codes == c] for c in range(len(self.classes_))]
        max_bytes = working_memory()
        pairs: AllPairs | SampledPairs
        if self.pairs == "all":
            pairs = AllPairs(rows, plural, max_bytes)
        else:
            pairs = SampledPairs(rows, plural, int(self.pairs), rng, max_bytes)
        walk, selection = self._take_walks(
            pairs, settled, self.domains_, None, f"{n} classes as domains", nested_only=True
        )
        self.plain_score_ = np.nan
        if selection.held_out is not None and selection.new_errors is not None:
            plain = plain_errors(pairs)
            self.plain_score_ = float(plain.mean())
            if not np.isnan(selection.new_errors).any():
                verdict = _beside_plain(selection.new_errors, plain)
                self.path_ = replace(self.path_, reason=f"{self.path_.reason}; {verdict}")
        evidence = self.path_.evidence_as(DomainEvidence)
        self.domain_effects_ = evidence.effects[0]
        self.held_out_scores_ = selection.held_out
        self.new_domain_score_ = evidence.new_domain_score
        self.new_domain_interval_ = (evidence.new_domain_low, evidence.new_domain_high)
        self.mean_interval_ = (evidence.mean_low, evidence.mean_high)
        self.coef_ = walk.coefficients(selection.size)[0]
        self.signs_ = np.where(self.coef_[self.support_] < 0, -1.0, 1.0)
        return self

    @speaks
    def similarity(self, X1: Any, X2: Any) -> np.ndarray:
        """``s(x, x')`` of every row of X1 with every row of X2, shape (n_1, n_2)."""
        first, second = self._rows(X1), self._rows(X2)
        return (first * self.coef_.astype(first.dtype)) @ second.T

    @speaks
    def pair_score(self, pairs: Any) -> np.ndarray:
        """Similarity of each pair, shape (n_pairs,).

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features)
            As in metric-learn.
        """
        check_is_fitted(self, "coef_")
        given = check_array(pairs, dtype=np.float64, allow_nd=True, input_name="pairs")
        if given.ndim != 3 or given.shape[1:] != (2, self.n_features_in_):
            raise InputError(
                "pairs must have shape (n_pairs, 2, "
                f"{self.n_features_in_}). Got shape {given.shape}."
            )
        return np.einsum("ij,ij,j->i", given[:, 0], given[:, 1], self.coef_)

    @speaks
    def transform(self, X: Any) -> np.ndarray:
        """Chosen features times ``sqrt(|w_i|)``, shape (n_samples, n_chosen).

        Where all weights are positive, the inner product of two rows is their similarity. A
        negative weight has no real root: then it is ``a @ (signs_ * b)``, and methods that take
        plain inner products or distances (nearest neighbours, say) ignore the signs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        rows = self._rows(X)
        root = np.sqrt(np.abs(self.coef_[self.support_]))
        return rows[:, self.support_] * root.astype(rows.dtype)

    @speaks
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the chosen features.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names to use where the columns of X had none.
        """
        check_is_fitted(self, "coef_")
        names: np.ndarray = _check_feature_names_in(self, input_features)
        return names[self.support_]

    @speaks
    def zero_shot_auroc(self, X: Any, y: Any, X_others: Any = None) -> dict[Any, float]:
        """AUROC of same against different for each class of y, over all pairs of its rows.

        For judging on classes that the fit has not seen. Pairs of one class are told from pairs of
        one of its rows and a row of any other class, of X or of ``X_others``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        X_others : array-like of shape (n_others, n_features), optional
            Rows of further classes, such as those of the fit.

        Returns
        -------
        auroc : dict
            Of the classes with two rows or more. 0.5 is chance.
        """
        rows, labels = self._rows(X), np.asarray(y)
        if labels.shape != (len(rows),):
            raise InputError(f"y must have shape ({len(rows)},). Got shape {labels.shape}.")
        others = rows[:0] if X_others is None else self._rows(X_others)
        scores = {}
        for name in np.unique(labels):
            members, rest = rows[labels == name], np.vstack([rows[labels != name], others])
            if len(members) < 2:
                continue
            if not len(rest):
                raise InputError(
                    f"class {shown(name)} has no other rows "
                    "to be told from. Pass rows of other classes as X_others."
                )
            weighted = members * self.coef_.astype(members.dtype)
            same = (weighted @ members.T)[np.triu_indices(len(members), 1)]
            different = (weighted @ rest.T).ravel()
            ranks = rankdata(np.concatenate([same, different]))[: len(same)]
            above = ranks.sum() - len(same) * (len(same) + 1) / 2
            scores[plain(name)] = float(above / (len(same) * len(different)))
        return scores

    def _rows(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "coef_")
        return np.ascontiguousarray(numeric_rows(self, X, reset=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class PairColumns:
    """Second moments of the products over all pairs, from those of the classes.

    ``M_d (f_0 Σ_c k_c M_c + f_1 M_d) - f_2 Q_d``, in the symbols of `AllPairs`.

    Parameters
    ----------
    second, fourth : StoredColumns or RowColumns
        M of every class, Q of those that are domains.
    plural : ndarray of int, shape (n_domains,)
        Classes that are domains.
    kept : ndarray of shape (n_classes,)
        k: 0 for classes that are held out, else 1.
    size : ndarray of shape (n_domains,)
        Rows of each domain.
    """

    def __init__(
        self,
        second: StoredColumns | RowColumns,
        fourth: StoredColumns | RowColumns,
        plural: np.ndarray,
        kept: np.ndarray,
        size: np.ndarray,
    ):
        self._second, self._fourth, self._plural, self._kept = second, fourth, plural, kept
        among = 0.5 / (kept.sum() - kept[plural])
        itself = 0.5 / (size - 1)
        self._factors = np.array([among, size * itself - kept[plural] * among, itself])
        self.eps = second.eps

    def combined(self, M: np.ndarray, Q: np.ndarray) -> np.ndarray:
        """The combination for any M and Q of shape (..., n_features)."""
        among, with_itself, itself = self._factors.astype(M.dtype)[:, :, None]
        row = M[self._plural] if len(M) > len(self._plural) else M
        result = among * (self._kept.astype(M.dtype) @ M)
        result += with_itself * row
        result *= row
        result -= itself * Q
        return result

    def get(self, i: int, position: kernel.Position) -> np.ndarray:
        """Column i of every domain; see `StoredColumns` and `RowColumns`."""
        return self.combined(self._second.get(i, position), self._fourth.get(i, position))

    def for_loops(self, shift: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """See `kernel.Columns`."""
        second, fourth = self._second.for_loops(shift), self._fourth.for_loops(shift)
        if second is None or fourth is None:
            return None
        return second[0], fourth[0], self._plural, self._kept, self._factors, shift


class AllPairs:
    """Moments of the products over all pairs, class by class, from the moments of the classes.

    With the class's mean m, second moment M, and ``Q = E[x_i² x_j²]``, over N rows: pairs of one
    class have ``E[x x'] = (N m² - diag M)/(N - 1)`` and second moment ``(N M² - Q)/(N - 1)``; pairs
    of two ``m m₋`` and ``M M₋``, the minus marking the average over the other classes. Both kinds
    count half. Moments are about zero: a similarity has no intercept.
    """

    def __init__(self, rows: list[np.ndarray], plural: np.ndarray, max_bytes: float):
        self._plural = plural
        self.copies, self.units = np.ones(len(plural)), np.arange(len(plural))
        self._size = np.array([len(block) for block in rows], dtype=np.float64)
        self._mean = np.array([block.mean(axis=0, dtype=np.float64) for block in rows])
        squares = [block**2 for block in rows]
        self._square = np.array([block.mean(axis=0, dtype=np.float64) for block in squares])
        fourth = np.array([(block**2).mean(axis=0, dtype=np.float64) for block in squares])
        self._fourth = fourth[plural]
        self._second = _second_moments(rows, self._size, max_bytes / 2)
        plural_squares = [squares[c] for c in plural]
        self._mixed = _second_moments(plural_squares, self._size[plural], max_bytes / 2)
        # Of the plain product x·x': E[(x·x')²] between classes, and E[(x·x)²] within.
        self._plain_square = (
            self._second.traces()
            if isinstance(self._second, StoredColumns)
            else np.array([[np.mean((a @ b.T) ** 2) for b in rows] for a in rows])
        )
        self._plain_norm = np.array([np.mean(squares[c].sum(axis=1) ** 2) for c in plural])

    def _other_classes(self, held: np.ndarray) -> np.ndarray:
        """Weights of the other classes in each domain's pairs, shape (n_domains, n_classes)."""
        n_classes = len(self._size)
        other = np.ones((n_classes, n_classes))
        other[:, self._plural[held]] = 0.0
        np.fill_diagonal(other, 0.0)
        return (other / other.sum(axis=1, keepdims=True))[self._plural]

    def plain_moments(self, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``E[s y | d]`` and ``E[s² | d]`` of ``s = x·x'``, each of shape (n_domains,)."""
        plural, size = self._plural, self._size[self._plural]
        other, square = self._other_classes(held), self._plain_square[self._plural]
        same = (size * square[np.arange(len(plural)), plural] - self._plain_norm) / (size - 1)
        squares = (same + np.einsum("dc,dc->d", square, other)) / 2
        return self.without(held).cov_xy[0].sum(axis=1), squares

    def without(self, held: np.ndarray) -> kernel.Domains:
        """What a walk needs where these domains, by index, are in no other class's pairs."""
        plural = self._plural
        other, size = self._other_classes(held), self._size[plural][:, None]
        kept = np.ones(len(self._size))
        kept[plural[held]] = 0.0
        columns = PairColumns(self._second, self._mixed, plural, kept, size[:, 0])
        m, M = self._mean, self._square
        same = (size * m[plural] ** 2 - M[plural]) / (size - 1)
        different = m[plural] * (other @ m)
        zeros = np.zeros(same.shape)
        return kernel.Domains(
            mean_x=zeros,
            var_x=columns.combined(M, self._fourth),
            mean_y=zeros[:, 0][None],
            cov_xy=((same - different) / 2)[None],
            var_y=np.ones((1, len(plural))),
            columns=columns,
            n_rows=size[:, 0],
            copies=self.copies,
            units=self.units,
        )


class SampledPairs:
    """Moments of the products over pairs that are drawn, class by class."""

    def __init__(
        self,
        rows: list[np.ndarray],
        plural: np.ndarray,
        n_pairs: int,
        rng: np.random.RandomState,
        max_bytes: float,
    ):
        self._plural, self._max_bytes = plural, max_bytes
        self.copies, self.units = np.ones(len(plural)), np.arange(len(plural))
        products, targets, domains, partners = [], [], [], []
        for d, c in enumerate(plural):
            block = rows[c]
            one = rng.randint(len(block), size=n_pairs)
            other = (one + rng.randint(1, len(block), size=n_pairs)) % len(block)
            products.append(block[one] * block[other])
            mine = block[rng.randint(len(block), size=n_pairs)]
            classes = np.delete(np.arange(len(rows)), c)[rng.randint(len(rows) - 1, size=n_pairs)]
            theirs = np.empty_like(mine)
            for b in np.unique(classes):
                at = np.flatnonzero(classes == b)
                theirs[at] = rows[b][rng.randint(len(rows[b]), size=len(at))]
            products.append(mine * theirs)
            targets += [np.ones(n_pairs), -np.ones(n_pairs)]
            domains.append(np.full(2 * n_pairs, d))
            partners += [np.full(n_pairs, c), classes]
        self._products = np.concatenate(products)
        self._targets = np.concatenate(targets)
        self._domains, self._partners = np.concatenate(domains), np.concatenate(partners)

    def _weights(self, held: np.ndarray) -> np.ndarray:
        """Weight of each pair: 0 with a held-out partner, and both kinds count the same."""
        away = np.isin(self._partners, self._plural[held]) & (self._targets < 0)
        key = 2 * self._domains + (self._targets > 0)
        left = np.bincount(key[~away], minlength=int(key.max()) + 1)
        return np.where(away, 0.0, 1.0) / np.maximum(left, 1)[key]

    def plain_moments(self, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``E[s y | d]`` and ``E[s² | d]`` of ``s = x·x'``, each of shape (n_domains,)."""
        weight, plain = self._weights(held), self._products.sum(axis=1)
        total = np.bincount(self._domains, weight)
        effect = np.bincount(self._domains, weight * plain * self._targets) / total
        return effect, np.bincount(self._domains, weight * plain**2) / total

    def without(self, held: np.ndarray) -> kernel.Domains:
        """What a walk needs where these domains, by index, are in no other class's pairs."""
        weight = self._weights(held)
        used = weight > 0
        return domains_from_rows(
            self._products[used],
            self._targets[used, None],
            self._domains[used],
            weight[used],
            n_columns=self._products.shape[1],
            max_bytes=self._max_bytes,
        )


def plain_errors(pairs: AllPairs | SampledPairs) -> np.ndarray:
    """Squared error at each class of ``c x·x'``, c by least squares without the class.

    Shape (n_domains,). It is what a learned similarity has to beat.
    """
    n = len(pairs.copies)
    errors = np.empty(n)
    for held in range(n):
        effects, squares = pairs.plain_moments(np.array([held]))
        kept = np.arange(n) != held
        scale = effects[kept].sum() / max(squares[kept].sum(), np.finfo(float).tiny)
        errors[held] = 1 - 2 * scale * effects[held] + scale**2 * squares[held]
    return errors


def _beside_plain(errors: np.ndarray, plain: np.ndarray) -> str:
    """How the learned similarity compares with the plain product on held-out classes, in words."""
    gain = plain - errors
    margin = gain.std(ddof=1) / np.sqrt(len(gain))
    verdict = "level with"
    if abs(gain.mean()) > margin:
        verdict = "better than" if gain.mean() > 0 else "worse than"
    return (
        f"{verdict} the plain product x·x' on held-out classes "
        f"({errors.mean():.3g} against {plain.mean():.3g})"
    )


def _second_moments(
    rows: list[np.ndarray], size: np.ndarray, max_bytes: float
) -> StoredColumns | RowColumns:
    """Columns of ``E[x xᵀ]`` of each class, about zero; stored whole if they fit."""
    n, p, dtype = len(rows), rows[0].shape[1], rows[0].dtype
    if n * p**2 * dtype.itemsize <= max_bytes:
        matrices = np.empty((n, p, p), dtype)
        for block, matrix, n_rows in zip(rows, matrices, size, strict=True):
            scaled = block / np.sqrt(n_rows).astype(dtype)
            np.matmul(scaled.T, scaled, out=matrix)
        return StoredColumns(matrices)
    weights = [np.ones(len(block)) for block in rows]
    zeros = np.zeros((n, p))
    return RowColumns(rows, weights, zeros, zeros, p, max_bytes)
