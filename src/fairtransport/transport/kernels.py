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

__all__ = ["DISCRETE", "expand_cells", "fill_alias", "gather_cells", "hash_index", "run_updates"]

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
_LEAST_STEP = 0.05  # of the first, however long a run goes on
_INSERTION = 24  # a batch up to this size is sorted by insertion alone


@njit(cache=True, nogil=True, inline="always")
def _mix(seed, position):
    z = seed + (position + np.uint64(1)) * _GOLDEN
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return z ^ (z >> _S31)


@njit(cache=True, nogil=True)
def hash_index(seed, position, size):
    """Draw number ``position`` of stream ``seed``: an index below ``size`` (at most 2^32)."""
    return np.int64(((_mix(np.uint64(seed), np.uint64(position)) >> _S32) * np.uint64(size)) >> _S32)


# ------------------------------------------------------------------ dual variables on a grid of cells
#
# A dual variable f = sum_d lambda_d psi_d is smooth, and scores lie in [0, 1]. Cut [0, 1] into cells of
# width 1 / steps, narrow enough that no feature turns by more than 1/8 within half a cell. Within a cell
# f is its Taylor polynomial of order 5 around the middle, exact to 1e-8. So the features are summed once
# for each cell that a batch visits, and a score costs six multiplications, whatever their number. The
# gradient with respect to lambda is the transpose of this: moments of the cell, then features.


@njit(cache=True, nogil=True, inline="always")
def _cell(point, grid_steps):
    # A run that diverges meets NaN: it must land in some cell, not outside the arrays.
    cell = int(point * grid_steps + 0.5)
    return cell if 0 <= cell <= grid_steps else 0


@njit(cache=True, nogil=True, fastmath=_MATH)
def expand_cells(cells, n_cells, weights, powers, cosines, sines, scaled, taylor):
    """Taylor coefficients of f = sum of weights * features around the middles of some cells.

    ``powers[m]`` is (frequency / steps)^m / m!; ``scaled`` is room of the same shape. Two cells are done at
    a time, so that what they share is read once.
    """
    width = weights.shape[0]
    for m in range(6):
        for d in range(width):
            scaled[m, d] = weights[d] * powers[m, d]
    zero = weights.dtype.type(0)
    for pair in range(0, n_cells, 2):
        a = cells[pair]
        b = cells[min(pair + 1, n_cells - 1)]
        a0 = a1 = a2 = a3 = a4 = a5 = zero
        b0 = b1 = b2 = b3 = b4 = b5 = zero
        for d in range(width):
            ca, sa, cb, sb = cosines[a, d], sines[a, d], cosines[b, d], sines[b, d]
            a0 += ca * scaled[0, d]
            b0 += cb * scaled[0, d]
            a1 -= sa * scaled[1, d]
            b1 -= sb * scaled[1, d]
            a2 -= ca * scaled[2, d]
            b2 -= cb * scaled[2, d]
            a3 += sa * scaled[3, d]
            b3 += sb * scaled[3, d]
            a4 += ca * scaled[4, d]
            b4 += cb * scaled[4, d]
            a5 -= sa * scaled[5, d]
            b5 -= sb * scaled[5, d]
        taylor[a, 0], taylor[a, 1], taylor[a, 2] = a0, a1, a2
        taylor[a, 3], taylor[a, 4], taylor[a, 5] = a3, a4, a5
        taylor[b, 0], taylor[b, 1], taylor[b, 2] = b0, b1, b2
        taylor[b, 3], taylor[b, 4], taylor[b, 5] = b3, b4, b5


@njit(cache=True, nogil=True, fastmath=_MATH)
def gather_cells(cells, n_cells, moments, powers, cosines, sines, gradient):
    """Gradient with respect to the coefficients of f, from the moments of some cells."""
    gradient[:] = 0.0
    zero = gradient.dtype.type(0)
    for pair in range(0, n_cells, 2):
        a = cells[pair]
        b = cells[min(pair + 1, n_cells - 1)]
        once = zero if pair + 1 == n_cells else gradient.dtype.type(1)  # the last of an odd number is alone
        a0, a1, a2 = moments[a, 0], moments[a, 1], moments[a, 2]
        a3, a4, a5 = moments[a, 3], moments[a, 4], moments[a, 5]
        b0, b1, b2 = once * moments[b, 0], once * moments[b, 1], once * moments[b, 2]
        b3, b4, b5 = once * moments[b, 3], once * moments[b, 4], once * moments[b, 5]
        for d in range(gradient.shape[0]):
            p1, p2, p3, p4, p5 = powers[1, d], powers[2, d], powers[3, d], powers[4, d], powers[5, d]
            gradient[d] += (
                cosines[a, d] * (a0 - a2 * p2 + a4 * p4)
                + sines[a, d] * (a3 * p3 - a1 * p1 - a5 * p5)
                + cosines[b, d] * (b0 - b2 * p2 + b4 * p4)
                + sines[b, d] * (b3 * p3 - b1 * p1 - b5 * p5)
            )


