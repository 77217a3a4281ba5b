"""Base class of penalties: samples as rows, slices or histograms, and the scale on which scores are compared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairtransport._validation import check_choice, check_count, check_vector
from fairtransport.transport.kernels.slices import add_row_slopes, write_slice_means
from fairtransport.transport.slices import ascending_order, histogram_slices, histogram_slopes, slice_means

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.penalties.comparisons import Comparisons

__all__ = ["SCALES", "UNIT_DEVIATION", "HistogramTerms", "PenaltyTerms", "SampleTerms", "TransportPenalty"]

#: Scores are compared in units of their standard deviation, or as they are.
SCALES = ("standardized", "score")

#: Standard deviation of standardized scores: that of typical probabilities, so that a strength, a kernel variance and
#: a Huber width mean the same on both scales.
UNIT_DEVIATION = 0.25

_NO_WEIGHTS = np.zeros(0)


@dataclass(frozen=True, eq=False)
class SampleTerms:
    """Distances between samples: their weighted sum, its slope at every point for unit mass, and each one."""

    value: float
    slopes: list[NDArray[np.float64]]
    distances: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PenaltyTerms:
    """A penalty and its gradient.

    Attributes
    ----------
    value : float
        Sum over pairs of weight times distance.
    gradient : ndarray of shape (n_rows,)
        Derivative of ``value`` with respect to each score.
    distances : ndarray of shape (n_pairs,)
        The distances that were summed; zero for pairs of weight zero.
    """

    value: float
    gradient: NDArray[np.float64]
    distances: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HistogramTerms:
    """A penalty on binned scores: its value, the slope of each cell for unit mass, and the distances."""

    value: float
    slopes: NDArray[np.float64]
    distances: NDArray[np.float64]


class TransportPenalty(ABC):
    r"""Weighted sum of the distances between the pairs of some `Comparisons`.

    Parameters
    ----------
    n_slices : int or None
        Represent each sample by this many slice means; None: by its rows.
    scale : {"standardized", "score"}
        Compare scores divided by their standard deviation, or as they are.

    Notes
    -----
    On the standardized scale, with mean m and deviation d of all rows, :math:`t = (s - m) / (4 d)` is compared. Moving
    all scores together towards their mean then changes nothing, so shrinking them does not reduce the penalty. With
    :math:`\omega_i` the share of a row and g the gradient with respect to t,

    .. math:: \frac{\partial}{\partial s_j} = \frac{1}{4d}\Big(g_j - \omega_j \sum_i g_i\Big)
              - \frac{4\,\omega_j t_j}{d} \sum_i g_i t_i .
    """

    def __init__(self, *, n_slices: int | None, scale: str) -> None:
        self.n_slices = None if n_slices is None else check_count(n_slices, name="n_slices")
        self.scale = check_choice(scale, SCALES, name="scale")
        #: Subtracted from scores, and their divisor, when they were last compared.
        self.center, self.unit = 0.0, 1.0

    @abstractmethod
    def compare(
        self,
        points: Sequence[NDArray[np.float64]],
        masses: Sequence[NDArray[np.float64]] | None,
        pairs: NDArray[np.int64],
        weights: NDArray[np.float64],
    ) -> SampleTerms:
        """Compare samples: ascending points with masses that sum to 1; without masses, all of equal size and mass."""

    # ---------------------------------------------------------------- three representations

    def value_and_gradient(self, scores: ArrayLike, comparisons: Comparisons) -> PenaltyTerms:
        """Compare scores, one for each row.

        Parameters
        ----------
        scores : array-like of shape (n_rows,)
            Any real numbers.
        comparisons : Comparisons

        Returns
        -------
        PenaltyTerms
        """
        s = check_vector(scores, name="scores")
        if s.size != comparisons.n_rows:
            raise ValueError(f"There are {s.size} scores for comparisons of {comparisons.n_rows} rows.")
        values, targets = self._rescaled(s, comparisons)
        active, weights = comparisons.active, comparisons.row_weights
        orders = [rows[ascending_order(values[rows])] if rows.size else rows for rows in comparisons.cells]
        points: list[NDArray[np.float64]]
        masses: list[NDArray[np.float64]] | None = None
        if self.n_slices is None:
            points = [values[order] for order in orders] + targets
            masses = [_shares(order, weights) for order in orders] + [np.full(t.size, 1.0 / t.size) for t in targets]
        else:
            table = np.zeros((len(orders), self.n_slices))
            for order, row in zip(orders, table, strict=True):
                if order.size:
                    write_slice_means(values, order, _NO_WEIGHTS if weights is None else weights, row)
            points = [*table, *(slice_means(t, np.ones(t.size), self.n_slices) for t in targets)]
        terms = self.compare(points, masses, comparisons.pairs[active], comparisons.weights[active])
        gradient = np.zeros(s.size)
        for order, slopes in zip(orders, terms.slopes, strict=False):
            if self.n_slices is None:
                gradient[order] += slopes * _shares(order, weights)
            elif order.size:
                add_row_slopes(slopes, order, _NO_WEIGHTS if weights is None else weights, 1.0, gradient)
        fixed = [slopes / slopes.size for slopes in terms.slopes[len(orders) :]]  # targets have equal masses
        if self.scale == "standardized":
            total = gradient.sum() + sum(float(g.sum()) for g in fixed)
            moment = gradient @ values + sum(float(g @ p) for g, p in zip(fixed, points[len(orders) :], strict=True))
            share = 1.0 / s.size if weights is None else weights / weights.sum()
            gradient = (gradient - share * (total + values * moment / UNIT_DEVIATION**2)) / self.unit
        distances = np.zeros(len(comparisons.pairs))
        distances[active] = terms.distances
        return PenaltyTerms(terms.value, gradient, distances)

    def value_and_slopes(
        self, masses: NDArray[np.float64], edges: NDArray[np.float64], comparisons: Comparisons
    ) -> HistogramTerms:
        """Compare binned scores, as trees, partitions and streams do.

        Parameters
        ----------
        masses : ndarray of shape (n_cells_of_rows, n_bins)
            Mass of each cell of rows in each bin.
        edges : ndarray of shape (n_bins + 1,)
            Edges of the bins.
        comparisons : Comparisons
            Its pairs, weights and targets are used; its rows are not.

        Returns
        -------
        HistogramTerms
        """
        n_slices = self.n_slices or masses.shape[1]
        table = histogram_slices(masses, edges, n_slices)
        terms = self.slice_terms(table, masses.sum(axis=1), comparisons)
        return HistogramTerms(terms.value, histogram_slopes(np.array(terms.slopes), masses), terms.distances)

    def slice_terms(
        self, table: NDArray[np.float64], masses: NDArray[np.float64], comparisons: Comparisons
    ) -> SampleTerms:
        """Compare samples represented by slice means, of shape (n_cells, n_slices), and total masses."""
        targets = [slice_means(t, np.ones(t.size), table.shape[1]) for t in comparisons.targets]
        share = (masses / masses.sum())[:, None] / table.shape[1]
        if self.scale == "standardized":
            self.center = float((share * table).sum())
            self.unit = _unit(float(np.sqrt((share * (table - self.center) ** 2).sum())))
        active = comparisons.active
        points = [(means - self.center) / self.unit for means in (*table, *targets)]
        terms = self.compare(points, None, comparisons.pairs[active], comparisons.weights[active])
        slopes = np.array(terms.slopes)
        if self.scale == "standardized":
            values = np.array(points)
            total, moment = slopes.sum() / table.shape[1], (slopes * values).sum() / table.shape[1]
            # Convert a share within a cell to a share of all rows.
            relative = (masses / masses.sum())[:, None]
            slopes = slopes[: len(table)] - relative * (total + values[: len(table)] * moment / UNIT_DEVIATION**2)
        distances = np.zeros(len(comparisons.pairs))
        distances[active] = terms.distances
        return SampleTerms(terms.value, list(slopes[: len(table)] / self.unit), distances)

    def _rescaled(
        self, s: NDArray[np.float64], comparisons: Comparisons
    ) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
        if self.scale == "score":
            return s, list(comparisons.targets)
        self.center = float(np.average(s, weights=comparisons.row_weights))
        self.unit = _unit(float(np.sqrt(np.average((s - self.center) ** 2, weights=comparisons.row_weights))))
        return (s - self.center) / self.unit, [(t - self.center) / self.unit for t in comparisons.targets]


def _unit(deviation: float) -> float:
    """Return the divisor of the scores; 1 where they are constant."""
    return deviation / UNIT_DEVIATION if deviation > 1e-12 else 1.0


def _shares(order: NDArray[np.int64], weights: NDArray[np.float64] | None) -> NDArray[np.float64]:
    if weights is None:
        return np.full(order.size, 1.0 / order.size)
    return np.asarray(weights[order] / weights[order].sum())
