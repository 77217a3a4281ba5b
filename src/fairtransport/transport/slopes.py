"""Transport between pictures of distributions, and training that follows its slopes.

A picture is a few dozen quantiles of a group's scores. Dual variables that climb on pictures see all pairs of
two distributions at once, not the pairs of one small batch, so what they teach does not depend on the batch. They
leave a table of slopes, the derivative of the transport term with respect to a score, which the stochastic updates
of theta then follow until the next picture.

Each compiled function has a plain NumPy twin in ``tests/transport/test_slopes.py``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fairtransport.transport.kernels import add_rows, draw_rows, exponential, logistic, score_rows
from fairtransport.transport.regularizers import EXPONENT_LIMIT, L2

__all__ = ["FREE", "OPPOSITE", "SAME", "add_slopes", "climb", "follow_slopes", "scores_of"]

#: How the two dual variables of a problem are tied: not at all, h = -f, or h = f (a distribution with itself).
FREE, OPPOSITE, SAME = 0, 1, 2

_MATH = {"reassoc", "contract", "nsz", "arcp"}
_L2 = L2.code
_LIMIT = EXPONENT_LIMIT
_LEAST = -700.0  # whose exponential is as good as 0


@njit(cache=True, nogil=True, fastmath=_MATH, inline="always")
def _l2_alpha(v):
    return 0.5 * max(v, 0.0)


@njit(cache=True, nogil=True, fastmath=_MATH)
def _entropy_alphas(point, value, y, value_y, strength, alphas):
    # Of one point with every y: loops without a branch or a call, which become vector instructions.
    for j in range(y.shape[0]):
        alphas[j] = max(min((value + value_y[j] - abs(point - y[j])) / strength, _LIMIT), _LEAST)
    exponential(alphas)


@njit(cache=True, nogil=True, fastmath=_MATH)
def climb(x, y, psi_x, psi_y, f, h, n_steps, step, strength, kind, tie):
    """Step the duals f of x and h of y uphill ``n_steps`` times, over all pairs of the points; in place."""
    n, m, width = x.shape[0], y.shape[0], f.shape[0]
    value_x, value_y, row, column, alphas = np.empty(n), np.empty(m), np.empty(n), np.empty(m), np.empty(m)
    up_x, up_y = np.empty(width), np.empty(width)
    for _ in range(n_steps):
        for i in range(n):
            total = 0.0
            for d in range(width):
                total += psi_x[i, d] * f[d]
            value_x[i] = total
        for j in range(m):
            total = 0.0
            for d in range(width):
                total += psi_y[j, d] * h[d]
            value_y[j] = total
        column[:] = 0.0
        for i in range(n):
            total = 0.0
            if kind == _L2:
                for j in range(m):
                    alpha = _l2_alpha((value_x[i] + value_y[j] - abs(x[i] - y[j])) / strength)
                    total += alpha
                    column[j] += alpha
            else:
                _entropy_alphas(x[i], value_x[i], y, value_y, strength, alphas)
                for j in range(m):
                    total += alphas[j]
                    column[j] += alphas[j]
            row[i] = total
        up_x[:] = 0.0
        up_y[:] = 0.0
        for i in range(n):
            weight = (1.0 - row[i] / m) / n
            for d in range(width):
                up_x[d] += weight * psi_x[i, d]
        for j in range(m):
            weight = (1.0 - column[j] / n) / m
            for d in range(width):
                up_y[d] += weight * psi_y[j, d]
        for d in range(width):
            if tie == OPPOSITE:
                f[d] += step * (up_x[d] - up_y[d])
                h[d] = -f[d]
            elif tie == SAME:
                f[d] += step * (up_x[d] + up_y[d])
                h[d] = f[d]
            else:
                f[d] += step * up_x[d]
                h[d] += step * up_y[d]


@njit(cache=True, nogil=True, fastmath=_MATH)
def add_slopes(nodes, value, slope, y, value_y, strength, kind, table):
    """Add to ``table`` the derivative of the dual objective with respect to a score at each node.

    ``value`` and ``slope`` are those of f at the nodes, ``value_y`` that of h at the points y.
    """
    m = y.shape[0]
    alphas = np.empty(m)
    for i in range(nodes.shape[0]):
        if kind == _L2:
            for j in range(m):
                alphas[j] = _l2_alpha((value[i] + value_y[j] - abs(nodes[i] - y[j])) / strength)
        else:
            _entropy_alphas(nodes[i], value[i], y, value_y, strength, alphas)
        total = 0.0
        signed = 0.0
        for j in range(m):
            gap = nodes[i] - y[j]
            total += alphas[j]
            signed += alphas[j] if gap > 0.0 else (-alphas[j] if gap < 0.0 else 0.0)
        table[i] += (1.0 - total / m) * slope[i] + signed / m


@njit(cache=True, nogil=True)
def scores_of(rows, picked, weights, model, logits, scores):
    """Write the model's scores of some packed rows into ``scores``; weights as in `follow_slopes`."""
    score_rows(rows, picked, picked.shape[0], weights, np.uint64(model), logits)
    logistic(logits, scores)


