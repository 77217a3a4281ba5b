"""The parts of an audit: frozen records of plain values that JSON can represent."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._arrays import Floats
from fairtransport._columns import default_names, say_columns
from fairtransport._text import interval_text, isolated, number_text, percent, score_text, shorten, three_digits
from fairtransport.auditing.proportions import Estimate, Tally, agreeing, complement, difference, holm, ratio
from fairtransport.auditing.provenance import Provenance
from fairtransport.criteria.criterion import criterion_text
from fairtransport.groups import MIN_GROUP_SIZE, MIN_SHOWN_ROWS, SMALL_GROUPS, GroupPolicy, Groups
from fairtransport.histograms import GroupHistograms

if TYPE_CHECKING:
    from fairtransport.auditing.errors import Calibration, CrossAuc, ErrorRates, RegressionErrors, Separation

# The parts of an audit that compare people who are alike: with the same label, or in the same stratum.


@dataclass(frozen=True)
class StratumSummary:
    """The disparities among the rows of one stratum, or with one label.

    Parameters
    ----------
    name : str
        ``"north"``, ``"positive"`` or ``"positive, north"``.
    label : int or None
        0 or 1 where only rows with this label are compared.
    rows, n_groups, n_judged : int
        Numbers of rows, of groups with rows, and of groups with enough rows to be judged. Only these are compared; all
        groups are where no stratum has two that are judged.
    weight : float
        In the mean over strata: labels count the same, and strata by their share of the rows. 0 when set aside.
    metrics, floors, p_values : dict of str to float
        The paper's sums, and the ``rank_disparity``, a mean over pairs; p-values are adjusted for the number of strata
        (Holm). Empty when set aside: fewer than two groups to compare, or no rows of the group that is the target.
    withheld : bool
        Whether a group that is compared has fewer than 5 rows here, so that figures are not shown.
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
    withheld: bool = False

    @property
    def n_compared(self) -> int:
        """Number of groups that are compared, unless the stratum is set aside."""
        return self.n_judged if self.n_judged >= 2 else self.n_groups


@dataclass(frozen=True, eq=False)
class WithinStrata:
    """Groups compared among people who are alike: with the same label, or in the same stratum.

    Parameters
    ----------
    strata : tuple of StratumSummary
        The labels, the strata, or the strata of each label.
    readings : dict of str to Reading
        The disparities as in `Audit.readings`, averaged over strata by weight, with groups permuted within strata.
    distances, pair_p_values : array of shape (n_groups, n_groups)
        As in `Audit`, averaged over the strata where both groups are compared; NaN where there is none.
    farthest, clearest, largest_distance
        As in `Audit`, averaged over strata.
    groups : tuple of int
        Indices of the groups that are compared in some stratum.
    judged : bool
        Whether some stratum has two groups with enough rows to be judged; all groups are compared otherwise.
    """

    strata: tuple[StratumSummary, ...]
    readings: Mapping[str, Reading]
    distances: Floats
    pair_p_values: Floats
    farthest: PairSummary
    clearest: PairSummary
    largest_distance: Estimate
    groups: tuple[int, ...]
    judged: bool

    @property
    def mean_readings(self) -> dict[str, Reading]:
        """The disparities with sums over groups, or over pairs of groups, as means."""
        return {
            name: reading.scaled(1 / sum(part.weight * n_distances(name, part.n_compared) for part in self.strata))
            for name, reading in self.readings.items()
        }

    @property
    def mean_pairwise_distance(self) -> Estimate:
        """The mean distance between two groups, corrected for bias."""
        readings = self.mean_readings
        return readings["rank_disparity" if "rank_disparity" in readings else _PAIRS].estimate

    @property
    def set_aside(self) -> tuple[StratumSummary, ...]:
        """The strata in which nothing is compared."""
        return tuple(stratum for stratum in self.strata if not stratum.metrics)


# A disparity with its interval, and the pair of groups that is farthest apart.

_PAIRS = "strong_pairwise_disparity"


def n_distances(metric: str, n_groups: int) -> int:
    """Return the number of distances that a metric of so many groups is the sum of; 1 for means and maxima."""
    if metric == _PAIRS:
        return n_groups * (n_groups - 1) // 2
    return n_groups if metric in {"wasserstein_disparity", "strong_demographic_disparity"} else 1


