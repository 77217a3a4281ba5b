"""Disparities among people with the same label or in the same stratum, at thresholds, and scorers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport._labels import is_positive
from fairtransport._validation import check_choice, check_length, check_real, check_scores, check_vector, check_weights
from fairtransport.groups import GroupPolicy, Groups, rows_of_groups
from fairtransport.metrics.ranks import kept_strata, scale_scores, sort_scores
from fairtransport.strata import STRATUM_WEIGHTS, Strata, make_strata, stratum_weights


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
        Labels of two classes, or the numbers of a regression, which are cut at quantiles: people with similar y are
        compared.
    scores, sensitive_features, scale, sample_weight, groups
        As in `wasserstein_disparity`.
    strata : column, table or Strata, optional
        Groups are compared only within strata: several columns are crossed, and numbers are cut at quantiles.
    reduce : {"mean", "sum"}, default "mean"
        Whether the distances of all pairs of groups are averaged, as in `pairwise_disparity`, or summed, as in
        `strong_pairwise_disparity`. Over labels and strata they are averaged in both cases; where these have different
        numbers of pairs, the mean is the averaged sum divided by the averaged number of pairs.
    label_weight : {"equal", "share"}, optional
        Whether labels and strata count the same or by their share of the rows. By default labels count the same, or the
        rarer one would hardly count, and the strata of a label by share.
    pos_label : label, optional
        The positive class; needed unless labels are 0 and 1, false and true, no and yes or -1 and 1.

    Returns
    -------
    float
        0 when groups have the same distribution of scores among people with the same label.

    See Also
    --------
    equalized_odds_difference : At one threshold.
    fairtransport.audit : The same with confidence interval, noise floor and p-value.

    Notes
    -----
    With :math:`S_{ay}` the scores of the rows of group a with label y, and equal weights of the labels,

    .. math:: \frac{1}{2} \sum_y \sum_{a < b} W_1(S_{ay}, S_{by}),

    divided by the number of pairs unless ``reduce="sum"``. For label 1 the distance is the difference between two
    groups' true positive rates, averaged over all thresholds; for label 0, that of their false positive rates.
    Strata and labels with rows of fewer than two groups do not count. Every group counts equally, however small; leave
    small groups out with ``groups=GroupPolicy(small="drop")``.

    References
    ----------
    Hardt, Price and Srebro (2016), "Equality of Opportunity in Supervised Learning".

    Examples
    --------
    >>> y, scores = [0, 0, 1, 1], [0.1, 0.3, 0.6, 1.0]
    >>> round(separation_disparity(y, scores, sensitive_features=["a", "b", "a", "b"]), 3)
    0.3
    """
    _check_weight(label_weight, "label_weight")
    rows = _Rows.of(scores, sensitive_features, groups, sample_weight, strata=strata, y=y_true)
    labels = _labels_of(rows, pos_label, positive_only=False)
    return rows.disparity(labels, range(int(labels.max()) + 1), reduce=reduce, scale=scale, weight=label_weight)


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
    y_true, scores, sensitive_features, strata, sample_weight, reduce, scale, pos_label, groups
        As in `separation_disparity`; ``y_true`` has two classes.
    stratum_weight : {"equal", "share"}, optional
        Whether strata count the same or, by default, by their share of the rows.

    Returns
    -------
    float
        With :math:`S_{a1}` the scores of the positive rows of group a, :math:`\sum_{a < b} W_1(S_{a1}, S_{b1})`,
        divided by the number of pairs unless ``reduce="sum"``.

    Examples
    --------
    >>> y, scores = [0, 0, 1, 1], [0.1, 0.3, 0.6, 1.0]
    >>> opportunity_disparity(y, scores, sensitive_features=["a", "b", "a", "b"])
    0.4
    """
    _check_weight(stratum_weight, "stratum_weight")
    rows = _Rows.of(scores, sensitive_features, groups, sample_weight, strata=strata, y=y_true)
    labels = _labels_of(rows, pos_label, positive_only=True)
    return rows.disparity(labels, [1], reduce=reduce, scale=scale, weight=stratum_weight)


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
    scores, sensitive_features, strata, sample_weight, reduce, scale, groups
        As in `separation_disparity`.
    stratum_weight : {"equal", "share"}, optional
        Whether strata count the same or, by default, by their share of the rows.

    Returns
    -------
    float
        With :math:`p_s` the share of stratum s in the rows of all strata that have two groups or more, and
        :math:`S_{as}` the scores of group a there, :math:`\sum_s p_s \sum_{a < b} W_1(S_{as}, S_{bs})`, divided by the
        (mean) number of pairs unless ``reduce="sum"``.

    See Also
    --------
    conditional_demographic_disparity : At one threshold.

    Examples
    --------
    >>> scores, region = [0.1, 0.3, 0.6, 1.0], ["north", "north", "south", "south"]
    >>> round(conditional_disparity(scores, sensitive_features=["a", "b", "a", "b"], strata=region), 3)
    0.3
    """
    _check_weight(stratum_weight, "stratum_weight")
    rows = _Rows.of(scores, sensitive_features, groups, sample_weight, strata=strata, y=None)
    return rows.disparity(None, [0], reduce=reduce, scale=scale, weight=stratum_weight)


