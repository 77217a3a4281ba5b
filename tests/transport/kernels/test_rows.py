"""Products with drawn rows."""

import numpy as np
import pytest
from scipy import sparse

from fairtransport.linear.sgd_problem import flat_rows
from fairtransport.transport.kernels.rows import add_rows, score_rows

from .tables import TABLES


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("table", TABLES)
def test_products_are_those_of_the_matrix(table, storage):
    rng = np.random.default_rng(2)
    X = TABLES[table](rng, 50).astype(float)
    rows = flat_rows(storage(X))
    theta, drawn, factors = rng.normal(size=(2, X.shape[1] + 1)), rng.integers(50, size=9), rng.normal(size=9)
    logits, gradient, model = np.empty(9), np.zeros_like(theta), np.uint64(1)
    score_rows(rows, drawn, theta, model, logits)
    np.testing.assert_allclose(logits, X[drawn] @ theta[1, :-1] + theta[1, -1], atol=1e-12)
    add_rows(rows, drawn, factors, gradient, model)
    np.testing.assert_allclose(gradient[1], np.append(factors @ X[drawn], factors.sum()), atol=1e-12)
    assert not gradient[0].any()
