"""The three disparities against their definition, scipy, hand computation and their invariances."""

import re
import tracemalloc
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import wasserstein_distance
from tests.properties.drawn import scored

from fairtransport import GroupPolicy
from fairtransport.groups import make_groups
from fairtransport.metrics import (
    disparities,
    pairwise_disparity,
    pairwise_distances,
    strong_demographic_disparity,
    strong_pairwise_disparity,
    wasserstein_disparity,
)
from fairtransport.transport.line import Sample, wasserstein
from fairtransport.transport.targets import w1_barycenter

CANARY = 0.123454321
DISPARITIES = [wasserstein_disparity, strong_demographic_disparity, strong_pairwise_disparity]
EVERY = [*DISPARITIES, pairwise_distances, disparities]


def audited_at_random(seed, n=200):
    rng = np.random.default_rng(seed)
    groups = rng.choice(["a", "b", "c", "d"], n, p=[0.5, 0.3, 0.15, 0.05])
    groups[:4] = ["a", "b", "c", "d"]
    scores = rng.beta(2, 3, n) ** (1 + (groups == "b") + 0.5 * (groups == "d"))
    return np.round(scores, 2) if seed % 2 else scores, groups


def mean_over_thresholds(scores, groups, pairs):
    """The paper's E over tau ~ U[0, 1], piece by piece: shares above tau change at scores only."""
    cuts = np.unique(np.concatenate([[0.0, 1.0], scores]))
    middles, lengths = (cuts[1:] + cuts[:-1]) / 2, np.diff(cuts)
    above = {label: [np.mean(scores[groups == label] > tau) for tau in middles] for label in np.unique(groups)}
    above["everyone"] = [np.mean(scores > tau) for tau in middles]
    return sum(lengths @ np.abs(np.subtract(above[a], above[b])) for a, b in pairs)


@given(scored(n_rows=1))
def test_sdd_and_spdd_are_averages_over_thresholds(drawn):
    scores, groups = drawn
    labels = np.unique(groups)
    sdd = mean_over_thresholds(scores, groups, [(label, "everyone") for label in labels])
    spdd = mean_over_thresholds(scores, groups, combinations(labels, 2))
    assert strong_demographic_disparity(scores, sensitive_features=groups) == pytest.approx(sdd, abs=1e-12)
    assert strong_pairwise_disparity(scores, sensitive_features=groups) == pytest.approx(spdd, abs=1e-12)


@pytest.mark.parametrize("seed", range(7))
def test_against_scipy_pair_by_pair(seed):
    scores, groups = audited_at_random(seed)
    if seed == 6:
        scores = scores**60  # far below the numbers that leave room for a group beside a score
    elif seed % 3 == 0:
        groups[groups == "d"] = "a"  # an odd number of groups
    given_weights = np.random.default_rng(seed).random(scores.size) if 1 < seed < 6 else None
    weights = np.ones(scores.size) if given_weights is None else given_weights
    labels = np.unique(groups)

    def w1(first, second):
        return wasserstein_distance(scores[first], scores[second], weights[first], weights[second])

    matrix = pairwise_distances(scores, sensitive_features=groups, sample_weight=given_weights)
    expected = [[w1(groups == a, groups == b) for b in labels] for a in labels]
    assert matrix == pytest.approx(np.array(expected), abs=1e-13)
    assert np.array_equal(matrix, matrix.T)
    everyone = np.ones(scores.size, dtype=bool)
    sdd = sum(w1(groups == a, everyone) for a in labels)
    found = disparities(scores, sensitive_features=groups, sample_weight=given_weights)
    samples = [Sample.from_values(scores[groups == a], weights[groups == a]) for a in labels]
    middle = w1_barycenter(samples)
    assert found["wasserstein_disparity"] == pytest.approx(sum(wasserstein(own, middle) for own in samples), abs=1e-13)
    assert found["strong_demographic_disparity"] == pytest.approx(sdd, abs=1e-13)
    assert found["strong_pairwise_disparity"] == pytest.approx(np.sum(expected) / 2, abs=1e-13)

    by_label = sum(w1(groups == a, groups == "b") for a in labels)
    assert wasserstein_disparity(scores, sensitive_features=groups, sample_weight=weights, target="b") == pytest.approx(
        by_label, abs=1e-13
    )
    target = np.array([0.2, 0.2, 0.9])
    by_array = sum(wasserstein_distance(scores[groups == a], target, weights[groups == a]) for a in labels)
    assert wasserstein_disparity(
        scores, sensitive_features=groups, sample_weight=weights, target=target
    ) == pytest.approx(by_array, abs=1e-13)


