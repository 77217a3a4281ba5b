"""Logits and gradients of rows that are packed into few bytes.

A packed row is its dense columns (the first ones of theta), a fixed number of columns where it is 1, and the rest with
values (`fairtransport.linear.solvers._packed_rows.PackedRows`). A word holds four column numbers of 16 bits each; words
come in pairs. A slot that a row does not need holds the number after the intercept's, where the weights are 0. The
plain twin is the product of a dense matrix and a vector.

Short rows are unrolled into pieces of 8, 4, 2 and 1 columns, because the beginning and the end of a vector loop would
cost more than it saves. Indices are unsigned, because numba checks whether a signed one counts from the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairtransport._columns.compilation import cached_njit
from fairtransport.transport.kernels._options import FAST_MATH

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Rows", "add_rows", "score_rows"]

_U = np.uint64
_1, _2, _3, _4, _8 = _U(1), _U(2), _U(3), _U(4), _U(8)
_16, _32, _48, _SLOT = _U(16), _U(32), _U(48), _U(0xFFFF)
_UNROLLED = 15  # most dense columns of a row that is unrolled


class Rows(NamedTuple):
    """Packed rows as flat arrays.

    Attributes
    ----------
    dense : ndarray
        Records of ``stride`` numbers; the first ``n_dense`` of each are the row's dense columns.
    words : ndarray of uint64
        The same bytes: records of ``word_stride`` words, of which ``n_words`` from ``first_word`` on hold slots.
    values, columns, starts : ndarray
        The other entries in compressed sparse row format.
    """

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
