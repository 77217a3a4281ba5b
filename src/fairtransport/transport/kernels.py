"""Compiled loops.

Each function here has a plain NumPy twin in ``tests/transport/test_kernels.py`` that says what it
computes. Nothing allocates inside the loop over updates and the interpreter lock is released.

Random numbers are a function of (seed, position): SplitMix64 over a counter. A run cut into pieces
therefore draws the same rows as one long run, and the twin can draw them too.

Every number is of the rows' own type, float32 or float64: a single float64 among float32 would make the
compiler convert back and forth. Loops over a batch run over its padded size where they can, so that vector
instructions leave no rest to be done one by one.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, types
from numba.extending import overload

from fairtransport.transport.regularizers import EXPONENT_LIMIT, L2

__all__ = [
    "DISCRETE",
    "add_rows",
    "chebyshev",
    "combine",
    "draw_rows",
    "exponential",
    "fill_alias",
    "hash_index",
    "logistic",
    "project",
    "run_updates",
    "score_rows",
]

#: The kind of gradient that is not a regularizer's `code`: discrete transport.
DISCRETE = 2

# Sums may be reordered for SIMD; infinities and NaN keep their meaning (a logit may overflow exp).
_MATH = {"reassoc", "contract", "nsz", "arcp"}
_L2 = L2.code
_LIMIT = EXPONENT_LIMIT
_LEAST = -80.0  # exp of it is nothing beside 1, and no subnormal in float32

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_U = np.uint64
_1, _2, _3, _4, _8 = _U(1), _U(2), _U(3), _U(4), _U(8)
_16, _32, _48, _SLOT = _U(16), _U(32), _U(48), _U(0xFFFF)
_SHORT = 15  # dense columns, up to which a row is spelled out
_LEAST_STEP = 0.05  # of the first, however long a run goes on
_INSERTION = 24  # a batch up to this size is sorted by insertion alone


# ----------------------------------------------------------------------------------------------------- draws


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


@njit(cache=True, nogil=True)
def draw_rows(seed, position, first, size, accept, alias, group_rows, batch, picked):
    """Draw packed rows of one group, by weight where there are weights, into ``picked``."""
    for i in range(batch):
        bits = _mix(seed, position + np.uint64(i))
        picked[i] = first + np.int64(((bits >> _S32) * size) >> _S32)
    if accept.shape[0] > 0:
        for i in range(batch):
            at = picked[i]
            if (_mix(seed, position + np.uint64(i)) & _LOW) >= accept[at]:
                picked[i] = alias[at]
    if group_rows.shape[0] > 0:
        for i in range(batch):
            picked[i] = group_rows[picked[i]]


# ----------------------------------------------------------------------------------------------- exponential
#
# exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln 2 / 2. Adding 1.5 * 2^52 (2^23 in float32) rounds: the
# whole number n then stands in the last bits, from where a shift moves it into the exponent of 2^n. exp(r) is
# its Taylor polynomial. There is no branch and no call, so a loop over it becomes vector instructions. The order
# of operations matters: no reordering here.


def _exp_double(x):
    shifted = x * 1.4426950408889634 + 6755399441055744.0
    n = shifted - 6755399441055744.0
    r = (x - n * 0.6931471803691238) - n * 1.9082149292705877e-10
    p = 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)


_F = np.float32
_S_LOG2E, _S_SHIFT, _S_HIGH, _S_LOW = _F(1.44269504), _F(12582912.0), _F(0.693359375), _F(-2.12194440e-4)
_S7, _S6, _S5, _S4, _S3, _S2, _S1 = (_F(1.0 / math.factorial(m)) for m in (7, 6, 5, 4, 3, 2, 1))
_S_BIAS, _S_PLACE = np.int32(127), np.int32(23)


def _exp_single(x):
    shifted = x * _S_LOG2E + _S_SHIFT
    n = shifted - _S_SHIFT
    r = (x - n * _S_HIGH) - n * _S_LOW
    p = _S7
    p = p * r + _S6
    p = p * r + _S5
    p = p * r + _S4
    p = p * r + _S3
    p = p * r + _S2
    p = p * r + _S1
    p = p * r + _S1
    return p * np.int32((np.float32(shifted).view(np.int32) + _S_BIAS) << _S_PLACE).view(np.float32)


def _exp(x):
    raise NotImplementedError  # compiled only: by the type of x, one of the two above


@overload(_exp, jit_options={"fastmath": {"contract"}, "nogil": True})
def _exp_by_type(x):
    return _exp_single if x == types.float32 else _exp_double


@njit(cache=True, nogil=True)
def exponential(values):
    """Exponential of each value, in place; values between -87 and 87 (float32) or -700 and 700 (float64)."""
    for i in range(values.shape[0]):
        values[i] = _exp(values[i])


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def logistic(logits, scores):
    """Write the logistic function of the logits into ``scores``."""
    real = scores.dtype.type
    one, most = real(1), real(87 if scores.itemsize == 4 else 700)
    for i in range(scores.shape[0]):
        scores[i] = one / (one + _exp(max(min(-logits[i], most), -most)))


# ------------------------------------------------------------------------- dual variables as polynomials
#
# A dual variable f = sum_d lambda_d psi_d is a short sum of slow cosines, and scores lie in [0, 1]: there f is
# a polynomial of low degree, to 1e-8 (`fourier.FeatureTable`). In terms of Chebyshev polynomials T_k its
# coefficients are basis @ lambda. So the features are summed once a batch, a score costs one multiplication
# a degree, whatever their number, and there is nothing to look up. The gradient with respect to lambda is the
# transpose of this: moments sum_i w_i T_k(s_i), then basis' @ moments.


@njit(cache=True, nogil=True, fastmath=_MATH)
def chebyshev(points, table):
    """T_k(2 x - 1) of each point x, one row for each degree k; a multiple of four rows."""
    one = table.dtype.type(1)
    for i in range(table.shape[1]):
        u = points[i] + points[i] - one
        square = (u + u) * u - one
        table[0, i] = one
        table[1, i] = u
        table[2, i] = square
        table[3, i] = (u + u) * square - u
    for k in range(4, table.shape[0], 4):
        for i in range(table.shape[1]):
            u = points[i] + points[i] - one
            twice = u + u
            d = table[k - 1, i]
            a = twice * d - table[k - 2, i]
            b = twice * a - d
            c = twice * b - a
            table[k, i] = a
            table[k + 1, i] = b
            table[k + 2, i] = c
            table[k + 3, i] = twice * c - b


@njit(cache=True, nogil=True, fastmath=_MATH)
def combine(coefficients, table, out):
    """Sum of the rows of ``table``, each times its coefficient; a multiple of four rows."""
    out[:] = 0
    for k in range(0, table.shape[0], 4):
        a, b, c, d = coefficients[k], coefficients[k + 1], coefficients[k + 2], coefficients[k + 3]
        for i in range(table.shape[1]):
            out[i] += a * table[k, i] + b * table[k + 1, i] + c * table[k + 2, i] + d * table[k + 3, i]


@njit(cache=True, nogil=True, fastmath=_MATH)
def project(weights, table, out):
    """Inner product of ``weights`` with each row of ``table``; a multiple of four rows."""
    zero = table.dtype.type(0)
    for k in range(0, table.shape[0], 4):
        a = b = c = d = zero
        for i in range(table.shape[1]):
            a += weights[i] * table[k, i]
            b += weights[i] * table[k + 1, i]
            c += weights[i] * table[k + 2, i]
            d += weights[i] * table[k + 3, i]
        out[k], out[k + 1], out[k + 2], out[k + 3] = a, b, c, d


# ----------------------------------------------------------------------------------------------------- pairs


@njit(cache=True, nogil=True, fastmath=_MATH)
def _exponents(scale, low, high, scores, targets, f, h, v):
    # Of the pairs (i, i). Within the bounds alpha is v itself (l2, its factor 1/2 is in the scale) or exp(v).
    for i in range(scores.shape[0]):
        v[i] = max(min((f[i] + h[i] - abs(scores[i] - targets[i])) * scale, high), low)


@njit(cache=True, nogil=True, fastmath=_MATH)
def _weigh(scores, targets, alpha, rest, sign):
    # rest = 1 - alpha, sign = alpha * sign(s - t)
    real = scores.dtype.type
    zero, one = real(0), real(1)
    for i in range(scores.shape[0]):
        gap = scores[i] - targets[i]
        rest[i] = one - alpha[i]
        sign[i] = alpha[i] if gap > zero else (-alpha[i] if gap < zero else zero)


@njit(cache=True, nogil=True, fastmath=_MATH)
def _match_all(kind, scale, low, high, batch, scores, targets, f, h, alpha, rest, rest_target, sign):
    # All pairs (i, j): the same, as means over j for the scores and over i for the targets.
    real = scores.dtype.type
    zero, one, share = real(0), real(1), real(1) / real(batch)
    rest_target[:batch] = one
    for i in range(batch):
        score, own = scores[i], f[i]
        for j in range(targets.shape[0]):
            alpha[j] = max(min((own + h[j] - abs(score - targets[j])) * scale, high), low)
        if kind != _L2:
            exponential(alpha)
        total = signed = zero
        for j in range(batch):
            gap = score - targets[j]
            part = share * alpha[j]
            total += part
            signed += part if gap > zero else (-part if gap < zero else zero)
            rest_target[j] -= part
        rest[i] = one - total
        sign[i] = signed


# ------------------------------------------------------------------------------------------------------ rows
#
# A row is its dense columns (the first ones of theta), a fixed number of columns where it is 1 and the rest with
# values (`estimators.problem.PackedRows`). A word holds four columns of 16 bits each; words come in pairs. Slots that
# a row does not need name the column after the intercept, where `weights` is 0. Short rows are spelled out in pieces
# of 8, 4, 2 and 1, because a vector loop costs more in its beginning and end than it saves; unsigned numbers need no
# check for counting from the end.


@njit(cache=True, nogil=True, fastmath=_MATH)
def _score_long(dense, stride, n_dense, picked, batch, weights, model, logits):
    for i in range(batch):
        at = _U(picked[i]) * _U(stride)
        total = logits[i]
        for j in range(_U(n_dense)):
            total += weights[model, j] * dense[at + j]
        logits[i] = total


@njit(cache=True, nogil=True, fastmath=_MATH)
def _add_long(dense, stride, n_dense, picked, batch, push, gradient, model):
    for i in range(batch):
        at, own = _U(picked[i]) * _U(stride), push[i]
        for j in range(_U(n_dense)):
            gradient[model, j] += own * dense[at + j]


@njit(cache=True, nogil=True, inline="always")
def _dot_four(weights, model, dense, at, j):
    a, b = weights[model, j] * dense[at + j], weights[model, j + _1] * dense[at + j + _1]
    c, d = weights[model, j + _2] * dense[at + j + _2], weights[model, j + _3] * dense[at + j + _3]
    return (a + b) + (c + d)


@njit(cache=True, nogil=True, inline="always")
def _sum_word(weights, model, word):
    a, b = weights[model, word & _SLOT], weights[model, (word >> _16) & _SLOT]
    c, d = weights[model, (word >> _32) & _SLOT], weights[model, word >> _48]
    return (a + b) + (c + d)


@njit(cache=True, nogil=True, inline="always")
def _add_four(gradient, model, dense, at, j, own):
    # All four are read before the first is written, so that none waits for another.
    a, b = gradient[model, j] + own * dense[at + j], gradient[model, j + _1] + own * dense[at + j + _1]
    c, d = gradient[model, j + _2] + own * dense[at + j + _2], gradient[model, j + _3] + own * dense[at + j + _3]
    gradient[model, j], gradient[model, j + _1] = a, b
    gradient[model, j + _2], gradient[model, j + _3] = c, d


@njit(cache=True, nogil=True, inline="always")
def _add_word(gradient, model, word, own):
    gradient[model, word & _SLOT] += own
    gradient[model, (word >> _16) & _SLOT] += own
    gradient[model, (word >> _32) & _SLOT] += own
    gradient[model, word >> _48] += own


@njit(cache=True, nogil=True, fastmath={"contract"})
def score_rows(rows, picked, batch, weights, model, logits):
    """Write the logits of some packed rows under ``weights[model]`` into ``logits``."""
    dense, stride, n_dense, words, word_stride, first_word, n_words, values, columns, starts = rows
    intercept, zero = weights[model, weights.shape[1] - 2], weights.dtype.type(0)
    short = n_dense if n_dense <= _SHORT else 0
    for i in range(batch):
        row = _U(picked[i])
        at, j = row * _U(stride), _U(0)
        a, b = intercept, zero
        if short & 8:
            a += _dot_four(weights, model, dense, at, j)
            b += _dot_four(weights, model, dense, at, j + _4)
            j += _8
        if short & 4:
            a += _dot_four(weights, model, dense, at, j)
            j += _4
        if short & 2:
            a += weights[model, j] * dense[at + j]
            b += weights[model, j + _1] * dense[at + j + _1]
            j += _2
        if short & 1:
            a += weights[model, j] * dense[at + j]
        at = row * _U(word_stride) + _U(first_word)
        if n_words > 0:
            a += _sum_word(weights, model, words[at])
            b += _sum_word(weights, model, words[at + _1])
            for k in range(_2, _U(n_words), _2):
                a += _sum_word(weights, model, words[at + k])
                b += _sum_word(weights, model, words[at + k + _1])
        logits[i] = a + b
    if short < n_dense:
        _score_long(dense, stride, n_dense, picked, batch, weights, model, logits)
    if values.shape[0] > 0:
        for i in range(batch):
            row, a = _U(picked[i]), logits[i]
            for k in range(starts[row], starts[row + _1]):
                a += weights[model, columns[k]] * values[k]
            logits[i] = a


@njit(cache=True, nogil=True, fastmath={"contract"})
def add_rows(rows, picked, batch, push, gradient, model):
    """Add push[i] times row i, for some packed rows, to ``gradient[model]``."""
    dense, stride, n_dense, words, word_stride, first_word, n_words, values, columns, starts = rows
    short = n_dense if n_dense <= _SHORT else 0
    total = push.dtype.type(0)
    for i in range(batch):
        row, own = _U(picked[i]), push[i]
        total += own
        at, j = row * _U(stride), _U(0)
        if short & 8:
            _add_four(gradient, model, dense, at, j, own)
            _add_four(gradient, model, dense, at, j + _4, own)
            j += _8
        if short & 4:
            _add_four(gradient, model, dense, at, j, own)
            j += _4
        if short & 2:
            gradient[model, j] += own * dense[at + j]
            gradient[model, j + _1] += own * dense[at + j + _1]
            j += _2
        if short & 1:
            gradient[model, j] += own * dense[at + j]
        at = row * _U(word_stride) + _U(first_word)
        if n_words > 0:
            _add_word(gradient, model, words[at], own)
            _add_word(gradient, model, words[at + _1], own)
            for k in range(_2, _U(n_words), _2):
                _add_word(gradient, model, words[at + k], own)
                _add_word(gradient, model, words[at + k + _1], own)
    gradient[model, gradient.shape[1] - 2] += total
    if short < n_dense:
        _add_long(dense, stride, n_dense, picked, batch, push, gradient, model)
    if values.shape[0] > 0:
        for i in range(batch):
            row, own = _U(picked[i]), push[i]
            for k in range(starts[row], starts[row + _1]):
                gradient[model, columns[k]] += own * values[k]


# ------------------------------------------------------------------------------------- discrete transport


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


# --------------------------------------------------------------------------------------------------- updates


@njit(cache=True, nogil=True, fastmath=_MATH)
def run_updates(
    first_update, n_updates, average_from, seed, batch,
    rows, labels, group_rows, group_starts, group_share, accept, alias, target,
    kind, strength, opposite, all_pairs, basis, slopes,
    parity_weight, anchor_weight, ridge,
    dual_step, parameter_step, step_decay, coordinate_scale,
    theta, theta_sum, duals, target_duals,
    weights, gradient, picked, logits, scores, scores_target,
    table, table_target, coefficients, moments, moments_target, dual, dual_target,
    f, h, alpha, rest, rest_target, sign, push,
    order, order_target, spare, digits, counts,
):  # fmt: skip
    """Advance theta and the duals by ``n_updates`` steps of the COT (or DOT) algorithm, in place.

    One update: draw ``batch`` target scores and ``batch`` rows of each group; step the group's duals
    uphill; add the group's gradient with respect to theta; when all groups are done step theta
    downhill by ``parameter_step * max(1 - step_decay * update, 1/20)``. ``average_from`` is the update from which
    iterates are summed into ``theta_sum``. The arrays from ``weights`` on are room to work in.
    """
    n_groups = group_starts.shape[0] - 1
    last = theta.shape[1] - 1
    own_weights = theta.shape[0] > 1
    real = theta.dtype.type
    zero, one = real(0), real(1)
    inverse_batch = one / real(batch)
    size_step = real(dual_step) * inverse_batch
    parity = real(parity_weight) * inverse_batch
    pull = real(anchor_weight * ridge)
    scale, low, high = real(1.0 / strength), real(_LEAST), real(_LIMIT)
    if kind == _L2:
        scale, low, high = real(0.5 / strength), zero, real(np.inf)
    seed = np.uint64(seed)
    for m in range(theta.shape[0]):
        for j in range(last + 1):
            weights[m, j] = theta[m, j]
        weights[m, last + 1] = zero

    for update in range(first_update, first_update + n_updates):
        base = np.uint64(update) * np.uint64(n_groups + 1) * np.uint64(batch)
        gradient[:, :] = zero

        for i in range(batch):
            bits = _mix(seed, base + np.uint64(n_groups * batch + i))
            scores_target[i] = target[np.int64(((bits >> _S32) * np.uint64(target.shape[0])) >> _S32)]
        if kind == DISCRETE:
            _sort_positions(scores_target[:batch], order_target, spare, digits, counts)
        else:
            chebyshev(scores_target, table_target)

        for a in range(n_groups):
            model = _U(a if own_weights else 0)
            first = group_starts[a]
            size = np.uint64(group_starts[a + 1] - first)
            draw_rows(seed, base + np.uint64(a * batch), first, size, accept, alias, group_rows, batch, picked)
            score_rows(rows, picked, batch, weights, model, logits)
            logistic(logits, scores)

            if kind == DISCRETE:
                # Equal sizes: the optimal coupling joins the i-th smallest with the i-th smallest.
                _sort_positions(scores[:batch], order, spare, digits, counts)
                for i in range(batch):
                    gap = scores[order[i]] - scores_target[order_target[i]]
                    sign[order[i]] = one if gap > zero else (-one if gap < zero else zero)
            else:
                chebyshev(scores, table)
                for d in range(dual.shape[0]):
                    dual[d] = duals[a, d]
                    dual_target[d] = target_duals[a, d]
                project(dual, basis, coefficients)
                combine(coefficients, table, f)
                if opposite:
                    for k in range(coefficients.shape[0]):
                        coefficients[k] = -coefficients[k]
                else:
                    project(dual_target, basis, coefficients)
                combine(coefficients, table_target, h)

                if all_pairs:
                    _match_all(
                        kind, scale, low, high, batch, scores, scores_target, f, h, alpha, rest, rest_target, sign
                    )
                else:
                    _exponents(scale, low, high, scores, scores_target, f, h, alpha)
                    if kind != _L2:
                        exponential(alpha)
                    _weigh(scores, scores_target, alpha, rest, sign)
                for i in range(batch, rest.shape[0]):
                    rest[i] = zero  # the padding has no weight

                project(rest, table, moments)
                if all_pairs:
                    project(rest_target, table_target, moments_target)
                else:
                    project(rest, table_target, moments_target)
                if opposite:
                    for k in range(moments.shape[0]):
                        moments[k] -= moments_target[k]
                else:
                    combine(moments_target, basis, dual_target)
                    for d in range(dual.shape[0]):
                        target_duals[a, d] += size_step * dual_target[d]
                combine(moments, basis, dual)
                for d in range(dual.shape[0]):
                    duals[a, d] += size_step * dual[d]
                    dual[d] = duals[a, d]

                project(dual, slopes, coefficients)
                combine(coefficients, table, f)
                for i in range(scores.shape[0]):
                    sign[i] += rest[i] * f[i]

            for i in range(scores.shape[0]):
                push[i] = parity * sign[i] * scores[i] * (one - scores[i])
            if anchor_weight != 0.0:
                anchor = real(anchor_weight * group_share[a]) * inverse_batch
                for i in range(batch):
                    push[i] += anchor * (scores[i] - real(labels[picked[i]]))
            add_rows(rows, picked, batch, push, gradient, model)

        step_now = real(parameter_step * max(1.0 - step_decay * update, _LEAST_STEP))
        for m in range(theta.shape[0]):
            for j in range(last):
                slant = gradient[m, j] + pull * theta[m, j]
                theta[m, j] -= step_now * coordinate_scale[j] * slant
            theta[m, last] -= step_now * coordinate_scale[last] * gradient[m, last]
            for j in range(last + 1):
                weights[m, j] = theta[m, j]
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