class _Rows(NamedTuple):
    """The rows that a policy of groups keeps."""

    scores: Any
    groups: Groups
    weights: Any
    strata: Strata | None
    labels: Any

    @classmethod
    def of(
        cls, scores: Any, sensitive_features: Any, policy: GroupPolicy | None, weights: Any, *, strata: Any, y: Any
    ) -> _Rows:
        every_row = np.arange(np.size(scores))
        made, (y, scores, weights, kept) = rows_of_groups(sensitive_features, policy, y, scores, weights, every_row)
        return cls(scores, made, weights, None if strata is None else kept_strata(strata, made, every_row, kept), y)

    def disparity(
        self, labels: Ints | None, compared: Iterable[int], *, reduce: str, scale: Any, weight: str | None
    ) -> float:
        """Return the distance between groups within the labels that are compared and within strata."""
        check_choice(reduce, ("sum", "mean"), name="reduce")
        values, unit, _ = scale_scores(self.scores, scale, self.weights)
        weights = check_weights(self.weights, size=values.size)
        if self.groups.n_rows != values.size:
            raise ValueError(f"scores has {values.size} rows, but sensitive_features has {self.groups.n_rows}.")
        masses = np.ones(values.size) if weights is None else weights
        strata = np.zeros(values.size) if self.strata is None else self.strata.codes
        parts = []
        for label, stratum in product(compared, range(1 if self.strata is None else len(self.strata))):
            inside = (masses > 0) & (strata == stratum)
            rows = np.flatnonzero(inside if labels is None else inside & (labels == label))
            groups = self.groups.select(rows)
            if np.count_nonzero(groups.counts) < 2:
                continue
            groups = groups.settle("drop", 1)
            sums = sort_scores(values[rows], groups, None if weights is None else weights[rows]).distance_sums
            n_pairs = 1 if reduce == "sum" else comb(len(groups), 2)
            parts.append((None if labels is None else label, masses[rows].sum(), sums.between_pairs, n_pairs))
        if not parts:
            where = "label" if self.strata is None else "stratum"
            raise ValueError(f"There is nothing to compare: no {where} has rows of two groups.")
        of_label, mass, distances, pairs = zip(*parts, strict=True)
        shares = stratum_weights(of_label, mass, weight)
        return float(shares @ distances / (shares @ pairs)) / unit

    def selected(self, threshold: float, scale: str) -> tuple[Bools, Floats]:
        """Return which scores are above a threshold, and the weights of the rows."""
        check_choice(scale, ("probability", "score", "ranks"), name="scale")
        values = scale_scores(self.scores, scale, self.weights).values
        least, most = (-np.inf, np.inf) if scale == "score" else (0.0, 1.0)
        above = values > check_real(threshold, name="threshold", least=least, most=most)
        check_length(range(self.groups.n_rows), size=values.size, name="sensitive_features")
        weights = check_weights(self.weights, size=values.size)
        return above, np.ones(values.size) if weights is None else weights


def _check_weight(weight: str | None, name: str) -> None:
    if weight is not None:
        check_choice(weight, STRATUM_WEIGHTS, name=name)


