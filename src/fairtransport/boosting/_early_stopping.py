"""Early stopping on the objective: the loss plus the penalty at its full weight, on held-out rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.penalties import DiscretePenalty

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.boosting._losses import Loss
    from fairtransport.penalties import Comparisons

__all__ = ["BestRound", "HeldOutObjective"]

_SLICES = 256


class HeldOutObjective:
    """The loss plus the weighted sum of exact Wasserstein-1 distances between the groups' held-out predictions.

    Parameters
    ----------
    loss : Loss
    labels : ndarray
        Labels or numbers of the held-out rows, as the loss takes them.
    comparisons : Comparisons
        The pairs of their cells that are compared, and their weights.
    divisor : float
        Divisor of the predictions before they are compared.
    scale : {"standardized", "score"}
        Whether they are compared in units of their standard deviation.
    """

    def __init__(
        self, loss: Loss, labels: NDArray[Any], comparisons: Comparisons, *, divisor: float, scale: str
    ) -> None:
        self.loss, self.labels, self.comparisons, self.divisor = loss, labels, comparisons, divisor
        self._distance = DiscretePenalty(huber_width=0.0, n_slices=_SLICES, scale=scale)

    def mean_loss(self, margins: NDArray[np.float64]) -> float:
        """Return the mean loss."""
        return float(np.average(self.loss.values(margins, self.labels), weights=self.comparisons.row_weights))

    def disparity(self, margins: NDArray[np.float64]) -> float:
        """Return the weighted sum of the distances."""
        if not self.comparisons.active.size:
            return 0.0
        scores = self.loss.predictions(margins) / self.divisor
        return self._distance.value_and_gradient(scores, self.comparisons).value


class BestRound:
    """Finds the round with the lowest value of an objective, and says when to stop looking.

    Parameters
    ----------
    first_round : int
        Round from which on the objective counts, because the penalty has its full weight.
    patience : int or None
        Rounds without improvement after which to stop; None: every round is better than the one before.

    Examples
    --------
    >>> best = BestRound(first_round=2, patience=2)
    >>> [best.record(value) for value in (1.0, 3.0, 2.0, 2.5, 2.2)], best.number, best.has_passed
    ([False, True, True, False, False], 3, True)
    """

    def __init__(self, *, first_round: int, patience: int | None) -> None:
        self.first_round, self.patience = first_round, patience
        self.number, self.n_recorded, self._lowest = 0, 0, np.inf

    def record(self, value: float) -> bool:
        """Record the objective after another round; return whether this is the best round so far."""
        self.n_recorded += 1
        if self.patience is None or (self.n_recorded >= self.first_round and value < self._lowest):
            self.number, self._lowest = self.n_recorded, value
            return True
        return False

    @property
    def has_passed(self) -> bool:
        """Whether the objective has not improved for too long."""
        return self.patience is not None and bool(self.number) and self.n_recorded - self.number >= self.patience
