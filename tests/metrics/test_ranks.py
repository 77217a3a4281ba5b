"""Pooled ranks and their disparity: against scipy, invariant under increasing maps, with weights and ties."""

from itertools import combinations
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata, wasserstein_distance
from tests.properties.drawn import scored

from fairtransport import GroupPolicy
from fairtransport.groups import make_groups
from fairtransport.metrics import pairwise_disparity, pooled_ranks, rank_disparity, ranks

CANARY = 31.4159265
score = st.sampled_from([-2.0, 0.0, 0.5, 7.0]) | st.floats(-1e6, 1e6)


def by_scipy(scores, groups, weights=None):
    """Ranks of rankdata, mean over pairs of wasserstein_distance."""
    copies = np.ones(len(scores), dtype=int) if weights is None else np.asarray(weights)
    scores, groups = np.repeat(scores, copies), np.repeat(groups, copies)
    ranks = (rankdata(scores) - 0.5) / scores.size
    pairs = combinations(np.unique(groups), 2)
    return np.mean([wasserstein_distance(ranks[groups == one], ranks[groups == other]) for one, other in pairs])


@given(scored(score, n_rows=1))
def test_ranks_and_disparity_are_those_of_scipy(data):
    scores, groups = data
    assert pooled_ranks(scores) == pytest.approx((rankdata(scores) - 0.5) / scores.size, abs=1e-15)
    assert rank_disparity(scores, sensitive_features=groups) == pytest.approx(by_scipy(scores, groups), abs=1e-12)


@given(scored(score, n_rows=1), st.data())
def test_a_weight_of_k_equals_k_copies(data, more):
    scores, groups = data
    weights = np.array(more.draw(st.lists(st.integers(1, 4), min_size=scores.size, max_size=scores.size)))
    copied = pooled_ranks(np.repeat(scores, weights))
    assert np.repeat(pooled_ranks(scores, weights), weights) == pytest.approx(copied, abs=1e-14)
    found = rank_disparity(scores, sensitive_features=groups, sample_weight=weights)
    assert found == pytest.approx(by_scipy(scores, groups, weights), abs=1e-12)


@given(scored(st.integers(-50, 50), n_rows=1))
def test_an_increasing_map_changes_nothing(data):
    scores, groups = data
    plain = rank_disparity(scores, sensitive_features=groups)
    for moved in (scores * 0.5, scores / 50, np.exp(scores / 10), np.arctan(scores), scores**3 - 4.0):
        assert rank_disparity(moved, sensitive_features=groups) == plain  # to the last bit


def test_it_is_the_mean_difference_of_selection_rates():
    rng = np.random.default_rng(1)
    groups = rng.choice(["a", "b"], 300)
    scores = rng.normal(size=300) + (groups == "b")
    positions = pooled_ranks(scores)
    shares = (np.arange(300_000) + 0.5) / 300_000
    rates = [
        1 - np.searchsorted(np.sort(positions[groups == name]), 1 - shares) / np.sum(groups == name) for name in "ab"
    ]
    mean = np.abs(rates[0] - rates[1]).mean()
    assert rank_disparity(scores, sensitive_features=groups) == pytest.approx(mean, abs=1e-5)


def test_values_by_hand():
    assert pooled_ranks([5.0]).tolist() == [0.5]
    assert pooled_ranks([1.0, 1.0, 1.0]).tolist() == [0.5, 0.5, 0.5]
    assert pooled_ranks([2.0, 1.0], [3.0, 1.0]).tolist() == [0.625, 0.125]
    assert pooled_ranks([-0.0, 0.0]).tolist() == [0.5, 0.5]
    assert rank_disparity([4.0, 4.0, 4.0], sensitive_features=["a", "b", "b"]) == 0.0
    assert rank_disparity([1, 2, 3, 4], sensitive_features=["a", "a", "b", "b"]) == 0.5


