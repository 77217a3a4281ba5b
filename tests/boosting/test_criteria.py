"""Equalized odds, equal opportunity and conditional parity of boosted trees."""

import lightgbm
import numpy as np
import pytest
import xgboost

from fairtransport.boosting import TransportBoostingClassifier, TransportObjective
from fairtransport.boosting._group_probabilities import estimate_group_probabilities
from fairtransport.boosting._libraries import library_of
from fairtransport.boosting._training_data import TrainingData
from fairtransport.criteria.criterion import resolve_criterion, weigh_by_reliability
from fairtransport.criteria.penalty import ContinuousPenalty, DiscretePenalty
from fairtransport.groups import make_groups
from fairtransport.strata import make_strata
from fairtransport.transport.line import wasserstein

LIGHT = lightgbm.LGBMClassifier(n_estimators=30, num_leaves=8, verbose=-1, n_jobs=1)
XG = xgboost.XGBClassifier(n_estimators=30, max_depth=3, n_jobs=1)
BOTH = pytest.mark.parametrize("trees", [LIGHT, XG], ids=["lightgbm", "xgboost"])
CRITERIA = ["equalized_odds", "equal_opportunity", "conditional", "conditional odds"]


def logistic(margins):
    return 1.0 / (1.0 + np.exp(-margins))


def make_rows(n=600, n_groups=3, seed=0):
    """Return margins that depend on group, label and stratum; one stratum has a single group."""
    rng = np.random.default_rng(seed)
    codes, labels = rng.integers(n_groups, size=n), (rng.random(n) < 0.4).astype(float)
    strata = np.where((codes == 0) & (rng.random(n) < 0.2), "alone", rng.choice(["s", "t"], n))
    return rng.normal(0.7 * codes - 1.0 + labels * (1 + 0.3 * codes), 1.2), labels, codes, strata, rng.random(n) + 0.5


def options_of(criterion, strata):
    words = {"conditional": "demographic_parity", "conditional odds": "equalized_odds"}
    return {
        "criterion": words.get(criterion, criterion),
        "strata": make_strata(strata) if criterion.startswith("conditional") else None,
    }


def resolved(options, codes, labels, weights=None):
    choice = options["criterion"]
    return resolve_criterion(
        choice, make_groups(codes), labels=labels, strata=options["strata"], row_weights=weights
    ).comparisons()


def advanced(criterion, rows, *, weighted=False, kind="continuous", **more):
    """Return an objective at full weight, with pairs of the weights of their strata."""
    margins, labels, codes, strata, weights = rows
    sample_weight = weights if weighted else None
    options = options_of(criterion, strata)
    pairs = resolved(options, codes, labels, sample_weight)
    objective = TransportObjective(
        codes,
        **options,
        unit=0.7,
        comparisons=pairs,
        parity_weight=1.3,
        distance=kind,
        ramp=1,
        **more,
        warmup=0,
        scale="score",
    )
    for _ in range(4):
        objective(labels, margins, sample_weight)
    return objective, pairs, sample_weight


# ------------------------------------------------------------------------------------------------------ the objective


@pytest.mark.parametrize("kind", ["continuous", "discrete"])
@pytest.mark.parametrize("smooth", [False, True], ids=["groups", "probabilities"])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_gradient_agrees_with_finite_differences(criterion, smooth, kind):
    rows = make_rows()
    margins, labels, *_ = rows
    n = len(margins)
    more = {"group_probabilities": np.random.default_rng(1).dirichlet(np.ones(3), n)} if smooth else {}
    objective, _, weights = advanced(criterion, rows, weighted=smooth, kind=kind, **more)
    terms = objective.value_and_gradient(margins, labels, sample_weight=weights)
    step = 1e-6
    inside = np.abs((logistic(margins) * 1024) % 1.0 - 0.5) < 0.49  # no step crosses an edge of a cell
    for row in np.flatnonzero(inside)[::53]:
        up, down = (
            objective.value_and_gradient(margins + sign * step * (np.arange(n) == row), labels, sample_weight=weights)
            for sign in (1, -1)
        )
        assert terms.gradient[row] == pytest.approx((up.value - down.value) / (2 * step), abs=2e-6)
    assert (terms.curvature > 0).all()


@pytest.mark.parametrize("kind", ["continuous", "discrete"])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_penalty_is_that_on_rows(criterion, kind):
    """Counting scores in 1,024 cells changes the penalty of the linear estimators by little."""
    rows = make_rows(6000)
    margins, labels, *_ = rows
    objective, pairs, _ = advanced(criterion, rows, kind=kind)
    terms, scores = objective.value_and_gradient(margins, labels), logistic(margins)
    penalty = DiscretePenalty(scale="score")
    if kind == "continuous":
        penalty = ContinuousPenalty(objective._distance.problem, scale="score")
    expected = penalty.value_and_gradient(scores, pairs)
    losses = np.logaddexp(0.0, margins) - labels * margins
    factor = 1.3 * 0.7 * len(scores)
    assert terms.value - losses.sum() == pytest.approx(factor * expected.value, rel=0.02)
    gradient, expected_gradient = terms.gradient - (scores - labels), factor * expected.gradient * scores * (1 - scores)
    assert np.abs(gradient - expected_gradient).sum() < 0.02 * np.abs(expected_gradient).sum()


