"""Metrics of a model on the training rows, relative to the initial model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.metrics.ranks import pooled_ranks
from fairtransport.penalties.discrete import DiscretePenalty

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.penalties import Comparisons

__all__ = ["ScoreEvaluator", "ScoreMetrics", "metrics_before_and_after"]

# Mean Wasserstein-1 distance of two samples of uniform ranks, times sqrt(1/n + 1/m): sqrt(2/pi) times pi/8.
_CHANCE_RANKS = float(np.sqrt(2.0 / np.pi) * np.pi / 8.0)
_IMMATERIAL = 0.003  # mean difference in rank below which there is nothing to reduce
_SLICES = 256


@dataclass(frozen=True)
class ScoreMetrics:
    """Metrics of the scores of one set of rows.

    Attributes
    ----------
    disparity : float
        Strong pairwise demographic disparity (SPDD): the sum of Wasserstein-1 distances over pairs of groups.
    rank_disparity : float
        The same of pooled ranks.
    excess : float
        Mean over pairs of the distance between ranks divided by its mean under chance, weighted by reliability and
        precision.
    rank_distance : float
        Mean over pairs of the distance between ranks, weighted likewise: the mean difference of selection rates.
    log_loss : float
    information_kept : float
        Share of the initial model's gain in log-loss over a constant.
    """

    disparity: float
    rank_disparity: float
    excess: float
    rank_distance: float
    log_loss: float
    information_kept: float


@dataclass(frozen=True, eq=False)
class ScoreEvaluator:
    """Evaluates scores of one set of rows against those of the initial model.

    Attributes
    ----------
    labels, shares : ndarray of shape (n_rows,)
        0 or 1, and weights that sum to 1.
    comparisons : Comparisons
        The pairs of groups, weighted by reliability.
    initial_scores : ndarray of shape (n_rows,)
        Scores of the initial model.
    """

    labels: NDArray[np.float64]
    shares: NDArray[np.float64]
    comparisons: Comparisons
    initial_scores: NDArray[np.float64]

    @cached_property
    def rate(self) -> float:
        """Weighted share of positive labels."""
        return float(self.shares @ self.labels)

    @cached_property
    def constant_loss(self) -> float:
        """Log-loss of the best constant."""
        return float(-(self.rate * np.log(self.rate) + (1.0 - self.rate) * np.log1p(-self.rate)))

    @cached_property
    def information(self) -> float:
        """Gain of the initial model over a constant, in log-loss; at least 1 % of the constant's loss."""
        return max(self.constant_loss - self.log_loss(self.initial_scores), 0.01 * self.constant_loss)

    @cached_property
    def _all_pairs(self) -> Comparisons:
        return self.comparisons.reweighted(np.ones(len(self.comparisons.pairs)))

    @cached_property
    def _exact(self) -> DiscretePenalty:
        return DiscretePenalty(huber_width=0.0, n_slices=_SLICES, scale="score")

    def log_loss(self, scores: NDArray[np.float64]) -> float:
        """Return the mean log-loss."""
        inside = np.clip(scores, 1e-15, 1.0 - 1e-15)
        return float(-self.shares @ np.where(self.labels > 0.0, np.log(inside), np.log1p(-inside)))

    def auc(self, scores: NDArray[np.float64]) -> float:
        """Return the area under the ROC curve, from the mean rank of the positive rows."""
        mean = float((self.shares * self.labels) @ pooled_ranks(scores, self.shares)) / self.rate
        return (mean - 0.5 * self.rate) / (1.0 - self.rate)

    def spread(self, scores: NDArray[np.float64]) -> float:
        """Return the standard deviation of the scores."""
        mean = float(self.shares @ scores)
        return float(np.sqrt(self.shares @ (scores - mean) ** 2))

    def evaluate(self, scores: NDArray[np.float64]) -> ScoreMetrics:
        """Return the metrics of scores of these rows."""
        distances = self._distances(pooled_ranks(scores, self.comparisons.row_weights))
        errors = self.comparisons.sampling_errors()
        # A pair of large groups has a low noise floor of its own, which the sum of all floors would hide.
        chance = np.maximum(_CHANCE_RANKS * errors, _IMMATERIAL)
        weights = self.comparisons.weights if self.comparisons.weights.any() else self._all_pairs.weights
        weights = weights / errors  # pairs that are estimated more precisely count more
        loss = self.log_loss(scores)
        return ScoreMetrics(
            disparity=float(self._distances(scores).sum()),
            rank_disparity=float(distances.sum()),
            excess=float(np.average(distances / chance, weights=weights)),
            rank_distance=float(np.average(distances, weights=weights)),
            log_loss=loss,
            information_kept=float((self.constant_loss - loss) / self.information),
        )

    def _distances(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._exact.value_and_gradient(values, self._all_pairs).distances


def metrics_before_and_after(evaluator: ScoreEvaluator, trained: NDArray[np.float64]) -> dict[str, tuple[float, float]]:
    """Return each metric of the initial and of the trained model."""
    both = (evaluator.initial_scores, trained)
    before, after = (evaluator.evaluate(scores) for scores in both)
    pairs = {
        name: (getattr(before, name), getattr(after, name)) for name in ("log_loss", "disparity", "rank_disparity")
    }
    aucs, spreads = [evaluator.auc(scores) for scores in both], [evaluator.spread(scores) for scores in both]
    return {**pairs, "auc": (aucs[0], aucs[1]), "spread": (spreads[0], spreads[1])}
