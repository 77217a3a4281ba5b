"""The disparities of the paper, their means over pairs, noise floors, and the largest difference.

On the line such a distance is the area between two distribution functions: the difference between two groups' shares
above a threshold, averaged over all thresholds in [0, 1].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairtransport._arrays import Floats, Ints
from fairtransport._validation import check_choice, check_count
from fairtransport.groups import GroupPolicy, Groups, rows_of_groups
from fairtransport.metrics.ranks import SortedScores, kept_strata, mean_rank_distance, scale_scores, sort_scores


def wasserstein_disparity(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    target: Any = "barycenter",
    scale: Any = "probability",
    sample_weight: ArrayLike | None = None,
    groups: GroupPolicy | None = None,
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
        or name of a group, or a fixed sample of scores.
    scale : {"probability", "score", "standardized", "ranks"} or float, default "probability"
        The scores and the unit of the distance: scores within [0, 1]; or any finite numbers in units of the score, in
        standard deviations of all scores, by rank among all rows (as in `rank_disparity`), or in multiples of a number.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows; equal when omitted.
    groups : GroupPolicy, optional
        How sensitive columns become groups. Every group counts equally, however small; leave groups of fewer than 30
        rows out with ``GroupPolicy(small="drop")``.

    Returns
    -------
    float
        :math:`\sum_a W_1(S_a, T)`, with :math:`S_a` the scores of group a and T the target: 0 when every group has the
        target distribution, of probabilities at most the number of groups.

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
    ordered, unit, score_range = _sort(scores, sensitive_features, groups, scale, sample_weight)
    return ordered.to_target(target, score_range) / unit


def strong_demographic_disparity(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    scale: Any = "probability",
    sample_weight: ArrayLike | None = None,
    groups: GroupPolicy | None = None,
) -> float:
    r"""Return the sum over groups of the distance to all rows (strong demographic disparity, SDD in the paper).

    Parameters
    ----------
    scores, sensitive_features, scale, sample_weight, groups
        As in `wasserstein_disparity`. With overlapping groups (``crossed=False``) every row still counts once in the
        distribution of all rows.

    Returns
    -------
    float
        :math:`\sum_a W_1(S_a, S)`, S the scores of all rows; 0 when all groups have the same distribution.

    Examples
    --------
    >>> strong_demographic_disparity([0.0, 0.5, 0.5, 0.5], sensitive_features=["a", "b", "b", "b"])
    0.5
    """
    ordered, unit, _ = _sort(scores, sensitive_features, groups, scale, sample_weight)
    return ordered.distance_sums.to_everyone / unit


def strong_pairwise_disparity(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    scale: Any = "probability",
    sample_weight: ArrayLike | None = None,
    groups: GroupPolicy | None = None,
) -> float:
    r"""Return the sum of distances between pairs of groups (strong pairwise demographic disparity, SPDD in the paper).

    Parameters
    ----------
    scores, sensitive_features, scale, sample_weight, groups
        As in `wasserstein_disparity`.

    Returns
    -------
    float
        :math:`\sum_{a < b} W_1(S_a, S_b)`; 0 when all groups have the same distribution.

    See Also
    --------
    pairwise_disparity : The mean in place of the sum.

    Examples
    --------
    >>> strong_pairwise_disparity([0.0, 0.25, 0.5], sensitive_features=["a", "b", "c"])
    1.0
    >>> strong_pairwise_disparity([20, 40, 40, 60], sensitive_features=["a", "a", "b", "b"], scale="score")
    20.0
    """
    ordered, unit, _ = _sort(scores, sensitive_features, groups, scale, sample_weight)
    return ordered.distance_sums.between_pairs / unit


def pairwise_disparity(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    scale: Any = "probability",
    sample_weight: ArrayLike | None = None,
    groups: GroupPolicy | None = None,
) -> float:
    r"""Return the mean distance between two groups, over all pairs of groups.

    It is the figure that audits, trade-off curves and limits such as ``max_disparity`` refer to.

    Parameters
    ----------
    scores, sensitive_features, scale, sample_weight, groups
        As in `wasserstein_disparity`.

    Returns
    -------
    float
        :math:`\frac{2}{G (G - 1)} \sum_{a < b} W_1(S_a, S_b)` of G groups; 0 when all have the same distribution, of
        probabilities at most 1.

    See Also
    --------
    rank_disparity : The same mean for ranks, which does not change under increasing maps of the scores.
    noise_floor : The disparity expected by chance.

    Notes
    -----
    Every group counts equally, however small, and a group of few rows has a large disparity by chance. Leave small
    groups out with ``groups=GroupPolicy(small="drop")``.

    Examples
    --------
    >>> round(pairwise_disparity([0.0, 0.25, 0.5], sensitive_features=["a", "b", "c"]), 3)
    0.333
    """
    ordered, unit, _ = _sort(scores, sensitive_features, groups, scale, sample_weight)
    return ordered.distance_sums.between_pairs / comb(len(ordered.groups), 2) / unit


def rank_disparity(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: ArrayLike | None = None,
    groups: GroupPolicy | None = None,
) -> float:
    r"""Return the mean over pairs of groups of the distance between their pooled ranks.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Any finite numbers: probabilities, logits, predictions of a regression, decile scores.
    sensitive_features, sample_weight, groups
        As in `wasserstein_disparity`. With overlapping groups (``crossed=False``) every row still counts once among
        all rows.

    Returns
    -------
    float
        0 when all groups have the same distribution of ranks; 0.5 for two groups of equal size whose scores do not
        overlap.

    Notes
    -----
    With :math:`R_a` the mid-ranks of group a among all rows (`pooled_ranks`), the mean over unordered pairs of groups
    of

    .. math:: W_1(R_a, R_b) = \int_0^1 |P(R_a > 1 - q) - P(R_b > 1 - q)| \, dq.

    This is the difference between two groups' selection rates, averaged over all shares q of rows selected. It is
    invariant under increasing maps of the scores, so a model cannot lower it by shrinking its scores toward their mean.
    Every group counts equally, however small; leave small groups out with ``groups=GroupPolicy(small="drop")``.

    Examples
    --------
    >>> rank_disparity([0.1, 0.2, 0.3, 0.4], sensitive_features=["a", "a", "b", "b"])
    0.5
    """
    made, (scores, sample_weight) = rows_of_groups(sensitive_features, groups, scores, sample_weight)
    return mean_rank_distance(scores, made, sample_weight)


def pairwise_distances(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    scale: Any = "probability",
    sample_weight: ArrayLike | None = None,
    groups: GroupPolicy | None = None,
) -> Floats:
    """Return the Wasserstein-1 distance between every two groups.

    Parameters
    ----------
    scores, sensitive_features, scale, sample_weight, groups
        As in `wasserstein_disparity`.

    Returns
    -------
    array of shape (n_groups, n_groups)
        Symmetric, zero on the diagonal; groups in the order of ``make_groups(sensitive_features).labels``.

    Examples
    --------
    >>> pairwise_distances([0.0, 0.25, 0.5], sensitive_features=["a", "b", "c"])
    array([[0.  , 0.25, 0.5 ],
           [0.25, 0.  , 0.25],
           [0.5 , 0.25, 0.  ]])
    """
    ordered, unit, _ = _sort(scores, sensitive_features, groups, scale, sample_weight)
    return ordered.distances() / unit


def disparities(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    target: Any = "barycenter",
    scale: Any = "probability",
    sample_weight: ArrayLike | None = None,
    groups: GroupPolicy | None = None,
) -> dict[str, float]:
    """Return the three disparities of the paper by name, computed from one sort of the scores.

    Parameters
    ----------
    scores, sensitive_features, target, scale, sample_weight, groups
        As in `wasserstein_disparity`.

    Returns
    -------
    dict of str to float
        The values of the functions of these names.

    Examples
    --------
    >>> disparities([0.0, 1.0], sensitive_features=["a", "b"])
    {'wasserstein_disparity': 1.0, 'strong_demographic_disparity': 1.0, 'strong_pairwise_disparity': 1.0}
    """
    ordered, unit, score_range = _sort(scores, sensitive_features, groups, scale, sample_weight)
    return {name: value / unit for name, value in ordered.disparities(target, score_range).items()}


def _sort(
    scores: ArrayLike, sensitive_features: Any, groups: GroupPolicy | None, scale: Any, sample_weight: ArrayLike | None
) -> tuple[SortedScores, float, tuple[float, float] | None]:
    """Return the sorted scores of the rows with a group, the unit of their distances, and the range of a target."""
    made, (scores, sample_weight) = rows_of_groups(sensitive_features, groups, scores, sample_weight)
    if isinstance(scale, str) and scale == "ranks":
        return sort_scores(scores, made, sample_weight).ranked(), 1.0, (0.0, 1.0)
    values, unit, score_range = scale_scores(scores, scale, sample_weight)
    return sort_scores(values, made, sample_weight), unit, score_range


# The noise floor of a disparity: its distribution when group membership is permuted.


@dataclass(frozen=True, eq=False)
class NoiseFloor:
    """A metric and its values under permutations of group membership.

    Attributes
    ----------
    observed : float
        The metric of the actual groups.
    values : array of shape (n_shuffles,)
        The metric after each permutation.
    """

    observed: float
    values: Floats

    @property
    def mean(self) -> float:
        """The noise floor: the mean over permutations."""
        return float(self.values.mean())

    @property
    def sd(self) -> float:
        """Standard deviation over permutations (n - 1 in the denominator)."""
        return float(self.values.std(ddof=1))

    @property
    def p_value(self) -> float:
        """One-sided p-value of the permutation test, (1 + n_exceeding) / (1 + n_permutations)."""
        # Ties count as exceeding, also where rounding errors break them.
        slack = 1e-12 * max(1.0, abs(self.observed))
        n_exceeding = int(np.count_nonzero(self.values >= self.observed - slack))
        return (1 + n_exceeding) / (1 + self.values.size)


def noise_floor(
    metric: Callable[..., float],
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    within: Any = None,
    n_shuffles: int = 100,
    random_state: int | np.random.Generator | None = None,
    groups: GroupPolicy | None = None,
    **options: Any,
) -> NoiseFloor:
    r"""Return the distribution of a disparity when group membership is permuted.

    Parameters
    ----------
    metric : callable
        A disparity of this package, or any ``metric(scores, sensitive_features=groups, **options)`` that accepts
        `fairtransport.groups.Groups`.
    scores : array-like of shape (n,)
        Scores that the metric takes.
    sensitive_features : column, table or Groups
        At least two groups; several columns are crossed.
    within : column, table or Strata, optional
        Group membership is permuted only among the rows with the same value, such as the label or the stratum that a
        disparity conditions on.
    n_shuffles : int, default 100
        Number of permutations, at least 2.
    random_state : int, Generator or None
        Seed of the permutations.
    groups : GroupPolicy, optional
        How sensitive columns become groups.
    **options
        Further arguments of the metric: ``target``, ``sample_weight``. Weights are not permuted.

    Returns
    -------
    NoiseFloor
        With ``observed``, ``values``, ``mean``, ``sd`` and ``p_value``, which is never 0: the observed value counts
        among the permutations. Only the excess over the mean is evidence of a difference.

    Examples
    --------
    >>> from functools import partial
    >>> from fairtransport.metrics import separation_disparity
    >>> scores, y = [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9], [0, 1, 0, 1, 0, 1, 0, 1]
    >>> metric, groups = partial(separation_disparity, y), ["a", "a", "a", "a", "b", "b", "b", "b"]
    >>> floor = noise_floor(metric, scores, sensitive_features=groups, within=y, random_state=0)
    >>> floor.observed > floor.mean + floor.sd
    True
    """
    if not callable(metric):
        raise TypeError(f"metric must be a function, such as strong_pairwise_disparity; got {type(metric).__name__}.")
    count = check_count(n_shuffles, name="n_shuffles", least=2)
    every_row = np.arange(np.size(scores))
    made, (scores, weights, kept) = rows_of_groups(
        sensitive_features, groups, scores, options.get("sample_weight"), every_row
    )
    if weights is not None:
        options["sample_weight"] = weights
    rng = np.random.default_rng(random_state)
    observed = metric(scores, sensitive_features=made, **options)
    rows = [np.arange(made.n_rows)]
    if within is not None:
        rows = list(kept_strata(within, made, every_row, kept, name="within").rows)
    values = [metric(scores, sensitive_features=_shuffled(made, rows, rng), **options) for _ in range(count)]
    return NoiseFloor(float(observed), np.array(values, dtype=np.float64))


def _shuffled(groups: Groups, parts: list[Ints], rng: np.random.Generator) -> Groups:
    """Return the groups with the rows of each part permuted."""
    order = np.empty(groups.n_rows, dtype=np.int64)
    for rows in parts:
        order[rows] = rng.permutation(rows)
    return groups.select(order)


# The Kolmogorov-Smirnov disparity: the largest difference between groups' shares above any threshold.

_BLOCK = 1 << 20  # cumulative shares in memory


def kolmogorov_smirnov_disparity(
    scores: ArrayLike,
    *,
    sensitive_features: Any,
    against: str = "pairs",
    reduce: str = "max",
    sample_weight: ArrayLike | None = None,
    groups: GroupPolicy | None = None,
) -> float:
    r"""Return the largest difference between two groups' shares of scores above the same threshold.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Any finite numbers: probabilities, logits, predictions of a regression, decile scores.
    sensitive_features, sample_weight, groups
        As in `wasserstein_disparity`.
    against : {"pairs", "everyone"}, default "pairs"
        Whether groups are compared with each other or with all rows.
    reduce : {"max", "mean", "sum"}, default "max"
        How the statistics of all pairs, or of all groups, become one figure.

    Returns
    -------
    float
        From 0, when all groups have the same distribution, to 1 for ``reduce="max"`` and ``"mean"``.

    Notes
    -----
    With :math:`S_a` the scores of group a, for each pair of groups

    .. math:: \sup_\tau |P(S_a > \tau) - P(S_b > \tau)|,

    the statistic of the two-sample Kolmogorov-Smirnov test. It is invariant under increasing maps of the scores.

    References
    ----------
    Chzhen, Denis, Hebiri, Oneto and Pontil (2020), "Fair Regression with Wasserstein Barycenters", NeurIPS.
    Agarwal, Dudik and Wu (2019), "Fair Regression: Quantitative Definitions and Reduction-Based Algorithms", ICML.

    Examples
    --------
    >>> kolmogorov_smirnov_disparity([10, 20, 25, 35], sensitive_features=["a", "b", "a", "b"])
    0.5
    """
    check_choice(against, ("pairs", "everyone"), name="against")
    check_choice(reduce, ("max", "mean", "sum"), name="reduce")
    made, (scores, sample_weight) = rows_of_groups(sensitive_features, groups, scores, sample_weight)
    ordered = sort_scores(scores, made, sample_weight)
    first, second = np.triu_indices(len(made), 1)
    largest = np.zeros(len(made) if against == "everyone" else first.size)
    for below in _shares_below(ordered):
        if against == "everyone":
            gaps = np.abs(below[:, :-1] - below[:, -1:]).max(axis=0)
        elif reduce == "max":  # the extremes at each threshold suffice
            gaps = np.ptp(below[:, :-1], axis=1).max(keepdims=True)
        else:
            gaps = np.array([np.abs(below[:, a] - below[:, b]).max() for a, b in zip(first, second, strict=True)])
        largest = np.maximum(largest, gaps)
    return float(getattr(largest, reduce)())


def _shares_below(ordered: SortedScores) -> Iterator[Floats]:
    """Yield blocks of the shares of each group, and of all rows, at or below each distinct score."""
    n_groups, n = len(ordered.groups), ordered.values.size
    size = max(1, _BLOCK // (n_groups + 1))
    total = np.zeros(n_groups + 1)
    for start in range(0, n, size):
        end = min(start + size, n)
        codes = ordered.codes[start:end].astype(np.int64)
        masses = np.ones(codes.size) if ordered.masses is None else ordered.masses[start:end]
        steps = np.zeros((codes.size, n_groups + 1))
        steps[np.arange(codes.size), codes] = masses
        if not ordered.separate:
            steps[:, -1] = masses
        sums = total + np.cumsum(steps, axis=0)
        total = sums[-1].copy()
        following = ordered.values[start + 1 : end + 1]
        last_of_tie = np.append(following != ordered.values[start : start + following.size], True)[: codes.size]
        if last_of_tie.any():
            yield sums[last_of_tie] / ordered.totals
