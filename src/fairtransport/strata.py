"""Strata: people who are alike in what may explain a difference, so that groups are compared within them.

Columns with many different numbers are cut at quantiles; all other columns are used as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import narwhals as nw
import numpy as np

from fairtransport._arrays import Floats, Ints
from fairtransport._columns import read_columns, say_columns
from fairtransport._validation import check_count
from fairtransport.groups import Groups, build_groups

__all__ = ["MOST_VALUES", "Strata", "make_strata"]

#: Smallest mean number of rows in a stratum and group, for columns that are cut at quantiles.
MIN_STRATUM_ROWS = 30
#: How strata, or labels, are weighted.
STRATUM_WEIGHTS = ("equal", "share")
#: Largest number of different numbers of a column that is not cut at quantiles.
MOST_VALUES = 12


@dataclass(frozen=True, eq=False, repr=False)
class Strata:
    """The strata of the rows of a table, as returned by :func:`make_strata`.

    Parameters
    ----------
    cells : Groups
        The combinations of the columns' values that occur; of columns that are cut, of the numbers of their ranges.
    cuts : tuple of (ndarray or None)
        For each column the ascending points at which it is cut, or None where its values are used as they are.

    Examples
    --------
    >>> strata = make_strata({"education": ["a", "b", "a"], "children": [0, 1, 0]})
    >>> strata.names, strata.codes.tolist()
    (('a, 0', 'b, 1'), [0, 1, 0])
    """

    cells: Groups
    cuts: tuple[Floats | None, ...]

    def __len__(self) -> int:
        return len(self.cells)

    def __repr__(self) -> str:  # may appear in logs, so without values
        return f"<Strata: {len(self)} of {say_columns(self.columns)}>"

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.cells.n_rows

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of each stratum, such as ``"Bachelors, 40 to 45"``."""
        if all(points is None for points in self.cuts):
            return self.cells.names
        ranges = [None if points is None else _range_names(points) for points in self.cuts]
        several = len(self.columns) > 1
        texts = []
        for label in self.cells.labels:
            values: tuple[Any, ...] = label if several else (label,)  # type: ignore[assignment]
            shown = [
                "missing" if value is None else str(value) if names is None else names[int(value)]
                for value, names in zip(values, ranges, strict=True)
            ]
            texts.append(", ".join(shown))
        return tuple(texts)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.cells.columns

    @property
    def codes(self) -> Ints:
        """Index of each row's stratum; ``len(self)`` for a stratum that was not seen in training."""
        return self.cells.codes

    @property
    def rows(self) -> tuple[Ints, ...]:
        """Row indices of each stratum, ascending."""
        return self.cells.rows

    def encode(self, strata: Any) -> Strata:
        """Return the same strata for new rows; rows of another stratum have the code ``len(self)``."""
        if isinstance(strata, Strata):
            if strata.columns != self.columns or not all(map(_same_cuts, strata.cuts, self.cuts)):
                raise ValueError("strata must have the columns, and the cut points, of those that were seen in fit.")
            new: Any = strata.cells
        else:
            new = _cut(_matched(read_columns(strata, of="strata"), self.columns), self.cuts)
        return replace(self, cells=self.cells.encode(new, unknown_group="pooled"))

    def select(self, rows: Any) -> Strata:
        """Return the strata of some rows."""
        return replace(self, cells=self.cells.select(rows))

    def to_spec(self) -> dict[str, Any]:
        """Return the strata without rows, as JSON-compatible values."""
        return {"cells": self.cells.to_spec(), "cuts": [None if cuts is None else cuts.tolist() for cuts in self.cuts]}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Self:
        """Return the strata of a spec, with no rows; ValueError for a spec that `to_spec` does not return."""
        try:
            cells = Groups.from_spec(spec["cells"])
            cuts = tuple(None if points is None else np.asarray(points, dtype=np.float64) for points in spec["cuts"])
        except (KeyError, TypeError):
            raise ValueError("A spec of strata has cells and, for each column, cuts.") from None
        if cells.grouping != "crossed" or len(cuts) != len(cells.columns):
            raise ValueError(f"The strata have {len(cells.columns)} columns, but cut points for {len(cuts)}.")
        if any(c is not None and not (c.ndim == 1 and np.isfinite(c).all() and (np.diff(c) > 0).all()) for c in cuts):
            raise ValueError("Cut points of strata must be finite and ascend.")
        for column, points in enumerate(cuts):
            values = {label[column] if len(cuts) > 1 else label for label in cells.labels}  # type: ignore[index]
            if points is not None and not values <= {None, *range(points.size + 1)}:
                raise ValueError("Strata of a column that is cut must be numbers of its ranges.")
        return cls(cells, cuts)


