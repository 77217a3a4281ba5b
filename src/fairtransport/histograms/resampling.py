"""Resampled histograms: bootstrap replicates, and permutations of group membership.

The cost depends on the number of nodes, not on the number of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


#: NumPy's hypergeometric draws are limited to fewer rows than this.
MOST_SHUFFLED = 10**9

# Up to this many rows per hypergeometric draw, permuting the rows themselves is faster and equivalent.
_ROWS_PER_DRAW = 10


def resample_masses(
    masses: NDArray[np.float64],
    squares: NDArray[np.float64] | None,
    rng: np.random.Generator,
    size: int,
    *,
    fixed_sizes: bool = True,
) -> NDArray[np.float64]:
    r"""Return bootstrap replicates of histograms.

    Parameters
    ----------
    masses : array of shape (n_cells, n_nodes)
        Sum of weights at each node.
    squares : array of shape (n_cells, n_nodes), or None
        Sum of squared weights at each node; None where every weight is 1.
    rng : numpy.random.Generator
    size : int
        Number of replicates.
    fixed_sizes : bool, default True
        Whether each cell keeps its number of rows; only where every weight is 1.

    Returns
    -------
    array of shape (size, n_cells, n_nodes)

    Notes
    -----
    With unit weights and fixed sizes the rows of each cell are drawn with replacement: a multinomial draw. Otherwise
    every row is drawn a Poisson(1) number of times. The rows of a node are drawn together: with W the sum of their
    weights and Q the sum of the squared weights,

    .. math:: \frac{Q}{W} \operatorname{Poisson}\!\left(\frac{W^2}{Q}\right),

    which has the same mean W and variance Q as the sum of independent rows, and is exact for equal weights.

    Examples
    --------
    >>> drawn = resample_masses(np.array([[5.0, 0.0, 5.0]]), None, np.random.default_rng(0), 3)
    >>> drawn.sum(axis=-1).tolist(), drawn[:, 0, 1].tolist()
    ([[10.0], [10.0], [10.0]], [0.0, 0.0, 0.0])
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


def shuffle_cells(counts: NDArray[np.float64], rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Return histograms in which every row keeps its score and the cells of the rows are permuted.

    Parameters
    ----------
    counts : array of shape (n_cells, n_nodes)
        Number of rows at each node; fewer than 10**9 in total.
    rng : numpy.random.Generator
    size : int
        Number of permutations.

    Returns
    -------
    array of shape (size, n_cells, n_nodes)
        Each with the same number of rows in each cell and at each node: draws without replacement (multivariate
        hypergeometric), which have exactly the distribution of permuted rows.

    Examples
    --------
    >>> drawn = shuffle_cells(np.array([[2.0, 0.0], [0.0, 2.0]]), np.random.default_rng(0), 5)
    >>> drawn.sum(axis=1).tolist()[0], drawn.sum(axis=2).tolist()[0]
    ([2.0, 2.0], [2.0, 2.0])
    """
    whole = np.rint(counts).astype(np.int64)
    if whole.sum() >= MOST_SHUFFLED:
        raise ValueError(f"{whole.sum()} rows are too many to permute; at most {MOST_SHUFFLED - 1} are allowed.")
    if whole.sum() <= _ROWS_PER_DRAW * (whole.shape[0] - 1) * whole.shape[1]:
        return _shuffle_rows(whole, rng, size)
    *smaller, largest = np.argsort(whole.sum(axis=1), kind="stable").tolist()
    remaining = np.repeat(whole.sum(axis=0)[None], size, axis=0)  # rows not yet assigned to a cell
    drawn = np.zeros((size, *counts.shape))
    for cell in smaller:
        n = int(whole[cell].sum())
        for urn, sample in zip(remaining, drawn[:, cell], strict=True):
            sample[:] = rng.multivariate_hypergeometric(urn, n, method="marginals")
            np.subtract(urn, sample, out=urn, casting="unsafe")  # integers stored as floats
    drawn[:, largest] = remaining
    return drawn


def _shuffle_rows(counts: NDArray[np.int64], rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Permute the cells of individual rows."""
    n_cells, n_nodes = counts.shape
    cells = np.tile(np.repeat(np.arange(n_cells), counts.sum(axis=1)), (size, 1))
    nodes = np.repeat(np.arange(n_nodes), counts.sum(axis=0))
    at = (np.arange(size)[:, None] * n_cells + rng.permuted(cells, axis=1)) * n_nodes + nodes
    drawn: NDArray[np.float64] = np.bincount(at.ravel(), minlength=size * n_cells * n_nodes).astype(np.float64)
    return drawn.reshape(size, n_cells, n_nodes)
