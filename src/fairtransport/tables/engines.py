"""Where engines differ, and narwhals leaves it to us: names, first rows, results, small tables beside large ones."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import TYPE_CHECKING, Any

import narwhals as nw

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["as_it_came", "beside", "collect", "column", "first_rows", "plain_names", "schema_of", "taken"]

_LOOK_FURTHER = 4  # times as many partitions, where the first ones have too few rows
# Errors of tasks whose texts quote what was computed with. Others, such as a file that is not there, do not.
_QUOTING = (ValueError, TypeError, LookupError, ArithmeticError)


def _is_spark(table: nw.LazyFrame[Any]) -> bool:
    return table.implementation.is_pyspark() or table.implementation.is_pyspark_connect()


# ---------------------------------------------------------------------------------------------------------- columns


def schema_of(table: nw.LazyFrame[Any]) -> dict[str, nw.dtypes.DType]:
    """Return the types of the columns. Dask's object columns may hold anything; narwhals calls them text."""
    schema: dict[str, nw.dtypes.DType] = dict(table.collect_schema())
    if table.implementation.is_dask():
        schema |= {name: nw.Object() for name, kind in table.to_native().dtypes.items() if kind == "object"}
    return schema


def column(table: nw.LazyFrame[Any], name: str) -> nw.Expr:
    """Return a column by its name, whatever that is: to Spark, ``a.b`` is a field of a struct."""
    if _is_spark(table) and _is_odd(name):
        return nw.col("`" + name.replace("`", "``") + "`")
    return nw.col(name)


def plain_names(table: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Return the table with other names, in the same order, where Spark could not join it under its own."""
    if not _is_spark(table) or not any(map(_is_odd, table.to_native().columns)):
        return table
    native = table.to_native()
    return nw.from_native(native.toDF(*(f"__repair_own_{place}" for place in range(len(native.columns)))))


def as_it_came(found: nw.LazyFrame[Any], table: nw.LazyFrame[Any], names: Sequence[str]) -> Any:
    """Return what was made of a lazy table as its engine has it: the names on Spark, the index on Dask."""
    native = found.to_native()
    if _is_spark(found) and native.columns != names:
        return native.toDF(*names)
    if found.implementation.is_dask():  # a join numbers the rows of each partition anew; the index may be the only id
        given = table.to_native()
        made = native._meta.set_axis(given._meta.index)  # noqa: SLF001 - dask documents it as the empty table
        return given.map_partitions(
            lambda own, joined: joined.set_axis(own.index), native, align_dataframes=False, meta=made
        )
    return native


def _is_odd(name: str) -> bool:
    return "." in name or "`" in name


def taken(name: str, table: nw.LazyFrame[Any], schema: Mapping[str, Any]) -> bool:
    """Say whether the table has a column of that name; to Spark and DuckDB, capital letters make no difference."""
    if _is_spark(table) or table.implementation.is_duckdb():
        return name.casefold() in {one.casefold() for one in schema}
    return name in schema


# ------------------------------------------------------------------------------------------------------------- rows


def first_rows(table: nw.LazyFrame[Any], n_rows: int) -> nw.LazyFrame[Any]:
    """Return about the first rows, not more than ``n_rows``.

    Dask's own ``head`` would read all partitions or only one; here it is as many as are needed.
    """
    if table.implementation.is_dask():
        native, n_read = table.to_native(), 1
        while n_read < native.npartitions and _count(native.partitions[:n_read]) < n_rows:
            n_read *= _LOOK_FURTHER
        table = nw.from_native(native.partitions[:n_read])
    return table.head(n_rows)


def _count(native: Any) -> int:
    return collect(nw.from_native(native).select(nw.len())).item()


def collect(table: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
    """Run a query whose result is small; what it reads may be larger than memory.

    Spark's error texts quote values, and so may those of Dask's tasks: only the kind of error is passed on.
    """
    options: dict[str, Any] = {}
    engine = table.implementation
    if engine.is_polars() and "engine" in inspect.signature(table.to_native().collect).parameters:
        options["engine"] = "streaming"
    if engine.is_dask():
        try:
            return table.collect()
        except _QUOTING as error:
            raise RuntimeError(_say_failed("Dask", type(error).__name__)) from None
    if _is_spark(table):
        failures = import_module("pyspark.errors").PySparkException
        try:
            return table.collect()
        except failures as error:
            raise RuntimeError(_say_failed("Spark", error.getCondition() or type(error).__name__)) from None
    return table.collect(**options)


def _say_failed(engine: str, kind: str) -> str:
    return (
        f"{engine} could not compute the columns of the table: {kind}. Its own text may quote values and is left out; "
        "run the table alone to see it."
    )


# ----------------------------------------------------------------------------------------------------- small tables


def beside(table: nw.LazyFrame[Any], held: Mapping[str, Sequence[Any]]) -> nw.LazyFrame[Any]:
    """Return a small table on the engine of another one, such that joining them leaves the large one where it is."""
    engine, native = table.implementation, table.to_native()
    if engine.is_duckdb():
        repair_lookup = import_module("pyarrow").table(held)  # noqa: F841 - DuckDB finds it by its name
        return nw.from_native(native.query("scored", "SELECT * FROM repair_lookup"))
    if _is_spark(table):  # without the hint both tables are sorted and sent around where the small one has 10 MB
        small = native.sparkSession.createDataFrame(import_module("pyarrow").table(held))
        return nw.from_native(small.hint("broadcast"))
    if engine.is_dask():  # a table of one partition is sent to all others
        small = import_module("pandas").DataFrame(held)
        return nw.from_native(import_module("dask.dataframe").from_pandas(small, npartitions=1))
    return nw.from_dict(held, backend=engine).lazy()