def make_strata(strata: Any, *, n_groups: int = 2, max_strata: int = 1000) -> Strata:
    r"""Turn one or more columns into strata.

    Parameters
    ----------
    strata : column or table
        As ``sensitive_features`` in :func:`fairtransport.groups.make_groups`. Several columns are crossed; missing
        values are a value of their own. A :class:`Strata` is returned unchanged.
    n_groups : int, default=2
        Number of groups that are compared within each stratum.
    max_strata : int, default=1000
        Largest number of strata. More usually mean that a column is an identifier.

    Returns
    -------
    Strata

    Notes
    -----
    A column of numbers with more than 12 different values is cut at its quantiles: n rows into about
    :math:`n^{1/3}` ranges, which balances what differs within a range against the noise of small samples, and into
    fewer where ranges would have less than 30 rows for each group on average. Several such columns share that number;
    beside columns that are not cut, n is the mean number of rows of a combination of their values.

    Examples
    --------
    >>> make_strata(np.arange(1000.0)).names[:2]
    ('below 99.9', '99.9 to 199.8')
    """
    if isinstance(strata, Strata):
        return strata
    check_count(max_strata, name="max_strata")
    columns = read_columns(strata, of="strata")
    numbers = {name: _continuous(column) for name, column in columns.items()}
    continuous = [values for values in numbers.values() if values is not None]
    n_ranges = 0
    if continuous:
        others = {name: column for name, column in columns.items() if numbers[name] is None}
        n_others = len(_crossed(others, max_strata)) if others else 1
        n_ranges = count_ranges(len(continuous[0]), n_groups, n_cut=len(continuous), n_others=n_others)
    cuts = tuple(None if values is None else _quantiles(values, n_ranges) for values in numbers.values())
    return Strata(_crossed(_cut(columns, cuts), max_strata), cuts)


def cross_strata(first: Strata, second: Strata) -> Strata:
    """Return the combinations of two strata that occur; the columns of the first come first."""
    shared = sorted(set(first.columns) & set(second.columns))
    if shared:
        raise ValueError(f"strata must not have a column named {shared[0]!r}: there is one already.")
    columns = {**_value_columns(first), **_value_columns(second)}
    return Strata(_crossed(columns, max(1, first.n_rows)), (*first.cuts, *second.cuts))


def count_ranges(n_rows: int, n_groups: int, *, n_cut: int = 1, n_others: int = 1) -> int:
    """Return the number of ranges of each of ``n_cut`` columns, beside ``n_others`` strata of columns that are not cut.

    >>> count_ranges(1000, 2), count_ranges(1000, 2, n_cut=2), count_ranges(100, 2)
    (10, 3, 2)
    """
    n_each = n_rows / n_others
    total = min(n_each ** (1 / 3), n_each / (MIN_STRATUM_ROWS * max(2, n_groups)))
    return max(2, round(max(total, 2.0) ** (1 / n_cut)))


