"""``audit``: rows or histograms -> Audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_length, check_weights
from fairtransport.auditing._conditional_disparities import read_strata
from fairtransport.auditing._estimation import assemble
from fairtransport.auditing._evidence import CountedEvidence, RowEvidence
from fairtransport.auditing._small_groups import summarise_small_groups
from fairtransport.auditing.options import check_options
from fairtransport.groups import MIN_GROUP_SIZE, make_groups
from fairtransport.histograms import DEFAULT_BINS, Grid, count_scores

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.auditing._evidence import Evidence
    from fairtransport.auditing.result import Audit
    from fairtransport.groups import Groups
    from fairtransport.histograms import GroupHistograms

__all__ = ["audit", "audit_histograms"]


def audit(
    scores: ArrayLike,
    y_true: ArrayLike | None = None,
    *,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
    thresholds: ArrayLike | None = None,
    strata: Any = None,
    target: Any = "barycenter",
    confidence: float = 0.95,
    n_bootstrap: int = 1000,
    n_permutations: int = 1000,
    random_state: int | np.random.Generator | None = None,
    range: Sequence[float] | None = None,  # noqa: A002 - the name that numpy.histogram has
    n_bins: int = DEFAULT_BINS,
    grouping: str = "crossed",
    missing: str = "error",
    max_groups: int = 200,
    unsure_below: int = 30,
    small_groups: str = "keep",
    min_group_size: int = MIN_GROUP_SIZE,
    pos_label: Any = None,
) -> Audit:
    r"""Say how far apart the groups' scores are, for whom, where, and how sure that is.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores within [0, 1], or within ``range``.
    y_true : array-like of shape (n,), optional
        Labels 0 and 1 (False and True); any two with ``pos_label``. With them the audit has errors and areas under the
        ROC curve.
    sensitive_features : column, table or Groups
        At least two groups; several columns are crossed.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows; equal when omitted.
    thresholds : float or array-like, optional
        Scores strictly above are selected. By default the middle of the range: 0.5. Errors by group are those at
        the first threshold.
    strata : column, table or Groups, optional
        Something that may count, such as a region: the disparities are measured within each stratum as well.
    target : str, label, array-like or Sample, default "barycenter"
        What the Wasserstein disparity is measured to; see `fairtransport.metrics.wasserstein_disparity`.
    confidence : float, default 0.95
        Of every interval.
    n_bootstrap, n_permutations : int, default 1000
        Replicates for the intervals, and shuffles for the noise floor and p-values; at least 20. The cost does not grow
        with the number of rows.
    random_state : int, Generator or None
        Seed of both.
    range : pair of float, optional
        Lowest and highest score that there may be; [0, 1] when omitted. Distances are shares of this range.
    n_bins : int, default 16384
        Of the histograms that the audit keeps, and that noise is drawn from.
    grouping, missing
        How groups are made; see `fairtransport.make_groups`.
    max_groups : int, default 200
        More groups, or strata, are refused: they are the mark of an identifier.
    unsure_below : int, default 30
        Groups with fewer (effective) rows are marked unsure, and not judged at thresholds.
    small_groups : {"keep", "pool", "drop"}, default "keep"
        What to do with groups of fewer than ``min_group_size`` rows: keep them as they are, pool them into one group
        called "(small groups)", or leave their rows out. ``settings.small_groups`` says how many there were.
    min_group_size : int, default 30
        Groups with fewer rows (of positive weight) are small. A full repair on the audit's page gives them no map of
        their own, as in `fairtransport.QuantileRepair`.
    pos_label : label, optional
        The positive class, where labels are not 0 and 1.

    Returns
    -------
    Audit

    Notes
    -----
    Metrics, quantiles, rates and areas are exact: they are read from the rows. How sure they are is drawn from
    histograms thinned to at most 128 nodes.

    - *Intervals of disparities* hold the truths under which such a reading would not be unusual; the upward bias of
      small groups is taken into account (the module of the intervals has the method). In simulations with
      2 and 6 groups and 200 and 20,000 rows, 95% intervals cover 92% to 98% of the truths; for differences far below
      the noise they cover more, and without any difference they reach 0 at least 97.5% of the time.
    - *Noise floor and p-value* come from shuffling group membership: an exact permutation test. With weights, groups
      are drawn anew from everyone's distribution with their effective numbers of rows, which is approximate.
    - *Intervals of shares* are Wilson's; of ratios and differences of shares, what these imply; of areas under the ROC
      curve, DeLong's variance.
    - *Weights* enter each variance by the sums of their squares.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> group = np.repeat(["a", "b"], 500)
    >>> scores = np.where(group == "a", rng.beta(2, 4, 1000), rng.beta(3, 4, 1000))
    >>> found = audit(scores, sensitive_features=group, random_state=0)
    >>> found
    Audit(1000 rows in 2 groups, pairwise disparity 0.091, 0.0... to 0.11...)
    >>> found.readings["strong_pairwise_disparity"].p_value
    0.000999000999000999
    >>> found.thresholds[0].four_fifths
    False
    """
    grid = Grid.over(range, n_bins)
    options = check_options(
        grid,
        target=target,
        thresholds=thresholds,
        confidence=confidence,
        n_bootstrap=n_bootstrap,
        n_permutations=n_permutations,
        unsure_below=unsure_below,
        small_groups=small_groups,
        min_group_size=min_group_size,
    )
    values = grid.check(scores)
    groups = make_groups(sensitive_features, grouping=grouping, missing=missing, at_least=2, max_groups=max_groups)
    if groups.n_rows != values.size:
        raise ValueError(f"scores has {values.size} rows, but sensitive_features has {groups.n_rows}.")
    weights = check_weights(sample_weight, size=values.size)
    positive = None if y_true is None else _positive(y_true, pos_label, size=values.size)
    layers = None
    if strata is not None:
        layers = _make_strata(strata, size=values.size, missing=missing, max_groups=max_groups)
    sizes = groups.counts if weights is None else groups.select(weights > 0).counts
    settled = groups.settle(small_groups, min_group_size, sizes)
    summary = summarise_small_groups(small_groups, min_group_size, groups.counts, groups, settled)
    groups = settled
    if groups.dropped:
        kept = np.any([codes < len(groups) for codes in groups.memberships], axis=0)
        values, groups = values[kept], groups.select(kept)
        weights = None if weights is None else weights[kept]
        positive = None if positive is None else positive[kept]
        layers = None if layers is None else layers.select(kept)
    rng = np.random.default_rng(random_state)

    def evidence(rows: NDArray[np.int64] | None = None, *, labelled: bool = True) -> RowEvidence:
        at: Any = slice(None) if rows is None else rows
        here = groups if rows is None else groups.select(rows)
        labels = positive[at] if positive is not None and labelled else None
        held = None if weights is None else weights[at]
        counted = count_scores(
            values[at],
            labels,
            sensitive_features=here,
            sample_weight=held,
            range=(grid.low, grid.high),
            n_bins=grid.n_bins,
        )
        return RowEvidence(counted, grid.to_unit(values[at]), labels, held, here)

    whole = evidence()
    _check_weighted(whole.histograms)
    found: Any = ((), {})
    if layers is not None:
        filled = [(name, rows) for name, rows in zip(layers.names, layers.rows, strict=True) if rows.size]
        parts: Iterator[tuple[str, Evidence]] = ((name, evidence(rows, labelled=False)) for name, rows in filled)
        found = read_strata(parts, len(filled), options, rng)
    return assemble(whole, options, rng, strata=found, small_groups=summary)


def audit_histograms(
    histograms: GroupHistograms,
    *,
    strata: Mapping[str, GroupHistograms] | None = None,
    thresholds: ArrayLike | None = None,
    target: Any = "barycenter",
    confidence: float = 0.95,
    n_bootstrap: int = 1000,
    n_permutations: int = 1000,
    random_state: int | np.random.Generator | None = None,
    unsure_below: int = 30,
    small_groups: str = "keep",
    min_group_size: int = MIN_GROUP_SIZE,
    set_aside: Mapping[str, int] | None = None,
) -> Audit:
    """Audit scores that are counted already, on any machine.

    Parameters
    ----------
    histograms : GroupHistograms
        At least two groups with rows; groups without are left out.
    strata : dict of str to GroupHistograms, optional
        The same rows, by stratum.
    thresholds, target, confidence, n_bootstrap, n_permutations, random_state
        As in `fairtransport.audit`.
    unsure_below, small_groups, min_group_size
        As in `audit`.
    set_aside : dict of str to int, optional
        Rows that were not counted, by reason, to be reported.

    Returns
    -------
    Audit
        Each distance within 1 / n_bins of the exact one, exact for scores on nodes; rates and errors exact for
        thresholds on nodes.

    Examples
    --------
    >>> from fairtransport.histograms import count_scores
    >>> counted = count_scores([0.25, 0.5, 0.75, 1.0], sensitive_features=["a", "a", "b", "b"])
    >>> audit_histograms(counted).metrics["strong_pairwise_disparity"]
    0.5
    """
    options = check_options(
        histograms.grid,
        target=target,
        thresholds=thresholds,
        confidence=confidence,
        n_bootstrap=n_bootstrap,
        n_permutations=n_permutations,
        unsure_below=unsure_below,
        small_groups=small_groups,
        min_group_size=min_group_size,
    )
    present = histograms.filled()
    if len(present.groups) < 2:
        raise ValueError(f"{histograms!r} has rows in {len(present.groups)} group(s); at least 2 are needed.")
    counted = present.settle(small_groups, min_group_size)
    summary = summarise_small_groups(small_groups, min_group_size, present.group_rows, present.groups, counted.groups)
    rng = np.random.default_rng(random_state)
    found: Any = ((), {})
    if strata:
        regrouped = ((name, part.regroup(counted.groups)) for name, part in strata.items())
        parts: Iterator[tuple[str, Evidence]] = (
            (name, CountedEvidence(part.filled())) for name, part in regrouped if part.rows.any()
        )
        found = read_strata(parts, len(strata), options, rng)
    return assemble(CountedEvidence(counted), options, rng, strata=found, set_aside=set_aside, small_groups=summary)


def _positive(y_true: ArrayLike, pos_label: Any, *, size: int) -> NDArray[np.bool_]:
    """Rows of the positive class."""
    labels = np.asarray(y_true)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(f"y_true must have one dimension; it has shape {labels.shape}.")
    check_length(labels, size=size, name="y_true")
    if pos_label is None:
        positive, negative = np.asarray(labels == 1), np.asarray(labels == 0)
        strange = size - int(np.count_nonzero(positive | negative))
        if strange:
            raise ValueError(
                f"y_true has {strange} of {size} labels that are neither 0 nor 1; remove missing ones, and say with "
                "pos_label= which class is the positive one."
            )
        return positive
    try:
        n_classes = np.unique(labels).size
    except TypeError:
        raise ValueError("y_true mixes labels of several types, or has missing ones; use two of one type.") from None
    if n_classes > 2:
        raise ValueError(f"y_true has {n_classes} classes; two are needed.")
    return np.asarray(labels == pos_label)


def _check_weighted(histograms: GroupHistograms) -> None:
    without = int(np.count_nonzero(~(histograms.weights > 0)))
    if without:
        raise ValueError(f"sample_weight is zero in all rows of {without} of {len(histograms.groups)} groups.")


def _make_strata(strata: Any, *, size: int, missing: str, max_groups: int) -> Groups:
    try:
        layers = make_groups(strata, missing=missing, max_groups=max_groups)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("sensitive_features", "strata")) from None
    if layers.n_rows != size:
        raise ValueError(f"strata has {layers.n_rows} rows, but scores has {size}.")
    return layers
