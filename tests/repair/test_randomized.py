"""Randomised equalized odds: exact in every group and at every threshold, and the same in every call."""

import numpy as np
import pytest
from scipy.stats import norm

import fairtransport as ft
from fairtransport.repair._score_counts import ScoreCounts
from fairtransport.repair.randomized_maps import RandomizedMaps, row_draws


def binormal(seed, n, separations=(2.0, 1.0), shares=(0.3, 0.5)):
    """Two groups whose scores separate the labels by so many standard deviations."""
    rng = np.random.default_rng(seed)
    group = rng.integers(len(separations), size=n)
    y = (rng.random(n) < np.array(shares)[group]).astype(int)
    scores = norm.cdf(rng.normal(size=n) + y * np.array(separations)[group] - 0.7 * group)
    return scores, y, np.array(["a", "b", "c"])[group]


def fitted(seed=0, n=20_000, **options):
    scores, y, group = binormal(seed, n)
    repair = ft.QuantileRepair(criterion="equalized_odds", randomize=True, **options)
    return repair.fit(scores, y, sensitive_features=group)


def rates(scores, rows, thresholds):
    return (scores[rows][:, None] > thresholds).mean(axis=0)


@pytest.mark.parametrize("seed", range(12))
def test_distributions_given_the_label_are_equal_on_the_training_rows(seed):
    """In expectation over the draws, to rounding: whatever the number of groups, ties and shares of the labels."""
    rng = np.random.default_rng(seed)
    counts = []
    for _ in range(int(rng.integers(2, 5))):
        n = int(rng.integers(100, 2000))
        y = np.append([0, 1], rng.random(n - 2) < rng.uniform(0.2, 0.7)).astype(int)
        scores = np.round(norm.cdf(rng.normal(size=n) + y * rng.uniform(-0.2, 2) + rng.normal() / 2), seed % 5 + 1)
        counts.append(ScoreCounts.from_rows(scores, y))
    maps = RandomizedMaps.fit(counts, np.linspace(0, 1, 64), range(len(counts)))
    distributions = []
    for one, cuts, kernel in zip(counts, maps.cuts, maps.kernels, strict=True):
        classes = np.searchsorted(cuts, one.values, side="right")
        distributions.append([np.bincount(classes, share, len(kernel)) @ kernel for share in one.shares])
    np.testing.assert_allclose(distributions, np.broadcast_to(distributions[0], np.shape(distributions)), atol=1e-12)
    pooled = sum(one.masses.sum(axis=1) for one in counts)
    np.testing.assert_allclose(np.diff(maps.levels), pooled / pooled.sum() @ distributions[0], atol=1e-12)


def test_every_group_gets_the_lower_curve_of_a_binormal_model_on_fresh_rows():
    repair = fitted()
    scores, y, group = binormal(1, 40_000)
    after = repair.transform(scores, sensitive_features=group)
    thresholds = np.unique(after)[::50]
    curves = {
        (name, label): rates(after, (group == name) & (y == label), thresholds) for name in "ab" for label in (0, 1)
    }
    for label in (0, 1):
        n = min(np.count_nonzero((group == name) & (y == label)) for name in "ab")
        # Two samples differ by chance by up to 1.6 * sqrt(2 / n) at some threshold (Kolmogorov and Smirnov, 1 in 100);
        # the fit, to half as many rows, adds as much again and more.
        assert np.abs(curves["a", label] - curves["b", label]).max() < 3 * np.sqrt(2 / n)
    closed_form = norm.cdf(norm.ppf(np.clip(curves["a", 0], 1e-9, 1 - 1e-9)) + 1.0)
    assert np.abs(curves["a", 1] - closed_form).max() < 0.03
    before = [rates(scores, (group == name) & (y == 1), np.array([0.5]))[0] for name in "ab"]
    assert abs(before[0] - before[1]) > 0.2


def test_all_scores_together_have_the_target_distribution():
    for target in ("barycenter_w2", "pooled", "a", np.linspace(0.2, 0.6, 100)):
        repair = fitted(target=target)
        scores, _, group = binormal(0, 20_000)
        after = repair.transform(scores, sensitive_features=group)
        levels = np.linspace(0.05, 0.95, 19)
        np.testing.assert_allclose(np.quantile(after, levels), np.quantile(repair.target_, levels), atol=0.02)


