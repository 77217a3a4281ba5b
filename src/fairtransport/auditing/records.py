"""The parts of an audit: frozen records of plain values that JSON can represent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.auditing._small_groups import SmallGroups
from fairtransport.auditing.proportions import Estimate
from fairtransport.auditing.provenance import Provenance
from fairtransport.auditing.readings import PairSummary, Reading
from fairtransport.auditing.within_records import StratumSummary, WithinStrata
from fairtransport.criteria import criterion_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fairtransport.auditing.errors import Calibration, CrossAuc, ErrorRates, RegressionErrors, Separation
    from fairtransport.histograms import GroupHistograms

__all__ = [
    "QUANTILE_LEVELS",
    "AuditData",
    "GroupSummary",
    "PairSummary",
    "Reading",
    "Settings",
    "StratumSummary",
    "ThresholdSummary",
    "WithinStrata",
]

#: Levels of the quantiles that describe each group's scores.
QUANTILE_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class GroupSummary:
    """Size, scores and errors of one group.

    Parameters
    ----------
    name : str
    rows : int
    weight : float
        Total weight; the number of rows where there are no weights.
    effective_rows : float
        Effective sample size (Kish): the number of rows of equal weight with the same precision.
    judged : bool
        Whether the group has enough rows to be judged.
    mean : float
        Mean score.
    quantiles : tuple of float
        Quantiles of the scores at `QUANTILE_LEVELS`.
    distance_to_everyone : float
        Wasserstein-1 distance between the scores of the group and those of all rows.
    error, auc : Estimate or None
        Error rate at the first threshold and area under the ROC curve. None without labels; the area also where the
        group has only one class.
    """

    name: str
    rows: int
    weight: float
    effective_rows: float
    judged: bool
    mean: float
    quantiles: tuple[float, ...]
    distance_to_everyone: float
    error: Estimate | None = None
    auc: Estimate | None = None


@dataclass(frozen=True)
class ThresholdSummary:
    """Selection rates and errors at one threshold.

    Parameters
    ----------
    threshold : float
        Scores strictly above it are selected.
    rates : tuple of Estimate
        Selection rate of each group.
    overall : float
        Selection rate of all rows.
    ratios : tuple of float or None
        Each group's rate of the favourable outcome divided by the highest; None where nobody has it. The favourable
        outcome is to be selected or, where low scores are favourable, not to be.
    lowest, highest : int
        Indices of the groups with the lowest and highest rate, among those large enough to be judged (among all, where
        fewer than two are).
    difference, ratio : Estimate
        The highest rate minus the lowest, and the lower rate of the favourable outcome divided by the higher. The
        intervals account for the selection of the two among several groups.
    four_fifths : bool or None
        Whether the ratio is at least 0.8; None where nobody has the favourable outcome.
    conclusive : bool
        Whether the confidence interval of the ratio excludes 0.8.
    errors : tuple of Estimate, or None
        Error rate of each group; None without labels.
    favourable : {"high", "low"}
        Which scores are to a person's advantage.
    top_share : float or None
        The share of all rows that the threshold was chosen for; None where it is a score that the user named. The
        share above it, ``overall``, differs where scores are tied.
    """

    threshold: float
    rates: tuple[Estimate, ...]
    overall: float
    ratios: tuple[float | None, ...]
    lowest: int
    highest: int
    difference: Estimate
    ratio: Estimate
    four_fifths: bool | None
    conclusive: bool
    errors: tuple[Estimate, ...] | None = None
    favourable: str = "high"
    top_share: float | None = None

    @property
    def worse_off(self) -> int:
        """Index of the group whose rate of the favourable outcome is lowest, among those that are judged."""
        return self.lowest if self.favourable == "high" else self.highest

    @property
    def better_off(self) -> int:
        """Index of the group whose rate of the favourable outcome is highest, among those that are judged."""
        return self.highest if self.favourable == "high" else self.lowest


@dataclass(frozen=True)
class Settings:
    """How the figures of an audit were computed.

    Parameters
    ----------
    target : str
        Description of the target distribution of the Wasserstein disparity.
    confidence : float
        Confidence level of all intervals.
    n_bootstrap, n_permutations : int
    exact : bool
        Whether metrics were computed from rows. If not, they were computed from histograms with ``n_bins`` bins.
    n_bins : int
    range : pair of float
        Range of the scores. Distances are shares of it, where ``bounded``.
    columns : tuple of str
        Names of the sensitive columns.
    weighted : bool
        Whether rows have weights.
    null : str
        How the null distribution was drawn: ``"permuted"`` (an exact permutation test), or ``"resampled"``: the
        distribution of all rows plus the noise of each group (with weights, or very many rows).
    n_nodes : int
        Number of bins of the resampled histograms.
    min_judged_rows : int
        Groups with fewer effective rows are not judged.
    materiality : float
        Smallest distance between two groups that matters, as a share of the range of scores.
    set_aside : dict of str to int
        Number of rows left out, by reason.
    small_groups : SmallGroups
        How small groups were treated, and how many were pooled or left out.
    favourable : {"high", "low"}
        Which scores are to a person's advantage.
    criterion : {"demographic_parity", "equalized_odds", "equal_opportunity"}
        What the verdict is about; with strata, among people in the same stratum.
    strata : tuple of str
        Names of the columns of the strata; empty without strata.
    bounded : bool
        Whether scores have known bounds: [0, 1], or those that the user gave. If not, distances are in units of the
        score, and the verdict refers to the ranks of the scores.
    task : {"classification", "regression"} or None
        What the labels are; None without labels.
    """

    target: str
    confidence: float
    n_bootstrap: int
    n_permutations: int
    exact: bool
    n_bins: int
    range: tuple[float, float]
    columns: tuple[str, ...]
    weighted: bool
    null: str
    n_nodes: int
    min_judged_rows: int
    materiality: float
    set_aside: Mapping[str, int] = field(default_factory=dict)
    small_groups: SmallGroups = field(default_factory=SmallGroups)
    favourable: str = "high"
    criterion: str = "demographic_parity"
    strata: tuple[str, ...] = ()
    bounded: bool = True
    task: str | None = None

    @property
    def pairs_metric(self) -> str:
        """Name of the sum over pairs of groups that the verdict refers to."""
        return "strong_pairwise_disparity" if self.bounded else "rank_disparity"

    @property
    def criterion_text(self) -> str:
        """The criterion in words, such as ``"equalized odds"`` or ``"conditional parity"``."""
        return criterion_text(self.criterion, has_strata=bool(self.strata))


@dataclass(frozen=True, eq=False, repr=False)
class AuditData:
    """The figures of an audit, without the methods of `Audit`."""

    groups: tuple[GroupSummary, ...]
    readings: Mapping[str, Reading]
    thresholds: tuple[ThresholdSummary, ...]
    distances: NDArray[np.float64]
    pair_p_values: NDArray[np.float64]
    farthest: PairSummary
    largest_distance: float
    metrics_all_groups: Mapping[str, float]
    auc: Estimate | None
    error_rates: tuple[ErrorRates, ...]
    separation: Separation | None
    calibration: Calibration | None
    cross_auc: CrossAuc | None
    within: WithinStrata | None
    histograms: GroupHistograms
    settings: Settings
    provenance: Provenance = field(default_factory=Provenance)
    rank_distances: NDArray[np.float64] | None = None
    regression: RegressionErrors | None = None

    @property
    def strata(self) -> tuple[StratumSummary, ...]:
        """The labels or strata that groups are compared within; empty without either."""
        return () if self.within is None else self.within.strata

    @property
    def conditional(self) -> Mapping[str, Reading]:
        """The disparities among people with the same label or in the same stratum; empty without either."""
        return {} if self.within is None else self.within.readings

    @property
    def metrics(self) -> dict[str, float]:
        """The observed values: ``error_rate`` (with labels of classes) and the disparities."""
        return {name: reading.value for name, reading in self.readings.items()}

    @property
    def mean_pairwise_distance(self) -> Estimate:
        """The mean distance between two groups: the sum over all pairs, corrected for bias, by their number.

        Of scores without known bounds, the distance between ranks.
        """
        n_judged = sum(group.judged for group in self.groups)
        n_groups = n_judged if n_judged >= 2 else len(self.groups)
        n_pairs = n_groups * (n_groups - 1) // 2
        reading = self.readings[self.settings.pairs_metric]
        return Estimate(reading.corrected / n_pairs, reading.low / n_pairs, reading.high / n_pairs)

    @property
    def distinct_scores(self) -> int:
        """Number of different scores, at the resolution of the histograms."""
        return int(np.count_nonzero(self.histograms.everyone))

    @property
    def rows(self) -> int:
        """Number of rows audited."""
        return int(self.histograms.rows.sum())

    @property
    def not_judged(self) -> tuple[str, ...]:
        """Names of the groups that have too few rows to be judged."""
        return tuple(group.name for group in self.groups if not group.judged)
