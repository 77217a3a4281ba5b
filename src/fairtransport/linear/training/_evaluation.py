"""Metrics of a model on the training rows, relative to the initial model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.criteria import chance_spreads
from fairtransport.metrics.ranks import pooled_ranks
from fairtransport.penalties.discrete import DiscretePenalty

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.linear.training._comparisons import GroupComparisons
    from fairtransport.penalties import Comparisons

__all__ = ["ScoreEvaluator", "ScoreMetrics", "metrics_before_and_after"]

_MEAN_ABSOLUTE = float(np.sqrt(2.0 / np.pi))  # of a standard normal number
_UNIFORM_SPREAD = np.pi / 8.0  # of uniform ranks: the integral of sqrt(u (1 - u))
_IMMATERIAL = 0.003  # mean difference in rank below which there is nothing to reduce
_SLICES = 256


@dataclass(frozen=True)
class ScoreMetrics:
    """Metrics of the scores of one set of rows.

    Attributes
    ----------
    disparity : float
        Sum of the Wasserstein-1 distances of the criterion's pairs, weighted as it says; for demographic parity the
        strong pairwise demographic disparity (SPDD).
    rank_disparity : float
        The same of pooled ranks.
    excess : float
        Mean over pairs of groups of the distance between ranks divided by its mean under chance, both summed over
        strata, weighted by reliability and precision; of the label where it is largest.
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
    comparisons : GroupComparisons
        The criterion's pairs of groups, and their reliability.
    initial_scores : ndarray of shape (n_rows,)
        Scores of the initial model.
    """

    labels: NDArray[np.float64]
    shares: NDArray[np.float64]
    comparisons: GroupComparisons
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
        criterion = self.comparisons.criterion
        ranks = pooled_ranks(scores, criterion.row_weights)
        distances, weights = self._distances(ranks), criterion.weights
        loss = self.log_loss(scores)
        return ScoreMetrics(
            disparity=float((weights * self._distances(scores)).sum()),
            rank_disparity=float((weights * distances).sum()),
            excess=self._excess(distances, ranks),
            rank_distance=float(np.average(distances, weights=self._reliable.weights / criterion.sampling_errors())),
            log_loss=loss,
            information_kept=float((self.constant_loss - loss) / self.information),
        )

    @cached_property
    def _reliable(self) -> Comparisons:
        """The pairs weighted by reliability, or by the criterion where none is reliable."""
        pairwise = self.comparisons.pairwise
        return pairwise if pairwise.weights.any() else self.comparisons.criterion

    def _excess(self, distances: NDArray[np.float64], ranks: NDArray[np.float64]) -> float:
        pairs = self.comparisons.criterion
        # A pair of large groups has a low noise floor of its own, which the sum of all floors would hide.
        spreads = chance_spreads(ranks, pairs) if pairs.strata else _UNIFORM_SPREAD
        errors = pairs.sampling_errors()
        chance = np.maximum(_MEAN_ABSOLUTE * spreads * errors, _IMMATERIAL)
        observed, expected, error = (
            pairs.family_means(values, pairs.weights)[0] for values in (distances, chance, errors)
        )
        reliable = self._reliable.weights
        precision = reliable / error if pairs.families is None else np.bincount(pairs.families, reliable) / error
        labels = self.comparisons.family_labels
        return max(
            float(np.average((observed / expected)[inside], weights=precision[inside]))
            for inside in (labels == label for label in np.unique(labels))
            if precision[inside].any()
        )

    def _distances(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        pairs = self.comparisons.criterion
        return self._exact.value_and_gradient(values, pairs.reweighted(np.ones(len(pairs.pairs)))).distances


def metrics_before_and_after(evaluator: ScoreEvaluator, trained: NDArray[np.float64]) -> dict[str, tuple[float, float]]:
    """Return each metric of the initial and of the trained model."""
    both = (evaluator.initial_scores, trained)
    before, after = (evaluator.evaluate(scores) for scores in both)
    pairs = {
        name: (getattr(before, name), getattr(after, name)) for name in ("log_loss", "disparity", "rank_disparity")
    }
    aucs, spreads = [evaluator.auc(scores) for scores in both], [evaluator.spread(scores) for scores in both]
    return {**pairs, "auc": (aucs[0], aucs[1]), "spread": (spreads[0], spreads[1])}
