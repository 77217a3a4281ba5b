"""The roles of the columns of a table, checks before any work, and strata cut at quantiles.

Error messages contain names of columns and counts, never a value.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import narwhals as nw
import numpy as np

from fairtransport._arrays import Floats, Ints
from fairtransport._columns import say_columns
from fairtransport._labels import task_of_numbers
from fairtransport.strata import MOST_VALUES, count_ranges
from fairtransport.tables._engines import NumberedTable, collect, count_first_partitions, is_finite, schema_of

#: Number of first rows that are checked for identifiers before all rows are grouped.
PROBED = 1 << 17

_LARGE = 1e15
_MOST_NAMED = 50  # columns in an error message


@dataclass(frozen=True)
class Columns:
    """Names of columns by their roles."""

    score: str
    sensitive_features: tuple[str, ...]
    label: str | None = None
    strata: tuple[str, ...] = ()
    weight: str | None = None

    @classmethod
    def named(
        cls,
        *,
        score: str,
        sensitive_features: str | Sequence[str],
        label: str | None = None,
        strata: str | Sequence[str] | None = None,
        weight: str | None = None,
    ) -> Self:
        """Return the roles from single names or lists of names, after checking their types."""
        return cls(
            _name(score, "score"),
            _names(sensitive_features, "sensitive_features"),
            None if label is None else _name(label, "label"),
            () if strata is None else _names(strata, "strata"),
            None if weight is None else _name(weight, "weight"),
        )

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, each once, in the order of the parameters."""
        names = (self.score, *self.sensitive_features, self.label, *self.strata, self.weight)
        return iter(dict.fromkeys(name for name in names if name is not None))

    def renamed(self, names: Mapping[Any, str]) -> Columns:
        """Return the same roles for columns of other names."""
        sensitive, strata = (tuple(map(names.__getitem__, chosen)) for chosen in (self.sensitive_features, self.strata))
        label, weight = (None if name is None else names[name] for name in (self.label, self.weight))
        return Columns(names[self.score], sensitive, label, strata, weight)

    def keys(self) -> dict[str, str]:
        """Return the columns that rows are grouped by, under their names in the counts: g0, ..., b0, ..., label."""
        named = {f"g{number}": name for number, name in enumerate(self.sensitive_features)}
        named |= {f"b{number}": name for number, name in enumerate(self.strata)}
        return named if self.label is None else {**named, "label": self.label}


