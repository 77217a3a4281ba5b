import pickle

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.base import clone

from fairtransport import GroupPolicy
from fairtransport.boosting import TransportObjective
from fairtransport.criteria.criterion import demographic_parity
from fairtransport.criteria.penalty import ContinuousPenalty, DiscretePenalty
from fairtransport.groups import make_groups
from fairtransport.metrics import strong_pairwise_disparity

QUIET = {"verbose": -1, "num_threads": 1, "num_leaves": 8}
KINDS = ["continuous", "discrete"]


def logistic(margins):
    return 1.0 / (1.0 + np.exp(-margins))


def make_rows(n=400, n_groups=3, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_groups, size=n)
    return rng.normal(0.7 * codes - 1.0, 1.2), (rng.random(n) < 0.4).astype(float), codes, rng.random(n) + 0.5


def with_unit(sensitive, unit, *, target=None, **options):
    """Return an objective with a fixed unit and fixed pairs, so that nothing is measured."""
    pairs = demographic_parity(
        make_groups(sensitive, groups=options.get("groups")),
        target=target,
    )
    defaults = {"parity_weight": 1.0, "warmup": 0, "scale": "score"}
    return TransportObjective(sensitive, unit=unit, comparisons=pairs, **{**defaults, **options})


def advanced(objective, margins, labels, weights, rounds=4):
    """Return the objective after a few rounds at these margins, at full weight."""
    for _ in range(rounds):
        objective(labels, margins, weights)
    return objective


# ------------------------------------------------------------------------------------------------------- mathematics


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "case",
    ["plain", "weights", "probabilities", "probabilities, weights", "overlapping", "target", "low", "standardized"],
)
def test_gradient_agrees_with_finite_differences(kind, case):
    margins, labels, codes, weights = make_rows()
    sample_weight = weights if "weights" in case else None
    options = {"unit": 0.7, "ramp": 1, "parity_weight": 1.3, "distance": kind}
    if "probabilities" in case:
        options["group_probabilities"] = np.random.default_rng(1).dirichlet(np.ones(3), len(margins))
    if case == "target":
        options["target"] = np.random.default_rng(1).beta(2, 3, 500)
    sensitive = codes
    if case == "overlapping":
        sensitive, options["groups"] = np.column_stack((codes, codes % 2)), GroupPolicy(crossed=False)
    if case == "standardized":
        options["scale"] = "standardized"
    if case == "low":
        margins = margins - 5.0  # scores near zero
    objective = advanced(with_unit(sensitive, **options), margins, labels, sample_weight)
    assert objective.parity_ == pytest.approx(1.3 * 0.7)
    terms = objective.value_and_gradient(margins, labels, sample_weight=sample_weight)
    step = 1e-6
    inside = np.abs((logistic(margins) * 1024) % 1.0 - 0.5) < 0.49  # no step crosses an edge of a cell
    for row in np.flatnonzero(inside)[::29]:
        up, down = (
            objective.value_and_gradient(
                margins + sign * step * (np.arange(400) == row), labels, sample_weight=sample_weight
            ).value
            for sign in (1, -1)
        )
        assert terms.gradient[row] == pytest.approx((up - down) / (2 * step), abs=1e-6)
    assert (terms.curvature > 0).all()


def test_the_penalty_is_the_pairwise_disparity():
    """Distances below the Huber width of the discrete penalty count a little less."""
    margins, labels, codes, _ = make_rows(n=60_000)
    objective = advanced(with_unit(codes, 1.0, ramp=1, distance="discrete"), margins, labels, None)
    losses = np.logaddexp(0.0, margins) - labels * margins
    penalty = (objective.value_and_gradient(margins, labels).value - losses.sum()) / len(margins)
    disparity = strong_pairwise_disparity(logistic(margins), sensitive_features=codes)
    assert disparity - 3 * 0.0125 / 2 <= penalty <= disparity  # three pairs, half of the width each at most


