"""`spread="initial"`: one rising map for everyone."""

import numpy as np
import pytest
from scipy.stats import spearmanr, wasserstein_distance
from tests import worlds

import fairtransport as ft
from fairtransport.persistence.onnx import to_onnx
from fairtransport.training.evaluation import spread_logits, spread_points

from .tables import DOT

KINDS = (ft.TransportClassifier, DOT)


def people(n=1500):
    return worlds.people(n, p=[0.3, 0.7], shift=(1.5, 0.0, 0.0), coef=(1.5, 1.0, 0.5), aware=True)


@pytest.fixture(scope="module", params=[(k, own) for k in KINDS for own in (False, True)], ids=lambda p: str(p[1]))
def fitted(request):
    kind, own = request.param
    X, y, group = people()
    model = kind(group_specific=own, parity_weight=1.0).fit(X, y, sensitive_features=group)
    return model, X, group


def scores_of(model, X, group):
    known = {"sensitive_features": group} if len(model.coef_) > 1 else {}
    return model.predict_proba(X, **known)[:, 1]


def test_everyone_together_gets_the_barycenter_of_the_initial_scores(fitted):
    model, X, group = fitted
    before = model.initial_estimator_.predict_proba(X)[:, 1]
    levels = (np.arange(500) + 0.5) / 500
    goal = sum((group == g).mean() * np.quantile(before[group == g], levels) for g in "ab")
    plain = scores_of(model.set_params(spread="trained"), X, group)
    wide = scores_of(model.set_params(spread="initial"), X, group)
    assert wasserstein_distance(wide, goal) < 0.005 < wasserstein_distance(plain, goal)


def test_ranks_stay_and_parity_stays(fitted):
    model, X, group = fitted
    plain = scores_of(model.set_params(spread="trained"), X, group)
    wide = scores_of(model.set_params(spread="initial"), X, group)
    assert spearmanr(plain, wide).statistic > 1 - 1e-9
    before = scores_of(model.set_params(amount=0.0), X, group)
    assert np.array_equal(before, scores_of(model.set_params(spread="trained"), X, group))  # amount 0 knows no spread
    model.set_params(amount=1.0)
    disparities = [ft.metrics.strong_pairwise_disparity(s, sensitive_features=group) for s in (before, wide)]
    assert disparities[1] < disparities[0] / 4


def test_it_survives_a_file_and_a_stream(fitted, tmp_path):
    model, X, group = fitted
    model.set_params(spread="initial")
    ft.save(model, tmp_path / "m.ft")
    again = ft.load(tmp_path / "m.ft")
    assert np.array_equal(scores_of(again, X, group), scores_of(model, X, group))
    again.partial_fit(X[:100], sensitive_features=group[:100])
    assert np.isfinite(scores_of(again, X, group)).all()


def test_no_point_is_the_score_of_one_row():
    scores = np.sort(np.random.default_rng(0).random(60))
    points = spread_points(scores, scores, [np.arange(30), np.arange(30, 60)], None)
    assert points.shape[1] <= 60 // 5 + 2
    assert np.intersect1d(points, scores).size == 0
    assert points[:, 0].tolist() == [0, 0]
    assert points[:, -1].tolist() == [1, 1]


def test_ties_and_ends():
    trained = np.repeat([0.2, 0.6], 20)
    points = spread_points(trained, np.linspace(0.1, 0.9, 40), [np.arange(40)], None)
    assert points[0].tolist() == [0.0, 0.2, 0.6, 1.0]
    assert (np.diff(points[1]) > 0).all()
    logits = np.array([-800.0, -30.0, 0.0, 40.0, 800.0])
    moved = spread_logits(logits, points)
    assert np.isfinite(moved).all()
    assert (np.diff(moved) > 0).all()


def test_onnx_refuses():
    X, y, group = people(200)
    model = DOT(parity_weight=1.0, spread="initial")
    with pytest.raises(ValueError, match="spread"):
        to_onnx(model.fit(X, y, sensitive_features=group))
