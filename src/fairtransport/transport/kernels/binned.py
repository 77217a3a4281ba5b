"""Scores counted in cells of [0, 1], derivatives for each cell, and for each row; plain twins: ``tests/transport``.

Each row belongs to one cell of rows, by its code, or to every group of its stratum by a share.
"""

from __future__ import annotations

import numpy as np

from fairtransport._columns.compilation import cached_njit


@cached_njit(nogil=True, error_model="numpy")
def count_masses(scores, codes, weights, masses):
    """Add each row's weight (1 where there are none) to the edges around its score in (n_codes, n_cells + 1) masses."""
    cells = masses.shape[1] - 1
    flat, row = masses.reshape(-1), np.uint64(cells + 1)  # positive positions need no check
    weighted = weights.shape[0] > 0
    for i in range(scores.shape[0]):
        position = scores[i] * cells
        cell = min(int(position), cells - 1)
        weight = weights[i] if weighted else 1.0
        upper = weight * (position - cell)
        at = np.uint64(codes[i]) * row + np.uint64(cell)
        flat[at] += weight - upper
        flat[at + np.uint64(1)] += upper


@cached_njit(nogil=True, error_model="numpy")
def count_scores(scores, bins, codes, weights, masses, sums):
    """Add each row's weight, and its weight times its score, to tables of shape (n_codes, n_bins)."""
    for i in range(scores.shape[0]):
        masses[codes[i], bins[i]] += weights[i]
        sums[codes[i], bins[i]] += weights[i] * scores[i]


@cached_njit(nogil=True, error_model="numpy", fastmath={"contract"})
def count_shared(scores, shares, strata, weights, masses):
    """Do the same for rows that belong to every group by a share, in (n_strata, n_cells + 1, n_groups) masses."""
    cells, width = masses.shape[1] - 1, np.uint64(masses.shape[2])
    flat, share, stratum = masses.reshape(-1), shares.reshape(-1), np.uint64(masses.shape[1]) * width
    weighted = weights.shape[0] > 0
    for i in range(scores.shape[0]):
        position = scores[i] * cells
        cell = min(int(position), cells - 1)
        weight = weights[i] if weighted else 1.0
        upper = weight * (position - cell)
        lower = weight - upper
        at, first = np.uint64(strata[i]) * stratum + np.uint64(cell) * width, np.uint64(i) * width
        for a in range(width):
            flat[at + a] += lower * share[first + a]
        at += width
        for a in range(width):
            flat[at + a] += upper * share[first + a]


@cached_njit(nogil=True, error_model="numpy")
def logit_derivatives(scores, labels, codes, weights, table, gradient, curvature):
    """Write the derivatives of log-loss plus penalty with respect to each row's logit.

    ``table``, of shape (n_codes, n_cells, 2), has the first and the second derivative of the penalty with respect to a
    score in each cell, for a row of weight 1.
    """
    cells = table.shape[1]
    flat, row, two = table.reshape(-1), np.uint64(2 * cells), np.uint64(2)
    weighted = weights.shape[0] > 0
    for i in range(scores.shape[0]):
        score = scores[i]
        cell = min(int(score * cells), cells - 1)
        variance = score * (1.0 - score)
        weight = weights[i] if weighted else 1.0
        at = np.uint64(codes[i]) * row + np.uint64(cell) * two
        gradient[i] = weight * (score - labels[i] + flat[at] * variance)
        curvature[i] = weight * max(variance + flat[at + np.uint64(1)] * variance * variance, 1e-16)


@cached_njit(nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def logit_derivatives_shared(scores, labels, shares, strata, weights, table, gradient, curvature):
    """Do the same for rows that belong to every group of their stratum by a share.

    The table has the shape (n_strata, n_cells, 2, n_groups).
    """
    cells, width = table.shape[1], np.uint64(table.shape[3])
    flat, share, stratum = table.reshape(-1), shares.reshape(-1), np.uint64(2 * cells) * width
    weighted = weights.shape[0] > 0
    for i in range(scores.shape[0]):
        score = scores[i]
        cell = min(int(score * cells), cells - 1)
        variance = score * (1.0 - score)
        weight = weights[i] if weighted else 1.0
        slope = bend = 0.0
        at, first = np.uint64(strata[i]) * stratum + np.uint64(2 * cell) * width, np.uint64(i) * width
        for a in range(width):
            slope += share[first + a] * flat[at + a]
        at += width
        for a in range(width):
            bend += share[first + a] * flat[at + a]
        gradient[i] = weight * (score - labels[i] + slope * variance)
        curvature[i] = weight * max(variance + bend * variance * variance, 1e-16)


@cached_njit(nogil=True, error_model="numpy")
def slices_and_levels(masses, edges, slices, levels):
    """Write the slice means of samples that were counted in cells, and the shares of mass below the cells' edges.

    Each cell's mass is spread evenly between its edges.
    """
    n = slices.shape[1]
    for sample in range(masses.shape[0]):
        total = 0.0
        for cell in range(masses.shape[1]):
            total += masses[sample, cell]
            levels[sample, cell + 1] = total
        part = 0
        for cell in range(masses.shape[1]):
            levels[sample, cell + 1] /= total
            low, high = n * levels[sample, cell], n * levels[sample, cell + 1]
            start, slope = low, (edges[cell + 1] - edges[cell]) / max(high - low, 1e-300)
            while start < high:
                end = high if part >= n - 1 else min(high, part + 1.0)
                slices[sample, part] += (end - start) * (edges[cell] + slope * (0.5 * (start + end) - low))
                if end == part + 1.0 and part < n - 1:
                    part += 1
                start = end


@cached_njit(nogil=True, error_model="numpy")
def slopes_between_edges(slopes, levels, result):
    """Write the change by moving unit mass from each edge to the next, in the unit of a cell, for each sample.

    ``slopes``, of shape (n_samples, n_slices, 2), are two tables of slopes of slices of equal mass, and ``levels`` the
    shares below each edge. The distribution function falls by a triangle around both edges, so the slope is weighted
    with it.
    """
    n = slopes.shape[1]
    for sample in range(result.shape[0]):
        for edge in range(result.shape[1] + 1):
            low, high = n * levels[sample, edge], n * levels[sample, edge + 1]
            part = int(low + 1e-9) if low < n - 1 else n - 1  # rounding does not decide
            upward = downward = 0.5 * slopes[sample, part, 0]
            upward_bend = downward_bend = 0.5 * slopes[sample, part, 1]
            if high > low:
                upward = downward = upward_bend = downward_bend = 0.0
                start = low
                while start < high:
                    end = high if part >= n - 1 else min(high, part + 1.0)
                    mass = (end - start) / (high - low)
                    above = mass * (0.5 * (start + end) - low) / (high - low)
                    below = mass - above
                    upward += above * slopes[sample, part, 0]
                    downward += below * slopes[sample, part, 0]
                    upward_bend += above * slopes[sample, part, 1]
                    downward_bend += below * slopes[sample, part, 1]
                    start = end
                    part += 1
            if edge < result.shape[1]:
                result[sample, edge, 0] += upward
                result[sample, edge, 1] += upward_bend
            if edge > 0:
                result[sample, edge - 1, 0] += downward
                result[sample, edge - 1, 1] += downward_bend
