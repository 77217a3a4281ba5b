"""The unit of ``parity_weight``: what the features are worth, for the disparity of the initial model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fairtransport.penalties.unit import disparity_and_chance, unit_of, worth_of_features
from fairtransport.transport.line import Sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["MeasuredRows", "parity_unit"]


class MeasuredRows(Protocol):
    """What the unit is measured on."""

    @property
    def labels(self) -> NDArray[Any]:
        """0 and 1."""

    @property
    def groups(self) -> Groups:
        """Those of the rows."""

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """Those of the rows, where there are any."""

    @property
    def target(self) -> NDArray[Any]:
        """Scores that groups are moved to, where they are not moved to each other."""


def parity_unit(problem: MeasuredRows, scores: NDArray[np.float64], *, each_other: bool) -> tuple[float, float]:
    """Return what the features are worth, and the factor of the sum of distances at parity weight 1.

    At weight 1 the whole disparity of the initial model counts as much as the whole worth of the features; what
    chance alone may show does not count.

    Parameters
    ----------
    problem : MeasuredRows
    scores : ndarray
        Of the initial model.
    each_other : bool
        Whether distances are those of all pairs of groups, not those to the target.
    """
    weights, target = problem.weights, None
    worth = worth_of_features(problem.labels, scores, weights)
    samples = [Sample.from_values(scores[r], None if weights is None else weights[r]) for r in problem.groups.rows]
    if not each_other:
        target = Sample.from_values(problem.target.astype(np.float64))
    disparity, chance = disparity_and_chance(samples, problem.groups.counts, scores, target)
    return worth, unit_of(worth, disparity, chance)