@dataclass(frozen=True)
class Reading:
    """A metric with its confidence interval.

    Parameters
    ----------
    value : float
        As observed.
    low, high : float
        Confidence interval. It corrects for the upward bias of small groups, so the observed value may lie above it.
    corrected : float
        The value after correction for that bias.
    margin : float
        Distribution-free bound on the error of the value (Dvoretzky-Kiefer-Wolfowitz; Hoeffding for the error rate).
    floor : float or None
        Noise floor: the mean when group membership is permuted. None for the error rate, like ``p_value``.
    p_value : float or None
        Of no difference between the groups, the same for all disparities but the distance to a fixed distribution. The
        interval includes 0 if and only if it exceeds 1 - confidence.
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

    @property
    def estimate(self) -> Estimate:
        """The corrected value with its interval."""
        return Estimate(self.corrected, self.low, self.high)

    def scaled(self, factor: float) -> Reading:
        """Return the metric in another unit, or a sum as a mean."""
        parts = ("value", "low", "high", "corrected", "margin", "resolution")
        floor = None if self.floor is None else factor * self.floor
        return replace(self, floor=floor, **{part: factor * getattr(self, part) for part in parts})


@dataclass(frozen=True)
class PairSummary:
    """The distance between two groups, and the scores at which they differ.

    Parameters
    ----------
    lower, higher : str
        Names of the groups; ``higher`` has the higher mean score.
    distance : float
        Wasserstein-1 distance as a share of the range of scores, or between ranks where scores have no known bounds.
    most_between : pair of float
        The shortest interval of scores that accounts for half of the distance.
    threshold : float
        Where the groups' selection rates differ most.
    shares_above : pair of float
        The selection rates of ``lower`` and ``higher`` there.
    p_value : float or None
        Of no difference, adjusted for the number of pairs (Holm); None for a group that is not judged.
    estimate, mean_difference : Estimate or None
        The distance, corrected for its bias and for the selection of the pair, and the mean score (or rank) of
        ``higher`` minus that of ``lower``. Only for `Audit.farthest` and `Audit.clearest`.
    score_distance : float or None
        Wasserstein-1 distance in units of the score; None where scores have known bounds.
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
    score_distance: float | None = None


# How an audit treated small groups.


@dataclass(frozen=True)
class SmallGroups:
    """The treatment of small groups in an audit."""

    policy: str = "keep"
    min_size: int = MIN_GROUP_SIZE
    pooled_groups: int = 0
    pooled_rows: int = 0
    dropped_groups: int = 0
    dropped_rows: int = 0

    def sentences(self) -> Iterator[str]:
        """Describe which groups were pooled or left out."""
        for verb, n_groups, n_rows in (
            (f"Pooled as {SMALL_GROUPS}", self.pooled_groups, self.pooled_rows),
            ("Left out", self.dropped_groups, self.dropped_rows),
        ):
            if n_groups:
                noun = "group" if n_groups == 1 else "groups"
                yield f"{verb}: {n_rows:,} rows of {n_groups} {noun} with fewer than {self.min_size} rows each"


def summarise_small_groups(policy: GroupPolicy, sizes: Any, before: Groups, after: Groups) -> SmallGroups:
    """Summarise the effect of `Groups.settle`; raise ValueError where fewer than two groups are left."""
    if len(after) < 2 <= len(before):
        raise ValueError(
            f"With small={policy.small!r} and min_size={policy.min_size}, {len(after)} group(s) of "
            f"{say_columns(before.columns)} are left of {len(before)}; at least 2 are needed. Set a smaller "
            "min_size=, or small='keep'."
        )
    rows = dict(zip(before.labels, np.asarray(sizes).tolist(), strict=True))
    pooled, dropped = ([label for label in labels if label in rows] for labels in (after.pooled, after.dropped))
    return SmallGroups(
        policy.small,
        policy.min_size,
        len(pooled),
        int(sum(rows[label] for label in pooled)),
        len(dropped),
        int(sum(rows[label] for label in dropped)),
    )


