"""The objective: its gradient, its penalty on rows, its rounds, the libraries that call it; losses."""

import pickle

import lightgbm
import numpy as np
import pytest
import xgboost
from scipy.special import expit as logistic
from sklearn.base import clone
from sklearn.metrics import log_loss, mean_poisson_deviance, mean_tweedie_deviance
from tests.worlds import demographic_parity

from fairtransport import GroupPolicy
from fairtransport.boosting import TransportObjective
from fairtransport.boosting._objective import LOSSES, make_loss
from fairtransport.criteria.criterion import resolve_criterion
from fairtransport.criteria.penalty import ContinuousPenalty, DiscretePenalty
from fairtransport.groups import make_groups
from fairtransport.metrics import strong_pairwise_disparity
from fairtransport.strata import make_strata

QUIET = {"verbose": -1, "num_threads": 1, "num_leaves": 8}
both_kinds = pytest.mark.parametrize("kind", ["continuous", "discrete"])
CRITERIA = {  # by name, and whether within strata
    "parity": ("demographic_parity", False),
    "odds": ("equalized_odds", False),
    "opportunity": ("equal_opportunity", False),
    "conditional": ("demographic_parity", True),
    "conditional odds": ("equalized_odds", True),
}


def make_rows(n=400, n_groups=3, seed=0):
    """Return margins that depend on group and label, labels, groups, strata (one of a single group) and weights."""
    rng = np.random.default_rng(seed)
    codes, labels = rng.integers(n_groups, size=n), (rng.random(n) < 0.4).astype(float)
    strata = np.where((codes == 0) & (rng.random(n) < 0.2), "alone", rng.choice(["s", "t"], n))
    return rng.normal(0.7 * codes - 1.0 + labels * (1 + 0.3 * codes), 1.2), labels, codes, strata, rng.random(n) + 0.5


def advanced(rows, *, criterion="parity", target=None, weights=None, sensitive=None, rounds=4, **options):
    """Return an objective of fixed unit and pairs, so that nothing is measured, after rounds at full weight; pairs."""
    margins, labels, codes, strata, _ = rows
    word, within = CRITERIA[criterion]
    sensitive, parts = codes if sensitive is None else sensitive, make_strata(strata) if within else None
    groups = make_groups(sensitive, groups=options.get("groups"))
    if target is None:
        known = {"labels": labels, "strata": parts, "row_weights": weights}
        pairs = resolve_criterion(word, groups, **known).comparisons()
    else:
        pairs = demographic_parity(groups, target=target)
    defaults = {"unit": 0.7, "parity_weight": 1.3, "warmup": 0, "ramp": 1, "scale": "score"}
    made = TransportObjective(sensitive, criterion=word, strata=parts, comparisons=pairs, **{**defaults, **options})
    for _ in range(rounds):
        made(labels, margins, weights)
    return made, pairs


@both_kinds
@pytest.mark.parametrize(
    "case",
    ["plain", "weights", "probabilities", "probabilities, weights", "overlapping", "target", "low", "standardized"]
    + [f"{criterion}{more}" for criterion in list(CRITERIA)[1:] for more in ("", ", probabilities, weights")],
)
def test_gradient_agrees_with_finite_differences(kind, case):
    rows = make_rows()
    margins, labels, codes, _, weights = rows
    known = {"sample_weight": weights if "weights" in case else None}
    options = {"distance": kind, "criterion": case.split(",")[0] if case.split(",")[0] in CRITERIA else "parity"}
    if "probabilities" in case:
        options["group_probabilities"] = np.random.default_rng(1).dirichlet(np.ones(3), len(margins))
    if case == "target":
        options["target"] = np.random.default_rng(1).beta(2, 3, 500)
    if case == "overlapping":
        options |= {"sensitive": np.column_stack((codes, codes % 2)), "groups": GroupPolicy(crossed=False)}
    if case == "standardized":
        options["scale"] = "standardized"
    if case == "low":
        margins = margins - 5.0  # scores near zero
    objective, _ = advanced((margins, *rows[1:]), weights=known["sample_weight"], **options)
    assert objective.parity_ == pytest.approx(1.3 * 0.7)
    terms = objective.value_and_gradient(margins, labels, **known)
    step = 1e-6
    inside = np.abs((logistic(margins) * 1024) % 1.0 - 0.5) < 0.49  # no step crosses an edge of a cell
    for row in np.flatnonzero(inside)[::29]:
        changes = (sign * step * (np.arange(400) == row) for sign in (1, -1))
        up, down = (objective.value_and_gradient(margins + change, labels, **known).value for change in changes)
        assert terms.gradient[row] == pytest.approx(
            (up - down) / (2 * step), abs=2e-6 if case == "overlapping" or options["criterion"] != "parity" else 1e-6
        )
    assert (terms.curvature > 0).all()


