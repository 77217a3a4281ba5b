"""Histograms: what they hold, how near their metrics are, and that they can be merged, forgotten and stored."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from fairtransport import GroupPolicy, make_groups, metrics
from fairtransport.histograms import Grid, GroupHistograms, count_entries, count_scores, display_range, regrid

CANARY = 0.123454321


def rows_at_random(seed=0, n=500, n_groups=4):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, n_groups, n)
    groups[:n_groups] = np.arange(n_groups)
    scores = rng.beta(2, 3, n) * (1 - 0.1 * groups)
    return scores, (rng.random(n) < scores).astype(int), groups, rng.random(n) + 0.1


def test_by_hand():
    counted = count_scores(
        [0.0, 0.2, 0.25, 0.9, 1.0],
        [0, 1, 1, 0, 1],
        sensitive_features=["a", "a", "b", "b", "b"],
        sample_weight=[1, 2, 3, 4, 5],
        n_bins=4,
    )
    assert counted.by_group.tolist() == [[1, 2, 0, 0, 0], [0, 3, 0, 0, 9]]
    assert counted.by_class[1].tolist() == [[0, 2, 0, 0, 0], [0, 3, 0, 0, 5]]
    assert counted.squares_by_class.sum(axis=0).tolist() == [[1, 4, 0, 0, 0], [0, 9, 0, 0, 41]]
    assert counted.everyone.tolist() == [1, 5, 0, 0, 9]
    assert counted.weights.tolist() == [3, 12]
    assert counted.group_rows.tolist() == [2, 3]
    assert counted.effective_sizes.tolist() == [9 / 5, 144 / 50]
    assert counted.cdf[0].tolist() == [1 / 3, 1, 1, 1, 1]


@pytest.mark.parametrize("target", ["barycenter", "barycenter_w2", "pooled", 2, [0.25, 0.5, 0.75]])
@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_are_within_the_stated_bound_and_exact_on_the_grid(target, weighted):
    scores, _, groups, weights = rows_at_random()
    given_weights = weights if weighted else None
    for values, slack in ((scores, 1.0), (np.round(scores * 64) / 64, 0.0)):
        counted = count_scores(values, sensitive_features=groups, sample_weight=given_weights, n_bins=64)
        exact = metrics.disparities(values, sensitive_features=groups, target=target, sample_weight=given_weights)
        bounds = counted.bounds()
        for name, found in counted.disparities(target).items():
            assert abs(found - exact[name]) <= slack * bounds[name] + 1e-12
        apart = metrics.pairwise_distances(values, sensitive_features=groups, sample_weight=given_weights)
        assert np.abs(counted.distances() - apart).max() <= slack * counted.grid.resolution + 1e-12


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 2)), min_size=3, max_size=25), st.integers(1, 40))
def test_no_scores_break_the_bound(rows, n_bins):
    scores = [score for score, _ in rows] + [0.3, 0.6, 0.9]
    groups = [group for _, group in rows] + [0, 1, 2]
    counted = count_scores(scores, sensitive_features=groups, n_bins=n_bins)
    apart = metrics.pairwise_distances(scores, sensitive_features=groups)
    assert np.abs(counted.distances() - apart).max() <= 1 / n_bins + 1e-9


def test_shares_above_nodes_are_exact():
    scores, _, groups, weights = rows_at_random()
    counted = count_scores(scores, sensitive_features=groups, sample_weight=weights)
    cuts = [0.0, 0.25, 0.5, 1.0]
    expected = [[np.average(scores[groups == g] > cut, weights=weights[groups == g]) for g in range(4)] for cut in cuts]
    assert counted.shares_above(cuts) == pytest.approx(np.array(expected), abs=1e-12)
    off = counted.shares_above(0.3)[0]  # not a node: the one below
    true = [np.average(scores[groups == g] > 0.3, weights=weights[groups == g]) for g in range(4)]
    assert np.all(off >= np.array(true) - 1e-12)


def test_merging_equals_counting_together():
    scores, labels, groups, weights = rows_at_random()
    names = make_groups(groups)

    def count(at, with_weights):
        return count_scores(
            scores[at],
            labels[at],
            sensitive_features=names.select(at),
            sample_weight=weights[at] if with_weights else None,
        )

    first, second = np.arange(200), np.arange(200, 500)
    for with_weights in (False, True):
        merged, together = count(first, with_weights) + count(second, with_weights), count(np.arange(500), with_weights)
        assert np.allclose(merged.masses, together.masses)
        assert np.allclose(merged.squares_by_class, together.squares_by_class)
        assert np.array_equal(merged.rows, together.rows)
    mixed = count(first, with_weights=False) + count(second, with_weights=True)
    assert mixed.squares_by_class.sum() == pytest.approx(200 + np.sum(weights[200:] ** 2))


def test_what_cannot_be_merged():
    one = count_scores([0.1, 0.2], sensitive_features=["a", "b"])
    for other in (
        count_scores([0.1, 0.2], sensitive_features=["a", "c"]),
        count_scores([0.1, 0.2], sensitive_features=["a", "b"], n_bins=10),
        count_scores([0.1, 0.2], [0, 1], sensitive_features=["a", "b"]),
    ):
        with pytest.raises(ValueError, match="cannot be merged"):
            one + other
    with pytest.raises(TypeError):
        one + 1


def test_forgetting_is_a_geometric_weight():
    scores, _, groups, _ = rows_at_random()
    known = make_groups(groups)
    kept = count_scores(scores[:100], sensitive_features=known.select(np.arange(100)))
    for start in range(100, 500, 100):
        at = np.arange(start, start + 100)
        kept = kept.forget(0.8) + count_scores(scores[at], sensitive_features=known.select(at))
    ages = np.repeat(np.arange(4, -1, -1), 100)
    direct = count_scores(scores, sensitive_features=known, sample_weight=0.8**ages)
    assert np.allclose(kept.masses, direct.masses)
    assert np.allclose(kept.squares, direct.squares)
    assert kept.effective_sizes == pytest.approx(direct.effective_sizes)
    assert kept.rows.sum() == 500
    with pytest.raises(ValueError, match="keep must be"):
        kept.forget(1.5)


def test_known_groups_may_be_without_rows():
    known = make_groups(["a", "b", "c"])
    counted = count_scores([0.5, 1.0], sensitive_features=known.encode(["a", "c"]), n_bins=2)
    assert counted.weights.tolist() == [1, 0, 1]
    assert counted.filled().groups.names == ("a", "c")
    assert counted.filled().disparities()["strong_pairwise_disparity"] == 0.5
    with pytest.raises(ValueError, match="1 of 3 groups have no rows"):
        counted.disparities()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("grouping", ["crossed", "each"])
def test_stored_and_read_again(tmp_path, weighted, grouping):
    scores, labels, groups, weights = rows_at_random(n=60)
    table = {"g": groups, "h": labels}
    counted = count_scores(
        scores,
        labels,
        sensitive_features=table,
        sample_weight=weights if weighted else None,
        groups=GroupPolicy(crossed=grouping == "crossed"),
        range=(0, 2),
        n_bins=50,
    )
    np.savez(tmp_path / "counts.npz", **counted.to_arrays())
    with np.load(tmp_path / "counts.npz", allow_pickle=False) as arrays:
        again = GroupHistograms.from_arrays(arrays)
    assert again.grid == counted.grid
    assert again.groups.names == counted.groups.names
    assert np.array_equal(again.masses, counted.masses)
    assert np.array_equal(again.by_group, counted.by_group)
    assert np.array_equal(again.squares_by_class, counted.squares_by_class)
    assert np.array_equal(again.rows, counted.rows)
    assert again.disparities() == counted.disparities()
    assert (again + counted).rows.sum() == 120


def test_many_groups_are_stored_in_full_so_that_a_small_file_stays_small():
    groups = np.arange(600) % 200
    counted = count_scores(np.linspace(0, 1, 600), sensitive_features=groups)
    stored = counted.to_arrays()
    assert "at" not in stored
    again = GroupHistograms.from_arrays(stored)
    np.testing.assert_array_equal(again.masses, counted.masses)
    small = count_scores([0.1, 0.9], sensitive_features=["a", "b"], n_bins=8).to_arrays()
    assert "at" in small
    for n_bins, n_labels, change in (
        (1 << 20, 2, {}),
        (8, 100_000, {}),
        (1000, 100_000, {"members": np.ones((100_000, 2), bool)}),
    ):
        spec = json.loads(str(small["spec"]))
        spec["groups"]["labels"] = [str(number) for number in range(n_labels)]
        forged = {**small, **change, "spec": np.array(json.dumps({**spec, "n_bins": n_bins}))}
        with pytest.raises(ValueError, match="not written by GroupHistograms"):
            GroupHistograms.from_arrays(forged)


def test_overlapping_groups_are_made_of_cells():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"race": rng.choice(["B", "W"], 200), "sex": rng.choice(["F", "M"], 200)})
    scores = np.round(rng.random(200) * (1 - 0.3 * (table["sex"] == "F")), 2)
    counted = count_scores(scores, sensitive_features=table, groups=GroupPolicy(crossed=False), n_bins=100)
    assert counted.groups.names == ("race=B", "race=W", "sex=F", "sex=M")
    assert counted.members.shape == (4, 4)
    assert counted.weights.sum() == 400
    assert counted.everyone.sum() == 200
    assert counted.group_rows.tolist() == make_groups(table, groups=GroupPolicy(crossed=False)).counts.tolist()
    exact = metrics.disparities(scores, sensitive_features=table, groups=GroupPolicy(crossed=False))
    assert counted.disparities() == pytest.approx(exact, abs=1e-12)
    with pytest.raises(ValueError, match="cannot be added to histograms of overlapping groups"):
        counted.with_groups(counted.groups)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: count_scores([CANARY, 2], sensitive_features=["secret", "b"]), "1 of 2 values outside [0, 1]"),
        (lambda: count_scores([CANARY], sensitive_features=["secret", "b"]), "scores has 1 rows, but sensitive"),
        (lambda: count_scores([CANARY], [2], sensitive_features=["secret"]), "1 of 1 labels that are neither 0 nor 1"),
        (lambda: count_scores([CANARY], [0, 1], sensitive_features=["secret"]), "y_true has 2 rows"),
        (
            lambda: count_scores([CANARY] * 3, sensitive_features=[1, 2, 3], groups=GroupPolicy(max_groups=2)),
            "3 groups",
        ),
        (lambda: count_scores([CANARY], sensitive_features=["secret"]).class_sample(1), "have no labels"),
    ],
)
def test_errors_say_what_is_wrong_and_show_no_value(call, message):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        call()
    assert str(CANARY) not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_nodes_of_its_own_are_exact_and_stored():
    rng = np.random.default_rng(0)
    scores = np.r_[rng.standard_cauchy(300), 1e9]
    groups = make_groups(np.arange(301) % 3)
    grid = Grid.covering(scores)
    histograms = count_entries(grid, groups, nodes=grid.place_checked(scores), masses=np.ones(301))
    span = grid.high - grid.low
    for one, other in ((0, 1), (0, 2), (1, 2)):
        expected = wasserstein_distance(scores[one::3], scores[other::3])
        assert span * histograms.distances()[one, other] == pytest.approx(expected)
    total = sum(histograms.distances()[pair] for pair in ((0, 1), (0, 2), (1, 2)))
    assert histograms.disparities()["strong_pairwise_disparity"] == pytest.approx(total)
    assert histograms.bounds()["strong_pairwise_disparity"] == 0  # every score has a node of its own
    restored = GroupHistograms.from_arrays(histograms.to_arrays())
    assert restored.grid == grid
    np.testing.assert_array_equal(restored.masses, histograms.masses)
    coarse = histograms.coarsen(50)
    assert coarse.grid.n_bins == 50
    np.testing.assert_array_equal(coarse.cdf, histograms.cdf[:, np.arange(51) * grid.n_bins // 50])


def test_histograms_on_another_grid_keep_their_rows():
    scores = np.r_[np.arange(1000.0), 1e9]
    groups = make_groups(np.arange(1001) % 2)
    grid = Grid.covering(scores)
    histograms = count_entries(grid, groups, nodes=grid.place_checked(scores), masses=np.ones(1001))
    low, high = display_range(histograms)
    moved = regrid(histograms, Grid(low, high, 500))
    assert moved.weights.tolist() == histograms.weights.tolist()
    assert moved.everyone[-1] >= 1  # what lies beyond is counted at the end
    np.testing.assert_allclose(moved.shares_above([400.0]), histograms.shares_above([400.0]), atol=0.01)
