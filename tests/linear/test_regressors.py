"""Transport regressors: squared loss, any unit of y, every criterion that applies to real numbers."""

import warnings
from functools import partial

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.tree import DecisionTreeRegressor

import fairtransport as ft
from fairtransport import FairnessWarning, TransportRegressor
from fairtransport.linear import SgdSettings
from fairtransport.metrics import rank_disparity
from fairtransport.metrics import strong_pairwise_disparity as any_disparity
from fairtransport.persistence.onnx import to_onnx

DOT = partial(TransportRegressor, distance="discrete")
both = pytest.mark.parametrize("cls", [TransportRegressor, DOT])

MORE = [
    pytest.param(options, marks=pytest.mark.trust)
    for options in ({"group_specific": True}, {"criterion": "equalized_odds"})
]

rng = np.random.default_rng(0)
N = 1200
G = rng.choice(["a", "b"], N, p=[0.6, 0.4])
IN_B = (G == "b").astype(float)
X = np.column_stack((rng.normal(size=(N, 3)) + IN_B[:, None] * [1.0, 0.0, 0.3], IN_B))
Y = X @ [1.0, 1.0, 0.5, 0.3] + rng.normal(size=N)
S = rng.integers(3, size=N)


def fitted(cls, y=Y, *, strata=None, weights=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        return cls(**options).fit(X, y, sensitive_features=G, strata=strata, sample_weight=weights)


def strong_pairwise_disparity(scores, groups=G):
    return any_disparity(scores, sensitive_features=groups, scale="score")


def predictions(model, rows=X, groups=G):
    return model.predict(rows, sensitive_features=groups)


@both
def test_without_parity_it_is_ridge_regression(cls):
    units = X.std(axis=0)
    units[3] = 1.0  # mostly zero: an indicator keeps its unit
    ridge = Ridge(alpha=1.0).fit(X / units, Y)
    model = fitted(cls, parity_weight=0.0)
    np.testing.assert_allclose(predictions(model), ridge.predict(X / units), atol=1e-5)
    np.testing.assert_allclose(model.initial_estimator_.predict(X), ridge.predict(X / units), atol=1e-5)
    assert model.score(X, Y) == pytest.approx(model.before_after_["r2"][0], abs=1e-6)
    assert (model.y_mean_, model.y_std_) == (pytest.approx(Y.mean()), pytest.approx(Y.std()))


@pytest.mark.parametrize("estimator", [LinearRegression(), Ridge(alpha=30.0), LinearRegression(fit_intercept=False)])
def test_a_regression_of_the_user_is_where_training_starts(estimator):
    model = fitted(DOT, estimator=estimator, parity_weight=0.0)
    again = fitted(DOT, estimator=estimator.fit(X, Y), parity_weight=0.0)
    for one in (model, again):
        np.testing.assert_allclose(predictions(one), estimator.predict(X), atol=2e-4)


@both
def test_disparities_are_in_units_of_y(cls):
    model = fitted(cls, 1000.0 * Y + 5.0)
    figures, scores = model.before_after_, predictions(model)
    assert figures["disparity"][1] == pytest.approx(strong_pairwise_disparity(scores), rel=0.02)
    assert figures["standardized_disparity"][1] == pytest.approx(figures["disparity"][1] / (1000.0 * Y.std()))
    assert figures["rank_disparity"][1] == pytest.approx(rank_disparity(scores, sensitive_features=G), abs=0.003)
    assert figures["mean_squared_error"][1] == pytest.approx(np.mean((1000.0 * Y + 5.0 - scores) ** 2))
    assert figures["spread"][1] == pytest.approx(scores.std())
    assert figures["r2"][1] == pytest.approx(model.score(X, 1000.0 * Y + 5.0, sensitive_features=G))
    kept = (Y.var() - figures["mean_squared_error"][1] / 1e6) / (Y.var() - figures["mean_squared_error"][0] / 1e6)
    assert model.information_kept_ == pytest.approx(kept)
    limited = fitted(cls, 1000.0 * Y, max_disparity=300.0)
    assert limited.before_after_["disparity"][1] <= 300.0
    assert "at most 300" in limited.outcome_
    assert limited.at(max_disparity=600.0).parity_weight_ < limited.parity_weight_


@both
@pytest.mark.parametrize("options", [{}, *MORE, pytest.param({"scale": "score"}, marks=pytest.mark.trust)])
def test_another_unit_of_y_gives_the_same_model(cls, options):
    model = fitted(cls, **options)
    expected = predictions(model)
    for scale, shift in ((1000.0, 5.0), (1e-6, -3e-6), (1e9, 0.0), (-1.0, 2.0)):
        other = fitted(cls, scale * Y + shift, **options)
        gap = np.abs(predictions(other) - (scale * expected + shift)).max() / abs(scale)
        # A reflected y is standardised to the reflected numbers, but its ranges are cut at the other side of ties.
        assert gap <= (1e-6 if scale > 0 else 1e-2) * expected.std()
        if scale > 0:
            np.testing.assert_allclose(other.path_["disparity"], scale * model.path_["disparity"], rtol=1e-6)
            assert other.outcome_ == model.outcome_


@both
def test_group_specific_weights_reach_the_optimum_under_parity(cls):
    r"""With normal features the optimum is known: :math:`f(x, a) = \sum_b p_b Q_b(F_a(\eta(x, a)))`."""
    draw = np.random.default_rng(1)
    n = 20_000
    b = draw.random(n) < 0.4
    rows = draw.normal(size=(n, 2)) * np.where(b, 1.5, 1.0)[:, None] + b[:, None] * [1.0, 0.5]
    signal = rows @ [1.0, 1.0]
    y = signal + draw.normal(size=n)
    model = cls(group_specific=True, parity_weight=3.0).fit(rows, y, sensitive_features=b)
    mean, spread, share = np.array([0.0, 1.5]), np.sqrt(2.0) * np.array([1.0, 1.5]), np.array([1 - b.mean(), b.mean()])
    own = b.astype(int)
    level = (signal - mean[own]) / spread[own]
    best = share @ mean + (share @ spread) * level
    found = model.predict(rows, sensitive_features=b)
    assert np.mean((y - found) ** 2) < 1.01 * np.mean((y - best) ** 2)
    assert np.sqrt(np.mean((found - best) ** 2)) < 0.03 * best.std()
    assert np.corrcoef(norm.cdf(level), found)[0, 1] > 0.97


@both
def test_automatic_weight_ends_at_the_noise_floor(cls):
    model = cls(group_specific=True).fit(X, Y, sensitive_features=G)
    assert model.outcome_.startswith("the rank disparity is near its noise floor")
    assert model.before_after_["rank_disparity"][1] < 0.15 * model.before_after_["rank_disparity"][0]
    assert model.information_kept_ > 0.6


def test_a_target_is_in_units_of_y():
    target = np.random.default_rng(2).normal(500.0, 100.0, 400)
    model = fitted(DOT, 100.0 * Y, target=target, parity_weight=30.0, group_specific=True,
                   scale="score")  # fmt: skip
    assert model.target_.mean() == pytest.approx(target.mean(), abs=1.0)
    for group in "ab":
        assert predictions(model)[group == G].mean() == pytest.approx(target.mean(), abs=40.0)
    to_group = fitted(DOT, target="a", parity_weight=3.0)
    assert to_group.target_.mean() == pytest.approx(to_group.initial_estimator_.predict(X)[G == "a"].mean(), abs=0.01)


def test_spread_of_the_initial_model():
    model = fitted(TransportRegressor, 1000.0 * Y, parity_weight=3.0, group_specific=True)
    trained = predictions(model)
    wide = predictions(model.set_params(spread="initial"))
    assert (np.argsort(trained) == np.argsort(wide)).mean() > 0.99
    assert wide.std() > trained.std()
    far = model.predict(1e3 * X[:5], sensitive_features=G[:5])
    assert np.abs(far).max() > 1e5  # beyond the points of the map, predictions keep their distance to its ends


@both
def test_equalized_odds_compares_people_with_about_the_same_y(cls):
    model = fitted(cls, criterion="equalized_odds", group_specific=True)
    assert model.strata_.columns == ("y",)
    assert "equalized odds (11 strata of y)" in model.outcome_
    assert len(model.strata_) == 11  # 1,200 rows cut into about n^(1/3) ranges
    before, after = model.before_after_["disparity"]
    assert after < 0.7 * before
    ranges = np.searchsorted(np.quantile(Y, np.arange(1, 11) / 11), Y)

    def within(scores):
        return np.mean([strong_pairwise_disparity(scores[ranges == k], G[ranges == k])
                        for k in range(11)])  # fmt: skip

    assert after == pytest.approx(within(predictions(model)), rel=0.1)
    assert within(predictions(model)) < within(model.initial_estimator_.predict(X))


def test_conditional_parity_and_odds_within_strata():
    conditional = fitted(DOT, strata=S)
    assert "conditional parity" in conditional.outcome_
    odds = fitted(DOT, strata=S, criterion="equalized_odds")
    assert odds.strata_.columns == ("y", "stratum_0")
    assert len(odds.strata_) == 3 * 7


def test_equal_opportunity_is_refused_with_the_reason():
    with pytest.raises(ValueError, match="positive label, and a real y has none"):
        fitted(DOT, criterion="equal_opportunity")


@both
@pytest.mark.parametrize("weight", [np.inf, 1.0])
def test_the_stochastic_solver(cls, weight):
    settings = SgdSettings(n_updates=4000, random_state=0)
    model = fitted(cls, 1000.0 * Y + 5.0, solver=settings, parity_weight=weight)
    before, after = model.before_after_["disparity"]
    assert after < 0.35 * before
    assert "ran all 4000 updates" in model.outcome_
    other = fitted(cls, Y, solver=settings, parity_weight=weight)
    gap = np.abs(predictions(model) - (1000.0 * predictions(other) + 5.0)).max() / 1000.0
    assert gap < 1e-6 * Y.std()
    trainer = cls(solver=settings, parity_weight=weight).make_trainer(X, Y, sensitive_features=G)
    trainer.advance(3)
    assert np.isfinite(trainer.theta).all()


@both
@pytest.mark.parametrize("options", [{}, *MORE])
def test_streams_adjust_regressors(cls, options, tmp_path):
    """A group drifts away; parity comes back, in units of y, and a file holds the state exactly."""
    y = 1000.0 * Y
    model = fitted(cls, y, parity_weight=1.0, **options)
    draw, old = np.random.default_rng(5), fitted(cls, y, parity_weight=1.0, **options)
    before = model.predict(X, sensitive_features=G)
    observed = model.partial_fit(X[:50], y[:50], sensitive_features=G[:50], updates=0)
    np.testing.assert_array_equal(observed.predict(X, sensitive_features=G), before)
    rows = []
    for _ in range(60):
        part = draw.integers(N, size=40)
        moved = X[part] + (G[part] == "b")[:, None] * [1.5, 0.0, 0.0, 0.0]
        rows.append((moved, G[part], moved @ [1000.0, 1000.0, 500.0, 300.0] + 1000.0 * draw.normal(size=40)))
    for number, (batch, groups, outcomes) in enumerate(rows):
        model.partial_fit(batch, outcomes if options.get("criterion") else None, sensitive_features=groups)
        if number == 20:
            model = ft.load(ft.save(model, tmp_path / "model.ft"))
    new, groups = np.concatenate([r[0] for r in rows[-20:]]), np.concatenate([r[1] for r in rows[-20:]])
    after, stale = (strong_pairwise_disparity(m.predict(new, sensitive_features=groups), groups) for m in (model, old))
    assert after < (0.95 if options.get("criterion") else 0.7) * stale
    assert np.isfinite(model.coef_).all()


def test_a_stream_may_start_from_a_fitted_regression():
    start = LinearRegression().fit(X, 1000.0 * Y)
    model = TransportRegressor(start, distance="discrete")
    for part in np.array_split(np.arange(N), 30):
        model.partial_fit(X[part], sensitive_features=G[part])
    before = strong_pairwise_disparity(start.predict(X))
    assert strong_pairwise_disparity(model.predict(X)) < 0.6 * before
    with pytest.raises(ValueError, match="pass y in the first call"):
        DOT().partial_fit(X, sensitive_features=G)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.where(np.arange(N) == 3, np.inf, Y), "infinite"),
        (np.full(N, 1e9) + 1e-7 * (np.arange(N) % 2), "constant|same value"),
        (np.where(Y > 0, "high", "low"), "not numbers"),
        (None, "requires y"),
    ],
)
def test_a_y_that_cannot_be_learned(y, message):
    with pytest.raises(ValueError, match=message):
        DOT().fit(X, y, sensitive_features=G)


def test_a_model_of_the_other_kind_is_named():
    with pytest.raises(TypeError, match="LogisticRegression is a classifier, which TransportClassifier"):
        fitted(DOT, estimator=LogisticRegression())
    with pytest.raises(TypeError, match="Ridge is a regressor, which TransportRegressor"):
        ft.TransportClassifier(Ridge(), distance="discrete").fit(X, Y > 0, sensitive_features=G)
    with pytest.raises(TypeError, match="DecisionTreeRegressor has no coef_"):
        fitted(DOT, estimator=DecisionTreeRegressor())


@both
def test_onnx(cls):
    onnxruntime = pytest.importorskip("onnxruntime")
    for options in ({}, {"group_specific": True, "amount": 0.4}):
        model = fitted(cls, 1e6 * Y, **options)
        session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
        feed = {"X": X} | ({"sensitive_feature_0": G} if options else {})
        (found,) = session.run(["prediction"], feed)
        np.testing.assert_allclose(found, predictions(model), rtol=1e-12, atol=1e-4)