def test_overlapping_groups_are_ranked_among_all_rows_once():
    table = {"race": list("BWWBW"), "sex": list("FFMMF")}
    scores = np.array([-3.0, 4.0, 10.0, 0.5, 4.0])
    ranks = pooled_ranks(scores)
    expected = pairwise_disparity(ranks, sensitive_features=table, groups=GroupPolicy(crossed=False))
    assert rank_disparity(scores, sensitive_features=table, groups=GroupPolicy(crossed=False)) == expected


@pytest.mark.parametrize("kind", [np.uint8, np.int32])
@pytest.mark.parametrize("sign", [1, -1])
@given(scores=arrays(np.float64, st.integers(1, 50), elements=st.floats(1e-9, 1) | st.sampled_from([0.0, -0.0, 1.0])))
def test_keys_sort_scores_with_their_codes(kind, sign, scores):
    codes = (np.arange(scores.size) % 5).astype(kind)
    scores = np.where(codes % 2, sign, 1) * scores
    with patch.object(ranks, "FEW_ROWS", 0):
        ascending, ordered = ranks._sort_with_codes(scores, codes, 4)
    order = np.lexsort((codes, scores))
    assert np.array_equal(ascending, scores[order])
    assert np.array_equal(ordered, codes[order])
    assert not np.signbit(ascending[ascending == 0]).any()


@pytest.mark.parametrize("policy", [GroupPolicy(), GroupPolicy(crossed=False)])
@pytest.mark.parametrize("weighted", [False, True])
def test_many_scores_are_compared_by_compiled_loops(policy, weighted):
    rng = np.random.default_rng(0)
    scores, table = rng.normal(size=2000).round(2), {"a": rng.integers(3, size=2000), "b": rng.integers(2, size=2000)}
    weights = rng.random(2000) if weighted else None
    few = [_all_distances(scores, make_groups(table, policy), weights)]
    with patch.object(ranks, "FEW_ROWS", 0):
        few.append(_all_distances(scores, make_groups(table, policy), weights))
    np.testing.assert_allclose(*few, rtol=1e-12, atol=1e-15)


def _all_distances(scores, groups, weights):
    ordered = ranks.sort_scores(scores, groups, weights)
    both = (ordered, ordered.ranked())
    return np.concatenate([np.append(each.distances(), each.distance_sums) for each in both])


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        ([1.0, np.nan], {}, "1 NaN or infinite"),
        ([1.0, CANARY, 2.0], {}, "3 rows"),
        ([1.0, 2.0], {"sample_weight": [1.0, 0.0]}, "zero in all rows of 1 of 2"),
        ([1.0, 2.0], {"sample_weight": [1.0]}, "1 rows"),
    ],
)
def test_bad_input_is_refused_without_a_score_in_the_message(scores, options, message):
    with pytest.raises(ValueError, match=message) as caught:
        rank_disparity(scores, sensitive_features=make_groups(["a", "b"]), **options)
    assert str(CANARY) not in str(caught.value)


@pytest.mark.parametrize("kind", ["probabilities", "ties", "signed", "wide", "with zeros"])
def test_many_scores_of_two_groups_are_ranked_in_one_pass(kind):
    """The integers that are sorted in place of scores lose nothing, signed zeros are ties."""
    rng = np.random.default_rng(0)
    scores, group = rng.random(150_000), rng.integers(2, size=150_000)
    scores += 0.1 * group
    change = {
        "ties": lambda s: np.round(s, 2), "signed": lambda s: s - 0.5, "wide": lambda s: np.exp(80.0 * s),
        "with zeros": lambda s: np.where(s < 0.3, np.copysign(0.0, 0.15 - s), s),
    }  # fmt: skip
    scores = change.get(kind, lambda s: s)(scores)
    one = rank_disparity(scores, sensitive_features=group)
    other = rank_disparity(scores, sensitive_features=group, sample_weight=np.ones(group.size))
    levels = (rankdata(scores) - 0.5) / scores.size
    assert one == pytest.approx(other, rel=1e-12)
    assert one == pytest.approx(wasserstein_distance(levels[group == 0], levels[group == 1]), rel=1e-9)
