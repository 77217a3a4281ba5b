"""Random numbers as a function of (seed, position): SplitMix64 over a counter.

A run that is cut into pieces draws the same rows as one long run, and so does the plain twin in
`fairtransport.transport.reference`.

References
----------
G. L. Steele, D. Lea and C. H. Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.
M. D. Vose, A Linear Algorithm for Generating Random Numbers with a Given Distribution, IEEE Transactions on Software
Engineering 17, 1991.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fairtransport._columns.compilation import cached_njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Population", "draw_index", "draw_rows", "draw_values", "fill_alias"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_1, _27, _30, _31, _32 = np.uint64(1), np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


class Population(NamedTuple):
    """Packed rows that batches of each group are drawn from.

    Attributes
    ----------
    starts : ndarray of shape (n_groups + 1,)
        Group ``a`` has the entries from ``starts[a]`` up to ``starts[a + 1]``.
    rows : ndarray
        The packed row of each entry; empty where entry i is row i.
    accept, alias : ndarray
        Alias table of each group, from `fill_alias`; empty where all rows weigh the same.
    """

    starts: NDArray[np.int64]
    rows: NDArray[np.int64]
    accept: NDArray[np.uint64]
    alias: NDArray[np.int64]


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
def draw_rows(population, group, seed, position, batch, drawn):
    """Write ``batch`` packed rows of one group, drawn in proportion to their weights, into ``drawn``."""
    first = population.starts[group]
    size = np.uint64(population.starts[group + 1] - first)
    for i in range(batch):
        bits = _bits(seed, position + np.uint64(i))
        drawn[i] = first + np.int64(((bits >> _32) * size) >> _32)
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
