"""Areas between distribution functions, against the formula on the grid of all scores."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairtransport.transport.kernels.line import area_between, areas_between_groups, group_areas
from fairtransport.transport.kernels.options import read_only
from fairtransport.transport.line import Sample

KINDS = ["plain", "ties", "ends", "weights", "zero weights", "constant group", "single rows", "separate"]
unit = st.floats(0, 1) | st.sampled_from([0.0, 0.25, 0.5, 1.0])


def sorted_entries(n_groups, kind, n=200):
    """Ascending scores with their groups, masses or None, and totals."""
    rng = np.random.default_rng(1000 * n_groups + KINDS.index(kind))
    codes = np.concatenate([np.arange(n_groups), rng.integers(0, n_groups, n)])
    values = rng.beta(1 + codes % 4, 2)
    masses = None
    if kind == "ties":
        values = np.round(values, 1)
    elif kind == "ends":
        values[rng.random(values.size) < 0.3] = 0.0
        values[rng.random(values.size) < 0.3] = 1.0
    elif kind == "weights":
        masses = rng.random(values.size)
    elif kind == "zero weights":
        masses = rng.random(values.size) * (rng.random(values.size) < 0.5)
        masses[:n_groups] = 0.1
    elif kind == "constant group":
        values[codes == 0] = 0.4
    elif kind == "single rows":
        codes[n_groups:] = 0
    elif kind == "separate":
        codes[rng.random(codes.size) < 0.4] = n_groups
        codes[:n_groups] = np.arange(n_groups)
        codes[-1] = n_groups
    order = np.argsort(values, kind="stable")
    values, codes = values[order], codes[order].astype(np.uint8)
    masses = None if masses is None else masses[order]
    totals = np.bincount(codes, weights=masses, minlength=n_groups + 1).astype(float)
    if kind != "separate":
        totals[-1] = totals.sum()
    return values, codes, masses, totals


def plain_functions(values, codes, masses, totals, *, separate):
    """Each group's distribution function after each entry, and everyone's last; and the gap that follows."""
    masses = np.ones(values.size) if masses is None else masses
    members = [codes == a for a in range(totals.size)]
    if not separate:
        members[-1] = np.ones(values.size, dtype=bool)
    functions = np.array([np.cumsum(masses * member) / total for member, total in zip(members, totals, strict=True)])
    return functions[:, :-1], np.diff(values)


@pytest.mark.parametrize("n_groups", range(2, 13))
@pytest.mark.parametrize("kind", KINDS)
def test_areas_of_groups(n_groups, kind):
    entries, separate = sorted_entries(n_groups, kind), kind == "separate"
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


@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 258, 513, 1000])
def test_areas_do_not_show_the_blocks(n):
    rng = np.random.default_rng(n)
    values, codes = np.sort(rng.random(n)), (np.arange(n) % 2).astype(np.uint8)
    totals = np.array([max(np.count_nonzero(codes == 0), 1), max(np.count_nonzero(codes == 1), 1), n], dtype=float)
    functions, gaps = plain_functions(values, codes, None, totals, separate=False)
    ranked, total_area = group_areas(values, codes, None, totals, False)
    above = functions[:-1] - functions[-1]
    assert ranked == pytest.approx(np.sort(above, axis=0) @ gaps, abs=1e-14)
    assert total_area == pytest.approx(np.sum(np.abs(above) @ gaps), abs=1e-14)


def test_areas_take_many_groups():
    rng = np.random.default_rng(0)
    codes = np.concatenate([np.arange(500), rng.integers(0, 500, 3000)]).astype(np.int32)
    values = np.sort(rng.random(codes.size))
    totals = np.append(np.bincount(codes), codes.size).astype(float)
    functions, gaps = plain_functions(values, codes, None, totals, separate=False)
    ranked, _ = group_areas(values, codes, None, totals, False)
    assert ranked == pytest.approx(np.sort(functions[:-1] - functions[-1], axis=0) @ gaps, abs=1e-12)


@given(arrays(np.float64, st.integers(1, 30), elements=unit), arrays(np.float64, st.integers(1, 30), elements=unit))
def test_area_between_two_samples(first, second):
    one, other = Sample.from_values(first), Sample.from_values(second)
    points = np.union1d(first, second)
    plain = np.abs(one.cdf(points[:-1]) - other.cdf(points[:-1])) @ np.diff(points)
    result = area_between(*map(read_only, (one.values, one.levels, other.values, other.levels)))
    assert result == pytest.approx(plain, abs=1e-14)
    assert type(result) is float
