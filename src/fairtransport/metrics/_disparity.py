"""The three disparities of the paper, computed exactly: sums of Wasserstein-1 distances between score distributions.

On the line such a distance is the area between two distribution functions: the difference between two groups' shares
above a threshold, averaged over all thresholds in [0, 1].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport.groups import make_groups
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
    "strong_demographic_disparity",
    "strong_pairwise_disparity",
    "wasserstein_disparity",
]


def wasserstein_disparity(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    target: Any = "barycenter",
    sample_weight: ArrayLike | None = None,
    grouping: str = "crossed",
    missing: str = "error",
    min_size: int = 1,
) -> float:
    r"""Return the sum over groups of the distance to a target distribution (Wass1 in the paper).

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores within [0, 1].
    sensitive_features : column, table or Groups
        At least two groups; several columns are crossed.
    target : str, label, array-like or Sample, default "barycenter"
        ``"barycenter"`` (the Wasserstein-1 barycenter of the groups with equal weights, as in the paper),
        ``"barycenter_w2"`` (the Wasserstein-2 barycenter, weighted by group size), ``"pooled"`` (all rows), the label
        or name of a group, or a sample of scores within [0, 1]. All but the last depend on these scores; pass a sample
        for a fixed target. A group whose name is one of these strings cannot be selected by name.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows; equal when omitted.
    grouping, missing, min_size
        As in `fairtransport.make_groups`.

    Returns
    -------
    float
        0 when every group has the target distribution; at most the number of groups.

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
    ordered = sort_scores(scores, groups, sample_weight)
    return _to_target(ordered, target, ordered.distance_sums)


def strong_demographic_disparity(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
    grouping: str = "crossed",
    missing: str = "error",
    min_size: int = 1,
) -> float:
    r"""Return the sum over groups of the distance to all rows (strong demographic disparity, SDD in the paper).

    Parameters
    ----------
    scores, sensitive_features, sample_weight, grouping, missing, min_size
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
    return sort_scores(scores, groups, sample_weight).distance_sums().to_everyone


def strong_pairwise_disparity(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
    grouping: str = "crossed",
    missing: str = "error",
    min_size: int = 1,
) -> float:
    r"""Return the sum of distances between pairs of groups (strong pairwise demographic disparity, SPDD in the paper).

    Parameters
    ----------
    scores, sensitive_features, sample_weight, grouping, missing, min_size
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
    """
    groups = make_groups(sensitive_features, grouping=grouping, missing=missing, min_size=min_size, at_least=2)
    return sort_scores(scores, groups, sample_weight).distance_sums().between_pairs


def pairwise_distances(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
    grouping: str = "crossed",
    missing: str = "error",
    min_size: int = 1,
) -> NDArray[np.float64]:
    """Return the Wasserstein-1 distance between every two groups.

    Parameters
    ----------
    scores, sensitive_features, sample_weight, grouping, missing, min_size
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
    return sort_scores(scores, groups, sample_weight).distances()


def disparities(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    target: Any = "barycenter",
    sample_weight: ArrayLike | None = None,
    grouping: str = "crossed",
    missing: str = "error",
    min_size: int = 1,
) -> dict[str, float]:
    """Return all three disparities, computed from one sort of the scores.

    Parameters
    ----------
    scores, sensitive_features, target, sample_weight, grouping, missing, min_size
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
    ordered = sort_scores(scores, groups, sample_weight)
    sums = ordered.distance_sums()
    return {
        "wasserstein_disparity": _to_target(ordered, target, lambda: sums),
        "strong_demographic_disparity": sums.to_everyone,
        "strong_pairwise_disparity": sums.between_pairs,
    }


def _to_target(ordered: SortedScores, target: Any, sums: Callable[[], DistanceSums]) -> float:
    """Return the sum of the groups' distances to a target; for two targets it is among the ``sums``."""
    if isinstance(target, str) and target in {"barycenter", "pooled"}:
        return sums().to_barycenter if target == "barycenter" else sums().to_everyone
    samples, groups = ordered.samples(), ordered.groups
    resolved = resolve_target(target, samples, ordered.sizes, labels=groups.labels, names=groups.names)
    return sum(wasserstein(sample, resolved) for sample in samples)
