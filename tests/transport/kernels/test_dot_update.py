"""The sort of the discrete update."""

import numpy as np
import pytest

from fairtransport.transport.kernels.sgd import write_order


@pytest.mark.parametrize("n", [1, 2, 5, 100, 333])
@pytest.mark.parametrize("spread", [1.0, 1e-9])
def test_sort(n, spread):
    rng = np.random.default_rng(n)
    keys = np.r_[0.0, 1.0, np.round(rng.random(n), 2), spread * rng.random(n)]
    order = np.empty(len(keys), np.int64)
    write_order(keys, order)
    np.testing.assert_array_equal(keys[order], np.sort(keys))
    np.testing.assert_array_equal(np.sort(order), np.arange(len(keys)))
