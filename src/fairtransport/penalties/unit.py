"""What a weight of a penalty means: the information of the features, for the disparity of an initial model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.transport.line import Sample, wasserstein

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = ["disparity_and_chance", "information_of_features", "unit_of"]


def information_of_features(
    labels: NDArray[Any], scores: NDArray[np.float64], weights: NDArray[np.float64] | None = None
) -> float:
    """Log-loss of a constant less that of the model, at least 1% of the former.

    Examples
    --------
    >>> import numpy as np
    >>> round(information_of_features(np.array([0, 1]), np.array([0.0, 1.0])), 3)  # all of log 2
    0.693
    """
    labels = labels.astype(np.float64)
    inside = np.clip(scores, 1e-12, 1.0 - 1e-12)
    losses = -np.where(labels > 0, np.log(inside), np.log1p(-inside))
    rate = float(np.average(labels, weights=weights))
    constant = -(rate * np.log(rate) + (1.0 - rate) * np.log1p(-rate))
    return float(max(constant - float(np.average(losses, weights=weights)), 0.01 * constant))


def disparity_and_chance(
    samples: Sequence[Sample], counts: ArrayLike, scores: NDArray[np.float64], target: Sample | None = None
) -> tuple[float, float]:
    """Measure the sum of distances, of all pairs or to a target, and about the most that chance alone would show.

    Parameters
    ----------
    samples : sequence of Sample
        The scores of each group.
    counts : array-like
        Rows of each group.
    scores : ndarray
        Everyone's.
    target : Sample, optional
        By default distances are those of all pairs of groups.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.linspace(0.0, 1.0, 1000)
    >>> disparity, chance = disparity_and_chance([Sample.from_values(scores[::2]), Sample.from_values(scores[1::2])],
    ...                                          [500, 500], scores)
    >>> bool(disparity < 0.1 * chance)
    True
    """
    levels = np.sort(scores)
    height = np.arange(1, len(levels)) / len(levels)
    spread = float(np.sqrt(height * (1.0 - height)) @ np.diff(levels))
    # Two samples of one distribution are 0.8 of this far apart on average. A sum over many groups strays less from
    # its mean, by about half of it / sqrt(groups - 1); two such deviations are as much as chance would show.
    spread *= 0.8 * (1.0 + 1.0 / np.sqrt(max(len(samples) - 1.0, 1.0)))
    size = 1.0 / np.maximum(counts, 1)
    if target is not None:
        return sum(wasserstein(own, target) for own in samples), spread * float(np.sqrt(size).sum())
    pairs = [(a, b) for a in range(len(samples)) for b in range(a + 1, len(samples))]
    chance = spread * float(sum(np.sqrt(size[a] + size[b]) for a, b in pairs))
    return sum(wasserstein(samples[a], samples[b]) for a, b in pairs), chance


def unit_of(information: float, disparity: float, chance: float) -> float:
    """Return the factor of the sum of distances at parity weight 1; 0 where chance may explain all of it.

    Examples
    --------
    >>> unit_of(0.2, 0.5, 0.25)
    0.2
    """
    return information * max(0.0, disparity - chance) / disparity**2 if disparity > 0.0 else 0.0
