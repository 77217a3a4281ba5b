"""Resampled histograms: bootstrap replicates, and permutations of group membership.

The cost depends on the number of nodes, not on the number of rows.
"""

from __future__ import annotations

import numpy as np

from fairtransport._arrays import Floats, Ints

#: NumPy's hypergeometric draws are limited to fewer rows than this.
MOST_SHUFFLED = 10**9

# Up to this many rows per hypergeometric draw, permuting the rows themselves is faster and equivalent.
_ROWS_PER_DRAW = 10


def resample_masses(
    masses: Floats, squares: Floats | None, rng: np.random.Generator, size: int, *, fixed_sizes: bool = True
) -> Floats:
    r"""Return bootstrap replicates of histograms.

    Notes
    -----
    With unit weights and fixed sizes the rows of each cell are drawn with replacement: a multinomial draw. Otherwise
    every row is drawn a Poisson(1) number of times. The rows of a node are drawn together: with W the sum of their
    weights and Q the sum of the squared weights,

    .. math:: \frac{Q}{W} \operatorname{Poisson}\!\left(\frac{W^2}{Q}\right),

    which has the same mean W and variance Q as the sum of independent rows, and is exact for equal weights.
    """
    if squares is None and fixed_sizes:
        drawn = np.zeros((size, *masses.shape))
        for cell, counts in enumerate(masses):
            total = counts.sum()
            if total > 0:
                drawn[:, cell] = rng.multinomial(round(total), counts / total, size=size)
        return drawn
    if squares is None:
        return rng.poisson(masses, size=(size, *masses.shape)).astype(np.float64)
    row_weight = np.divide(squares, masses, out=np.zeros_like(masses), where=masses > 0)
    n_rows = np.divide(masses, row_weight, out=np.zeros_like(masses), where=row_weight > 0)
    return row_weight * rng.poisson(n_rows, size=(size, *masses.shape))


def shuffle_cells(counts: Floats, rng: np.random.Generator, size: int) -> Floats:
    """Return histograms in which every row keeps its score and the cells of the rows are permuted."""
    whole = np.rint(counts).astype(np.int64)
    if whole.sum() >= MOST_SHUFFLED:
        raise ValueError(f"{whole.sum()} rows are too many to permute; at most {MOST_SHUFFLED - 1} are allowed.")
    if len(whole) == 1 or whole.sum() <= _ROWS_PER_DRAW * (len(whole) - 1) * whole.shape[1]:
        return _shuffle_rows(whole, rng, size)
    first, *others = np.argsort(whole.sum(axis=1), kind="stable").tolist()
    drawn = np.zeros((size, *counts.shape))
    everyone = whole.sum(axis=0)
    drawn[:, first] = rng.multivariate_hypergeometric(everyone, whole[first].sum(), size, method="marginals")
    remaining = everyone[:, None] - drawn[:, first].T.astype(np.int64)  # rows not yet assigned to a cell, by node
    for cell in others[:-1]:
        missing, further = np.full(size, whole[cell].sum()), remaining.sum(axis=0)
        for node in range(len(remaining)):
            further -= remaining[node]  # rows at the nodes to come
            drawn[:, cell, node] = taken = rng.hypergeometric(remaining[node], further, missing)
            missing -= taken
            remaining[node] -= taken
    drawn[:, others[-1]] = remaining.T
    return drawn


def _shuffle_rows(counts: Ints, rng: np.random.Generator, size: int) -> Floats:
    """Permute the cells of individual rows."""
    n_cells, n_nodes = counts.shape
    cells = np.tile(np.repeat(np.arange(n_cells), counts.sum(axis=1)), (size, 1))
    nodes = np.repeat(np.arange(n_nodes), counts.sum(axis=0))
    at = (np.arange(size)[:, None] * n_cells + rng.permuted(cells, axis=1)) * n_nodes + nodes
    drawn: Floats = np.bincount(at.ravel(), minlength=size * n_cells * n_nodes).astype(np.float64)
    return drawn.reshape(size, n_cells, n_nodes)
