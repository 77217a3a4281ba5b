"""Differences between engines that narwhals does not hide, and partitions of Dask."""

from __future__ import annotations

import inspect
import types
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import narwhals as nw

from fairtransport.histograms import SLACK, Grid

# Errors of Dask tasks whose messages may quote values; others, such as a missing file, do not.
_QUOTING_ERRORS = (ValueError, TypeError, LookupError, ArithmeticError)


def _is_spark(table: nw.LazyFrame[Any] | nw.DataFrame[Any]) -> bool:
    return table.implementation.is_pyspark() or table.implementation.is_pyspark_connect()


@dataclass(frozen=True, eq=False)
class NumberedTable:
    """A lazy table whose columns are numbered, and the names that its user knows them by.

    To engines some names are more than names: to polars ``^h$`` is a pattern, to DuckDB ``*`` is all columns, to Spark
    ``a.b`` is a field of a struct; DuckDB and Spark ignore case. Columns are therefore numbered by their position, and
    no expression contains a name of the user.
    """

    frame: nw.LazyFrame[Any]
    names: tuple[Any, ...]

    @classmethod
    def of(cls, table: nw.LazyFrame[Any]) -> NumberedTable:
        """Return a table with numbered columns; two columns of the same name are refused."""
        native = table.to_native()
        if table.implementation.is_polars():
            names = native.collect_schema().names()
        else:
            names = native.column_names if table.implementation.is_pyarrow() else list(native.columns)
        if len({*names}) < len(names):
            raise ValueError("Two columns of the table have the same name; rename or drop one.")
        return cls(nw.from_native(rename_all(table, numbers(len(names)))).lazy(), tuple(names))

    @property
    def keys(self) -> dict[Any, str]:
        """The numbered column of each name."""
        return dict(zip(self.names, numbers(len(self.names)), strict=True))

    def schema(self) -> dict[Any, nw.dtypes.DType]:
        """Return the types of the columns by name; see `schema_of`."""
        return dict(zip(self.names, schema_of(self.frame).values(), strict=True))

    def has(self, name: str) -> bool:
        """Return whether the table has a column of this name; Spark and DuckDB ignore case."""
        if _is_spark(self.frame) or self.frame.implementation.is_duckdb():
            return name.casefold() in {known.casefold() for known in self.names}
        return name in self.names


def numbers(n_columns: int) -> list[str]:
    """Return c0, c1, ..., the names of numbered columns."""
    return [f"c{index}" for index in range(n_columns)]


def rename_all(table: nw.LazyFrame[Any] | nw.DataFrame[Any], names: Sequence[Any]) -> Any:
    """Return the native table with other names of its columns, by position."""
    engine, native = table.implementation, table.to_native()
    if _is_spark(table):
        return native.toDF(*names)
    if engine.is_duckdb():
        return native.project(", ".join(f"#{position} AS {quoted(name)}" for position, name in enumerate(names, 1)))
    if engine.is_pyarrow():
        return native.rename_columns(list(names))
    if engine.is_polars() or engine.is_dask():
        known = native.columns if engine.is_dask() else native.lazy().collect_schema().names()
        renamed = dict(zip(known, names, strict=True))
        return native.rename(columns=renamed) if engine.is_dask() else native.rename(renamed)
    return native.set_axis(list(names), axis=1)


def quoted(name: str, mark: str = '"') -> str:
    """Return a name as an SQL identifier, or, between single marks, a text as a literal."""
    return mark + name.replace(mark, 2 * mark) + mark


def schema_of(table: nw.LazyFrame[Any]) -> dict[str, nw.dtypes.DType]:
    """Return the types of the columns; object columns of pandas and Dask are Object, where narwhals would guess."""
    schema: dict[str, nw.dtypes.DType] = dict(table.collect_schema())
    if table.implementation.is_dask() or table.implementation.is_pandas_like():
        schema |= {name: nw.Object() for name, kind in table.to_native().dtypes.items() if kind == "object"}
    return schema


def choose_code(condition: nw.Expr, then: int, otherwise: nw.Expr | int) -> nw.Expr:
    """Return an integer expression: ``then`` where the condition holds, ``otherwise`` elsewhere."""
    other = nw.lit(otherwise, nw.Int64) if isinstance(otherwise, int) else otherwise
    return nw.when(condition).then(nw.lit(then, nw.Int64)).otherwise(other)


def code_missing(value: nw.Expr, then: int, otherwise: nw.Expr) -> nw.Expr:
    """Return ``then`` where a number is missing or NaN, ``otherwise`` elsewhere.

    A comparison with a missing value is missing on some engines, so missing values are tested last, outermost.
    """
    return choose_code(value.is_null(), then, choose_code(value.is_nan(), then, otherwise))


def node_of(score: nw.Expr, grid: Grid) -> nw.Expr:
    """Return the node of scores within the range, as in `Grid`; the node of other scores is arbitrary."""
    within = nw.when((score >= grid.low) & (score <= grid.high)).then(score).otherwise(nw.lit(grid.low))
    return ((within - grid.low) * grid.scale - SLACK).ceil().cast(nw.Int64)


def is_finite(value: nw.Expr) -> nw.Expr:
    """Return whether a number is finite; missing, or false, where it is missing."""
    return (value > float("-inf")) & (value < float("inf"))