def _name(value: Any, role: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{role} must be the name of a column; got a {type(value).__name__}.")
    return value


def _names(value: Any, role: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
        raise TypeError(f"{role} must be the name of a column or a list of names; got a {type(value).__name__}.")
    if not value or len(set(value)) < len(value):
        raise ValueError(f"{role} must name at least one column, and each once; got {len(value)} names.")
    return tuple(value)


def open_table(frame: Any) -> NumberedTable:
    """Return a table of any engine as a lazy one with numbered columns; nothing is read."""
    if isinstance(frame, NumberedTable):
        return frame
    try:
        table = nw.from_native(frame)
    except TypeError:
        raise TypeError(
            "frame must be a table of pandas, polars, pyarrow, DuckDB, Dask or PySpark; got a "
            f"{type(frame).__name__}. For arrays use fairtransport.audit."
        ) from None
    except nw.exceptions.DuplicateError:
        raise ValueError("Two columns of the table have the same name; rename or drop one.") from None
    return NumberedTable.of(table.lazy())


def check_columns(schema: Mapping[str, nw.dtypes.DType], columns: Columns) -> None:
    """Raise when a column is missing or its type does not fit its role."""
    check_names(columns, schema)
    for name in filter(None, (columns.score, columns.weight)):
        check_numbers(schema, name)
    for name in filter(None, (*columns.sensitive_features, *columns.strata, columns.label)):
        if schema[name].is_nested():
            kind = type(schema[name]).__name__
            raise TypeError(f"Column {name!r} contains {kind}: lists and structs cannot be compared as groups.")


def check_names(names: Iterable[str], known: Collection[str]) -> None:
    """Raise when a column is missing."""
    for name in names:
        if name not in known:
            raise ValueError(f"The table has no column {name!r}; {suggest_names(name, list(known))}")


def check_numbers(schema: Mapping[str, nw.dtypes.DType], name: str) -> None:
    """Raise when a column does not contain numbers."""
    if not schema[name].is_numeric():
        kind = type(schema[name]).__name__
        raise TypeError(
            f"Column {name!r} contains {kind}, not numbers. If these are numbers as text, cast the column first; "
            "otherwise name another column."
        )


def free_name(name: str, others: Collection[str]) -> str:
    """Return a name that no other column has."""
    while name in others:
        name += "_"
    return name


def close_names(name: str, known: Iterable[str]) -> str:
    """Return a hint with names that are similar; empty where there are none."""
    folded = {str(column).casefold(): column for column in known}  # names of pandas columns may be numbers
    close = difflib.get_close_matches(name.casefold(), folded, n=3)
    return f"close to it: {', '.join(repr(folded[match]) for match in close)}." if close else ""


def suggest_names(name: str, known: list[str]) -> str:
    """Return a hint for a missing column: names that are similar, or else all names."""
    close = close_names(name, known)
    if close:
        return close
    more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
    return f"it has {', '.join(map(repr, known[:_MOST_NAMED]))}{more}." if known else "it has no columns."


def refuse_identifiers(
    table: NumberedTable, columns: Columns, *, max_groups: int, crossed: bool, max_strata: int | None = None
) -> None:
    """Raise when the first rows have too many groups, strata or labels; a group-by could be as long as the table."""
    questions: list[tuple[str, tuple[str, ...]]] = []
    for role, chosen in (("sensitive_features", columns.sensitive_features), ("strata", columns.strata)):
        questions += [(role, (name,)) for name in chosen]
        if len(chosen) > 1 and (crossed or role == "strata"):
            questions.append((role, chosen))
    if columns.label is not None:
        questions.append(("label", (columns.label,)))
    keys = list(dict.fromkeys(table.keys[name] for _, chosen in questions for name in chosen))
    count = partial(_count_distinct, questions=[[table.keys[name] for name in chosen] for _, chosen in questions])
    for counts in _count_first(table.frame.select(*keys), keys, count):
        for (role, chosen), n_values in zip(questions, counts, strict=True):
            if role != "label":
                most = max_strata if role == "strata" and max_strata is not None else max_groups
                check_group_count(n_values, role, chosen, most, at_least=True)
            elif n_values > 2:
                raise ValueError(f"Column {chosen[0]!r} has at least {n_values} different labels; two are needed.")


def probe_task(table: NumberedTable, label: str) -> str:
    """Return whether the labels in the first rows are classes or real numbers (`infer_task`)."""
    key, kind = table.keys[label], table.schema()[label]
    if not kind.is_numeric():
        return "classification"
    numbers = table.frame.select(nw.col(key).cast(nw.Float64))
    n_values, n_fractions = next(_count_first(numbers, [key], partial(_count_numbers, key=key)))
    if n_values <= 2:
        return "classification"
    return task_of_numbers(n_values, whole=not n_fractions, source=f"Column {label!r}")


def _count_first(
    table: nw.LazyFrame[Any], keys: Sequence[str], count: Callable[[nw.LazyFrame[Any]], list[int]]
) -> Iterator[list[int]]:
    """Count in the first rows; on Dask in the first partition, and then in more until these have enough rows."""
    if table.implementation.is_dask():
        distinct = partial(_find_distinct, keys=keys, n_rows=PROBED)
        yield from count_first_partitions(table, distinct, count, keys=keys, n_rows=PROBED)
    else:
        yield count(_first(table, keys, PROBED))


def _count_numbers(first: nw.LazyFrame[Any], *, key: str) -> list[int]:
    """Count the distinct values of a column of numbers, and its rows with a fraction."""
    # Spark rounds to integers, so that large numbers would overflow; they have no fractions.
    value = nw.when((nw.col(key) > -_LARGE) & (nw.col(key) < _LARGE)).then(nw.col(key)).otherwise(nw.lit(0.0))
    fractions = collect(first.filter(value != value.floor()).select(nw.len().alias("rows")))
    return [*_count_distinct(first, questions=[[key]]), int(fractions.item() or 0)]


def _first(table: nw.LazyFrame[Any], keys: Sequence[str], n_rows: int) -> nw.LazyFrame[Any]:
    """Return the first rows of some columns; NaN becomes missing."""
    schema = schema_of(table)
    floats = {key: nw.when(~nw.col(key).is_nan()).then(nw.col(key)) for key in keys if schema[key].is_float()}
    return table.select(*(floats.get(key, nw.col(key)).alias(key) for key in keys)).head(n_rows)


def _find_distinct(table: nw.LazyFrame[Any], *, keys: Sequence[str], n_rows: int) -> nw.LazyFrame[Any]:
    return _first(table, keys, n_rows).group_by(*keys).agg(nw.len().alias("rows"))


def _count_distinct(first: nw.LazyFrame[Any], *, questions: Sequence[Sequence[str]]) -> list[int]:
    """Count the distinct values of each column, or of several crossed, without missing ones."""
    single = list(dict.fromkeys(key for keys in questions for key in keys))
    distinct = {key: nw.col(key).n_unique() for key in single}
    missing = {f"{key}_missing": nw.col(key).null_count() for key in single}
    row = collect(first.select(**distinct, **missing)).rows(named=True)[0]
    counts = []
    for keys in questions:
        if len(keys) == 1:  # some engines return None for an empty table
            counts.append(int((row[keys[0]] or 0) - bool(row[f"{keys[0]}_missing"])))
        else:
            counts.append(_count_crossed(first, keys))
    return counts


def _count_crossed(table: nw.LazyFrame[Any], keys: Sequence[str]) -> int:
    return int(collect(table.select(*keys).drop_nulls().unique().select(nw.len())).item())


def check_group_count(
    n_groups: int, role: str, columns: Sequence[str], max_groups: int, *, at_least: bool = False
) -> None:
    """Raise when there are more groups or strata than ``max_groups``."""
    if n_groups > max_groups:
        number = f"at least {n_groups}" if at_least else f"{n_groups}"
        unit = "groups" if role == "sensitive_features" else "strata"
        raise ValueError(
            f"{role} has {number} {unit} in {say_columns(columns)}; max_groups is {max_groups}. If a column is an "
            "identifier or continuous, drop it or cut it into ranges; if not, raise max_groups=."
        )


# Points at which columns of numbers are cut into strata: their quantiles, counted on the engine.

_N_BINS = 4096
_MAX_PASSES = 6
_FINE = 16  # a range has at least so many bins, unless rows have the same value


def find_cuts(table: NumberedTable, columns: Columns, *, crossed: bool) -> dict[str, Floats]:
    """Return the ascending points at which columns of strata are cut; columns with few different values are not.

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
    n_groups = sum(
        _count_crossed(table.frame, keys) for keys in ([sensitive] if crossed else [[key] for key in sensitive])
    )
    others = [table.keys[name] for name in columns.strata if name not in cut]
    n_others = max(1, _count_crossed(table.frame, others)) if others else 1
    cuts = {}
    for name, bins in cut.items():
        n_ranges = count_ranges(bins.n_rows, n_groups, n_cut=len(cut), n_others=n_others)
        cuts[name] = _quantiles(table.frame, table.keys[name], bins, np.arange(1, n_ranges) / n_ranges)
    return cuts


def range_of(values: nw.Expr, points: Floats, kind: nw.dtypes.DType) -> nw.Expr:
    """Return the number of the range that values lie in; missing where they are missing or NaN."""
    number = nw.lit(0)
    for point in points.tolist():
        number = number + nw.when(values >= point).then(nw.lit(1)).otherwise(nw.lit(0))
    known = ~values.is_null()
    if kind.is_float():
        known = known & ~values.is_nan()
    return nw.when(known).then(number)


def column_quantiles(table: nw.LazyFrame[Any], key: str, levels: Floats) -> Floats | None:
    """Return the lowest finite value of a column, its quantiles and the highest one; None where it has none."""
    bins = _count_values(table, key)
    return None if bins is None else np.array([bins.lows[0], *_quantiles(table, key, bins, levels), bins.highs[-1]])


class _Bins(NamedTuple):
    """Counts of a column's finite values in bins, ascending, with the lowest and highest value of each."""

    counts: Ints
    lows: Floats
    highs: Floats

    @property
    def n_rows(self) -> int:
        return int(self.counts.sum())

    @property
    def few_values(self) -> bool:
        return bool(np.all(self.lows == self.highs)) and self.counts.size <= MOST_VALUES

    def quantile(self, level: float) -> float:
        position = level * (self.n_rows - 1)
        ranks = np.floor(position), min(np.floor(position) + 1, self.n_rows - 1)
        low, high = self.highs[np.searchsorted(np.cumsum(self.counts), ranks, side="right")]
        return float(low + (position - ranks[0]) * (high - low))


def _count_values(table: nw.LazyFrame[Any], key: str) -> _Bins | None:
    """Count the finite values of a column; None where it has none."""
    finite = _finite(table, key)
    row = collect(finite.select(low=nw.col("value").min(), high=nw.col("value").max())).rows(named=True)[0]
    if row["low"] is None or np.isnan(row["low"]):  # the minimum of nothing, by engine
        return None
    return _count_between(finite, float(row["low"]), float(row["high"]))


def _finite(table: nw.LazyFrame[Any], key: str) -> nw.LazyFrame[Any]:
    return table.select(value=nw.col(key).cast(nw.Float64)).filter(is_finite(nw.col("value")))


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


def _quantiles(table: nw.LazyFrame[Any], key: str, bins: _Bins, levels: Floats) -> Floats:
    """Return the quantiles between ranges, after counting again within bins that are too coarse."""
    finite = _finite(table, key)
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