@pytest.mark.parametrize("smooth", [False, True])
def test_rows_that_are_not_compared_have_no_penalty(smooth):
    rows = make_rows()
    margins, labels, _, strata, _ = rows
    more = {"group_probabilities": np.full((len(margins), 3), 1 / 3)} if smooth else {}
    for criterion, outside in (("equal_opportunity", labels == 0), ("conditional", strata == "alone")):
        objective, *_ = advanced(criterion, rows, **more)
        gradient, curvature = objective(labels, margins)
        scores = logistic(margins)
        np.testing.assert_allclose(gradient[outside], (scores - labels)[outside], atol=1e-6)
        np.testing.assert_allclose(curvature[outside], (scores * (1 - scores))[outside], atol=1e-6)
        if not smooth:  # with equal probabilities, all groups have the same distribution
            assert np.abs(gradient - scores + labels)[~outside].max() > 0.01


def test_a_target_is_resolved_in_each_stratum():
    """Towards the scores of group 0 among rows with the same label, its own gradient is that of the log-loss."""
    margins, labels, codes, *_ = make_rows(2000, n_groups=2)
    objective = TransportObjective(
        codes, criterion="equalized_odds", target=0, distance="discrete", scale="score", warmup=0, ramp=1
    )
    gradient, _ = objective(labels, margins)
    push = gradient - (logistic(margins) - labels)
    assert np.abs(push[codes == 0]).mean() < 0.1 * np.abs(push[codes == 1]).mean()


# ----------------------------------------------------------------------------------------------------- the classifier


def make_people(n=3000, seed=0):
    """Return rows whose scores differ by group, given the label and given the education (column 3)."""
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n)
    education = rng.integers(3, size=n) + (rng.random(n) < 0.5) * group
    X = np.column_stack((rng.normal(size=(n, 3)) + np.outer(group, [1.0, 0.0, 0.0]), education))
    y = (X @ [1.0, 1.5, 0.5, 0.7] + rng.logistic(size=n) > 1.2).astype(int)
    return X, y, group, education


def within(scores, group, strata):
    """Return the Wasserstein-1 distance of two groups within each stratum in which both have rows."""
    parts = [[scores[(strata == s) & (group == g)] for g in (0, 1)] for s in np.unique(strata)]
    return np.array([wasserstein(*pair) for pair in parts if min(map(len, pair))])


@BOTH
@pytest.mark.parametrize("criterion", ["equalized_odds", "equal_opportunity", "conditional"])
def test_each_criterion_reduces_its_own_differences_on_new_rows(trees, criterion):
    X, y, group, education = make_people()
    new_X, new_y, new_group, new_education = make_people(seed=1)
    strata = new_education if criterion == "conditional" else new_y
    options = {} if criterion == "conditional" else {"criterion": criterion}
    given = {"strata": education} if criterion == "conditional" else {}
    found = {}
    for weight in (0.0, 1.5):
        model = TransportBoostingClassifier(trees, parity_weight=weight, random_state=0, **options)
        model.fit(X, y, sensitive_features=group, **given)
        found[weight] = within(model.predict_proba(new_X)[:, 1], new_group, strata)
    judged = slice(1, None) if criterion == "equal_opportunity" else slice(None)
    assert found[1.5][judged].mean() < 0.5 * found[0.0][judged].mean()
    if criterion == "conditional":
        assert model.strata_.columns == ("stratum_0",)
        assert model.strata_.n_rows == 0
        assert model.outcome_ == "conditional parity (3 strata, 1 set aside): ran all 30 rounds"
    else:
        assert model.strata_ is None
        assert model.outcome_ == f"{criterion.replace('_', ' ')}: ran all 30 rounds"


@pytest.mark.models
@BOTH
def test_early_stopping_is_on_the_distances_within_labels(trees):
    X, y, group, education = make_people(1500)
    new = make_people(1500, seed=1)
    model = TransportBoostingClassifier(
        trees, criterion="equalized_odds", parity_weight=0.5, scale="score", random_state=0
    )
    model.fit(X, y, sensitive_features=group, eval_set=new[:3])
    # The labels count by how reliably the plain model's differences can be told from chance.
    comparisons = TrainingData(new[0], new[1], make_groups(new[2])).compare("equalized_odds").comparisons(None)
    weights = weigh_by_reliability(comparisons, model.initial_estimator_.predict_proba(new[0])[:, 1]).weights
    last = weights @ within(model.predict_proba(new[0])[:, 1], new[2], new[1])
    assert model.history_["disparity"][-1] == pytest.approx(last, rel=5e-3)  # 256 slices
    model.set_params(criterion="demographic_parity", target="barycenter")
    model.fit(X, y, sensitive_features=group, strata=education, eval_set=new)
    assert np.isfinite(model.history_["disparity"]).all()
    model.set_params(n_iter_no_change=2).fit(X, y, sensitive_features=group, strata=education)
    assert len(model.history_["loss"]) > 0


@pytest.mark.parametrize("trees", [LIGHT, XG], ids=["lightgbm", "xgboost"])
def test_probabilities_are_given_the_label(trees):
    """Within each label two normal groups, in one label one unit apart, in the other none."""
    rng = np.random.default_rng(0)
    codes, labels = rng.integers(2, size=6000), rng.integers(2, size=6000)
    X = rng.normal(size=(6000, 2)) + np.outer(codes * labels, [1.0, 0.0])
    rows = TrainingData(X, labels, make_groups(codes))
    probabilities = estimate_group_probabilities(
        library_of(trees, "classification"), trees, rows, rows.compare("equalized_odds"), 0
    )
    truth = np.where(labels == 1, logistic(X[:, 0] - 0.5), 0.5)
    assert np.abs(probabilities[:, 1] - truth).mean() < 0.085
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-5)
    for label in (0, 1):
        expected = np.bincount(codes[labels == label])
        np.testing.assert_allclose(probabilities[labels == label].sum(axis=0), expected, rtol=1e-3)


# ----------------------------------------------------------------------------------------------------- invalid input
