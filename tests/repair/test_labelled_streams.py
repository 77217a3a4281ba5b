"""Repairs with a criterion that needs labels, in batches: partial_fit works with labels and refuses without."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport.repair import OnlineSettings
from fairtransport.stream import ContinualAdjuster

from .test_criteria import distance


def world(seed, n):
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n)
    y = (rng.random(n) < 0.3 + 0.2 * group).astype(int)
    x = rng.normal(size=n) + 1.2 * y + 0.8 * group - 1
    return expit(x), y, np.array(["a", "b"])[group]


@pytest.mark.parametrize("criterion", ["equal_opportunity", "equalized_odds"])
def test_batches_with_labels_reach_what_a_fit_reaches(criterion):
    repair = ft.QuantileRepair(criterion=criterion, online=OnlineSettings(1e9))
    batches = [world(seed, 1000) for seed in range(6)]
    for scores, y, group in batches:
        repair.partial_fit(scores, y, sensitive_features=group)
    scores, y, group = (np.concatenate(columns) for columns in zip(*batches, strict=True))
    whole = ft.QuantileRepair(criterion=criterion).fit(scores, y, sensitive_features=group)
    after, expected = (one.transform(scores, sensitive_features=group) for one in (repair, whole))
    assert distance(after, y, group, 1) < distance(scores, y, group, 1) / 2
    assert np.abs(after - expected).mean() < 0.01
    positive = y == 1
    if criterion == "equal_opportunity":
        assert distance(after, y, group, 1) < 4e-3
        assert repair.counted_.weights.sum() == pytest.approx(positive.sum())
    only_negative = scores[~positive][:5], y[~positive][:5]  # a batch may have one label
    repair.partial_fit(*only_negative, sensitive_features=group[~positive][:5])


@pytest.mark.parametrize("criterion", ["equal_opportunity", "equalized_odds"])
def test_batches_without_labels_are_refused_with_the_reason(criterion):
    scores, y, group = world(0, 500)
    repair = ft.QuantileRepair(criterion=criterion)
    for _ in range(2):
        with pytest.raises(
            ValueError, match=f"criterion='{criterion}' compares people with the same label, so it needs y"
        ):
            repair.partial_fit(scores, sensitive_features=group)
        repair.partial_fit(scores, y, sensitive_features=group)


def test_a_fitted_repair_continues_for_equal_opportunity_and_begins_anew_for_equalized_odds():
    scores, y, group = world(1, 2000)
    repair = ft.QuantileRepair(criterion="equal_opportunity").fit(scores, y, sensitive_features=group)
    before = repair.transform(scores, sensitive_features=group)
    repair.partial_fit(scores[:20], y[:20], sensitive_features=group[:20])
    assert np.abs(repair.transform(scores, sensitive_features=group) - before).mean() < 0.01
    odds = ft.QuantileRepair(criterion="equalized_odds").fit(scores, y, sensitive_features=group)
    with pytest.raises(ValueError, match="do not tell which rows had which label"):
        odds.partial_fit(scores, y, sensitive_features=group)


def test_classifiers_learn_from_labels_that_arrive_later():
    scores, y, group = world(2, 1500)
    X, words = np.column_stack((scores, group == "a")), np.where(y == 1, "yes", "no")
    model = ft.QuantileRepairClassifier(LogisticRegression(), repair=ft.QuantileRepair(criterion="equal_opportunity"))
    model.fit(X, words, sensitive_features=group)
    with pytest.raises(ValueError, match="needs y"):
        model.partial_fit(X[:10], sensitive_features=group[:10])
    model.partial_fit(X[:10], words[:10], sensitive_features=group[:10])
    with pytest.raises(ValueError, match="labels that the classifier was not fitted with"):
        model.partial_fit(X[:10], y[:10], sensitive_features=group[:10])
    fitted = ft.QuantileRepairClassifier(
        LogisticRegression().fit(X, words), repair=ft.QuantileRepair(criterion="equalized_odds")
    )
    for _ in range(2):
        fitted.partial_fit(X, words, sensitive_features=group)
    after = fitted.predict_proba(X, sensitive_features=group)[:, 1]
    assert distance(after, y, group, 0) + distance(after, y, group, 1) < 0.1


def test_a_stream_without_labels_refuses_such_a_model(tmp_path):
    scores, y, group = world(3, 500)
    repair = ft.QuantileRepair(criterion="equal_opportunity").fit(scores, y, sensitive_features=group)
    with pytest.raises(ValueError, match="A stream has no labels"):
        ContinualAdjuster(repair)
    within = ft.QuantileRepair().fit(scores, sensitive_features=group, strata=y)
    with pytest.raises(ValueError, match="A stream has no strata"):
        ContinualAdjuster(within)
