"""A disparity is one quantity: the mean over pairs of groups, wherever it is reported or limited."""

import re

import numpy as np
import pytest

import fairtransport as ft
from fairtransport.metrics import pairwise_disparity, rank_disparity

N_PAIRS = 15  # of six groups


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    group = rng.integers(6, size=1800)
    X = rng.normal(size=(1800, 3)) + 0.4 * group[:, None] * [1.0, 0.0, 0.0]
    return X, (X.sum(axis=1) + rng.logistic(size=1800) > 1.0).astype(int), group


@pytest.fixture(scope="module")
def model(people):
    X, y, group = people
    return ft.TransportClassifier(parity_weight=1.0).fit(X, y, sensitive_features=group)


def test_audits_have_the_mean(people):
    X, _, group = people  # tests/properties/test_one_number.py compares all that audits show
    audit = ft.audit(X[:, 0], sensitive_features=group)
    assert audit.metrics["rank_disparity"] == pytest.approx(rank_disparity(X[:, 0], sensitive_features=group))
    assert audit.verdict.mean_difference == audit.mean_pairwise_distance == audit.readings["rank_disparity"].estimate
    scores = 1 / (1 + np.exp(-X[:, 0]))
    bounded, mean = ft.audit(scores, sensitive_features=group), pairwise_disparity(scores, sensitive_features=group)
    assert bounded.metrics["strong_pairwise_disparity"] == pytest.approx(N_PAIRS * mean, abs=1e-12)
    assert bounded.mean_readings["strong_pairwise_disparity"].value == pytest.approx(mean)
    same = re.search(r"^Between pairs, mean +(\S+) ", str(ft.compare(bounded, bounded)), re.MULTILINE)
    assert same[1] == f"{bounded.mean_pairwise_distance.value:.3f}"


def test_training_reports_and_limits_the_mean(people, model):
    X, y, group = people
    for name, metric in (("disparity", pairwise_disparity), ("rank_disparity", rank_disparity)):
        scores = (model.initial_estimator_.predict_proba(X)[:, 1], model.predict_proba(X)[:, 1])
        expected = [metric(each, sensitive_features=group) for each in scores]
        assert model.before_after_[name] == pytest.approx(expected, rel=0.02)  # from 256 slices
    limited = ft.TransportClassifier(max_disparity=0.06).fit(X, y, sensitive_features=group)
    reached = pairwise_disparity(limited.predict_proba(X)[:, 1], sensitive_features=group)
    assert 0.04 < reached < 0.061


def test_trade_off_curves_measure_the_mean(people, model):
    X, y, group = people
    new = np.arange(1800) % 2 == 0
    curve = ft.frontier(
        model,
        X,
        y,
        sensitive_features=group,
        parity_weights=[0.0, 1.0],
        cv=[(np.flatnonzero(~new), np.flatnonzero(new))],
    )
    plain = ft.TransportClassifier(parity_weight=0.0).fit(X[~new], y[~new], sensitive_features=group[~new])
    scores, groups = plain.predict_proba(X[new])[:, 1], group[new]
    assert curve.mean("rank_disparity")[0] == pytest.approx(rank_disparity(scores, sensitive_features=groups))
    for name in ("pairwise_disparity", "criterion_disparity"):
        assert curve.mean(name)[0] == pytest.approx(pairwise_disparity(scores, sensitive_features=groups))
