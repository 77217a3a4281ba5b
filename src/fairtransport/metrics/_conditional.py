"""Disparities among people with the same label or in the same stratum, at thresholds, and scorers."""

from __future__ import annotations

import inspect
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._labels import is_positive
from fairtransport._validation import check_choice, check_length, check_real, check_scores, check_vector, check_weights
from fairtransport.groups import rows_of_groups
from fairtransport.metrics.ranks import scale_scores, sort_scores
from fairtransport.strata import STRATUM_WEIGHTS, make_strata, stratum_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.groups import GroupPolicy, Groups
    from fairtransport.strata import Strata


def separation_disparity(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    strata: Any = None,
    sample_weight: ArrayLike | None = None,
    reduce: str = "mean",
    scale: Any = "probability",
    label_weight: str | None = None,
    pos_label: Any = None,
    groups: GroupPolicy | None = None,
) -> float:
    r"""Return the distance between groups among people with the same label (equalized odds at every threshold).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two classes, or the numbers of a regression, which are cut at quantiles as those of strata are: people
        with similar y are compared.
    scores : array-like of shape (n,)
        Scores within [0, 1], or any finite numbers: see ``scale``.
    sensitive_features : column, table or Groups
        At least two groups; several columns are crossed.
    strata : column, table or Strata, optional
        Groups are compared only within strata, as in `fairtransport.strata.make_strata`: several columns are crossed,
        and numbers are cut at quantiles.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows; equal when omitted.
    reduce : {"mean", "sum"}, default "mean"
        Whether the distances of all pairs of groups are averaged, as in `pairwise_disparity`, or summed, as in
        `strong_pairwise_disparity`. Over labels and strata they are averaged in both cases; where these have different
        numbers of pairs, the mean is the averaged sum divided by the averaged number of pairs.
    scale : {"probability", "score", "standardized", "ranks"} or float, default "probability"
        The scores and the unit of the distance, as in `wasserstein_disparity`: scores within [0, 1], or any finite
        numbers in units of the score, in standard deviations of all scores, by rank or in multiples of a number.
    label_weight : {"equal", "share"}, optional
        Whether labels and strata count the same or by their share of the rows, as in
        `fairtransport.criteria.EqualizedOdds`. By default labels count the same, or the rarer one would hardly count,
        and the strata of a label by share.
    pos_label : label, optional
        The positive class, where labels are not 0 and 1.
    groups : GroupPolicy, optional
        How sensitive columns become groups.

    Returns
    -------
    float
        0 when groups have the same distribution of scores among people with the same label.

    See Also
    --------
    opportunity_disparity : Among people with the positive label only.
    equalized_odds_difference : At one threshold.
    fairtransport.audit : The same with confidence interval, noise floor and p-value.

    Notes
    -----
    With :math:`S_{ay}` the scores of the rows of group a with label y, and equal weights of the labels,

    .. math:: \frac{1}{2} \sum_y \sum_{a < b} W_1(S_{ay}, S_{by}),

    divided by the number of pairs unless ``reduce="sum"``. For label 1 the distance is the difference between two
    groups' true positive rates, averaged over all thresholds; for label 0, that of their false positive rates.
    Strata and labels with rows of fewer than two groups do not count.

    References
    ----------
    Hardt, Price and Srebro (2016), "Equality of Opportunity in Supervised Learning".

    Examples
    --------
    >>> y, scores = [0, 0, 1, 1], [0.1, 0.3, 0.6, 1.0]
    >>> round(separation_disparity(y, scores, sensitive_features=["a", "b", "a", "b"]), 3)
    0.3
    """
    return _disparity(
        y_true,
        scores,
        positive_only=False,
        sensitive_features=sensitive_features,
        strata=strata,
        sample_weight=sample_weight,
        reduce=reduce,
        scale=scale,
        stratum_weight=label_weight,
        pos_label=pos_label,
        groups=groups,
    )


