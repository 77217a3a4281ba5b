"""Classical measures of fairness at one threshold, to compare with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._labels import is_positive
from fairtransport._validation import check_choice, check_length, check_real, check_weights
from fairtransport.groups import make_groups
from fairtransport.metrics._scale import scale_scores
from fairtransport.strata import make_strata

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["conditional_demographic_disparity", "equalized_odds_difference"]


def equalized_odds_difference(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    threshold: float = 0.5,
    scale: str = "probability",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    grouping: str = "crossed",
    missing: str = "error",
    min_size: int = 1,
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
    grouping, missing, min_size
        As in `fairtransport.make_groups`.

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
    selected = _selected(scores, threshold, scale, sample_weight)
    groups = make_groups(sensitive_features, grouping=grouping, missing=missing, min_size=min_size, at_least=2)
    check_length(range(groups.n_rows), size=selected.size, name="sensitive_features")
    positive = is_positive(y_true, pos_label, size=selected.size)
    checked = check_weights(sample_weight, size=selected.size)
    weights = np.ones(selected.size) if checked is None else checked
    differences = []
    for label in (False, True):
        rates = []
        for rows in groups.rows:
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
    grouping: str = "crossed",
    missing: str = "error",
    min_size: int = 1,
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
    grouping, missing, min_size
        As in `fairtransport.make_groups`.

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
    selected = _selected(scores, threshold, scale, sample_weight)
    groups = make_groups(sensitive_features, grouping=grouping, missing=missing, min_size=min_size, at_least=2)
    check_length(range(groups.n_rows), size=selected.size, name="sensitive_features")
    checked = check_weights(sample_weight, size=selected.size)
    weights = np.ones(selected.size) if checked is None else checked
    codes, n_strata = np.zeros(selected.size, dtype=np.int64), 1
    if strata is not None:
        known = make_strata(strata, n_groups=len(groups))
        check_length(range(known.n_rows), size=selected.size, name="strata")
        codes, n_strata = known.codes, len(known)
    chosen = range(len(groups)) if group is None else [groups.index_of(group)]
    rejected_total, selected_total = (
        np.bincount(codes[mask], weights[mask], minlength=n_strata) for mask in (~selected, selected)
    )
    both = (rejected_total > 0) & (selected_total > 0)
    if not both.any():
        return 0.0
    shares = (rejected_total + selected_total)[both]
    disparities = []
    for number in chosen:
        rows = groups.rows[number]
        rejected, accepted = (
            np.bincount(codes[rows][mask], weights[rows][mask], minlength=n_strata)[both]
            for mask in (~selected[rows], selected[rows])
        )
        difference = rejected / rejected_total[both] - accepted / selected_total[both]
        disparities.append(float(shares @ difference / shares.sum()))
    return max(disparities)