def collect(table: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
    """Run a query whose result is small; of errors of Spark and Dask, which may quote values, only the type is told."""
    engine, native = table.implementation, table.to_native()
    if engine.is_dask():
        planned = nw.from_native(native.optimize()).lazy()  # errors of the plan contain no values
        try:
            return planned.collect()
        except _QUOTING_ERRORS as error:
            raise RuntimeError(_failure_message("Dask", type(error).__name__)) from None
    if _is_spark(table):
        failures = import_module("pyspark.errors").PySparkException
        try:
            return table.collect()
        except failures as error:
            raise RuntimeError(_failure_message("Spark", error.getCondition() or type(error).__name__)) from None
    if engine.is_polars() and "engine" in inspect.signature(native.collect).parameters:
        return table.collect(engine="streaming")
    return table.collect()


def _failure_message(engine: str, kind: str) -> str:
    return (
        f"{engine} could not compute the columns of the table: {kind}. Its message may quote values and is left out; "
        "compute the table alone to see it."
    )


def small_table(table: nw.LazyFrame[Any], columns: Mapping[str, Sequence[Any]]) -> nw.LazyFrame[Any]:
    """Return a small table on the engine of another one."""
    engine, native = table.implementation, table.to_native()
    if engine.is_duckdb():
        return nw.from_native(_arrow_on_duckdb(native, import_module("pyarrow").table(columns)))
    if _is_spark(table):
        small = native.sparkSession.createDataFrame(import_module("pyarrow").table(columns))
        # Above 10 MB Spark would shuffle both tables.
        return nw.from_native(small.hint("broadcast"))
    return nw.from_dict(columns, backend=engine).lazy()


def _arrow_on_duckdb(relation: Any, table: Any) -> Any:
    """Return an Arrow table as a relation on the connection of another one, which does not give it away."""
    # A query on the relation finds Python variables by their names, unless a table of the user has that name.
    name = f"lookup_{uuid.uuid4().hex}"
    find = types.FunctionType(_find_variable.__code__, {name: table})
    return find(relation, name)


def _find_variable(relation: Any, name: str) -> Any:
    return relation.query("unused", f"SELECT * FROM {name}")  # noqa: S608 - a name of our own


# Work on the partitions of Dask tables: each is counted or repaired as a pandas table, in one task.

#: Column of the largest score of a bin.
HIGHEST = "highest"

_SUM_EVERY = 8  # partial counts in one task
_GROWTH = 4  # factor of the number of partitions, where the first ones have too few rows


def sum_partitions(
    table: nw.LazyFrame[Any], work: Callable[[nw.LazyFrame[Any]], nw.LazyFrame[Any]], *, keys: Sequence[str]
) -> nw.LazyFrame[Any]:
    """Return the counts of ``work``; on Dask their sum over partitions by ``keys``, and the maximum of `HIGHEST`."""
    if not table.implementation.is_dask():
        return work(table)
    native = table.to_native()
    count, add = partial(_on_pandas, work=work), partial(_add, keys=list(keys))
    counted = native.reduction(count, aggregate=add, combine=add, meta=count(native._meta), split_every=_SUM_EVERY)  # noqa: SLF001 - the documented attribute of the empty table
    return nw.from_native(counted).lazy()


def _on_pandas(part: Any, *, work: Callable[[nw.LazyFrame[Any]], nw.LazyFrame[Any]]) -> Any:
    return work(nw.from_native(part).lazy()).collect().to_native()


def _add(counts: Any, *, keys: list[str]) -> Any:
    frame = nw.from_native(counts, eager_only=True)
    rest = [name for name in frame.columns if name not in keys and name != HIGHEST]
    highest = [nw.col(HIGHEST).max()] if HIGHEST in frame.columns else []
    return frame.group_by(*keys).agg(nw.col(*rest).sum(), *highest).to_native()


def map_partitions(table: nw.LazyFrame[Any], work: Callable[[Any, Any], Any], shared: Any) -> Any:
    """Return the lazy table of ``work(partition, shared)``; ``shared`` is sent once to each worker."""
    native = table.to_native()
    sent = import_module("dask").delayed(shared)
    return native.map_partitions(work, sent, meta=work(native._meta, shared))  # noqa: SLF001


def count_first_partitions(
    table: nw.LazyFrame[Any],
    distinct: Callable[[nw.LazyFrame[Any]], nw.LazyFrame[Any]],
    count: Callable[[nw.LazyFrame[Any]], Sequence[int]],
    *,
    keys: Sequence[str],
    n_rows: int,
) -> Iterator[list[int]]:
    """Count distinct values in the first partition, and in more until these have ``n_rows`` rows, on the workers."""
    native, n_read = table.to_native(), 1
    answer = partial(_count_row, count=count)
    while True:
        first = nw.from_native(native.partitions[:n_read]).lazy()
        values = sum_partitions(first, distinct, keys=keys).to_native()
        meta = answer(values._meta)  # noqa: SLF001
        n_seen, *counts = collect(nw.from_native(values.map_partitions(answer, meta=meta)).lazy()).row(0)
        yield counts
        if n_seen >= n_rows or n_read >= native.npartitions:
            return
        n_read *= _GROWTH


def _count_row(values: Any, *, count: Callable[[nw.LazyFrame[Any]], Sequence[int]]) -> Any:
    counts = [values["rows"].sum(), *count(nw.from_native(values).lazy())]
    return import_module("pandas").DataFrame([counts], columns=[f"n{index}" for index in range(len(counts))])
