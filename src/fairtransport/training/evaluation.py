"""Metrics of a model relative to the initial model, and scores with their spread restored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Floats, Ints
from fairtransport._validation import check_choice, check_real
from fairtransport.criteria.comparisons import Comparisons
from fairtransport.criteria.criterion import ComparedStrata, chance_spreads
from fairtransport.criteria.penalty import DiscretePenalty
from fairtransport.metrics.ranks import pooled_ranks
from fairtransport.training.responses import ScoredResponse
from fairtransport.transport.line import Sample
from fairtransport.transport.regularizers import mixed_logits
from fairtransport.transport.targets import w2_barycenter

_MEAN_ABSOLUTE = float(np.sqrt(2.0 / np.pi))  # of a standard normal number
_UNIFORM_SPREAD = np.pi / 8.0  # of uniform ranks: the integral of sqrt(u (1 - u))
_IMMATERIAL = 0.003  # mean difference in rank below which there is nothing to reduce
_SLICES = 256


@dataclass(frozen=True)
class ScoreMetrics:
    """Metrics of the scores of one set of rows; disparities are means over pairs of groups."""

    disparity: float
    rank_disparity: float
    excess: float
    rank_distance: float
    loss: float
    quality: float
    information_kept: float


@dataclass(frozen=True, eq=False)
class ScoreEvaluator:
    """Evaluates scores of one set of rows against those of the initial model."""

    response: ScoredResponse
    outcomes: Floats
    shares: Floats
    comparisons: GroupComparisons
    initial_scores: Floats

    @cached_property
    def constant_loss(self) -> float:
        """Loss of the best constant."""
        return self.response.constant_loss(self.outcomes, self.shares)

    @cached_property
    def information(self) -> float:
        """Gain of the initial model over a constant; at least 1 % of the constant's loss."""
        return max(self.constant_loss - self.loss(self.initial_scores), 0.01 * self.constant_loss)

    @cached_property
    def _exact(self) -> DiscretePenalty:
        return DiscretePenalty(huber_width=0.0, n_slices=_SLICES, scale="score")

    @cached_property
    def _unexplained(self) -> float:
        return 1.0 - self.explained(self.initial_scores)

    def explained(self, scores: Floats) -> float:
        """Return the share of the variance of y that scores explain."""
        return self.response.explained(scores, self.outcomes, self.shares)

    def loss(self, scores: Floats) -> float:
        """Return the mean loss."""
        return self.response.mean_loss(scores, self.outcomes, self.shares)

    def spread(self, scores: Floats) -> float:
        """Return the standard deviation of the scores, in units of y."""
        mean = float(self.shares @ scores)
        return self.response.score_unit * float(np.sqrt(self.shares @ (scores - mean) ** 2))

    def evaluate(self, scores: Floats) -> ScoreMetrics:
        """Return the metrics of scores of these rows, which are computed once."""
        key = blake2b(np.ascontiguousarray(scores).data).digest()  # the scores of a path would fill memory
        if key not in self._evaluated:
            self._evaluated[key] = self._evaluate(scores)
        return self._evaluated[key]

    @cached_property
    def _evaluated(self) -> dict[bytes, ScoreMetrics]:
        return {}

    def _evaluate(self, scores: Floats) -> ScoreMetrics:
        criterion = self.comparisons.criterion
        ranks = pooled_ranks(scores, criterion.row_weights)
        distances, weights = self._distances(ranks), criterion.weights
        loss = self.loss(scores)
        return ScoreMetrics(
            disparity=self.response.score_unit * float(np.average(self._distances(scores), weights=weights)),
            rank_disparity=float(np.average(distances, weights=weights)),
            excess=self._excess(distances, ranks),
            rank_distance=float(np.average(distances, weights=self._reliable.weights / criterion.sampling_errors())),
            loss=self.response.loss_unit * loss,
            quality=self.response.quality(scores, ranks, self.outcomes, self.shares),
            information_kept=share_kept(self._unexplained, 1.0 - self.explained(scores)),
        )

    @cached_property
    def _reliable(self) -> Comparisons:
        """The pairs weighted by reliability, or by the criterion where none is reliable."""
        pairwise = self.comparisons.pairwise
        return pairwise if pairwise.weights.any() else self.comparisons.criterion

    def _excess(self, distances: Floats, ranks: Floats) -> float:
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

    def _distances(self, values: Floats) -> Floats:
        pairs = self.comparisons.criterion
        return self._exact.value_and_gradient(values, pairs.reweighted(np.ones(len(pairs.pairs)))).distances


def share_kept(before: float, after: float) -> float:
    """Return the share of what a model explains of y that a change keeps, from unexplained shares of the variance.

    It is at most 1, and negative where the changed model is worse than a constant; 1 where there was nothing to lose.
    """
    return 1.0 if before >= 1.0 else min((1.0 - after) / (1.0 - before), 1.0)


