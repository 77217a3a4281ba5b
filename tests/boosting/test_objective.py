import pickle
from dataclasses import replace

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.base import clone

from fairtransport.boosting import TransportObjective
from fairtransport.boosting.rows import Rows
from fairtransport.groups import make_groups
from fairtransport.metrics import strong_pairwise_disparity
from fairtransport.transport.dual import DualState, evaluate

QUIET = {"verbose": -1, "num_threads": 1, "num_leaves": 8}
KINDS = ["continuous", "discrete"]


def logistic(margins):
    return 1.0 / (1.0 + np.exp(-margins))


def data(n=400, n_groups=3, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_groups, size=n)
    return rng.normal(0.7 * codes - 1.0, 1.2), (rng.random(n) < 0.4).astype(float), codes, rng.random(n) + 0.5


def moved(objective, margins, labels, weights, rounds=4):
    """The objective after a few rounds at these margins, at full weight."""
    for _ in range(rounds):
        objective(labels, margins, weights)
    return objective


# ------------------------------------------------------------------------------------------------------- mathematics


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", ["plain", "weights", "shares", "shares, weights", "overlapping", "barycenter", "low"])
def test_gradient_is_that_of_finite_differences(kind, case):
    margins, labels, codes, weights = data()
    given = weights if "weights" in case else None
    options = {"unit": 0.7, "ramp": 1, "parity_weight": 1.3, "kind": kind, "random_state": 0}
    if "shares" in case:
        options["shares"] = np.random.default_rng(1).dirichlet(np.ones(3), len(margins))
    if case == "barycenter":
        options["target"] = "barycenter"
    sensitive = codes
    if case == "overlapping":
        sensitive, options["grouping"] = np.column_stack((codes, codes % 2)), "each"
    if case == "low":
        margins = margins - 5.0  # scores near zero
    objective = moved(TransportObjective(sensitive, **options), margins, labels, given)
    assert objective.parity_ == pytest.approx(1.3 * 0.7)
    terms = objective.value_and_gradient(margins, labels, sample_weight=given)
    step = 1e-6
    inside = np.abs((logistic(margins) * 1024) % 1.0 - 0.5) < 0.49  # where no step crosses an edge of a cell
    for row in np.flatnonzero(inside)[::29]:
        up, down = (
            objective.value_and_gradient(
                margins + sign * step * (np.arange(400) == row), labels, sample_weight=given
            ).value
            for sign in (1, -1)
        )
        assert terms.gradient[row] == pytest.approx((up - down) / (2 * step), abs=1e-6)
    assert (terms.curvature > 0).all()


def test_the_penalty_is_the_pairwise_disparity():
    """Discrete, with groups so large that the soft middle is nothing: value less log-loss, in the unit of rows."""
    margins, labels, codes, _ = data(n=60_000)
    objective = moved(
        TransportObjective(codes, unit=1.0, ramp=1, kind="discrete", parity_weight=1.0), margins, labels, None
    )
    losses = np.logaddexp(0.0, margins) - labels * margins
    penalty = (objective.value_and_gradient(margins, labels).value - losses.sum()) / len(margins)
    assert penalty == pytest.approx(strong_pairwise_disparity(logistic(margins), sensitive_features=codes), rel=0.02)


