"""A criterion, resolved for training or validation rows: the stratum of each row, and the targets of the strata."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fairtransport.criteria import ComparedStrata, compares_each_other, resolve_criterion, resolve_group_target
from fairtransport.transport.targets import TARGET_SIZE

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.groups import Groups
    from fairtransport.penalties import Comparisons
    from fairtransport.strata import Strata

__all__ = ["ComparedRows", "Targets", "check_target", "compare_rows"]

Targets: TypeAlias = "dict[tuple[int | None, int | None], NDArray[np.float64]]"
"""Scores of a distribution for each label and stratum."""


@dataclass(frozen=True, eq=False)
class ComparedRows:
    """Rows, and where a criterion compares their groups.

    Attributes
    ----------
    groups : Groups
    resolved : ComparedStrata
    stratum : ndarray of shape (n_rows,)
        Index in ``resolved.compared`` of each row; their number for rows that are not compared.
    """

    groups: Groups
    resolved: ComparedStrata
    stratum: NDArray[np.int64]

    @property
    def n_strata(self) -> int:
        """Number of strata in which groups are compared."""
        return len(self.resolved.compared)

    def fixed_targets(self, target: Any, scores: NDArray[np.float64], scale: float = 1.0) -> Targets | None:
        """Return what groups are compared with in each stratum; None where they are compared with each other.

        Scores of equal mass, divided by ``scale``, represent the distribution that ``target`` names.
        """
        if compares_each_other(target):
            return None
        weights, parts = self.resolved.row_weights, self.resolved.compared
        return {
            (part.label, part.stratum): resolve_group_target(target, scores, self.groups, weights, part).equal_mass(
                TARGET_SIZE
            )
            / scale
            for part in parts
        }

    def comparisons(self, targets: Targets | None = None) -> Comparisons:
        """Return the pairs of cells; with the targets of other rows, those of strata that have one."""
        if targets is None:
            return self.resolved.comparisons()
        parts = [part for part in self.resolved.compared if (part.label, part.stratum) in targets]
        if not parts:
            raise ValueError("There is nothing to compare: no stratum of these rows has a target.")
        kept = ComparedStrata(self.resolved.n_rows, tuple(parts), row_weights=self.resolved.row_weights)
        return kept.comparisons([targets[part.label, part.stratum] for part in parts])


def check_target(target: Any, groups: Groups) -> None:
    """Raise ValueError for a ``target`` that is none, before anything is trained."""
    if not compares_each_other(target):
        resolve_group_target(target, np.full(groups.n_rows, 0.5), groups, None)


def compare_rows(
    criterion: str,
    groups: Groups,
    *,
    labels: ArrayLike | None,
    strata: Strata | None,
    row_weights: NDArray[np.float64] | None,
    stratum_weight: str | None,
) -> ComparedRows:
    """Resolve a criterion, as `resolve_criterion`, and find the stratum of each row."""
    resolved = resolve_criterion(
        criterion, groups, labels=labels, strata=strata, row_weights=row_weights, stratum_weight=stratum_weight
    )
    stratum = np.full(groups.n_rows, len(resolved.compared))
    for number, part in enumerate(resolved.compared):
        inside = np.ones(groups.n_rows, dtype=bool)
        if part.label is not None:
            inside &= np.asarray(labels) == part.label
        if part.stratum is not None and strata is not None:
            inside &= strata.codes == part.stratum
        stratum[inside] = number
    return ComparedRows(groups, resolved, stratum)
