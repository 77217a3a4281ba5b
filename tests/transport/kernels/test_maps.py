"""Monotone maps of the line, against the formula by a search over all knots."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairtransport.transport.kernels.line import MapIndex, fill_guide, map_points
from fairtransport.transport.kernels.options import read_only
from fairtransport.transport.line import QuantileMap

unit = st.floats(0, 1) | st.sampled_from([0.0, 0.25, 0.5, 1.0])


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


@pytest.mark.parametrize("name", KNOTS)
def test_a_map_is_the_formula_to_the_last_bit(name):
    knots, rng = KNOTS[name], np.random.default_rng(1)
    images, points = np.sort(rng.random(knots.size)), points_around(KNOTS[name], rng)
    carry = QuantileMap(knots, images)
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


@pytest.mark.parametrize("scale", [0.0, 3.0, 50.0, 5000.0])
def test_the_guide_leads_to_the_last_knot_of_the_cells_before(scale):
    knots = np.unique(np.random.default_rng(0).random(200) ** 3)
    guide = np.empty(max(1, int(scale * np.ptp(knots))), dtype=np.int32)
    fill_guide(read_only(knots), scale, guide)
    cells = np.minimum(((knots - knots[0]) * scale).astype(int), guide.size - 1)
    assert np.array_equal(guide, np.maximum(np.searchsorted(cells, np.arange(guide.size)) - 1, 0))
    for points in (np.random.default_rng(1).uniform(-1, 2, 1000), knots):
        images = points.copy()
        beyond = np.append(knots, [np.inf] * 4), np.append(knots, [knots[-1]] * 4) ** 2
        map_points(images, MapIndex(*beyond, guide, scale), 1.0)
        assert np.array_equal(images, plain_map(knots, knots**2, points))


def test_read_only_and_strided_input_is_one_kind():
    knots = np.linspace(0, 1, 40)[::2]
    carry = QuantileMap(knots, knots**2)
    points = np.random.default_rng(0).random(30)
    locked = points.copy()
    locked.flags.writeable = False
    assert np.array_equal(carry(locked), carry(points))
    assert np.array_equal(carry(points[::3]), carry(points)[::3])
    assert len(map_points.signatures) == 1


def test_a_pickled_map_leaves_its_index_behind():
    knots = np.linspace(0, 1, 1000)
    carry = QuantileMap(knots, knots)
    before = len(pickle.dumps(carry))
    carry.prepare()
    again = pickle.loads(pickle.dumps(carry))  # noqa: S301
    assert len(pickle.dumps(carry)) == before
    assert np.array_equal(again([0.2, 0.7]), carry([0.2, 0.7]))
