"""Weights of pairs: what chance may show does not count."""

import numpy as np
import pytest
from scipy.stats import wasserstein_distance
from tests.worlds import demographic_parity

from fairtransport.criteria.criterion import chance_distances, weigh_by_reliability
from fairtransport.groups import make_groups


def grouped(sizes, shift=0.0, seed=0):
    """Scores of groups that differ by a shift from each to the next."""
    rng = np.random.default_rng(seed)
    code = np.repeat(np.arange(len(sizes)), sizes)
    return rng.beta(2, 3, code.size) + shift * code, demographic_parity(make_groups(code))


def weight_of(comparisons, a, b):
    """Return the weight of the pair of two groups, by their numbers."""
    names = np.array(comparisons.names)
    matches = [set(names[pair]) == {a, b} for pair in comparisons.pairs]
    return float(comparisons.weights[np.flatnonzero(matches)[0]])


@pytest.mark.parametrize("sizes", [(300, 200), (1000, 60), (80, 80)])
def test_chance_distances_are_those_of_simulation(sizes):
    """Means of 400 draws have a standard error of about 2.5 %."""
    rng = np.random.default_rng(0)
    simulated = np.mean([wasserstein_distance(rng.beta(2, 3, sizes[0]), rng.beta(2, 3, sizes[1])) for _ in range(400)])
    estimates = [chance_distances(*grouped(sizes, seed=seed))[0] for seed in range(20)]
    assert np.mean(estimates) == pytest.approx(simulated, rel=0.07)


def test_chance_of_a_pair_with_a_target_has_the_error_of_one_sample():
    rng = np.random.default_rng(1)
    scores, target = rng.random(600), (np.arange(4096) + 0.5) / 4096
    comparisons = demographic_parity(make_groups(np.repeat([0, 1], [200, 400])), target=target)
    simulated = np.mean([wasserstein_distance(rng.random(200), target) for _ in range(400)])
    assert chance_distances(scores, comparisons)[0] == pytest.approx(simulated, rel=0.1)


def test_weights_that_are_whole_numbers_are_copies():
    scores, comparisons = grouped((100, 150))
    weights = np.full(250, 4.0)
    weighted = demographic_parity(make_groups(np.repeat([0, 1], [100, 150])), row_weights=weights)
    np.testing.assert_allclose(chance_distances(scores, weighted), 0.5 * chance_distances(scores, comparisons))


def test_uneven_weights_count_as_fewer_rows():
    _, comparisons = grouped((100, 150))
    uneven = np.random.default_rng(0).lognormal(0.0, 1.5, 250)
    weighted = demographic_parity(make_groups(np.repeat([0, 1], [100, 150])), row_weights=uneven)
    assert (weighted.sizes < comparisons.sizes).all()
    for factor in (0.1, 7.3):
        same = demographic_parity(make_groups(np.repeat([0, 1], [100, 150])), row_weights=factor * uneven)
        np.testing.assert_allclose(same.sizes, weighted.sizes)


def test_tiny_groups_have_no_say_and_take_none():
    scores, comparisons = grouped((2000, 2000, 3, 12), shift=0.1)
    weighed = weigh_by_reliability(comparisons, scores)
    assert weight_of(weighed, 2, 3) == 0.0
    alone = weigh_by_reliability(*grouped((2000, 2000), shift=0.1)[::-1])
    assert weight_of(weighed, 0, 1) > weight_of(alone, 0, 1) - 0.01


def test_a_small_group_that_is_far_away_counts():
    scores, comparisons = grouped((2000, 2000, 40), shift=0.3)
    assert weight_of(weigh_by_reliability(comparisons, scores), 0, 2) > 0.6


def test_large_groups_that_agree_still_count():
    """So that they stay alike while others are moved."""
    rng = np.random.default_rng(0)
    code = np.repeat([0, 1, 2], 2000)
    scores = rng.beta(2, 3, 6000) + 0.2 * (code == 2)
    weighed = weigh_by_reliability(demographic_parity(make_groups(code)), scores)
    assert weight_of(weighed, 0, 1) > 0.7
    assert weight_of(weighed, 0, 2) > 0.7


def test_nothing_counts_where_nothing_differs_by_more_than_chance():
    """Beyond twice the mean by chance: about one draw in thirty."""
    none = [not weigh_by_reliability(*grouped((150, 250), seed=seed)[::-1]).weights.any() for seed in range(100)]
    assert np.mean(none) > 0.9


def test_weights_of_pairs_are_multiplied():
    scores, comparisons = grouped((500, 500, 500), shift=0.1)
    once = weigh_by_reliability(comparisons, scores)
    twice = weigh_by_reliability(comparisons.reweighted([2.0, 2.0, 0.0]), scores)
    np.testing.assert_allclose(twice.weights, once.weights * [2.0, 2.0, 0.0])
