"""Compiled loops.

Each function here has a plain NumPy twin in ``tests/transport/test_kernels.py`` that says what it
computes. Nothing allocates inside the loop over updates and the interpreter lock is released.

Random numbers are a function of (seed, position): SplitMix64 over a counter. A run cut into pieces
therefore draws the same rows as one long run, and the twin can draw them too.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from fairtransport.transport.regularizers import EXPONENT_LIMIT, L2

__all__ = ["DISCRETE", "fill_alias", "hash_index", "run_updates"]

#: The kind of gradient that is not a regularizer's `code`: discrete transport.
DISCRETE = 2

# Sums may be reordered for SIMD; infinities and NaN keep their meaning (a logit may overflow exp).
_MATH = {"reassoc", "contract", "nsz", "arcp"}
_L2 = L2.code
_LIMIT = EXPONENT_LIMIT
_LIMIT_VALUE = math.exp(EXPONENT_LIMIT)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_INSERTION_LIMIT = 48


@njit(cache=True, nogil=True, inline="always")
def _mix(seed, position):  # type: ignore[no-untyped-def]
    z = seed + (position + np.uint64(1)) * _GOLDEN
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return z ^ (z >> _S31)


@njit(cache=True, nogil=True)
def hash_index(seed, position, size):  # type: ignore[no-untyped-def]
    """Draw number ``position`` of stream ``seed``: an index below ``size`` (at most 2^32)."""
    return np.int64(((_mix(np.uint64(seed), np.uint64(position)) >> _S32) * np.uint64(size)) >> _S32)


@njit(cache=True, nogil=True, fastmath=_MATH, inline="always")
def _features(point, steps, frequency, cosines, sines, psi, slope, row):  # type: ignore[no-untyped-def]
    # cos and sin at the nearest grid point, turned by the small angle that is left. With
    # |angle| <= 1/16 the two short series are exact to 1e-8 (test_kernels.py).
    grid = int(point * steps + 0.5)
    rest = point - grid / steps
    for d in range(frequency.shape[0]):
        angle = frequency[d] * rest
        square = angle * angle
        c = 1.0 - square * (0.5 - square * (1.0 / 24.0))
        s = angle * (1.0 - square * (1.0 / 6.0))
        cg = cosines[grid, d]
        sg = sines[grid, d]
        psi[row, d] = cg * c - sg * s
        slope[row, d] = -frequency[d] * (sg * c + cg * s)


@njit(cache=True, nogil=True, fastmath=_MATH, inline="always")
def _alpha(v, kind):  # type: ignore[no-untyped-def]
    if kind == _L2:
        return 0.5 * v if v > 0.0 else 0.0
    if v > _LIMIT:
        return _LIMIT_VALUE
    return math.exp(v)


@njit(cache=True, nogil=True)
def _sort_positions(keys, order):  # type: ignore[no-untyped-def]
    # In place: afterwards keys[order] ascends. Insertion sort for small batches, heap sort above.
    n = keys.shape[0]
    for i in range(n):
        order[i] = i
    if n <= _INSERTION_LIMIT:
        for i in range(1, n):
            moved = order[i]
            key = keys[moved]
            j = i - 1
            while j >= 0 and keys[order[j]] > key:
                order[j + 1] = order[j]
                j -= 1
            order[j + 1] = moved
        return
    start, end = n // 2, n
    while end > 1:
        if start > 0:
            start -= 1
        else:
            end -= 1
            order[end], order[0] = order[0], order[end]
        root = start
        while True:
            child = 2 * root + 1
            if child >= end:
                break
            if child + 1 < end and keys[order[child]] < keys[order[child + 1]]:
                child += 1
            if keys[order[root]] >= keys[order[child]]:
                break
            order[root], order[child] = order[child], order[root]
            root = child


@njit(cache=True, nogil=True, fastmath=_MATH)
def run_updates(  # type: ignore[no-untyped-def]
    first_update, n_updates, average_from, seed,
    values, indices, indptr, dense_width, labels,
    group_rows, group_starts, group_share, accept, alias,
    target,
    kind, strength, opposite, all_pairs,
    frequency, grid_steps, cosines, sines,
    parity_weight, anchor_weight, ridge,
    dual_step, parameter_step, step_decay, coordinate_scale,
    theta, theta_sum, duals, target_duals,
    batch, gradient, scores, picked, scores_target,
    psi, slope, psi_target, slope_target,
    row_alpha, column_alpha, column_sum, row_sign, dual_gradient, target_gradient, order, order_target,
):  # fmt: skip
    """Advance theta and the duals by ``n_updates`` steps of the COT (or DOT) algorithm, in place.

    One update: draw ``batch`` target scores and ``batch`` rows of each group; step the group's duals
    uphill; add the group's gradient with respect to theta; when all groups are done step theta
    downhill by ``parameter_step * (1 - step_decay * update)``. ``average_from`` is the update from which
    iterates are summed into ``theta_sum``.
    """
    n_groups = group_starts.shape[0] - 1
    n_columns = theta.shape[1] - 1
    n_features = frequency.shape[0]
    own_weights = theta.shape[0] > 1
    weighted = accept.shape[0] > 0
    inverse_batch = 1.0 / batch
    seed = np.uint64(seed)

    for update in range(first_update, first_update + n_updates):
        base = np.uint64(update) * np.uint64(n_groups + 1) * np.uint64(batch)
        gradient[:, :] = 0.0

        for i in range(batch):
            bits = _mix(seed, base + np.uint64(n_groups * batch + i))
            scores_target[i] = target[np.int64(((bits >> _S32) * np.uint64(target.shape[0])) >> _S32)]
        if kind == DISCRETE:
            _sort_positions(scores_target, order_target)
        else:
            for i in range(batch):
                _features(scores_target[i], grid_steps, frequency, cosines, sines, psi_target, slope_target, i)

        for a in range(n_groups):
            model = a if own_weights else 0
            start = group_starts[a]
            size = group_starts[a + 1] - start
            for i in range(batch):
                bits = _mix(seed, base + np.uint64(a * batch + i))
                at = start + np.int64(((bits >> _S32) * np.uint64(size)) >> _S32)
                if weighted and (bits & _LOW) >= accept[at]:
                    at = alias[at]
                row = group_rows[at]
                picked[i] = row
                logit = theta[model, n_columns]
                if dense_width > 0:
                    for j in range(dense_width):
                        logit += theta[model, j] * values[row * dense_width + j]
                else:
                    for k in range(indptr[row], indptr[row + 1]):
                        logit += theta[model, indices[k]] * values[k]
                scores[i] = 1.0 / (1.0 + math.exp(-logit))

            if kind == DISCRETE:
                # Equal sizes: the optimal coupling joins the i-th smallest with the i-th smallest.
                _sort_positions(scores, order)
                for i in range(batch):
                    gap = scores[order[i]] - scores_target[order_target[i]]
                    row_sign[order[i]] = 1.0 if gap > 0.0 else (-1.0 if gap < 0.0 else 0.0)
            else:
                for i in range(batch):
                    _features(scores[i], grid_steps, frequency, cosines, sines, psi, slope, i)
                    dual = 0.0
                    for d in range(n_features):
                        dual += duals[a, d] * psi[i, d]
                    row_alpha[i] = dual
                    dual = 0.0
                    if opposite:
                        for d in range(n_features):
                            dual -= duals[a, d] * psi_target[i, d]
                    else:
                        for d in range(n_features):
                            dual += target_duals[a, d] * psi_target[i, d]
                    column_alpha[i] = dual

                if all_pairs:
                    column_sum[:] = 0.0
                    for i in range(batch):
                        total = 0.0
                        signed = 0.0
                        for j in range(batch):
                            gap = scores[i] - scores_target[j]
                            alpha = _alpha((row_alpha[i] + column_alpha[j] - abs(gap)) / strength, kind)
                            total += alpha
                            signed += alpha if gap > 0.0 else (-alpha if gap < 0.0 else 0.0)
                            column_sum[j] += alpha
                        row_alpha[i] = total * inverse_batch
                        row_sign[i] = signed * inverse_batch
                    for j in range(batch):
                        column_alpha[j] = column_sum[j] * inverse_batch
                else:
                    for i in range(batch):
                        gap = scores[i] - scores_target[i]
                        alpha = _alpha((row_alpha[i] + column_alpha[i] - abs(gap)) / strength, kind)
                        row_alpha[i] = alpha
                        column_alpha[i] = alpha
                        row_sign[i] = alpha if gap > 0.0 else (-alpha if gap < 0.0 else 0.0)

                dual_gradient[:] = 0.0
                target_gradient[:] = 0.0
                for i in range(batch):
                    weight = 1.0 - row_alpha[i]
                    weight_target = 1.0 - column_alpha[i]
                    for d in range(n_features):
                        dual_gradient[d] += weight * psi[i, d]
                        target_gradient[d] += weight_target * psi_target[i, d]
                size_step = dual_step * inverse_batch
                if opposite:
                    for d in range(n_features):
                        duals[a, d] += size_step * (dual_gradient[d] - target_gradient[d])
                else:
                    for d in range(n_features):
                        duals[a, d] += size_step * dual_gradient[d]
                        target_duals[a, d] += size_step * target_gradient[d]

                for i in range(batch):
                    derivative = 0.0
                    for d in range(n_features):
                        derivative += duals[a, d] * slope[i, d]
                    row_sign[i] += (1.0 - row_alpha[i]) * derivative

            for i in range(batch):
                s = scores[i]
                row = picked[i]
                push = parity_weight * row_sign[i] * s * (1.0 - s)
                if anchor_weight > 0.0:
                    push += anchor_weight * group_share[a] * (s - labels[row])
                push *= inverse_batch
                gradient[model, n_columns] += push
                if dense_width > 0:
                    for j in range(dense_width):
                        gradient[model, j] += push * values[row * dense_width + j]
                else:
                    for k in range(indptr[row], indptr[row + 1]):
                        gradient[model, indices[k]] += push * values[k]

        step_now = parameter_step * (1.0 - step_decay * update)
        for m in range(theta.shape[0]):
            for j in range(n_columns):
                slant = gradient[m, j] + anchor_weight * ridge * theta[m, j]
                theta[m, j] -= step_now * coordinate_scale[j] * slant
            theta[m, n_columns] -= step_now * coordinate_scale[n_columns] * gradient[m, n_columns]
        if update >= average_from:
            for m in range(theta.shape[0]):
                for j in range(n_columns + 1):
                    theta_sum[m, j] += theta[m, j]


@njit(cache=True, nogil=True)
def fill_alias(weights, first, accept, alias):  # type: ignore[no-untyped-def]
    """Vose's alias table for ``weights``: slot i keeps itself when 32 random bits are below ``accept[i]``.

    ``first`` is added to the entries of ``alias``, so that several tables can share one array.
    """
    n = weights.shape[0]
    total = weights.sum()
    scaled = weights * (n / total)
    small = np.empty(n, np.int64)
    large = np.empty(n, np.int64)
    n_small = n_large = 0
    for i in range(n):
        alias[i] = first + i
        accept[i] = np.uint64(4294967296)
        if scaled[i] < 1.0:
            small[n_small] = i
            n_small += 1
        else:
            large[n_large] = i
            n_large += 1
    while n_small > 0 and n_large > 0:
        n_small -= 1
        low = small[n_small]
        high = large[n_large - 1]
        accept[low] = np.uint64(scaled[low] * 4294967296.0)
        alias[low] = first + high
        scaled[high] -= 1.0 - scaled[low]
        if scaled[high] < 1.0:
            n_large -= 1
            small[n_small] = high
            n_small += 1
