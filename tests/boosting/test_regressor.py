"""Boosted regressors: parity of predictions on any scale of y, losses, criteria, invalid input."""

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.base import clone

import fairtransport as ft
from fairtransport import QuantileRepair
from fairtransport.boosting import TransportBoostingRegressor, TransportObjective
from fairtransport.metrics import conditional_disparity, rank_disparity, strong_pairwise_disparity

LIGHT = lightgbm.LGBMRegressor(n_estimators=30, num_leaves=8, verbose=-1, n_jobs=1)
XG = xgboost.XGBRegressor(n_estimators=30, max_depth=3, n_jobs=1)
BOTH = pytest.mark.parametrize("trees", [LIGHT, XG], ids=["lightgbm", "xgboost"])
OBJECTIVES = {
    "squared_error": ("regression", "reg:squarederror"),
    "absolute_error": ("mae", "reg:absoluteerror"),
    "poisson": ("poisson", "count:poisson"),
    "tweedie": ("tweedie", "reg:tweedie"),
}


@pytest.fixture(scope="module")
def real(data):
    y = data.X @ [1.0, 1.5, 0.5] + np.random.default_rng(5).normal(size=data.n)
    return {"any": y, "count": np.random.default_rng(6).poisson(np.exp(0.4 * y)).astype(float)}


def with_loss(trees, loss):
    return clone(trees).set_params(objective=OBJECTIVES[loss][trees is XG])


def target_of(loss, real):
    return real["count"] if loss in {"poisson", "tweedie"} else real["any"]


def fitted(trees, data, y, **options):
    fit = {name: options.pop(name) for name in ("strata", "sample_weight", "eval_set") if name in options}
    model = TransportBoostingRegressor(trees, random_state=0, **{"parity_weight": 0.5, **options})
    return model.fit(data.X, y, sensitive_features=data.group, **fit)


@BOTH
@pytest.mark.parametrize("loss", OBJECTIVES)
def test_more_weight_is_less_disparity(trees, loss, data, real):
    y = target_of(loss, real)
    models = [fitted(with_loss(trees, loss), data, y, parity_weight=weight) for weight in (0.0, 1.0)]
    none, most = (model.before_after_["disparity"][1] for model in models)
    assert most < 0.6 * none
    assert models[1].loss_ == loss
    assert models[1].score(data.X, y) > 0.02  # better than a constant


@BOTH
@pytest.mark.parametrize("loss", OBJECTIVES)
def test_without_parity_it_is_the_library(trees, loss, data, real):
    y, trees = target_of(loss, real), with_loss(trees, loss)
    model = fitted(trees, data, y, parity_weight=0.0)
    seeded = clone(trees).set_params(random_state=model.estimator_.random_state)
    plain = seeded.fit(data.X, (y - model.y_center_) / model.y_scale_).predict(data.X)
    np.testing.assert_allclose(model.predict(data.X), model.y_center_ + model.y_scale_ * plain, atol=1e-5)


@BOTH
@pytest.mark.parametrize("loss", OBJECTIVES)
def test_the_unit_of_y_does_not_matter(trees, loss, data, real):
    """Numbers that are scaled exactly: powers of 2, so that rounding does not change a split."""
    y, trees = target_of(loss, real), with_loss(trees, loss)
    shift = 0.0 if loss in {"poisson", "tweedie"} else 4.0
    one, other = fitted(trees, data, y), fitted(trees, data, 1024.0 * y + shift)
    np.testing.assert_allclose(1024.0 * one.predict(data.X) + shift, other.predict(data.X), rtol=1e-5, atol=1e-3)
    assert one.before_after_["rank_disparity"] == pytest.approx(other.before_after_["rank_disparity"], abs=1e-6)
    assert one.unit_ == pytest.approx(other.unit_)


def test_disparities_are_in_units_of_y_and_in_its_standard_deviations(data, real):
    y = 1000.0 * real["any"]
    model = fitted(LIGHT, data, y, parity_weight=0.0)  # figures are of held-out rows where there is a weight
    known, predictions = {"sensitive_features": data.group}, model.predict(data.X)
    units = strong_pairwise_disparity(predictions, scale="score", **known)
    figures = {name: after for name, (_, after) in model.before_after_.items()}
    assert figures["disparity"] == pytest.approx(units, rel=0.01)  # on 256 slices
    assert figures["standardized_disparity"] == pytest.approx(figures["disparity"] / y.std())
    assert figures["rank_disparity"] == pytest.approx(rank_disparity(predictions, **known), rel=0.01)
    assert figures["r2"] == pytest.approx(model.score(data.X, y))
    assert figures["spread"] == pytest.approx(predictions.std())