def metrics_before_and_after(evaluator: ScoreEvaluator, trained: Floats) -> dict[str, tuple[float, float]]:
    """Return each metric of the initial and of the trained model."""
    response, both = evaluator.response, (evaluator.initial_scores, trained)
    before, after = (evaluator.evaluate(scores) for scores in both)
    return {
        response.loss_name: (before.loss, after.loss),
        "disparity": (before.disparity, after.disparity),
        **response.further_disparities((before.disparity, after.disparity)),
        "rank_disparity": (before.rank_disparity, after.rank_disparity),
        response.quality_name: (before.quality, after.quality),
        "spread": (evaluator.spread(both[0]), evaluator.spread(both[1])),
    }


# Pairs of groups that are compared.


@dataclass(frozen=True, eq=False)
class GroupComparisons:
    """The comparisons of the penalty, and those that disparities are measured on."""

    strata: ComparedStrata
    criterion: Comparisons
    pairwise: Comparisons
    penalised: Comparisons

    @cached_property
    def family_labels(self) -> Ints:
        """Label of the rows that each family of pairs compares; 0 where labels do not matter."""
        pairs = self.criterion
        if pairs.families is None:
            return np.zeros(len(pairs.pairs), dtype=np.int64)
        first = np.unique(pairs.families, return_index=True)[1]
        return np.array([self.strata.compared[pairs.strata[cell]].label or 0 for cell in pairs.pairs[first, 0]])


# One increasing map for all rows, which gives trained scores the spread of the initial model's scores.

#: Whose spread the scores have: that of the trained or that of the initial model.
SPREADS = ("trained", "initial")
_MAX_POINTS = 256
_ROWS_FOR_EACH_POINT = 5  # so that no point is one person's score


def spread_points(
    trained: Floats,
    initial: Floats,
    rows: Sequence[NDArray[np.intp]],
    weights: Floats | None,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> Floats:
    """Return the knots of the map and their images.

    Notes
    -----
    The map takes quantiles of all trained scores to quantiles of the Wasserstein-2 barycenter, weighted by group size,
    of the initial model's scores. It is the same for all groups, so groups with equal distributions keep them, ranks
    do not change, and no group is needed to use it.
    """
    n_points = int(np.clip(len(trained) // _ROWS_FOR_EACH_POINT, 2, _MAX_POINTS))

    def sample(scores: Floats, part: NDArray[np.intp] | slice) -> Sample:
        return Sample.from_values(scores[part], None if weights is None else weights[part])

    sizes = [len(part) if weights is None else weights[part].sum() for part in rows]
    target = _means(w2_barycenter([sample(initial, part) for part in rows], sizes), n_points)
    knots = _means(sample(trained, slice(None)), n_points)
    knots, first = np.unique(knots, return_index=True)
    images = np.add.reduceat(target, first) / np.diff([*first, n_points])  # a tie goes to the mean of its images
    points = np.vstack((knots, np.maximum.accumulate(images)))  # which rounding may let fall
    if bounds is None:
        return points if points.shape[1] > 1 else np.column_stack((points, points + 1.0))
    low, high = bounds
    return np.column_stack(((low, low), points[:, (knots > low) & (knots < high)], (high, high)))


def _means(sample: Sample, n_points: int) -> Floats:
    """Return means of neighbouring scores."""
    return np.asarray(sample.equal_mass(8 * n_points).reshape(n_points, 8).mean(axis=1))


def spread_scores(scores: Floats, points: Floats) -> Floats:
    """Return the mapped scores; beyond the first and the last point they keep their distance to it."""
    knots = points[0]
    return np.asarray(np.interp(scores, *points) + scores - np.clip(scores, knots[0], knots[-1]))


def spread_logits(logits: Floats, points: Floats) -> Floats:
    """Return the logits of the mapped scores; logits of scores that round to 0 or 1 are unchanged."""
    scores = np.exp(-np.logaddexp(0.0, -logits))
    moved = spread_scores(scores, points)
    with np.errstate(divide="ignore"):
        mapped = np.log(moved) - np.log1p(-moved)
    return np.where(np.isfinite(mapped), mapped, logits)


def as_parameters_say(model: Any, trained: Floats, initial: Callable[[], Floats], *, logits: bool) -> Floats:
    """Return trained predictions with a model's ``spread``, mixed with those of the initial model by its ``amount``."""
    amount = check_real(model.amount, name="amount", most=1.0)
    if check_choice(model.spread, SPREADS, name="spread") == "initial":
        trained = (spread_logits if logits else spread_scores)(trained, model.spread_)
    if amount == 1.0:
        return trained
    return mixed_logits(initial(), trained, amount) if logits else (1.0 - amount) * initial() + amount * trained
