"""How rule, weighting, centre and length are chosen, and what is said about a new domain."""

import numpy as np
import pytest
from scipy import stats

from holdtrue import (
    Moments,
    SelectionPath,
    SteadyRidgeRegressor,
    TGreedyClassifier,
    TGreedyRegressor,
    TGreedySelector,
)
from holdtrue.datasets import make_domains
from holdtrue.domains import bounds, choose, kernel
from holdtrue.domains.covariances import domains_from_moments
from holdtrue.evidence import DomainEvidence

quiet = pytest.mark.filterwarnings("ignore:.*exceeds that of the empty selection")


@pytest.fixture(scope="module")
def data():
    return make_domains(n_domains=8, n_samples=60, n_features=15, random_state=3)


def shifted(seed=0, shift=5.0):
    """A steady effect of .1 under differences between domains that are 50 times as large."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 10))
    groups = np.repeat(np.arange(6), 100)
    noise = 0.1 * rng.normal(size=600)
    return X, 100 + shift * rng.normal(size=6)[groups] + 0.1 * X[:, 0] + noise, groups


# --- the interval of one new domain -------------------------------------------------------------


def test_the_interval_of_one_new_domain_by_hand():
    # log errors 0, 1, 2: mean 1, sd 1; t_2(.975) = 4.303; sqrt(1 + 1/3) = 1.1547.
    low, high = bounds.new_domain_interval(np.exp([0.0, 1, 2]), 0.95, 1e-9)
    half = stats.t.ppf(0.975, 2) * np.sqrt(4 / 3)
    assert (low, high) == (pytest.approx(np.exp(1 - half)), pytest.approx(np.exp(1 + half)))
    low, high = bounds.new_domain_interval(np.array([-1.0, 0, 1]), 0.95, None)
    assert (low, high) == (pytest.approx(-half), pytest.approx(half))
    assert bounds.new_domain_interval(np.zeros(3), 0.95, 0.0) == (0.0, 0.0)
    assert bounds.new_domain_interval(np.array([0.0, 1.0]), 0.95, 1e-300)[1] == np.inf
    # Of the mean: 1 ± 4.303 · 1/sqrt(3), cut at 0.
    assert bounds.mean_interval(np.array([0.0, 1, 2]), 0.95) == (
        0.0,
        pytest.approx(1 + stats.t.ppf(0.975, 2) / np.sqrt(3)),
    )


def test_the_interval_holds_one_new_domain_as_often_as_it_says():
    rng = np.random.default_rng(0)
    held = []
    for _ in range(2000):
        *errors, new = np.exp(rng.normal(size=7) + 2)
        low, high = bounds.new_domain_interval(np.array(errors), 0.9, 0.0)
        held.append(low <= new <= high)
    assert np.mean(held) == pytest.approx(0.9, abs=0.03)


def test_the_interval_of_one_domain_is_wider_than_that_of_the_mean(data):
    model = TGreedyRegressor(max_steps=8).fit(data.X, data.y, groups=data.groups)
    (low, high), (mean_low, mean_high) = model.new_domain_interval_, model.mean_interval_
    assert low < model.new_domain_score_ < high
    assert mean_low < model.new_domain_score_ < mean_high < high


# --- effects within domains ---------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*exceeds that of the empty selection")
@pytest.mark.parametrize("seed", range(6))
def test_a_steady_feature_is_found_under_large_differences_between_domains(seed):
    X, y, groups = shifted(seed)
    model = TGreedyRegressor().fit(X, y, groups=groups)
    assert model.center_ == "domain"
    assert model.support_[0]
    assert model.steady_[0]
    assert model.coef_[0] == pytest.approx(0.1, abs=0.02)
    assert "effects within domains" in model.path_.reason
    assert not TGreedyRegressor(center="global").fit(X, y, groups=groups).steady_.any()


def two_domains(seed, n=100, shift=50.0, effect=0.0):
    """Two domains whose means of y are far apart; x_0 has the same effect in both."""
    rng = np.random.default_rng(seed)
    groups = np.repeat([0, 1], n)
    X = rng.normal(size=(2 * n, 4))
    return X, shift * groups + effect * X[:, 0] + rng.normal(size=2 * n), groups


@pytest.mark.filterwarnings("ignore:.*of 2 domains none")
def test_what_the_means_of_two_domains_say_is_no_steady_effect():
    n_steady = 0
    for seed in range(20):
        X, y, groups = two_domains(seed)
        model = TGreedyRegressor().fit(X, y, groups=groups)
        assert model.center_ == "domain"
        n_steady += model.steady_.any()
        with pytest.warns(UserWarning, match="no feature is called steady. Pass center='domain'"):
            whole = TGreedyRegressor(center="global").fit(X, y, groups=groups)
        assert not whole.steady_.any()
        by_steps = TGreedyRegressor(stop="max_steps", max_steps=2).fit(X, y, groups=groups)
        assert not by_steps.steady_.any()
    assert n_steady <= 3
    X, y, groups = two_domains(0, n=5000, effect=5.0)
    assert TGreedyRegressor().fit(X, y, groups=groups).steady_[0]
    alike = TGreedyRegressor().fit(X, y - 50 * groups, groups=groups)
    assert alike.center_ == "global"
    assert alike.steady_[0]


@pytest.mark.filterwarnings("ignore:.*of 2 domains none", "ignore:.*single row")
def test_two_domains_of_one_row_have_no_steady_effect():
    X, y, groups = two_domains(0, n=1)
    model = TGreedyRegressor().fit(X, y, groups=groups)
    assert not model.steady_.any()
    assert not model.support_.any()
    assert not TGreedySelector().fit(X, y).steady_.any()  # nor two rows without groups


@quiet
def test_centres_are_not_compared_where_means_are_alike():
    X, y, groups = shifted(shift=0.0)
    model = TGreedyRegressor().fit(X, y, groups=groups)
    assert model.center_ == "global"
    assert model.support_[0]


@pytest.mark.filterwarnings("ignore:.*single row")
@pytest.mark.parametrize("n_pairs", [0, 1])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_does_not_choose_the_centre_of_domains_of_one_row(n_pairs, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).astype(dtype)
    y = (2 * X[:, 0] + rng.normal(size=60)).astype(dtype)
    groups = np.maximum(np.arange(60) - n_pairs, 0)
    model = TGreedyRegressor().fit(X, y, groups=groups)
    assert model.center_ == "global"
    assert model.coef_[0] == pytest.approx(2, abs=0.3)
    whole = TGreedyRegressor(center="global").fit(X, y, groups=groups)
    assert model.new_domain_score_ == whole.new_domain_score_


@pytest.mark.filterwarnings("ignore:.*single row")
def test_rounding_does_not_choose_the_centre_where_a_prediction_is_perfect():
    rng = np.random.default_rng(0)
    X = np.hstack([np.eye(4)[rng.integers(0, 4, 60)], rng.normal(size=(60, 4))])
    model = TGreedyRegressor().fit(X, X[:, 1] + X[:, 3], groups=np.arange(60))
    assert model.center_ == "global"
    assert model.new_domain_score_ < 1e-9
    groups = np.repeat(np.arange(8), 20)
    for _ in range(12):
        x = rng.random(160) < np.linspace(0.1, 0.9, 8)[groups]
        X = np.column_stack([x, rng.normal(size=160), groups % 2])
        assert TGreedyRegressor().fit(X, x, groups=groups).center_ == "global"


@pytest.mark.parametrize("n_domains", range(4, 12))
def test_a_gain_in_one_domain_alone_is_one_standard_error_and_no_more(n_domains):
    share = np.full(n_domains, 1 / n_domains)
    errors = np.linspace(1, 2, n_domains)
    for d in range(n_domains):
        less = errors - 0.17 * (np.arange(n_domains) == d)
        variants = (choose.Variant("t", "equal", center) for center in choose.CENTERS)
        whole, within = (
            choose._Choice(variant, None, of, of)
            for variant, of in zip(variants, (errors, less), strict=True)
        )
        assert not choose._within_is_better(whole, within, share, 2.0)
        # By as much as the other size is worse there, the smaller one is near enough.
        losses = np.array([errors, less])
        assert choose._least(losses, share, n_domains) == 0
        assert choose._least(losses, share, None) == 1
    assert choose._least(np.array([errors, errors * (1 - 1e-15)]), share, None) == 0


def test_weightings_that_are_the_same_are_not_told_apart_by_rounding():
    rng = np.random.default_rng(51)  # 49 rows everywhere: weights of 1 and of 1 - 1e-16
    X, groups = rng.normal(size=(294, 2)), np.repeat(np.arange(6), 49)
    y = X[:, 0] + rng.normal(size=294)
    model = TGreedyRegressor(domain_weight="auto", center="global", max_steps=3)
    assert model.fit(X, y, groups=groups).domain_weight_ == "equal"


@quiet
def test_effects_within_domains_do_not_see_the_domains_means():
    X, y, groups = shifted()
    one = TGreedyRegressor(center="domain").fit(X, y, groups=groups)
    moved = y + 1000.0 * groups
    other = TGreedyRegressor(center="domain").fit(X, moved, groups=groups)
    np.testing.assert_array_equal(one.path_.order, other.path_.order)
    np.testing.assert_allclose(one.domain_effects_, other.domain_effects_)
    np.testing.assert_allclose(one.coef_, other.coef_)


@quiet
@pytest.mark.parametrize("center", ["global", "domain"])
@pytest.mark.parametrize("stepwise", [True, False])
def test_errors_whole_and_within_are_those_of_predictions(center, stepwise):
    X, y, groups = shifted()
    X = X + np.random.default_rng(1).normal(size=(6, 10))[groups]
    sums = domains_from_moments(Moments.from_arrays(X, y, groups=groups))
    held = np.array([2])
    weight = kernel.domain_weights(sums, "equal", held)
    walk = kernel.Walk(sums, weight, rule="t", center=center, stepwise=stepwise)
    for _ in range(5):
        walk.step()
    w = walk.coefficients(5)[0]
    residual = y - X @ w - (walk.center_y - w @ walk.center_x)
    whole = [np.mean(residual[groups == d] ** 2) for d in range(6)]
    np.testing.assert_allclose(walk.errors()[5], whole, rtol=1e-8)
    within = [residual[groups == d].var() for d in range(6)]
    np.testing.assert_allclose(walk.errors_within()[5], within, rtol=1e-6)


@quiet
def test_the_length_is_chosen_by_the_error_about_the_held_out_domains_mean():
    X, y, groups = shifted(1)
    model = TGreedyRegressor(center="domain", max_steps=6).fit(X, y, groups=groups)
    errors = []
    for d in range(6):
        kept = groups != d
        alone = TGreedyRegressor(center="domain", stop="max_steps", max_steps=6)
        alone.fit(X[kept], y[kept], groups=groups[kept])
        errors.append(np.mean((y - alone.predict(X))[~kept] ** 2))
    np.testing.assert_allclose(model.held_out_scores_[6], errors)
    evidence = model.path_.evidence
    assert model.path_.chosen_size == evidence.held_out_within.mean(axis=1).argmin()
    assert "about the mean of each held-out domain is least at" in model.path_.reason


# --- domains that count by their rows -----------------------------------------------------------


def test_weights_by_rows_are_those_of_the_weighted_mean_by_hand():
    # Rows 3 and 1: weights in proportion, with sum = sum of squares: (3, 1)·4/10.
    X = np.array([[1.0], [-1.0], [0.0], [2.0]])
    sums = domains_from_moments(Moments.from_arrays(X, X[:, 0], groups=[0, 0, 0, 1]))
    weight = kernel.domain_weights(sums, "rows", np.empty(0, int))
    np.testing.assert_allclose(weight, [1.2, 0.4])
    g = np.array([[5.0], [1.0]])
    mu, s2 = kernel.effects(g, weight)
    assert mu[0] == pytest.approx(4)  # (3·5 + 1·1)/4
    # Reliability weights: Σ w (g - mu)² / (Σ w - Σ w²/Σ w) = (3·1 + 1·9)/(4 - 10/4) = 8.
    assert s2[0] == pytest.approx(8)


def test_equal_domains_are_weighed_alike_either_way(data):
    one, other = (
        TGreedyRegressor(domain_weight=weight, max_steps=6).fit(data.X, data.y, groups=data.groups)
        for weight in ("equal", "rows")
    )
    assert one.path_.order.tolist() == other.path_.order.tolist()
    np.testing.assert_allclose(one.coef_, other.coef_)
    np.testing.assert_allclose(one.t_statistics_, other.t_statistics_)


@quiet
def test_by_rows_the_fit_is_that_of_pooled_rows():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(5), [10, 200, 40, 80, 20])
    X = rng.normal(size=(350, 3)) + rng.normal(size=(5, 3))[groups]
    y = X @ [1.0, 2, 0] + rng.normal(size=350)
    model = TGreedyRegressor(
        "greedy", stop="max_steps", max_steps=3, stepwise=True, domain_weight="rows"
    ).fit(X, y, groups=groups)
    design = np.column_stack([np.ones(350), X])
    pooled = np.linalg.lstsq(design, y)[0]
    np.testing.assert_allclose([model.intercept_, *model.coef_], pooled)


@quiet
def test_the_weighting_with_the_least_held_out_error_is_taken():
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(12), rng.integers(3, 200, size=12))
    X = rng.normal(size=(len(groups), 6))
    y = X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=len(groups))
    best = {
        weight: TGreedyRegressor(domain_weight=weight, max_steps=6)
        .fit(X, y, groups=groups)
        .path_.scores.min()
        for weight in ("equal", "rows")
    }
    model = TGreedyRegressor(domain_weight="auto", max_steps=6).fit(X, y, groups=groups)
    assert model.domain_weight_ == min(best, key=best.get)
    assert f"domain_weight {model.domain_weight_!r} has the least error" in model.path_.reason


def test_flips_of_weighted_domains_are_those_of_enumeration():
    rng = np.random.default_rng(0)
    g, weight = rng.normal(size=(1, 6, 3)) + 0.5, np.array([2.0, 1, 1, 0.5, 0.5, 1])
    signs = kernel.sign_patterns(6, 0, np.random.RandomState(0))
    strongest = []
    for pattern in signs:
        mu, s2 = kernel.effects(pattern[:, None] * g[0], weight)
        strongest.append(np.abs(kernel.t_statistic(mu, s2, weight.sum())).max())
    expected = np.mean(np.array(strongest) >= strongest[0] * (1 - 1e-9))
    floor = np.full((1, 3), 1e-300)
    assert kernel.sign_flip_p_value(g, weight, np.ones(3), floor, "t", signs) == expected


# --- used for prediction, and steady beyond chance ----------------------------------------------


def test_what_is_steady_is_told_from_what_is_used(data):
    model = TGreedyRegressor(max_steps=30).fit(data.X, data.y, groups=data.groups)
    test = TGreedyRegressor(stop="bonferroni").fit(data.X, data.y, groups=data.groups)
    np.testing.assert_array_equal(model.steady_, test.support_)
    np.testing.assert_array_equal(model.steady_, test.steady_)
    long = TGreedyRegressor(stop="max_steps", max_steps=30).fit(data.X, data.y, groups=data.groups)
    assert long.support_.sum() > long.steady_.sum()
    fixed = TGreedyRegressor(fixed_features=[9]).fit(data.X, data.y, groups=data.groups)
    assert fixed.support_[9]
    assert not fixed.steady_[9]


def test_flips_are_drawn_from_the_random_state():
    data = make_domains(20, 30, n_features=8, random_state=0)
    fits = [
        TGreedySelector(stop="sign_flip", random_state=seed).fit(data.X, data.y, groups=data.groups)
        for seed in (0, 0, 1)
    ]
    assert fits[0].path_ == fits[1].path_
    assert set(data.steady) <= set(fits[2].path_.chosen)


# --- evidence -----------------------------------------------------------------------------------


def test_evidence_has_what_the_attributes_have_and_survives_json(data):
    y = np.digitize(data.y, [-2, 2])
    model = TGreedyClassifier(max_steps=6).fit(data.X, y, groups=data.groups)
    evidence = model.path_.evidence
    assert isinstance(evidence, DomainEvidence)
    assert evidence.targets == ("0", "1", "2")
    assert evidence.domains == tuple("01234567")
    np.testing.assert_array_equal(evidence.effects, model.domain_effects_)
    np.testing.assert_array_equal(evidence.t_scores, model.t_scores_)
    np.testing.assert_array_equal(evidence.held_out, model.held_out_scores_)
    np.testing.assert_array_equal(evidence.n_rows, np.full(8, 60))
    assert (evidence.new_domain_low, evidence.new_domain_high) == model.new_domain_interval_
    assert SelectionPath.from_json(model.path_.to_json()) == model.path_
    two = TGreedyClassifier(max_steps=3).fit(data.X, y > 1, groups=data.groups)
    assert two.path_.evidence.targets == ("True",)
    rows = TGreedyRegressor().fit(data.X, data.y).path_
    assert rows.evidence.domains == ()
    assert SelectionPath.from_json(rows.to_json()) == rows


def test_an_effect_that_is_rounding_error_has_no_sign():
    one = np.eye(6)[np.arange(24 * 6) % 6]  # every domain has each of six samples once
    y = np.where((np.arange(24 * 6) // 6 < 4) & (one[:, 0] > 0), "odd", "even")
    model = TGreedyClassifier(center="global", stop="bonferroni")
    with pytest.warns(UserWarning, match="20 of 24 domains lack a class"):
        model.fit(one, y, groups=np.repeat(np.arange(24), 6))
    assert (model.domain_effects_[:, :4] != 0).all()
    np.testing.assert_array_equal(model.domain_effects_[:, 4:], 0.0)
    np.testing.assert_array_equal(model.path_.evidence.effects_within[..., 4:], 0.0)


# --- targets ------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_the_selector_reads_targets_by_the_common_rule(data):
    y = np.where(data.y > 0, 1, 0)
    as_classes = TGreedyClassifier().fit(data.X, y, groups=data.groups)
    selector = TGreedySelector().fit(data.X, y, groups=data.groups)
    assert selector.classes_.tolist() == [0, 1]
    np.testing.assert_array_equal(selector.path_.order, as_classes.path_.order)
    grades = np.clip(np.rint(data.y), -2, 2) + 3
    assert TGreedySelector().fit(data.X, grades, groups=data.groups).classes_.tolist() == [
        1, 2, 3, 4, 5,
    ]  # fmt: skip
    number = TGreedySelector(target_type="numeric").fit(data.X, grades, groups=data.groups)
    assert not hasattr(number, "classes_")
    with pytest.raises(ValueError, match=r"at most 100 classes\. Got 480"):
        TGreedySelector().fit(data.X, np.arange(480).astype(str), groups=data.groups)
    with pytest.raises(ValueError, match=r"at most 100 classes\. Got 480"):
        TGreedyClassifier().fit(data.X, np.arange(480).astype(str), groups=data.groups)


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters, groups, message",
    [
        ({"domain_weight": "row"}, True, "domain_weight must be one of.*Did you mean 'rows'"),
        ({"center": "global_"}, True, "center must be one of.*Did you mean 'global'"),
        ({"center": "domain", "fit_intercept": False}, True, "center='domain' needs an intercept"),
        ({"center": "domain"}, False, "center='domain' takes effects from within domains"),
    ],
)
def test_bad_parameters_are_refused(parameters, groups, message, data):
    given = data.groups if groups else None
    with pytest.raises(ValueError, match="^TGreedyRegressor: " + message):
        TGreedyRegressor(**parameters).fit(data.X, data.y, groups=given)


def test_weighting_cannot_be_chosen_by_two_domains(data):
    two = data.groups < 2
    with pytest.raises(ValueError, match="domain_weight='auto' needs at least 3 domains"):
        TGreedyRegressor(domain_weight="auto").fit(
            data.X[two], data.y[two], groups=data.groups[two]
        )


@pytest.mark.parametrize(
    "errors, told",
    [
        ([1.0, 1e-15, 0.0, 1e-14], "the error at 3 of 4 left-out domains is 0 but for rounding"),
        ([0.3, 0.3, 0.3 * (1 + 1e-15)], "errors at the 3 left-out domains are equal, so that"),
        ([0.3, 0.31, 0.4], None),
        ([1e-15, 1e-14, 0.0], None),  # perfect everywhere, and the interval says so
        ([0.0, 0.0, 0.0], None),
    ],
)
def test_an_interval_that_tells_nothing_says_so(errors, told):
    notes = bounds.interval_notes(np.array(errors), 1.0)
    assert len(notes) == (told is not None)
    assert all(told in note and note.endswith("tells nothing.") for note in notes)


@pytest.mark.filterwarnings("ignore:.*exceeds that of")
@pytest.mark.parametrize("model", [TGreedyRegressor(max_steps=3), SteadyRidgeRegressor()])
def test_errors_of_0_at_some_domains_make_an_interval_that_tells_nothing(model):
    groups = np.repeat(np.arange(6), 10)
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.where(groups == 0, X[:, 0] - X[:10, 0].mean(), 0.0)  # 0 everywhere but at one domain
    with pytest.warns(UserWarning, match="is 0 but for rounding, so that the interval for one"):
        model.fit(X, y, groups=groups)
