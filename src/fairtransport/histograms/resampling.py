"""Histograms that chance could have given instead: the bootstrap, and groups drawn by lot.

Arrays in, arrays out. The cost depends on the number of nodes, never on the number of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MOST_SHUFFLED", "redraw_null", "resample_masses", "shuffle_cells"]

#: NumPy draws from urns of fewer rows than this.
MOST_SHUFFLED = 10**9

# Where rows are few they are shuffled themselves, which is the same and faster: so many in the time of a draw.
_ROWS_A_DRAW = 10


def resample_masses(
    masses: NDArray[np.float64],
    squares: NDArray[np.float64] | None,
    rng: np.random.Generator,
    size: int,
    *,
    fixed_sizes: bool = True,
) -> NDArray[np.float64]:
    r"""Draw histograms as new rows from the same source would give them.

    Parameters
    ----------
    masses : array of shape (n_cells, n_nodes)
        Weight of the rows at each node.
    squares : array of shape (n_cells, n_nodes), or None
        Sum of the squares of these rows' weights; None where every weight is 1.
    rng : numpy.random.Generator
    size : int
        How many histograms.
    fixed_sizes : bool, default True
        Whether each cell keeps its number of rows; possible only where every weight is 1.

    Returns
    -------
    array of shape (size, n_cells, n_nodes)

    Notes
    -----
    With unit weights and fixed sizes each cell's rows are drawn with replacement: a multinomial draw. Otherwise
    every row is drawn a Poisson(1) number of times, the rows of a node together: with W the weight there and
    Q the sum of the squared weights,

    .. math:: \frac{Q}{W} \operatorname{Poisson}\!\left(\frac{W^2}{Q}\right),

    which has the mean W and the variance Q that the rows one by one would have, and is exact for equal weights.

    Examples
    --------
    >>> drawn = resample_masses(np.array([[5.0, 0.0, 5.0]]), None, np.random.default_rng(0), 3)
    >>> drawn.sum(axis=-1).tolist(), drawn[:, 0, 1].tolist()
    ([[10.0], [10.0], [10.0]], [0.0, 0.0, 0.0])
    """
    if squares is None and fixed_sizes:
        drawn = np.zeros((size, *masses.shape))
        for cell, held in enumerate(masses):
            total = held.sum()
            if total > 0:
                drawn[:, cell] = rng.multinomial(round(total), held / total, size=size)
        return drawn
    if squares is None:
        return rng.poisson(masses, size=(size, *masses.shape)).astype(np.float64)
    unit = np.divide(squares, masses, out=np.zeros_like(masses), where=masses > 0)
    times = np.divide(masses, unit, out=np.zeros_like(masses), where=unit > 0)
    return unit * rng.poisson(times, size=(size, *masses.shape))


def shuffle_cells(counts: NDArray[np.float64], rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Draw histograms in which every row keeps its score and cells are drawn by lot.

    Parameters
    ----------
    counts : array of shape (n_cells, n_nodes)
        Rows at each node, whole numbers; fewer than 10**9 in all.
    rng : numpy.random.Generator
    size : int
        How many shuffles.

    Returns
    -------
    array of shape (size, n_cells, n_nodes)
        Each with the same rows for each cell and for each node: a draw without replacement (multivariate
        hypergeometric), the distribution that shuffling rows gives exactly.

    Examples
    --------
    >>> drawn = shuffle_cells(np.array([[2.0, 0.0], [0.0, 2.0]]), np.random.default_rng(0), 5)
    >>> drawn.sum(axis=1).tolist()[0], drawn.sum(axis=2).tolist()[0]
    ([2.0, 2.0], [2.0, 2.0])
    """
    whole = np.rint(counts).astype(np.int64)
    if whole.sum() >= MOST_SHUFFLED:
        raise ValueError(f"{whole.sum()} rows are too many to shuffle; redraw_null draws anew instead.")
    if whole.sum() <= _ROWS_A_DRAW * (whole.shape[0] - 1) * whole.shape[1]:
        return _shuffle_rows(whole, rng, size)
    *smaller, largest = np.argsort(whole.sum(axis=1), kind="stable").tolist()
    left = np.repeat(whole.sum(axis=0)[None], size, axis=0)  # rows that no cell has taken yet
    drawn = np.zeros((size, *counts.shape))
    for cell in smaller:
        n = int(whole[cell].sum())
        for urn, taken in zip(left, drawn[:, cell], strict=True):
            taken[:] = rng.multivariate_hypergeometric(urn, n, method="marginals")
            np.subtract(urn, taken, out=urn, casting="unsafe")  # whole numbers, held as floats
    drawn[:, largest] = left  # what nobody else has taken
    return drawn


def _shuffle_rows(counts: NDArray[np.int64], rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Shuffle the cells of rows that stand one by one."""
    n_cells, n_nodes = counts.shape
    cells = np.tile(np.repeat(np.arange(n_cells), counts.sum(axis=1)), (size, 1))
    nodes = np.repeat(np.arange(n_nodes), counts.sum(axis=0))
    at = (np.arange(size)[:, None] * n_cells + rng.permuted(cells, axis=1)) * n_nodes + nodes
    drawn: NDArray[np.float64] = np.bincount(at.ravel(), minlength=size * n_cells * n_nodes).astype(np.float64)
    return drawn.reshape(size, n_cells, n_nodes)


def redraw_null(
    pool: NDArray[np.float64], sizes: NDArray[np.float64], rng: np.random.Generator, size: int
) -> NDArray[np.float64]:
    """Draw each cell anew from everyone's distribution, with its effective number of rows.

    Parameters
    ----------
    pool : array of shape (n_nodes,)
        Everyone's weight at each node.
    sizes : array of shape (n_cells,)
        Effective number of rows of each cell: (sum of weights) ** 2 / sum of squares.
    rng : numpy.random.Generator
    size : int
        How many draws.

    Returns
    -------
    array of shape (size, n_cells, n_nodes)
        Shares of each cell's mass: each row sums to 1.

    Examples
    --------
    >>> redraw_null(np.array([1.0, 0.0, 1.0]), np.array([4.0]), np.random.default_rng(0), 2).sum(axis=-1).tolist()
    [[1.0], [1.0]]
    """
    whole = np.maximum(np.rint(sizes), 1).astype(np.int64)
    drawn = np.stack([rng.multinomial(n, pool / pool.sum(), size=size) for n in whole], axis=1)
    return drawn / whole[:, None]
