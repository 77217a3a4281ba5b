"""The unit of ``parity_weight``: what the features are worth, for the disparity of the initial model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairtransport.transport.line import Sample, wasserstein

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.estimators.problem import TrainingProblem

__all__ = ["parity_unit"]


def parity_unit(problem: TrainingProblem, scores: NDArray[np.float64], *, each_other: bool) -> tuple[float, float]:
    """Return what the features are worth, and the factor of the sum of distances at parity weight 1.

    At weight 1 the whole disparity of the initial model counts as much as the whole worth of the features; what
    chance alone may show does not count.

    Parameters
    ----------
    problem : TrainingProblem
    scores : ndarray
        Of the initial model.
    each_other : bool
        Whether distances are those of all pairs of groups, not those to the target.
    """
    worth, (disparity, chance) = _worth(problem, scores), _disparity(problem, scores, each_other=each_other)
    return worth, worth * max(0.0, disparity - chance) / disparity**2 if disparity > 0.0 else 0.0


def _worth(problem: TrainingProblem, scores: NDArray[np.float64]) -> float:
    """Log-loss of a constant less that of the model, at least 1% of the former."""
    labels = problem.labels.astype(np.float64)
    inside = np.clip(scores, 1e-12, 1.0 - 1e-12)
    losses = -np.where(labels > 0, np.log(inside), np.log1p(-inside))
    rate = float(np.average(labels, weights=problem.weights))
    constant = -(rate * np.log(rate) + (1.0 - rate) * np.log1p(-rate))
    return max(constant - float(np.average(losses, weights=problem.weights)), 0.01 * constant)


def _disparity(problem: TrainingProblem, scores: NDArray[np.float64], *, each_other: bool) -> tuple[float, float]:
    """Measure the disparity of the initial model, and about the most that chance alone would show."""
    weights = problem.weights
    samples = [Sample.from_values(scores[r], None if weights is None else weights[r]) for r in problem.groups.rows]
    levels = np.sort(scores)
    height = np.arange(1, len(levels)) / len(levels)
    spread = float(np.sqrt(height * (1.0 - height)) @ np.diff(levels))
    # Two samples of one distribution are 0.8 of this far apart on average. A sum over many groups strays less from
    # its mean, by about half of it / sqrt(groups - 1); two such deviations are as much as chance would show.
    spread *= 0.8 * (1.0 + 1.0 / np.sqrt(len(samples) - 1.0))
    size = 1.0 / np.maximum(problem.groups.counts, 1)
    if not each_other:
        target = Sample.from_values(problem.target.astype(np.float64))
        return sum(wasserstein(own, target) for own in samples), spread * float(np.sqrt(size).sum())
    pairs = [(a, b) for a in range(len(samples)) for b in range(a + 1, len(samples))]
    chance = spread * float(sum(np.sqrt(size[a] + size[b]) for a, b in pairs))
    return sum(wasserstein(samples[a], samples[b]) for a, b in pairs), chance
