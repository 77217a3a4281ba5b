"""Tables of dense, sparse and one-hot columns."""

import numpy as np


def one_hot(rng, n, sizes):
    return np.column_stack([np.eye(size)[rng.integers(size, size=n)] for size in sizes])


TABLES = {
    "mixed": lambda rng, n: np.column_stack(
        (rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.4), rng.normal(size=n), rng.random(n) < 0.3)
    ),
    "one-hot": lambda rng, n: np.column_stack((rng.normal(size=(n, 3)), one_hot(rng, n, (2, 5, 9)))),
    "one-hot, no numbers": lambda rng, n: one_hot(rng, n, (2, 3, 3, 4, 2, 5, 3, 2, 4, 3)),
    "ragged ones": lambda rng, n: (rng.random((n, 40)) < rng.random((n, 1)) ** 3).astype(float),
    "long rows": lambda rng, n: np.column_stack((rng.normal(size=(n, 21)), one_hot(rng, n, (3, 4)))),
    "empty rows": lambda rng, n: rng.normal(size=(n, 6)) * (rng.random((n, 1)) < 0.3),
    "nothing": lambda rng, n: np.zeros_like(rng.random((n, 3))),
}
