r"""Discrete optimal transport (DOT) between two batches of equal size: its gradient with respect to the scores.

The optimal coupling of two samples of equal size on the line joins the i-th smallest with the i-th smallest, so the
derivative of the Wasserstein-1 distance with respect to a score is the sign of its difference to its partner. The plain
twin is `fairtransport.transport.reference.discrete_gradient`.
"""

from __future__ import annotations

from fairtransport._columns.compilation import cached_njit

__all__ = ["DISCRETE", "couple_batches", "sort_target", "sorted_positions"]

#: Takes the place of a regularizer's code where the distance is the discrete one.
DISCRETE = 2

_INSERTION = 24  # a batch up to this size is sorted by insertion alone


@cached_njit(nogil=True)
def sorted_positions(keys, order, spare, digits, counts):
    """Write into ``order`` the positions of the keys, which lie in [0, 1], in ascending order.

    Three passes of a radix sort on the first 24 bits, which have no branch, then an insertion sort for keys that are
    closer than that.
    """
    n = keys.shape[0]
    for i in range(n):
        key = keys[i]
        digits[i] = int(key * 16777215.0) if 0.0 <= key <= 1.0 else 0  # a run that diverges has NaN
        order[i] = i
    source, destination = order, spare
    for shift in range(0, 24 if n > _INSERTION else 0, 8):
        counts[:] = 0
        for i in range(n):
            counts[(digits[i] >> shift) & 255] += 1
        total = 0
        for c in range(256):
            count = counts[c]
            counts[c] = total
            total += count
        for i in range(n):
            position = source[i]
            digit = (digits[position] >> shift) & 255
            destination[counts[digit]] = position
            counts[digit] += 1
        source, destination = destination, source
    for i in range(n):
        order[i] = source[i]
    for i in range(1, n):
        moved = order[i]
        key = keys[moved]
        j = i - 1
        while j >= 0 and keys[order[j]] > key:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = moved


@cached_njit(nogil=True, inline="always")
def sort_target(batch, work):
    """Sort the batch of target scores, once for all groups."""
    sorted_positions(work.target_scores[:batch], work.target_order, work.spare_order, work.digits, work.counts)


@cached_njit(nogil=True, inline="always")
def couple_batches(batch, work):
    """Write the derivative of the distance with respect to each score into ``work.score_gradient``."""
    real = work.scores.dtype.type
    zero, one = real(0), real(1)
    sorted_positions(work.scores[:batch], work.order, work.spare_order, work.digits, work.counts)
    for i in range(batch):
        gap = work.scores[work.order[i]] - work.target_scores[work.target_order[i]]
        work.score_gradient[work.order[i]] = one if gap > zero else (-one if gap < zero else zero)
