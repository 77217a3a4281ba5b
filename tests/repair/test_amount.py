"""The amount: from the initial model's scores to the trained one's, after training."""

from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.worlds import people

import fairtransport as ft

DOT = partial(ft.TransportClassifier, distance="discrete")


X, Y, GROUP = people(1500, seed=3, aware=True)
FIXED = {"parity_weight": 1.0}


@pytest.fixture(scope="module", params=[False, True], ids=["shared", "own weights"])
def fitted(request):
    model = ft.TransportClassifier(group_specific=request.param, **FIXED)
    return model.fit(X, Y, sensitive_features=GROUP)


def scores(model, amount):
    return model.set_params(amount=amount).predict_proba(X, sensitive_features=GROUP)[:, 1]


def test_decisions_and_logits_are_those_of_the_scores(fitted):
    mixed = scores(fitted, 0.6)
    logits = fitted.decision_function(X, sensitive_features=GROUP)
    np.testing.assert_allclose(1 / (1 + np.exp(-logits)), mixed, atol=1e-12)
    np.testing.assert_array_equal(fitted.predict(X, sensitive_features=GROUP), (mixed > 0.5).astype(int))


def test_sure_scores_stay_finite():
    far = np.vstack((X, [[4000.0, 0.0, 0.0, 0.0], [-4000.0, 0.0, 0.0, 0.0]]))
    model = ft.TransportClassifier(LogisticRegression(), distance="discrete", amount=0.5, **FIXED).fit(
        X, Y, sensitive_features=GROUP
    )
    logits = model.decision_function(far)
    assert np.isfinite(logits).all()
    assert logits[-2] > 50 > -50 > logits[-1]


@pytest.mark.parametrize("kind", [ft.TransportClassifier, DOT])
def test_a_frontier_over_amounts_trains_once_a_fold(kind, monkeypatch):
    fits, train = [], ft.TransportClassifier.fit
    monkeypatch.setattr(ft.TransportClassifier, "fit", lambda self, *a, **k: fits.append(1) or train(self, *a, **k))
    curve = ft.frontier(kind(**FIXED), X, Y, sensitive_features=GROUP, amounts=[0, 0.5, 1], cv=3, random_state=0)
    assert len(fits) == 3
    assert np.all(np.diff(curve.mean("pairwise_disparity")) < 0)
    model = curve.choose(max_disparity=float(curve.mean("pairwise_disparity")[1]))
    assert model.amount == pytest.approx(0.5)
    assert len(fits) == 4
