"""Weights of pairs by reliability: differences that chance explains for samples of these sizes do not count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairtransport.penalties.discrete import DiscretePenalty

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.penalties.base import TransportPenalty
    from fairtransport.penalties.comparisons import Comparisons

__all__ = ["chance_distances", "chance_spreads", "net_of_chance", "weigh_by_reliability"]

_MEAN_ABSOLUTE = float(np.sqrt(2.0 / np.pi))  # of a standard normal number
_BEYOND_CHANCE = 2.0  # times the mean distance under chance, which about one in thirty such pairs exceeds
_SLICES = 256
_SHUFFLES = 3
_ROUNDING = 1e-9


def chance_distances(scores: NDArray[np.float64], comparisons: Comparisons) -> NDArray[np.float64]:
    r"""Return the mean Wasserstein-1 distance of each pair if both samples came from one distribution.

    Notes
    -----
    With F the distribution function of all scores, or of those of the pair's stratum, the distance
    of two samples of sizes n and m is on average about
    :math:`\sqrt{2/\pi}\,\sqrt{1/n + 1/m} \int \sqrt{F (1 - F)}`.

    Examples
    --------
    >>> from fairtransport.criteria import demographic_parity
    >>> from fairtransport.groups import make_groups
    >>> pairs = demographic_parity(make_groups(np.repeat(["a", "b"], 500)))
    >>> chance_distances(np.linspace(0.0, 1.0, 1000), pairs).round(3).tolist()
    [0.02]
    """
    return np.asarray(_MEAN_ABSOLUTE * chance_spreads(scores, comparisons) * comparisons.sampling_errors())


def chance_spreads(scores: NDArray[np.float64], comparisons: Comparisons) -> NDArray[np.float64]:
    r"""Return :math:`\int \sqrt{F (1 - F)}` for each pair, F the distribution function of the rows of its stratum."""
    if not comparisons.strata:
        return np.full(len(comparisons.pairs), _spread(scores, comparisons.row_weights))
    strata = np.array(comparisons.strata)
    spreads = np.zeros(strata.max() + 1)
    for stratum in range(spreads.size):
        rows = np.unique(np.concatenate([comparisons.cells[cell] for cell in np.flatnonzero(strata == stratum)]))
        weights = None if comparisons.row_weights is None else comparisons.row_weights[rows]
        spreads[stratum] = _spread(scores[rows], weights)
    return np.asarray(spreads[strata[comparisons.pairs[:, 0]]])


def _spread(scores: NDArray[np.float64], row_weights: NDArray[np.float64] | None) -> float:
    order = np.argsort(scores)
    weights = np.ones(scores.size) if row_weights is None else row_weights[order]
    height = np.cumsum(weights)[:-1] / weights.sum()
    return float(np.sqrt(np.maximum(height * (1.0 - height), 0.0)) @ np.diff(scores[order]))


def weigh_by_reliability(comparisons: Comparisons, scores: NDArray[np.float64]) -> Comparisons:
    r"""Return comparisons weighted by how far their distances exceed those under chance for samples of their sizes.

    Parameters
    ----------
    comparisons : Comparisons
    scores : ndarray of shape (n_rows,)
        Scores of an initial model.

    Returns
    -------
    Comparisons
        All weights are 0 where no pair differs by more than chance.

    Notes
    -----
    With :math:`d_k` the Wasserstein-1 distance of a pair, :math:`c_k` twice its mean under chance, and
    :math:`d^*` the largest :math:`d_k - c_k` of all pairs, the weight of a pair is multiplied by
    :math:`(1 - c_k / \max(d_k, d^*))_+`. A pair of large groups counts almost in full also where it agrees, so that
    training keeps it so. A group of three rows neither dominates the sum nor dilutes it.

    What the pairs of a family (the same groups in many strata) show together is more precise than each of them. So
    :math:`d_k` is their mean, by precision, and :math:`c_k` the mean under chance plus the norm of its terms, which
    for one pair is twice its mean. Within a family, strata count by their precision: training would otherwise fit the
    noise of the small ones.

    Examples
    --------
    >>> from fairtransport.criteria import demographic_parity
    >>> from fairtransport.groups import make_groups
    >>> groups = make_groups(["a"] * 500 + ["b"] * 500 + ["c"] * 3)
    >>> scores = np.concatenate((np.linspace(0.0, 0.5, 500), np.linspace(0.2, 0.7, 500), [0.1, 0.3, 0.4]))
    >>> weigh_by_reliability(demographic_parity(groups), scores).weights.round(1).tolist()  # the smallest group first
    [0.0, 0.0, 0.9]
    """
    exact = DiscretePenalty(huber_width=0.0, n_slices=_SLICES, scale="score")
    distances = exact.value_and_gradient(scores, comparisons.reweighted(np.ones(len(comparisons.pairs)))).distances
    chance, errors = chance_distances(scores, comparisons), comparisons.sampling_errors()
    precision = comparisons.weights / errors
    families = np.arange(len(distances)) if comparisons.families is None else comparisons.families
    observed, _ = comparisons.family_means(distances, precision)
    expected, noise = comparisons.family_means(chance, precision)
    limit = expected + (_BEYOND_CHANCE - 1.0) * noise
    largest = float((observed - limit).max(initial=0.0))
    if largest <= 0.0:
        return comparisons.reweighted(np.zeros(len(comparisons.pairs)))
    scale = np.maximum(observed, largest)
    reliability = np.clip(1.0 - limit / scale, 0.0, 1.0)[families]
    reliability *= comparisons.smallest_errors() / errors
    return comparisons.reweighted(comparisons.weights * reliability)


def net_of_chance(
    comparisons: Comparisons, scores: NDArray[np.float64], penalty: TransportPenalty
) -> tuple[NDArray[np.float64], float] | None:
    r"""Return which part of what chance adds to each distance is to be left out of a sum over strata.

    Parameters
    ----------
    comparisons : Comparisons
    scores : ndarray of shape (n_rows,)
        Scores of an initial model.
    penalty : TransportPenalty
        Its distances between random parts of the strata show what chance adds to it.

    Returns
    -------
    ndarray of shape (n_pairs,) and float, or None
        Multiplied with `Comparisons.sampling_errors`, the factors of a `ChanceTerm`; and what remains of chance, in
        units of what is left out. None where every pair is on its own.

    Notes
    -----
    Of k strata of equal size the part is :math:`1 - 1/\sqrt{k}`: what remains of chance is the error of the sum, as
    for one pair. The sum then does not fall when scores become equal within strata, whose groups agree.
    """
    if comparisons.families is None or not comparisons.active.size:
        return None
    chance = chance_distances(scores, comparisons)
    means, norms = comparisons.family_means(chance, comparisons.weights)
    parts = np.where(means > 0.0, 1.0 - norms / np.maximum(means, 1e-300), 0.0)
    if not (parts > _ROUNDING).any():
        return None
    observed = np.mean(
        [
            penalty.value_and_gradient(scores, comparisons.shuffled(np.random.default_rng(seed))).value
            for seed in range(_SHUFFLES)
        ]
    )
    unit = penalty.unit if penalty.scale == "standardized" else 1.0
    expected = float(comparisons.weights @ chance) / unit
    by_pair = parts[comparisons.families]
    left_out, remaining = (float((comparisons.weights * chance) @ part) for part in (by_pair, 1.0 - by_pair))
    return np.asarray(_MEAN_ABSOLUTE * by_pair * float(observed) / expected), remaining / left_out
