r"""Tests of the differences between pairs of groups.

The distance of each pair is compared with the noise of both groups: :math:`d_{ij}` with the distribution of
:math:`\|h_i - h_j\|`, where the :math:`h_i` are the deviations of bootstrap replicates. A group of few rows has much
noise, so it neither hides the differences between the others nor passes for one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaincc

from fairtransport.auditing._multiple_tests import holm

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from fairtransport.auditing._confidence_intervals import Stratum

__all__ = ["PairIndex", "PairTests", "compare_pairs", "index_pairs", "pair_distances", "pair_scales"]

_MAX_ENTRIES = 1 << 15  # pairs times blocks
_MIN_BLOCKS = 16
_MAX_REPLICATES_TIMES_PAIRS = 1 << 21
_MIN_EXCEEDING = 10  # below this many replicates, a p-value is that of a fitted distribution


@dataclass(frozen=True, eq=False)
class PairTests:
    """The pairs of groups, tested one by one.

    Parameters
    ----------
    pairs : array of shape (n_pairs, 2)
        Indices of the groups.
    distances : array of shape (n_pairs,)
    noise : array of shape (n_pairs,)
        The distances that chance alone exceeds in a share 1 - confidence of cases.
    p_values : array of shape (n_pairs,)
        Adjusted for the number of pairs (Holm), and never below the p-value of the test of all groups.
    """

    pairs: NDArray[np.intp]
    distances: NDArray[np.float64]
    noise: NDArray[np.float64]
    p_values: NDArray[np.float64]

    def matrix(self, n_groups: int) -> NDArray[np.float64]:
        """Return the p-values as a symmetric matrix; NaN on the diagonal."""
        matrix = np.full((n_groups, n_groups), np.nan)
        rows, columns = self.pairs.T
        matrix[rows, columns] = matrix[columns, rows] = self.p_values
        return matrix

    def main_pair(self, level: float) -> int:
        """Return the pair whose distance is certain to be largest or, without any difference, the least certain one."""
        established = self.p_values <= level
        if established.any():
            return int(np.argmax(np.where(established, self.distances - self.noise, -np.inf)))
        return int(np.argmax(self.distances + self.noise))

    def n_rivals(self, pair: int) -> int:
        """Return the number of pairs, with this one, whose true distance may be as large."""
        least = self.distances[pair] - self.noise[pair]
        rivals = self.distances + self.noise >= least
        rivals[pair] = True
        return int(rivals.sum())


@dataclass(frozen=True, eq=False)
class PairIndex:
    """The pairs of groups that some stratum has rows of.

    Parameters
    ----------
    pairs : array of shape (n_pairs, 2)
        Indices of the groups in the audit.
    positions : tuple of array
        For each stratum, the place in ``pairs`` of each of its own pairs, which are in the order of
        `numpy.triu_indices`.
    weights : array of shape (n_pairs,)
        Total weight of the strata that have rows of both groups.
    """

    pairs: NDArray[np.intp]
    positions: tuple[NDArray[np.intp], ...]
    weights: NDArray[np.float64]

    def mean(self, strata: Sequence[Stratum], distances: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the mean distance of each pair over its strata, from the distances in each stratum."""
        total: NDArray[np.float64] | None = None
        for stratum, positions, each in zip(strata, self.positions, distances, strict=True):
            if total is None:
                total = np.zeros((len(self.pairs), *each.shape[1:]))
            total[positions] += stratum.weight * each
        if total is None:
            raise ValueError("There are no strata.")
        weights = self.weights.reshape(-1, *[1] * (total.ndim - 1))
        return np.asarray(total / weights)

    def scales(self, strata: Sequence[Stratum]) -> NDArray[np.float64]:
        r"""Return what the sum of each pair's distances over strata is proportional to without any difference.

        Notes
        -----
        With weights w, group sizes n and the distribution function F of all rows of a stratum,
        :math:`\sum w \sqrt{1/n_i + 1/n_j} \int \sqrt{F (1 - F)}`. Permutations within strata do not change it.
        """
        total = np.zeros(len(self.pairs))
        for stratum, positions in zip(strata, self.positions, strict=True):
            histograms = stratum.histograms
            everyone = histograms.curves()[-1, 0]
            spread = float(np.sqrt(np.maximum(everyone * (1 - everyone), 0.0)) @ histograms.widths)
            total[positions] += stratum.weight * max(spread, 1e-12) * pair_scales(histograms.effective_sizes)
        return total