@both_kinds
@pytest.mark.parametrize("case", ["target", *CRITERIA])
def test_the_penalty_is_that_on_rows(kind, case):
    """Counting scores in 512 cells, as of up to 10,000 rows, changes the penalty of the linear estimators by little."""
    rows = make_rows(n=6000)
    margins, labels, *_ = rows
    to = {"target": np.random.default_rng(1).beta(2, 3, 500)} if case == "target" else {"criterion": case}
    objective, pairs = advanced(rows, distance=kind, **to)
    scores, terms = logistic(margins), objective.value_and_gradient(margins, labels)
    penalty = DiscretePenalty(scale="score")
    if kind == "continuous":
        penalty = ContinuousPenalty(objective._distance.problem, n_slices=objective._distance.n_slices, scale="score")
    expected, factor = penalty.value_and_gradient(scores, pairs), 1.3 * 0.7 * len(scores)
    close = 0.01 if case in {"parity", "target"} else 0.02
    losses = np.logaddexp(0.0, margins) - labels * margins
    assert terms.value - losses.sum() == pytest.approx(factor * expected.value, rel=close)
    gradient, expected_gradient = terms.gradient - (scores - labels), factor * expected.gradient * scores * (1 - scores)
    # Single rows differ, at scores where the slope jumps.
    assert np.abs(gradient - expected_gradient).sum() < close * np.abs(expected_gradient).sum()
    assert np.corrcoef(gradient, expected_gradient)[0, 1] > 0.999