@njit(cache=True, nogil=True, fastmath=_MATH, inline="always")
def _value(taylor, cell, rest):
    p = taylor[cell, 4] + rest * taylor[cell, 5]
    p = taylor[cell, 3] + rest * p
    p = taylor[cell, 2] + rest * p
    p = taylor[cell, 1] + rest * p
    return taylor[cell, 0] + rest * p


@njit(cache=True, nogil=True, fastmath=_MATH, inline="always")
def _slope(taylor, cell, rest):
    p = 4.0 * taylor[cell, 4] + rest * 5.0 * taylor[cell, 5]
    p = 3.0 * taylor[cell, 3] + rest * p
    p = 2.0 * taylor[cell, 2] + rest * p
    return taylor[cell, 1] + rest * p


@njit(cache=True, nogil=True, fastmath=_MATH, inline="always")
def _add_moments(moments, cell, rest, weight):
    for m in range(6):
        moments[cell, m] += weight
        weight *= rest


@njit(cache=True, nogil=True, fastmath=_MATH, inline="always")
def _alpha(v, kind):
    if kind == _L2:
        return 0.5 * v if v > 0.0 else 0.0
    if v > _LIMIT:
        return _LIMIT_VALUE
    return math.exp(v)


@njit(cache=True, nogil=True)
def _sort_positions(keys, order, spare, digits, counts):
    # Afterwards keys[order] ascends. Keys lie in [0, 1]: three passes of a radix sort on their first 24
    # bits, which branch on nothing, then insertion, which mends what lies closer than that.
    n = keys.shape[0]
    for i in range(n):
        key = keys[i]
        digits[i] = int(key * 16777215.0) if 0.0 <= key <= 1.0 else 0  # a run that diverges meets NaN
        order[i] = i
    source, goal = order, spare
    for shift in range(0, 24 if n > _INSERTION else 0, 8):
        counts[:] = 0
        for i in range(n):
            counts[(digits[i] >> shift) & 255] += 1
        total = 0
        for c in range(256):
            here = counts[c]
            counts[c] = total
            total += here
        for i in range(n):
            at = source[i]
            digit = (digits[at] >> shift) & 255
            goal[counts[digit]] = at
            counts[digit] += 1
        source, goal = goal, source
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


