"""Points split into buckets and joined again."""

import numpy as np
import pytest

from fairtransport.transport.kernels.line import Cells, count_buckets, join_buckets, split_buckets
from fairtransport.transport.kernels.options import read_only


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_values_are_split_into_buckets_and_joined_again(kind):
    rng = np.random.default_rng(0)
    codes, values = rng.choice([0, 1, 3], 500).astype(kind), rng.uniform(-1, 2, 500)  # no point has code 2
    # Code 0 has one bucket, codes 1 and 2 two cells each, code 3 three cells of [0, 1] in two buckets.
    lows, scales, firsts = np.zeros(4), np.array([0.0, 2.0, 2.0, 3.0]), np.array([0, 1, 3, 5, 8])
    buckets = np.array([0, 1, 2, 3, 4, 5, 5, 6], dtype=np.uint16)
    cells = np.floor(np.clip(values, 0, 0.999) * scales[codes]).astype(int)
    owner = buckets[firsts[codes] + cells]
    table = Cells(lows, scales, firsts, buckets)
    counts, parts, joined, owners = np.zeros(7, np.int64), np.empty(500), np.empty(500), np.empty(500, np.uint16)
    count_buckets(read_only(values), read_only(codes), table, counts)
    assert np.array_equal(counts, np.bincount(owner, minlength=7))
    starts = np.cumsum(counts) - counts
    split_buckets(read_only(values), read_only(codes), table, starts, parts, owners)
    assert np.array_equal(owners, owner)
    assert np.array_equal(parts, values[np.argsort(owner, kind="stable")])
    join_buckets(parts, owners, starts, joined)
    assert np.array_equal(joined, values)
