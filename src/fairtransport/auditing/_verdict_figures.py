"""The figures that a verdict is formed on: of all people, or of people who are alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fairtransport.auditing.proportions import Estimate
    from fairtransport.auditing.records import AuditData, PairSummary, Reading

__all__ = ["VerdictFigures", "verdict_figures"]


class VerdictFigures(NamedTuple):
    """The figures that a verdict is formed on.

    Parameters
    ----------
    reading : Reading
        The sum of distances over pairs of groups; of ranks, where scores have no known bounds.
    farthest : PairSummary
    largest_distance : float
    mean_difference : Estimate
        The mean distance between two groups.
    judged : tuple of int
        Indices of the groups that are judged.
    enough : bool
        Whether there are two of them.
    n_pairs : int
        Number of pairs of groups.
    """

    reading: Reading
    farthest: PairSummary
    largest_distance: float
    mean_difference: Estimate
    judged: tuple[int, ...]
    enough: bool
    n_pairs: int


def verdict_figures(audit: AuditData) -> VerdictFigures:
    """Return the figures that the criterion of an audit asks for."""
    within = audit.within
    if within is not None:
        judged = within.groups if within.judged else ()
        n_groups = len(within.groups)
        return VerdictFigures(
            within.readings[audit.settings.pairs_metric],
            within.farthest,
            within.largest_distance,
            within.mean_pairwise_distance,
            judged,
            within.judged,
            n_groups * (n_groups - 1) // 2,
        )
    judged = tuple(index for index, group in enumerate(audit.groups) if group.judged)
    n_groups = len(judged) if len(judged) >= 2 else len(audit.groups)
    return VerdictFigures(
        audit.readings[audit.settings.pairs_metric],
        audit.farthest,
        audit.largest_distance,
        audit.mean_pairwise_distance,
        judged,
        len(judged) >= 2,
        n_groups * (n_groups - 1) // 2,
    )
