"""What a repair does, whatever the scores: keeps ranks, equals distributions up to ties, goes part of the way."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairtransport as ft
from fairtransport.metrics import strong_pairwise_disparity
from fairtransport.transport import wasserstein

from .drawn import GRID, UNIT, brief, by_group, scored

TARGETS = st.sampled_from(["barycenter", "barycenter_w2", "pooled"])
ROUNDING = 1e-12


def repaired(given_, target="barycenter", amount=1.0, **options):
    model = ft.QuantileRepair(target, amount, groups=ft.GroupPolicy(min_size=1)).fit(
        given_.scores, sensitive_features=given_.group, **options
    )
    return model.transform(given_.scores, sensitive_features=given_.group)


@brief
@given(scored(), TARGETS, UNIT)
def test_it_is_monotone_within_a_group_and_keeps_ranks(one, target, amount):
    after = repaired(one, target, amount)
    for label in np.unique(one.group):
        rows = one.group == label
        order = np.argsort(one.scores[rows], kind="stable")
        before, moved = one.scores[rows][order], after[rows][order]
        assert np.all(np.diff(moved) >= -ROUNDING)
        ties = np.diff(before) == 0
        assert np.all(np.diff(moved)[ties] == 0)  # equal scores stay equal


@brief
@given(scored(), TARGETS)
def test_full_repair_leaves_no_disparity_on_the_fitted_sample_up_to_ties(one, target):
    """A score that a share m of its group has stays one. So each group ends within m / 2 times the target's range.

    Proof: over a piece of the levels of mass m, the mean distance of the target from its own mean is at most half its
    range there; the ranges of all pieces add up to no more than the whole range.
    """
    after = repaired(one, target)
    groups, moved = by_group(*one), by_group(after, one.group)
    heaviest = [max(np.unique(group.round(12), return_counts=True)[1]) / group.size for group in groups]
    spread = np.ptp(one.scores)
    for first, second in combinations(range(len(groups)), 2):
        allowed = (heaviest[first] + heaviest[second]) / 2 * spread
        assert wasserstein(moved[first], moved[second]) <= allowed + 1e-9


@brief
@given(st.integers(2, 12), st.integers(2, 4), TARGETS, st.randoms(use_true_random=False))
def test_without_ties_and_with_equal_sizes_nothing_is_left(size, n_groups, target, random):
    scores = np.array(random.sample(range(1000), size * n_groups)) / 1000
    group = np.repeat(np.arange(n_groups), size)
    after = ft.QuantileRepair(target, groups=ft.GroupPolicy(min_size=1)).fit_transform(scores, sensitive_features=group)
    assert strong_pairwise_disparity(after, sensitive_features=group) <= ROUNDING


@brief
@given(scored(), TARGETS, UNIT)
def test_the_amount_interpolates(one, target, amount):
    full = repaired(one, target)
    np.testing.assert_allclose(
        repaired(one, target, amount), (1 - amount) * one.scores + amount * full, rtol=0, atol=ROUNDING
    )


@brief
@given(scored())
def test_every_group_has_the_mean_of_the_target(one):
    """Which is that of everyone, for the W2 barycenter with the sizes of the groups; ties do not matter."""
    for group in by_group(repaired(one, "barycenter_w2"), one.group):
        assert group.mean() == pytest.approx(one.scores.mean(), abs=1e-9)


@brief
@given(scored(elements=GRID), TARGETS, st.data())
def test_weights_equal_repetition(one, target, data):
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=one.scores.size, max_size=one.scores.size)))
    times[: 2 * np.unique(one.group).size] = np.maximum(times[: 2 * np.unique(one.group).size], 1)
    copies = np.repeat(np.arange(one.scores.size), times)
    if np.ptp(one.scores[copies]) == 0:
        return
    weighted = ft.QuantileRepair(target, groups=ft.GroupPolicy(min_size=1)).fit(
        *one[:1], sensitive_features=one.group, sample_weight=times
    )
    repeated = ft.QuantileRepair(target, groups=ft.GroupPolicy(min_size=1)).fit(
        one.scores[copies], sensitive_features=one.group[copies]
    )
    keys = {"sensitive_features": one.group[copies]}
    np.testing.assert_allclose(
        weighted.transform(one.scores[copies], **keys),
        repeated.transform(one.scores[copies], **keys),
        rtol=0,
        atol=1e-9,
    )
