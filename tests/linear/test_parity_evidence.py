"""What held-out rows can show about parity: figures against permutations, error rates by simulation."""

import numpy as np
import pytest
from tests.worlds import demographic_parity

from fairtransport.groups import make_groups
from fairtransport.metrics import noise_floor, pairwise_disparity, rank_disparity
from fairtransport.training.outcome import groups_differ, parity_evidence, shown_by_chance

LARGE, UNEVEN = (8_000, 8_000), (1_200, 560, 140, 100)


def evidence_of(scores, codes, weights=None):
    return parity_evidence(scores, demographic_parity(make_groups(codes), row_weights=weights))


def simulated(sizes, shift, seed):
    """Return scores of groups of which every other one is shifted, and their groups."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    scores = 1.0 / (1.0 + np.exp(1.5 - rng.normal(size=len(codes)) - shift * (codes % 2)))
    return scores, codes


def true_difference(sizes, shift):
    """Return the mean difference of selection rates of so many people that chance shows next to nothing."""
    scores, codes = simulated(tuple(300_000 * size // sum(sizes) for size in sizes), shift, 1_000)
    return rank_disparity(scores, sensitive_features=codes)


@pytest.mark.parametrize("sizes", [(300, 200), UNEVEN, (270, 30)])
@pytest.mark.parametrize("shift", [0.0, 0.4])
def test_figures_are_those_of_permuted_groups(sizes, shift):
    scores, codes = simulated(sizes, shift, 0)
    evidence = evidence_of(scores, codes)
    floor = noise_floor(pairwise_disparity, scores, sensitive_features=codes, n_shuffles=400, random_state=0)
    assert evidence.disparity == pytest.approx(floor.observed, rel=0.02)
    assert evidence.floor == pytest.approx(floor.mean, rel=0.06)
    assert evidence.limit - evidence.disparity == pytest.approx(np.quantile(floor.values, 0.95), rel=0.12)
    assert evidence.p_value == pytest.approx(floor.p_value, abs=0.08)
    assert evidence.n_rows == len(codes)


def test_integer_weights_are_copies_of_rows():
    scores, codes = simulated((300, 200), 0.3, 1)
    weights = np.random.default_rng(2).integers(1, 4, size=500)
    weighted = evidence_of(scores, codes, weights.astype(float))
    copies = evidence_of(np.repeat(scores, weights), np.repeat(codes, weights))
    for name in ("disparity", "floor", "limit", "rate_limit"):
        assert getattr(weighted, name) == pytest.approx(getattr(copies, name), rel=0.01)


def test_increasing_maps_of_scores_do_not_change_the_limit_of_rates():
    scores, codes = simulated(UNEVEN, 0.2, 3)
    one, other = (evidence_of(values, codes).rate_limit for values in (scores, 1_000.0 * np.log(scores) + 5.0))
    assert one == pytest.approx(other, rel=1e-12)


@pytest.mark.trust
@pytest.mark.parametrize(
    ("sizes", "shift"), [((60, 40), 0.0), ((60, 40), 0.5), (LARGE, 0.19), (UNEVEN, 0.3), ((400, 300, 200, 50, 20), 0.3)]
)
def test_the_limit_is_above_the_truth_in_95_of_100_samples(sizes, shift):
    truth = true_difference(sizes, shift)
    limits = [evidence_of(*simulated(sizes, shift, seed)).rate_limit for seed in range(100)]
    assert np.mean(np.array(limits) >= truth) >= 0.92  # two standard errors of 100 samples below .95


def test_large_groups_at_parity_are_seldom_warned_of():
    shown = [evidence_of(*simulated(LARGE, 0.0, seed)).shows_parity for seed in range(40)]
    assert np.mean(shown) >= 0.9


@pytest.mark.parametrize(("sizes", "shift"), [(LARGE, 0.08), ((300, 200), 0.08), (UNEVEN, 0.12)])
def test_differences_of_more_than_two_points_are_warned_of(sizes, shift):
    assert true_difference(sizes, shift) >= 0.02
    shown = [evidence_of(*simulated(sizes, shift, seed)).shows_parity for seed in range(40)]
    assert np.mean(shown) <= 0.05


@pytest.mark.trust
@pytest.mark.parametrize(("times", "warned"), [(2.0, 0.2), (3.0, 0.6), (4.0, 0.85)])
def test_multiples_of_the_noise_floor_in_large_groups(times, warned):
    """Of two groups k floors are about .8 k standard errors, so that a test of level .05 has these powers."""
    floor = np.mean([evidence_of(*simulated(LARGE, 0.0, seed)).floor for seed in range(5)])
    shift = 0.01 * times
    for _ in range(3):  # the shift whose disparity is this multiple
        scores, codes = simulated((250_000, 250_000), shift, 0)
        shift *= times * floor / pairwise_disparity(scores, sensitive_features=codes)
    shown = [evidence_of(*simulated(LARGE, shift, seed)).shows_parity for seed in range(100)]
    assert 1.0 - np.mean(shown) >= warned


def test_limits_of_rows_that_a_model_was_fitted_to_allow_for_a_second_sample():
    scores, codes = simulated(UNEVEN, 0.2, 4)
    pairs = demographic_parity(make_groups(codes))
    new, fitted = (parity_evidence(scores, pairs, fitted=fitted) for fitted in (False, True))
    assert (new.disparity, new.floor, new.p_value) == (fitted.disparity, fitted.floor, fitted.p_value)
    assert fitted.limit - fitted.disparity == pytest.approx(np.sqrt(2.0) * (new.limit - new.disparity))
    assert fitted.rate_limit > new.rate_limit


def test_groups_that_chance_sets_apart_do_not_differ_and_tiny_ones_hide_nothing():
    differ = [
        groups_differ(scores, demographic_parity(make_groups(codes)))
        for scores, codes in (simulated(UNEVEN, 0.0, seed) for seed in range(60))
    ]
    assert np.mean(differ) <= 0.05
    scores, codes = simulated((2_000, 2_000, *[12] * 20), 0.25, 5)
    pairs = demographic_parity(make_groups(codes))
    assert groups_differ(scores, pairs)
    assert parity_evidence(scores, pairs).p_value > 0.05  # the mean over all pairs is that of the tiny groups


@pytest.mark.parametrize("sizes", [(300, 200), (60,) * 20])  # few and many groups: their noise is kept, or drawn anew
def test_chance_of_several_scores_is_that_of_each(sizes):
    scores, codes = simulated(sizes, 0.3, 4)
    pairs = demographic_parity(make_groups(codes))
    both = shown_by_chance(pairs, scores, scores**3)
    for one, chance in zip((scores, scores**3), both, strict=True):
        assert parity_evidence(one, pairs, chance=chance) == parity_evidence(one, pairs)
