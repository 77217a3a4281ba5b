"""Many maps at once: the images that each map gives on its own, whatever the buckets and threads."""

import numpy as np
import pytest

from fairtransport.transport import line as many_maps
from fairtransport.transport.line import QuantileMap, move_by_code

KNOTS = {
    "even": np.linspace(0.1, 0.9, 700),
    "one": np.array([0.5]),
    "crowded": np.unique(np.append(0.0, 1 - np.geomspace(1e-13, 1e-9, 900))),
    "skewed": np.unique(np.random.default_rng(0).random(900) ** 9),
    "wide": np.array([-1.5e308, 0.0, 1.0, 1.5e308]),
    "tiny": np.arange(300) * np.nextafter(0, 1),
}


def made(kind, n=3000):
    rng = np.random.default_rng(0)
    maps = [QuantileMap(knots, np.sort(rng.random(knots.size))) for knots in KNOTS.values()]
    points = np.concatenate([rng.uniform(-0.5, 1.5, n), rng.random(n) ** 9, *KNOTS.values()])
    return points, rng.integers(0, len(maps), points.size).astype(kind), maps


def plain(points, codes, maps, amount):
    moved = points.copy()
    for code, carry in enumerate(maps):
        members = codes == code
        moved[members] = (1 - amount) * points[members] + amount * carry(points[members])
    return moved


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize(("knots", "chunk"), [(16, 100), (100, 1000), (1 << 14, 1 << 16)])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32])
def test_each_point_gets_the_image_of_its_own_map(monkeypatch, kind, knots, chunk, n_threads):
    points, codes, maps = made(kind)
    monkeypatch.setattr(many_maps, "_KNOTS", knots)
    monkeypatch.setattr(many_maps, "_POINTS", 1)
    monkeypatch.setattr(many_maps, "_CHUNK", chunk)
    for amount in (0.0, 0.3, 1.0):
        result = move_by_code(points, codes, maps, amount, n_threads=n_threads)
        assert np.array_equal(result, plain(points, codes, maps, amount))
    whole = move_by_code(points, codes, maps, 1.0, n_threads=n_threads)
    few = np.arange(points.size)[::7]
    assert np.array_equal(move_by_code(points[few], codes[few], maps, 1.0), whole[few])


def test_input_is_left_alone_and_may_be_read_only_strided_or_empty():
    points, codes, maps = made(np.uint8)
    maps = maps[:4]
    codes %= 4
    kept = points.copy()
    expected = move_by_code(points, codes, maps, 1.0)
    assert np.array_equal(points, kept)
    points.flags.writeable = False
    assert np.array_equal(move_by_code(points, codes, maps, 1.0), expected)
    assert np.array_equal(move_by_code(points[::3], codes[::3], maps, 1.0), expected[::3])
    assert move_by_code(points[:0], codes[:0], maps, 1.0).size == 0


def test_codes_without_a_map_are_refused():
    points, codes, maps = made(np.uint8)
    with pytest.raises(ValueError, match="codes must be below 3"):
        move_by_code(points, codes, maps[:3], 1.0)
