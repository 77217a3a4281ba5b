"""The parts of an audit: frozen records of plain values that JSON can represent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.auditing._small_groups import SmallGroups
from fairtransport.auditing.proportions import Estimate
from fairtransport.auditing.provenance import Provenance

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fairtransport.auditing.errors import Calibration, CrossAuc, ErrorRates, Separation
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
]

#: Levels of the quantiles that describe each group's scores.
QUANTILE_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Reading:
    """A metric with its confidence interval.

    Parameters
    ----------
    value : float
        The metric of the data, as observed.
    low, high : float
        Confidence interval. The disparity of samples is biased upward, the more so the smaller the groups. The interval
        corrects for this, so the observed value may lie in its upper part or even above it.
    corrected : float
        The value after correction for that bias.
    margin : float
        Distribution-free bound on the difference between the observed and the true value, with the same confidence
        (Dvoretzky-Kiefer-Wolfowitz; Hoeffding for the error). Wide, but valid for samples of any size.
    floor : float or None
        Noise floor: the mean of the metric when group membership is permuted. None for the error.
    p_value : float or None
        P-value of the test of no difference between the groups. It is the same for all disparities, which are 0 under
        the same hypothesis, except for the distance to a fixed distribution. The interval includes 0 if and only if it
        exceeds 1 - confidence. None for the error.
    resolution : float
        Largest error of the value due to binning; 0 where it was computed from rows.
    """

    value: float
    low: float
    high: float
    corrected: float
    margin: float
    floor: float | None = None
    p_value: float | None = None
    resolution: float = 0.0


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
class PairSummary:
    """The distance between two groups, and the scores at which they differ.

    Parameters
    ----------
    lower, higher : str
        Names of the groups; ``higher`` has the higher mean score.
    distance : float
        Wasserstein-1 distance, as a share of the range of scores.
    most_between : pair of float
        The shortest interval of scores that accounts for half of the distance.
    threshold : float
        The threshold at which the groups' selection rates differ most.
    shares_above : pair of float
        The selection rates of ``lower`` and ``higher`` at that threshold.
    p_value : float or None
        Of no difference between the two, adjusted for the number of pairs (Holm); None for a group that is not judged.
    estimate : Estimate or None
        The distance, corrected for its upward bias, with an interval that accounts for the selection of the pair. Only
        for `Audit.farthest`.
    mean_difference : Estimate or None
        Mean score of ``higher`` minus that of ``lower``, as a share of the range of scores. Only for `Audit.farthest`.
    """

    lower: str
    higher: str
    distance: float
    most_between: tuple[float, float]
    threshold: float
    shares_above: tuple[float, float]
    p_value: float | None = None
    estimate: Estimate | None = None
    mean_difference: Estimate | None = None


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

    @property
    def worse_off(self) -> int:
        """Index of the group whose rate of the favourable outcome is lowest, among those that are judged."""
        return self.lowest if self.favourable == "high" else self.highest

    @property
    def better_off(self) -> int:
        """Index of the group whose rate of the favourable outcome is highest, among those that are judged."""
        return self.highest if self.favourable == "high" else self.lowest


@dataclass(frozen=True)
class StratumSummary:
    """The disparities among the rows of one stratum.

    Parameters
    ----------
    name : str
    rows : int
    share : float
        Its share of the weight of all strata that are compared; 0 when set aside.
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
    rows: int
    share: float
    n_groups: int
    n_judged: int
    metrics: Mapping[str, float]
    floors: Mapping[str, float]
    p_values: Mapping[str, float]


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
        Range of the scores. Distances are shares of it.
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
    strata: tuple[StratumSummary, ...]
    conditional: Mapping[str, Reading]
    histograms: GroupHistograms
    settings: Settings
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def metrics(self) -> dict[str, float]:
        """The observed values: ``error_rate`` (with labels) and the three disparities."""
        return {name: reading.value for name, reading in self.readings.items()}

    @property
    def mean_pairwise_distance(self) -> Estimate:
        """The mean distance between two groups: the sum over all pairs, corrected for bias, by their number."""
        n_judged = sum(group.judged for group in self.groups)
        n_groups = n_judged if n_judged >= 2 else len(self.groups)
        n_pairs = n_groups * (n_groups - 1) // 2
        reading = self.readings["strong_pairwise_disparity"]
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
