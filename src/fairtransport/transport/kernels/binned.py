"""Scores counted in cells of [0, 1], derivatives for each cell, and for each row; plain twins: ``tests/transport``.

Each row belongs to one cell of rows, by its code, or to every group of its stratum by a share.
"""

from __future__ import annotations

from typing import NamedTuple

from fairtransport._arrays import Floats
from fairtransport._columns.compilation import cached_njit


class CellDerivatives(NamedTuple):
    """Derivatives of a penalty with respect to a score in each cell, for a row of weight 1."""

    first: Floats
    second: Floats


@cached_njit(nogil=True, error_model="numpy")
def count_masses(scores, codes, weights, masses):
    """Add each row's weight (1 where there are none) to the edges around its score in (n_codes, n_cells + 1) masses."""
    cells = masses.shape[1] - 1
    weighted = weights.shape[0] > 0
    for i in range(scores.shape[0]):
        position = scores[i] * cells
        cell = min(int(position), cells - 1)
        weight = weights[i] if weighted else 1.0
        upper = weight * (position - cell)
        masses[codes[i], cell] += weight - upper
        masses[codes[i], cell + 1] += upper


@cached_njit(nogil=True, error_model="numpy")
def count_shared(scores, shares, strata, weights, masses):
    """Do the same for rows that belong to every group by a share, in (n_strata, n_cells + 1, n_groups) masses."""
    cells = masses.shape[1] - 1
    weighted = weights.shape[0] > 0
    for i in range(scores.shape[0]):
        position = scores[i] * cells
        cell = min(int(position), cells - 1)
        weight = weights[i] if weighted else 1.0
        upper = weight * (position - cell)
        lower = weight - upper
        stratum = strata[i]
        for a in range(shares.shape[1]):
            masses[stratum, cell, a] += lower * shares[i, a]
            masses[stratum, cell + 1, a] += upper * shares[i, a]


@cached_njit(nogil=True, error_model="numpy")
def logit_derivatives(scores, labels, codes, weights, cell_derivatives, gradient, curvature):
    """Write the derivatives of log-loss plus penalty with respect to each row's logit."""
    first, second = cell_derivatives
    cells = first.shape[1]
    weighted = weights.shape[0] > 0
    for i in range(scores.shape[0]):
        score, code = scores[i], codes[i]
        cell = min(int(score * cells), cells - 1)
        variance = score * (1.0 - score)
        weight = weights[i] if weighted else 1.0
        gradient[i] = weight * (score - labels[i] + first[code, cell] * variance)
        curvature[i] = weight * max(variance + second[code, cell] * variance * variance, 1e-16)


@cached_njit(nogil=True, error_model="numpy")
def logit_derivatives_shared(scores, labels, shares, strata, weights, cell_derivatives, gradient, curvature):
    """Do the same for rows that belong to every group of their stratum by a share."""
    first, second = cell_derivatives
    cells = first.shape[1]
    weighted = weights.shape[0] > 0
    for i in range(scores.shape[0]):
        score = scores[i]
        cell = min(int(score * cells), cells - 1)
        variance = score * (1.0 - score)
        weight = weights[i] if weighted else 1.0
        slope = bend = 0.0
        stratum = strata[i]
        for a in range(shares.shape[1]):
            slope += shares[i, a] * first[stratum, cell, a]
            bend += shares[i, a] * second[stratum, cell, a]
        gradient[i] = weight * (score - labels[i] + slope * variance)
        curvature[i] = weight * max(variance + bend * variance * variance, 1e-16)


@cached_njit(nogil=True, error_model="numpy")
def slopes_between_edges(slopes, levels, result):
    """Write the change by moving unit mass from each edge to the next, in the unit of a cell, for each sample.

    ``slopes`` are those of slices of equal mass, ``levels`` the shares below each edge. The distribution function falls
    by a triangle around both edges, so the slope is weighted with it.
    """
    n = slopes.shape[1]
    for sample in range(result.shape[0]):
        for edge in range(result.shape[1] + 1):
            low, high = n * levels[sample, edge], n * levels[sample, edge + 1]
            part = int(low + 1e-9) if low < n - 1 else n - 1  # rounding does not decide
            upward = downward = 0.5 * slopes[sample, part]
            if high > low:
                upward = downward = 0.0
                start = low
                while start < high:
                    end = high if part >= n - 1 else min(high, part + 1.0)
                    mass = slopes[sample, part] * (end - start) / (high - low)
                    height = (0.5 * (start + end) - low) / (high - low)
                    upward += mass * height
                    downward += mass * (1.0 - height)
                    start = end
                    part += 1
            if edge < result.shape[1]:
                result[sample, edge] += upward
            if edge > 0:
                result[sample, edge - 1] += downward