@njit(cache=True, nogil=True, fastmath=_MATH)
def run_updates(
    first_update, n_updates, average_from, seed, batch,
    dense, unit_columns, unit_starts, values, columns, starts, labels,
    group_rows, group_starts, group_share, accept, alias,
    target,
    kind, strength, opposite, all_pairs,
    grid_steps, powers, cosines, sines,
    parity_weight, anchor_weight, ridge,
    dual_step, parameter_step, step_decay, coordinate_scale,
    theta, theta_sum, duals, target_duals,
    gradient, picked, scores, scores_target,
    cells, rests, cells_target, rests_target, visited, visit_of,
    taylor, taylor_target, moments, moments_target, dual_gradient, scaled,
    row_alpha, column_alpha, column_sum, row_sign, order, order_target, spare, digits, counts,
):  # fmt: skip
    """Advance theta and the duals by ``n_updates`` steps of the COT (or DOT) algorithm, in place.

    One update: draw ``batch`` target scores and ``batch`` rows of each group; step the group's duals
    uphill; add the group's gradient with respect to theta; when all groups are done step theta
    downhill by ``parameter_step * max(1 - step_decay * update, 1/20)``. ``average_from`` is the update from which
    iterates are summed into ``theta_sum``. A row is its dense columns (the first ones of theta), the
    columns where it is 1 (``unit_*``) and the rest with their values (``values``, ``columns``, ``starts``).
    """
    n_groups = group_starts.shape[0] - 1
    last = theta.shape[1] - 1
    n_dense = dense.shape[1]
    has_units = unit_columns.shape[0] > 0
    has_values = values.shape[0] > 0
    n_features = dual_gradient.shape[0]
    own_weights = theta.shape[0] > 1
    weighted = accept.shape[0] > 0
    inverse_batch = 1.0 / batch
    size_step = dual_step * inverse_batch
    seed = np.uint64(seed)

    for update in range(first_update, first_update + n_updates):
        base = np.uint64(update) * np.uint64(n_groups + 1) * np.uint64(batch)
        gradient[:, :] = 0.0

        for i in range(batch):
            bits = _mix(seed, base + np.uint64(n_groups * batch + i))
            t = target[np.int64(((bits >> _S32) * np.uint64(target.shape[0])) >> _S32)]
            scores_target[i] = t
            cell = _cell(t, grid_steps)
            cells_target[i] = cell
            rests_target[i] = t * grid_steps - cell
        if kind == DISCRETE:
            _sort_positions(scores_target, order_target, spare, digits, counts)

        for a in range(n_groups):
            model = a if own_weights else 0
            first = group_starts[a]
            size = group_starts[a + 1] - first
            for i in range(batch):
                bits = _mix(seed, base + np.uint64(a * batch + i))
                at = first + np.int64(((bits >> _S32) * np.uint64(size)) >> _S32)
                if weighted and (bits & _LOW) >= accept[at]:
                    at = alias[at]
                picked[i] = group_rows[at]
            for i in range(batch):
                row = picked[i]
                logit = theta[model, last]
                for j in range(n_dense):
                    logit += theta[model, j] * dense[row, j]
                if has_units:
                    for k in range(unit_starts[row], unit_starts[row + 1]):
                        logit += theta[model, unit_columns[k]]
                if has_values:
                    for k in range(starts[row], starts[row + 1]):
                        logit += theta[model, columns[k]] * values[k]
                scores[i] = 1.0 / (1.0 + math.exp(-logit))

            if kind == DISCRETE:
                # Equal sizes: the optimal coupling joins the i-th smallest with the i-th smallest.
                _sort_positions(scores, order, spare, digits, counts)
                for i in range(batch):
                    gap = scores[order[i]] - scores_target[order_target[i]]
                    row_sign[order[i]] = 1.0 if gap > 0.0 else (-1.0 if gap < 0.0 else 0.0)
            else:
                # The cells that this group's batch visits (scores first, then targets), and f on them.
                stamp = update * n_groups + a + 1
                n_visited = 0
                for i in range(batch):
                    cell = _cell(scores[i], grid_steps)
                    cells[i] = cell
                    rests[i] = scores[i] * grid_steps - cell
                    if visit_of[cell] != stamp:
                        visit_of[cell] = stamp
                        visited[n_visited] = cell
                        n_visited += 1
                n_scored = n_visited
                for i in range(batch):
                    cell = cells_target[i]
                    if visit_of[cell] != stamp:
                        visit_of[cell] = stamp
                        visited[n_visited] = cell
                        n_visited += 1
                expand_cells(visited, n_visited, duals[a], powers, cosines, sines, scaled, taylor)
                if not opposite:
                    expand_cells(visited, n_visited, target_duals[a], powers, cosines, sines, scaled, taylor_target)
                for v in range(n_visited):
                    for m in range(6):
                        moments[visited[v], m] = 0.0
                        moments_target[visited[v], m] = 0.0
                for i in range(batch):
                    row_alpha[i] = _value(taylor, cells[i], rests[i])
                if opposite:
                    for i in range(batch):
                        column_alpha[i] = -_value(taylor, cells_target[i], rests_target[i])
                else:
                    for i in range(batch):
                        column_alpha[i] = _value(taylor_target, cells_target[i], rests_target[i])

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

                for i in range(batch):
                    _add_moments(moments, cells[i], rests[i], 1.0 - row_alpha[i])
                if opposite:
                    for i in range(batch):
                        _add_moments(moments, cells_target[i], rests_target[i], column_alpha[i] - 1.0)
                else:
                    for i in range(batch):
                        _add_moments(moments_target, cells_target[i], rests_target[i], 1.0 - column_alpha[i])
                    gather_cells(visited, n_visited, moments_target, powers, cosines, sines, dual_gradient)
                    for d in range(n_features):
                        target_duals[a, d] += size_step * dual_gradient[d]
                gather_cells(visited, n_visited, moments, powers, cosines, sines, dual_gradient)
                for d in range(n_features):
                    duals[a, d] += size_step * dual_gradient[d]

                expand_cells(visited, n_scored, duals[a], powers, cosines, sines, scaled, taylor)
                for i in range(batch):
                    slope = grid_steps * _slope(taylor, cells[i], rests[i])
                    row_sign[i] += (1.0 - row_alpha[i]) * slope

            for i in range(batch):
                s = scores[i]
                row = picked[i]
                push = parity_weight * row_sign[i] * s * (1.0 - s)
                push += anchor_weight * group_share[a] * (s - labels[row])
                push *= inverse_batch
                gradient[model, last] += push
                for j in range(n_dense):
                    gradient[model, j] += push * dense[row, j]
                if has_units:
                    for k in range(unit_starts[row], unit_starts[row + 1]):
                        gradient[model, unit_columns[k]] += push
                if has_values:
                    for k in range(starts[row], starts[row + 1]):
                        gradient[model, columns[k]] += push * values[k]

        step_now = parameter_step * max(1.0 - step_decay * update, _LEAST_STEP)
        for m in range(theta.shape[0]):
            for j in range(last):
                slant = gradient[m, j] + anchor_weight * ridge * theta[m, j]
                theta[m, j] -= step_now * coordinate_scale[j] * slant
            theta[m, last] -= step_now * coordinate_scale[last] * gradient[m, last]
        if update >= average_from:
            for m in range(theta.shape[0]):
                for j in range(last + 1):
                    theta_sum[m, j] += theta[m, j]


@njit(cache=True, nogil=True)
def fill_alias(weights, first, accept, alias):
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