def opportunity_disparity(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    strata: Any = None,
    sample_weight: ArrayLike | None = None,
    reduce: str = "mean",
    scale: Any = "probability",
    stratum_weight: str | None = None,
    pos_label: Any = None,
    groups: GroupPolicy | None = None,
) -> float:
    r"""Return the distance between groups among people with the positive label (equal opportunity at every threshold).

    Parameters
    ----------
    y_true, scores, sensitive_features, strata, sample_weight, reduce, scale, pos_label
        As in `separation_disparity`.
    stratum_weight : {"equal", "share"}, optional
        Whether strata count the same or, by default, by their share of the rows.
    groups : GroupPolicy, optional
        How sensitive columns become groups.

    Returns
    -------
    float
        0 when groups have the same distribution of scores among people with the positive label.

    See Also
    --------
    separation_disparity : Among people with each label.

    Notes
    -----
    With :math:`S_{a1}` the scores of the positive rows of group a,

    .. math:: \sum_{a < b} W_1(S_{a1}, S_{b1}),

    divided by the number of pairs unless ``reduce="sum"``: the differences between two groups' true positive rates,
    averaged over all thresholds.

    References
    ----------
    Hardt, Price and Srebro (2016), "Equality of Opportunity in Supervised Learning".

    Examples
    --------
    >>> y, scores = [0, 0, 1, 1], [0.1, 0.3, 0.6, 1.0]
    >>> opportunity_disparity(y, scores, sensitive_features=["a", "b", "a", "b"])
    0.4
    """
    return _disparity(
        y_true,
        scores,
        positive_only=True,
        sensitive_features=sensitive_features,
        strata=strata,
        sample_weight=sample_weight,
        reduce=reduce,
        scale=scale,
        stratum_weight=stratum_weight,
        pos_label=pos_label,
        groups=groups,
    )


def conditional_disparity(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    strata: Any,
    sample_weight: ArrayLike | None = None,
    reduce: str = "mean",
    scale: Any = "probability",
    stratum_weight: str | None = None,
    groups: GroupPolicy | None = None,
) -> float:
    r"""Return the distance between groups among people in the same stratum (conditional parity at every threshold).

    Parameters
    ----------
    scores, sensitive_features, strata, sample_weight, reduce, scale
        As in `separation_disparity`.
    stratum_weight : {"equal", "share"}, optional
        Whether strata count the same or, by default, by their share of the rows.
    groups : GroupPolicy, optional
        How sensitive columns become groups.

    Returns
    -------
    float
        0 when groups have the same distribution of scores within each stratum.

    See Also
    --------
    pairwise_disparity : Without strata.
    conditional_demographic_disparity : At one threshold.

    Notes
    -----
    With :math:`p_s` the share of stratum s in the rows of all strata that have two groups or more, and :math:`S_{as}`
    the scores of group a there,

    .. math:: \sum_s p_s \sum_{a < b} W_1(S_{as}, S_{bs}),

    divided by the (mean) number of pairs unless ``reduce="sum"``.

    Examples
    --------
    >>> scores, region = [0.1, 0.3, 0.6, 1.0], ["north", "north", "south", "south"]
    >>> round(conditional_disparity(scores, sensitive_features=["a", "b", "a", "b"], strata=region), 3)
    0.3
    """
    return _disparity(
        None,
        scores,
        positive_only=False,
        sensitive_features=sensitive_features,
        strata=strata,
        sample_weight=sample_weight,
        reduce=reduce,
        scale=scale,
        stratum_weight=stratum_weight,
        pos_label=None,
        groups=groups,
    )


