"""Demographic parity, resolved into pairs of samples."""

import numpy as np
import pytest
from tests.worlds import demographic_parity

from fairtransport.groups import make_groups


def sets_of(comparisons):
    return [set(rows.tolist()) for rows in comparisons.cells]


def test_all_pairs_of_groups_are_compared():
    groups = make_groups(["a", "b", "c", "a", "b", "a"])
    comparisons = demographic_parity(groups)
    assert len(comparisons.pairs) == 3
    assert {groups.names[name] for name in comparisons.names} == {"a", "b", "c"}
    for name, rows in zip(comparisons.names, comparisons.cells, strict=True):
        np.testing.assert_array_equal(rows, groups.rows[name])
    np.testing.assert_array_equal(comparisons.weights, 1.0)


def test_each_group_is_compared_with_a_target():
    target = np.array([0.7, 0.1, 0.4])
    comparisons = demographic_parity(make_groups(["a", "b", "a", "c"]), target=target)
    np.testing.assert_array_equal(comparisons.pairs, [[0, 3], [1, 3], [2, 3]])
    np.testing.assert_array_equal(comparisons.targets[0], np.sort(target))


@pytest.mark.parametrize(("n_groups", "n_pairs"), [(2, 1), (20, 190), (21, 21), (40, 40)])
def test_many_groups_are_compared_with_everyone(n_groups, n_pairs):
    groups = make_groups(np.arange(200) % n_groups)
    comparisons = demographic_parity(groups)
    assert len(comparisons.pairs) == n_pairs
    if n_groups > 20:
        everyone = len(comparisons.cells) - 1
        assert comparisons.names[everyone] is None
        assert (comparisons.pairs[:, 1] == everyone).all()
        np.testing.assert_array_equal(comparisons.cells[everyone], np.arange(200))


def test_groups_without_rows_or_weight_are_passed_over():
    groups = make_groups(["a", "b", "c", "a"])
    assert sets_of(demographic_parity(groups.select([0, 1, 3]))) == [{1}, {0, 2}]
    weighted = demographic_parity(groups, row_weights=np.array([1.0, 0.0, 1.0, 2.0]))
    assert sets_of(weighted) == [{2}, {0, 3}]
