"""Repair of the rows of a table by a join with a small table and linear interpolation, on any engine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import narwhals as nw

from fairtransport._columns import say_columns
from fairtransport.tables._dask_partitions import map_partitions, sum_partitions
from fairtransport.tables._engines import NumberedTable, choose_code, collect, numbers, rename_all, schema_of
from fairtransport.tables._entries import node_of
from fairtransport.tables._group_join import common_kind, join_groups
from fairtransport.tables.column_roles import Columns, check_columns, open_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairtransport.histograms import Grid
    from fairtransport.tables._repair_lookup import RepairLookup

__all__ = ["check_rows", "repair_rows"]

_INSIDE, _CLAMPED, _NO_SCORE, _NO_GROUP = 0, 1, -1, -2
_REASONS = {_NO_SCORE: "no score", _NO_GROUP: "no group"}


@dataclass(frozen=True)
class _Task:
    """The numbered columns of a repair, and the types in which those of the groups are compared."""

    columns: Columns
    kinds: tuple[nw.dtypes.DType, ...]
    grid: Grid

    @classmethod
    def of(
        cls, lookup: RepairLookup, table: NumberedTable, *, score: str, sensitive_features: str | Sequence[str]
    ) -> _Task:
        columns, schema = Columns.named(score=score, sensitive_features=sensitive_features), table.schema()
        check_columns(schema, columns)
        if len(columns.sensitive_features) != len(lookup.groups.columns):
            raise ValueError(
                f"sensitive_features names {len(columns.sensitive_features)} columns; the repair was fitted with "
                f"{say_columns(lookup.groups.columns)}."
            )
        known = zip(columns.sensitive_features, lookup.values().values(), strict=True)
        kinds = tuple(common_kind(name, schema[name], values) for name, values in known)
        return cls(columns.renamed(table.keys), kinds, lookup.grid)


# --------------------------------------------------------------------------------------------------------- repaired


def repair_rows(
    lookup: RepairLookup, frame: Any, *, score: str, sensitive_features: str | Sequence[str], output: str
) -> Any:
    """Return the table with one more column, as lazily as the engine is; see `fairtransport.TableRepair`."""
    table = open_table(frame)
    if table.has(output):
        raise ValueError(f"The table has a column {output!r} already; name another with output=.")
    task, names = _Task.of(lookup, table, score=score, sensitive_features=sensitive_features), [*table.names, output]
    if table.frame.implementation.is_dask():
        repaired = map_partitions(table.frame, partial(_repair_eager, task=task), lookup)
        return rename_all(nw.from_native(repaired), names)
    eager = nw.from_native(frame)
    if not isinstance(eager, nw.DataFrame):
        return rename_all(_repair(table.frame, lookup, task), names)
    repaired = rename_all(eager, numbers(len(table.names)))
    native = rename_all(nw.from_native(_repair_eager(repaired, lookup, task=task)), names)
    if eager.implementation.is_pandas_like():
        native.columns.names = frame.columns.names
    return native


def _repair_eager(frame: Any, lookup: RepairLookup, *, task: _Task) -> Any:
    """Repair a table in memory; the order of the rows and the index stay."""
    eager = nw.from_native(frame, eager_only=True)
    repaired = _repair(eager.with_row_index("row").lazy(), lookup, task)
    native = repaired.sort("row").drop("row").collect().to_native()  # a join need not keep the order
    if eager.implementation.is_pandas_like():
        native.index = frame.index
    return native


def _repair(table: nw.LazyFrame[Any], lookup: RepairLookup, task: _Task) -> nw.LazyFrame[Any]:
    """Add a column ``repaired`` at the end."""
    keys = {f"key{index}": kind for index, kind in enumerate(task.kinds)}
    value = _clamped(nw.col(task.columns.score), task.grid)
    passing = {key: nw.col(name) for key, name in zip(keys, task.columns.sensitive_features, strict=True)}
    with_nodes = table.with_columns(node_of(value, task.grid).alias("bin"), **passing)
    columns = dict(zip((*keys, "bin", "start", "base", "slope"), lookup.columns().values(), strict=True))
    image = nw.col("base") + (value - nw.col("start")) * nw.col("slope")
    joined = join_groups(with_nodes, keys, columns, on=["bin"])
    return joined.with_columns(image.alias("repaired")).drop("bin", "start", "base", "slope")


def _clamped(score: nw.Expr, grid: Grid) -> nw.Expr:
    """Return the scores clamped to the range; NaN becomes missing."""
    value = score.cast(nw.Float64)
    above = nw.when(value > grid.high).then(nw.lit(grid.high)).otherwise(value)
    within = nw.when(value < grid.low).then(nw.lit(grid.low)).otherwise(above)
    return nw.when(~value.is_nan()).then(within)


# ---------------------------------------------------------------------------------------------------------- checked


def check_rows(
    lookup: RepairLookup, frame: Any, *, score: str, sensitive_features: str | Sequence[str]
) -> dict[str, int]:
    """Count the rows that are clamped and those without a repaired score, in one pass on the engine."""
    table = open_table(frame)
    task = _Task.of(lookup, table, score=score, sensitive_features=sensitive_features)
    count = partial(_count_states, task=task, known=list(lookup.values().values()))
    if table.frame.implementation.is_dask():
        states = collect(sum_partitions(table.frame.select(*task.columns), count, keys=["state", "unknown"]))
    else:
        states = collect(count(table.frame))
    counts = dict.fromkeys(("rows", "clamped", "no score", "no group", "unknown group"), 0)
    for row in states.rows(named=True):
        counts["rows"] += row["rows"]
        reason = _REASONS.get(row["state"]) or ("unknown group" if row["unknown"] else None)
        if reason is None and row["state"] == _CLAMPED:
            reason = "clamped"
        if reason is not None:
            counts[reason] += row["rows"]
    return counts


def _count_states(table: nw.LazyFrame[Any], *, task: _Task, known: list[list[Any]]) -> nw.LazyFrame[Any]:
    schema, grid = schema_of(table), task.grid
    value = nw.col(task.columns.score).cast(nw.Float64)
    state = choose_code((value < grid.low) | (value > grid.high), _CLAMPED, _INSIDE)
    keys = {f"key{index}": kind for index, kind in enumerate(task.kinds)}
    passing = {key: nw.col(name) for key, name in zip(keys, task.columns.sensitive_features, strict=True)}
    # A comparison with a missing value is missing on some engines, so missing values are tested last, outermost.
    for name, group in zip(task.columns.sensitive_features, passing.values(), strict=True):
        state = choose_code(group.is_null(), _NO_GROUP, state)
        if schema[name].is_float():
            state = choose_code(group.is_nan(), _NO_GROUP, state)
    state = choose_code(value.is_null(), _NO_SCORE, choose_code(value.is_nan(), _NO_SCORE, state))
    lookup = {**dict(zip(keys, known, strict=True)), "known": [1] * len(known[0])}
    joined = join_groups(table.select(state=state, **passing), keys, lookup)
    states = joined.select("state", unknown=nw.col("known").is_null())
    return states.group_by("state", "unknown").agg(nw.len().alias("rows"))
