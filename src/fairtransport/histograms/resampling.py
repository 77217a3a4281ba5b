"""Resampled histograms: bootstrap replicates, and permutations of group membership.

The cost depends on the number of nodes, not on the number of rows.
"""

from __future__ import annotations

import numpy as np

from fairtransport._arrays import Floats

#: NumPy's hypergeometric draws are limited to fewer rows than this.
MOST_SHUFFLED = 10**9

_MANY_ROWS = 20  # of a node: normal numbers take a tenth of the time of binomial ones


def resample_masses(
    masses: Floats, squares: Floats | None, rng: np.random.Generator, size: int, *, fixed_sizes: bool = True
) -> Floats:
    r"""Return bootstrap replicates of histograms.

    Notes
    -----
    With unit weights and fixed sizes the rows of each cell are drawn with replacement: a multinomial draw, in which
    nodes of 20 rows and more have normal numbers of the same mean and covariance. Otherwise every row is drawn a
    Poisson(1) number of times. The rows of a node are drawn together: with W the sum of their weights and Q the sum of
    the squared weights,

    .. math:: \frac{Q}{W} \operatorname{Poisson}\!\left(\frac{W^2}{Q}\right),

    which has the same mean W and variance Q as the sum of independent rows, and is exact for equal weights.
    """
    if squares is None and fixed_sizes:
        drawn = np.zeros((size, *masses.shape))
        for cell, counts in enumerate(masses):
            many = counts >= _MANY_ROWS
            rest = counts[many].sum()
            total = counts[~many].sum() + rest  # in this order, so that rounding makes no share exceed 1
            if not total > 0:
                continue
            some = rng.multinomial(round(total), np.append(counts[~many], rest) / total, size=size)
            drawn[:, cell, ~many] = some[:, :-1]
            if rest > 0:
                shares, n_rows = counts[many] / rest, some[:, -1:]
                noise = np.sqrt(shares) * rng.standard_normal((size, shares.size), dtype=np.float32)
                noise -= shares * noise.sum(axis=1, keepdims=True)
                drawn[:, cell, many] = n_rows * shares + np.sqrt(n_rows) * noise
        return drawn
    if squares is None:
        return rng.poisson(masses, size=(size, *masses.shape)).astype(np.float64)
    row_weight = np.divide(squares, masses, out=np.zeros_like(masses), where=masses > 0)
    n_rows = np.divide(masses, row_weight, out=np.zeros_like(masses), where=row_weight > 0)
    return row_weight * rng.poisson(n_rows, size=(size, *masses.shape))


def shuffle_cells(counts: Floats, rng: np.random.Generator, size: int) -> Floats:
    """Return histograms in which every row keeps its score and the cells of the rows are permuted."""
    whole = np.rint(counts).astype(np.int64)
    if whole.sum() >= MOST_SHUFFLED:
        raise ValueError(f"{whole.sum()} rows are too many to permute; at most {MOST_SHUFFLED - 1} are allowed.")
    n_cells, n_nodes = whole.shape
    n_levels = max(n_nodes - 1, 0).bit_length()
    everyone = np.zeros(1 << n_levels, dtype=np.int64)
    everyone[:n_nodes] = whole.sum(axis=0)
    drawn = np.tile(whole.sum(axis=1)[:, None, None], (1, size, 1))  # by cell, replicate and part of the nodes
    for level in range(n_levels):  # the rows of each cell are divided between the lower and the upper half of each part
        parts = everyone.reshape(2 << level, -1).sum(axis=1)
        missing, further = np.tile(parts[::2], (size, 1)), np.tile(parts[::2] + parts[1::2], (size, 1))
        lower = np.empty_like(drawn)
        for cell in range(n_cells - 1):
            further -= drawn[cell]  # rows of the cells to come
            lower[cell] = rng.hypergeometric(drawn[cell], further, missing)
            missing -= lower[cell]
        lower[-1] = missing
        drawn = np.stack([lower, drawn - lower], axis=-1).reshape(n_cells, size, -1)
    return drawn[:, :, :n_nodes].swapaxes(0, 1).astype(np.float64)