@BOTH
def test_equalized_odds_compares_rows_with_a_similar_y(trees, data, real):
    def within(model):
        scores, known = model.predict(data.X), {"sensitive_features": data.group}
        return conditional_disparity(scores, strata=real["any"], scale="score", **known)

    models = [fitted(trees, data, real["any"], criterion="equalized_odds", parity_weight=w) for w in (0.0, 5.0)]
    assert within(models[1]) < 0.8 * within(models[0])
    assert "equalized odds (11 strata of y)" in models[1].outcome_
    stopped = fitted(trees, data, real["any"], criterion="equalized_odds", n_iter_no_change=3, strata=data.X[:, 2] > 0)
    assert stopped.strata_.names == ("False", "True")
    assert stopped.n_iter_ <= 38


def test_repair_removes_the_remaining_disparity_and_needs_the_group(data, real):
    model = fitted(LIGHT, data, 1000.0 * real["any"], parity_weight=0.1, repair=QuantileRepair())
    known = {"sensitive_features": data.group}
    assert strong_pairwise_disparity(model.predict(data.X, **known), scale="score", **known) < 10.0
    with pytest.raises(ValueError, match="repaired group by group"):
        model.predict(data.X)


@BOTH
@pytest.mark.parametrize("loss", OBJECTIVES)
@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_model_files(trees, loss, weight, data, real, tmp_path):
    model = fitted(with_loss(trees, loss), data, target_of(loss, real), parity_weight=weight)
    ft.save(model, tmp_path / "model.ft")
    loaded = ft.load(tmp_path / "model.ft")
    np.testing.assert_array_equal(loaded.predict(data.X), model.predict(data.X))
    assert loaded.before_after_ == model.before_after_


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_the_gradient_of_the_objective_by_finite_differences(loss):
    rng = np.random.default_rng(0)
    margins, y, codes = rng.normal(size=300), rng.poisson(2.0, size=300) + 0.5, rng.integers(2, size=300)
    margins += 0.5 * codes
    objective = TransportObjective(codes, loss=loss, warmup=0, ramp=1, distance="discrete", parity_weight=2.0)
    objective(y, margins)
    inner = np.argsort(margins)[5:-5]  # the ends of the interval of cells move with the extremes
    terms, step = objective.value_and_gradient(margins, y), 1e-4
    for row in inner[::40]:
        change = step * (np.arange(300) == row)
        up, down = (objective.value_and_gradient(margins + sign * change, y).value for sign in (1, -1))
        assert terms.gradient[row] == pytest.approx((up - down) / (2 * step), abs=0.02)


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        (np.r_[np.nan, np.arange(59.0)], {}, "y has 1 missing values"),
        (np.r_[np.inf, np.arange(59.0)], {}, "y has 1 infinite values"),
        (np.ones(60), {}, "y has the same value in every row"),
        (np.array(["a"] * 60), {}, "y has values that are not numbers"),
        (np.arange(-2.0, 58.0), {"estimator": with_loss(LIGHT, "poisson")}, "y has 2 negative values; the Poisson"),
        (np.arange(-2.0, 58.0), {"estimator": with_loss(XG, "tweedie")}, "y has 2 negative values"),
        (np.arange(60.0), {"criterion": "equal_opportunity"}, "a regression has none"),
        (np.arange(60.0), {"estimator": lightgbm.LGBMRegressor(objective="huber")}, "must be one of 'regression'"),
    ],
)
def test_invalid_input(y, options, message):
    X, group = np.arange(120.0).reshape(60, 2), np.tile(["a", "b"], 30)
    with pytest.raises(ValueError, match=message):
        TransportBoostingRegressor(**options).fit(X, y, sensitive_features=group)


def test_an_objective_for_real_numbers_takes_y_as_strata():
    with pytest.raises(ValueError, match="pass y as strata"):
        TransportObjective([0, 1], loss="squared_error", criterion="equalized_odds")
