"""A smooth curve through a group's scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["N_CELLS", "smooth_density"]

N_CELLS = 240
_NARROWEST, _WIDEST = 0.012, 0.08  # widths of the bell, as shares of the range


def smooth_density(
    scores: NDArray[np.float64], masses: NDArray[np.float64], size: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Smooth weighted scores by a bell whose width follows their spread and number; the edges reflect.

    Parameters
    ----------
    scores : array of shape (n,)
        Ascending, on [0, 1].
    masses : array of shape (n,)
        Their weights.
    size : float
        How many rows they are worth.

    Returns
    -------
    points, density : array of shape (240,)
        Middles of cells, and a density that sums to 1 over them. The page's script draws the same curve.

    Examples
    --------
    >>> points, density = smooth_density(np.array([0.2, 0.8]), np.array([3.0, 1.0]), 4.0)
    >>> round(float(density.mean()), 6), bool(density[48] > density[192])
    (1.0, True)
    """
    shares = masses / masses.sum()
    places = np.clip(np.ceil(scores * N_CELLS - 1e-9).astype(np.int64) - 1, 0, N_CELLS - 1)
    cells = np.bincount(places, weights=shares, minlength=N_CELLS)
    spread = float(np.sqrt(max(0.0, shares @ scores**2 - (shares @ scores) ** 2)))
    width = N_CELLS * min(_WIDEST, max(_NARROWEST, 0.9 * spread * max(size, 2.0) ** -0.2))
    reach = int(np.ceil(3 * width))
    bell = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * width**2))
    wide = np.convolve(cells, bell / bell.sum())
    middle = wide[reach : reach + N_CELLS].copy()
    middle[:reach] += wide[:reach][::-1]
    middle[N_CELLS - reach :] += wide[reach + N_CELLS :][::-1]
    return (np.arange(N_CELLS) + 0.5) / N_CELLS, middle * N_CELLS
