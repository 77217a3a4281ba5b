"""Groups of few rows: kept, pooled into one group, or dropped; for the rows at hand and for new ones."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtransport import GroupPolicy, make_groups
from fairtransport.groups import SMALL_GROUPS, Groups
from fairtransport.metrics import strong_pairwise_disparity

MIXED = ["a"] * 5 + ["b"] * 4 + ["c"] * 2 + ["d"]


def stored(groups):
    return Groups.from_spec(json.loads(json.dumps(groups.to_spec(), allow_nan=False)))


def test_a_single_small_group_and_all_small_groups_are_pooled_as_well():
    assert make_groups(MIXED).settle("pool", 2).names == ("a", "b", "c", SMALL_GROUPS)
    whole = make_groups(MIXED).settle("pool", 30)
    assert whole.names == (SMALL_GROUPS,)
    assert whole.counts.tolist() == [12]
    with pytest.raises(ValueError, match="at least 2"):
        whole.require()


def test_drop_takes_rows_out_of_all_groups():
    dropped = make_groups(MIXED).settle("drop", 3)
    assert dropped.labels == ("a", "b")
    assert dropped.counts.tolist() == [5, 4]
    assert dropped.memberships[0][9:].tolist() == [2, 2, 2]
    assert (dropped.pooled, dropped.dropped) == ((), ("c", "d"))
    scores = np.linspace(0, 1, 12)
    without = strong_pairwise_disparity(scores[:9], sensitive_features=MIXED[:9])
    assert strong_pairwise_disparity(scores, sensitive_features=dropped) == pytest.approx(without, abs=1e-15)


@pytest.mark.parametrize("policy", ["pool", "drop"])
def test_new_rows_are_settled_as_the_fitted_ones_were(policy):
    settled = make_groups(MIXED).settle(policy, 3)
    for known in (settled, stored(settled)):
        assert known.encode(MIXED) == settled
        assert known.encode(make_groups(MIXED)) == settled
        assert known.encode(settled) == settled
        assert known.encode(settled.select([11, 0])).codes.tolist() == [2, 0]
        assert known.encode(["d", "b"]).codes.tolist() == [2, 1]
        with pytest.raises(ValueError, match="1 of 2 rows"):
            known.encode(["d", "e"])
        wider = known.adopt(["e", "d", "a"])
        assert wider.labels == (*settled.labels, "e")
        assert wider.codes.tolist() == ([3, 2, 0] if policy == "pool" else [2, 3, 0])
        assert wider.encode(MIXED).counts.tolist() == [*settled.counts, 0]


def test_a_value_spelled_like_the_pool_is_another_group():
    pooled = make_groups(MIXED).settle("pool", 3)
    with pytest.raises(ValueError, match="none of the 3 known groups"):
        pooled.encode([SMALL_GROUPS])
    with pytest.raises(ValueError, match="spelled like"):
        pooled.adopt([SMALL_GROUPS])
    real = make_groups([SMALL_GROUPS] * 3 + ["c"]).settle("pool", 2)
    assert len(set(real.labels)) == len(set(real.names)) == 2
    assert real.encode(["c", SMALL_GROUPS]).codes.tolist() == [1, 0]
    small = make_groups([SMALL_GROUPS] + ["c"] * 3).settle("pool", 2)
    assert small.names == ("c", SMALL_GROUPS)
    assert small.encode([SMALL_GROUPS]).codes.tolist() == [1]


def test_crossed_groups_are_pooled_whatever_their_columns():
    table = {"race": list("BWWWWA"), "sex": list("FFFMMF")}
    pooled = make_groups(table).settle("pool", 2)
    assert pooled.names == ("W, F", "W, M", SMALL_GROUPS)
    assert pooled.counts.tolist() == [2, 2, 2]
    assert set(pooled.pooled) == {("B", "F"), ("A", "F")}
    assert stored(pooled).encode(table) == pooled
    assert pooled.encode({"race": ["A"], "sex": ["F"]}).codes.tolist() == [2]


def test_with_grouping_each_every_column_has_its_own_pool():
    table = {"race": list("BWWWWA"), "sex": list("XYFFFF")}
    pooled = make_groups(table, groups=GroupPolicy(crossed=False)).settle("pool", 2)
    assert pooled.names == ("race=W", "sex=F", "race=(small groups)", "sex=(small groups)")
    assert pooled.counts.tolist() == [4, 4, 2, 2]
    assert pooled.rows[2].tolist() == [0, 5]
    assert pooled.rows[3].tolist() == [0, 1]  # the first row is in both pools, and once in each
    assert stored(pooled).encode(table) == pooled
    dropped = make_groups(table, groups=GroupPolicy(crossed=False)).settle("drop", 2)
    assert dropped.names == ("race=W", "sex=F")
    assert dropped.memberships[0].tolist() == [2, 0, 0, 0, 0, 2]
    assert stored(dropped).encode(table) == dropped


def test_settled_groups_can_be_settled_again():
    once = make_groups(MIXED).settle("pool", 2)
    twice = once.settle("pool", 3)
    assert twice.names == ("a", "b", SMALL_GROUPS)
    assert set(twice.pooled) == {"c", "d"}
    assert twice.counts.tolist() == [5, 4, 3]
    assert twice.encode(["c", "d", "a"]).codes.tolist() == [2, 2, 0]
    dropped = once.settle("drop", 3)
    assert dropped.labels == ("a", "b")
    assert set(dropped.dropped) == {"c", "d"}
    assert (dropped.pooled, dropped.pools) == ((), ())


@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=40), st.integers(1, 8))
def test_no_row_is_lost_and_no_group_left_small(values, least):
    groups = make_groups(values)
    pooled, dropped = groups.settle("pool", least), groups.settle("drop", least)
    assert pooled.counts.sum() == len(values)
    assert all(size >= least for name, size in zip(pooled.names, pooled.counts, strict=True) if name != SMALL_GROUPS)
    assert (dropped.counts >= least).all()
    assert dropped.counts.sum() == sum(size for size in groups.counts if size >= least)
    for settled in (pooled, dropped):
        assert stored(settled).encode(values) == settled
