"""The three disparities of the paper and the rank disparity: sums of Wasserstein-1 distances between distributions.

On the line such a distance is the area between two distribution functions: the difference between two groups' shares
above a threshold, averaged over all thresholds in [0, 1].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport.groups import make_groups
from fairtransport.metrics._scale import scale_scores
from fairtransport.metrics._sorted_scores import DistanceSums, SortedScores, sort_scores
from fairtransport.transport.line import wasserstein
from fairtransport.transport.targets import resolve_target

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "disparities",
    "pairwise_distances",
    "rank_disparity",
    "strong_demographic_disparity",
    "strong_pairwise_disparity",
    "wasserstein_disparity",
]


def wasserstein_disparity(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    target: Any = "barycenter",
    scale: Any = "probability",
    sample_weight: ArrayLike | None = None,
    grouping: str = "crossed",
    missing: str = "error",
    min_size: int = 1,
) -> float:
    r"""Return the sum over groups of the distance to a target distribution (Wass1 in the paper).

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores within [0, 1], or any finite numbers: see ``scale``.
    sensitive_features : column, table or Groups
        At least two groups; several columns are crossed.
    target : str, label, array-like or Sample, default "barycenter"
        ``"barycenter"`` (the Wasserstein-1 barycenter of the groups with equal weights, as in the paper),
        ``"barycenter_w2"`` (the Wasserstein-2 barycenter, weighted by group size), ``"pooled"`` (all rows), the label
        or name of a group, or a sample of scores. All but the last depend on these scores; pass a sample for a fixed
        target. A group whose name is one of these strings cannot be selected by name.
    scale : {"probability", "score", "standardized", "ranks"} or float, default "probability"
        The scores and the unit of the distance. ``"probability"``: scores within [0, 1]; others raise. The rest takes
        any finite numbers, such as the predictions of a regression. ``"score"``: units of the score.
        ``"standardized"``: standard deviations of all scores. ``"ranks"``: the scores are replaced by their ranks among
        all rows, as in `rank_disparity`. A number: so many units of the score, such as the standard deviation of y or
        the width of the range of scores.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows; equal when omitted.
    grouping, missing, min_size
        As in `fairtransport.make_groups`.

    Returns
    -------
    float
        0 when every group has the target distribution; of probabilities at most the number of groups.

    See Also
    --------
    disparities : All three disparities at once.
    noise_floor : The disparity expected by chance.

    Notes
    -----
    With :math:`S_a` the scores of group a and T the target,

    .. math:: \sum_a W_1(S_a, T).

    Groups count equally, whatever their size.

    References
    ----------
    Chiappa and Pacchiano (2021), "Fairness with Continuous Optimal Transport", Section "Results".

    Examples
    --------
    >>> wasserstein_disparity([0.0, 0.25, 0.5], sensitive_features=["a", "b", "c"])
    0.5
    >>> wasserstein_disparity([0.0, 0.25, 0.5], sensitive_features=["a", "b", "c"], target="c")
    0.75
    """
    groups = make_groups(sensitive_features, grouping=grouping, missing=missing, min_size=min_size, at_least=2)
    values, unit, score_range = scale_scores(scores, scale, sample_weight)
    ordered = sort_scores(values, groups, sample_weight)
    return _to_target(ordered, target, ordered.distance_sums, score_range) / unit


def strong_demographic_disparity(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    scale: Any = "probability",
    sample_weight: ArrayLike | None = None,
    grouping: str = "crossed",
    missing: str = "error",
    min_size: int = 1,
) -> float:
    r"""Return the sum over groups of the distance to all rows (strong demographic disparity, SDD in the paper).

    Parameters
    ----------
    scores, sensitive_features, scale, sample_weight, grouping, missing, min_size
        As in `wasserstein_disparity`. With overlapping groups (``grouping="each"``) every row still counts once in the
        distribution of all rows.

    Returns
    -------
    float
        0 when all groups have the same distribution.

    See Also
    --------
    disparities : All three disparities at once.
    noise_floor : The disparity expected by chance.

    Notes
    -----
    With :math:`S_a` the scores of group a and S those of all rows,

    .. math:: \sum_a E_{\tau \sim U[0,1]} |P(S_a > \tau) - P(S > \tau)| = \sum_a W_1(S_a, S).

    References
    ----------
    Chiappa and Pacchiano (2021), "Fairness with Continuous Optimal Transport", Section "Results".

    Examples
    --------
    >>> strong_demographic_disparity([0.0, 0.5, 0.5, 0.5], sensitive_features=["a", "b", "b", "b"])
    0.5
    """
    groups = make_groups(sensitive_features, grouping=grouping, missing=missing, min_size=min_size, at_least=2)
    values, unit, _ = scale_scores(scores, scale, sample_weight)
    return sort_scores(values, groups, sample_weight).distance_sums().to_everyone / unit


def strong_pairwise_disparity(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    scale: Any = "probability",
    sample_weight: ArrayLike | None = None,
    grouping: str = "crossed",
    missing: str = "error",
    min_size: int = 1,
) -> float:
    r"""Return the sum of distances between pairs of groups (strong pairwise demographic disparity, SPDD in the paper).

    Parameters
    ----------
    scores, sensitive_features, scale, sample_weight, grouping, missing, min_size
        As in `wasserstein_disparity`.

    Returns
    -------
    float
        0 when all groups have the same distribution.

    See Also
    --------
    rank_disparity : The same sum for ranks, which does not change under increasing maps of the scores.
    pairwise_distances : The distance of each pair.
    noise_floor : The disparity expected by chance.

    Notes
    -----
    Over unordered pairs of groups,

    .. math:: \sum_{a < b} E_{\tau \sim U[0,1]} |P(S_a > \tau) - P(S_b > \tau)| = \sum_{a < b} W_1(S_a, S_b).

    References
    ----------
    Chiappa and Pacchiano (2021), "Fairness with Continuous Optimal Transport", Section "Results".

    Examples
    --------
    >>> strong_pairwise_disparity([0.0, 0.25, 0.5], sensitive_features=["a", "b", "c"])
    1.0

    Predictions in thousands of euros, and the same in standard deviations:

    >>> strong_pairwise_disparity([20, 40, 40, 60], sensitive_features=["a", "a", "b", "b"], scale="score")
    20.0
    >>> disparity = strong_pairwise_disparity([20, 40, 40, 60], sensitive_features=list("aabb"), scale="standardized")
    >>> round(disparity, 3)
    1.414
    """
    groups = make_groups(sensitive_features, grouping=grouping, missing=missing, min_size=min_size, at_least=2)
    values, unit, _ = scale_scores(scores, scale, sample_weight)
    return sort_scores(values, groups, sample_weight).distance_sums().between_pairs / unit


def rank_disparity(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
    grouping: str = "crossed",
    missing: str = "error",
    min_size: int = 1,
) -> float:
    r"""Return the sum over pairs of groups of the distance between their pooled ranks.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Any finite numbers: probabilities, logits, predictions of a regression, decile scores.
    sensitive_features, sample_weight, grouping, missing, min_size
        As in `wasserstein_disparity`. With overlapping groups (``grouping="each"``) every row still counts once among
        all rows.

    Returns
    -------
    float
        0 when all groups have the same distribution of ranks; 0.5 for two groups of equal size whose scores do not
        overlap.

    See Also
    --------
    strong_pairwise_disparity : The same sum in units of the score.
    noise_floor : The disparity expected by chance.

    Notes
    -----
    With :math:`R_a` the mid-ranks of group a among all rows (`pooled_ranks`), over unordered pairs of groups

    .. math:: \sum_{a < b} W_1(R_a, R_b) = \sum_{a < b} \int_0^1 |P(R_a > 1 - q) - P(R_b > 1 - q)| \, dq.

    This is the difference between two groups' selection rates, averaged over all shares q of rows selected. It is
    invariant under increasing maps of the scores, so a model cannot lower it by shrinking its scores toward their mean.

    Examples
    --------
    >>> scores, groups = [0.1, 0.2, 0.3, 0.4], ["a", "a", "b", "b"]
    >>> rank_disparity(scores, sensitive_features=groups)
    0.5
    >>> rank_disparity([score / 2 for score in scores], sensitive_features=groups)
    0.5
    """
    return strong_pairwise_disparity(
        scores,
        sensitive_features=sensitive_features,
        scale="ranks",
        sample_weight=sample_weight,
        grouping=grouping,
        missing=missing,
        min_size=min_size,
    )


def pairwise_distances(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    scale: Any = "probability",
    sample_weight: ArrayLike | None = None,
    grouping: str = "crossed",
    missing: str = "error",
    min_size: int = 1,
) -> NDArray[np.float64]:
    """Return the Wasserstein-1 distance between every two groups.

    Parameters
    ----------
    scores, sensitive_features, scale, sample_weight, grouping, missing, min_size
        As in `wasserstein_disparity`.

    Returns
    -------
    array of shape (n_groups, n_groups)
        Symmetric, zero on the diagonal; groups in the order of ``make_groups(sensitive_features).labels``.

    See Also
    --------
    strong_pairwise_disparity : The sum of the entries above the diagonal.

    Examples
    --------
    >>> pairwise_distances([0.0, 0.25, 0.5], sensitive_features=["a", "b", "c"])
    array([[0.  , 0.25, 0.5 ],
           [0.25, 0.  , 0.25],
           [0.5 , 0.25, 0.  ]])
    """
    groups = make_groups(sensitive_features, grouping=grouping, missing=missing, min_size=min_size, at_least=2)
    values, unit, _ = scale_scores(scores, scale, sample_weight)
    return sort_scores(values, groups, sample_weight).distances() / unit


def disparities(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    target: Any = "barycenter",
    scale: Any = "probability",
    sample_weight: ArrayLike | None = None,
    grouping: str = "crossed",
    missing: str = "error",
    min_size: int = 1,
) -> dict[str, float]:
    """Return all three disparities, computed from one sort of the scores.

    Parameters
    ----------
    scores, sensitive_features, target, scale, sample_weight, grouping, missing, min_size
        As in `wasserstein_disparity`.

    Returns
    -------
    dict of str to float
        ``wasserstein_disparity``, ``strong_demographic_disparity`` and ``strong_pairwise_disparity``: the values of the
        functions of these names.

    Examples
    --------
    >>> disparities([0.0, 1.0], sensitive_features=["a", "b"])
    {'wasserstein_disparity': 1.0, 'strong_demographic_disparity': 1.0, 'strong_pairwise_disparity': 1.0}
    """
    groups = make_groups(sensitive_features, grouping=grouping, missing=missing, min_size=min_size, at_least=2)
    values, unit, score_range = scale_scores(scores, scale, sample_weight)
    ordered = sort_scores(values, groups, sample_weight)
    sums = ordered.distance_sums()
    return {
        "wasserstein_disparity": _to_target(ordered, target, lambda: sums, score_range) / unit,
        "strong_demographic_disparity": sums.to_everyone / unit,
        "strong_pairwise_disparity": sums.between_pairs / unit,
    }


def _to_target(
    ordered: SortedScores,
    target: Any,
    sums: Callable[[], DistanceSums],
    score_range: tuple[float, float] | None,
) -> float:
    """Return the sum of the groups' distances to a target; for two targets it is among the ``sums``."""
    if isinstance(target, str) and target in {"barycenter", "pooled"}:
        return sums().to_barycenter if target == "barycenter" else sums().to_everyone
    samples, groups = ordered.samples(), ordered.groups
    resolved = resolve_target(
        target, samples, ordered.sizes, labels=groups.labels, names=groups.names, score_range=score_range
    )
    return sum(wasserstein(sample, resolved) for sample in samples)
