"""Early stopping on what is minimised: log-loss plus the penalty at its full weight, on rows held back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairtransport.transport.kernels import logistic
from fairtransport.transport.line import Sample, wasserstein

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["Stopping"]


class Stopping:
    """Follows a run and says when it brings no more.

    Parameters
    ----------
    labels : ndarray of int
        0 and 1, of the rows held back.
    groups : Groups
        Theirs.
    weights : ndarray, optional
    target : ndarray or None
        Scores that groups are moved to; None: to each other.
    parity : float
        Factor of the sum of distances.
    first : int
        Rounds before which nothing counts: the penalty has not its full weight yet.
    patience : int or None
        Rounds without a gain after which a run ends; None: never.

    Attributes
    ----------
    records : list of (disparity, loss)
        One for each round.
    best : int
        The best round so far, from 1; 0 before any counted.
    """

    def __init__(
        self,
        labels: NDArray[np.int64],
        groups: Groups,
        weights: NDArray[np.float64] | None,
        *,
        target: NDArray[np.float64] | None,
        parity: float,
        first: int,
        patience: int | None,
    ) -> None:
        self.labels, self.groups, self.weights = labels, groups, weights
        self.target = None if target is None else Sample.from_values(target)
        self.parity, self.first, self.patience = parity, first, patience
        self.records: list[tuple[float, float]] = []
        self.best, self._least = 0, np.inf

    def measure(self, margins: NDArray[np.float64]) -> float:
        """Record a round and return the objective."""
        z = np.ascontiguousarray(margins, dtype=np.float64).ravel()
        loss = float(np.average(np.logaddexp(0.0, z) - self.labels * z, weights=self.weights))
        disparity = self._disparity(z) if self.parity > 0.0 else 0.0
        self.records.append((disparity, loss))
        total = loss + self.parity * disparity
        if len(self.records) >= self.first and total < self._least:
            self.best, self._least = len(self.records), total
        return total

    def done(self) -> int | None:
        """Return the best round when the run has gained nothing for long enough, None before."""
        if self.patience is None or not self.best or len(self.records) - self.best < self.patience:
            return None
        return self.best

    def _disparity(self, margins: NDArray[np.float64]) -> float:
        scores, weights = np.empty_like(margins), self.weights
        logistic(margins, scores)
        samples = [Sample.from_values(scores[r], None if weights is None else weights[r]) for r in self.groups.rows]
        if self.target is not None:
            return sum(wasserstein(own, self.target) for own in samples)
        return sum(wasserstein(own, other) for a, own in enumerate(samples) for other in samples[a + 1 :])

    def history(self) -> dict[str, NDArray[np.float64]]:
        """Return the records as columns."""
        columns = np.array(self.records, dtype=np.float64).reshape(-1, 2).T
        return {"round": np.arange(1.0, columns.shape[1] + 1.0), "disparity": columns[0], "loss": columns[1]}
