"""The noise floor of a disparity: its distribution when group membership is permuted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_count, check_length
from fairtransport.groups import make_groups
from fairtransport.strata import make_strata

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.groups import Groups

__all__ = ["NoiseFloor", "noise_floor"]


@dataclass(frozen=True, eq=False)
class NoiseFloor:
    """A metric and its values under permutations of group membership.

    Parameters
    ----------
    observed : float
        The metric of the actual groups.
    values : array of shape (n_shuffles,)
        The metric after each permutation.
    """

    observed: float
    values: NDArray[np.float64]

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
    grouping: str = "crossed",
    missing: str = "error",
    min_size: int = 1,
    **options: Any,
) -> NoiseFloor:
    r"""Return the distribution of a disparity when group membership is permuted.

    Parameters
    ----------
    metric : callable
        A disparity of this package, or any ``metric(scores, sensitive_features=groups, **options)`` that accepts
        `fairtransport.Groups`.
    scores : array-like of shape (n,)
        Scores that the metric takes.
    sensitive_features : column, table or Groups
        At least two groups; several columns are crossed.
    within : column, table or Strata, optional
        Group membership is permuted only among the rows with the same value, such as the label or the stratum that a
        disparity conditions on; see the examples.
    n_shuffles : int, default 100
        Number of permutations, at least 2.
    random_state : int, Generator or None
        Seed of the permutations.
    grouping, missing, min_size
        As in `fairtransport.make_groups`.
    **options
        Further arguments of the metric: ``target``, ``sample_weight``. Weights are not permuted.

    Returns
    -------
    NoiseFloor
        With ``observed``, ``values``, ``mean``, ``sd`` and ``p_value``.

    Notes
    -----
    The distance between two finite samples of one distribution is almost never 0: with m and n rows their Wasserstein-1
    distance is of the order :math:`\sqrt{1/m + 1/n}`. Only the excess of a disparity over this floor is evidence of a
    difference. The p-value is that of the permutation test with the observed value counted among the permutations, so
    it is never 0.

    Examples
    --------
    >>> from fairtransport.metrics import strong_pairwise_disparity
    >>> scores = [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
    >>> groups = ["a", "a", "a", "a", "b", "b", "b", "b"]
    >>> floor = noise_floor(strong_pairwise_disparity, scores, sensitive_features=groups, random_state=0)
    >>> floor.observed > floor.mean + 2 * floor.sd
    True

    Among people with the same label, the labels come first:

    >>> from functools import partial
    >>> from fairtransport.metrics import separation_disparity
    >>> y = [0, 1, 0, 1, 0, 1, 0, 1]
    >>> metric = partial(separation_disparity, y)
    >>> round(noise_floor(metric, scores, sensitive_features=groups, within=y, random_state=0).observed, 3)
    0.5
    """
    if not callable(metric):
        raise TypeError(f"metric must be a function, such as strong_pairwise_disparity; got {type(metric).__name__}.")
    count = check_count(n_shuffles, name="n_shuffles", least=2)
    groups = make_groups(sensitive_features, grouping=grouping, missing=missing, min_size=min_size, at_least=2)
    rng = np.random.default_rng(random_state)
    observed = metric(scores, sensitive_features=groups, **options)
    rows = [np.arange(groups.n_rows)]
    if within is not None:
        strata = make_strata(within, n_groups=len(groups))
        check_length(range(strata.n_rows), size=groups.n_rows, name="within")
        rows = list(strata.rows)
    values = [metric(scores, sensitive_features=_shuffled(groups, rows, rng), **options) for _ in range(count)]
    return NoiseFloor(float(observed), np.array(values, dtype=np.float64))


def _shuffled(groups: Groups, parts: list[NDArray[np.int64]], rng: np.random.Generator) -> Groups:
    """Return the groups with the rows of each part permuted."""
    order = np.empty(groups.n_rows, dtype=np.int64)
    for rows in parts:
        order[rows] = rng.permutation(rows)
    return groups.select(order)
