"""QuantileRepair: equal distributions, one fixed monotone map for each group, and no score in an error message."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

from fairtransport import GroupPolicy, QuantileRepair, make_groups
from fairtransport.metrics import noise_floor, strong_pairwise_disparity, wasserstein_disparity

WORDS = ["barycenter", "barycenter_w2", "pooled"]
CANARY = 0.123454321


def own_maps(*arguments, **options):
    """Every group has its own map, however few its rows."""
    return QuantileRepair(*arguments, **{"groups": GroupPolicy(min_size=1), **options})


def population(n, seed=0):
    """Three groups of very different sizes and score distributions."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], size=n, p=[0.1, 0.3, 0.6])
    low, high = np.array([[1, 6], [2, 3], [4, 3]])[np.searchsorted(["a", "b", "c"], group)].T
    return rng.beta(low, high), group


def test_maps_of_a_worked_example():
    # Group a has levels 1/2 and 1 at .2 and .4; b has 1/4 to 1 at .5, .6, .8, 1.
    # Their barycenter (middle of two quantile functions) is .35, .4, .6, .7 at levels 1/4 to 1.
    scores, group = [0.4, 0.5, 0.2, 0.6, 1.0, 0.8], ["a", "b", "a", "b", "b", "b"]
    repair = own_maps("barycenter").fit(scores, sensitive_features=group)
    mean_low, mean_high = (0.35 + 0.4) / 2, (0.6 + 0.7) / 2
    expected = [mean_high, 0.35, mean_low, 0.4, 0.7, 0.6]
    assert repair.transform(scores, sensitive_features=group) == pytest.approx(expected, abs=1e-15)
    # Between knots linear, beyond them constant.
    new = repair.transform([0.3, 0.0, 0.9, 0.55, 1.0], sensitive_features=["a", "a", "a", "b", "b"])
    assert new == pytest.approx([(mean_low + mean_high) / 2, mean_low, mean_high, 0.375, 0.7], abs=1e-15)


@pytest.mark.parametrize("target", [*WORDS, "b"])
def test_groups_of_unequal_sizes_become_equal_up_to_their_resolution(target):
    scores, group = population(5000)
    repair = own_maps(target).fit(scores, sensitive_features=group)
    out = repair.transform(scores, sensitive_features=group)
    smallest = make_groups(group).counts.min()
    assert strong_pairwise_disparity(scores, sensitive_features=group) > 0.5
    assert strong_pairwise_disparity(out, sensitive_features=group) < 1 / smallest
    assert wasserstein_disparity(out, sensitive_features=group, target=repair.target_) < 1 / smallest


def test_a_group_or_scores_as_target():
    scores, group = population(3000)
    rows = group == "b"
    own = own_maps("b").fit_transform(scores, sensitive_features=group)
    assert np.array_equal(own[rows], scores[rows])
    given_scores = own_maps(scores[rows]).fit_transform(scores, sensitive_features=group)
    assert np.array_equal(given_scores, own)


def test_the_w2_barycenter_moves_scores_least_in_mean_square():
    scores, group = population(5000)
    moved = {}
    for target in [*WORDS, "a", "b", "c"]:
        out = own_maps(target).fit_transform(scores, sensitive_features=group)
        moved[target] = np.mean((out - scores) ** 2)
    assert min(moved, key=moved.get) == "barycenter_w2"


def test_new_rows_are_as_equal_as_chance_lets_them():
    scores, group = population(40_000)
    repair = own_maps("barycenter_w2").fit(scores, sensitive_features=group)
    scores, group = population(4000, seed=1)
    out = repair.transform(scores, sensitive_features=group)
    before = noise_floor(strong_pairwise_disparity, scores, sensitive_features=group, random_state=0)
    after = noise_floor(strong_pairwise_disparity, out, sensitive_features=group, random_state=0)
    assert before.observed > before.mean + 20 * before.sd
    assert after.observed < after.mean + 3 * after.sd


def test_scores_that_differ_by_rounding_only_are_ties():
    rng = np.random.default_rng(0)
    exact = np.repeat([0.2, 0.5, 0.9], 1000)
    group = rng.integers(2, size=exact.size)
    exact[group == 1] = rng.random(np.count_nonzero(group == 1))
    noisy = exact.copy()
    half = rng.random(exact.size) < 0.5
    noisy[half] = np.nextafter(noisy[half], 1)
    plain = own_maps().fit(exact, sensitive_features=group)
    repair = own_maps().fit(noisy, sensitive_features=group)
    out = repair.transform(noisy, sensitive_features=group)
    assert [np.unique(out[(group == 0) & (np.round(exact, 6) == s)]).size for s in (0.2, 0.5, 0.9)] == [1, 1, 1]
    assert out == pytest.approx(plain.transform(exact, sensitive_features=group), abs=1e-9)
    assert repair.maps_[0].knots.size == 6  # all distinct scores are kept


def test_very_small_scores_are_not_taken_for_ties():
    scores, group = np.geomspace(1e-30, 1e-2, 200), np.tile(["a", "b"], 100)
    repair = own_maps(np.linspace(0, 1, 100)).fit(scores, sensitive_features=group)
    assert np.unique(repair.transform(scores[::2], sensitive_features=group[::2])).size == 100


def test_a_group_of_one_row_gets_the_mean_of_the_target():
    scores, group = [0.9, 0.2, 0.4], ["a", "b", "b"]
    repair = own_maps("b").fit(scores, sensitive_features=group)
    assert repair.transform([0.0, 1.0], sensitive_features=["a", "a"]) == pytest.approx([0.3, 0.3])


