"""Repair for equal opportunity and equalized odds: labels are used in fit only."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import wasserstein_distance
from tests.worlds import scores_by_label

import fairtransport as ft
from fairtransport.criteria import EqualizedOdds
from fairtransport.repair._score_counts import ScoreCounts
from fairtransport.repair.group_maps import _quantile_integral, _Unit, best_partial_repair, equalizing_images
from fairtransport.repair.group_maps import separation as separation_of_counts
from fairtransport.transport.line import quantile_map
from fairtransport.transport.targets import w2_barycenter

EQUAL = np.array([0.5, 0.5])


def distance(scores, y, group, label, weights=None):
    """Sum of distances between pairs of groups, of rows with one label, by scipy."""
    rows = [(group == name) & (y == label) for name in np.unique(group)]
    return sum(
        wasserstein_distance(
            scores[one], scores[other], *(None if weights is None else weights[r] for r in (one, other))
        )
        for one, other in combinations(rows, 2)
    )


def separation(scores, y, group):
    return 0.5 * distance(scores, y, group, 0) + 0.5 * distance(scores, y, group, 1)


def repaired(scores, y, group, **options):
    repair = ft.QuantileRepair(**options).fit(scores, y, sensitive_features=group)
    return repair.transform(scores, sensitive_features=group)


def test_equal_opportunity_is_the_repair_of_positive_rows_applied_to_all_in_their_order():
    scores, y, group = scores_by_label(3000, 2)
    for target in ("barycenter_w2", "barycenter", "pooled", "b", [0.2, 0.4, 0.9]):
        after = repaired(scores, y, group, criterion="equal_opportunity", target=target)
        alone = ft.QuantileRepair(target).fit(scores[y == 1], sensitive_features=group[y == 1])
        expected = alone.transform(scores[y == 1], sensitive_features=group[y == 1])
        np.testing.assert_allclose(after[y == 1], expected, atol=1e-14)
    after = repaired(scores, y, group, criterion="equal_opportunity")
    for name in "ab":
        order = np.argsort(scores[group == name])
        assert (np.diff(after[group == name][order]) >= 0).all()
        lowest = scores[(group == name) & (y == 1)].min()
        below = (group == name) & (scores < lowest)
        assert below.sum() > 3
        assert np.unique(after[below]).size == np.unique(scores[below]).size  # not all mapped to one


def partial_repairs(counts):
    """The full repairs for parity and for equal opportunity, which partial repairs lead to."""
    parity = w2_barycenter([one.sample() for one in counts], [one.mass for one in counts])
    opportunity = w2_barycenter([one.sample(1) for one in counts], [one.masses[1].sum() for one in counts])
    return (
        [quantile_map(one.sample(), parity) for one in counts],
        [quantile_map(one.sample(1), opportunity) for one in counts],
    )


def all_merges(counts, start):
    """The smallest separation over all merges of two rankings, by enumeration."""
    first, second = (_Unit.of(one, image, 10**6) for one, image in zip(counts, start, strict=True))
    area = partial(_quantile_integral, first, second, tuple(start))
    end = (counts[0].values.size, counts[1].values.size)

    def images(i, j, one, other):
        if (i, j) == end:
            yield separation_of_counts(counts, [np.maximum.accumulate(one), np.maximum.accumulate(other)], EQUAL)
            return
        for di, dj in ((1, 0), (0, 1), (1, 1)):
            if i + di <= end[0] and j + dj <= end[1]:
                low, high = first.masses[i] + second.masses[j], first.masses[i + di] + second.masses[j + dj]
                at = float((area(np.array(high)) - area(np.array(low))) / (high - low))
                yield from images(i + di, j + dj, one + [at] * di, other + [at] * dj)

    return min(images(0, 0, [], []))


@pytest.mark.parametrize("seed", range(6))
def test_the_maps_are_the_best_of_all_merges_of_two_rankings(seed):
    rng = np.random.default_rng(seed)
    counts = []
    for _ in range(2):
        n = int(rng.integers(3, 5))
        counts.append(ScoreCounts.from_rows(np.round(rng.random(n), 2), np.append([0, 1], rng.integers(0, 2, n - 2))))
    start = best_partial_repair(counts, partial_repairs(counts), EQUAL)
    maps = equalizing_images(counts, start, EQUAL)
    images = [np.interp(one.values, *pair) for one, pair in zip(counts, maps, strict=True)]
    assert separation_of_counts(counts, images, EQUAL) == pytest.approx(all_merges(counts, start), abs=2e-4)


@pytest.mark.parametrize("seed", [*range(15), *(pytest.param(seed, marks=pytest.mark.trust) for seed in range(15, 50))])
def test_equalized_odds_is_never_worse_than_a_partial_repair(seed):
    rng = np.random.default_rng(seed)
    n_groups = 2 if seed % 5 else 3
    scores, y, group = scores_by_label(
        int(rng.integers(60, 400)), seed, n_groups=n_groups, decimals=[None, 1, 2][seed % 3]
    )
    for name in np.unique(group):  # both labels in every group
        y[np.flatnonzero(group == name)[:2]] = 0, 1
    options = {"groups": ft.GroupPolicy(min_size=1)}
    ours = separation(repaired(scores, y, group, criterion="equalized_odds", **options), y, group)
    for criterion in ("demographic_parity", "equal_opportunity"):
        full = repaired(scores, y, group, criterion=criterion, **options)
        for amount in np.linspace(0, 1, 11):
            assert ours <= separation((1 - amount) * scores + amount * full, y, group) + 1e-6


def test_equalized_odds_keeps_the_spread_of_scores_and_the_order_within_groups():
    scores, y, group = scores_by_label(5000, 6)
    after = repaired(scores, y, group, criterion="equalized_odds")
    assert separation(after, y, group) < 0.6 * separation(scores, y, group)
    assert np.std(after) > 0.9 * np.std(scores)  # a constant would be closest of all
    for name in "ab":
        assert (np.diff(after[group == name][np.argsort(scores[group == name])]) >= 0).all()
    assert np.array_equal(after, repaired(scores, y, group, criterion="equalized_odds"))


def test_labels_weigh_the_same_or_by_share():
    scores, y, group = scores_by_label(4000, 7)
    equal, share = (
        repaired(scores, y, group, criterion=EqualizedOdds(label_weight=weight)) for weight in ("equal", "share")
    )
    assert distance(share, y, group, 0) < distance(equal, y, group, 0)  # most rows have label 0
    assert np.array_equal(equal, repaired(scores, y, group, criterion="equalized_odds"))


def test_more_groups_improve_on_the_best_partial_repair():
    scores, y, group = scores_by_label(2000, 8, n_groups=5)
    odds, opportunity = (
        separation(repaired(scores, y, group, criterion=one), y, group)
        for one in ("equalized_odds", "equal_opportunity")
    )
    assert odds < 0.9 * opportunity < separation(scores, y, group)


def test_small_groups_are_those_with_few_rows_of_a_label():
    scores, y, group = scores_by_label(3000, 9, n_groups=3)
    rare = np.flatnonzero((group == "c") & (y == 1))
    kept = np.setdiff1d(np.arange(3000), rare[10:])
    for criterion in ("equal_opportunity", "equalized_odds"):
        repair = ft.QuantileRepair(criterion=criterion).fit(scores[kept], y[kept], sensitive_features=group[kept])
        assert repair.small_groups_ == ("c",)
        assert repair.group_sizes_[2] > 500
        assert np.isfinite(repair.transform(scores, sensitive_features=group)).all()
    few = kept[:40]
    with pytest.warns(UserWarning, match="None of the 3 groups has min_size=30 rows with a positive label"):
        ft.QuantileRepair(criterion="equal_opportunity").fit(scores[few], y[few], sensitive_features=group[few])
    with pytest.warns(UserWarning, match="Fewer than two of the 3 groups have min_size=30 rows with each label"):
        ft.QuantileRepair(criterion="equalized_odds").fit(scores[few], y[few], sensitive_features=group[few])


@pytest.mark.parametrize("criterion", ["equal_opportunity", "equalized_odds"])
def test_labels_that_cannot_be_used_raise(criterion):
    scores, y, group = scores_by_label(400, 10)
    repair = ft.QuantileRepair(criterion=criterion)
    for labels, message in (
        (None, f"criterion='{criterion}' compares people with the same label, so it needs y"),
        (np.array(["low", "middle", "high"])[np.arange(400) % 3], "exactly two classes; y has 3"),
        (y[:-1], "y has 399"),
        ((group == "a").astype(int), "nothing to compare: no label has rows of two groups"),
    ):
        with pytest.raises(ValueError, match=message):
            repair.fit(scores, labels, sensitive_features=group)
    with pytest.raises(TypeError, match="y"):
        repair.fit(scores, y, sensitive_features=group).transform(scores, y, sensitive_features=group)
