"""Where engines differ, and narwhals leaves it to us: names, errors, small tables beside large ones."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import TYPE_CHECKING, Any

import narwhals as nw

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["beside", "collect", "column", "own_names", "plain_names", "schema_of", "taken"]

# Errors of Dask's tasks whose texts quote what was computed with. Others, such as a file that is not there, do not.
_QUOTING = (ValueError, TypeError, LookupError, ArithmeticError)


def _is_spark(table: nw.LazyFrame[Any]) -> bool:
    return table.implementation.is_pyspark() or table.implementation.is_pyspark_connect()


# ---------------------------------------------------------------------------------------------------------- columns


def schema_of(table: nw.LazyFrame[Any]) -> dict[str, nw.dtypes.DType]:
    """Return the types of the columns. Object columns of pandas and Dask may hold anything; narwhals guesses."""
    schema: dict[str, nw.dtypes.DType] = dict(table.collect_schema())
    if table.implementation.is_dask() or table.implementation.is_pandas_like():
        schema |= {name: nw.Object() for name, kind in table.to_native().dtypes.items() if kind == "object"}
    return schema


def column(table: nw.LazyFrame[Any], name: str) -> nw.Expr:
    """Return a column by its name, whatever that is: to Spark, ``a.b`` is a field of a struct."""
    if _is_spark(table) and _is_odd(name):
        return nw.col("`" + name.replace("`", "``") + "`")
    return nw.col(name)


def plain_names(table: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Return the table under other names, in the same order, where Spark could not join it under its own."""
    native = table.to_native()
    if not _is_spark(table) or not any(map(_is_odd, native.columns)):
        return table
    return nw.from_native(native.toDF(*(f"__repair_own_{place}" for place in range(len(native.columns)))))


def own_names(table: nw.LazyFrame[Any], names: Sequence[str]) -> Any:
    """Undo `plain_names`; return the engine's own table."""
    native = table.to_native()
    return native.toDF(*names) if _is_spark(table) and native.columns != names else native


def _is_odd(name: str) -> bool:
    return "." in name or "`" in name


def taken(name: str, table: nw.LazyFrame[Any], schema: Mapping[str, Any]) -> bool:
    """Say whether the table has a column of that name; to Spark and DuckDB, capital letters make no difference."""
    if _is_spark(table) or table.implementation.is_duckdb():
        return name.casefold() in {one.casefold() for one in schema}
    return name in schema


# ---------------------------------------------------------------------------------------------------------- results


def collect(table: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
    """Run a query whose result is small; what it reads may be larger than memory.

    Spark's error texts quote values, and so may those of Dask's tasks: only the kind of error is passed on.
    """
    engine, native = table.implementation, table.to_native()
    if engine.is_dask():
        planned = nw.from_native(native.optimize()).lazy()  # what fails here has not seen a row
        try:
            return planned.collect()
        except _QUOTING as error:
            raise RuntimeError(_say_failed("Dask", type(error).__name__)) from None
    if _is_spark(table):
        failures = import_module("pyspark.errors").PySparkException
        try:
            return table.collect()
        except failures as error:
            raise RuntimeError(_say_failed("Spark", error.getCondition() or type(error).__name__)) from None
    if engine.is_polars() and "engine" in inspect.signature(native.collect).parameters:
        return table.collect(engine="streaming")
    return table.collect()


def _say_failed(engine: str, kind: str) -> str:
    return (
        f"{engine} could not compute the columns of the table: {kind}. Its own text may quote values and is left out; "
        "run the table alone to see it."
    )


# ----------------------------------------------------------------------------------------------------- small tables


def beside(table: nw.LazyFrame[Any], held: Mapping[str, Sequence[Any]]) -> nw.LazyFrame[Any]:
    """Return a small table on the engine of another one."""
    engine, native = table.implementation, table.to_native()
    if engine.is_duckdb():
        repair_lookup = import_module("pyarrow").table(held)  # noqa: F841 - DuckDB finds it by its name
        return nw.from_native(native.query("scored", "SELECT * FROM repair_lookup"))
    if _is_spark(table):
        small = native.sparkSession.createDataFrame(import_module("pyarrow").table(held))
        # Above 10 MB Spark would sort both tables and send their rows around; so it sends the small one to all.
        return nw.from_native(small.hint("broadcast"))
    return nw.from_dict(held, backend=engine).lazy()
