"""What rows can show about parity: a test of the disparity, and an upper confidence limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.metrics.ranks import pooled_ranks
from fairtransport.penalties.discrete import DiscretePenalty

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.penalties import Comparisons

__all__ = ["ParityEvidence", "parity_evidence"]

_LEVEL = 0.05  # of the test, and of the upper limit
_MATERIAL, _IMMATERIAL = 0.05, 0.02  # mean differences of selection rates: one that must be excluded, and a small one
_SAMPLES = 400  # of the noise
_SLICES, _NOISE_SLICES = 256, 128
_MAX_ENTRIES = 1 << 21  # of the noise, in memory at a time


@dataclass(frozen=True)
class ParityEvidence:
    """The disparity of rows that a model was not trained on, and what their number can show.

    Attributes
    ----------
    disparity : float
        The sum of the Wasserstein-1 distances between pairs of groups; all pairs count the same, whatever their sizes.
    floor : float
        Its noise floor: the mean of the disparity of groups that differ by chance alone.
    p_value : float
        Of the hypothesis that they do.
    limit : float
        Upper confidence limit of the disparity of all people, 95 %.
    rate_limit : float
        Upper confidence limit of the mean difference of selection rates, over pairs of groups and shares selected.
    n_rows, smallest_group : int
        Number of rows, in all and in the smallest group.
    """

    disparity: float
    floor: float
    p_value: float
    limit: float
    rate_limit: float
    n_rows: int
    smallest_group: int

    @property
    def shows_difference(self) -> bool:
        """Whether groups differ by more than chance, and by an amount that may matter."""
        return self.p_value <= _LEVEL and not self.excludes_difference

    @property
    def shows_parity(self) -> bool:
        """Whether these rows exclude that groups differ by an amount that matters."""
        return not self.shows_difference and self.rate_limit <= _MATERIAL

    @property
    def excludes_difference(self) -> bool:
        """Whether these rows exclude that groups differ by even a small amount."""
        return self.rate_limit <= _IMMATERIAL


def parity_evidence(scores: NDArray[np.float64], comparisons: Comparisons) -> ParityEvidence:
    r"""Return what the scores of some rows show about parity.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
    comparisons : Comparisons
        Pairs of groups, weighted by the criterion alone.

    Returns
    -------
    ParityEvidence

    Notes
    -----
    The disparity is a norm of the differences D between the groups' distribution functions. With sampling noise h it is
    observed as :math:`\|D + h\|`, so that

    .. math:: \|D\| \le \|D + h\| + \|h\| .

    The limit adds the 95 % quantile of :math:`\|h\|`. The triangle inequality makes it valid for every direction of the
    differences and every number of groups; it is wide where there are many. With F the distribution function of all
    scores, the noise of a group of n rows is that of a Brownian bridge B, :math:`B(F) / \sqrt{n}`; permuted groups
    differ by the same amount. The limit of selection rates is that of the same sum for ranks.

    Examples
    --------
    >>> from fairtransport.criteria import demographic_parity
    >>> from fairtransport.groups import make_groups
    >>> scores = np.random.default_rng(0).random(5_000)
    >>> many = parity_evidence(scores, demographic_parity(make_groups(np.arange(5_000) % 2)))
    >>> few = parity_evidence(scores[:200], demographic_parity(make_groups(np.arange(200) % 2)))
    >>> many.shows_parity, few.shows_parity
    (True, False)
    """
    exact = DiscretePenalty(huber_width=0.0, n_slices=_SLICES, scale="score")
    ranks = pooled_ranks(scores, comparisons.row_weights)
    disparity, of_ranks = (float(exact.value_and_gradient(values, comparisons).value) for values in (scores, ranks))
    noise, noise_of_ranks = _noise(_quantile_steps(scores, comparisons.row_weights), comparisons)
    varies = bool(np.ptp(scores) > 0.0)
    rates = (of_ranks + float(np.quantile(noise_of_ranks, 1.0 - _LEVEL))) / float(comparisons.weights.sum())
    return ParityEvidence(
        disparity=disparity,
        floor=float(noise.mean()),
        p_value=(1 + int(np.count_nonzero(noise >= disparity))) / (1 + _SAMPLES),
        limit=disparity + float(np.quantile(noise, 1.0 - _LEVEL)),
        rate_limit=rates if varies else 0.0,
        n_rows=len(scores),
        smallest_group=min(cell.size for cell in comparisons.cells),
    )


def _quantile_steps(scores: NDArray[np.float64], row_weights: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Return the differences between equidistant quantiles of all scores."""
    order = np.argsort(scores)
    mass = np.ones(scores.size) if row_weights is None else row_weights[order]
    levels = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    return np.diff(np.interp(np.linspace(0.0, 1.0, _NOISE_SLICES + 1), levels, scores[order]))


def _noise(widths: NDArray[np.float64], comparisons: Comparisons) -> NDArray[np.float64]:
    """Return samples of both disparities, of scores and of ranks, under chance: shape (2, n_samples)."""
    rng, edges = np.random.default_rng(0), np.linspace(0.0, 1.0, _NOISE_SLICES + 1)
    heights = 0.5 * (edges[1:] + edges[:-1])
    steps = np.sqrt(np.diff(heights, prepend=0.0, append=1.0))
    errors = 1.0 / np.sqrt(np.maximum(comparisons.sizes, 1e-300))[:, None, None]
    both = np.column_stack((widths, np.diff(edges)))
    block = max(1, _MAX_ENTRIES // (len(errors) * len(steps)))
    samples = []
    for first in range(0, _SAMPLES, block):
        shape = (len(errors), min(block, _SAMPLES - first), len(steps))
        walks = np.cumsum(rng.normal(size=shape) * steps, axis=2)
        bridges = errors * (walks[:, :, :-1] - heights * walks[:, :, -1:])
        pairs = zip(comparisons.pairs, comparisons.weights, strict=True)
        samples.append(sum(weight * (np.abs(bridges[a] - bridges[b]) @ both) for (a, b), weight in pairs))
    return np.concatenate(samples).T