def index_pairs(strata: Sequence[Stratum]) -> PairIndex:
    """Return the pairs of groups that several strata have, numbered."""
    numbered: dict[tuple[int, int], int] = {}
    positions = []
    for stratum in strata:
        n_groups = stratum.histograms.effective_sizes.size
        groups = range(n_groups) if stratum.groups is None else stratum.groups
        own = [(groups[i], groups[j]) for i, j in zip(*np.triu_indices(n_groups, 1), strict=True)]
        positions.append(np.array([numbered.setdefault(pair, len(numbered)) for pair in own], dtype=np.intp))
    weights = np.zeros(len(numbered))
    for stratum, at in zip(strata, positions, strict=True):
        weights[at] += stratum.weight
    return PairIndex(np.array(list(numbered), dtype=np.intp), tuple(positions), weights)


def compare_pairs(
    strata: Sequence[Stratum], p_value: float, confidence: float, n_replicates: int, rng: np.random.Generator
) -> PairTests:
    """Test the difference between every two groups, averaged over strata.

    Parameters
    ----------
    strata : sequence of Stratum
    p_value : float
        Of the test of no difference between any groups.
    confidence : float
    n_replicates : int
    rng : numpy.random.Generator

    Returns
    -------
    PairTests

    Notes
    -----
    The test of all groups uses the largest of all distances, each relative to its noise, so the pair that attains it
    has the p-value of that test. The other pairs are tested by Holm's method where that test rejects.
    """
    index = index_pairs(strata)
    pairs = index.pairs
    histograms = [stratum.histograms for stratum in strata]
    distances = index.mean(strata, (pair_distances(each.curves()[:-1], each.widths) for each in histograms))[:, 0]
    if len(pairs) == 1:
        count = n_replicates
    else:
        count = int(np.clip(_MAX_REPLICATES_TIMES_PAIRS // len(pairs), min(200, n_replicates), n_replicates))
    drawn = index.mean(strata, (pair_distances(each.noise(rng, count)[:-1], each.widths) for each in histograms))
    limits = np.quantile(drawn, confidence, axis=1)
    if len(pairs) == 1:
        return PairTests(pairs, distances, limits, np.array([p_value]))
    raw = np.array([_p_value(distance, noise) for distance, noise in zip(distances, drawn, strict=True)])
    adjusted = np.maximum(holm(raw), p_value)
    adjusted[np.argmax(index.weights * distances / index.scales(strata))] = p_value
    return PairTests(pairs, distances, limits, adjusted)


def pair_distances(curves: NDArray[np.float64], widths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the areas between every two curves.

    Parameters
    ----------
    curves : array of shape (n_groups, n_replicates, n_bins)
    widths : array of shape (n_bins,)

    Returns
    -------
    array of shape (n_pairs, n_replicates)
        In the order of `numpy.triu_indices`. With many pairs, adjacent bins are merged first.
    """
    n_groups = len(curves)
    n_pairs = n_groups * (n_groups - 1) // 2
    n_blocks = max(_MIN_BLOCKS, _MAX_ENTRIES // max(n_pairs, 1))
    areas = curves * widths
    if n_blocks < widths.size:
        areas = np.add.reduceat(areas, np.linspace(0, widths.size, n_blocks, endpoint=False).astype(np.intp), axis=-1)
    result = np.empty((n_pairs, curves.shape[1]))
    for at, part in _chunks(areas):
        start = 0
        for group in range(n_groups - 1):
            stop = start + n_groups - 1 - group
            result[start:stop, at] = np.abs(part[group + 1 :] - part[group]).sum(axis=-1)
            start = stop
    return result


def _chunks(areas: NDArray[np.float64]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield few replicates at a time: arrays that fit into the processor's cache are several times faster."""
    step = max(1, (1 << 16) // (areas.shape[0] * areas.shape[2]))
    for start in range(0, areas.shape[1], step):
        at = slice(start, start + step)
        yield at, areas[:, at]


def pair_scales(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard error of each pair's difference relative to the spread of the scores."""
    rows, columns = np.triu_indices(sizes.size, 1)
    inverse = 1 / np.maximum(sizes, 1e-9)
    scales: NDArray[np.float64] = np.sqrt(inverse[rows] + inverse[columns])
    return scales


def _p_value(distance: float, noise: NDArray[np.float64]) -> float:
    """Return the probability that noise reaches a distance; of a fitted distribution where that is rare.

    Squares of distances of Gaussian curves are nearly gamma distributed. The fit has their mean and variance.
    """
    n_exceeding = int(np.count_nonzero(noise >= distance * (1 - 1e-12)))
    p_value = (1 + n_exceeding) / (1 + noise.size)
    if n_exceeding >= _MIN_EXCEEDING or not noise.any():
        return p_value
    squares = noise**2
    mean, variance = float(squares.mean()), float(squares.var())
    if not variance > 0:
        return p_value
    return float(min(p_value, max(gammaincc(mean**2 / variance, distance**2 * mean / variance), 1e-12)))
