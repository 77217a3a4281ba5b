"""Trade-off curves of blind repair: along amount and slack, and within strata."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import fairtransport as ft

LOGISTIC = LogisticRegression()


def people(n=900, seed=0):
    """Features that differ by group and by a level, which differs by group as well."""
    rng = np.random.default_rng(seed)
    group, level = rng.integers(2, size=n), rng.integers(2, size=n)
    X = rng.normal(size=(n, 2)) + group[:, None] * [1.2, 0.0]
    X = np.column_stack((X, level))
    return X, (X @ [1.0, 1.0, 1.0] + rng.logistic(size=n) > 1.0).astype(int), group, level


class Counting(LogisticRegression):
    """A model that counts its fits."""

    fits = 0

    def fit(self, X, y):
        Counting.fits += 1
        return super().fit(X, y)


def blind(**options):
    return ft.BlindRepairClassifier(Counting(), LOGISTIC, cv=2, **options)


def test_amounts_and_slacks_fit_the_models_once():
    X, y, group, _ = people()
    for grid, first in (({"amounts": [0.0, 0.5, 1.0]}, 0.0), ({"slacks": [0.0, 0.05, 0.2]}, 0.2)):
        Counting.fits = 0
        curve = ft.frontier(blind(), X, y, sensitive_features=group, cv=2, random_state=0, **grid)
        assert Counting.fits == 2 * 3  # in each fold of the curve: two halves, and all of its training rows
        assert (curve.situation, curve.values[0]) == ("blind", first)
        falling = curve.mean("pairwise_disparity")
        assert falling.tolist() == sorted(falling, reverse=True)
        assert falling[-1] < 0.4 * falling[0]
        limit = 0.6 * falling[0]
        model = curve.choose(max_disparity=limit)
        new, _, new_group, _ = people(4000, seed=1)
        scores = model.predict_proba(new)[:, 1]
        assert ft.metrics.pairwise_disparity(scores, sensitive_features=new_group) < limit + 0.04


@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(ft.BlindRepairClassifier(LOGISTIC, LOGISTIC, cv=2), id="blind"),
        pytest.param(ft.QuantileRepairClassifier(LOGISTIC), id="aware", marks=pytest.mark.trust),
    ],
)
def test_strata_are_passed_to_predictions(estimator):
    X, y, group, _ = people(2000)
    strata = {"score": X[:, 1]}  # a column of numbers is cut once, for all folds
    curve = ft.frontier(
        estimator, X, y, sensitive_features=group, strata=strata, amounts=[0.0, 1.0], cv=2, random_state=0
    )
    first, last = curve.mean("criterion_disparity")
    assert last < 0.7 * first
    model = curve.choose(max_disparity=0.9 * first)
    with pytest.raises(ValueError, match="strata"):
        model.predict(X, **({} if hasattr(model, "slack") else {"sensitive_features": group}))


def test_advice_knows_that_less_slack_is_more_parity():
    X, y, group, _ = people()
    curve = ft.frontier(blind(), X, y, sensitive_features=group, cv=2, random_state=0, slacks=[0.1, 0.2])
    with pytest.raises(ValueError, match="Try smaller values of slack"):
        curve.choose(max_disparity=0.001)
    with pytest.raises(ValueError, match="Try larger values of slack"):
        curve.choose(max_error=0.001)
