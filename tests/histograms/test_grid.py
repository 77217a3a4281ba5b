"""Where scores are counted: nodes, resolution, and one formula for every engine."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtransport.histograms import SLACK, Grid


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.integers(1, 5000))
def test_a_score_is_counted_at_the_first_node_not_below_it(scores, n_bins):
    grid = Grid(n_bins=n_bins)
    nodes, width = grid.nodes[grid.place_checked(np.array(scores))], grid.width
    slack = 2 * SLACK * width
    assert np.all(nodes >= np.array(scores) - slack)
    assert np.all(nodes - width < np.array(scores) + slack)


@pytest.mark.parametrize(
    ("low", "high", "n_bins"), [(0, 1, 100), (0, 1, 1000), (0, 1, 1 << 14), (300, 850, 550), (-3, 3, 7)]
)
def test_scores_on_the_grid_stay_there(low, high, n_bins):
    grid = Grid(low, high, n_bins)
    steps = np.arange(n_bins + 1)
    assert np.array_equal(grid.place_checked(grid.nodes), steps)
    assert np.array_equal(grid.place_checked(low + (high - low) * steps / n_bins), steps)
    if (low, high) == (0, 1):
        assert np.array_equal(grid.place_checked(np.round(grid.nodes, 4) if n_bins <= 1000 else grid.nodes), steps)


def test_units():
    grid = Grid(300, 850, 550)
    assert grid.to_unit([300, 575, 850]).tolist() == [0.0, 0.5, 1.0]
    assert grid.from_unit([0.0, 0.5, 1.0]).tolist() == [300, 575, 850]
    assert (grid.width, grid.resolution, grid.n_nodes) == (1.0, 1 / 550, 551)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Grid(1, 0), "range must be two numbers, the lower one first"),
        (lambda: Grid(0, np.inf), "two finite numbers"),
        (lambda: Grid("a", 1), "range must be two numbers; got a str"),
        (lambda: Grid(n_bins=0), "n_bins must be at least 1"),
        (lambda: Grid(n_bins=1 << 21), "n_bins must be at most"),
        (lambda: Grid.over(3), "range must be two numbers, such as"),
        (lambda: Grid().check([0.5, 1.2, -1]), r"2 of 3 values outside \[0, 1\]. Give the range"),
        (lambda: Grid().check([np.nan]), "1 NaN or infinite"),
    ],
)
def test_what_it_refuses(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_nodes_of_its_own():
    grid = Grid.covering([5.0, -2.0, 5.0, 1e9, 0.25], extra=[3.0, 2e9])
    assert grid.nodes.tolist() == [-2.0, 0.25, 3.0, 5.0, 1e9]
    assert grid.place_checked(np.array([-2.0, -1.0, 0.25, 4.0, 1e9])).tolist() == [0, 1, 1, 3, 4]
    assert grid.last_node_below([3.0, 3.5, -2.0]).tolist() == [2, 2, 0]
    assert grid.unit_nodes[[0, -1]].tolist() == [0.0, 1.0]
    assert Grid.covering([7.0, 7.0]).nodes.tolist() == [0.0, 7.0]
    with pytest.raises(ValueError, match="ascend"):
        Grid.at([0.0, 1.0, 1.0])


def test_many_values_keep_both_tails():
    values = np.random.default_rng(0).standard_cauchy(5000)
    grid = Grid.covering(values, 400)
    assert grid.n_bins <= 400
    ordered = np.sort(values)
    assert grid.nodes[:50].tolist() == ordered[:50].tolist()
    assert grid.nodes[-50:].tolist() == ordered[-50:].tolist()
    assert np.isin(grid.nodes, values).all()


def test_the_ends_of_any_range_are_met_exactly():
    for low, high in np.sort(np.random.default_rng(0).normal(0, 100, (500, 2)), axis=1).tolist():
        assert Grid(low, high).from_unit([0.0, 1.0]).tolist() == [low, high]
