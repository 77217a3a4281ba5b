"""Cross-group areas under the ROC curve against scikit-learn, by hand, and by simulation."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from tests.auditing.rows import quick, rows_at_random

import fairtransport as ft
from fairtransport.auditing.errors.summary import estimate_cross_auc

QUICK = quick(100)
ROWS = {"n": 900, "shift": 0.2, "decimals": 2}


@pytest.mark.parametrize("weighted", [False, True])
def test_areas_by_sklearn(weighted):
    scores, labels, groups, weights = rows_at_random(**ROWS)
    mass = weights if weighted else np.ones(scores.size)
    result = ft.audit(scores, labels, sensitive_features=groups, sample_weight=mass if weighted else None, **QUICK)
    crossed = result.cross_auc
    assert crossed.groups == (0, 1, 2)
    for i, one in enumerate("abc"):
        for j, other in enumerate("abc"):
            rows = ((groups == one) & (labels == 1)) | ((groups == other) & (labels == 0))
            expected = roc_auc_score(labels[rows], scores[rows], sample_weight=mass[rows])
            assert crossed.areas[i][j].value == pytest.approx(expected, abs=1e-12)
            assert crossed.areas[i][j].low < expected < crossed.areas[i][j].high
        assert crossed.areas[i][i] == result.groups[i].auc


def test_the_largest_difference_is_between_a_group_and_the_one_scored_lower():
    scores, labels, groups, _ = rows_at_random(**{**ROWS, "n": 3000})
    crossed = ft.audit(scores, labels, sensitive_features=groups, **QUICK).cross_auc
    one, other = crossed.pair
    assert other == 1
    assert crossed.disparity.value == pytest.approx(crossed.areas[one][other].value - crossed.areas[other][one].value)
    assert 0 < crossed.disparity.low < crossed.disparity.value < crossed.disparity.high


def test_a_group_with_one_label_only_has_half_of_the_areas():
    scores, labels, groups, _ = rows_at_random(**ROWS)
    labels[groups == "c"] = 0
    crossed = ft.audit(scores, labels, sensitive_features=groups, **QUICK).cross_auc
    assert crossed.areas[2] == (None, None, None)
    assert crossed.areas[0][2] is not None
    assert set(crossed.pair) == {0, 1}


@pytest.mark.trust
def test_intervals_cover_the_truth(estimate):
    """Scores of all rows are uniform: every area is one half, and so no difference."""
    rng = np.random.default_rng(0)
    inside = null = 0
    n_tables = 200
    for seed in range(n_tables):
        groups, labels = rng.integers(0, 3, 400), rng.integers(0, 2, 400)
        crossed = estimate(estimate_cross_auc, rng.random(400), labels, groups, seed=seed)
        inside += sum(area.low <= 0.5 <= area.high for row in crossed.areas for area in row)
        null += crossed.disparity.low == 0
    assert 0.93 <= inside / (9 * n_tables) <= 0.97
    assert null >= 0.93 * n_tables