@given(scored(n_rows=1))
def test_no_target_is_nearer_than_the_barycenter(drawn):
    scores, groups = drawn
    nearest = wasserstein_disparity(scores, sensitive_features=groups)
    for target in ("barycenter_w2", "pooled", 0, 1, scores, [0.5]):
        assert nearest <= wasserstein_disparity(scores, sensitive_features=groups, target=target) + 1e-12


def test_sizes_are_weights_where_there_are_weights():
    scores, groups, weights = np.array([0.0, 0.0, 1.0]), np.array(["a", "a", "b"]), np.array([0.5, 0.5, 3.0])
    # W2 barycenter with weights 1 and 3: 0.75.
    found = wasserstein_disparity(scores, sensitive_features=groups, sample_weight=weights, target="barycenter_w2")
    assert found == pytest.approx(0.75 + 0.25)


def test_a_label_or_a_name_of_crossed_groups():
    table = {"race": ["B", "W", "W", "B"], "sex": ["F", "F", "M", "M"]}
    scores = [0.0, 0.25, 0.5, 1.0]
    by_label = wasserstein_disparity(scores, sensitive_features=table, target=("W", "F"))
    assert by_label == pytest.approx(0.25 + 0 + 0.25 + 0.75)
    assert wasserstein_disparity(scores, sensitive_features=table, target="W, F") == by_label


def test_equal_groups_have_distance_exactly_zero():
    rng = np.random.default_rng(0)
    one = rng.random(7)
    scores = np.concatenate([one, np.repeat(one, 3), np.repeat(one, 10)])  # 7, 21 and 70 rows
    groups = np.repeat(["a", "b", "c"], [7, 21, 70])
    assert set(disparities(scores, sensitive_features=groups).values()) == {0.0}
    assert set(disparities(np.full(98, 0.3), sensitive_features=groups).values()) == {0.0}


def test_overlapping_groups_count_everyone_once():
    table = {"race": ["B", "B", "W"], "sex": ["F", "M", "M"]}
    scores = np.array([0.0, 0.5, 1.0])
    rows = {"B": [0, 1], "W": [2], "F": [0], "M": [1, 2]}
    sdd = sum(wasserstein_distance(scores[part], scores) for part in rows.values())
    found = strong_demographic_disparity(scores, sensitive_features=table, groups=GroupPolicy(crossed=False))
    assert found == pytest.approx(sdd)
    assert wasserstein_disparity(
        scores, sensitive_features=table, groups=GroupPolicy(crossed=False), target="pooled"
    ) == pytest.approx(sdd)
    spdd = sum(wasserstein_distance(scores[a], scores[b]) for a, b in combinations(rows.values(), 2))
    assert strong_pairwise_disparity(
        scores, sensitive_features=table, groups=GroupPolicy(crossed=False)
    ) == pytest.approx(spdd)
    assert pairwise_distances(scores, sensitive_features=table, groups=GroupPolicy(crossed=False)).shape == (4, 4)


def test_all_at_once_is_one_by_one():
    scores, groups = audited_at_random(4)
    found = disparities(scores, sensitive_features=groups, target="pooled", sample_weight=scores)
    assert list(found) == [metric.__name__ for metric in DISPARITIES]
    for metric in DISPARITIES:
        options = {"target": "pooled"} if metric is wasserstein_disparity else {}
        one = metric(scores, sensitive_features=groups, sample_weight=scores, **options)
        assert found[metric.__name__] == one
        assert type(one) is float


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_of_no_group_count_for_everyone_only(weighted):
    scores = np.array([0.0, 0.2, 0.2, 0.7, 1.0, 0.4])
    weights = np.array([1.0, 2.0, 0.0, 1.0, 3.0, 1.0]) if weighted else np.ones(6)
    rows = [np.array([0, 1]), np.array([1, 3]), np.array([4])]  # row 1 in two groups, rows 2 and 5 in none
    groups = replace(make_groups([0, 1, 2]), memberships=(np.uint8([0, 0, 3, 1, 2, 3]), np.uint8([3, 1, 3, 3, 3, 3])))
    assert all(map(np.array_equal, groups.rows, rows))
    found = strong_demographic_disparity(scores, sensitive_features=groups, sample_weight=weights if weighted else None)
    assert found == pytest.approx(sum(wasserstein_distance(scores[r], scores, weights[r], weights) for r in rows))


