"""Classical measures at one threshold, against scikit-learn's rates and shares counted by hand."""

import numpy as np
import pytest
from sklearn.metrics import recall_score

from fairtransport.metrics import conditional_demographic_disparity, equalized_odds_difference


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random(n).round(2), rng.integers(0, 2, n), rng.choice(list("abc"), n), rng.choice(4, n), rng.random(n)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("threshold", [0.25, 0.5])
def test_equalized_odds_is_that_of_recalls(weighted, threshold):
    scores, y, groups, _, weights = table()
    mass = weights if weighted else np.ones(scores.size)
    decided = (scores > threshold).astype(int)
    gaps = []
    for label, predicted in ((1, decided), (0, 1 - decided)):  # the false positive rate is 1 - recall of label 0
        rates = [
            recall_score(y[at], predicted[at] == 1 if label else predicted[at] == 0, sample_weight=mass[at])
            if label
            else recall_score(1 - y[at], predicted[at], sample_weight=mass[at])
            for at in (groups == name for name in "abc")
        ]
        gaps.append(max(rates) - min(rates))
    found = equalized_odds_difference(
        y, scores, sensitive_features=groups, threshold=threshold, sample_weight=mass if weighted else None
    )
    assert found == pytest.approx(max(gaps), abs=1e-12)


def test_a_group_without_a_label_is_left_out_of_its_rate():
    y, scores, groups = [1, 1, 0, 0, 0], [0.9, 0.9, 0.1, 0.1, 0.9], list("ababc")
    assert equalized_odds_difference(y, scores, sensitive_features=groups) == 1.0
    with pytest.raises(ValueError, match="no label has rows of two groups"):
        equalized_odds_difference([0, 1], [0.1, 0.9], sensitive_features=["a", "b"])


@pytest.mark.parametrize("weighted", [False, True])
def test_conditional_demographic_disparity_by_hand(weighted):
    scores, _, groups, region, weights = table()
    mass = weights if weighted else np.ones(scores.size)
    found = {
        group: conditional_demographic_disparity(
            scores, sensitive_features=groups, strata=region, group=group, sample_weight=mass if weighted else None
        )
        for group in "abc"
    }
    for group, value in found.items():
        total = 0.0
        for one in range(4):
            low, high = ((region == one) & mask for mask in (scores <= 0.5, scores > 0.5))
            shares = [mass[at & (groups == group)].sum() / mass[at].sum() for at in (low, high)]
            total += mass[region == one].sum() / mass.sum() * (shares[0] - shares[1])
        assert value == pytest.approx(total, abs=1e-12)
    assert sum(found.values()) == pytest.approx(0, abs=1e-12)  # what one group gains another loses
    options = {"sensitive_features": groups, "strata": region, "sample_weight": mass if weighted else None}
    assert conditional_demographic_disparity(scores, **options) == max(found.values())


def test_strata_explain_a_disparity():
    """Berkeley's admissions: women apply to departments that admit few; within departments there is no disparity."""
    department = np.repeat(["open", "closed"], 100)
    sex = np.r_[np.repeat(["F", "M"], [20, 80]), np.repeat(["F", "M"], [80, 20])]
    admitted = np.r_[np.tile([1, 1, 1, 0], 25), np.tile([0, 0, 0, 1], 25)].astype(float)
    options = {"sensitive_features": sex, "group": "F"}
    assert conditional_demographic_disparity(admitted, **options) == pytest.approx(0.3)
    assert conditional_demographic_disparity(admitted, strata=department, **options) == pytest.approx(0, abs=1e-12)


def test_where_everyone_is_selected_nothing_is_compared():
    assert conditional_demographic_disparity([0.9, 0.8], sensitive_features=["a", "b"]) == 0
    with pytest.raises(ValueError, match="strata has 1 rows"):
        conditional_demographic_disparity([0.9, 0.8], sensitive_features=["a", "b"], strata=[1])
