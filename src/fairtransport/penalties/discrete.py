"""The discrete penalty: exact transport between samples of scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairtransport._validation import check_real
from fairtransport.penalties.base import SampleTerms, TransportPenalty

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["HUBER_WIDTH", "DiscretePenalty"]

#: Distances below it count quadratically: a twentieth of a standard deviation on the standardized scale.
HUBER_WIDTH = 0.0125


class DiscretePenalty(TransportPenalty):
    r"""Wasserstein-1 distances by the optimal coupling, smoothed where scores are close.

    Parameters
    ----------
    huber_width : float, default=0.0125
        Distances below it count quadratically; 0 is the plain distance, with a subgradient.
    n_slices : int or None, default=200
        Represent each sample by this many slice means; None: by its rows.
    scale : {"standardized", "score"}, default="standardized"
        Compare scores divided by their standard deviation, or as they are.

    Notes
    -----
    On the line the optimal coupling joins equal levels of the two quantile functions. With the Huber function
    :math:`\rho`,

    .. math:: \int_0^1 \rho\big(F_a^{-1}(u) - F_b^{-1}(u)\big)\,du, \qquad
              \rho(g) = |g| - \epsilon/2 \text{ or } g^2 / 2\epsilon \text{ where } |g| < \epsilon .

    The derivative with respect to a score is the mean of :math:`\rho'` over its levels, times its mass (the paper's
    discrete optimal transport, Eq. 9, where :math:`\epsilon = 0`).

    References
    ----------
    S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021, Eq. 9.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtransport.penalties import Comparisons, DiscretePenalty
    >>> pairs = Comparisons.of_cells(4, [np.array([0, 1]), np.array([2, 3])], [(0, 1)])
    >>> penalty = DiscretePenalty(huber_width=0.0, n_slices=None, scale="score")
    >>> terms = penalty.value_and_gradient([0.1, 0.3, 0.5, 0.9], pairs)
    >>> round(terms.value, 3), terms.gradient.tolist()
    (0.5, [-0.5, -0.5, 0.5, 0.5])
    """

    def __init__(
        self, *, huber_width: float = HUBER_WIDTH, n_slices: int | None = 200, scale: str = "standardized"
    ) -> None:
        super().__init__(n_slices=n_slices, scale=scale)
        self.huber_width = check_real(huber_width, name="huber_width")

    def compare(
        self,
        points: Sequence[NDArray[np.float64]],
        masses: Sequence[NDArray[np.float64]] | None,
        pairs: NDArray[np.int64],
        weights: NDArray[np.float64],
    ) -> SampleTerms:
        """Compare samples; see `TransportPenalty.compare`."""
        if masses is None:
            return self._compare_slices(np.array(points), pairs, weights)
        slopes = [np.zeros(sample.size) for sample in points]
        distances = np.zeros(len(pairs))
        for number, (a, b) in enumerate(pairs):
            one, other, length = coupling(masses[a], masses[b])
            value, force = self._huber(points[a][one] - points[b][other])
            distances[number] = value @ length
            moved = weights[number] * force * length
            # Rows of weight zero have no levels, and no slope.
            slopes[a] += np.bincount(one, moved, points[a].size) / np.maximum(masses[a], 1e-300)
            slopes[b] -= np.bincount(other, moved, points[b].size) / np.maximum(masses[b], 1e-300)
        return SampleTerms(float(weights @ distances), slopes, distances)

    def _compare_slices(
        self, table: NDArray[np.float64], pairs: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> SampleTerms:
        value, force = self._huber(table[pairs[:, 0]] - table[pairs[:, 1]])
        slopes, distances = np.zeros_like(table), value.mean(axis=1)
        np.add.at(slopes, pairs[:, 0], weights[:, None] * force)
        np.subtract.at(slopes, pairs[:, 1], weights[:, None] * force)
        return SampleTerms(float(weights @ distances), list(slopes), distances)

    def _huber(self, gap: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        width, size = self.huber_width, np.abs(gap)
        if width == 0.0:
            return size, np.sign(gap)
        force = np.clip(gap / width, -1.0, 1.0)
        return force * (gap - 0.5 * width * force), force


def coupling(
    mass: NDArray[np.float64], other: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the optimal coupling of two ascending samples: indices into both, and the mass of each pair.

    Examples
    --------
    >>> coupling(np.array([0.5, 0.5]), np.array([0.25, 0.75]))
    (array([0, 0, 1]), array([0, 1, 1]), array([0.25, 0.25, 0.5 ]))
    """
    ends, others = np.cumsum(mass), np.cumsum(other)
    ends[-1] = others[-1] = 1.0
    levels = np.union1d(ends, others)
    length = np.diff(np.concatenate(([0.0], levels)))
    middle = levels - 0.5 * length
    return np.searchsorted(ends, middle), np.searchsorted(others, middle), length
