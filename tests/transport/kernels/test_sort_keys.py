"""A score and its group in one sortable integer."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairtransport.transport.kernels.line import lowest_positive, pack_keys, unpack_keys
from fairtransport.transport.kernels.options import read_only


@pytest.mark.parametrize("kind", [np.uint8, np.int32])
@given(scores=arrays(np.float64, st.integers(1, 50), elements=st.floats(1e-9, 1) | st.sampled_from([0.0, -0.0, 1.0])))
def test_keys_sort_scores_with_their_codes(kind, scores):
    codes = (np.arange(scores.size) % 5).astype(kind)
    lowest = min(lowest_positive(read_only(scores)), scores.max())
    low, shift = np.array([lowest]).view(np.uint64)[0], np.uint64(3)
    keys, result = np.empty(scores.size, np.uint64), np.empty_like(codes)
    pack_keys(read_only(scores).view(np.uint64), codes, low, shift, keys)
    keys.sort()
    unpack_keys(keys, result, low, shift)
    order = np.lexsort((codes, scores))
    assert np.array_equal(keys.view(np.float64), scores[order])
    assert np.array_equal(result, codes[order])
    assert not np.signbit(keys.view(np.float64)).any()


def test_the_lowest_positive_value():
    tiny = np.nextafter(0, 1)
    assert lowest_positive(read_only(np.array([0.5, 0.0, tiny, -0.0]))) == tiny
    assert lowest_positive(read_only(np.array([0.0, -0.0]))) == np.inf
