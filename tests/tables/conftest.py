"""The same table on every engine."""

from functools import partial

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.worlds import score_table

import fairtransport as ft


def _in_two_chunks(columns):
    table = pa.table(columns)
    half = table.num_rows // 2
    return pa.concat_tables([table.slice(0, half), table.slice(half)])


ENGINES = {
    "pandas": lambda columns: pa.table(columns).to_pandas(),
    "pandas-nullable": lambda columns: pa.table(columns).to_pandas().convert_dtypes(),
    "pandas-arrow": lambda columns: pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda columns: pl.DataFrame(pa.table(columns)),
    "polars-lazy": lambda columns: pl.LazyFrame(pl.DataFrame(pa.table(columns))),
    "pyarrow": pa.table,
    "pyarrow-chunked": _in_two_chunks,
    "duckdb": lambda columns: duckdb.connect().from_arrow(pa.table(columns)),
}


def _on_spark(session, columns):
    table = pa.table(columns)
    unsigned = {name: pa.int64() for name, kind in zip(table.schema.names, table.schema.types, strict=True)
                if pa.types.is_unsigned_integer(kind)}  # fmt: skip
    for name, kind in unsigned.items():  # Spark has none
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(kind))
    return session.createDataFrame(table)


@pytest.fixture(params=[*ENGINES, *(pytest.param(name, marks=pytest.mark.engines) for name in ("dask", "spark"))])
def to_table(request):
    """Make a table of the engine from a dict of columns; None is missing."""
    if request.param == "dask":
        request.getfixturevalue("dask_client")
        return lambda columns: dd.from_pandas(pa.table(columns).to_pandas(), npartitions=3)
    if request.param == "spark":
        return partial(_on_spark, request.getfixturevalue("spark"))
    return ENGINES[request.param]


def columns_of_scores(n=400, seed=0, *, races=("B", "W", "it's"), grid=None):
    """Return the columns of `score_table` as arrays; with ``grid``, scores are multiples of 1 / grid."""
    columns = {name: column.to_numpy().copy() for name, column in score_table(n, seed, races=races).to_dict().items()}
    return columns if grid is None else columns | {"s": np.round(columns["s"] * grid) / grid}


def table_repair(repair=None, **options):
    """Return a repair of tables in which each group has maps of its own, however small it is."""
    return ft.repair.TableRepair(repair or ft.QuantileRepair(groups=ft.GroupPolicy(min_size=1)), **options)
