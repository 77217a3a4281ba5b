"""The parts of an audit that compare people who are alike: with the same label, or in the same stratum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairtransport.auditing.proportions import Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from fairtransport.auditing.readings import PairSummary, Reading

__all__ = ["StratumSummary", "WithinStrata"]


@dataclass(frozen=True)
class StratumSummary:
    """The disparities among the rows of one stratum, or with one label.

    Parameters
    ----------
    name : str
        ``"north"``, ``"positive"`` or ``"positive, north"``.
    label : int or None
        0 or 1 where only rows with this label are compared; None otherwise.
    rows : int
    weight : float
        Its weight in the mean over all strata that are compared, which sum to 1: labels count the same, and strata by
        their share of the rows. 0 when set aside.
    n_groups : int
        Number of groups with rows in the stratum.
    n_judged : int
        Number of these groups that have enough rows to be judged. Only they are compared; all groups are where no
        stratum has two that are judged.
    metrics, floors, p_values : dict of str to float
        Empty when the stratum is set aside: it has fewer than two groups to compare, or lacks the group that is the
        target. P-values are adjusted for the number of strata (Holm).
    """

    name: str
    label: int | None
    rows: int
    weight: float
    n_groups: int
    n_judged: int
    metrics: Mapping[str, float]
    floors: Mapping[str, float]
    p_values: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class WithinStrata:
    """Groups compared among people who are alike: with the same label, or in the same stratum.

    Parameters
    ----------
    strata : tuple of StratumSummary
        The labels, the strata, or the strata of each label.
    readings : dict of str to Reading
        The disparities, averaged over strata by weight; see `Audit.readings`. Groups are permuted within strata for
        noise floors and p-values.
    distances : array of shape (n_groups, n_groups)
        Distance between every two groups, averaged over the strata where both are compared; NaN where there is none.
    pair_p_values : array of shape (n_groups, n_groups)
        P-values of no difference between every two groups in any stratum, adjusted for the number of pairs (Holm).
    farthest : PairSummary
        The two groups whose difference is certain to be largest, with figures averaged over strata.
    largest_distance : float
        Upper confidence limit of the mean distance between any two groups.
    groups : tuple of int
        Indices of the groups that are compared in some stratum.
    n_pairs : float
        Number of pairs that are compared, averaged over strata.
    judged : bool
        Whether some stratum has two groups with enough rows to be judged; all groups are compared otherwise.
    """

    strata: tuple[StratumSummary, ...]
    readings: Mapping[str, Reading]
    distances: NDArray[np.float64]
    pair_p_values: NDArray[np.float64]
    farthest: PairSummary
    largest_distance: float
    groups: tuple[int, ...]
    n_pairs: float
    judged: bool

    @property
    def mean_pairwise_distance(self) -> Estimate:
        """The mean distance between two groups, corrected for bias."""
        ranks = "rank_disparity" in self.readings
        reading = self.readings["rank_disparity" if ranks else "strong_pairwise_disparity"]
        return Estimate(reading.corrected / self.n_pairs, reading.low / self.n_pairs, reading.high / self.n_pairs)

    @property
    def set_aside(self) -> tuple[StratumSummary, ...]:
        """The strata in which nothing is compared."""
        return tuple(stratum for stratum in self.strata if not stratum.metrics)