@pytest.mark.parametrize("make", [list, pd.Series, pl.Series, lambda s: s[:, None], lambda s: pd.DataFrame({"s": s})])
def test_scores_of_any_kind(make):
    scores, group = population(100)
    scores.setflags(write=False)
    out = own_maps().fit_transform(make(scores), sensitive_features=group)
    assert out.shape == (100,)
    assert out.dtype == np.float64
    assert np.array_equal(out, own_maps().fit_transform(scores, sensitive_features=group))


SCORES, GROUP = [0.1, 0.2, CANARY, 0.4], ["canary-f", "canary-f", "canary-m", "canary-m"]
TWO = {"race": GROUP, "sex": ["x", "y", "x", "y"]}
WRONG_FIT = {
    "no seed": ({"random_state": None}, {}, ValueError, "random_state must be an integer"),
    "target out of range": ({"target": [0.5, 1.0 + CANARY]}, {}, ValueError, "target outside"),
    "overlapping groups": (
        {"groups": GroupPolicy(crossed=False)},
        {"sensitive_features": TWO},
        ValueError,
        "do not overlap",
    ),
    "logits": ({}, {"scores": [0.1, -CANARY, 3.0, 0.2]}, ValueError, "2 of 4 values outside [0, 1]"),
    "NaN": ({}, {"scores": [0.1, np.nan, CANARY, 0.2]}, ValueError, "1 NaN or infinite"),
    "words as scores": ({}, {"scores": ["low", "high", "low", "low"]}, TypeError, "must contain numbers"),
    "two columns": ({}, {"scores": np.full((4, 2), CANARY)}, ValueError, "one dimension"),
    "nobody": ({}, {"scores": [], "sensitive_features": []}, ValueError, "scores is empty"),
    "constant": ({}, {"scores": [CANARY] * 4}, ValueError, "All 4 scores are equal, so there is nothing to repair"),
    "constant where weighed": (
        {},
        {"scores": [0.1, CANARY, CANARY, 0.2], "sample_weight": [0, 1, 1, 0]},
        ValueError,
        "All 2 scores are equal",
    ),
    "no groups": ({}, {"sensitive_features": None}, ValueError, "needs sensitive_features"),
    "one group": ({}, {"sensitive_features": ["canary-f"] * 4}, ValueError, "at least 2"),
    "too few rows": ({}, {"sensitive_features": GROUP[:3]}, ValueError, "sensitive_features has 3 rows"),
    "weights too short": ({}, {"sample_weight": [1, 1]}, ValueError, "sample_weight has 2 rows"),
    "negative weight": ({}, {"sample_weight": [1, 1, -1, 1]}, ValueError, "1 negative"),
    "group without weight": ({}, {"sample_weight": [1, 1, 0, 0]}, ValueError, "1 of 2 groups have total"),
}  # fmt: skip
WRONG_TRANSFORM = {
    "unseen group": ({"sensitive_features": ["canary-f", "canary-x", "canary-m", "canary-f"]}, "1 of 4 rows"),
    "missing group": ({"sensitive_features": ["canary-f", None, "canary-m", "canary-f"]}, "missing values in 1 row"),
    "no groups": ({"sensitive_features": None}, "needs sensitive_features"),
    "too few rows": ({"sensitive_features": GROUP[:3]}, "sensitive_features has 3 rows"),
    "logits": ({"scores": [0.1, -CANARY, 3.0, 0.2]}, "2 of 4 values outside"),
    "NaN": ({"scores": [0.1, np.nan, CANARY, 0.2]}, "1 NaN or infinite"),
}


def tells_nobody(message):
    return not re.search(r"canary|12345|0\.1\b", message)


@pytest.mark.parametrize("case", WRONG_FIT)
def test_what_fit_refuses_and_tells(case):
    options, given_data, kind, message = WRONG_FIT[case]
    data = {"scores": SCORES, "sensitive_features": GROUP, **given_data}
    with pytest.raises(kind, match=re.escape(message)) as caught:
        own_maps(**options).fit(**data)
    assert tells_nobody(str(caught.value))


@pytest.mark.parametrize("case", WRONG_TRANSFORM)
def test_what_transform_refuses_and_tells(case):
    repair = own_maps().fit(SCORES, sensitive_features=GROUP)
    given_data, message = WRONG_TRANSFORM[case]
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        repair.transform(**{"scores": SCORES, "sensitive_features": GROUP, **given_data})
    assert tells_nobody(str(caught.value))


def test_the_repr_of_a_fitted_repair_contains_no_data():
    repair = own_maps().fit(SCORES, sensitive_features=GROUP)
    assert tells_nobody(repr(repair) + str(repair) + repr(repair.groups_))


def test_transform_before_fit():
    with pytest.raises(NotFittedError):
        own_maps().transform(SCORES, sensitive_features=GROUP)


def test_an_amount_set_after_fit_is_used_and_checked():
    repair = own_maps().fit(SCORES, sensitive_features=GROUP)
    out = repair.set_params(amount=0.0).transform(SCORES, sensitive_features=GROUP)
    assert out.tolist() == SCORES
    with pytest.raises(ValueError, match="amount must be"):
        repair.set_params(amount=2.0).transform(SCORES, sensitive_features=GROUP)


def test_a_failed_fit_leaves_the_old_maps():
    repair = own_maps().fit(SCORES, sensitive_features=GROUP)
    maps = repair.maps_
    with pytest.raises(ValueError, match="nothing to repair"):
        repair.fit([0.5] * 4, sensitive_features=GROUP)
    assert repair.maps_ is maps
