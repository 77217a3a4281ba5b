"""Samples as the means of their m parts of equal mass, in order, or as counts in bins.

The distance of two samples is a sum over pairs of slices, and its derivative with respect to a row is that of the
slices that the row is part of. The compiled twins are in `fairtransport.transport.kernels.line`.
"""

from __future__ import annotations

import numpy as np

from fairtransport._arrays import Floats, Ints
from fairtransport.transport.kernels.line import INDEX_BITS, radix_order

_FEW = 512  # values that NumPy sorts faster


def slice_means(values: Floats, mass: Floats, n_slices: int) -> Floats:
    """Return the mean of each of ``n_slices`` parts of equal mass of an ascending sample; borders may split a row."""
    cumulative = np.concatenate(([0.0], np.cumsum(mass)))
    area = np.concatenate(([0.0], np.cumsum(mass * values)))
    levels = np.linspace(0.0, cumulative[-1], n_slices + 1)
    return np.asarray(np.diff(np.interp(levels, cumulative, area)) * n_slices / cumulative[-1])


def ascending_order(values: Floats) -> Ints:
    """Return the positions of the values in ascending order, to within 2^-33 of their range, in linear time."""
    low, high = float(values.min()), float(values.max())
    # A range beyond these limits cannot be divided by.
    if values.size < _FEW or values.size >= 1 << INDEX_BITS or not 1e-290 < high - low < np.inf:
        return np.argsort(values, kind="stable")
    return np.asarray(radix_order(values, low, (2.0**33 - 1.0) / (high - low)))


def histogram_slices(masses: Floats, edges: Floats, n_slices: int) -> Floats:
    """Return the slice means of samples that were counted in cells, each cell's mass spread evenly over it."""
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


# Scores counted in cells of [0, 1].

#: Cells of [0, 1]. Distances of binned scores are exact to half a cell.
CELLS = 1024


def quantiles(masses: Floats, levels: Floats) -> Floats:
    """Return quantiles of masses on the edges of equal cells of [0, 1], each spread over half a cell on both sides."""
    cells = len(masses) - 1
    reached = np.append(0.0, np.cumsum(masses))
    edges = np.clip((np.arange(cells + 2) - 0.5) / cells, 0.0, 1.0)
    # The level 1 is reached at the last mass, not at the end of the last empty cell.
    return np.interp(np.minimum(levels, 1.0 - 1e-12), reached / reached[-1], edges)
