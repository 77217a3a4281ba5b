"""The sort of the discrete update."""

import numpy as np
import pytest

from fairtransport.transport.kernels.sgd import sorted_positions


@pytest.mark.parametrize("n", [1, 2, 5, 100, 333])
@pytest.mark.parametrize("spread", [1.0, 1e-9])
def test_sort(n, spread):
    rng = np.random.default_rng(n)
    keys = np.r_[0.0, 1.0, np.round(rng.random(n), 2), spread * rng.random(n)]
    order, spare, digits = (np.empty(len(keys), np.int64) for _ in range(3))
    sorted_positions(keys, order, spare, digits, np.empty(256, np.int64))
    np.testing.assert_array_equal(keys[order], np.sort(keys))
    np.testing.assert_array_equal(np.sort(order), np.arange(len(keys)))
