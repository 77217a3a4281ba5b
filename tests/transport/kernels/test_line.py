"""The compiled loops of transport on the line, against formulas on the grid of all scores, knots or levels."""

import pickle
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairtransport._columns.compilation import read_only
from fairtransport.transport import line
from fairtransport.transport.kernels.line import (
    areas_between_groups,
    group_areas,
    level_positions,
    map_points,
    mean_quantiles,
)
from fairtransport.transport.line import QuantileMap

unit = st.floats(0, 1) | st.sampled_from([0.0, 0.25, 0.5, 1.0])


def plain_functions(values, codes, masses, totals, *, separate):
    """Each group's distribution function after each entry, and everyone's last; and the gap that follows."""
    masses = np.ones(values.size) if masses is None else masses
    members = [codes == a for a in range(totals.size)]
    if not separate:
        members[-1] = np.ones(values.size, dtype=bool)
    functions = np.array([np.cumsum(masses * member) / total for member, total in zip(members, totals, strict=True)])
    return functions[:, :-1], np.diff(values)


@pytest.mark.parametrize("n_groups", [*range(2, 13), 60])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("separate", [False, True], ids=["everyone", "rows of no group"])
def test_areas_of_groups(n_groups, weighted, separate):
    """Ties, scores at both ends, a group of one score, rows of no weight; 256 gaps are a block."""
    rng, n = np.random.default_rng(n_groups), 253 + n_groups
    codes = np.append(np.arange(n_groups + separate), rng.integers(n_groups + separate, size=n)).astype(np.int32)
    values = np.where(codes == 1, 0.4, np.clip(rng.normal(0.5, 0.4, codes.size), 0, 1).round(3))
    masses = rng.random(codes.size) * (rng.random(codes.size) < 0.5) + (np.arange(codes.size) <= n_groups)
    totals = np.bincount(codes, masses if weighted else None, n_groups + 1)
    totals[-1] = totals[-1] if separate else totals.sum()
    order = np.argsort(values)
    entries = values[order], codes[order], masses[order] if weighted else None, totals.astype(float)
    functions, gaps = plain_functions(*entries, separate=separate)
    ranked, total_area = group_areas(*entries, separate)
    above = functions[:-1] - functions[-1]
    assert ranked == pytest.approx(np.sort(above, axis=0) @ gaps, abs=1e-13)
    assert total_area == pytest.approx(np.sum(np.abs(above) @ gaps), abs=1e-13)

    between = areas_between_groups(*entries)
    assert np.array_equal(between, between.T)
    assert not between.diagonal().any()
    for a, b in combinations(range(n_groups), 2):
        assert between[a, b] == pytest.approx(np.abs(functions[a] - functions[b]) @ gaps, abs=1e-13)
    # The sum over pairs and the distance to the median need the order of the functions only.
    k = np.arange(n_groups)
    assert (2 * k - n_groups + 1) @ ranked == pytest.approx(np.triu(between).sum(), abs=1e-12)
    to_median = np.abs(functions[:-1] - np.median(functions[:-1], axis=0)) @ gaps
    assert np.sign(2 * k - n_groups + 1) @ ranked == pytest.approx(to_median.sum(), abs=1e-12)


def plain_map(knots, images, points):
    """Linear between knots, constant beyond: the formula, by a search over all knots."""
    right = np.searchsorted(knots, points, side="right")
    left, right = np.maximum(right - 1, 0), np.minimum(right, knots.size - 1)
    gap = knots[right] - knots[left]
    share = np.where(gap > 0, points - knots[left], 0.0) / np.where(gap > 0, gap, 1.0)
    return np.minimum(images[left] + share * (images[right] - images[left]), images[right])


def points_around(knots, rng):
    beyond = np.array([-1.0, 0.0, 1.0, 2.0, -1e300, 1e300, -0.0])
    near = [np.nextafter(knots, -np.inf), knots, np.nextafter(knots, np.inf), (knots[1:] + knots[:-1]) / 2]
    return rng.permutation(np.concatenate([beyond, *near, rng.random(500)]))