@both_kinds
def test_a_weight_of_two_equals_two_copies(kind):
    rows = make_rows()
    margins, labels, *_ = rows
    double = np.arange(400) % 3 == 0
    copies = np.r_[np.arange(400), np.flatnonzero(double)]
    once, _ = advanced(rows, weights=1.0 + double, distance=kind)
    twice, _ = advanced(tuple(part[copies] for part in rows), distance=kind)
    by_weight = once.value_and_gradient(margins, labels, sample_weight=1.0 + double)
    by_copies = twice.value_and_gradient(margins[copies], labels[copies])
    assert by_weight.value == pytest.approx(by_copies.value, rel=1e-9)
    np.testing.assert_allclose(by_weight.gradient[~double], by_copies.gradient[:400][~double], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(by_weight.gradient[double], 2 * by_copies.gradient[400:], rtol=1e-6, atol=1e-9)


def test_probabilities_of_one_and_zero_equal_groups():
    rows = make_rows()
    plain, _ = advanced(rows)
    shared, _ = advanced(rows, group_probabilities=np.eye(3)[rows[2]])
    for one, other in zip(plain(rows[1], rows[0]), shared(rows[1], rows[0]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("smooth", [False, True])
def test_rows_that_are_not_compared_have_no_penalty(smooth):
    rows = make_rows()
    margins, labels, _, strata, _ = rows
    more = {"group_probabilities": np.full((400, 3), 1 / 3)} if smooth else {}
    for criterion, outside in (("opportunity", labels == 0), ("conditional", strata == "alone")):
        gradient, curvature = advanced(rows, criterion=criterion, **more)[0](labels, margins)
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


@pytest.mark.parametrize(("kind", "power"), [("continuous", 1), ("discrete", 2)])
def test_weight_increases_along_the_ramp_after_the_warmup(kind, power):
    margins, labels, codes, *_ = make_rows()
    objective = TransportObjective(codes, parity_weight=2.0, distance=kind, warmup=3, ramp=4)
    weights = []
    for _ in range(9):
        objective(labels, margins)
        weights.append(objective.parity_)
    unit = objective.unit_
    assert unit > 0
    np.testing.assert_allclose(weights, 2.0 * unit * np.r_[0, 0, 0, 0.25, 0.5, 0.75, 1, 1, 1] ** power)


@both_kinds
def test_value_and_gradient_does_not_advance_a_round(kind):
    rows = make_rows()
    margins, labels, *_ = rows
    (evaluated, _), (reference, _) = (advanced(rows, rounds=0, ramp=130, distance=kind) for _ in range(2))
    for number in range(1, 5):
        expected = reference(labels, margins)
        for one, other in zip(evaluated(labels, margins), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)
        evaluated.value_and_gradient(0.5 * margins, labels)
        assert evaluated.round_ == number


def test_a_new_training_resets_the_objective():
    margins, labels, codes, *_ = make_rows()
    objective = TransportObjective(codes, warmup=1, ramp=2)
    first = [objective(labels, m) for m in (np.zeros(400), margins, margins)]
    assert objective.round_ == 3
    second = [objective(labels, m) for m in (np.zeros(400), margins, margins)]
    assert objective.round_ == 3
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    objective.reset()
    assert (objective.round_, objective.parity_) == (0, 0.0)


def disparity(margins, data):
    return strong_pairwise_disparity(logistic(np.asarray(margins, dtype=float)), sensitive_features=data.group)


@both_kinds
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


@both_kinds
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
    rows = make_rows()
    margins, labels, *_ = rows
    objective, _ = advanced(rows, ramp=130)
    again = pickle.loads(pickle.dumps(objective))  # noqa: S301
    for one, other in zip(objective(labels, margins), again(labels, margins), strict=True):
        np.testing.assert_array_equal(one, other)


MARGINS = np.linspace(-2.0, 2.0, 40)
Y = np.tile([0.0, 1.0], 20)


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_by_finite_differences(name):
    loss, step = make_loss(name, 1.3), 1e-5
    y = Y if name == "log_loss" else 3.0 * Y + 0.01
    up, down = (loss.values(MARGINS + change, y) for change in (step, -step))
    gradient, curvature = loss.derivatives(MARGINS, y)
    np.testing.assert_allclose(gradient, (up - down) / (2 * step), atol=1e-6)
    assert (curvature > 0).all()
    slopes = (loss.predictions(MARGINS + step) - loss.predictions(MARGINS - step)) / (2 * step)
    np.testing.assert_allclose(loss.prediction_slopes(loss.predictions(MARGINS)), slopes, rtol=1e-6)


def test_values_are_those_of_scikit_learn():
    probabilities = make_loss("log_loss").predictions(MARGINS)
    assert make_loss("log_loss").values(MARGINS, Y).mean() == pytest.approx(log_loss(Y, probabilities))
    means = np.exp(MARGINS)
    poisson, tweedie = make_loss("poisson").values(MARGINS, Y), make_loss("tweedie", 1.3).values(MARGINS, Y)
    assert 2 * poisson.mean() == pytest.approx(mean_poisson_deviance(Y, means))
    assert 2 * tweedie.mean() == pytest.approx(mean_tweedie_deviance(Y, means, power=1.3))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("weights", [None, np.arange(1.0, 42.0)], ids=["equal", "weighted"])
def test_the_constant_is_the_best_one(name, weights):
    loss = make_loss(name)
    y = (np.arange(41.0) % 3 == 0) * 1.0 if name == "log_loss" else np.arange(41.0) ** 2 / 100

    def mean_loss(margin):
        return np.average(loss.values(np.full(41, margin), y), weights=weights)

    best = loss.constant(y, weights)
    assert mean_loss(best) <= min(mean_loss(best - 0.01), mean_loss(best + 0.01))
    assert loss.information(np.full(41, best), y, weights) == pytest.approx(0.01 * mean_loss(best))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parity_weight": -1.0}, "parity_weight must be a finite number at least 0"),
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
        ({"sensitive_features": ["a", "b", None, "a", "b"]}, "missing values in 1 row"),
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
    margins, labels, codes, _, weights = make_rows()
    with pytest.raises(ValueError, match=message):
        TransportObjective(codes)(*change(labels, margins, weights))


def test_labels_and_probabilities_without_two_groups():
    margins, labels, codes, *_ = make_rows()
    with pytest.raises(ValueError, match="no label has rows of two groups"):
        TransportObjective(labels, criterion="equalized_odds")(labels, margins)
    chances = np.eye(3)[np.where(labels == 1, np.minimum(codes, 1), codes)]
    with pytest.raises(ValueError, match="probability 0 in all rows of a label or stratum"):
        TransportObjective(codes, criterion="equalized_odds", group_probabilities=chances)(labels, margins)
