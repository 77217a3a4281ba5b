"""Scores counted in cells of [0, 1], and one derivative for each cell.

The mass of a score is split between the two edges of its cell in inverse proportion to their distances. A function of
the masses on the edges is then a function of the scores that is linear inside each cell, so its derivative is one
number for each cell and distribution: one pass over the rows counts, another one looks up. The compiled twins, which
are those passes, are in `fairtransport.transport.kernels.binned`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CELLS", "edge_masses", "logit_derivatives", "quantiles"]

#: Cells of [0, 1]. Distances of binned scores are exact to half a cell.
CELLS = 1024


def edge_masses(
    scores: NDArray[np.float64], shares: NDArray[np.floating], weights: NDArray[np.float64], n_cells: int
) -> NDArray[np.float64]:
    """Return the mass of each group on each edge of equal cells of [0, 1].

    Parameters
    ----------
    scores, weights : ndarray of shape (n_rows,)
    shares : ndarray of shape (n_rows, n_groups)
        How much of each row belongs to each group.
    n_cells : int

    Returns
    -------
    ndarray of shape (n_groups, n_cells + 1)

    Examples
    --------
    >>> edge_masses(np.array([0.125, 1.0]), np.ones((2, 1)), np.ones(2), 4)
    array([[0.5, 0.5, 0. , 0. , 1. ]])
    """
    edges = np.arange(n_cells + 1) / n_cells
    hats = np.maximum(1.0 - np.abs(scores[:, None] - edges) * n_cells, 0.0)
    return np.asarray((shares * weights[:, None]).T @ hats)


def logit_derivatives(
    scores: NDArray[np.float64],
    labels: NDArray[np.floating],
    shares: NDArray[np.floating],
    weights: NDArray[np.float64],
    *,
    first: NDArray[np.float64],
    second: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return the first and the second derivative of log-loss plus penalty with respect to each row's logit.

    Parameters
    ----------
    scores, labels, weights : ndarray of shape (n_rows,)
    shares : ndarray of shape (n_rows, n_groups)
    first, second : ndarray of shape (n_groups, n_cells)
        Derivatives of the penalty with respect to a score in each cell, for a row of weight 1.

    Notes
    -----
    With the score s of a row of weight w and the penalty's derivatives p' and p'' in its cell,

    .. math:: w\,(s - y + p' s (1 - s)), \qquad w\,(s (1 - s) + p'' s^2 (1 - s)^2),

    the second one kept positive.
    """
    n_cells = first.shape[1]
    cell = np.minimum((scores * n_cells).astype(np.int64), n_cells - 1)
    slope, bend = ((shares * table[:, cell].T).sum(axis=1) for table in (first, second))
    variance = scores * (1.0 - scores)
    return (
        weights * (scores - labels + slope * variance),
        weights * np.maximum(variance + bend * variance**2, 1e-16),
    )


def quantiles(masses: NDArray[np.float64], levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return quantiles of one distribution whose masses lie on the edges of equal cells of [0, 1].

    The mass of an edge is spread evenly over half a cell on each side, so that quantiles are continuous in the levels.

    Examples
    --------
    >>> quantiles(np.array([0.0, 1.0, 1.0, 0.0, 0.0]), np.array([0.25, 0.5, 0.75]))
    array([0.25 , 0.375, 0.5  ])
    """
    cells = len(masses) - 1
    reached = np.append(0.0, np.cumsum(masses))
    edges = np.clip((np.arange(cells + 2) - 0.5) / cells, 0.0, 1.0)
    # The level 1 is reached at the last mass, not at the end of the last empty cell.
    return np.interp(np.minimum(levels, 1.0 - 1e-12), reached / reached[-1], edges)