def _disparity(
    y_true: ArrayLike | None,
    scores: ArrayLike,
    *,
    positive_only: bool,
    sensitive_features: Any,
    strata: Any,
    sample_weight: ArrayLike | None,
    reduce: str,
    scale: Any,
    stratum_weight: str | None,
    pos_label: Any,
    groups: GroupPolicy | None,
) -> float:
    check_choice(reduce, ("sum", "mean"), name="reduce")
    if stratum_weight is not None:
        within_labels = y_true is not None and not positive_only
        check_choice(stratum_weight, STRATUM_WEIGHTS, name="label_weight" if within_labels else "stratum_weight")
    every_row = np.arange(np.size(scores))
    made, (y_true, scores, sample_weight, kept) = rows_of_groups(
        sensitive_features, groups, y_true, scores, sample_weight, every_row
    )
    values, unit, _ = scale_scores(scores, scale, sample_weight)
    weights = check_weights(sample_weight, size=values.size)
    if made.n_rows != values.size:
        raise ValueError(f"scores has {values.size} rows, but sensitive_features has {made.n_rows}.")
    labels = None if y_true is None else _labels_of(y_true, pos_label, made, positive_only=positive_only)
    known = None if strata is None else make_strata(strata, n_groups=len(made))
    if known is not None:
        check_length(range(known.n_rows), size=every_row.size, name="strata")
        known = known.select(kept)
    compared: Sequence[int | None] = [None]
    if labels is not None:
        compared = [1] if positive_only else range(int(labels.max()) + 1)
    parts = list(_compared_parts(made, labels, compared, known, weights))
    if not parts:
        raise ValueError(
            f"There is nothing to compare: no {'label' if known is None else 'stratum'} has rows of two groups."
        )
    distances = []
    for _, rows, inside in parts:
        mass = None if weights is None else weights[rows]
        distances.append(sort_scores(values[rows], inside, mass).distance_sums().between_pairs)
    n_pairs = [1 if reduce == "sum" else len(inside) * (len(inside) - 1) // 2 for *_, inside in parts]
    masses = [float(rows.size if weights is None else weights[rows].sum()) for _, rows, _ in parts]
    shares = stratum_weights([label for label, *_ in parts], masses, stratum_weight)
    return float(shares @ distances / (shares @ n_pairs)) / unit


def _labels_of(y_true: ArrayLike, pos_label: Any, groups: Groups, *, positive_only: bool) -> NDArray[np.int64]:
    """Return 0 and 1 for two classes, or the number of the range of y where it has more than two numbers."""
    given = np.asarray(y_true)
    if pos_label is None and given.dtype.kind in "iuf" and np.unique(given).size > 2:
        values = check_vector(given, name="y_true")
        check_length(values, size=groups.n_rows, name="y_true")
        if positive_only:
            raise ValueError(
                "opportunity_disparity compares people with the positive label, and y_true has more than two values: a "
                "regression has no positive label. Use separation_disparity, which compares people with similar y."
            )
        return make_strata(values, n_groups=len(groups)).codes
    return is_positive(y_true, pos_label, size=groups.n_rows).astype(np.int64)


def _compared_parts(
    groups: Groups,
    labels: NDArray[np.int64] | None,
    compared: Sequence[int | None],
    strata: Strata | None,
    weights: NDArray[np.float64] | None,
) -> Iterator[tuple[int | None, NDArray[np.int64], Groups]]:
    """Yield the label, the rows and the groups of each part of the table that has rows of two groups or more."""
    counts = np.ones(groups.n_rows, dtype=np.bool_) if weights is None else weights > 0
    for label in compared:
        of_label = counts if label is None or labels is None else counts & (labels == label)
        for stratum in [None] if strata is None else range(len(strata)):
            rows = np.flatnonzero(of_label if strata is None else of_label & (strata.codes == stratum))
            inside = groups.select(rows)
            if np.count_nonzero(inside.counts) >= 2:
                yield label, rows, inside.settle("drop", 1)


# Classical measures of fairness at one threshold, to compare with.


def equalized_odds_difference(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    threshold: float = 0.5,
    scale: str = "probability",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    groups: GroupPolicy | None = None,
) -> float:
    r"""Return the larger of the largest differences between groups' true and false positive rates at a threshold.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two classes.
    scores : array-like of shape (n,)
        Scores within [0, 1], or any finite numbers: see ``scale``.
    sensitive_features : column, table or Groups
        At least two groups; several columns are crossed.
    threshold : float, default 0.5
        Scores strictly above it are classified as positive.
    scale : {"probability", "score", "ranks"}, default "probability"
        Scores and threshold within [0, 1]; any scores, and the threshold among them; or any scores, with a threshold
        among their ranks, so that 0.9 selects the highest tenth of all rows.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows; equal when omitted.
    pos_label : label, optional
        The positive class, where labels are not 0 and 1.
    groups : GroupPolicy, optional
        How sensitive columns become groups.

    Returns
    -------
    float
        Groups without rows of a label are left out of its rate.

    See Also
    --------
    separation_disparity : The same over all thresholds.

    Notes
    -----
    .. math:: \max_y \max_{a, b} |P(S > \tau \mid a, y) - P(S > \tau \mid b, y)|.

    The threshold hides differences: scores that differ at all thresholds but this one have a difference of 0.

    References
    ----------
    Hardt, Price and Srebro (2016), "Equality of Opportunity in Supervised Learning".

    Examples
    --------
    >>> equalized_odds_difference([0, 0, 1, 1], [0.1, 0.6, 0.6, 0.9], sensitive_features=["a", "b", "a", "b"])
    1.0
    """
    made, (y_true, scores, sample_weight) = rows_of_groups(sensitive_features, groups, y_true, scores, sample_weight)
    selected = _selected(scores, threshold, scale, sample_weight)
    check_length(range(made.n_rows), size=selected.size, name="sensitive_features")
    positive = is_positive(y_true, pos_label, size=selected.size)
    checked = check_weights(sample_weight, size=selected.size)
    weights = np.ones(selected.size) if checked is None else checked
    differences = []
    for label in (False, True):
        rates = []
        for rows in made.rows:
            members = rows[positive[rows] == label]
            total = float(weights[members].sum())
            if total > 0:
                rates.append(float(weights[members[selected[members]]].sum()) / total)
        if len(rates) >= 2:
            differences.append(max(rates) - min(rates))
    if not differences:
        raise ValueError("There is nothing to compare: no label has rows of two groups.")
    return max(differences)


def _selected(scores: ArrayLike, threshold: float, scale: str, weights: ArrayLike | None) -> NDArray[np.bool_]:
    """Return which scores are above the threshold."""
    check_choice(scale, ("probability", "score", "ranks"), name="scale")
    values = scale_scores(scores, scale, weights).values
    least, most = (-np.inf, np.inf) if scale == "score" else (0.0, 1.0)
    return np.asarray(values > check_real(threshold, name="threshold", least=least, most=most))


def conditional_demographic_disparity(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    strata: Any = None,
    threshold: float = 0.5,
    scale: str = "probability",
    group: Any = None,
    sample_weight: ArrayLike | None = None,
    groups: GroupPolicy | None = None,
) -> float:
    r"""Return how much larger a group's share is among the rejected than among the selected, within strata.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores within [0, 1], or any finite numbers: see ``scale``.
    sensitive_features : column, table or Groups
        At least two groups; several columns are crossed.
    strata : column, table or Strata, optional
        As in `fairtransport.strata.make_strata`; one stratum with all rows when omitted (demographic disparity).
    threshold : float, default 0.5
        Scores strictly above it are selected.
    scale : {"probability", "score", "ranks"}, default "probability"
        As in `equalized_odds_difference`.
    group : label, optional
        Label or name of the group. By default that with the largest disparity.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows; equal when omitted.
    groups : GroupPolicy, optional
        How sensitive columns become groups.

    Returns
    -------
    float
        Within [-1, 1]; above 0 the group is at a disadvantage. Strata where everyone or nobody is selected are left
        out; 0 where all are.

    See Also
    --------
    conditional_disparity : Distances between groups within strata, over all thresholds.

    Notes
    -----
    With :math:`n_s` the number of rows of stratum s,

    .. math:: \frac{1}{\sum_s n_s} \sum_s n_s \bigl(P(a \mid S \le \tau, s) - P(a \mid S > \tau, s)\bigr).

    References
    ----------
    Wachter, Mittelstadt and Russell (2021), "Why Fairness Cannot Be Automated: Bridging the Gap Between EU
    Non-Discrimination Law and AI", Computer Law & Security Review 41.

    Examples
    --------
    >>> scores, groups = [0.1, 0.2, 0.7, 0.3, 0.8, 0.9], ["a", "a", "a", "b", "b", "b"]
    >>> round(conditional_demographic_disparity(scores, sensitive_features=groups, group="a"), 3)
    0.333
    """
    every_row = np.arange(np.size(scores))
    made, (scores, sample_weight, kept) = rows_of_groups(sensitive_features, groups, scores, sample_weight, every_row)
    selected = _selected(scores, threshold, scale, sample_weight)
    check_length(range(made.n_rows), size=selected.size, name="sensitive_features")
    checked = check_weights(sample_weight, size=selected.size)
    weights = np.ones(selected.size) if checked is None else checked
    codes, n_strata = np.zeros(selected.size, dtype=np.int64), 1
    if strata is not None:
        known = make_strata(strata, n_groups=len(made))
        check_length(range(known.n_rows), size=every_row.size, name="strata")
        codes, n_strata = known.codes[kept], len(known)
    chosen = range(len(made)) if group is None else [made.index_of(group)]
    rejected_total, selected_total = (
        np.bincount(codes[mask], weights[mask], minlength=n_strata) for mask in (~selected, selected)
    )
    both = (rejected_total > 0) & (selected_total > 0)
    if not both.any():
        return 0.0
    shares = (rejected_total + selected_total)[both]
    disparities = []
    for number in chosen:
        rows = made.rows[number]
        rejected, accepted = (
            np.bincount(codes[rows][mask], weights[rows][mask], minlength=n_strata)[both]
            for mask in (~selected[rows], selected[rows])
        )
        difference = rejected / rejected_total[both] - accepted / selected_total[both]
        disparities.append(float(shares @ difference / shares.sum()))
    return max(disparities)


# The error rate of thresholded scores.


def error_rate(
    y_true: ArrayLike,
    scores: ArrayLike,
    threshold: float = 0.5,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the share of rows that a threshold misclassifies (Err-.5 in the paper).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two classes.
    scores : array-like of shape (n,)
        Scores within [0, 1].
    threshold : float, default 0.5
        Scores strictly above it are classified as positive.
    pos_label : label, optional
        The positive class. By default 1 for labels 0 and 1 (or False and True), and the larger one in sorted order for
        any other two.
    sample_weight : array-like of shape (n,), optional
        Weights; equal when omitted.

    Returns
    -------
    float

    Notes
    -----
    With weights w that sum to 1,

    .. math:: \sum_n w_n \, 1[\hat y_n \ne y_n], \qquad \hat y_n = 1[s_n > \tau].

    References
    ----------
    Chiappa and Pacchiano (2021), "Fairness with Continuous Optimal Transport", Section "Results".

    Examples
    --------
    >>> error_rate([0, 1, 1, 0], [0.2, 0.7, 0.4, 0.5])
    0.25
    >>> error_rate(["bad", "good"], [0.9, 0.3], pos_label="bad")
    0.0
    """
    values = check_scores(scores)
    cut = check_real(threshold, name="threshold", most=1.0)
    positive = is_positive(y_true, pos_label, size=values.size)
    weights = check_weights(sample_weight, size=values.size)
    wrong = (values > cut) != positive
    return float(np.count_nonzero(wrong) / wrong.size) if weights is None else float(np.average(wrong, weights=weights))


# Disparities as scorers of scikit-learn.


def disparity_scorer(metric: Callable[..., float], *, response_method: Any = "predict_proba", **options: Any) -> Any:
    """Return a disparity as a scorer for cross-validation and model selection.

    Parameters
    ----------
    metric : callable
        A disparity of this package, such as `separation_disparity`. It may take labels before the scores.
    response_method : str or list of str, default "predict_proba"
        Method of the estimator that returns scores; ``"predict"`` for regressors.
    **options
        Arguments of the metric that are the same for all rows, such as ``scale="ranks"``.

    Returns
    -------
    scorer
        As `sklearn.metrics.make_scorer` returns it: minus the disparity, so that greater is better. Call
        ``set_score_request`` for the arguments that have one value for each row: ``sensitive_features=True``, and
        ``strata=True`` or ``sample_weight=True`` where they are used.

    Notes
    -----
    Metadata routing must be enabled (``sklearn.set_config(enable_metadata_routing=True)``). The constant model has a
    disparity of 0, so a search that minimises a disparity alone finds the least useful model; combine it with a scorer
    of accuracy, or look at both.

    Examples
    --------
    >>> import numpy as np, sklearn
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_validate
    >>> from fairtransport.metrics import separation_disparity
    >>> rng = np.random.default_rng(0)
    >>> X, sex = rng.normal(size=(200, 2)), rng.choice(["F", "M"], 200)
    >>> y = (X[:, 0] > 0).astype(int)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     scorer = disparity_scorer(separation_disparity).set_score_request(sensitive_features=True)
    ...     result = cross_validate(LogisticRegression(), X, y, scoring=scorer, params={"sensitive_features": sex})
    >>> bool(np.all(result["test_score"] <= 0))
    True
    """
    from sklearn.metrics import make_scorer  # noqa: PLC0415 - takes a while

    takes_labels = next(iter(inspect.signature(metric).parameters)) == "y_true"
    function = metric if takes_labels else update_wrapper(partial(_without_labels, metric), metric)
    return make_scorer(function, response_method=response_method, greater_is_better=False, **options)


def _without_labels(metric: Callable[..., float], y_true: Any, scores: Any, **options: Any) -> float:
    del y_true
    return metric(scores, **options)