@pytest.mark.parametrize("to", ["each other", "target"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_is_that_of_the_penalty_on_rows(kind, to):
    """Counting scores in 1,024 cells changes the penalty of the linear estimators by little."""
    margins, labels, codes, _ = make_rows(n=4000)
    target = np.random.default_rng(1).beta(2, 3, 500) if to == "target" else None
    objective = advanced(with_unit(codes, 1.0, target=target, ramp=1, distance=kind), margins, labels, None)
    scores, terms = logistic(margins), objective.value_and_gradient(margins, labels)
    if kind == "discrete":
        penalty = DiscretePenalty(scale="score")
    else:
        penalty = ContinuousPenalty(objective._distance.problem, scale="score")
    expected = penalty.value_and_gradient(scores, demographic_parity(make_groups(codes), target=target))
    losses = np.logaddexp(0.0, margins) - labels * margins
    assert terms.value - losses.sum() == pytest.approx(len(scores) * expected.value, rel=0.01)
    penalty_gradient = terms.gradient - (scores - labels)
    expected_gradient = len(scores) * expected.gradient * scores * (1 - scores)
    # Single rows differ, at scores where the slope jumps.
    assert np.abs(penalty_gradient - expected_gradient).sum() < 0.01 * np.abs(expected_gradient).sum()
    assert np.corrcoef(penalty_gradient, expected_gradient)[0, 1] > 0.999


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_of_two_equals_two_copies(kind):
    margins, labels, codes, _ = make_rows()
    double = np.arange(400) % 3 == 0
    rows = np.r_[np.arange(400), np.flatnonzero(double)]
    options = {"unit": 0.5, "ramp": 1, "distance": kind}
    once = advanced(with_unit(codes, **options), margins, labels, 1.0 + double)
    twice = advanced(with_unit(codes[rows], **options), margins[rows], labels[rows], None)
    by_weight = once.value_and_gradient(margins, labels, sample_weight=1.0 + double)
    by_copies = twice.value_and_gradient(margins[rows], labels[rows])
    assert by_weight.value == pytest.approx(by_copies.value, rel=1e-9)
    np.testing.assert_allclose(by_weight.gradient[~double], by_copies.gradient[:400][~double], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(by_weight.gradient[double], 2 * by_copies.gradient[400:], rtol=1e-6, atol=1e-9)


def test_probabilities_of_one_and_zero_equal_groups():
    margins, labels, codes, _ = make_rows()
    plain = advanced(with_unit(codes, 0.5, ramp=1), margins, labels, None)
    shared = advanced(with_unit(codes, 0.5, ramp=1, group_probabilities=np.eye(3)[codes]), margins, labels, None)
    for one, other in zip(plain(labels, margins), shared(labels, margins), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


# ------------------------------------------------------------------------------------------------------------ rounds


@pytest.mark.parametrize(("kind", "power"), [("continuous", 1), ("discrete", 2)])
def test_weight_increases_along_the_ramp_after_the_warmup(kind, power):
    margins, labels, codes, _ = make_rows()
    objective = TransportObjective(codes, parity_weight=2.0, distance=kind, warmup=3, ramp=4)
    weights = []
    for _ in range(9):
        objective(labels, margins)
        weights.append(objective.parity_)
    unit = objective.unit_
    assert unit > 0
    np.testing.assert_allclose(weights, 2.0 * unit * np.r_[0, 0, 0, 0.25, 0.5, 0.75, 1, 1, 1] ** power)


@pytest.mark.parametrize("kind", KINDS)
def test_value_and_gradient_does_not_advance_a_round(kind):
    margins, labels, codes, _ = make_rows()
    evaluated, reference = with_unit(codes, 0.5, distance=kind), with_unit(codes, 0.5, distance=kind)
    for number in range(1, 5):
        expected = reference(labels, margins)
        for one, other in zip(evaluated(labels, margins), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)
        evaluated.value_and_gradient(0.5 * margins, labels)
        assert evaluated.round_ == number


def test_a_new_training_resets_the_objective():
    margins, labels, codes, _ = make_rows()
    objective = TransportObjective(codes, warmup=1, ramp=2)
    first = [objective(labels, m) for m in (np.zeros(400), margins, margins)]
    assert objective.round_ == 3
    second = [objective(labels, m) for m in (np.zeros(400), margins, margins)]
    assert objective.round_ == 3
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    objective.reset()
    assert (objective.round_, objective.parity_) == (0, 0.0)


def test_the_first_rounds_minimise_the_log_loss():
    margins, labels, codes, weights = make_rows()
    gradient, curvature = TransportObjective(codes)(labels, margins, weights)
    scores = logistic(margins)
    np.testing.assert_allclose(gradient, weights * (scores - labels), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(curvature, weights * scores * (1 - scores), rtol=1e-5, atol=1e-7)


# --------------------------------------------------------------------------------------------------------- libraries


def disparity(margins, data):
    return strong_pairwise_disparity(logistic(np.asarray(margins, dtype=float)), sensitive_features=data.group)


@pytest.mark.parametrize("kind", KINDS)
def test_lightgbm_both_interfaces(data, kind):
    objective = TransportObjective(data.group, distance=kind, warmup=5, ramp=15)
    trained = lightgbm.train({"objective": objective, **QUIET}, lightgbm.Dataset(data.X, data.y), 40)
    native = trained.predict(data.X, raw_score=True)
    model = lightgbm.LGBMClassifier(objective=objective, n_estimators=40, num_leaves=8, verbose=-1, n_jobs=1)
    fitted = clone(model).fit(data.X, data.y)
    np.testing.assert_allclose(fitted.predict(data.X, raw_score=True), native)
    assert objective.round_ == 0  # LightGBM trains with a copy
    plain = lightgbm.train({"objective": "binary", **QUIET}, lightgbm.Dataset(data.X, data.y), 40)
    assert disparity(native, data) < 0.5 * disparity(plain.predict(data.X, raw_score=True), data)


@pytest.mark.parametrize("kind", KINDS)
def test_xgboost_both_interfaces(data, kind):
    objective = TransportObjective(data.group, distance=kind, warmup=5, ramp=15)
    matrix = xgboost.DMatrix(data.X, data.y)
    settings = {"max_depth": 3, "nthread": 1, "base_score": 0.5, "objective": "binary:logistic"}
    native = xgboost.train(settings, matrix, 40, obj=objective).predict(matrix, output_margin=True)
    assert objective.round_ == 40
    model = xgboost.XGBClassifier(objective=objective, n_estimators=40, max_depth=3, n_jobs=1, base_score=0.5)
    fitted = clone(model).fit(data.X, data.y)
    np.testing.assert_allclose(fitted.predict(data.X, output_margin=True), native, rtol=1e-5, atol=1e-6)
    plain = xgboost.train(settings, matrix, 40)
    assert disparity(native, data) < 0.5 * disparity(plain.predict(matrix, output_margin=True), data)


def test_weights_of_the_training_set_are_used(data):
    weights = np.where(data.y == 1, 3.0, 1.0)
    for second in (
        lightgbm.Dataset(data.X, data.y, weight=weights).construct(),
        xgboost.DMatrix(data.X, data.y, weight=weights),
    ):
        objective = TransportObjective(data.group)
        gradient, _ = objective(np.zeros(data.n), second)
        np.testing.assert_allclose(gradient, weights * (0.5 - data.y), rtol=1e-6)
    model = lightgbm.LGBMClassifier(objective=TransportObjective(data.group), n_estimators=3, verbose=-1, n_jobs=1)
    light = model.fit(data.X, data.y).predict(data.X, raw_score=True)
    heavy = clone(model).fit(data.X, data.y, sample_weight=weights).predict(data.X, raw_score=True)
    assert heavy.mean() > light.mean()


def test_without_parity_it_equals_the_builtin_objective(data):
    objective = TransportObjective(data.group, parity_weight=0.0)
    builtin = {"objective": "binary", "boost_from_average": False, **QUIET}
    margins = [
        lightgbm.train(settings, lightgbm.Dataset(data.X, data.y), 20).predict(data.X, raw_score=True)
        for settings in ({"objective": objective, **QUIET}, builtin)
    ]
    np.testing.assert_allclose(*margins, atol=1e-4)


def test_it_can_be_pickled():
    margins, labels, codes, _ = make_rows()
    objective = advanced(with_unit(codes, 0.5), margins, labels, None)
    again = pickle.loads(pickle.dumps(objective))  # noqa: S301
    for one, other in zip(objective(labels, margins), again(labels, margins), strict=True):
        np.testing.assert_array_equal(one, other)


# ----------------------------------------------------------------------------------------------------- invalid input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parity_weight": -1.0}, "parity_weight must be a finite number at least 0"),
        ({"parity_weight": np.inf}, "parity_weight must be a finite number"),
        ({"distance": "both"}, "distance must be 'continuous', 'discrete'"),
        ({"target": "middle"}, "target must be one of"),
        ({"ramp": -1}, "ramp must be at least 0"),
        ({"group_probabilities": np.ones((5, 2))}, r"group_probabilities must have shape \(400, 3\)"),
        ({"group_probabilities": np.full((400, 3), 2.0)}, "must be numbers from 0 to 1"),
        ({"group_probabilities": np.eye(3)[np.zeros(400, int)]}, "a group with probability 0 in all rows"),
        ({"criterion": "odds"}, "criterion must be one of"),
        ({"strata": np.arange(399) % 2}, "strata has 399 rows"),
        ({"strata": make_rows()[2]}, "no stratum has rows of two groups"),
        ({"sensitive_features": None}, "needs sensitive_features"),
        ({"sensitive_features": np.zeros(10)}, "at least 2 needed"),
        ({"sensitive_features": ["a", "b", None, "a", "b"]}, "missing values in 1 rows"),
        ({"unit": 1.0}, "unit and comparisons must be passed together"),
        ({"comparisons": demographic_parity(make_groups(["a", "b"]))}, "unit and comparisons must be passed together"),
    ],
)
def test_invalid_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        TransportObjective(**{"sensitive_features": make_rows()[2], **options})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y, m, _: (y[1:], m[1:]), "sensitive features of 400 rows, but the training set has 399"),
        (lambda y, m, _: (y + 1.0, m), "labels must be 0 and 1"),
        (lambda y, *_: (y, np.zeros((400, 3))), r"one margin per row, as of two classes; it got shape \(400, 3\)"),
        (lambda y, m, _: (y, np.r_[m[1:], np.nan]), "training diverged"),
        (lambda y, m, w: (y, m, -w), "negative"),
        (lambda y, m, w: (y, m, w * (make_rows()[2] > 0)), "A group has total sample_weight 0"),
        (lambda y, m, _: (y[:10], m), "labels has 10 rows"),
    ],
)
def test_invalid_calls(change, message):
    margins, labels, codes, weights = make_rows()
    with pytest.raises(ValueError, match=message):
        TransportObjective(codes)(*change(labels, margins, weights))


def test_labels_and_probabilities_without_two_groups():
    margins, labels, codes, _ = make_rows()
    with pytest.raises(ValueError, match="no label has rows of two groups"):
        TransportObjective(labels, criterion="equalized_odds")(labels, margins)
    chances = np.eye(3)[np.where(labels == 1, np.minimum(codes, 1), codes)]
    with pytest.raises(ValueError, match="probability 0 in all rows of a label or stratum"):
        TransportObjective(codes, criterion="equalized_odds", group_probabilities=chances)(labels, margins)
