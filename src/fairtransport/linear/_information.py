"""What training towards parity keeps of the initial model, and plain words where little is left."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fairtransport._warnings import FairnessWarning
from fairtransport.metrics.ranks import pooled_ranks
from fairtransport.penalties.discrete import DiscretePenalty

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.penalties import Comparisons

__all__ = ["HALF", "MATERIAL", "Judge", "Measures", "before_and_after", "warn_of_losses", "warn_of_own_weights"]

#: Share of the initial model's information below which nobody goes unasked.
HALF = 0.5

#: Mean difference of selection rates that is too small to warn of.
MATERIAL = 0.02

# Mean Wasserstein-1 distance of two samples of uniform ranks, times sqrt(1/n + 1/m): sqrt(2/pi) times pi/8.
_CHANCE_RANKS = float(np.sqrt(2.0 / np.pi) * np.pi / 8.0)
_IMMATERIAL = 0.003  # of rank, on average: what nobody needs to reduce further
_SLICES = 256
_CONSTANT = 0.01  # of the initial spread: nearly constant scores
_FELL, _FOLLOWED = 0.25, 0.5  # a fall of SPDD that matters, and the share of it that ranks should show


@dataclass(frozen=True)
class Measures:
    """Scores of the training rows, measured.

    Attributes
    ----------
    disparity : float
        Strong pairwise demographic disparity (SPDD): the sum of Wasserstein-1 distances over pairs of groups.
    rank_disparity : float
        The same of pooled ranks.
    excess : float
        Mean over pairs of the distance between ranks over what chance shows on average, weighted by reliability and
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


class Judge:
    """Measures scores of one set of rows against those of the initial model.

    Parameters
    ----------
    labels, shares : ndarray of shape (n_rows,)
        0 or 1, and weights that sum to 1.
    comparisons : Comparisons
        The pairs of groups, weighted by reliability.
    initial : ndarray of shape (n_rows,)
        Scores of the initial model.
    """

    def __init__(
        self,
        labels: NDArray[np.float64],
        shares: NDArray[np.float64],
        comparisons: Comparisons,
        initial: NDArray[np.float64],
    ) -> None:
        self.labels, self.shares, self.comparisons, self.initial = labels, shares, comparisons, initial
        self._all = comparisons.reweighted(np.ones(len(comparisons.pairs)))
        self._exact = DiscretePenalty(huber_width=0.0, n_slices=_SLICES, scale="score")

    @cached_property
    def rate(self) -> float:
        """Weighted share of positive labels."""
        return float(self.shares @ self.labels)

    @cached_property
    def constant_loss(self) -> float:
        """Log-loss of the best constant."""
        return float(-(self.rate * np.log(self.rate) + (1.0 - self.rate) * np.log1p(-self.rate)))

    def log_loss(self, scores: NDArray[np.float64]) -> float:
        """Return the mean log-loss."""
        inside = np.clip(scores, 1e-15, 1.0 - 1e-15)
        return float(-self.shares @ np.where(self.labels > 0.0, np.log(inside), np.log1p(-inside)))

    def auc(self, scores: NDArray[np.float64]) -> float:
        """Return the area under the ROC curve, from the mean rank of the positive rows."""
        mean = float((self.shares * self.labels) @ pooled_ranks(scores, self.shares)) / self.rate
        return (mean - 0.5 * self.rate) / (1.0 - self.rate)

    @cached_property
    def information(self) -> float:
        """Gain of the initial model over a constant, in log-loss; at least 1 % of the constant's loss."""
        return max(self.constant_loss - self.log_loss(self.initial), 0.01 * self.constant_loss)

    def measure(self, scores: NDArray[np.float64]) -> Measures:
        """Measure scores of these rows."""
        weights = self.comparisons.row_weights
        ranks = pooled_ranks(scores, weights)
        apart = self._distances(ranks)
        # A pair of large groups has a low floor of its own, which the sum of all floors would hide.
        chance = np.maximum(_CHANCE_RANKS * self.comparisons.sampling_errors(), _IMMATERIAL)
        heavy = self.comparisons.weights if self.comparisons.weights.any() else self._all.weights
        heavy = heavy / self.comparisons.sampling_errors()  # what is known more precisely says more
        loss = self.log_loss(scores)
        kept = (self.constant_loss - loss) / self.information
        return Measures(
            float(self._distances(scores).sum()),
            float(apart.sum()),
            float(np.average(apart / chance, weights=heavy)),
            float(np.average(apart, weights=heavy)),
            loss,
            float(kept),
        )

    def _distances(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._exact.value_and_gradient(values, self._all).distances


def before_and_after(judge: Judge, trained: NDArray[np.float64]) -> dict[str, tuple[float, float]]:
    """Return each figure of the initial and of the trained model."""
    pairs = {}
    measured = [judge.measure(scores) for scores in (judge.initial, trained)]
    for name in ("log_loss", "disparity", "rank_disparity"):
        pairs[name] = (getattr(measured[0], name), getattr(measured[1], name))
    aucs, spreads = [], []
    for scores in (judge.initial, trained):
        aucs.append(judge.auc(scores))
        mean = float(judge.shares @ scores)
        spreads.append(float(np.sqrt(judge.shares @ (scores - mean) ** 2)))
    return {**pairs, "auc": (aucs[0], aucs[1]), "spread": (spreads[0], spreads[1])}


def warn_of_losses(kept: float, figures: dict[str, tuple[float, float]], excess: float, *, stacklevel: int) -> str:
    """Warn of what was lost, and return a remark for the outcome; empty where nothing is amiss."""
    spread = figures["spread"]
    if spread[1] < _CONSTANT * spread[0]:
        remark = "the scores are nearly constant"
    elif kept < HALF:
        remark = f"{max(kept, 0.0):.0%} of the initial model's information is left"
    else:
        remark = ""
    if remark:
        auc = figures["auc"]
        warnings.warn(
            f"Parity cost most of the model: {remark}; the AUC fell from {auc[0]:.3f} to {auc[1]:.3f}. These features "
            "allow no more at this weight. Use a smaller parity_weight or amount, parity_weight='auto', repair with "
            "the group at hand (QuantileRepairClassifier, group_specific=True), or another criterion.",
            FairnessWarning,
            stacklevel=stacklevel,
        )
        return remark
    before, after = figures["disparity"]
    fell = 1.0 - after / before if before > 0.0 else 0.0
    ranks = 1.0 - figures["rank_disparity"][1] / max(figures["rank_disparity"][0], 1e-300)
    if fell > _FELL and ranks < _FOLLOWED * fell and excess > 1.3:
        warnings.warn(
            f"Scores were squeezed: the disparity fell by {fell:.0%}, but the order of people is nearly as unequal as "
            f"before (rank disparity {figures['rank_disparity'][0]:.3f} to {figures['rank_disparity'][1]:.3f}). Use "
            "scale='standardized', own weights for each group (group_specific=True) or repair with the group at hand.",
            FairnessWarning,
            stacklevel=stacklevel,
        )
        return "scores were squeezed more than their order was equalised"
    return ""


def warn_of_own_weights(kept: float, *, stacklevel: int) -> str:
    """Warn where weights for each group lose the information without any parity: there are too few rows for them."""
    if kept >= HALF:
        return ""
    remark = f"weights for each group keep {max(kept, 0.0):.0%} of the initial model's information on rows left out"
    warnings.warn(
        f"There are too few rows for group_specific=True: {remark}. Use shared weights, or repair with the group at "
        "hand (QuantileRepairClassifier).",
        FairnessWarning,
        stacklevel=stacklevel,
    )
    return remark