#: Levels of the quantiles that describe each group's scores.
QUANTILE_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class GroupSummary:
    """Size, scores and errors of one group.

    Parameters
    ----------
    name : str
    rows, weight, effective_rows
        Number of rows, total weight, and effective sample size (Kish).
    judged : bool
        Whether the group has enough rows to be judged.
    mean, quantiles
        Mean score, and quantiles at `QUANTILE_LEVELS`.
    distance_to_everyone : float
        Wasserstein-1 distance between the scores of the group and those of all rows.
    error, auc : Estimate or None
        Error rate at the first threshold and area under the ROC curve; None without labels, or without both of them.
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

    @property
    def withheld(self) -> bool:
        """Whether the group is so small that its figures are not shown: they would be those of single people."""
        return self.rows < MIN_SHOWN_ROWS


@dataclass(frozen=True)
class ThresholdSummary:
    """Selection rates and errors at one threshold.

    Parameters
    ----------
    threshold : float
        Scores strictly above it are selected.
    rates, overall
        Selection rate of each group, and of all rows.
    ratios : tuple of float or None
        Each group's rate of the favourable outcome (to be selected, or not to be where low scores are favourable)
        divided by the highest; None where nobody has it.
    lowest, highest : int
        Indices of the groups with the lowest and highest rate, among those that are judged (all, if fewer than two
        are).
    difference, ratio : Estimate
        The highest rate minus the lowest, and the lower rate of the favourable outcome divided by the higher. Intervals
        account for the selection of the two.
    four_fifths : bool or None
        Whether the ratio is at least 0.8; None where nobody has the favourable outcome.
    conclusive : bool
        Whether the interval of the ratio excludes 0.8.
    errors : tuple of Estimate, or None
        Error rate of each group; None without labels.
    favourable : {"high", "low"}
        Which scores are to a person's advantage.
    top_share : float or None
        The share of rows that the threshold was chosen for, if it was; ``overall`` differs where scores are tied.
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
    """The settings with which the figures of an audit were computed.

    Parameters
    ----------
    target : str
        Description of the target of the Wasserstein disparity.
    confidence, n_bootstrap, n_permutations
        As in `Inference`.
    exact : bool
        Whether metrics were computed from rows, and not from histograms with ``n_bins`` bins.
    n_bins, n_nodes : int
        Numbers of bins of the histograms, and of those that are resampled.
    range : pair of float
        Of the scores. Distances are shares of it, where ``bounded``.
    columns, strata : tuple of str
        Names of the sensitive columns, and of those of the strata.
    weighted : bool
        Whether rows have weights.
    null : {"permuted", "resampled"}
        An exact permutation test, or the distribution of all rows plus the noise of each group (with weights, or very
        many rows).
    materiality : float
        Smallest distance between two groups that matters.
    set_aside : dict of str to int
        Number of rows left out, by reason.
    small_groups : SmallGroups
        How small groups were treated; those with fewer effective rows than its ``min_size`` are not judged.
    favourable, criterion
        As in `fairtransport.audit`.
    bounded : bool
        Whether scores have known bounds. If not, distances are in units of the score, and the verdict refers to ranks.
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
        """Name of the disparity between pairs of groups that the verdict refers to."""
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
    distances: Floats
    pair_p_values: Floats
    farthest: PairSummary
    clearest: PairSummary
    largest_distance: Estimate
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
    rank_distances: Floats | None = None
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
        """The observed values: ``error_rate`` (with labels of classes) and the disparities.

        ``rank_disparity`` is a mean over pairs of groups; the paper's disparities are sums.
        """
        return {name: reading.value for name, reading in self.readings.items()}

    @property
    def mean_readings(self) -> dict[str, Reading]:
        """The metrics with sums over groups, or over pairs of groups, as means: what text and pages show."""
        n_groups = len(compared_groups(self))
        return {name: reading.scaled(1 / n_distances(name, n_groups)) for name, reading in self.readings.items()}

    @property
    def mean_pairwise_distance(self) -> Estimate:
        """The mean distance between two groups, corrected for bias.

        Of scores without known bounds, the distance between ranks.
        """
        return self.mean_readings[self.settings.pairs_metric].estimate

    @property
    def distinct_scores(self) -> int:
        """Number of different scores, at the resolution of the histograms."""
        return int(np.count_nonzero(self.histograms.everyone))

    @property
    def rows(self) -> int:
        """Number of rows audited."""
        return int(self.histograms.rows.sum())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the groups."""
        return tuple(group.name for group in self.groups)

    @property
    def not_judged(self) -> tuple[str, ...]:
        """Names of the groups that have too few rows to be judged."""
        return tuple(group.name for group in self.groups if not group.judged)


def compared_groups(audit: AuditData) -> tuple[int, ...]:
    """Return the indices of the groups that the disparities refer to: those that are judged, or all."""
    judged = tuple(index for index, group in enumerate(audit.groups) if group.judged)
    return judged if len(judged) >= 2 else tuple(range(len(audit.groups)))


# Scores, thresholds and distances in words: shares of a known range, or units of scores without known bounds.

_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?")
_LARGEST = "kolmogorov_smirnov_disparity"


def scores_word(audit: AuditData, *, plural: bool = True) -> str:
    """Return what the scores are: ``"predictions"`` of a regression, or ``"scores"``."""
    return ("prediction" if audit.settings.task == "regression" else "score") + ("s" if plural else "")


