"""The same table on every engine."""

from __future__ import annotations

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest


def _in_two_chunks(columns):
    table = pa.table(columns)
    half = table.num_rows // 2
    return pa.concat_tables([table.slice(0, half), table.slice(half)])


def _on_duckdb(columns):
    table = pa.table(columns)
    return duckdb.connect().from_arrow(table)


ENGINES = {
    "pandas": lambda columns: pa.table(columns).to_pandas(),
    "pandas-nullable": lambda columns: pa.table(columns).to_pandas().convert_dtypes(),
    "pandas-arrow": lambda columns: pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda columns: pl.DataFrame(pa.table(columns)),
    "polars-lazy": lambda columns: pl.LazyFrame(pl.DataFrame(pa.table(columns))),
    "pyarrow": pa.table,
    "pyarrow-chunked": _in_two_chunks,
    "duckdb": _on_duckdb,
}


@pytest.fixture(params=ENGINES)
def to_table(request):
    """Make a table of the engine from a dict of columns; None is missing."""
    return ENGINES[request.param]