def test_continuous_gradient_is_that_of_the_dual_objective():
    """To a fixed target, at the duals it climbed to, less the slope of a group to itself, and 2 at most."""
    margins, labels, codes, _ = data()
    target = np.random.default_rng(1).beta(2, 3, 500)
    objective = TransportObjective(codes, unit=1.0, ramp=1, parity_weight=1.0, target=target, random_state=0)
    moved(objective, margins, labels, None)
    scores, duals = logistic(margins), objective._penalty.pulls
    penalty = objective.value_and_gradient(margins, labels).gradient - (scores - labels)
    problem, levels = replace(duals.dual, pairs="all"), (np.arange(64) + 0.5) / 64
    for group in range(3):
        own = scores[codes == group]

        def slope(x_dual, y_dual, points, own=own):
            state = DualState(x_dual, y_dual)
            return len(own) * evaluate(problem, state, own, np.quantile(points, levels)).point_gradient

        pull = slope(duals.f[group], duals.h[group], target) - slope(duals.selves[group], duals.selves[group], own)
        expected = np.clip(pull, -2.0, 2.0) * len(scores) / len(own) * own * (1 - own)
        np.testing.assert_allclose(penalty[codes == group], expected, atol=0.03 * np.abs(expected).max())


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_of_two_is_two_copies(kind):
    margins, labels, codes, _ = data()
    double = np.arange(400) % 3 == 0
    rows = np.r_[np.arange(400), np.flatnonzero(double)]
    options = {"unit": 0.5, "ramp": 1, "kind": kind, "random_state": 0}
    once = moved(TransportObjective(codes, **options), margins, labels, 1.0 + double)
    twice = moved(TransportObjective(codes[rows], **options), margins[rows], labels[rows], None)
    by_weight = once.value_and_gradient(margins, labels, sample_weight=1.0 + double)
    by_copies = twice.value_and_gradient(margins[rows], labels[rows])
    # How soft the middle is depends on the number of rows, so the two are close, not equal.
    assert by_weight.value == pytest.approx(by_copies.value, rel=0.01 if kind == "discrete" else 1e-9)
    if kind == "continuous":
        np.testing.assert_allclose(by_weight.gradient[~double], by_copies.gradient[:400][~double], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(by_weight.gradient[double], 2 * by_copies.gradient[400:], rtol=1e-6, atol=1e-9)


def test_shares_of_one_and_zero_are_groups():
    margins, labels, codes, _ = data()
    options = {"unit": 0.5, "ramp": 1, "random_state": 0}
    plain = moved(TransportObjective(codes, **options), margins, labels, None)
    shared = moved(TransportObjective(codes, shares=np.eye(3)[codes], **options), margins, labels, None)
    for one, other in zip(plain(labels, margins), shared(labels, margins), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_threads_change_nothing(monkeypatch):
    margins, labels, codes, weights = data(n=3000)
    groups = make_groups(codes)
    labels = labels.astype(np.float32)
    slopes, bends = np.random.default_rng(0).random((2, 3, 1024))
    results = []
    for chunk in (10_000, 100):
        monkeypatch.setattr("fairtransport.boosting.rows._CHUNK", chunk)
        monkeypatch.setattr("fairtransport.boosting.rows.config.NUMBA_NUM_THREADS", 4)
        scores, masses = Rows(groups).count(margins, weights)
        results.append((scores, masses, *Rows(groups).push(scores, labels, weights, slopes, bends, dtype=np.float64)))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


# ------------------------------------------------------------------------------------------------------------ rounds


def test_weight_comes_after_the_warmup_and_grows_along_the_ramp():
    margins, labels, codes, _ = data()
    objective = TransportObjective(codes, parity_weight=2.0, warmup=3, ramp=4)
    weights = []
    for _ in range(9):
        objective(labels, margins)
        weights.append(objective.parity_)
    unit = objective.unit_
    assert unit > 0
    np.testing.assert_allclose(weights, 2.0 * unit * np.r_[0, 0, 0, 0.25, 0.5, 0.75, 1, 1, 1])


def test_duals_advance_once_a_round():
    margins, labels, codes, _ = data()
    objective = TransportObjective(codes, unit=0.5, random_state=0)
    for number in range(1, 5):
        objective(labels, margins)
        before = objective._penalty.pulls.f.copy()
        objective.value_and_gradient(margins, labels)
        np.testing.assert_array_equal(objective._penalty.pulls.f, before)
        assert (objective.round_, objective._penalty.looks) == (number, number)


def test_a_new_training_begins_anew():
    margins, labels, codes, _ = data()
    objective = TransportObjective(codes, warmup=1, ramp=2)
    first = [objective(labels, m) for m in (np.zeros(400), margins, margins)]
    assert objective.round_ == 3
    second = [objective(labels, m) for m in (np.zeros(400), margins, margins)]
    assert objective.round_ == 3
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    objective.reset()
    assert (objective.round_, objective.parity_) == (0, 0.0)


def test_before_anything_counts_it_is_the_log_loss():
    margins, labels, codes, weights = data()
    gradient, curvature = TransportObjective(codes)(labels, margins, weights)
    scores = logistic(margins)
    np.testing.assert_allclose(gradient, weights * (scores - labels), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(curvature, weights * scores * (1 - scores), rtol=1e-5, atol=1e-7)


def test_groups_that_do_not_differ_are_left_alone():
    rng = np.random.default_rng(0)
    margins, labels, codes = rng.normal(size=500), rng.integers(2, size=500).astype(float), rng.integers(2, size=500)
    objective = TransportObjective(codes, warmup=0, ramp=1)
    gradient, _ = objective(labels, margins)
    assert objective.unit_ == 0.0
    np.testing.assert_allclose(gradient, logistic(margins) - labels, rtol=1e-5, atol=1e-6)


# --------------------------------------------------------------------------------------------------------- libraries


def disparity(margins, world):
    return strong_pairwise_disparity(logistic(np.asarray(margins, dtype=float)), sensitive_features=world.group)


@pytest.mark.parametrize("kind", KINDS)
def test_lightgbm_both_interfaces(world, kind):
    objective = TransportObjective(world.group, kind=kind, warmup=5, ramp=15, random_state=0)
    trained = lightgbm.train({"objective": objective, **QUIET}, lightgbm.Dataset(world.X, world.y), 40)
    native = trained.predict(world.X, raw_score=True)
    model = lightgbm.LGBMClassifier(objective=objective, n_estimators=40, num_leaves=8, verbose=-1, n_jobs=1)
    fitted = clone(model).fit(world.X, world.y)
    np.testing.assert_allclose(fitted.predict(world.X, raw_score=True), native)
    assert objective.round_ == 0  # LightGBM trains with a copy
    plain = lightgbm.train({"objective": "binary", **QUIET}, lightgbm.Dataset(world.X, world.y), 40)
    assert disparity(native, world) < 0.5 * disparity(plain.predict(world.X, raw_score=True), world)


@pytest.mark.parametrize("kind", KINDS)
def test_xgboost_both_interfaces(world, kind):
    objective = TransportObjective(world.group, kind=kind, warmup=5, ramp=15, random_state=0)
    matrix = xgboost.DMatrix(world.X, world.y)
    settings = {"max_depth": 3, "nthread": 1, "base_score": 0.5, "objective": "binary:logistic"}
    native = xgboost.train(settings, matrix, 40, obj=objective).predict(matrix, output_margin=True)
    assert objective.round_ == 40
    model = xgboost.XGBClassifier(objective=objective, n_estimators=40, max_depth=3, n_jobs=1, base_score=0.5)
    fitted = clone(model).fit(world.X, world.y)
    np.testing.assert_allclose(fitted.predict(world.X, output_margin=True), native, rtol=1e-5, atol=1e-6)
    plain = xgboost.train(settings, matrix, 40)
    assert disparity(native, world) < 0.5 * disparity(plain.predict(matrix, output_margin=True), world)


def test_weights_of_the_training_set_arrive(world):
    weights = np.where(world.y == 1, 3.0, 1.0)
    for second in (
        lightgbm.Dataset(world.X, world.y, weight=weights).construct(),
        xgboost.DMatrix(world.X, world.y, weight=weights),
    ):
        objective = TransportObjective(world.group)
        gradient, _ = objective(np.zeros(world.n), second)
        np.testing.assert_allclose(gradient, weights * (0.5 - world.y), rtol=1e-6)
    model = lightgbm.LGBMClassifier(objective=TransportObjective(world.group), n_estimators=3, verbose=-1, n_jobs=1)
    light = model.fit(world.X, world.y).predict(world.X, raw_score=True)
    heavy = clone(model).fit(world.X, world.y, sample_weight=weights).predict(world.X, raw_score=True)
    assert heavy.mean() > light.mean()


def test_without_parity_it_is_the_librarys_own_objective(world):
    objective = TransportObjective(world.group, parity_weight=0.0)
    own = {"objective": "binary", "boost_from_average": False, **QUIET}
    margins = [
        lightgbm.train(settings, lightgbm.Dataset(world.X, world.y), 20).predict(world.X, raw_score=True)
        for settings in ({"objective": objective, **QUIET}, own)
    ]
    np.testing.assert_allclose(*margins, atol=1e-4)


def test_it_can_be_pickled():
    margins, labels, codes, _ = data()
    objective = moved(TransportObjective(codes, unit=0.5, random_state=0), margins, labels, None)
    again = pickle.loads(pickle.dumps(objective))  # noqa: S301
    for one, other in zip(objective(labels, margins), again(labels, margins), strict=True):
        np.testing.assert_array_equal(one, other)


# --------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parity_weight": -1.0}, "parity_weight must be a finite number at least 0"),
        ({"parity_weight": np.inf}, "parity_weight must be a finite number"),
        ({"kind": "both"}, "kind must be one of 'continuous', 'discrete'"),
        ({"target": "middle"}, "target must be one of"),
        ({"ramp": -1}, "ramp must be at least 0"),
        ({"strength": 0.0}, "strength must be a finite number above 0"),
        ({"shares": np.ones((5, 2))}, r"shares must have shape \(400, 3\)"),
        ({"shares": np.full((400, 3), 2.0)}, "shares must be numbers from 0 to 1"),
        ({"shares": np.eye(3)[np.zeros(400, int)]}, "a group that no row belongs to"),
        ({"min_size": 1000}, "below min_size=1000"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        TransportObjective(data()[2], **options)


def test_bad_sensitive_features():
    with pytest.raises(ValueError, match="needs sensitive_features"):
        TransportObjective(None)
    with pytest.raises(ValueError, match="at least 2 needed"):
        TransportObjective(np.zeros(10))
    with pytest.raises(ValueError, match="missing values in 1 rows"):
        TransportObjective(["a", "b", None, "a", "b"])
    assert len(TransportObjective(["a", "b", None, "a", "b", None], missing="group").groups) == 3


def test_bad_calls():
    margins, labels, codes, weights = data()
    objective = TransportObjective(codes)
    with pytest.raises(ValueError, match="sensitive features of 400 rows, but the training set has 399"):
        objective(labels[1:], margins[1:])
    with pytest.raises(ValueError, match="labels must be 0 and 1"):
        objective(labels + 1.0, margins)
    with pytest.raises(ValueError, match=r"two classes, one margin a row; it got shape \(400, 3\)"):
        objective(labels, np.zeros((400, 3)))
    with pytest.raises(ValueError, match="training diverged"):
        objective(labels, np.r_[margins[1:], np.nan])
    with pytest.raises(ValueError, match="negative"):
        objective(labels, margins, -weights)
    with pytest.raises(ValueError, match="A group has total sample_weight 0"):
        objective(labels, margins, weights * (codes > 0))
    with pytest.raises(ValueError, match="labels has 10 rows"):
        objective(labels[:10], margins)
