"""Early stopping on the objective: the loss plus the penalty at its full weight, on validation rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.transport.line import Sample, wasserstein

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.boosting._losses import Loss
    from fairtransport.penalties import Comparisons

__all__ = ["EarlyStopping"]


class EarlyStopping:
    """Records the objective on validation rows after each round, and decides when to stop.

    Parameters
    ----------
    loss : Loss
    labels : ndarray
        Labels or numbers of the validation rows, as the loss takes them.
    comparisons : Comparisons
        The pairs of their cells that are compared, and their weights.
    scale : float
        Divisor of the predictions before they are compared.
    penalty_weight : float
        Factor of the weighted sum of Wasserstein-1 distances.
    first_round : int
        Round from which on the objective counts, because the penalty has its full weight.
    n_iter_no_change : int or None
        Rounds without improvement after which training stops; None for never.

    Attributes
    ----------
    records : list of (disparity, loss)
        One for each round.
    best : int
        Number of the best round so far, from 1; 0 before ``first_round``.
    """

    def __init__(
        self,
        loss: Loss,
        labels: NDArray[Any],
        comparisons: Comparisons,
        *,
        scale: float,
        penalty_weight: float,
        first_round: int,
        n_iter_no_change: int | None,
    ) -> None:
        self.loss, self.labels, self.comparisons, self.scale = loss, labels, comparisons, scale
        self._targets = [Sample.from_values(target) for target in comparisons.targets]
        self.penalty_weight, self.first_round, self.n_iter_no_change = penalty_weight, first_round, n_iter_no_change
        self.records: list[tuple[float, float]] = []
        self.best, self._lowest = 0, np.inf

    def record(self, margins: NDArray[np.float64]) -> float:
        """Record a round and return the objective at these margins."""
        z = np.ascontiguousarray(margins, dtype=np.float64).ravel()
        loss = float(np.average(self.loss.values(z, self.labels), weights=self.comparisons.row_weights))
        disparity = self._disparity(z) if self.penalty_weight > 0.0 else 0.0
        self.records.append((disparity, loss))
        total = loss + self.penalty_weight * disparity
        if len(self.records) >= self.first_round and total < self._lowest:
            self.best, self._lowest = len(self.records), total
        return total

    def stopped_at(self) -> int | None:
        """Return the best round if training should stop, None otherwise."""
        patience = self.n_iter_no_change
        if patience is None or not self.best or len(self.records) - self.best < patience:
            return None
        return self.best

    def _disparity(self, margins: NDArray[np.float64]) -> float:
        scores, weights = self.loss.predictions(margins) / self.scale, self.comparisons.row_weights
        samples = [
            Sample.from_values(scores[rows], None if weights is None else weights[rows])
            for rows in self.comparisons.cells
        ]
        samples += self._targets
        distances = [wasserstein(samples[one], samples[other]) for one, other in self.comparisons.pairs]
        return float(self.comparisons.weights @ distances)

    def history(self) -> dict[str, NDArray[np.float64]]:
        """Return the records as columns."""
        columns = np.array(self.records, dtype=np.float64).reshape(-1, 2).T
        return {"round": np.arange(1.0, columns.shape[1] + 1.0), "disparity": columns[0], "loss": columns[1]}