def test_a_row_gets_the_same_score_in_every_call_and_batch():
    repair = fitted()
    scores, _, group = binormal(2, 500)
    first = repair.transform(scores, sensitive_features=group)
    assert np.array_equal(first, repair.transform(scores, sensitive_features=group))
    order = np.random.default_rng(0).permutation(500)
    assert np.array_equal(first[order], repair.transform(scores[order], sensitive_features=group[order]))
    assert np.array_equal(first[100:150], repair.transform(scores[100:150], sensitive_features=group[100:150]))
    noisy = scores * (1 + 1e-15)  # the last bits of a score depend on the size of a batch
    np.testing.assert_allclose(first, repair.transform(noisy, sensitive_features=group), atol=1e-9)
    repair.set_params(random_state=1)
    assert not np.allclose(first, repair.transform(scores, sensitive_features=group))


def test_people_with_one_score_get_different_draws_and_keys_identify_them():
    repair = fitted()
    scores, group = np.full(2000, 0.6), np.repeat("a", 2000)
    drawn = repair.transform(scores, sensitive_features=group)
    assert np.unique(drawn).size > 1000
    expected = repair.transform(scores, sensitive_features=group, expected=True)
    assert drawn.mean() == pytest.approx(expected[0], abs=4 * drawn.std() / np.sqrt(2000))
    keys = [f"customer {number}" for number in range(2000)]
    by_key = repair.transform(scores, sensitive_features=group, keys=keys)
    assert np.array_equal(by_key[::-1], repair.transform(scores, sensitive_features=group, keys=keys[::-1]))
    higher = repair.transform(scores + 0.2, sensitive_features=group, keys=keys)
    assert (higher >= by_key).all()  # a person keeps the draw, so that a higher score is never worse
    numbers = repair.transform(scores, sensitive_features=group, keys=np.arange(2000))
    assert np.array_equal(numbers, repair.transform(scores, sensitive_features=group, keys=list(map(str, range(2000)))))


def test_draws_are_uniform_and_do_not_depend_on_each_other():
    scores, groups = np.linspace(0, 1, 10_001), np.zeros(10_001, dtype=int)
    for draws in (row_draws(scores, groups, 0), row_draws(scores, groups, 0, np.arange(10_001))):
        np.testing.assert_allclose(np.histogram(draws, 10, (0, 1))[0] / 10_001, 0.1, atol=0.012)
        assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 0.03
    assert abs(np.corrcoef(row_draws(scores, groups, 0), row_draws(scores, groups, 1))[0, 1]) < 0.03
    assert abs(np.corrcoef(row_draws(scores, groups, 0), row_draws(scores, groups + 1, 0))[0, 1]) < 0.03


def test_expected_scores_are_the_mean_over_draws_and_need_no_seed():
    repair = fitted(n=4000)
    scores, _, group = binormal(3, 300)
    expected = repair.transform(scores, sensitive_features=group, expected=True)
    draws = []
    for seed in range(100):
        repair.random_state = seed
        draws.append(repair.transform(scores, sensitive_features=group))
        assert np.array_equal(expected, repair.transform(scores, sensitive_features=group, expected=True)) or seed > 3
    assert np.abs(np.mean(draws, axis=0) - expected).max() < 5 * np.std(draws, axis=0).max() / 10
    for name in "ab":  # higher scores are never expected to become lower ones
        order = np.argsort(scores[group == name])
        assert (np.diff(expected[group == name][order]) >= 0).all()


def test_what_randomised_repairs_cannot_do_raises():
    repair = fitted(n=2000)
    scores, y, group = binormal(7, 100)
    plain = ft.QuantileRepair().fit(scores, sensitive_features=group)
    strata = np.arange(100) % 2
    for call, options, message in (
        (repair.partial_fit, {"y": y}, "randomised repair cannot follow a stream"),
        (repair.fit, {"y": y, "strata": strata}, "randomize=True does not take strata"),
        (repair.transform, {"keys": [1, 2, 3]}, "keys has 3"),
        (repair.transform, {"keys": [None, *range(99)]}, "1 of 100 keys are missing"),
        (repair.transform, {"keys": [np.nan, np.nan, *np.arange(98.0)]}, "2 of 100 keys are missing"),
        (plain.transform, {"keys": np.arange(100)}, "keys are for randomize=True"),
    ):
        with pytest.raises(ValueError, match=message):
            call(scores, sensitive_features=group, **options)
    with pytest.raises(ValueError, match="randomised repair has no lookup table"):
        repair.lookup()