def group_text(audit: AuditData, name: str, width: int = 40) -> str:
    """Return the name of a group for use in a sentence: ``"sex 1"`` where it is a bare number."""
    text = isolated(name, width, audit.names)
    columns = audit.settings.columns
    if len(columns) != 1 or not _NUMBER.fullmatch(name):
        return text
    return f"{'group' if columns == default_names(1) else shorten(columns[0], width)} {text}"


def cut_text(audit: AuditData, threshold: float) -> str:
    """Format a threshold."""
    return f"{threshold:g}" if audit.settings.bounded else number_text(threshold)


def distance_text(audit: AuditData, distance: float, metric: str = _PAIRS) -> str:
    """Format a disparity: a share with three decimals, or a number in units of the score."""
    in_units = not audit.settings.bounded and metric.startswith(("strong_", "wasserstein_"))
    return score_text(distance) if in_units else three_digits(distance)


def threshold_text(audit: AuditData, at: ThresholdSummary) -> str:
    """Return where rows are selected, at the beginning of a sentence: ``"Above 0.5"``."""
    cut = cut_text(audit, at.threshold)
    if at.top_share is None:
        return f"Above {cut}"
    return f"In the {_top_text(at)} of {scores_word(audit)} (above {cut})"


def threshold_heading(audit: AuditData, at: ThresholdSummary) -> str:
    """Return a short name of a threshold: ``"above 0.5"``, ``"top 10%"``."""
    return f"above {cut_text(audit, at.threshold)}" if at.top_share is None else _top_text(at)


def _top_text(at: ThresholdSummary) -> str:
    share = at.top_share if math.isnan(at.overall) else at.overall
    return f"top {100 * (share or 0.0):.3g}%"


def unit_points(audit: AuditData) -> Iterator[str]:
    """Yield the distance in units of the score and the largest difference of selection rates, without known bounds."""
    within = audit.within
    readings, pair = (audit.readings, audit.clearest) if within is None else (within.readings, within.clearest)
    if audit.settings.bounded or pair.score_distance is None or math.isnan(pair.score_distance):
        return
    unit = "the label" if audit.regression is not None else f"the {scores_word(audit, plural=False)}"
    size = score_text(pair.score_distance)
    deviation = 0.0 if audit.regression is None else audit.regression.label_deviation
    if deviation > 0:
        size += f", {score_text(pair.score_distance / deviation)} standard deviations of the label"
    n_judged = sum(group.judged for group in audit.groups)
    pairs = readings.get(_PAIRS)
    interval = ""
    if n_judged == 2 and pairs is not None:
        limits = interval_text(pairs.low, pairs.high, score_text)
        interval = f" ({audit.settings.confidence:.0%} interval {limits})"
    yield f"In units of {unit}, the distance between these two is {size}{interval}."
    largest = readings.get(_LARGEST)
    if largest is not None and within is None and n_judged == 2:
        yield (
            f"Their shares above a threshold differ most above {number_text(pair.threshold)}: by "
            f"{percent(largest.value).removesuffix('%')} percentage points (Kolmogorov-Smirnov)."
        )


def points_text(value: float) -> str:
    """Format a share as percentage points: one decimal, or two significant digits for small positive values."""
    points = min(100.0, 100 * value)
    if points <= 0 or points >= 0.05:
        return f"{points:.1f}"
    return f"{points:.2f}" if points >= 0.005 else "<0.01"


def four_fifths_text(summary: ThresholdSummary) -> str:
    """Return how the ratio of selection rates compares with four fifths."""
    if summary.four_fifths is None:
        return "nobody is selected" if summary.favourable == "high" else "everyone is flagged"
    if not summary.conclusive:
        return "not certainly above or below four fifths"
    return "at least four fifths" if summary.four_fifths else "below four fifths"


# Decisions at a threshold, by label, and the rates that are shares of them.

# Cells of the table of decisions: (label, whether selected).
_TN, _FP, _FN, _TP = (0, 0), (0, 1), (1, 0), (1, 1)

_CELLS = {
    "selection_rate": ((_FP, _TP), (_TN, _FN)),
    "true_positive_rate": ((_TP,), (_FN,)),
    "false_positive_rate": ((_FP,), (_TN,)),
    "false_negative_rate": ((_FN,), (_TP,)),
    "positive_predictive_value": ((_TP,), (_FP,)),
    "negative_predictive_value": ((_TN,), (_FN,)),
    "accuracy": ((_TN, _TP), (_FP, _FN)),
    "error_rate": ((_FP, _FN), (_TN, _TP)),
}

#: Names of the rates.
RATES = tuple(_CELLS)


