"""Target distributions of several samples: Wasserstein barycenters, the mixture, or one that the user names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairtransport._arrays import Floats
from fairtransport._validation import check_vector, check_weights
from fairtransport.transport._namespace import namespace, take_along
from fairtransport.transport.line import Sample, level_grid

Combine = Callable[[Floats, Floats], Floats]


TARGET_WORDS = ("barycenter", "barycenter_w2", "pooled")

#: Scores of equal mass that a fitted model stores in place of its target: within 1 / 4096 of the range in the
#: Wasserstein-1 distance, cheap to draw from, and not a list of the scores of persons.
TARGET_SIZE = 4096

_BLOCK = 1 << 16  # levels combined at a time, so that memory does not grow with samples times levels
_HALF_TOLERANCE = 1e-12  # cumulative weights this close to 1/2 are 1/2, such as 0.3 + 0.2


def w1_barycenter(samples: Sequence[Sample], weights: ArrayLike | None = None) -> Sample:
    r"""Return the exact Wasserstein-1 barycenter: the pointwise median of the quantile functions.

    Parameters
    ----------
    samples : sequence of Sample
    weights : array-like, optional
        One weight per sample, zero or more; equal when omitted, as in the paper.

    Returns
    -------
    Sample
        At most as many values as the samples have together.

    Notes
    -----
    It minimises :math:`\sum_a w_a W_1(S_a, T)` over T. On the line, level by level,

    .. math:: T^{-1}(u) = \operatorname{median}_a F_a^{-1}(u),

    weighted by w; the midpoint of the two middle values, where the weights split into two equal halves.

    Examples
    --------
    >>> groups = [Sample.from_values(v) for v in ([0.1, 0.5], [0.2, 0.6], [0.9, 0.9])]
    >>> w1_barycenter(groups).values
    array([0.2, 0.6])
    >>> w1_barycenter(groups[:2]).values
    array([0.15, 0.55])
    """
    return _pointwise(samples, weights, pointwise_median)


def w2_barycenter(samples: Sequence[Sample], weights: ArrayLike | None = None) -> Sample:
    r"""Return the exact Wasserstein-2 barycenter: the pointwise mean of the quantile functions.

    Parameters
    ----------
    samples, weights
        See `w1_barycenter`.

    Returns
    -------
    Sample

    Notes
    -----
    It minimises :math:`\sum_a w_a W_2^2(S_a, T)` over T. On the line

    .. math:: T^{-1}(u) = \sum_a w_a F_a^{-1}(u).

    Examples
    --------
    >>> groups = [Sample.from_values(v) for v in ([0.0, 0.5], [0.5, 1.0])]
    >>> w2_barycenter(groups, weights=[3, 1]).values
    array([0.125, 0.625])
    """
    return _pointwise(samples, weights, pointwise_mean)


def pooled(samples: Sequence[Sample], weights: ArrayLike | None = None) -> Sample:
    """Return the mixture of the samples.

    Parameters
    ----------
    samples, weights
        See `w1_barycenter`.

    Returns
    -------
    Sample

    Examples
    --------
    >>> groups = [Sample.from_values(v) for v in ([0.0, 0.5, 1.0], [0.6])]
    >>> mixture = pooled(groups, weights=[3, 1])
    >>> mixture.values, mixture.weights
    (array([0. , 0.5, 0.6, 1. ]), array([0.25, 0.25, 0.25, 0.25]))
    """
    kept, shares = _weighted_samples(samples, weights)
    values = np.concatenate([sample.values for sample in kept])
    mass = np.concatenate([share * sample.weights for sample, share in zip(kept, shares, strict=True)])
    return Sample.from_values(values, mass)


def resolve_target(
    target: Any,
    samples: Sequence[Sample],
    sizes: ArrayLike,
    *,
    labels: Sequence[Any] = (),
    names: Sequence[str] = (),
    everyone: Sample | None = None,
    score_range: tuple[float, float] | None = (0.0, 1.0),
) -> Sample:
    """Return the sample that a user's ``target`` parameter stands for.

    Parameters
    ----------
    target : str, label, array-like or Sample
        ``"barycenter"`` (Wasserstein-1, equal weights, the paper's), ``"barycenter_w2"`` (weights by size),
        ``"pooled"`` (everyone), one of ``labels`` or ``names``, or scores; the first that applies.
    samples : sequence of Sample
        The scores of each group.
    sizes : array-like
        Weight of each sample where size matters: its number of rows or their total weight.
    labels, names : sequence, optional
        The label of each sample, and its name in texts, in the order of ``samples``.
    everyone : Sample, optional
        The meaning of ``"pooled"`` where samples share rows; by default their mixture by ``sizes``.
    score_range : pair of float or None, default (0, 1)
        Range within which scores that are the target must lie; None for any.

    Returns
    -------
    Sample

    Examples
    --------
    >>> groups = [Sample.from_values([0.1, 0.3]), Sample.from_values([0.5])]
    >>> resolve_target("old", groups, [2, 1], labels=["young", "old"]).values
    array([0.5])
    >>> resolve_target("barycenter", groups, [2, 1]).values
    array([0.3, 0.4])
    """
    if isinstance(target, str):
        if target == "barycenter":
            return w1_barycenter(samples)
        if target == "barycenter_w2":
            return w2_barycenter(samples, sizes)
        if target == "pooled":
            return pooled(samples, sizes) if everyone is None else everyone
    if isinstance(target, Sample):
        return _check_range(target, score_range)
    index = _index_of(target, labels, names)
    if index is not None:
        return samples[index]
    if _is_name(target):
        words = ", ".join(repr(word) for word in TARGET_WORDS)
        raise ValueError(
            f"target must be one of {words}, the label of one of the {len(samples)} groups or an array of "
            f"scores; this {type(target).__name__} is none of them."
        )
    return _check_range(Sample.from_values(check_vector(target, name="target")), score_range)


def _index_of(target: Any, *spellings: Sequence[Any]) -> int | None:
    """Return the index of the label or name that equals ``target``; arrays are never labels."""
    if not isinstance(target, tuple) and not _is_name(target):
        return None
    for names in spellings:
        known = list(names)
        if target in known:
            return known.index(target)
    return None


def _is_name(target: Any) -> bool:
    """Return whether ``target`` cannot be an array of scores: one value, or several with a string among them."""
    if isinstance(target, (list, tuple)):
        return any(isinstance(part, str) for part in target)
    return np.ndim(target) == 0


def _check_range(target: Sample, score_range: tuple[float, float] | None) -> Sample:
    low, high = (-np.inf, np.inf) if score_range is None else score_range
    outside = int(np.count_nonzero((target.values < low) | (target.values > high)))
    if outside:
        raise ValueError(
            f"target outside the score range: {outside} of its {len(target)} values are not within [{low:g}, {high:g}]."
        )
    return target


def _weighted_samples(samples: Sequence[Sample], weights: ArrayLike | None) -> tuple[list[Sample], Floats]:
    """Return the samples of positive weight, and the weights normalised to sum 1."""
    if not len(samples):
        raise ValueError("samples is empty; at least one sample is needed.")
    if weights is None:
        return list(samples), np.full(len(samples), 1 / len(samples))
    vector = check_vector(weights, name="weights")
    if vector.size != len(samples):
        raise ValueError(f"weights has {vector.size} values for {len(samples)} samples; give one for each.")
    checked = check_weights(vector, size=vector.size, name="weights")
    shares = vector if checked is None else checked / checked.sum()
    return [sample for sample, share in zip(samples, shares, strict=True) if share > 0], shares[shares > 0]


def _pointwise(samples: Sequence[Sample], weights: ArrayLike | None, combine: Combine) -> Sample:
    """Return the sample whose quantile function combines those of the samples level by level."""
    kept, shares = _weighted_samples(samples, weights)
    levels = level_grid(kept)
    values = np.empty_like(levels)
    for start in range(0, levels.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        values[block] = combine(np.stack([sample.quantile(levels[block]) for sample in kept], axis=1), shares)
    lowest, highest = min(sample.values[0] for sample in kept), max(sample.values[-1] for sample in kept)
    # Rounding may break neither the order nor the range of the samples.
    return Sample(np.clip(np.maximum.accumulate(values), lowest, highest), levels)


def pointwise_median(quantiles: Any, shares: Any) -> Any:
    """Return the midpoint of the lower and the upper weighted median along the last axis, for arrays and tensors."""
    xp = namespace(quantiles)
    order = xp.argsort(quantiles)
    mass = xp.cumsum(take_along(xp.broadcast_to(shares, quantiles.shape), order), axis=-1)
    near = max(_HALF_TOLERANCE, 16 * float(xp.finfo(mass.dtype).eps))
    lower, upper = (mass < 0.5 - near).sum(-1)[..., None], (mass <= 0.5 + near).sum(-1)[..., None]
    ascending = take_along(quantiles, order)
    return (take_along(ascending, lower) + take_along(ascending, upper))[..., 0] / 2


def pointwise_mean(quantiles: Any, shares: Any) -> Any:
    """Return the weighted mean along the last axis, relative to its first entry, so that equal entries stay exact."""
    first = quantiles[..., :1]
    return first[..., 0] + ((quantiles - first) * shares).sum(-1)
