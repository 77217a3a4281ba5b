"""Fewer bins, the same shares at the remaining nodes, and the scores of QuantileRepair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairtransport as ft
from fairtransport.histograms import count_scores
from fairtransport.report._reduced_histograms import MAX_BINS, choose_bins, reduce_histograms


@given(full=st.integers(1, 1 << 20), n_curves=st.integers(1, 400))
def test_bins_fit_the_page_and_never_exceed_the_full_number(full, n_curves):
    n_bins = choose_bins(full, n_curves)
    assert 1 <= n_bins <= min(full, MAX_BINS)
    assert n_bins * n_curves <= 1 << 17 or n_bins <= 64
    if full & (full - 1) == 0:  # powers of two stay divisors
        assert full % n_bins == 0


@pytest.mark.parametrize("n_bins", [16384, 10007, 550, 3])
@pytest.mark.parametrize("labelled", [False, True])
def test_shares_at_the_remaining_nodes_are_exact(scored, n_bins, labelled):
    scores, labels, groups = scored([f"g{k}" for k in range(40)], 3000)
    counted = count_scores(scores, labels if labelled else None, sensitive_features=groups, n_bins=n_bins)
    reduced = reduce_histograms(counted)
    assert reduced.has_labels == labelled
    assert reduced.full_bins == n_bins
    expected = counted.shares_above(reduced.nodes).T
    for index, group in enumerate(reduced.groups):
        masses = np.zeros((group.masses.shape[0], reduced.n_bins + 1))
        masses[:, group.indices] = group.masses
        above = 1 - np.cumsum(masses.sum(axis=0)) / masses.sum()
        np.testing.assert_allclose(above, expected[index], atol=1e-12)
        assert np.all(np.diff(group.indices) > 0)
    assert reduced.everyone.masses.sum() == scores.size
    if labelled:
        assert reduced.everyone.masses[1].sum() == labels.sum()


@pytest.mark.parametrize("target", ["barycenter", "barycenter_w2", "pooled", "b", [0.2, 0.4, 0.9]])
def test_images_are_those_of_quantile_repair(scored, target):
    scores, _, groups = scored(decimals=2)
    counted = count_scores(scores, sensitive_features=groups, n_bins=100)
    repair = ft.QuantileRepair(target=target).fit(scores, sensitive_features=groups)
    reduced = reduce_histograms(counted, repair_target=target)
    for name, group in zip(counted.groups.names, reduced.groups, strict=True):
        nodes = reduced.nodes[group.indices]
        expected = repair.transform(nodes, sensitive_features=[name] * nodes.size)
        np.testing.assert_allclose(group.images, expected, atol=1e-7)


def test_numbers_that_name_groups_are_targets(scored):
    scores, _, groups = scored((3, 1, 2))
    counted = count_scores(scores, sensitive_features=groups)
    reduced = reduce_histograms(counted, repair_target=3)
    np.testing.assert_allclose(reduced.groups[2].images, reduced.nodes[reduced.groups[2].indices], atol=1e-6)


def test_overlapping_groups_and_equal_scores_have_no_images(scored):
    scores, _, groups = scored()
    both = {"one": groups, "two": groups == "a"}
    each = count_scores(scores, sensitive_features=both, grouping="each")
    assert not reduce_histograms(each).can_repair
    assert reduce_histograms(each).everyone.masses.sum() == scores.size  # a row counts once
    one = count_scores(np.full(9, 0.5), sensitive_features=list("abcabcabc"))
    assert not reduce_histograms(one).can_repair
    plain = count_scores(scores, sensitive_features=groups)
    assert reduce_histograms(plain).can_repair
    assert not reduce_histograms(plain, repair_target=None).can_repair
    with pytest.raises(ValueError, match="has that label"):
        reduce_histograms(plain, repair_target="nobody")