def test_small_groups_count_equally_unless_they_are_dropped():
    rng = np.random.default_rng(0)
    scores, groups = np.append(rng.random(1000), [0.0, 1.0]), np.append(np.repeat(["a", "b"], 500), ["c", "d"])
    of_two = pairwise_disparity(scores[:1000], sensitive_features=groups[:1000])
    assert pairwise_disparity(scores, sensitive_features=groups) > 0.3 > of_two  # of 6 pairs, 5 have one of these
    dropped = GroupPolicy(small="drop")
    assert pairwise_disparity(scores, sensitive_features=groups, groups=dropped) == of_two


def test_zero_has_no_sign_and_may_be_all_there_is():
    assert set(disparities([0.0, -0.0], sensitive_features=["a", "b"]).values()) == {0.0}
    found = disparities([-0.0, 0.0, 1.0, 0.5], sensitive_features=["a", "b", "a", "b"])
    assert found["strong_pairwise_disparity"] == pytest.approx(0.25)


def test_memory_does_not_grow_with_rows_times_groups():
    rng = np.random.default_rng(0)
    n, n_groups = 100_000, 100
    groups = make_groups(rng.integers(0, n_groups, n))
    scores = rng.random(n)
    disparities(scores, sensitive_features=groups)  # compiled before it is watched
    pairwise_distances(scores, sensitive_features=groups)
    tracemalloc.start()
    try:
        disparities(scores, sensitive_features=groups)
        pairwise_distances(scores, sensitive_features=groups)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30 * n  # the full table of distribution functions takes 800 bytes a row


WRONG = [
    ([CANARY, 0.5], ["secret", "secret"], {}, "at least 2"),
    ([CANARY, 0.5, 1], ["secret", "b"], {}, "scores has 3 rows, but sensitive_features has 2"),
    ([CANARY, 1.5], ["secret", "b"], {}, "scores has 1 of 2 values outside [0, 1]"),
    ([CANARY, -1e-9], ["secret", "b"], {}, "scores has 1 of 2 values outside [0, 1]"),
    ([CANARY, np.nan], ["secret", "b"], {}, "scores has 1 NaN or infinite values"),
    ([], ["secret", "b"], {}, "scores is empty"),
    (["x", CANARY], ["secret", "b"], {}, "scores must contain numbers"),
    ([[CANARY, 0.5]], ["secret", "b"], {}, "scores must have one dimension; it has shape (1, 2)"),
    ([CANARY, 0.5], ["secret", None], {}, "missing values"),
    ([CANARY, 0.5], ["secret", "b"], {"groups": "each"}, "groups must be a GroupPolicy"),
    ([CANARY, 0.5], ["secret", "b"], {"groups": GroupPolicy(small="drop")}, "0 group(s)"),
    ([CANARY, 0.5], ["secret", "b"], {"sample_weight": [1]}, "sample_weight has 1 rows"),
    ([CANARY, 0.5], ["secret", "b"], {"sample_weight": [1, -1]}, "sample_weight has 1 negative"),
    ([CANARY, 0.5, 0.5], ["secret", "b", "c"], {"sample_weight": [0, 1, 0]}, "zero in all rows of 2 of 3 groups"),
]
WRONG_TARGETS = [
    ("secret b", "target must be one of 'barycenter', 'barycenter_w2', 'pooled', the label of one of the 2 groups"),
    (None, "target must be one of"),
    ([CANARY, 1.01], "target outside the score range: 1 of its 2 values"),
    ([], "target is empty"),
]


@pytest.mark.parametrize(
    ("metric", "scores", "groups", "options", "message"),
    [
        *((metric, *row) for metric in EVERY for row in WRONG),
        *(
            (metric, [CANARY, 0.5], ["secret", "b"], {"target": target}, message)
            for metric in (wasserstein_disparity, disparities)
            for target, message in WRONG_TARGETS
        ),
    ],
)
def test_errors_say_what_is_wrong_and_show_no_value(metric, scores, groups, options, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)) as caught:
        metric(scores, sensitive_features=groups, **options)
    assert not re.search(f"secret|{CANARY}", str(caught.value))
