"""Quantile repair as a small table: a join and one linear interpolation, on any engine."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from fairtransport._columns import say_columns
from fairtransport.histograms import SLACK, Grid
from fairtransport.storage import write_atomically
from fairtransport.tables.counting import place_of
from fairtransport.tables.reading import Columns, check_columns, collect, open_table

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path
    from typing import Self

    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.transport.line import QuantileMap

__all__ = ["RepairLookup"]

_A_STATEMENT = 500  # rows of one INSERT
_INSIDE, _CLAMPED, _NO_SCORE, _NO_GROUP = 0, 1, -1, -2
_REASONS = {_NO_SCORE: "no score", _NO_GROUP: "no group"}


@dataclass(frozen=True, eq=False)
class RepairLookup:
    """The repaired score at each node of each group; between two nodes the repair is linear.

    Parameters
    ----------
    grid : Grid
    groups : Groups
        Not overlapping, without a missing value.
    images : array of shape (n_groups, n_nodes)

    Notes
    -----
    Row (group, k) of the table has ``bin`` k, ``start``, the node k - 1, and ``base`` and ``slope``: a score s of that
    group in (node k - 1, node k] becomes ``base + (s - start) * slope``. Row 0 is for the scores at the lowest node.
    """

    grid: Grid
    groups: Groups
    images: NDArray[np.float64]

    @classmethod
    def of_maps(cls, grid: Grid, groups: Groups, maps: Sequence[QuantileMap], amount: float) -> Self:
        """Return the lookup of maps whose knots are nodes, so that nothing is lost."""
        if any(None in (label if isinstance(label, tuple) else (label,)) for label in groups.labels):
            raise ValueError(
                f"A group of {say_columns(groups.columns)} is that of missing values, and a join does not find these; "
                "fill them with a value of their own before fit_table."
            )
        nodes = grid.nodes
        images = np.array([(1.0 - amount) * nodes + amount * one(nodes) for one in maps])
        return cls(grid, groups, images)

    @property
    def names(self) -> list[str]:
        """What the columns ``bin``, ``start``, ``base`` and ``slope`` are called: so, unless a column of groups is."""
        return [_free(name, self.groups.columns) for name in ("bin", "start", "base", "slope")]

    def columns(self) -> dict[str, Any]:
        """Return the table as plain columns: those of the groups, and then `names`."""
        labels = [label if isinstance(label, tuple) else (label,) for label in self.groups.labels]
        if self.groups.grouping == "each":
            labels = [(label[1],) for label in labels]
        n_nodes, nodes = self.grid.n_nodes, self.grid.nodes
        before = np.maximum(np.arange(n_nodes) - 1, 0)
        rise = np.diff(self.images, axis=1, prepend=self.images[:, :1])
        step = np.diff(nodes, prepend=nodes[0] - self.grid.width)
        keys = {
            name: [label[place] for label in labels for _ in range(n_nodes)]
            for place, name in enumerate(self.groups.columns)
        }
        numbers = (
            np.tile(np.arange(n_nodes), len(labels)),
            np.tile(nodes[before], len(labels)),
            self.images[:, before].ravel(),
            (rise / step).ravel(),
        )
        return {**keys, **dict(zip(self.names, numbers, strict=True))}

    # -------------------------------------------------------------------------------------------------- any engine

    def apply(self, frame: Any, *, score: str, sensitive: str | Sequence[str], output: str) -> Any:
        """Return the table with one more column, as lazily as the engine is; see `QuantileRepair.transform_table`."""
        lazy = open_table(frame)
        given = nw.from_native(frame)
        schema = lazy.collect_schema()
        if output in schema:
            raise ValueError(f"The table has a column {output!r} already; name another with output=.")
        columns = self._check(schema, score, sensitive)
        passing = [_free(f"__repair_{name}", schema) for name in ("row", "bin", "start", "base", "slope")]
        order, place, start, base, slope = passing
        table = given.with_row_index(order).lazy() if isinstance(given, nw.DataFrame) else lazy
        value = _clamped(columns.score, self.grid)
        placed = table.with_columns(place_of(value, self.grid).alias(place))
        joined, keys = _join(placed, schema, columns, self.columns(), passing[1:], on=[place])
        image = nw.col(base) + (value - nw.col(start)) * nw.col(slope)
        found = joined.with_columns(image.alias(output)).drop(*keys, *passing[1:])
        if not isinstance(given, nw.DataFrame):
            return found.to_native()
        native = found.sort(order).drop(order).collect().to_native()  # a join need not keep the order
        if given.implementation.is_pandas_like():
            native.index = given.to_native().index
        return native

    def count(self, frame: Any, *, score: str, sensitive: str | Sequence[str]) -> dict[str, int]:
        """Count the rows that are clamped, and those that get no repaired score; one pass on the engine."""
        table = open_table(frame)
        schema = table.collect_schema()
        columns = self._check(schema, score, sensitive)
        value = nw.col(columns.score).cast(nw.Float64)
        state, known = _free("__repair_state", schema), _free("__repair_known", schema)
        outside = _which((value < self.grid.low) | (value > self.grid.high), _CLAMPED, _INSIDE)
        # A comparison with what is missing is missing on some engines: the outermost questions are whether it is.
        for name in reversed(columns.sensitive):
            outside = _which(nw.col(name).is_null(), _NO_GROUP, outside)
            if schema[name].is_float():
                outside = _which(nw.col(name).is_nan(), _NO_GROUP, outside)
        told = _which(value.is_null(), _NO_SCORE, _which(value.is_nan(), _NO_SCORE, outside))
        every = self.columns()
        held = {name: every[name][:: self.grid.n_nodes] for name in self.groups.columns}
        held[_free("known", held)] = [1] * len(self.groups)
        joined, _ = _join(table.with_columns(told.alias(state)), schema, columns, held, [known])
        seen = joined.select(state=nw.col(state), unknown=nw.col(known).is_null())
        found = collect(seen.group_by("state", "unknown").agg(nw.len().alias("rows")))
        counts = dict.fromkeys(("rows", "clamped", "no score", "no group", "unknown group"), 0)
        for row in found.rows(named=True):
            counts["rows"] += row["rows"]
            reason = _REASONS.get(row["state"]) or ("unknown group" if row["unknown"] else None)
            if reason is None and row["state"] == _CLAMPED:
                reason = "clamped"
            if reason is not None:
                counts[reason] += row["rows"]
        return counts

    def _check(self, schema: Mapping[str, Any], score: str, sensitive: str | Sequence[str]) -> Columns:
        columns = Columns.named(score=score, sensitive=sensitive)
        check_columns(schema, columns)
        if len(columns.sensitive) != len(self.groups.columns):
            raise ValueError(
                f"sensitive names {len(columns.sensitive)} columns; the repair was fitted with "
                f"{say_columns(self.groups.columns)}."
            )
        return columns

    # --------------------------------------------------------------------------------------------------- hand it on

    def to_sql(self, *, table: str, rows: str, score: str, sensitive: Sequence[str], output: str) -> str:
        """Return statements that make and fill the table, and one that uses it; see `QuantileRepair.to_sql`."""
        held = self.columns()
        names = [_quoted(name) for name in held]
        place, start, base, slope = (f"r.{_quoted(name)}" for name in self.names)
        kinds = [*(_sql_type(held[name], name) for name in self.groups.columns), "INTEGER", *["DOUBLE PRECISION"] * 3]
        made = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
        lines = [f"CREATE TABLE {_quoted(table)} ({made});"]
        values = [
            f"({', '.join(map(_sql_value, row))})"
            for row in zip(*(np.asarray(one).tolist() for one in held.values()), strict=True)
        ]
        parts = (values[start : start + _A_STATEMENT] for start in range(0, len(values), _A_STATEMENT))
        lines.extend(f"INSERT INTO {_quoted(table)} VALUES\n" + ",\n".join(part) + ";" for part in parts)
        low, high, scale = self.grid.low, self.grid.high, self.grid.scale
        given = f"s.{_quoted(score)}"
        value = f"CASE WHEN {given} < {low!r} THEN {low!r} WHEN {given} > {high!r} THEN {high!r} ELSE {given} END"
        keys = [f"r.{name} = s.{_quoted(own)}" for name, own in zip(names[: len(sensitive)], sensitive, strict=True)]
        keys.append(f"{place} = CAST(CEIL((({value}) - {low!r}) * {scale!r} - {SLACK!r}) AS INTEGER)")
        image = f"{base} + (({value}) - {start}) * {slope}"
        lines.append(
            f"SELECT s.*, {image} AS {_quoted(output)}\nFROM {_quoted(rows)} AS s\n"
            f"LEFT JOIN {_quoted(table)} AS r ON " + "\n  AND ".join(keys) + ";"
        )
        return "\n".join(lines) + "\n"

    def to_parquet(self, path: str | os.PathLike[str]) -> Path:
        """Write the table; the grid is in the file's metadata, under ``fairtransport``."""
        try:
            arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        except ImportError:
            raise ImportError("Parquet needs pyarrow: pip install 'fairtransport[tables]'.") from None
        about = {
            "low": self.grid.low,
            "high": self.grid.high,
            "scale": self.grid.scale,
            "slack": SLACK,
            self.names[0]: "ceil((score - low) * scale - slack)",
            "repaired": "{2} + (score - {1}) * {3}".format(*self.names),
        }
        table = arrow.table(self.columns()).replace_schema_metadata({"fairtransport": json.dumps(about)})
        content = io.BytesIO()
        parquet.write_table(table, content)
        return write_atomically(path, content.getvalue())


