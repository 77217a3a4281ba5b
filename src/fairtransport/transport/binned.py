"""Scores counted in fine cells of [0, 1], and one derivative for each cell.

A score's mass is shared between the two edges of its cell, the nearer one getting more. What is then computed from the
masses on the edges is a function of the scores that is linear inside each cell, so its derivative is one number for
each cell and distribution: one pass counts, one pass looks up, whatever the number of rows.

Each compiled function has a plain NumPy twin in ``tests/transport/test_binned.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CELLS", "count_masses", "count_shared", "pushes", "pushes_shared", "quantiles"]

#: Cells of [0, 1]. Distances of binned scores are exact to half a cell.
CELLS = 1024


@njit(cache=True, nogil=True, error_model="numpy")
def count_masses(
    scores: NDArray[np.float64], codes: NDArray[Any], weights: NDArray[np.float64], masses: NDArray[np.float64]
) -> None:
    """Add each row's weight (1 where there are none) to the two edges around its score, in its code's row."""
    cells = masses.shape[1] - 1
    weighted = weights.shape[0] > 0
    for i in range(scores.shape[0]):
        place = scores[i] * cells
        cell = min(int(place), cells - 1)
        weight = weights[i] if weighted else 1.0
        upper = weight * (place - cell)
        masses[codes[i], cell] += weight - upper
        masses[codes[i], cell + 1] += upper


@njit(cache=True, nogil=True, error_model="numpy")
def count_shared(
    scores: NDArray[np.float64], shares: NDArray[np.float32], weights: NDArray[np.float64], masses: NDArray[np.float64]
) -> None:
    """Do the same for rows that belong to every group by a share; ``masses`` is of shape (edges, groups)."""
    cells = masses.shape[0] - 1
    weighted = weights.shape[0] > 0
    for i in range(scores.shape[0]):
        place = scores[i] * cells
        cell = min(int(place), cells - 1)
        weight = weights[i] if weighted else 1.0
        upper = weight * (place - cell)
        lower = weight - upper
        for a in range(shares.shape[1]):
            masses[cell, a] += lower * shares[i, a]
            masses[cell + 1, a] += upper * shares[i, a]


@njit(cache=True, nogil=True, error_model="numpy")
def pushes(  # noqa: PLR0917 - compiled functions take no keywords
    scores: NDArray[np.float64],
    labels: NDArray[np.float32],
    codes: NDArray[Any],
    weights: NDArray[np.float64],
    slopes: NDArray[np.float64],
    bends: NDArray[np.float64],
    gradient: NDArray[Any],
    curvature: NDArray[Any],
) -> None:
    """Write the derivatives of log-loss plus penalty with respect to each row's logit.

    ``slopes`` and ``bends`` are of shape (codes, cells): first derivative of the penalty with respect to a score, and
    the approximation of its second one, both for a row of weight 1.
    """
    cells = slopes.shape[1]
    weighted = weights.shape[0] > 0
    for i in range(scores.shape[0]):
        score, code = scores[i], codes[i]
        cell = min(int(score * cells), cells - 1)
        rise = score * (1.0 - score)
        weight = weights[i] if weighted else 1.0
        gradient[i] = weight * (score - labels[i] + slopes[code, cell] * rise)
        curvature[i] = weight * max(rise + bends[code, cell] * rise * rise, 1e-16)


@njit(cache=True, nogil=True, error_model="numpy")
def pushes_shared(  # noqa: PLR0917 - likewise
    scores: NDArray[np.float64],
    labels: NDArray[np.float32],
    shares: NDArray[np.float32],
    weights: NDArray[np.float64],
    slopes: NDArray[np.float64],
    bends: NDArray[np.float64],
    gradient: NDArray[Any],
    curvature: NDArray[Any],
) -> None:
    """Do the same for rows that belong to every group by a share; tables are of shape (cells, groups)."""
    cells = slopes.shape[0]
    weighted = weights.shape[0] > 0
    for i in range(scores.shape[0]):
        score = scores[i]
        cell = min(int(score * cells), cells - 1)
        rise = score * (1.0 - score)
        weight = weights[i] if weighted else 1.0
        slope = bend = 0.0
        for a in range(shares.shape[1]):
            slope += shares[i, a] * slopes[cell, a]
            bend += shares[i, a] * bends[cell, a]
        gradient[i] = weight * (score - labels[i] + slope * rise)
        curvature[i] = weight * max(rise + bend * rise * rise, 1e-16)


def quantiles(masses: NDArray[np.float64], levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quantiles of one distribution whose masses lie on the edges of equal cells of [0, 1].

    The mass of an edge is spread evenly over half a cell on each side, so that quantiles do not come in steps.

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
