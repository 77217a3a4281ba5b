r"""What chance adds to distances between small samples, so that a penalty need not be lowered by shrinking them.

The mean distance of two samples of one distribution is proportional to its spread. A sum over many small strata
therefore falls when scores become equal within each stratum, whether groups differ or not. Without the part that chance
explains, it does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.penalties.base import UNIT_DEVIATION

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.penalties.comparisons import Comparisons

__all__ = ["ChanceTerm"]


@dataclass(frozen=True, eq=False)
class ChanceTerm:
    r"""A weighted sum of the spreads :math:`\int \sqrt{F (1 - F)}` of scores within strata.

    Attributes
    ----------
    rows : tuple of ndarray
        Row indices of each stratum.
    masses : tuple of ndarray
        Mass of each row of each stratum; they sum to 1.
    factors : ndarray of shape (n_strata,)
        Weights of the strata.
    shares : ndarray of shape (n_rows,) or None
        Share of each row, for the standard deviation; None where they are equal.
    scale : {"standardized", "score"}
        As of the penalty.
    noise : float, default=0.0
        What chance adds to the penalty beyond this sum.
    """

    rows: tuple[NDArray[np.int64], ...]
    masses: tuple[NDArray[np.float64], ...]
    factors: NDArray[np.float64]
    shares: NDArray[np.float64] | None
    scale: str
    noise: float = 0.0

    @classmethod
    def of(cls, comparisons: Comparisons, factors: NDArray[np.float64], scale: str) -> ChanceTerm:
        """Return the term of comparisons within strata, with a factor for each pair."""
        strata = np.array(comparisons.strata)
        by_stratum = np.bincount(
            strata[comparisons.pairs[:, 0]], factors * comparisons.weights, minlength=int(strata.max()) + 1
        )
        rows, masses, kept = [], [], []
        members_of = {
            number: np.unique(np.concatenate([comparisons.cells[cell] for cell in np.flatnonzero(strata == number)]))
            for number in np.flatnonzero(by_stratum > 0.0)
        }
        # Sums of floating-point numbers depend on their order, which must not depend on the names of strata.
        for number, members in sorted(members_of.items(), key=lambda item: (item[1].size, int(item[1][0]))):
            weights = np.ones(members.size) if comparisons.row_weights is None else comparisons.row_weights[members]
            if members.size > 1:
                rows.append(members)
                masses.append(weights / weights.sum())
                kept.append(by_stratum[number])
        all_weights = comparisons.row_weights
        shares = None if all_weights is None else all_weights / all_weights.sum()
        return cls(tuple(rows), tuple(masses), np.array(kept), shares, scale)

    def subtracted(self, value: float, gradient: NDArray[np.float64], scores: NDArray[np.float64]) -> tuple[float, Any]:
        r"""Return a penalty and its gradient without what chance explains.

        Notes
        -----
        With x the penalty less this sum and :math:`\epsilon` the remaining noise, the result is
        :math:`x - \epsilon / 2`, continued as :math:`x^2 / 2 \epsilon` below :math:`\epsilon` and 0 below 0, so that
        groups that differ less than by chance are left alone.
        """
        chance, chance_gradient = self.value_and_gradient(scores)
        net = value - chance
        slope = 1.0 if net >= self.noise else max(net, 0.0) / self.noise
        return (net - 0.5 * self.noise if slope == 1.0 else 0.5 * slope * net), slope * (gradient - chance_gradient)

    def value_and_gradient(self, scores: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the sum, and its derivative with respect to each score."""
        value, gradient = 0.0, np.zeros(scores.size)
        for factor, rows, masses in zip(self.factors, self.rows, self.masses, strict=True):
            order = np.argsort(scores[rows], kind="stable")
            below = np.cumsum(masses[order])[:-1]
            heights = np.sqrt(np.maximum(below * (1.0 - below), 0.0))
            ordered = rows[order]
            value += factor * float(heights @ np.diff(scores[ordered]))
            gradient[ordered[1:]] += factor * heights
            gradient[ordered[:-1]] -= factor * heights
        if self.scale != "standardized":
            return value, gradient
        shares = 1.0 / scores.size if self.shares is None else self.shares
        centred = scores - float(np.sum(shares * scores))
        deviation = max(float(np.sqrt(np.sum(shares * centred**2))), 1e-300)
        unit = deviation / UNIT_DEVIATION
        return value / unit, (gradient - shares * centred * (value / deviation**2)) / unit
