"""Slice means: a sample as the means of its m parts of equal mass, in order; all rows count.

The distance of two samples is a sum over pairs of slices, and its derivative with respect to a row is that of the
slices that the row is part of. The compiled twins are in `fairtransport.transport.kernels.slices`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairtransport.transport.kernels.slices import INDEX_BITS, radix_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "ascending_order",
    "histogram_slices",
    "histogram_slopes",
    "row_slopes",
    "slice_means",
]

_FEW = 512  # values that NumPy sorts faster


def slice_means(values: NDArray[np.float64], mass: NDArray[np.float64], n_slices: int) -> NDArray[np.float64]:
    """Return the mean of each of ``n_slices`` parts of equal mass of an ascending sample; borders may split a row.

    Examples
    --------
    >>> slice_means(np.array([0.0, 0.3, 0.6]), np.ones(3), 2).round(3).tolist()
    [0.1, 0.5]
    """
    cumulative = np.concatenate(([0.0], np.cumsum(mass)))
    area = np.concatenate(([0.0], np.cumsum(mass * values)))
    levels = np.linspace(0.0, cumulative[-1], n_slices + 1)
    return np.asarray(np.diff(np.interp(levels, cumulative, area)) * n_slices / cumulative[-1])


def row_slopes(slopes: NDArray[np.float64], mass: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of the slices' slopes over the levels that each row of an ascending sample covers.

    Times the row's share of the mass, it is the adjoint of `slice_means`.
    """
    cumulative = np.concatenate(([0.0], np.cumsum(mass)))
    area = np.concatenate(([0.0], np.cumsum(slopes)))
    reached = np.interp(cumulative, np.linspace(0.0, cumulative[-1], len(slopes) + 1), area)
    return np.asarray(np.diff(reached) * cumulative[-1] / (len(slopes) * mass))


def ascending_order(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the positions of the values in ascending order, as `numpy.argsort` does, to within 2^-33 of their range.

    A radix sort of keys of 33 bits takes time proportional to the number of values.

    Examples
    --------
    >>> ascending_order(np.array([0.3, 0.1, 0.2])).tolist()
    [1, 2, 0]
    """
    low, high = float(values.min()), float(values.max())
    # A range beyond these limits cannot be divided by.
    if values.size < _FEW or values.size >= 1 << INDEX_BITS or not 1e-290 < high - low < np.inf:
        return np.argsort(values, kind="stable")
    return np.asarray(radix_order(values, low, (2.0**33 - 1.0) / (high - low)))


def histogram_slices(masses: NDArray[np.float64], edges: NDArray[np.float64], n_slices: int) -> NDArray[np.float64]:
    """Return the slice means of samples that were counted in cells, each cell's mass spread evenly over it.

    Parameters
    ----------
    masses : ndarray of shape (n_samples, n_cells)
    edges : ndarray of shape (n_cells + 1,)
    n_slices : int

    Examples
    --------
    >>> histogram_slices(np.array([[1.0, 0.0, 1.0]]), np.array([0.0, 0.2, 0.4, 0.6]), 2).tolist()
    [[0.1, 0.5]]
    """
    means = np.empty((len(masses), n_slices))
    for sample, mass in enumerate(masses):
        kept = np.flatnonzero(mass > 0.0)
        cumulative = np.concatenate(([0.0], np.cumsum(mass[kept])))
        low, high = edges[kept], edges[kept + 1]
        area = np.concatenate(([0.0], np.cumsum(mass[kept] * 0.5 * (low + high))))
        levels = np.linspace(0.0, cumulative[-1], n_slices + 1)
        cell = np.clip(np.searchsorted(cumulative, levels, side="right") - 1, 0, len(kept) - 1)
        inside = levels - cumulative[cell]
        slope = (high - low)[cell] / mass[kept][cell]
        reached = area[cell] + inside * (low[cell] + 0.5 * inside * slope)
        means[sample] = np.diff(reached) * n_slices / cumulative[-1]
    return means


def histogram_slopes(slopes: NDArray[np.float64], masses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean slope of each cell from those of the slices; an empty cell has that of its level."""
    cell_slopes = np.empty(masses.shape)
    n_slices = slopes.shape[1]
    for sample, (mass, slope) in enumerate(zip(masses, slopes, strict=True)):
        levels = np.concatenate(([0.0], np.cumsum(mass))) / mass.sum() * n_slices
        area = np.interp(levels, np.arange(n_slices + 1.0), np.concatenate(([0.0], np.cumsum(slope))))
        width = np.diff(levels)
        at_level = slope[np.minimum(levels[:-1].astype(np.int64), n_slices - 1)]
        with np.errstate(invalid="ignore", divide="ignore"):
            cell_slopes[sample] = np.where(width > 1e-9, np.diff(area) / width, at_level)
    return cell_slopes