def _free(name: str, taken: Collection[str]) -> str:
    """Return a name that no other column has."""
    while name in taken:
        name += "_"
    return name


def _which(condition: nw.Expr, then: int, otherwise: nw.Expr | int) -> nw.Expr:
    other = nw.lit(otherwise, nw.Int64) if isinstance(otherwise, int) else otherwise
    return nw.when(condition).then(nw.lit(then, nw.Int64)).otherwise(other)


def _clamped(name: str, grid: Grid) -> nw.Expr:
    """Return the scores within the range; NaN is missing."""
    value = nw.col(name).cast(nw.Float64)
    above = nw.when(value > grid.high).then(nw.lit(grid.high)).otherwise(value)
    within = nw.when(value < grid.low).then(nw.lit(grid.low)).otherwise(above)
    return nw.when(~value.is_nan()).then(within)


def _join(
    table: nw.LazyFrame[Any],
    schema: Mapping[str, Any],
    columns: Columns,
    held: Mapping[str, Any],
    names: Sequence[str],
    *,
    on: Sequence[str] = (),
) -> tuple[nw.LazyFrame[Any], list[str]]:
    """Join with a small table: first the groups, then what is called ``names``. Return the names of the keys too."""
    keys = [_free(f"__repair_key_{number}", schema) for number in range(len(columns.sensitive))]
    lookup = _beside(table, dict(zip((*keys, *names), held.values(), strict=True)))
    passing = []
    for key, name in zip(keys, columns.sensitive, strict=True):
        kind = nw.String() if schema[name] in {nw.Categorical, nw.Enum} else schema[name]
        if kind == nw.Object:  # pandas: values of any type, which compare as they are
            passing.append(nw.col(name).alias(key))
            continue
        passing.append(nw.col(name).cast(kind).alias(key))
        lookup = lookup.with_columns(nw.col(key).cast(kind))
    return table.with_columns(*passing).join(lookup, on=[*keys, *on], how="left"), keys


def _beside(table: nw.LazyFrame[Any], held: dict[str, Any]) -> nw.LazyFrame[Any]:
    """Return a small table on the engine of another one."""
    engine, native = table.implementation, table.to_native()
    if engine.is_duckdb():
        repair_lookup = import_module("pyarrow").table(held)  # noqa: F841 - DuckDB finds it by its name
        return open_table(native.query("scored", "SELECT * FROM repair_lookup"))
    if engine.is_pyspark():
        return open_table(native.sparkSession.createDataFrame(import_module("pandas").DataFrame(held)))
    if engine.is_dask():
        small = import_module("pandas").DataFrame(held)
        return open_table(import_module("dask.dataframe").from_pandas(small, npartitions=1))
    return nw.from_dict(held, backend=engine).lazy()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sql_type(values: list[Any], name: str) -> str:
    kinds = {type(value) for value in values}
    for kind, word in ((bool, "BOOLEAN"), (int, "BIGINT"), (float, "DOUBLE PRECISION"), (str, "VARCHAR")):
        if kinds == {kind}:
            return word
    raise TypeError(f"Groups of column {name!r} are not text, whole numbers, numbers or booleans alone.")


def _sql_value(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).upper() if isinstance(value, bool) else repr(value)
