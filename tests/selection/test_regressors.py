"""The trade-off of regressors: errors and disparities in units of y."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.worlds import people

import fairtransport as ft
from fairtransport.metrics import pairwise_disparity

X, Y, G = people(600, real=True)
Y *= 1000.0
pytestmark = pytest.mark.filterwarnings("ignore::fairtransport.FairnessWarning")


def test_the_curve_of_a_regressor():
    cut = np.arange(600) % 3 == 0
    splits = [(np.flatnonzero(~cut), np.flatnonzero(cut))]
    model = ft.TransportRegressor(distance="discrete", group_specific=True)
    curve = ft.frontier(model, X, Y, sensitive_features=G, cv=splits, parity_weights=[0.0, 0.3, 3.0], random_state=0)
    assert curve.error_metric == "rmse"
    for number, weight in enumerate((0.0, 3.0)):
        one = ft.TransportRegressor(distance="discrete", group_specific=True, parity_weight=weight)
        scores = one.fit(X[~cut], Y[~cut], sensitive_features=G[~cut]).predict(X[cut], sensitive_features=G[cut])
        at = 2 * number
        assert curve.mean("rmse")[at] == pytest.approx(np.sqrt(np.mean((Y[cut] - scores) ** 2)), rel=0.01)
        assert curve.mean("mae")[at] == pytest.approx(np.abs(Y[cut] - scores).mean(), rel=0.01)
        assert curve.mean("r2")[at] == pytest.approx(r2_score(Y[cut], scores), abs=0.01)
        spdd = pairwise_disparity(scores, sensitive_features=G[cut], scale="score")
        assert curve.mean("pairwise_disparity")[at] == pytest.approx(spdd, rel=0.1, abs=20.0)
    assert curve.mean("information_kept")[0] == 1.0
    assert curve.mean("noise_floor")[0] > 50.0  # units of y
    assert "RMSE" in str(curve)
    assert "R2" in str(curve)
    assert "error" in repr(curve)
    assert curve.plot().ax_.get_ylabel() == "Root mean squared error, in units of y"
    limit = 0.5 * curve.mean("criterion_disparity")[0]
    chosen = curve.choose(max_disparity=limit)
    assert 0.0 < chosen.parity_weight < 3.0
    assert curve.find(max_error=1e9).value == 3.0


@pytest.mark.trust
@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds"])
def test_the_criterion_of_a_regressor(criterion):
    linear = make_pipeline(
        StandardScaler(), ft.TransportRegressor(LinearRegression(), distance="discrete", criterion=criterion)
    )
    curve = ft.frontier(linear, X, Y, sensitive_features=G, parity_weights=[0.0, 1.0], cv=2, random_state=0)
    before, after = curve.mean("criterion_disparity")
    assert after < before
    assert (criterion == "demographic_parity") == (before == curve.mean("pairwise_disparity")[0])


def test_y_must_fit_the_estimator():
    with pytest.raises(ValueError, match="not numbers"):
        ft.frontier(ft.TransportRegressor(distance="discrete"), X, np.where(Y > 0, "x", "y"), sensitive_features=G)
    with pytest.raises(ValueError, match="continuous"):
        ft.frontier(ft.TransportClassifier(distance="discrete"), X, Y, sensitive_features=G)
    with pytest.raises(TypeError, match="or a regressor with predict"):
        ft.frontier(StandardScaler(), X, Y, sensitive_features=G)
