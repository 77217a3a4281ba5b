"""Differences between engines that narwhals does not hide: column names, error messages, small tables."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import TYPE_CHECKING, Any

import narwhals as nw

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["choose_code", "collect", "column", "original_names", "plain_names", "schema_of", "small_table", "taken"]

# Errors of Dask tasks whose messages may quote values; others, such as a missing file, do not.
_QUOTING_ERRORS = (ValueError, TypeError, LookupError, ArithmeticError)


def _is_spark(table: nw.LazyFrame[Any]) -> bool:
    return table.implementation.is_pyspark() or table.implementation.is_pyspark_connect()


# ---------------------------------------------------------------------------------------------------------- columns


def schema_of(table: nw.LazyFrame[Any]) -> dict[str, nw.dtypes.DType]:
    """Return the types of the columns; object columns of pandas and Dask are Object, where narwhals would guess."""
    schema: dict[str, nw.dtypes.DType] = dict(table.collect_schema())
    if table.implementation.is_dask() or table.implementation.is_pandas_like():
        schema |= {name: nw.Object() for name, kind in table.to_native().dtypes.items() if kind == "object"}
    return schema


def column(table: nw.LazyFrame[Any], name: str) -> nw.Expr:
    """Return a column by name; for Spark, to which ``a.b`` is a field of a struct, the name is quoted."""
    if _is_spark(table) and _needs_quotes(name):
        return nw.col("`" + name.replace("`", "``") + "`")
    return nw.col(name)


def plain_names(table: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Rename the columns where Spark could not join the table under their names."""
    native = table.to_native()
    if not _is_spark(table) or not any(map(_needs_quotes, native.columns)):
        return table
    return nw.from_native(native.toDF(*(f"__repair_own_{index}" for index in range(len(native.columns)))))


def original_names(table: nw.LazyFrame[Any], names: Sequence[str]) -> Any:
    """Invert `plain_names`; return the native table."""
    native = table.to_native()
    return native.toDF(*names) if _is_spark(table) and native.columns != names else native


def _needs_quotes(name: str) -> bool:
    return "." in name or "`" in name


def taken(name: str, table: nw.LazyFrame[Any], schema: Mapping[str, Any]) -> bool:
    """Return whether the table has a column of this name; Spark and DuckDB ignore case."""
    if _is_spark(table) or table.implementation.is_duckdb():
        return name.casefold() in {known.casefold() for known in schema}
    return name in schema


# ------------------------------------------------------------------------------------------------------ expressions


def choose_code(condition: nw.Expr, then: int, otherwise: nw.Expr | int) -> nw.Expr:
    """Return an integer expression: ``then`` where the condition holds, ``otherwise`` elsewhere."""
    other = nw.lit(otherwise, nw.Int64) if isinstance(otherwise, int) else otherwise
    return nw.when(condition).then(nw.lit(then, nw.Int64)).otherwise(other)


# ---------------------------------------------------------------------------------------------------------- results


def collect(table: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
    """Run a query whose result is small; the table may be larger than memory.

    Error messages of Spark quote values, and those of Dask tasks may: only the type of the error is passed on.
    """
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


# ----------------------------------------------------------------------------------------------------- small tables


def small_table(table: nw.LazyFrame[Any], columns: Mapping[str, Sequence[Any]]) -> nw.LazyFrame[Any]:
    """Return a small table on the engine of another one."""
    engine, native = table.implementation, table.to_native()
    if engine.is_duckdb():
        repair_lookup = import_module("pyarrow").table(columns)  # noqa: F841 - DuckDB finds it by its name
        return nw.from_native(native.query("scored", "SELECT * FROM repair_lookup"))
    if _is_spark(table):
        small = native.sparkSession.createDataFrame(import_module("pyarrow").table(columns))
        # Above 10 MB Spark would shuffle both tables.
        return nw.from_native(small.hint("broadcast"))
    return nw.from_dict(columns, backend=engine).lazy()
