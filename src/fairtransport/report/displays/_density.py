"""Kernel density estimates of scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["N_CELLS", "kernel_density"]

N_CELLS = 240
_MIN_BANDWIDTH, _MAX_BANDWIDTH = 0.012, 0.08  # as shares of the range of scores


def kernel_density(
    scores: NDArray[np.float64], masses: NDArray[np.float64], size: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Estimate the density of weighted scores with a Gaussian kernel that is reflected at 0 and 1.

    Parameters
    ----------
    scores : array of shape (n,)
        Ascending, on [0, 1].
    masses : array of shape (n,)
        Their weights.
    size : float
        Effective number of rows, which determines the bandwidth.

    Returns
    -------
    points, density : array of shape (240,)
        Centres of cells, and the density there, whose mean is 1. The script of the audit page draws the same curve
        (``curveDensity`` in ``chart.js``).

    Notes
    -----
    The bandwidth is Silverman's :math:`0.9 \, \sigma \, n^{-1/5}`, between 0.012 and 0.08.

    Examples
    --------
    >>> points, density = kernel_density(np.array([0.2, 0.8]), np.array([3.0, 1.0]), 4.0)
    >>> round(float(density.mean()), 6), bool(density[48] > density[192])
    (1.0, True)
    """
    shares = masses / masses.sum()
    cells = np.clip(np.ceil(scores * N_CELLS - 1e-9).astype(np.int64) - 1, 0, N_CELLS - 1)
    histogram = np.bincount(cells, weights=shares, minlength=N_CELLS)
    deviation = float(np.sqrt(max(0.0, shares @ scores**2 - (shares @ scores) ** 2)))
    width = N_CELLS * min(_MAX_BANDWIDTH, max(_MIN_BANDWIDTH, 0.9 * deviation * max(size, 2.0) ** -0.2))
    reach = int(np.ceil(3 * width))
    kernel = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * width**2))
    smooth = np.convolve(histogram, kernel / kernel.sum())
    density = smooth[reach : reach + N_CELLS].copy()
    density[:reach] += smooth[:reach][::-1]
    density[N_CELLS - reach :] += smooth[reach + N_CELLS :][::-1]
    return (np.arange(N_CELLS) + 0.5) / N_CELLS, density * N_CELLS
