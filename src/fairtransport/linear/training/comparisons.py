"""Third stage of ``fit``: the fixed targets, if there are any, and the pairs of cells that the criterion compares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.criteria import resolve_group_target, weigh_by_reliability
from fairtransport.transport.targets import TARGET_SIZE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.criteria import ComparedStrata, ComparedStratum
    from fairtransport.groups import Groups
    from fairtransport.linear.responses import Response
    from fairtransport.linear.training._data import TrainingData
    from fairtransport.linear.training._options import TrainingOptions
    from fairtransport.penalties import Comparisons

__all__ = ["GroupComparisons", "compare_groups", "stored_target", "stratum_targets"]


@dataclass(frozen=True, eq=False)
class GroupComparisons:
    """What the penalty compares, and what disparities are measured on.

    Attributes
    ----------
    strata : ComparedStrata
        Where groups are compared: everywhere, among rows with the same label, or within strata.
    criterion : Comparisons
        Pairs of groups, with the weights of their strata.
    pairwise : Comparisons
        The same pairs, weighted by reliability as well.
    penalised : Comparisons
        These, or pairs of each group and the target of its stratum.
    """

    strata: ComparedStrata
    criterion: Comparisons
    pairwise: Comparisons
    penalised: Comparisons

    @cached_property
    def family_labels(self) -> NDArray[np.int64]:
        """Label of the rows that each family of pairs compares; 0 where labels do not matter."""
        pairs = self.criterion
        if pairs.families is None:
            return np.zeros(len(pairs.pairs), dtype=np.int64)
        first = np.unique(pairs.families, return_index=True)[1]
        return np.array([self.strata.compared[pairs.strata[cell]].label or 0 for cell in pairs.pairs[first, 0]])


def compare_groups(data: TrainingData, scores: NDArray[np.float64], options: TrainingOptions) -> GroupComparisons:
    """Return the comparisons of groups, weighted and with targets fixed by the initial model's scores."""
    strata = data.resolve(options)
    criterion = strata.comparisons()
    pairwise = weigh_by_reliability(criterion, scores)
    if options.each_other:
        return GroupComparisons(strata, criterion, pairwise, pairwise)
    to_target = strata.comparisons(tuple(stratum_targets(options, scores, data, strata)))
    return GroupComparisons(strata, criterion, pairwise, weigh_by_reliability(to_target, scores))


def stored_target(
    options: TrainingOptions,
    scores: NDArray[np.float64],
    groups: Groups,
    weights: NDArray[np.float64] | None,
    *,
    response: Response,
    stratum: ComparedStratum | None = None,
) -> NDArray[np.float64]:
    """Return the target as scores of equal mass.

    Parameters
    ----------
    options : TrainingOptions
        Where groups are compared with each other, the target is the Wasserstein-2 barycenter of the groups, which
        displays and streams show beside them.
    scores : ndarray of shape (n_rows,)
        Scores of the initial model.
    groups : Groups
    weights : ndarray of shape (n_rows,) or None
    response : Response
        An array that is the target has the units of y.
    stratum : ComparedStratum, optional
        Use only the rows of this stratum.

    Returns
    -------
    ndarray of shape (4096,)
    """
    sample = resolve_group_target(
        options.target_word,
        response.scores_as_given(scores),
        groups,
        weights,
        stratum,
        score_range=response.loss.bounds,
    )
    return response.scores_of_given(sample.equal_mass(TARGET_SIZE))


def stratum_targets(
    options: TrainingOptions, scores: NDArray[np.float64], data: TrainingData, strata: ComparedStrata
) -> NDArray[np.float64]:
    """Return the target of each compared stratum, from the scores of its rows: shape (n_strata, 4096)."""
    try:
        samples = [
            stored_target(options, scores, data.groups, data.weights, response=data.response, stratum=stratum)
            for stratum in strata.compared
        ]
    except ValueError:
        if len(strata.compared) == 1:
            raise
        raise ValueError(
            f"target must name a distribution in each of the {len(strata.compared)} strata that are compared, and "
            "the group that it names has no rows in some of them; use 'barycenter'."
        ) from None
    return np.array(samples)
