"""Weights of pairs by reliability: differences that chance explains for samples of these sizes do not count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairtransport.penalties.discrete import DiscretePenalty

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.penalties.comparisons import Comparisons

__all__ = ["chance_distances", "weigh_by_reliability"]

_MEAN_ABSOLUTE = float(np.sqrt(2.0 / np.pi))  # of a standard normal number
_BEYOND_CHANCE = 2.0  # times the mean distance under chance, which about one in thirty such pairs exceeds
_SLICES = 256


def chance_distances(scores: NDArray[np.float64], comparisons: Comparisons) -> NDArray[np.float64]:
    r"""Return the mean Wasserstein-1 distance of each pair if both samples came from the distribution of all rows.

    Notes
    -----
    With F the distribution function of all scores, the distance of two samples of sizes n and m is on average about
    :math:`\sqrt{2/\pi}\,\sqrt{1/n + 1/m} \int \sqrt{F (1 - F)}`.

    Examples
    --------
    >>> from fairtransport.criteria import demographic_parity
    >>> from fairtransport.groups import make_groups
    >>> pairs = demographic_parity(make_groups(np.repeat(["a", "b"], 500)))
    >>> chance_distances(np.linspace(0.0, 1.0, 1000), pairs).round(3).tolist()
    [0.02]
    """
    order = np.argsort(scores)
    weights = np.ones(scores.size) if comparisons.row_weights is None else comparisons.row_weights[order]
    height = np.cumsum(weights)[:-1] / weights.sum()
    spread = float(np.sqrt(np.maximum(height * (1.0 - height), 0.0)) @ np.diff(scores[order]))
    return np.asarray(_MEAN_ABSOLUTE * spread * comparisons.sampling_errors())


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
    chance = _BEYOND_CHANCE * chance_distances(scores, comparisons)
    largest = float((distances - chance).max(initial=0.0))
    if largest <= 0.0:
        return comparisons.reweighted(np.zeros(len(comparisons.pairs)))
    reliability = np.clip(1.0 - chance / np.maximum(distances, largest), 0.0, 1.0)
    return comparisons.reweighted(comparisons.weights * reliability)
