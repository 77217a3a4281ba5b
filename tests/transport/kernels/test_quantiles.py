"""Quantile functions of sorted samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairtransport.transport.kernels.line import level_positions, mean_quantiles
from fairtransport.transport.kernels.options import read_only

unit = st.floats(0, 1) | st.sampled_from([0.0, 0.25, 0.5, 1.0])


@given(
    arrays(np.float64, st.integers(1, 40), elements=unit, unique=True),
    arrays(np.float64, st.integers(0, 60), elements=unit),
    st.booleans(),
)
def test_positions_of_levels_in_any_order(levels, queries, ascending):
    levels = np.sort(levels)
    queries = np.sort(np.concatenate([queries, levels])) if ascending else np.concatenate([queries, levels])
    result = level_positions(read_only(levels), read_only(queries))
    assert np.array_equal(result, np.searchsorted(levels, queries, side="left"))


def plain_image(tops, levels, values):
    """Mean of the quantile function over each mass, on the grid of all levels."""
    grid = np.union1d(tops, levels)
    mass, reached = np.diff(grid, prepend=0.0), values[np.searchsorted(levels, grid)]
    owner = np.searchsorted(tops, grid)
    return np.array([np.average(reached[owner == i], weights=mass[owner == i]) for i in range(tops.size)])


@pytest.mark.parametrize("seed", range(20))
def test_mean_quantiles(seed):
    rng = np.random.default_rng(seed)
    n_tops, n_levels = rng.integers(1, 40, 2)
    tops, levels = (np.append(np.unique(rng.integers(1, 99, n - 1)), 99) / 99 for n in (n_tops, n_levels))
    values = np.sort(rng.random(levels.size))
    result = mean_quantiles(read_only(tops), read_only(levels), read_only(values))
    assert result == pytest.approx(plain_image(tops, levels, values), abs=1e-14)
    assert np.all(np.diff(result) >= 0)
    # A mass that meets one value gets it to the last bit.
    assert np.array_equal(mean_quantiles(read_only(levels), read_only(levels), read_only(values)), values)
