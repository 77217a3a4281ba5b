"""Third stage of ``fit``: the fixed target, if there is one, and the pairs of groups that are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairtransport.criteria import demographic_parity, resolve_group_target, weigh_by_reliability
from fairtransport.transport.targets import TARGET_SIZE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.linear.training._data import TrainingData
    from fairtransport.linear.training._options import TrainingOptions
    from fairtransport.penalties import Comparisons

__all__ = ["GroupComparisons", "compare_groups", "stored_target"]


@dataclass(frozen=True, eq=False)
class GroupComparisons:
    """What the penalty compares, and what disparities are measured on.

    Attributes
    ----------
    penalised : Comparisons
        Pairs of groups, or pairs of each group and the target, weighted by reliability.
    pairwise : Comparisons
        Pairs of groups, weighted by reliability.
    target : ndarray or None
        Scores of equal mass of the fixed target; None where groups are compared with each other.
    """

    penalised: Comparisons
    pairwise: Comparisons
    target: NDArray[np.float64] | None


def compare_groups(data: TrainingData, scores: NDArray[np.float64], options: TrainingOptions) -> GroupComparisons:
    """Return the comparisons of groups, weighted and with the target fixed by the initial model's scores."""
    pairwise = weigh_by_reliability(demographic_parity(data.groups, row_weights=data.weights), scores)
    if options.each_other:
        return GroupComparisons(pairwise, pairwise, None)
    target = stored_target(options.target, scores, data.groups, data.weights)
    to_target = demographic_parity(data.groups, target=target, row_weights=data.weights)
    return GroupComparisons(weigh_by_reliability(to_target, scores), pairwise, target)


def stored_target(
    target: Any, scores: NDArray[np.float64], groups: Groups, weights: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Return a target as scores of equal mass.

    Parameters
    ----------
    target : str, label, array or None
        As the parameter ``target``; None where groups are compared with each other: then the Wasserstein-2 barycenter
        of the groups, which displays and streams show beside them.
    scores : ndarray of shape (n_rows,)
        Scores of the initial model.
    groups : Groups
    weights : ndarray of shape (n_rows,) or None

    Returns
    -------
    ndarray of shape (4096,)
    """
    word = "barycenter_w2" if target is None else target
    return resolve_group_target(word, scores, groups, weights).equal_mass(TARGET_SIZE)
