"""Products with rows, and the random numbers by which they are drawn.

The plain twin of `score_rows` and `score_sparse` is the product of a matrix and a vector, that of `add_rows` and
`sum_sparse` the product with its transpose, and that of `add_outer_products` X' diag(f) X. Indices are unsigned,
because numba checks whether a signed one counts from the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Ints
from fairtransport._columns.compilation import FAST_MATH, cached_njit

_U, _1, _2 = np.uint64, np.uint64(1), np.uint64(2)


class Rows(NamedTuple):
    """A dense matrix, or the arrays of a sparse one row by row; the others are empty."""

    dense: NDArray[Any]
    values: NDArray[Any]
    columns: NDArray[np.uint32]
    starts: NDArray[np.uint64]


@cached_njit(nogil=True, fastmath=FAST_MATH)
def _score_dense(dense, drawn, theta, model, logits):
    for i in range(drawn.shape[0]):
        row, total = _U(drawn[i]), logits[i]
        for j in range(_U(dense.shape[1])):
            total += theta[model, j] * dense[row, j]
        logits[i] = total


@cached_njit(nogil=True, fastmath=FAST_MATH)
def _add_dense(dense, drawn, factors, gradient, model):
    for i in range(drawn.shape[0]):
        row, factor = _U(drawn[i]), factors[i]
        for j in range(_U(dense.shape[1])):
            gradient[model, j] += factor * dense[row, j]


# The few entries of a sparse row are summed in order: the beginning and the end of a vector loop would cost more.


@cached_njit(nogil=True, fastmath={"contract"})
def score_rows(rows, drawn, theta, model, logits):
    """Write the logits of the drawn rows under ``theta[model]``, the intercept last, into ``logits``."""
    dense, values, columns, starts = rows
    logits[:] = theta[model, theta.shape[1] - 1]
    if dense.shape[1] > 0:
        _score_dense(dense, drawn, theta, model, logits)
        return
    for i in range(drawn.shape[0]):
        row, total = _U(drawn[i]), logits[i]
        for k in range(starts[row], starts[row + _1]):
            total += theta[model, columns[k]] * values[k]
        logits[i] = total


@cached_njit(nogil=True, fastmath={"contract"})
def add_rows(rows, drawn, factors, gradient, model):
    """Add the drawn rows, row i times ``factors[i]``, to ``gradient[model]``: the transpose of `score_rows`."""
    dense, values, columns, starts = rows
    gradient[model, gradient.shape[1] - 1] += factors[: drawn.shape[0]].sum()
    if dense.shape[1] > 0:
        _add_dense(dense, drawn, factors, gradient, model)
        return
    for i in range(drawn.shape[0]):
        row, factor = _U(drawn[i]), factors[i]
        for k in range(starts[row], starts[row + _1]):
            gradient[model, columns[k]] += factor * values[k]


@cached_njit(nogil=True, fastmath={"contract"})
def score_sparse(values, columns, starts, theta, logits):
    """Write the logits of all sparse rows under ``theta``, the intercept last, into ``logits``."""
    intercept = theta[theta.shape[0] - 1]
    for i in range(logits.shape[0]):
        even, odd = intercept, 0.0
        k, end = _U(starts[i]), _U(starts[i + 1])
        while k + _1 < end:
            even += values[k] * theta[_U(columns[k])]
            odd += values[k + _1] * theta[_U(columns[k + _1])]
            k += _2
        if k < end:
            even += values[k] * theta[_U(columns[k])]
        logits[i] = even + odd


@cached_njit(nogil=True, fastmath={"contract"})
def sum_sparse(values, columns, starts, factors, gradient):
    """Write the sum of all sparse rows, row i times ``factors[i]``, and that of the factors into ``gradient``."""
    gradient[:] = 0.0
    total = 0.0
    for i in range(factors.shape[0]):
        factor = factors[i]
        total += factor
        for k in range(_U(starts[i]), _U(starts[i + 1])):
            gradient[_U(columns[k])] += factor * values[k]
    gradient[gradient.shape[0] - 1] = total


@cached_njit(nogil=True)
def add_outer_products(values, columns, starts, drawn, factors, moments):
    """Add the outer product of each drawn sparse row, with a last column of ones, times its factor to ``moments``.

    Columns of a row ascend, and only the lower triangle is written.
    """
    last = _U(moments.shape[0] - 1)
    for i in range(drawn.shape[0]):
        factor, begin, end = factors[i], _U(starts[drawn[i]]), _U(starts[drawn[i] + 1])
        moments[last, last] += factor
        for k in range(begin, end):
            column, product = _U(columns[k]), factor * values[k]
            moments[last, column] += product
            for j in range(begin, k + _1):
                moments[column, _U(columns[j])] += product * values[j]


# Random numbers as a function of (seed, position): SplitMix64 over a counter.

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_27, _30, _31, _32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


class Population(NamedTuple):
    """Where the rows of each cell start, from which batches are drawn; with row weights, the cells' alias tables."""

    starts: Ints
    accept: NDArray[np.uint64]
    alias: Ints


@cached_njit(nogil=True, inline="always")
def _bits(seed, position):
    z = seed + (position + _1) * _GOLDEN
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    return z ^ (z >> _31)


@cached_njit(nogil=True)
def draw_index(seed, position, size):
    """Return draw number ``position`` of stream ``seed``: an index below ``size``, which is at most 2^32."""
    return np.int64(((_bits(np.uint64(seed), np.uint64(position)) >> _32) * np.uint64(size)) >> _32)


@cached_njit(nogil=True)
def draw_values(values, seed, position, batch, drawn):
    """Write ``batch`` values, drawn with replacement, into ``drawn``."""
    for i in range(batch):
        drawn[i] = values[draw_index(seed, position + np.uint64(i), values.shape[0])]


@cached_njit(nogil=True)
def draw_rows(population, cell, seed, position, drawn):
    """Fill ``drawn`` with rows of one cell, drawn in proportion to their weights."""
    first = population.starts[cell]
    size = np.uint64(population.starts[cell + 1] - first)
    weighted = population.accept.shape[0] > 0
    for i in range(drawn.shape[0]):
        bits = _bits(seed, position + np.uint64(i))
        entry = first + np.int64(((bits >> _32) * size) >> _32)
        if weighted and (bits & _LOW) >= population.accept[entry]:
            entry = population.alias[entry]
        drawn[i] = entry


@cached_njit(nogil=True)
def fill_alias(weights, first, accept, alias):
    """Write Vose's alias table, numbered from ``first``: a slot keeps itself if 32 random bits are below ``accept``."""
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