def _labels_of(rows: _Rows, pos_label: Any, *, positive_only: bool) -> Ints:
    """Return 0 and 1 for two classes, or the number of the range of y where it has more than two numbers."""
    given, groups = np.asarray(rows.labels), rows.groups
    if pos_label is None and given.dtype.kind in "iuf" and np.unique(given).size > 2:
        values = check_vector(given, name="y_true")
        check_length(values, size=groups.n_rows, name="y_true")
        if positive_only:
            raise ValueError(
                "opportunity_disparity compares people with the positive label, and y_true has more than two values: a "
                "regression has no positive label. Use separation_disparity, which compares people with similar y."
            )
        return make_strata(values, n_groups=len(groups)).codes
    return is_positive(rows.labels, pos_label, size=groups.n_rows).astype(np.int64)


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
    scores, sensitive_features, sample_weight, groups
        As in `wasserstein_disparity`.
    threshold : float, default 0.5
        Scores strictly above it are classified as positive.
    scale : {"probability", "score", "ranks"}, default "probability"
        Scores and threshold within [0, 1]; any scores, and the threshold among them; or any scores, with a threshold
        among their ranks, so that 0.9 selects the highest tenth of all rows.
    pos_label : label, optional
        The positive class; needed unless labels are 0 and 1, false and true, no and yes or -1 and 1.

    Returns
    -------
    float
        :math:`\max_y \max_{a, b} |P(S > \tau \mid a, y) - P(S > \tau \mid b, y)|`. Groups without rows of a label are
        left out of its rate.

    See Also
    --------
    separation_disparity : The same over all thresholds. One threshold hides differences at the others.

    References
    ----------
    Hardt, Price and Srebro (2016), "Equality of Opportunity in Supervised Learning".

    Examples
    --------
    >>> equalized_odds_difference([0, 0, 1, 1], [0.1, 0.6, 0.6, 0.9], sensitive_features=["a", "b", "a", "b"])
    1.0
    """
    rows = _Rows.of(scores, sensitive_features, groups, sample_weight, strata=None, y=y_true)
    selected, weights = rows.selected(threshold, scale)
    positive = is_positive(rows.labels, pos_label, size=selected.size)
    differences = []
    for label in (False, True):
        rates = []
        for own in rows.groups.rows:
            members = own[positive[own] == label]
            total = float(weights[members].sum())
            if total > 0:
                rates.append(float(weights[members[selected[members]]].sum()) / total)
        if len(rates) >= 2:
            differences.append(max(rates) - min(rates))
    if not differences:
        raise ValueError("There is nothing to compare: no label has rows of two groups.")
    return max(differences)


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
    scores, sensitive_features, sample_weight, groups
        As in `wasserstein_disparity`.
    strata : column, table or Strata, optional
        One stratum with all rows when omitted (demographic disparity).
    threshold, scale
        As in `equalized_odds_difference`: scores strictly above the threshold are selected.
    group : label, optional
        Label or name of the group. By default that with the largest disparity.

    Returns
    -------
    float
        The mean over strata, by size, of :math:`P(a \mid S \le \tau, s) - P(a \mid S > \tau, s)`: within [-1, 1], above
        0 where the group is at a disadvantage. Strata where everyone or nobody is selected are left out; 0 where all
        are.

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
    rows = _Rows.of(scores, sensitive_features, groups, sample_weight, strata=strata, y=None)
    (selected, weights), made = rows.selected(threshold, scale), rows.groups
    codes, n_strata = np.zeros(selected.size, dtype=np.int64), 1
    if rows.strata is not None:
        codes, n_strata = rows.strata.codes, len(rows.strata)
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
        own = made.rows[number]
        rejected, accepted = (
            np.bincount(codes[own][mask], weights[own][mask], minlength=n_strata)[both]
            for mask in (~selected[own], selected[own])
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
    """Return the share of rows that a threshold misclassifies (Err-.5 in the paper).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two classes.
    scores : array-like of shape (n,)
        Scores within [0, 1].
    threshold : float, default 0.5
        Scores strictly above it are classified as positive.
    pos_label : label, optional
        The positive class; needed unless labels are 0 and 1, false and true, no and yes or -1 and 1.
    sample_weight : array-like of shape (n,), optional
        Weights; equal when omitted.

    Returns
    -------
    float

    Examples
    --------
    >>> error_rate([0, 1, 1, 0], [0.2, 0.7, 0.4, 0.5])
    0.25
    """
    values = check_scores(scores)
    cut = check_real(threshold, name="threshold", most=1.0)
    positive = is_positive(y_true, pos_label, size=values.size)
    return float(np.average((values > cut) != positive, weights=check_weights(sample_weight, size=values.size)))


# Disparities as scorers of scikit-learn.


def group_scorer(
    metric: Callable[..., float],
    *,
    response_method: Any = "predict_proba",
    greater_is_better: bool = False,
    **options: Any,
) -> Any:
    """Return a metric as a scorer for cross-validation and model selection that knows the groups.

    The scorer gives ``sensitive_features`` and ``strata`` to the metric and to models that take them at prediction,
    such as `QuantileRepairClassifier`, or a pipeline of which a step asks for them. Scorers of scikit-learn give them
    to no model.

    Parameters
    ----------
    metric : callable
        A disparity of this package, such as `separation_disparity`, or a metric of scikit-learn. Where its first
        argument is named ``y_true``, it gets the labels before the scores.
    response_method : str or list of str, default="predict_proba"
        Method of the estimator that returns scores; ``"predict"`` for regressors, or for metrics of labels.
    greater_is_better : bool, default=False
        False for disparities and errors, of which the scorer returns the negative.
    **options
        Arguments of the metric that are the same for all rows, such as ``scale="ranks"``.

    Returns
    -------
    scorer
        Call ``set_score_request`` for the columns that it should get: ``sensitive_features=True``, and ``strata=True``
        or ``sample_weight=True`` where they are used. Metadata routing must be enabled.

    Notes
    -----
    The constant model has a disparity of 0, so a search that minimises a disparity alone finds the least useful model;
    combine it with a scorer of accuracy, or look at both. `sklearn.model_selection.TunedThresholdClassifierCV`, which
    takes scorers apart, needs one of `sklearn.metrics.make_scorer`.

    Examples
    --------
    >>> import numpy as np, sklearn
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_validate
    >>> from fairtransport.metrics import group_scorer, separation_disparity
    >>> rng = np.random.default_rng(0)
    >>> X, sex = rng.normal(size=(200, 2)), rng.choice(["F", "M"], 200)
    >>> y = (X[:, 0] > 0).astype(int)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     scorer = group_scorer(separation_disparity).set_score_request(sensitive_features=True)
    ...     result = cross_validate(LogisticRegression(), X, y, scoring=scorer, params={"sensitive_features": sex})
    >>> bool(np.all(result["test_score"] <= 0))
    True
    """
    from fairtransport.metrics._scorer import GroupScorer  # noqa: PLC0415 - scikit-learn takes a while

    return GroupScorer(metric, response_method, greater_is_better, options)
