"""``audit`` and ``audit_histograms``: rows or histograms -> Audit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._columns import read_columns, say_columns
from fairtransport._labels import TASKS, infer_task, is_positive
from fairtransport._validation import check_choice, check_vector, check_weights
from fairtransport.auditing._estimation import AlikeRows, compare_within, estimate_audit
from fairtransport.auditing._evidence import HistogramEvidence, RankScale, RowEvidence, with_label
from fairtransport.auditing.errors.regression import moments_of_rows, moments_of_sums
from fairtransport.auditing.options import MATERIALITY, check_options, place_thresholds
from fairtransport.auditing.records import summarise_small_groups
from fairtransport.criteria import needs_labels
from fairtransport.groups import read_groups
from fairtransport.histograms import DEFAULT_BINS, Grid, count_entries
from fairtransport.metrics import pooled_ranks
from fairtransport.strata import Strata, make_strata
from fairtransport.tables.table_counts import decile_edges

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.auditing.errors.regression import ResidualMoments
    from fairtransport.auditing.options import Options
    from fairtransport.auditing.result import Audit
    from fairtransport.groups import GroupPolicy, Groups
    from fairtransport.histograms import GroupHistograms
    from fairtransport.tables.table_counts import ResidualSums, TableCounts

# The validated rows of an audit.

# Probabilities that are rounded to single precision may lie slightly outside [0, 1].
_ROUNDING = 1e-6


def choose_grid(values: NDArray[np.float64], n_bins: int, options: Options, *, is_regression: bool) -> Grid:
    """Return the grid of scores whose range is not given: [0, 1] where they lie within, or nodes of their own."""
    within = bool(np.all((values >= -_ROUNDING) & (values <= 1 + _ROUNDING)))
    if within and not is_regression:
        return Grid(n_bins=n_bins)
    return Grid.covering(values, n_bins, extra=[each for each in options.requested if isinstance(each, float)])


def labels_of(criterion: str) -> tuple[int | None, ...]:
    """Return the labels within which a criterion compares rows."""
    return {"equalized_odds": (0, 1), "equal_opportunity": (1,)}.get(criterion, (None,))


@dataclass(frozen=True, eq=False)
class Rows:
    """The validated rows of an audit."""

    grid: Grid
    scores: NDArray[np.float64]
    positive: NDArray[np.bool_] | None
    labels: NDArray[np.float64] | None
    weights: NDArray[np.float64] | None
    groups: Groups
    strata: Strata | None
    rank_scale: RankScale | None = None
    ranks: NDArray[np.float64] | None = None

    def select(self, rows: NDArray[np.int64]) -> Rows:
        """Return some of the rows."""
        return replace(
            self,
            scores=self.scores[rows],
            positive=None if self.positive is None else self.positive[rows],
            labels=None if self.labels is None else self.labels[rows],
            weights=None if self.weights is None else self.weights[rows],
            groups=self.groups.select(rows),
            strata=None if self.strata is None else self.strata.select(rows),
            ranks=None if self.ranks is None else self.ranks[rows],
        )

    def with_ranks(self) -> Rows:
        """Return the rows with their ranks, where scores have no known bounds."""
        if not self.grid.positions:
            return self
        scale = RankScale.of(self._histograms())
        return replace(self, rank_scale=scale, ranks=pooled_ranks(self.scores, self.weights))

    def alike(self, criterion: str) -> Iterator[AlikeRows]:
        """Yield the rows that a criterion compares groups in, by label and stratum; those without rows are left out."""
        unlabelled = replace(self, positive=None, strata=None)
        names: Sequence[str | None] = [None] if self.strata is None else self.strata.names
        for number, name in enumerate(names):
            inside = np.ones(self.scores.size, np.bool_) if self.strata is None else self.strata.codes == number
            for label in labels_of(criterion) if self.labels is None else (None,):
                matches = inside if label is None or self.positive is None else inside & (self.positive == bool(label))
                rows = np.flatnonzero(matches)
                if rows.size:
                    yield AlikeRows(label, name, unlabelled.select(rows).evidence())

    def evidence(self) -> RowEvidence:
        """Return the rows as evidence, with their histograms."""
        return RowEvidence(
            self._histograms(),
            self.grid.to_unit(self.scores),
            self.positive,
            self.weights,
            self.groups,
            self.rank_scale,
            self.ranks,
        )

    def residuals(self, histograms: GroupHistograms) -> ResidualMoments | None:
        """Return the sums of residuals by group and decile of the prediction; None without real-valued labels."""
        if self.labels is None:
            return None
        return moments_of_rows(self.labels, self.scores, self.weights, self.groups, decile_edges(histograms))

    def _histograms(self) -> GroupHistograms:
        weights = self.weights
        return count_entries(
            self.grid,
            self.groups,
            nodes=self.grid.place_checked(self.scores),
            masses=np.ones(self.scores.size) if weights is None else weights,
            squares=None if weights is None else weights**2,
            rows=None if weights is None else np.ones(self.scores.size),
            labels=self.positive,
        )


#: Name of the ranges of real-valued labels, as strata.
LABEL_COLUMN = "label"


def audit(
    scores: ArrayLike,
    y_true: ArrayLike | None = None,
    *,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
    thresholds: ArrayLike | None = None,
    criterion: str = "demographic_parity",
    strata: Any = None,
    target: Any = "barycenter",
    confidence: float = 0.95,
    n_bootstrap: int = 1000,
    n_permutations: int = 1000,
    random_state: int | np.random.Generator | None = None,
    range: Sequence[float] | None = None,  # noqa: A002 - the name that numpy.histogram has
    n_bins: int = DEFAULT_BINS,
    groups: GroupPolicy | None = None,
    materiality: float = MATERIALITY,
    task: str | None = None,
    pos_label: Any = None,
    favourable: str = "high",
    reference: Any = None,
) -> Audit:
    r"""Measure the differences between groups' scores, with confidence intervals.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores: probabilities, or any other real numbers, such as decile scores, logits or predictions of a regression.
    y_true : array-like of shape (n,), optional
        Labels: two classes, or real numbers. With classes, the audit includes error rates and areas under the ROC
        curve; with real numbers, errors such as the root mean squared error of each group's predictions.
    sensitive_features : column, table or Groups
        At least two groups; several columns are crossed.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows; equal when omitted.
    thresholds : float, str or list, optional
        Scores strictly above a threshold are selected; ``"top 10%"`` selects a share of all rows. By default the
        midpoint of the range, 0.5, or the top 10, 25 and 50% where scores have no known bounds. Error rates of groups
        refer to the first threshold.
    criterion : {"demographic_parity", "equalized_odds", "equal_opportunity"}, default "demographic_parity"
        What the verdict and the figures in ``within`` are about: all people, people with the same label, or people with
        the positive label. The last two need ``y_true``; real-valued labels are cut at quantiles and have no positive
        one. The disparities among all people are in every audit.
    strata : column, table or Strata, optional
        A legitimate ground for differences, such as a region: people are compared only within strata (conditional
        parity), as in `fairtransport.strata.make_strata`. Several columns are crossed, columns with many different
        numbers are cut at quantiles, and missing values form a stratum.
    target : str, label, array-like or Sample, default "barycenter"
        Target of the Wasserstein disparity; see `fairtransport.metrics.wasserstein_disparity`.
    confidence : float, default 0.95
        Confidence level of all intervals.
    n_bootstrap, n_permutations : int, default 1000
        Bootstrap replicates for the intervals, and permutations for noise floors and p-values; at least 20. The cost
        does not depend on the number of rows.
    random_state : int, Generator or None
        Seed of the bootstrap and of the permutations.
    range : pair of float, optional
        Lowest and highest possible score; distances are shares of this range. When omitted, it is [0, 1] for scores
        within it. Other scores, and predictions of a regression, have no known bounds: see Notes.
    n_bins : int, default 16384
        Number of bins of the histograms that the audit keeps and resamples.
    groups : GroupPolicy, optional
        How sensitive columns become groups, and what becomes of small ones; ``settings.small_groups`` has the numbers.
        Groups with an effective sample size below its ``min_size`` are shown, but not judged: neither the verdict nor
        the disparities depend on them. Where fewer than two groups are left, the figures refer to all groups and the
        verdict says so.
    materiality : float, default 0.02
        Smallest distance between two groups that matters: 0.02 is 2 percentage points of selection rates, averaged over
        all thresholds or, where scores have no known bounds, over all shares of people selected. The verdict separates
        differences that are established from those that also matter.
    task : {"classification", "regression"}, optional
        Whether labels are classes or real numbers. By default it is recognised: two different labels are classes,
        fractions and many whole numbers are real; for a few whole numbers the task must be given.
    pos_label : label, optional
        The positive class, where labels are not 0 and 1.
    favourable : {"high", "low"}, default "high"
        Which scores are to a person's advantage. With ``"low"``, as for a risk of default, those above a threshold are
        flagged rather than selected, and the four-fifths rule compares the shares that are not flagged.
    reference : label, optional
        Label or name of the group that the others' error rates are compared with; by default the largest group.

    Returns
    -------
    Audit

    See Also
    --------
    fairtransport.audit_table : Audit a table on any engine, from histograms.
    fairtransport.compare : Compare two audits of the same groups.
    fairtransport.metrics.disparities : The metrics alone.

    Notes
    -----
    Metrics, quantiles, rates and areas are exact. Resampling uses histograms with at most 128 bins.

    - *Intervals of disparities* are obtained by inversion of the bootstrap and correct for the upward bias of small
      groups. In simulations with 2 and 6 groups and 200 and 20,000 rows, 95% intervals have a coverage of 92% to 98%,
      more for differences far below the noise; without any difference they include 0 in at least 97.5% of cases.
    - *Noise floors and p-values* are those of an exact permutation test of group membership. With weights, groups are
      instead redrawn from the distribution of all rows with their effective sample sizes, which is approximate.
    - *Intervals of rates* are Wilson's; those of ratios and differences of rates are Donner and Zou's and Newcombe's;
      those of areas under the ROC curve use DeLong's variance.
    - *Weights* enter each variance through the sums of their squares.

    Scores without known bounds are compared by their *ranks* among all rows: the verdict, its p-value and the p-values
    of pairs refer to the rank disparity, the difference between two groups' selection rates averaged over all shares of
    people selected, which needs no scale and does not depend on a few extreme scores. Wasserstein distances are
    reported in units of the score, and the Kolmogorov-Smirnov disparity, the largest difference between two groups'
    selection rates at any threshold, beside them; its noise floor, on 128 bins, is about a tenth too low for many
    different scores. The audit of ``1000 * scores + 5`` has the same verdict.

    References
    ----------
    Chiappa and Pacchiano (2021), "Fairness with Continuous Optimal Transport", Section "Results": the three
    disparities.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> group = np.repeat(["a", "b"], 500)
    >>> scores = np.where(group == "a", rng.beta(2, 4, 1000), rng.beta(3, 4, 1000))
    >>> result = audit(scores, sensitive_features=group, random_state=0)
    >>> result
    Audit(1000 rows in 2 groups, pairwise disparity 0.091, 0.0... to 0.11...)
    >>> result.readings["strong_pairwise_disparity"].p_value
    0.000999000999000999
    >>> result.thresholds[0].four_fifths
    False
    """
    given = None if range is None else Grid.over(range, n_bins)
    options = check_options(
        given,
        target=target,
        thresholds=thresholds,
        confidence=confidence,
        n_bootstrap=n_bootstrap,
        n_permutations=n_permutations,
        materiality=materiality,
        groups=groups,
        favourable=favourable,
        reference=reference,
        criterion=criterion,
    )
    values = check_vector(scores, name="scores") if given is None else given.check(scores)
    made = read_groups(sensitive_features, options.groups, at_least=2)
    if made.n_rows != values.size:
        raise ValueError(f"scores has {values.size} rows, but sensitive_features has {made.n_rows}.")
    weights = check_weights(sample_weight, size=values.size)
    positive, labels = _read_labels(y_true, task, pos_label, size=values.size)
    check_criterion(criterion, has_labels=y_true is not None, is_regression=labels is not None)
    grid = given or choose_grid(values, n_bins, options, is_regression=labels is not None)
    layers = _make_layers(strata, labels if needs_labels(criterion) else None, len(made))
    if layers is not None and layers.n_rows != values.size:
        raise ValueError(f"strata has {layers.n_rows} rows, but scores has {values.size}.")
    sizes = made.counts if weights is None else made.select(weights > 0).counts
    settled = made.settle(options.groups.small, options.groups.min_size, sizes)
    summary = summarise_small_groups(options.groups, made.counts, made, settled)
    rows = Rows(grid, grid.check(np.clip(values, grid.low, grid.high)), positive, labels, weights, settled, layers)
    inside = np.any([codes < len(settled) for codes in settled.memberships], axis=0)
    n_aside = int(np.count_nonzero(~np.any([codes < len(made) for codes in made.memberships], axis=0)))
    if not inside.all():
        rows = rows.select(np.flatnonzero(inside))
    rows = rows.with_ranks()
    rng = np.random.default_rng(random_state)
    evidence = rows.evidence()
    _check_weighted(evidence.histograms)
    options = place_thresholds(options, evidence.histograms)
    within = None
    if layers is not None or needs_labels(criterion):
        whole = evidence if grid.positions else None
        within = compare_within(rows.alike(criterion), settled.labels, options, rng, whole=whole)
    columns = () if strata is None or layers is None else tuple(c for c in layers.columns if c != LABEL_COLUMN)
    result = estimate_audit(
        evidence,
        options,
        rng,
        within=within,
        strata=columns,
        set_aside={"no group": n_aside} if n_aside else None,
        small_groups=summary,
        residuals=rows.residuals(evidence.histograms),
    )
    cuts = {} if layers is None else dict(zip(layers.columns, layers.cuts, strict=True))
    points = {name: tuple(each.tolist()) for name, each in cuts.items() if each is not None}
    return result.with_provenance(strata_cuts=points) if points else result


def _read_labels(
    y_true: ArrayLike | None, task: str | None, pos_label: Any, *, size: int
) -> tuple[NDArray[np.bool_] | None, NDArray[np.float64] | None]:
    """Return which rows have the positive label, or the labels where they are real numbers."""
    if task is not None:
        check_choice(task, TASKS, name="task")
    if y_true is None:
        return None, None
    if (task or ("classification" if pos_label is not None else infer_task(y_true))) == "classification":
        return is_positive(y_true, pos_label, size=size), None
    labels = check_vector(y_true, name="y_true")
    if labels.size != size:
        raise ValueError(f"y_true has {labels.size} rows, but scores has {size}.")
    return None, labels


def _make_layers(strata: Any, labels: NDArray[np.float64] | None, n_groups: int) -> Strata | None:
    """Return the strata, crossed with ranges of real-valued labels where these are compared within."""
    if labels is None:
        return None if strata is None else make_strata(strata, n_groups=n_groups)
    if strata is None:
        return make_strata({LABEL_COLUMN: labels}, n_groups=n_groups)
    if isinstance(strata, Strata):
        raise TypeError("With real-valued labels and criterion='equalized_odds', strata must be columns.")
    return make_strata({LABEL_COLUMN: labels, **read_columns(strata)}, n_groups=n_groups)


def audit_histograms(
    histograms: GroupHistograms,
    *,
    strata: Mapping[str, GroupHistograms] | None = None,
    strata_columns: Sequence[str] = (),
    thresholds: ArrayLike | None = None,
    criterion: str = "demographic_parity",
    target: Any = "barycenter",
    confidence: float = 0.95,
    n_bootstrap: int = 1000,
    n_permutations: int = 1000,
    random_state: int | np.random.Generator | None = None,
    groups: GroupPolicy | None = None,
    materiality: float = MATERIALITY,
    favourable: str = "high",
    reference: Any = None,
    set_aside: Mapping[str, int] | None = None,
    residuals: ResidualSums | None = None,
) -> Audit:
    """Audit histograms of scores."""
    options = check_options(
        None if histograms.grid.positions else histograms.grid,
        target=target,
        thresholds=thresholds,
        confidence=confidence,
        n_bootstrap=n_bootstrap,
        n_permutations=n_permutations,
        materiality=materiality,
        groups=groups,
        favourable=favourable,
        reference=reference,
        criterion=criterion,
    )
    is_regression = residuals is not None
    check_criterion(criterion, has_labels=histograms.has_labels or is_regression, is_regression=is_regression)
    present = histograms.filled()
    if len(present.groups) < 2:
        raise ValueError(f"{histograms!r} has rows in {len(present.groups)} group(s); at least 2 are needed.")
    settled = present.settle(options.groups.small, options.groups.min_size)
    summary = summarise_small_groups(options.groups, present.group_rows, present.groups, settled.groups)
    rng = np.random.default_rng(random_state)
    scale = RankScale.of(settled) if settled.grid.positions else None
    evidence = HistogramEvidence(settled, scale)
    options = place_thresholds(options, settled)
    within = None
    if strata or needs_labels(criterion):
        rows = _alike_histograms(settled, strata, criterion, scale)
        within = compare_within(rows, settled.groups.labels, options, rng, whole=None if scale is None else evidence)
    by_labels = is_regression and needs_labels(criterion)
    columns = tuple(strata_columns) or (("strata",) if strata and not by_labels else ())
    return estimate_audit(
        evidence,
        options,
        rng,
        within=within,
        strata=columns,
        set_aside=set_aside,
        small_groups=summary,
        residuals=None if residuals is None else moments_of_sums(residuals, settled.groups),
    )


def check_criterion(criterion: str, *, has_labels: bool, is_regression: bool) -> None:
    """Raise where the labels do not allow a criterion."""
    if needs_labels(criterion) and not has_labels:
        raise ValueError(f"criterion={criterion!r} compares people with the same label, so it needs labels.")
    if is_regression and criterion == "equal_opportunity":
        raise ValueError(
            "criterion='equal_opportunity' compares people with the positive label, and real-valued labels have none; "
            "criterion='equalized_odds' compares people with similar labels."
        )


def _alike_histograms(
    histograms: GroupHistograms,
    strata: Mapping[str, GroupHistograms] | None,
    criterion: str,
    scale: RankScale | None,
) -> Iterator[AlikeRows]:
    """Yield the histograms that a criterion compares groups in, by label and stratum, where they have rows."""
    regrouped: Iterable[tuple[str | None, GroupHistograms]] = [(None, histograms)]
    if strata:
        regrouped = ((name, part.regroup(histograms.groups)) for name, part in strata.items())
    for name, part in regrouped:
        for label in labels_of(criterion) if part.has_labels else (None,):
            rows = part if label is None else with_label(part, label)
            if rows.everyone.any():
                yield AlikeRows(label, name, HistogramEvidence(rows.filled(), scale))


def _check_weighted(histograms: GroupHistograms) -> None:
    n_empty = int(np.count_nonzero(~(histograms.weights > 0)))
    if n_empty:
        raise ValueError(f"sample_weight is zero in all rows of {n_empty} of {len(histograms.groups)} groups.")


def audit_counts(counts: TableCounts, **options: Any) -> Audit:
    """Audit the histograms that `fairtransport.tables.count_table` returns: the second half of `audit_table`."""
    _check_groups(counts)
    audit = audit_histograms(
        counts.histograms,
        strata=counts.strata,
        strata_columns=counts.strata_columns,
        set_aside=counts.set_aside,
        residuals=counts.residuals,
        **options,
    )
    return audit.with_provenance(strata_cuts=counts.cuts) if counts.cuts else audit


def _check_groups(counts: TableCounts) -> None:
    groups = counts.histograms.groups
    if len(groups) < 2:
        aside = "".join(f"; {n_rows} rows are set aside: {reason}" for reason, n_rows in counts.set_aside.items())
        raise ValueError(
            f"The rows fall into {len(groups)} group(s) of {say_columns(groups.columns)}; at least 2 are needed{aside}."
        )
    n_empty = int(np.count_nonzero(~(counts.histograms.weights > 0)))
    if n_empty:
        raise ValueError(f"Column {counts.weight!r} is zero in all rows of {n_empty} of {len(groups)} groups.")
