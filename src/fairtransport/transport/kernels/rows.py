"""Rows packed into few bytes, their logits and gradients, and random numbers to draw them by.

A packed row is its dense columns (the first ones of theta), a fixed number of columns where it is 1, and the rest with
values (`fairtransport.linear.sgd_problem.PackedRows`). A word holds four column numbers of 16 bits each; words
come in pairs. A slot that a row does not need holds the number after the intercept's, where the weights are 0. The
plain twin is the product of a dense matrix and a vector.

Short rows are unrolled into pieces of 8, 4, 2 and 1 columns, because the beginning and the end of a vector loop would
cost more than it saves. Indices are unsigned, because numba checks whether a signed one counts from the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairtransport._columns.compilation import cached_njit
from fairtransport.transport.kernels.options import FAST_MATH

if TYPE_CHECKING:
    from numpy.typing import NDArray

_U = np.uint64
_1, _2, _3, _4, _8 = _U(1), _U(2), _U(3), _U(4), _U(8)
_16, _32, _48, _SLOT = _U(16), _U(32), _U(48), _U(0xFFFF)
_UNROLLED = 15  # most dense columns of a row that is unrolled


class Rows(NamedTuple):
    """Packed rows as flat arrays."""

    dense: NDArray[Any]
    stride: int
    n_dense: int
    words: NDArray[np.uint64]
    word_stride: int
    first_word: int
    n_words: int
    values: NDArray[Any]
    columns: NDArray[np.uint32]
    starts: NDArray[np.uint64]


@cached_njit(nogil=True, fastmath=FAST_MATH)
def _score_long(dense, stride, n_dense, drawn, batch, weights, model, logits):
    for i in range(batch):
        at = _U(drawn[i]) * _U(stride)
        total = logits[i]
        for j in range(_U(n_dense)):
            total += weights[model, j] * dense[at + j]
        logits[i] = total


@cached_njit(nogil=True, fastmath=FAST_MATH)
def _add_long(dense, stride, n_dense, drawn, batch, factors, gradient, model):
    for i in range(batch):
        at, factor = _U(drawn[i]) * _U(stride), factors[i]
        for j in range(_U(n_dense)):
            gradient[model, j] += factor * dense[at + j]


@cached_njit(nogil=True, inline="always")
def _dot_four(weights, model, dense, at, j):
    a, b = weights[model, j] * dense[at + j], weights[model, j + _1] * dense[at + j + _1]
    c, d = weights[model, j + _2] * dense[at + j + _2], weights[model, j + _3] * dense[at + j + _3]
    return (a + b) + (c + d)


@cached_njit(nogil=True, inline="always")
def _sum_word(weights, model, word):
    a, b = weights[model, word & _SLOT], weights[model, (word >> _16) & _SLOT]
    c, d = weights[model, (word >> _32) & _SLOT], weights[model, word >> _48]
    return (a + b) + (c + d)


@cached_njit(nogil=True, inline="always")
def _add_four(gradient, model, dense, at, j, factor):
    # All four are read before the first is written, so that none waits for another.
    a, b = gradient[model, j] + factor * dense[at + j], gradient[model, j + _1] + factor * dense[at + j + _1]
    c, d = gradient[model, j + _2] + factor * dense[at + j + _2], gradient[model, j + _3] + factor * dense[at + j + _3]
    gradient[model, j], gradient[model, j + _1] = a, b
    gradient[model, j + _2], gradient[model, j + _3] = c, d


@cached_njit(nogil=True, inline="always")
def _add_word(gradient, model, word, factor):
    gradient[model, word & _SLOT] += factor
    gradient[model, (word >> _16) & _SLOT] += factor
    gradient[model, (word >> _32) & _SLOT] += factor
    gradient[model, word >> _48] += factor


@cached_njit(nogil=True, fastmath={"contract"})
def score_rows(rows, drawn, batch, weights, model, logits):
    """Write the logits of the drawn rows under ``weights[model]`` into ``logits``."""
    dense, stride, n_dense, words, word_stride, first_word, n_words, values, columns, starts = rows
    intercept, zero = weights[model, weights.shape[1] - 2], weights.dtype.type(0)
    unrolled = n_dense if n_dense <= _UNROLLED else 0
    for i in range(batch):
        row = _U(drawn[i])
        at, j = row * _U(stride), _U(0)
        a, b = intercept, zero
        if unrolled & 8:
            a += _dot_four(weights, model, dense, at, j)
            b += _dot_four(weights, model, dense, at, j + _4)
            j += _8
        if unrolled & 4:
            a += _dot_four(weights, model, dense, at, j)
            j += _4
        if unrolled & 2:
            a += weights[model, j] * dense[at + j]
            b += weights[model, j + _1] * dense[at + j + _1]
            j += _2
        if unrolled & 1:
            a += weights[model, j] * dense[at + j]
        at = row * _U(word_stride) + _U(first_word)
        if n_words > 0:
            a += _sum_word(weights, model, words[at])
            b += _sum_word(weights, model, words[at + _1])
            for k in range(_2, _U(n_words), _2):
                a += _sum_word(weights, model, words[at + k])
                b += _sum_word(weights, model, words[at + k + _1])
        logits[i] = a + b
    if unrolled < n_dense:
        _score_long(dense, stride, n_dense, drawn, batch, weights, model, logits)
    if values.shape[0] > 0:
        for i in range(batch):
            row, a = _U(drawn[i]), logits[i]
            for k in range(starts[row], starts[row + _1]):
                a += weights[model, columns[k]] * values[k]
            logits[i] = a


@cached_njit(nogil=True, fastmath={"contract"})
def add_rows(rows, drawn, batch, factors, gradient, model):
    """Add the drawn rows, row i times ``factors[i]``, to ``gradient[model]``: the transpose of `score_rows`."""
    dense, stride, n_dense, words, word_stride, first_word, n_words, values, columns, starts = rows
    unrolled = n_dense if n_dense <= _UNROLLED else 0
    total = factors.dtype.type(0)
    for i in range(batch):
        row, factor = _U(drawn[i]), factors[i]
        total += factor
        at, j = row * _U(stride), _U(0)
        if unrolled & 8:
            _add_four(gradient, model, dense, at, j, factor)
            _add_four(gradient, model, dense, at, j + _4, factor)
            j += _8
        if unrolled & 4:
            _add_four(gradient, model, dense, at, j, factor)
            j += _4
        if unrolled & 2:
            gradient[model, j] += factor * dense[at + j]
            gradient[model, j + _1] += factor * dense[at + j + _1]
            j += _2
        if unrolled & 1:
            gradient[model, j] += factor * dense[at + j]
        at = row * _U(word_stride) + _U(first_word)
        if n_words > 0:
            _add_word(gradient, model, words[at], factor)
            _add_word(gradient, model, words[at + _1], factor)
            for k in range(_2, _U(n_words), _2):
                _add_word(gradient, model, words[at + k], factor)
                _add_word(gradient, model, words[at + k + _1], factor)
    gradient[model, gradient.shape[1] - 2] += total
    if unrolled < n_dense:
        _add_long(dense, stride, n_dense, drawn, batch, factors, gradient, model)
    if values.shape[0] > 0:
        for i in range(batch):
            row, factor = _U(drawn[i]), factors[i]
            for k in range(starts[row], starts[row + _1]):
                gradient[model, columns[k]] += factor * values[k]


# Random numbers as a function of (seed, position): SplitMix64 over a counter.

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_U1, _27, _30, _31, _U32 = np.uint64(1), np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


class Population(NamedTuple):
    """Packed rows that batches of each group are drawn from."""

    starts: NDArray[np.int64]
    rows: NDArray[np.int64]
    accept: NDArray[np.uint64]
    alias: NDArray[np.int64]


@cached_njit(nogil=True, inline="always")
def _bits(seed, position):
    z = seed + (position + _U1) * _GOLDEN
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    return z ^ (z >> _31)


@cached_njit(nogil=True)
def draw_index(seed, position, size):
    """Return draw number ``position`` of stream ``seed``: an index below ``size``, which is at most 2^32."""
    return np.int64(((_bits(np.uint64(seed), np.uint64(position)) >> _U32) * np.uint64(size)) >> _U32)


@cached_njit(nogil=True)
def draw_values(values, seed, position, batch, drawn):
    """Write ``batch`` values, drawn with replacement, into ``drawn``."""
    for i in range(batch):
        drawn[i] = values[draw_index(seed, position + np.uint64(i), values.shape[0])]


@cached_njit(nogil=True)
def draw_rows(population, group, seed, position, batch, drawn):
    """Write ``batch`` packed rows of one group, drawn in proportion to their weights, into ``drawn``."""
    first = population.starts[group]
    size = np.uint64(population.starts[group + 1] - first)
    for i in range(batch):
        bits = _bits(seed, position + np.uint64(i))
        drawn[i] = first + np.int64(((bits >> _U32) * size) >> _U32)
    if population.accept.shape[0] > 0:
        for i in range(batch):
            entry = drawn[i]
            if (_bits(seed, position + np.uint64(i)) & _LOW) >= population.accept[entry]:
                drawn[i] = population.alias[entry]
    if population.rows.shape[0] > 0:
        for i in range(batch):
            drawn[i] = population.rows[drawn[i]]


@cached_njit(nogil=True)
def fill_alias(weights, first, accept, alias):
    """Write Vose's alias table of ``weights``: slot i keeps itself when 32 random bits are below ``accept[i]``.

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
