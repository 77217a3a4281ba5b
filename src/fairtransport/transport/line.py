"""Exact optimal transport on the real line: distances, couplings, and maps of one or many samples.

On the line the optimal coupling is monotone: it joins two samples level by level, where the level of a value is the
share of the mass at or below it. Distances, couplings and maps therefore take one merge of two sorted samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtransport._arrays import Floats, Ints
from fairtransport._columns.compilation import FEW_ROWS, read_only
from fairtransport._validation import check_choice, check_count, check_real, check_vector, check_weights
from fairtransport.transport.kernels import line as loops

#: Scores up to which NumPy is preferred to loops that would first have to be compiled, for seconds.
FEW_SCORES = 1_000


def slice_means(values: Floats, mass: Floats, n_slices: int) -> Floats:
    """Return the mean of each of ``n_slices`` parts of equal mass of an ascending sample; borders may split a row."""
    cumulative = np.concatenate(([0.0], np.cumsum(mass)))
    area = np.concatenate(([0.0], np.cumsum(mass * values)))
    levels = np.linspace(0.0, cumulative[-1], n_slices + 1)
    return np.asarray(np.diff(np.interp(levels, cumulative, area)) * n_slices / cumulative[-1])


def row_slopes(slopes: Floats, shares: Floats) -> Floats:
    """Return the derivative with respect to each row of an ascending sample, from the slopes of its slices."""
    levels = np.concatenate(([0.0], np.cumsum(shares)))
    integral = np.concatenate(([0.0], np.cumsum(slopes))) / slopes.size
    return np.asarray(np.diff(np.interp(levels / levels[-1], np.linspace(0.0, 1.0, slopes.size + 1), integral)))


def ascending_order(values: Floats) -> Ints:
    """Return the positions of the values in ascending order, to within 2^-33 of their range, in linear time."""
    low, high = float(values.min()), float(values.max())
    # A range beyond these limits cannot be divided by.
    if values.size <= FEW_SCORES or values.size >= 1 << loops.INDEX_BITS or not 1e-290 < high - low < np.inf:
        return np.argsort(values, kind="stable")
    return np.asarray(loops.radix_order(values, low, (2.0**33 - 1.0) / (high - low)))


#: Cells of [0, 1]. Distances of binned scores are exact to half a cell.
CELLS = 1024


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """A weighted empirical distribution, in ascending order.

    Use `from_values` for values in any order.

    Parameters
    ----------
    values : array of shape (n,)
        Ascending; ties are allowed.
    levels : array of shape (n,)
        Share of the mass at or before each entry: strictly ascending, the last exactly 1.

    Notes
    -----
    Samples are compared level by level, and equal shares have equal levels to the last bit: 3/6 and 1/2 are the same
    number, while a cumulative sum of sixths may differ from one half.

    Examples
    --------
    >>> sample = Sample.from_values([0.9, 0.1, 0.4], weights=[1, 1, 2])
    >>> sample.values, sample.weights
    (array([0.1, 0.4, 0.9]), array([0.25, 0.5 , 0.25]))
    >>> sample.quantile([0.25, 0.5, 1.0])
    array([0.1, 0.4, 0.9])
    """

    values: Floats
    levels: Floats

    def __post_init__(self) -> None:
        values = check_vector(self.values, name="values")
        levels = check_vector(self.levels, name="levels")
        _check_same_length(values, levels, names="values and levels")
        if np.any(values[1:] < values[:-1]):
            raise ValueError("values must ascend; use Sample.from_values, which sorts.")
        if not levels[0] > 0 or np.any(levels[1:] <= levels[:-1]) or levels[-1] != 1:
            raise ValueError("levels must ascend strictly from above 0 to exactly 1; use Sample.from_values.")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "levels", levels)

    @classmethod
    def from_values(cls, values: ArrayLike, weights: ArrayLike | None = None) -> Sample:
        """Return the distribution of values in any order; values without weight are dropped."""
        array = check_vector(values, name="values")
        mass = check_weights(weights, size=array.size, name="weights")
        if mass is None:
            return cls(np.sort(array), _levels(None, array.size))
        order = np.argsort(array, kind="stable")
        return cls.from_sorted(array[order], mass[order])

    @classmethod
    def from_sorted(cls, values: Floats, weights: Floats | None = None) -> Sample:
        """Return the distribution of ascending values."""
        levels = _levels(weights, values.size)
        if weights is None:
            return cls(values, levels)
        keep = np.diff(levels, prepend=0.0) > 0
        return cls(values[keep], levels[keep])

    def __repr__(self) -> str:
        return f"Sample({len(self)} values)"  # the values are people's scores

    def __len__(self) -> int:
        return self.values.size

    @cached_property
    def weights(self) -> Floats:
        """Share of the mass at each entry: positive, with sum 1."""
        return np.diff(self.levels, prepend=0.0)

    @property
    def mean(self) -> float:
        """Expected value."""
        return float(self.values @ self.weights)

    def quantile(self, levels: ArrayLike) -> Floats:
        """Return the generalised inverse inf{v : F(v) >= level} at levels within [0, 1]."""
        queries = np.asarray(levels, dtype=np.float64)
        if not np.all((queries >= 0) & (queries <= 1)):
            raise ValueError("levels must lie within [0, 1].")
        return self.values[positions(self.levels, queries)]

    def cdf(self, points: ArrayLike, side: Literal["left", "right"] = "right") -> Floats:
        """Return the share of the mass at or below each point (``side="left"``: strictly below)."""
        check_choice(side, ("left", "right"), name="side")
        queries = np.asarray(points, dtype=np.float64)
        if np.any(np.isnan(queries)):
            raise ValueError("points must be numbers; remove or impute NaN first.")
        index = positions(self.values, queries if side == "left" else np.nextafter(queries, np.inf))
        return np.where(index > 0, self.levels[np.maximum(index, 1) - 1], 0.0)

    def equal_mass(self, n: int) -> Floats:
        """Return the values at levels (i + 1/2) / n: an ascending approximation by ``n`` values of equal weight."""
        count = check_count(n, name="n")
        return self.quantile((np.arange(count) + 0.5) / count)


@dataclass(frozen=True, eq=False)
class Coupling:
    """A coupling of two samples: ``mass[k]`` is moved from ``rows[k]`` to ``columns[k]``.

    Attributes
    ----------
    rows, columns : ndarray
        Indices into the two samples in their original order.
    mass : ndarray
    shape : tuple of int
        Sizes of the two samples.
    """

    rows: Ints
    columns: Ints
    mass: Floats
    shape: tuple[int, int]

    def cost(self, x: ArrayLike, y: ArrayLike, p: float = 1.0) -> float:
        """Return the sum of mass times abs(x - y) ** p."""
        power = check_real(p, name="p", least=1.0)
        sources, targets = check_vector(x, name="x"), check_vector(y, name="y")
        for array, size, name in ((sources, self.shape[0], "x"), (targets, self.shape[1], "y")):
            if array.size != size:
                raise ValueError(f"{name} has {array.size} values, but the coupling is of {size}.")
        return float(self.mass @ np.abs(sources[self.rows] - targets[self.columns]) ** power)

    def to_dense(self) -> Floats:
        """Return the plan as a matrix with one row per x and one column per y."""
        plan = np.zeros(self.shape)
        np.add.at(plan, (self.rows, self.columns), self.mass)
        return plan


@dataclass(frozen=True, eq=False, repr=False)
class QuantileMap:
    """A non-decreasing map of the line: linear between ``knots``, constant beyond them.

    The image of a point does not depend on the other points.
    """

    knots: Floats
    images: Floats

    def __post_init__(self) -> None:
        knots, images = check_vector(self.knots, name="knots"), check_vector(self.images, name="images")
        _check_same_length(knots, images, names="knots and images")
        if np.any(knots[1:] <= knots[:-1]):
            raise ValueError("knots must ascend strictly.")
        if np.any(images[1:] < images[:-1]):
            raise ValueError("images must not descend: an optimal map on the line is monotone.")
        object.__setattr__(self, "knots", knots)
        object.__setattr__(self, "images", images)

    def __repr__(self) -> str:
        return f"QuantileMap({len(self.knots)} knots)"  # the knots are people's scores

    def __call__(self, points: ArrayLike) -> Floats:
        """Return the images of points of any shape."""
        array = np.asarray(points, dtype=np.float64)
        if not np.all(np.isfinite(array)):
            raise ValueError("points must be finite; remove or impute NaN and infinite values first.")
        if array.size > FEW_ROWS:
            images = array.flatten()
            self.move(images)
            return images.reshape(array.shape)
        left = np.maximum(np.searchsorted(self.knots, array, side="right") - 1, 0)
        right = np.minimum(left + 1, self.knots.size - 1)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            share = np.maximum(array - self.knots[left], 0.0) / (self.knots[right] - self.knots[left])
            between = self.images[left] + share * (self.images[right] - self.images[left])
        return np.where(right > left, np.minimum(between, self.images[right]), self.images[left])

    def move(self, points: Floats, amount: float = 1.0) -> None:
        """Replace finite points by (1 - amount) * point + amount * image, in place."""
        if not isinstance(points, np.ndarray) or points.dtype != np.float64 or points.ndim != 1:
            raise TypeError("points must be a vector of float64, which is changed in place.")
        loops.map_points(points, self._index, amount)

    def prepare(self) -> Self:
        """Build the index of the knots now instead of at the first call."""
        self._index  # noqa: B018 - a cached property
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {"knots": self.knots, "images": self.images}  # the index is rebuilt when needed

    @cached_property
    def _index(self) -> loops.MapIndex:
        """The knots with a guide to them: a cell of equal width for each knot."""
        n_cells = self.knots.size
        with np.errstate(over="ignore", divide="ignore"):
            scale = float(n_cells / (self.knots[-1] - self.knots[0]))
        if not 0 < scale < np.inf:  # one knot, or a range that floats cannot divide: one cell
            n_cells, scale = 1, 0.0
        # For each cell the last knot of the cells before it, or the first.
        offsets = (self.knots - self.knots[0]) * scale if scale > 0 else np.zeros(1)
        cells = np.minimum(offsets, n_cells - 1).astype(np.int64)
        n_before = np.cumsum(np.bincount(cells, minlength=n_cells)[:-1])
        guide = np.append(0, np.maximum(n_before - 1, 0)).astype(np.int32)
        knots, images = np.append(self.knots, [np.inf] * 4), np.append(self.images, [self.images[-1]] * 4)
        return loops.MapIndex(knots, images, guide, scale)


def wasserstein(
    x: ArrayLike | Sample,
    y: ArrayLike | Sample,
    *,
    p: float = 1.0,
    x_weights: ArrayLike | None = None,
    y_weights: ArrayLike | None = None,
) -> float:
    r"""Return the exact Wasserstein-p distance between two samples.

    Parameters
    ----------
    x, y : array-like or Sample
        The samples, in any order and of any two sizes.
    p : float, default 1.0
        Order of the distance, at least 1.
    x_weights, y_weights : array-like, optional
        Weights of arrays; equal when omitted. A `Sample` has weights already.

    Returns
    -------
    float

    Notes
    -----
    With distribution functions F, G and quantile functions :math:`F^{-1}, G^{-1}`,

    .. math:: W_p^p = \int_0^1 |F^{-1}(u) - G^{-1}(u)|^p \, du, \qquad W_1 = \int |F(v) - G(v)| \, dv.

    Examples
    --------
    >>> wasserstein([0.0, 1.0], [0.5])
    0.5
    >>> wasserstein([0.0, 1.0], [0.0, 1.0, 1.0, 1.0], p=2)
    0.5
    """
    power = check_real(p, name="p", least=1.0)
    source = as_sample(x, x_weights, name="x")
    target = as_sample(y, y_weights, name="y")
    if power == 1.0:
        points = _merge(source.values, target.values)
        return float((np.abs(source.cdf(points) - target.cdf(points))[:-1] * np.diff(points)).sum())
    grid = level_grid([source, target])
    distances = np.abs(source.quantile(grid) - target.quantile(grid))
    largest = float(distances.max())
    if largest == 0:
        return 0.0
    exponent = np.frexp(largest)[1]  # a quotient of subnormal numbers may overflow
    scaled = np.ldexp(distances, -exponent) / np.ldexp(largest, -exponent)  # so that no power overflows
    mean = np.diff(grid, prepend=0.0) @ scaled**power
    return largest * float(mean) ** (1 / power)


def coupling(
    x: ArrayLike, y: ArrayLike, *, x_weights: ArrayLike | None = None, y_weights: ArrayLike | None = None
) -> Coupling:
    """Return the optimal coupling of two samples, which is the same for every cost abs(x - y) ** p with p >= 1.

    Parameters
    ----------
    x, y : array-like
        The samples, in any order and of any two sizes.
    x_weights, y_weights : array-like, optional
        Weights, normalised to sum 1; equal when omitted.

    Returns
    -------
    Coupling
        At most ``len(x) + len(y) - 1`` entries, in ascending order of the values they join.

    Examples
    --------
    >>> plan = coupling([0.9, 0.1], [0.2, 0.8])
    >>> plan.rows, plan.columns, plan.mass
    (array([1, 0]), array([0, 1]), array([0.5, 0.5]))
    """
    sources, targets = check_vector(x, name="x"), check_vector(y, name="y")
    x_order, x_levels = _ordered_levels(sources, x_weights, name="x_weights")
    y_order, y_levels = _ordered_levels(targets, y_weights, name="y_weights")
    grid = _merge(x_levels, y_levels)
    grid = grid[grid > 0]  # a value without weight may come first
    return Coupling(
        rows=x_order[np.searchsorted(x_levels, grid, side="left")],
        columns=y_order[np.searchsorted(y_levels, grid, side="left")],
        mass=np.diff(grid, prepend=0.0),
        shape=(sources.size, targets.size),
    )


def quantile_map(
    source: ArrayLike | Sample,
    target: ArrayLike | Sample,
    *,
    source_weights: ArrayLike | None = None,
    target_weights: ArrayLike | None = None,
) -> QuantileMap:
    r"""Return the monotone map that transports the source sample to the target sample and extends to new points.

    Parameters
    ----------
    source, target : array-like or Sample
        The samples, in any order and of any two sizes.
    source_weights, target_weights : array-like, optional
        Weights of arrays; equal when omitted. A `Sample` has weights already.

    Returns
    -------
    QuantileMap
        Knots at the distinct source values.

    Notes
    -----
    A source value v has the mean of the target over its levels, the barycentric projection of the optimal coupling,

    .. math:: T(v) = \frac{1}{F(v) - F(v^-)} \int_{F(v^-)}^{F(v)} G^{-1}(u) \, du,

    so that ties are not broken at random, and the mean of the images is the target's mean.

    Examples
    --------
    >>> carry = quantile_map([0.3, 0.1, 0.2], [0.7, 0.9, 0.5])
    >>> carry([0.1, 0.15, 0.3, 0.8])
    array([0.5, 0.6, 0.9, 0.9])
    """
    x = as_sample(source, source_weights, name="source")
    y = as_sample(target, target_weights, name="target")
    last_of_tie = np.append(np.flatnonzero(x.values[1:] != x.values[:-1]), len(x) - 1)
    return QuantileMap(x.values[last_of_tie], _mean_quantiles(x.levels[last_of_tie], y))


def _mean_quantiles(tops: Floats, sample: Sample) -> Floats:
    """Return the means of a quantile function between neighbours of 0 and ``tops``."""
    if tops.size + len(sample) > FEW_ROWS:
        return np.asarray(loops.mean_quantiles(read_only(tops), read_only(sample.levels), read_only(sample.values)))
    grid = _merge(tops, sample.levels)
    mass, values = np.diff(grid, prepend=0.0), sample.values[np.searchsorted(sample.levels, grid)]
    ends = np.searchsorted(grid, tops)
    starts = np.append(0, ends[:-1] + 1)
    rises = np.add.reduceat(mass * (values - np.repeat(values[starts], np.diff(starts, append=grid.size))), starts)
    return np.minimum(values[starts] + rises / np.add.reduceat(mass, starts), values[ends])


def as_sample(values: ArrayLike | Sample, weights: ArrayLike | None = None, *, name: str) -> Sample:
    """Return ``values`` as a `Sample`; one that is a `Sample` already takes no weights."""
    if isinstance(values, Sample):
        if weights is not None:
            raise ValueError(f"{name} is a Sample, which has weights already; leave out {name}_weights.")
        return values
    array = check_vector(values, name=name)
    return Sample.from_values(array, check_weights(weights, size=array.size, name=f"{name}_weights"))


def level_grid(samples: Sequence[Sample]) -> Floats:
    """Return the levels at which any of the samples steps; below each, all quantile functions are constant."""
    return _merge(*(sample.levels for sample in samples))


def positions(ascending: Floats, queries: Floats) -> Ints:
    """Return ``np.searchsorted(ascending, queries)``, faster for many queries that ascend."""
    if queries.size <= FEW_ROWS:
        return np.searchsorted(ascending, queries)
    return np.asarray(loops.level_positions(read_only(ascending), read_only(queries.ravel()))).reshape(queries.shape)


def _check_same_length(first: NDArray[Any], second: NDArray[Any], *, names: str) -> None:
    """Raise when two arrays differ in length."""
    if first.size != second.size:
        raise ValueError(f"{names} must be equally long; got {first.size} and {second.size}.")


def _levels(weights: Floats | None, size: int) -> Floats:
    """Return cumulative shares, by one division for each value, so that equal fractions are equal to the last bit."""
    if weights is None:
        return np.arange(1, size + 1) / size
    total = np.cumsum(weights)
    return total / total[-1]


def _ordered_levels(values: Floats, weights: ArrayLike | None, *, name: str) -> tuple[Ints, Floats]:
    """Return the positions in ascending order of value, and the levels there."""
    mass = check_weights(weights, size=values.size, name=name)
    order = np.argsort(values, kind="stable").astype(np.int64, copy=False)
    return order, _levels(None if mass is None else mass[order], values.size)


def _merge(*ascending: Floats) -> Floats:
    """Return the distinct entries of ascending arrays, ascending."""
    merged = np.concatenate(ascending)
    merged.sort(kind="stable")  # timsort finds the runs: a linear merge
    return merged[np.append(True, merged[1:] != merged[:-1])]


# Many points, each moved by one of several maps of the line, on all cores.

_KNOTS = 1 << 14  # per bucket: 320 KiB of knots, images and guide
_POINTS = 1 << 11  # least per bucket, on average
_MOST_BUCKETS = 1 << 10  # more sequential streams than a processor prefetches well
_CELLS = 1 << 12  # of a map with several buckets
_CHUNK = 1 << 16  # least points of a thread


def move_by_code(
    points: Floats, codes: NDArray[Any], maps: Sequence[QuantileMap], amount: float, *, n_threads: int = 1
) -> Floats:
    """Return each point moved towards its image under the map of its code."""
    if codes.size and int(codes.max()) >= len(maps):
        raise ValueError(f"codes must be below {len(maps)}, the number of maps.")
    points, codes = read_only(points), read_only(codes)
    buckets = _Buckets.of(maps, points.size)
    n_chunks = max(1, min(4 * n_threads, points.size // _CHUNK))
    edges = np.linspace(0, points.size, n_chunks + 1).astype(np.int64).tolist()
    chunks = [slice(*pair) for pair in pairwise(edges)]
    counts = np.zeros((n_chunks, len(buckets)), dtype=np.int64)
    parts, moved, owners = np.empty(points.size), np.empty(points.size), np.empty(points.size, dtype=np.uint16)

    def count(number: int) -> None:
        loops.count_buckets(points[chunks[number]], codes[chunks[number]], buckets.cells, counts[number])

    def split(number: int) -> None:
        chunk = chunks[number]
        loops.split_buckets(points[chunk], codes[chunk], buckets.cells, starts[number], parts, owners[chunk])

    def move(number: int) -> None:
        for bucket in filled[number::n_chunks]:
            maps[buckets.maps[bucket]].move(parts[ends[bucket] : ends[bucket + 1]], amount)

    def join(number: int) -> None:
        loops.join_buckets(parts, owners[chunks[number]], starts[number], moved[chunks[number]])

    n_threads = min(n_threads, n_chunks)
    with ThreadPoolExecutor(n_threads) as pool:
        spread = pool.map if n_threads > 1 else map
        list(spread(count, range(n_chunks)))
        filled = np.flatnonzero(counts.any(axis=0)).tolist()
        # The points of a bucket are contiguous, those of the first chunk first.
        starts = np.cumsum(np.append(0, counts.T.ravel()))[:-1].reshape(counts.T.shape).T.copy()
        ends = [*starts[0].tolist(), points.size]
        for task in (split, move, join):
            list(spread(task, range(n_chunks)))
    return moved


@dataclass(frozen=True, eq=False)
class _Buckets:
    """The bucket that a point of a code belongs to, and the map of each bucket."""

    cells: loops.Cells
    maps: list[int]

    def __len__(self) -> int:
        return len(self.maps)

    @classmethod
    def of(cls, maps: Sequence[QuantileMap], n_points: int) -> _Buckets:
        n_knots = sum(carry.knots.size for carry in maps)
        size = max(_KNOTS, n_knots // _MOST_BUCKETS, n_knots * _POINTS // max(n_points, 1))
        owners: list[int] = []
        lows, scales, cells = [], [], []
        for number, carry in enumerate(maps):
            knots = carry.knots
            with np.errstate(over="ignore", divide="ignore"):
                scale = float(_CELLS / (knots[-1] - knots[0]))
            if knots.size <= size or not 0 < scale < np.inf:
                bucket, scale = np.zeros(1, dtype=np.int64), 0.0
            else:
                # Consecutive cells form a bucket until they have ``size`` knots.
                bucket = np.searchsorted(knots, knots[0] + np.arange(_CELLS) / scale) // size
            lows.append(knots[0])
            scales.append(scale)
            cells.append(bucket + len(owners))
            owners += [number] * (int(bucket[-1]) + 1)
        firsts = np.cumsum([0, *map(len, cells)])
        return cls(
            loops.Cells(np.array(lows), np.array(scales), firsts, np.concatenate(cells).astype(np.uint16)), owners
        )