KNOTS = {
    "one": np.array([0.5]),
    "two": np.array([0.0, 1.0]),
    "leaf": np.array([0.0, 0.25, 0.5, 1.0]),
    "leaf and one": np.array([0.0, 0.25, 0.5, 0.75, 1.0]),
    "even": np.linspace(0, 1, 1000),
    "skewed": np.unique(np.random.default_rng(0).random(3000) ** 9),
    "crowded": np.unique(np.append(0.0, 1 - np.geomspace(1e-13, 1e-9, 2000))),  # all but one in the last cell
    "tiny": np.arange(50) * np.nextafter(0, 1),
    "wide": np.array([-1.5e308, 0.0, 1.0, 1.5e308]),
}


@pytest.mark.parametrize("few", [0, 10_000], ids=["compiled", "NumPy"])
@pytest.mark.parametrize("name", KNOTS)
def test_a_map_is_the_formula_to_the_last_bit(name, few, monkeypatch):
    knots, rng = KNOTS[name], np.random.default_rng(1)
    images, points = np.sort(rng.random(knots.size)), points_around(KNOTS[name], rng)
    carry = QuantileMap(knots, images)
    monkeypatch.setattr(line, "FEW_ROWS", few)
    with np.errstate(over="ignore"):
        expected = plain_map(knots, images, points)
        assert np.array_equal(carry(points), expected)
        assert np.array_equal([carry(point) for point in points[:100]], expected[:100])  # a point at a time
    assert np.array_equal(carry(points[::-1]), expected[::-1])
    assert np.array_equal(carry.prepare()(points.reshape(1, -1)), expected.reshape(1, -1))


@given(
    arrays(np.float64, st.integers(1, 80), elements=unit, unique=True),
    arrays(np.float64, st.integers(1, 80), elements=unit | st.floats(-2, 3)),
    st.floats(0, 1),
)
def test_points_are_moved_in_part(knots, points, amount):
    knots = np.sort(knots + 0.0)
    images = np.sort(np.random.default_rng(0).random(knots.size))
    moved = points.copy()
    QuantileMap(knots, images).move(moved, amount)
    assert np.array_equal(moved, (1.0 - amount) * points + amount * plain_map(knots, images, points))


def test_read_only_and_strided_input_is_one_kind():
    knots = np.linspace(0, 1, 40)[::2]
    carry = QuantileMap(knots, knots**2)
    points = np.random.default_rng(0).random(30)
    locked = points.copy()
    locked.flags.writeable = False
    assert np.array_equal(carry(locked), carry(points))
    assert np.array_equal(carry(points[::3]), carry(points)[::3])
    for each in (points, locked, points[::3]):
        moved = each.flatten()
        carry.move(moved)
        assert np.array_equal(moved, carry(each))  # by NumPy
    assert len(map_points.signatures) == 1


def test_a_pickled_map_leaves_its_index_behind():
    knots = np.linspace(0, 1, 1000)
    carry = QuantileMap(knots, knots)
    before = len(pickle.dumps(carry))
    carry.prepare()
    again = pickle.loads(pickle.dumps(carry))  # noqa: S301
    assert len(pickle.dumps(carry)) == before
    assert np.array_equal(again([0.2, 0.7]), carry([0.2, 0.7]))


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
    assert line._mean_quantiles(tops, line.Sample(values, levels)) == pytest.approx(result, abs=1e-14)
    assert result == pytest.approx(plain_image(tops, levels, values), abs=1e-14)
    assert np.all(np.diff(result) >= 0)
    # A mass that meets one value gets it to the last bit.
    assert np.array_equal(mean_quantiles(read_only(levels), read_only(levels), read_only(values)), values)
    assert np.array_equal(line._mean_quantiles(levels, line.Sample(values, levels)), values)
