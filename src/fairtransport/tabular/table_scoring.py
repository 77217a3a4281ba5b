"""Scores of the rows of a table in one more column, computed where the rows are, when they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import narwhals as nw

from fairtransport._extras import load_extra
from fairtransport.tables import open_table

_ROWS_AT_ONCE = 1 << 16


def score_table(scorer: Any, table: Any, *, output: str = "score") -> Any:
    """Return a table of any engine with the scores of its rows in one more column; a lazy table stays lazy.

    Rows that cannot be scored have a missing score. A relation of DuckDB becomes one of another connection, because a
    query cannot call Python that runs a query of the same connection.
    """
    opened = open_table(table)
    if opened.has(output):
        raise ValueError(f"The table has a column {output!r} already; name another with output=.")
    scorer.check_columns([*map(str, opened.names)])
    frame, on_arrow = nw.from_native(table), partial(_scored_batches, scorer=scorer, output=output)
    engine = frame.implementation
    if isinstance(frame, nw.DataFrame):
        if engine.is_pandas_like():
            return _scored_pandas(table, scorer, output)
        scores = load_extra("pyarrow").array(scorer.score_rows(table).scores, from_pandas=True)
        return frame.with_columns(nw.new_series(output, scores.to_pylist(), nw.Float64, backend=engine)).to_native()
    if engine.is_dask():
        meta = table._meta.assign(**{output: load_extra("pandas").Series(dtype="float64")})  # noqa: SLF001
        return table.map_partitions(_scored_pandas, scorer, output, meta=meta)
    if engine.is_pyspark():
        types = load_extra("pyspark.sql.types")
        schema = types.StructType([*table.schema.fields, types.StructField(output, types.DoubleType())])
        return table.mapInArrow(on_arrow, schema)
    if engine.is_polars():
        polars = load_extra("polars")
        return table.map_batches(
            partial(_scored_polars, scorer=scorer, output=output),
            schema={**table.collect_schema(), output: polars.Float64},
            projection_pushdown=False,  # the model needs columns that the rest of the query does not
            predicate_pushdown=False,
            streamable=True,
        )
    scored_rows = _ScoredRelation(table, on_arrow, output)  # noqa: F841 - which the query finds by its name
    return load_extra("duckdb").connect().sql("SELECT * FROM scored_rows")


def _scored_pandas(part: Any, scorer: Any, output: str) -> Any:
    return part.assign(**{output: scorer.score_rows(part).scores})


def _scored_polars(part: Any, scorer: Any, output: str) -> Any:
    polars = load_extra("polars")
    return part.with_columns(polars.Series(output, scorer.score_rows(part).scores, polars.Float64).fill_nan(None))


def _scored_batches(batches: Iterable[Any], scorer: Any, output: str) -> Iterator[Any]:
    """Yield Arrow batches with one more column."""
    arrow = load_extra("pyarrow")
    for batch in batches:
        scores = scorer.score_rows(arrow.Table.from_batches([batch])).scores
        columns = [*batch.columns, arrow.array(scores, arrow.float64(), from_pandas=True)]
        yield arrow.RecordBatch.from_arrays(columns, [*batch.schema.names, output])


class _ScoredRelation:
    """A relation of DuckDB with scores, which other queries read in batches, as often as they like."""

    def __init__(self, relation: Any, work: Any, output: str) -> None:
        self._relation, self._work = relation, work
        arrow = load_extra("pyarrow")
        schema = relation.limit(0).to_arrow_table().schema
        self._schema = schema.append(arrow.field(output, arrow.float64()))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        batches = self._work(self._relation.to_arrow_reader(_ROWS_AT_ONCE))
        reader = load_extra("pyarrow").RecordBatchReader.from_batches(self._schema, batches)
        return reader.__arrow_c_stream__(requested_schema)
