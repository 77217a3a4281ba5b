"""How far apart the groups' score distributions are: the paper's three disparities, exact.

All are sums of Wasserstein-1 distances. On the line such a distance is the area between two distribution
functions, that is, the difference between two groups' shares above a threshold, averaged over all thresholds
in [0, 1].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport.metrics._ordered import OrderedScores, Totals, order_scores
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
    r"""Sum over groups of the distance to a target distribution (Wass1 in the paper).

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores within [0, 1].
    sensitive_features : column, table or Groups
        At least two groups; several columns are crossed.
    target : str, label, array-like or Sample, default "barycenter"
        ``"barycenter"`` (the groups' Wasserstein-1 barycenter with equal weights, the paper's),
        ``"barycenter_w2"`` (Wasserstein-2, weights by group size), ``"pooled"`` (all rows), a group's label
        or name, or a sample of scores within [0, 1]. Words and labels are about these very scores; to measure
        against a target that stays fixed, pass its scores. A group that is itself called ``"pooled"`` or the
        like cannot be asked for by name: the word wins.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows; equal when omitted.
    grouping, missing, min_size
        How groups are made; see `fairtransport.make_groups`.

    Returns
    -------
    float
        0 when every group has the target distribution; at most the number of groups.

    Notes
    -----
    With S_a the scores of group a and T the target (section Experiments of the paper),

    .. math:: \sum_a W_1(S_a, T).

    Every group counts the same, however small.

    Examples
    --------
    >>> wasserstein_disparity([0.0, 0.25, 0.5], sensitive_features=["a", "b", "c"])
    0.5
    >>> wasserstein_disparity([0.0, 0.25, 0.5], sensitive_features=["a", "b", "c"], target="c")
    0.75
    """
    ordered = order_scores(
        scores, sensitive_features, sample_weight, grouping=grouping, missing=missing, min_size=min_size
    )
    return _to_target(ordered, target, ordered.sums)


def strong_demographic_disparity(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
    grouping: str = "crossed",
    missing: str = "error",
    min_size: int = 1,
) -> float:
    r"""Sum over groups of the distance to everyone (SDD in the paper).

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores within [0, 1].
    sensitive_features : column, table or Groups
        At least two groups; several columns are crossed.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows; equal when omitted.
    grouping, missing, min_size
        How groups are made; see `fairtransport.make_groups`. With overlapping groups (``grouping="each"``),
        everyone is still every row once.

    Returns
    -------
    float

    Notes
    -----
    With S_a the scores of group a and S those of all rows (section Experiments of the paper),

    .. math:: \sum_a E_{\tau \sim U[0,1]} |P(S_a > \tau) - P(S > \tau)| = \sum_a W_1(S_a, S).

    Examples
    --------
    >>> strong_demographic_disparity([0.0, 0.5, 0.5, 0.5], sensitive_features=["a", "b", "b", "b"])
    0.5
    """
    ordered = order_scores(
        scores, sensitive_features, sample_weight, grouping=grouping, missing=missing, min_size=min_size
    )
    return ordered.sums().to_everyone


def strong_pairwise_disparity(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
    grouping: str = "crossed",
    missing: str = "error",
    min_size: int = 1,
) -> float:
    r"""Sum over pairs of groups of the distance between them (SPDD in the paper).

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores within [0, 1].
    sensitive_features : column, table or Groups
        At least two groups; several columns are crossed.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows; equal when omitted.
    grouping, missing, min_size
        How groups are made; see `fairtransport.make_groups`.

    Returns
    -------
    float

    Notes
    -----
    Over unordered pairs of groups (section Experiments of the paper),

    .. math:: \sum_{a < b} E_{\tau \sim U[0,1]} |P(S_a > \tau) - P(S_b > \tau)| = \sum_{a < b} W_1(S_a, S_b).

    Examples
    --------
    >>> strong_pairwise_disparity([0.0, 0.25, 0.5], sensitive_features=["a", "b", "c"])
    1.0
    """
    ordered = order_scores(
        scores, sensitive_features, sample_weight, grouping=grouping, missing=missing, min_size=min_size
    )
    return ordered.sums().between_pairs


def pairwise_distances(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
    grouping: str = "crossed",
    missing: str = "error",
    min_size: int = 1,
) -> NDArray[np.float64]:
    """Wasserstein-1 distance between every two groups.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores within [0, 1].
    sensitive_features : column, table or Groups
        At least two groups; several columns are crossed.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows; equal when omitted.
    grouping, missing, min_size
        How groups are made; see `fairtransport.make_groups`.

    Returns
    -------
    array of shape (n_groups, n_groups)
        Symmetric, zero on the diagonal; groups in the order of ``make_groups(sensitive_features).labels``.

    Notes
    -----
    The entries above the diagonal sum to `strong_pairwise_disparity`.

    Examples
    --------
    >>> pairwise_distances([0.0, 0.25, 0.5], sensitive_features=["a", "b", "c"])
    array([[0.  , 0.25, 0.5 ],
           [0.25, 0.  , 0.25],
           [0.5 , 0.25, 0.  ]])
    """
    ordered = order_scores(
        scores, sensitive_features, sample_weight, grouping=grouping, missing=missing, min_size=min_size
    )
    return ordered.distances()


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
    """All three disparities from one sort of the scores.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores within [0, 1].
    sensitive_features : column, table or Groups
        At least two groups; several columns are crossed.
    target : str, label, array-like or Sample, default "barycenter"
        As in `wasserstein_disparity`.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows; equal when omitted.
    grouping, missing, min_size
        How groups are made; see `fairtransport.make_groups`.

    Returns
    -------
    dict of str to float
        ``wasserstein_disparity``, ``strong_demographic_disparity`` and ``strong_pairwise_disparity``.

    Notes
    -----
    Each value equals that of the function of its name.

    Examples
    --------
    >>> disparities([0.0, 1.0], sensitive_features=["a", "b"])
    {'wasserstein_disparity': 1.0, 'strong_demographic_disparity': 1.0, 'strong_pairwise_disparity': 1.0}
    """
    ordered = order_scores(
        scores, sensitive_features, sample_weight, grouping=grouping, missing=missing, min_size=min_size
    )
    sums = ordered.sums()
    return {
        "wasserstein_disparity": _to_target(ordered, target, lambda: sums),
        "strong_demographic_disparity": sums.to_everyone,
        "strong_pairwise_disparity": sums.between_pairs,
    }


def _to_target(ordered: OrderedScores, target: Any, sums: Callable[[], Totals]) -> float:
    """Sum of the groups' distances to a target; two targets are among the sums that one pass gives."""
    if isinstance(target, str) and target in {"barycenter", "pooled"}:
        return sums().to_barycenter if target == "barycenter" else sums().to_everyone
    samples, groups = ordered.samples(), ordered.groups
    aim = resolve_target(target, samples, ordered.sizes, labels=groups.labels, names=groups.names)
    return sum(wasserstein(sample, aim) for sample in samples)