def stratum_weights(labels: Sequence[int | None], masses: Sequence[float], stratum_weight: str | None = None) -> Floats:
    """Return the weights, of sum 1, of the parts of a table within which groups are compared.

    By default labels (None where they do not matter) count the same, or the rarer one would hardly count, and the
    strata of a label by mass.

    >>> stratum_weights([None, None], [30, 10]).tolist(), stratum_weights([0, 1], [30, 10]).tolist()
    ([0.75, 0.25], [0.5, 0.5])
    >>> stratum_weights([0, 0, 1], [30, 10, 5]).tolist()
    [0.375, 0.125, 0.5]
    """
    mass = np.asarray(masses, dtype=np.float64)
    if stratum_weight == "equal":
        weights = np.ones(mass.size)
    elif stratum_weight == "share" or labels[0] is None:
        weights = mass
    else:
        of_label = np.array([-1 if label is None else label for label in labels])
        weights = mass / np.array([mass[of_label == label].sum() for label in of_label])
    return np.asarray(weights / weights.sum())


def _same_cuts(one: Floats | None, other: Floats | None) -> bool:
    return one is other if one is None or other is None else np.array_equal(one, other)


def _value_columns(strata: Strata) -> dict[str, Any]:
    """Return the value of each row in each column, or the number of its range."""
    labels = strata.cells.labels if len(strata.columns) > 1 else [(label,) for label in strata.cells.labels]
    columns = {}
    for number, name in enumerate(strata.columns):
        values = np.empty(len(labels), dtype=object)
        values[:] = [label[number] for label in labels]  # type: ignore[index]
        columns[name] = values[strata.codes]
    return columns


def _crossed(columns: dict[str, Any], max_strata: int) -> Groups:
    return build_groups(columns, max_groups=max_strata, of="strata")


def _matched(columns: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return columns in the order of names: by name where all have one, otherwise by position."""
    if set(names) <= set(columns):
        return {name: columns[name] for name in names}
    nameless = any(name.startswith("stratum_") for name in (*names, *columns))
    if nameless and len(columns) == len(names):
        return dict(zip(names, columns.values(), strict=True))
    raise ValueError(f"strata must have {say_columns(names)}; it has {say_columns(columns)}.")


def _numbers(column: Any) -> Floats | None:
    """Return a column of numbers as floats, NaN where missing; None for columns of other types."""
    native = nw.to_native(column, pass_through=True)
    try:
        if isinstance(native, np.ndarray):
            if native.dtype.kind not in "iuf":
                return None
            return native.astype(np.float64)
        series = nw.from_native(column, series_only=True, pass_through=False)
        if not series.dtype.is_numeric():
            return None
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    except (TypeError, ValueError):
        return None


def _continuous(column: Any) -> Floats | None:
    """Return the numbers of a column with many different ones; None for all other columns."""
    values = _numbers(column)
    if values is None or np.unique(values[np.isfinite(values)]).size <= MOST_VALUES:
        return None
    return values


def _quantiles(values: Floats, n_ranges: int) -> Floats:
    finite = values[np.isfinite(values)]
    points = np.unique(np.quantile(finite, np.arange(1, n_ranges) / n_ranges))
    return np.asarray(points[(points > finite.min()) & (points <= finite.max())])


def _cut(columns: Mapping[str, Any], cuts: tuple[Floats | None, ...]) -> dict[str, Any]:
    """Return the columns with the number of the range in the place of values that are cut; NaN where missing."""
    result = {}
    for (name, column), points in zip(columns.items(), cuts, strict=True):
        if points is None:
            result[name] = column
            continue
        values = _numbers(column)
        if values is None:
            raise TypeError(f"Column {name!r} of strata must contain numbers, as in fit.")
        result[name] = np.where(np.isnan(values), np.nan, np.searchsorted(points, values, side="right"))
    return result


def _range_names(points: Floats) -> list[str]:
    """Return the names of the ranges between cut points."""
    bounds = [f"{point:.6g}" for point in points]
    if not bounds:
        return ["any"]
    return [f"below {bounds[0]}", *(f"{low} to {high}" for low, high in pairwise(bounds)), f"{bounds[-1]} or more"]
