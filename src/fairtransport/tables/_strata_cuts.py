"""Points at which columns of numbers are cut into strata: their quantiles, counted on the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np

from fairtransport.strata import MOST_VALUES, count_ranges
from fairtransport.tables._engines import collect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.tables._engines import NumberedTable
    from fairtransport.tables.column_roles import Columns

__all__ = ["ColumnQuantiles", "column_quantiles", "find_cuts", "range_of"]

_N_BINS = 4096
_MAX_PASSES = 6
_FINE = 16  # a range has at least so many bins, unless rows have the same value


def find_cuts(table: NumberedTable, columns: Columns, *, crossed: bool) -> dict[str, NDArray[np.float64]]:
    """Return the ascending points at which columns of strata are cut; columns with few different values are not.

    Parameters
    ----------
    table : NumberedTable
    columns : Columns
    crossed : bool
        Whether several sensitive columns are crossed.

    Returns
    -------
    dict of str to ndarray

    Notes
    -----
    The engine counts the values of a column in 4,096 bins, and again in those that contain a quantile where they hold
    many rows of different values. Where bins contain one value each, as for whole numbers, quantiles are those of
    `numpy.quantile`, as in `fairtransport.strata.make_strata`; otherwise they are off by less than a bin.
    """
    schema = table.schema()
    counted = {
        name: _count_values(table.frame, table.keys[name]) for name in columns.strata if schema[name].is_numeric()
    }
    cut = {name: bins for name, bins in counted.items() if bins is not None and not bins.few_values}
    if not cut:
        return {}
    sensitive = [table.keys[name] for name in columns.sensitive_features]
    n_groups = _count_distinct(table, [sensitive] if crossed else [[key] for key in sensitive])
    others = [table.keys[name] for name in columns.strata if name not in cut]
    n_others = max(1, _count_distinct(table, [others])) if others else 1
    cuts = {}
    for name, bins in cut.items():
        n_ranges = count_ranges(bins.n_rows, n_groups, n_cut=len(cut), n_others=n_others)
        cuts[name] = _quantiles(table.frame, table.keys[name], bins, np.arange(1, n_ranges) / n_ranges)
    return cuts


def range_of(values: nw.Expr, points: NDArray[np.float64], kind: nw.dtypes.DType) -> nw.Expr:
    """Return the number of the range that values lie in; missing where they are missing or NaN."""
    number = nw.lit(0)
    for point in points.tolist():
        number = number + nw.when(values >= point).then(nw.lit(1)).otherwise(nw.lit(0))
    known = ~values.is_null()
    if kind.is_float():
        known = known & ~values.is_nan()
    return nw.when(known).then(number)


class ColumnQuantiles(NamedTuple):
    """The lowest and highest finite value of a column, and some of its quantiles, ascending and different."""

    low: float
    high: float
    points: NDArray[np.float64]


def column_quantiles(table: nw.LazyFrame[Any], key: str, levels: NDArray[np.float64]) -> ColumnQuantiles | None:
    """Return quantiles of the finite values of a column, counted on the engine; None where it has none.

    Parameters
    ----------
    table : LazyFrame
    key : str
        Name of the column.
    levels : array of shape (n_levels,)
        Between 0 and 1, ascending.

    Returns
    -------
    ColumnQuantiles or None
    """
    bins = _count_values(table, key)
    if bins is None:
        return None
    points = _quantiles(table, key, bins, levels)
    return ColumnQuantiles(float(bins.lows[0]), float(bins.highs[-1]), points)


class _Bins(NamedTuple):
    """Counts of a column's finite values in bins, ascending, with the lowest and highest value of each."""

    counts: NDArray[np.int64]
    lows: NDArray[np.float64]
    highs: NDArray[np.float64]

    @property
    def n_rows(self) -> int:
        return int(self.counts.sum())

    @property
    def few_values(self) -> bool:
        return bool(np.all(self.lows == self.highs)) and self.counts.size <= MOST_VALUES

    def quantile(self, level: float) -> float:
        position = level * (self.n_rows - 1)
        ends = np.cumsum(self.counts)
        low, high = (self.highs[np.searchsorted(ends, rank, side="right")] for rank in _neighbours(position, ends[-1]))
        return float(low + (position - np.floor(position)) * (high - low))


def _neighbours(position: float, n_rows: int) -> tuple[int, int]:
    return int(np.floor(position)), min(int(np.floor(position)) + 1, n_rows - 1)


def _count_values(table: nw.LazyFrame[Any], key: str) -> _Bins | None:
    """Count the finite values of a column; None where it has none."""
    value = nw.col(key).cast(nw.Float64)
    finite = table.select(value=value).filter((nw.col("value") > float("-inf")) & (nw.col("value") < float("inf")))
    row = collect(finite.select(low=nw.col("value").min(), high=nw.col("value").max())).rows(named=True)[0]
    if row["low"] is None or np.isnan(row["low"]):  # the minimum of nothing, by engine
        return None
    return _count_between(finite, float(row["low"]), float(row["high"]))


def _count_between(finite: nw.LazyFrame[Any], low: float, high: float) -> _Bins:
    value = nw.col("value")
    scale = (_N_BINS - 1) / (high - low) if high > low else 0.0
    node = ((value - low) * scale).floor().cast(nw.Int64)
    inside = finite.filter((value >= low) & (value <= high)).with_columns(node=node)
    frame = collect(
        inside.group_by("node").agg(nw.len().alias("rows"), value.min().alias("low"), value.max().alias("high"))
    )
    counts, lows, highs = (np.asarray(frame[name].to_numpy()) for name in ("rows", "low", "high"))
    order = np.argsort(lows)
    return _Bins(counts[order].astype(np.int64), lows[order].astype(np.float64), highs[order].astype(np.float64))


def _quantiles(table: nw.LazyFrame[Any], key: str, bins: _Bins, levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the quantiles between ranges, after counting again within bins that are too coarse."""
    finite = table.select(value=nw.col(key).cast(nw.Float64)).filter(
        (nw.col("value") > float("-inf")) & (nw.col("value") < float("inf"))
    )
    n_ranges = levels.size + 1
    for _ in range(_MAX_PASSES):
        places = np.searchsorted(np.cumsum(bins.counts), levels * (bins.n_rows - 1), side="right")
        many = (bins.counts > bins.n_rows / (_FINE * n_ranges)) & (bins.highs > bins.lows)
        coarse = np.unique(places[many[places]])
        if not coarse.size:
            break
        first, last = int(coarse[0]), int(coarse[-1])
        finer = _count_between(finite, bins.lows[first], bins.highs[last])
        if finer.counts.size <= last - first + 1:
            break
        bins = _Bins(
            *(np.concatenate([old[:first], new, old[last + 1 :]]) for old, new in zip(bins, finer, strict=True))
        )
    points = np.unique([bins.quantile(level) for level in levels])
    return np.asarray(points[(points > bins.lows[0]) & (points <= bins.highs[-1])])


def _count_distinct(table: NumberedTable, questions: Sequence[Sequence[str]]) -> int:
    """Return the number of different values of columns, crossed within each question, summed over questions."""
    return sum(
        int(collect(table.frame.select(*keys).drop_nulls().unique().select(nw.len())).item()) for keys in questions
    )
