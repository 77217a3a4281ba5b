"""The dual problem of blind repair: out-of-fold predictions, the slack of a limit, and held-out disparities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.penalties import DiscretePenalty
from fairtransport.repair.blind.potentials import Potentials, score_nodes, solve_potentials

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.penalties import Comparisons

__all__ = ["Problem"]

_SHUFFLES = 20  # permutations for the noise floor
_MOST_SOLUTIONS = 7  # of the search for a slack
_NO_LIMIT = 0.5  # a slack at which hardly anything is moved
_EXACT = DiscretePenalty(huber_width=0.0, n_slices=None, scale="score")


@dataclass(frozen=True, eq=False)
class Problem:
    """Out-of-fold predictions and contrasts, and the pairs of groups that the criterion compares."""

    predicted: NDArray[np.float64]
    contrasts: NDArray[np.float64]
    centering: NDArray[np.float64]
    loss: str
    low: float
    high: float
    weights: NDArray[np.float64] | None
    pairs: Comparisons
    clip: bool

    def solve(
        self, slack: NDArray[np.float64], start: Potentials | None, rows: NDArray[np.int64] | None = None
    ) -> Potentials:
        everyone = slice(None) if rows is None else rows
        nodes = (
            score_nodes(self.predicted, loss=self.loss, low=self.low, high=self.high) if start is None else start.nodes
        )
        return solve_potentials(
            self.predicted[everyone], self.contrasts[everyone], nodes, slack=slack,
            centering=self.centering, loss=self.loss,
            weights=None if self.weights is None else self.weights[everyone], start=start,
        )  # fmt: skip

    def moved(self, potentials: Potentials, rows: NDArray[np.int64] | slice = slice(None)) -> NDArray[np.float64]:
        found = potentials.move(self.predicted[rows], self.contrasts[rows])
        return np.clip(found, self.low, self.high) if self.clip else found

    def disparity(self, scores: NDArray[np.float64]) -> float:
        return float(_EXACT.value_and_gradient(scores, self.pairs).value)

    def noise_floor(self, scores: NDArray[np.float64], rng: np.random.Generator) -> float:
        shuffled = [_EXACT.value_and_gradient(scores, self.pairs.shuffled(rng)).value for _ in range(_SHUFFLES)]
        return float(np.mean(shuffled))

    def choose(
        self,
        slack: Any,
        limit: float | None,
        chance: NDArray[np.float64],
        label_weights: NDArray[np.float64],
        start: Potentials | None = None,
    ) -> tuple[NDArray[np.float64], Potentials, bool]:
        """Return the slack of each cell, the potentials, and whether a limit on the disparity was reached."""
        if limit is None:
            each = chance if slack == "auto" else float(slack) / label_weights
            return each, self.solve(each, start), True
        low, high = (0.0, 0.0), (_NO_LIMIT, self.disparity(self.predicted))
        if high[1] <= limit:
            each = np.full(chance.size, _NO_LIMIT)
            return each, _none(self, chance.size), True
        best = None
        # The disparity is almost linear in the slack, so that a few secants find the slack of the limit.
        for number in range(_MOST_SOLUTIONS):
            share = (limit - low[1]) / max(high[1] - low[1], 1e-12) if number else 0.3 * limit / high[1]
            trial = low[0] + float(np.clip(share, 0.05, 0.95)) * (high[0] - low[0])
            each = trial / label_weights
            start = self.solve(each, start)
            reached = self.disparity(self.moved(start))
            if reached <= limit:
                low, best = (trial, reached), (each, start)
                if reached >= 0.97 * limit:
                    break
            else:
                high = (trial, reached)
        if best is None:
            each = np.zeros(chance.size)
            best = each, self.solve(each, start)
        return *best, self.disparity(self.moved(best[1])) <= limit

    def repair_held_out(
        self, potentials: Potentials, slack: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Return repaired predictions, each half of the rows with potentials from the other half."""
        halves = np.array_split(rng.permutation(self.predicted.size), 2)
        scores = np.empty(self.predicted.size)
        for rows, others in (halves, halves[::-1]):
            part = self.solve(slack, potentials, others) if potentials.slopes.any() else potentials
            scores[rows] = self.moved(part, rows)
        return scores


def _none(problem: Problem, n_cells: int) -> Potentials:
    nodes = score_nodes(problem.predicted, loss=problem.loss, low=problem.low, high=problem.high)
    return Potentials(nodes, np.zeros((n_cells, nodes.size - 1)), problem.loss)