@njit(cache=True, nogil=True, fastmath=_MATH)
def _pushes(slopes, labels, picked, scores, parity, anchor, push):
    # Derivative of the objective with respect to each row's logit.
    cells = slopes.shape[0] - 1
    for i in range(picked.shape[0]):
        score = scores[i]
        place = score * cells
        cell = int(place) if 0.0 <= place < cells else (cells - 1 if place >= cells else 0)
        slope = slopes[cell] + (place - cell) * (slopes[cell + 1] - slopes[cell])
        push[i] = parity * slope * score * (1.0 - score) + anchor * (score - labels[picked[i]])


@njit(cache=True, nogil=True, fastmath=_MATH)
def follow_slopes(
    first_update, n_updates, seed,
    rows, labels, group_rows, group_starts, group_share, accept, alias,
    slopes, parity_weight, anchor_weight, ridge, hold, origin,
    first_step, last_step, n_passed, n_steps, scale, matrix,
    theta, theta_sum, summing,
    weights, gradient, picked, logits, scores, push,
):  # fmt: skip
    """Advance theta by ``n_updates`` stochastic steps along the anchor loss and tables of slopes, in place.

    One update draws as many rows of each group as ``picked`` has room for; of a group that has no more, and no weights,
    it takes every row once, so that neither chance nor their order matters. ``slopes[a]`` holds the derivative of
    the transport term at scores 0, 1/m, ..., 1 for group a. Weights are held near ``origin`` by the matrix ``hold``,
    where there is one. A step is preconditioned by ``matrix[model]`` where
    there is one, by ``scale`` otherwise; its size goes evenly from ``first_step`` to ``last_step`` in ``n_steps``
    updates, of which ``n_passed`` were before these: a run in pieces is the same to the last bit. The arrays from
    ``weights`` on are room to work in; ``weights`` and ``gradient`` have a column more than theta, for empty slots.
    """
    n_groups = group_starts.shape[0] - 1
    last = theta.shape[1] - 1
    batch = picked.shape[0]
    own_weights = theta.shape[0] > 1
    seed = np.uint64(seed)
    for update in range(n_updates):
        for m in range(theta.shape[0]):
            for j in range(last + 1):
                weights[m, j] = theta[m, j]
            weights[m, last + 1] = 0.0
        gradient[:, :] = 0.0
        for a in range(n_groups):
            model = np.uint64(a if own_weights else 0)
            first = group_starts[a]
            size = np.uint64(group_starts[a + 1] - first)
            count = batch
            if np.int64(size) <= batch and accept.shape[0] == 0:
                count = np.int64(size)
                for i in range(count):
                    picked[i] = group_rows[first + i] if group_rows.shape[0] > 0 else first + i
            else:
                position = np.uint64(((first_update + update) * n_groups + a) * batch)
                draw_rows(seed, position, first, size, accept, alias, group_rows, batch, picked)
            score_rows(rows, picked, count, weights, model, logits)
            logistic(logits[:count], scores[:count])
            anchor = anchor_weight * group_share[a] / count
            _pushes(slopes[a], labels, picked[:count], scores, parity_weight / count, anchor, push)
            add_rows(rows, picked, count, push, gradient, model)
        step = first_step + (last_step - first_step) * (n_passed + update + 0.5) / n_steps
        for m in range(theta.shape[0]):
            for j in range(last):
                gradient[m, j] += anchor_weight * ridge[j] * theta[m, j]
            for j in range(hold.shape[0]):
                total = 0.0
                for k in range(last + 1):
                    total += hold[j, k] * (theta[m, k] - origin[k])
                gradient[m, j] += anchor_weight * total
            if matrix.shape[0] > 0:
                for j in range(last + 1):
                    total = 0.0
                    for k in range(last + 1):
                        total += matrix[m, j, k] * gradient[m, k]
                    theta[m, j] -= step * total
            else:
                for j in range(last + 1):
                    theta[m, j] -= step * scale[j] * gradient[m, j]
            if summing:
                for j in range(last + 1):
                    theta_sum[m, j] += theta[m, j]