@dataclass(frozen=True, eq=False)
class Decisions:
    """The weight of the rows with each label and decision."""

    weights: Floats
    squares: Floats

    def tally(self, rate: str) -> Tally:
        """Return the weight that a rate counts, and the rest of its denominator."""
        if len(self.weights) == 1:
            if rate != "selection_rate":
                raise ValueError("The audit has no labels.")
            (outside, inside), (outside_squares, inside_squares) = self.weights[0], self.squares[0]
            return Tally(float(inside), float(outside), float(inside_squares), float(outside_squares))
        inside_cells, outside_cells = _CELLS[rate]
        sums = (
            sum(float(table[cell]) for cell in cells)
            for table in (self.weights, self.squares)
            for cells in (inside_cells, outside_cells)
        )
        return Tally(*sums)


# Three readings of the same selection rates: the four-fifths rule, statistical and practical significance.

_NORMAL = NormalDist()


@dataclass(frozen=True)
class RateComparison:
    """The rate of the favourable outcome in one group, compared with the group that has it most often.

    Parameters
    ----------
    threshold : float
    group, reference : str
        Names of the group, and of the one with the highest rate.
    rate, ratio, difference : Estimate
        Rate of the favourable outcome, divided by that of the reference, and subtracted from it. The last two include 1
        and 0 if and only if the difference is not ``significant``.
    four_fifths : bool
        Whether the ratio is at least 0.8 (Uniform Guidelines on Employee Selection Procedures, 1978).
    p_value : float
        Two-sided, of equal rates; adjusted for the number of groups by Holm's method.
    significant, material : bool
        Whether ``p_value`` is at most 1 - confidence, and ``difference`` at least the materiality of the audit.
    """

    threshold: float
    group: str
    reference: str
    rate: Estimate
    ratio: Estimate
    four_fifths: bool
    difference: Estimate
    p_value: float
    significant: bool
    material: bool


def compare_rates(audit: AuditData) -> tuple[RateComparison, ...]:
    """Compare the rates of the groups that are judged with the highest, at each threshold.

    Examples
    --------
    >>> import numpy as np
    >>> import fairtransport as ft
    >>> scores = np.r_[np.linspace(0, 1, 500), np.linspace(0, 1, 500) ** 2]
    >>> audit = ft.audit(scores, sensitive_features=np.repeat(["a", "b"], 500))
    >>> comparison, = compare_rates(audit)
    >>> comparison.group, comparison.four_fifths, comparison.significant, comparison.material
    ('b', False, True, True)
    """
    return tuple(row for at in audit.thresholds for row in _compare_at(audit, at))


def _compare_at(audit: AuditData, at: ThresholdSummary) -> list[RateComparison]:
    rates = at.rates if at.favourable == "high" else tuple(map(complement, at.rates))
    best = at.better_off
    if at.four_fifths is None or math.isnan(rates[best].value):
        return []
    judged = [index for index, group in enumerate(audit.groups) if group.judged and index != best]
    alpha, rows = 1 - audit.settings.confidence, []
    for index in judged:
        gap = difference(rates[best], rates[index])
        rate_ratio = ratio(rates[index], rates[best])
        p_value = _test(rates[best], audit.groups[best], rates[index], audit.groups[index])
        rows.append(
            RateComparison(
                at.threshold,
                audit.groups[index].name,
                audit.groups[best].name,
                rates[index],
                rate_ratio,
                bool(rate_ratio.value >= 0.8),
                gap,
                p_value,
                significant=False,
                material=bool(gap.value >= audit.settings.materiality),
            )
        )
    adjusted = holm(np.array([row.p_value for row in rows]))
    return [
        replace(
            row,
            p_value=float(p_value),
            significant=bool(p_value <= alpha),
            difference=agreeing(row.difference, 0.0, rejected=p_value <= alpha),
            ratio=agreeing(row.ratio, 1.0, rejected=p_value <= alpha),
        )
        for row, p_value in zip(rows, adjusted, strict=True)
    ]


def _test(one: Estimate, first: GroupSummary, other: Estimate, second: GroupSummary) -> float:
    """Return the p-value of the test of two proportions with a pooled variance, for effective sample sizes."""
    sizes = first.effective_rows, second.effective_rows
    pooled = (one.value * sizes[0] + other.value * sizes[1]) / sum(sizes)
    variance = pooled * (1 - pooled) * (1 / sizes[0] + 1 / sizes[1])
    if variance <= 0:
        return 1.0
    return 2 * (1 - _NORMAL.cdf(abs(one.value - other.value) / math.sqrt(variance)))
