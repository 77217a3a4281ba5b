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
from fairtransport.tables.engines import as_it_came, collect, column, plain_names, schema_of, taken
from fairtransport.tables.joining import common_kind, join_groups
from fairtransport.tables.reading import Columns, check_columns, open_table

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

    def values(self) -> dict[str, list[Any]]:
        """Return the value of each group in each column of the groups."""
        labels = [label if isinstance(label, tuple) else (label,) for label in self.groups.labels]
        if self.groups.grouping == "each":
            labels = [(label[1],) for label in labels]
        return {name: [label[place] for label in labels] for place, name in enumerate(self.groups.columns)}

    def columns(self) -> dict[str, Any]:
        """Return the table as plain columns: those of the groups, and then `names`."""
        n_nodes, nodes = self.grid.n_nodes, self.grid.nodes
        before = np.maximum(np.arange(n_nodes) - 1, 0)
        rise = np.diff(self.images, axis=1, prepend=self.images[:, :1])
        step = np.diff(nodes, prepend=nodes[0] - self.grid.width)
        keys = {name: [value for value in own for _ in range(n_nodes)] for name, own in self.values().items()}
        numbers = (
            np.tile(np.arange(n_nodes), len(self.groups)),
            np.tile(nodes[before], len(self.groups)),
            self.images[:, before].ravel(),
            (rise / step).ravel(),
        )
        return {**keys, **dict(zip(self.names, numbers, strict=True))}

    # -------------------------------------------------------------------------------------------------- any engine

    def apply(self, frame: Any, *, score: str, sensitive: str | Sequence[str], output: str) -> Any:
        """Return the table with one more column, as lazily as the engine is; see `QuantileRepair.transform_table`."""
        lazy = open_table(frame)
        given = nw.from_native(frame)
        schema = schema_of(lazy)
        if taken(output, lazy, schema):
            raise ValueError(f"The table has a column {output!r} already; name another with output=.")
        columns, kinds = self._check(schema, score, sensitive)
        order, place, start, base, slope, *free = (
            _free(f"__repair_{name}", schema) for name in ("row", "bin", "start", "base", "slope", *range(len(kinds)))
        )
        table = plain_names(lazy)
        own = dict(zip(schema, table.collect_schema(), strict=True))
        if isinstance(given, nw.DataFrame):
            table = given.with_row_index(order).lazy()
        value, keys = _clamped(nw.col(own[columns.score]), self.grid), dict(zip(free, kinds, strict=True))
        passing = {key: nw.col(own[name]) for key, name in zip(keys, columns.sensitive, strict=True)}
        placed = table.with_columns(place_of(value, self.grid).alias(place), **passing)
        held = dict(zip((*keys, place, start, base, slope), self.columns().values(), strict=True))
        image = nw.col(base) + (value - nw.col(start)) * nw.col(slope)
        joined = join_groups(placed, keys, held, on=[place])
        found = joined.with_columns(image.alias(output)).drop(place, start, base, slope)
        if not isinstance(given, nw.DataFrame):
            return as_it_came(found, lazy, [*schema, output])
        native = found.sort(order).drop(order).collect().to_native()  # a join need not keep the order
        if given.implementation.is_pandas_like():
            native.index = given.to_native().index
        return native

    def count(self, frame: Any, *, score: str, sensitive: str | Sequence[str]) -> dict[str, int]:
        """Count the rows that are clamped, and those that get no repaired score; one pass on the engine."""
        table = open_table(frame)
        schema = schema_of(table)
        columns, kinds = self._check(schema, score, sensitive)
        value = column(table, columns.score).cast(nw.Float64)
        state = _which((value < self.grid.low) | (value > self.grid.high), _CLAMPED, _INSIDE)
        keys = {f"key{place}": kind for place, kind in enumerate(kinds)}
        passing = {key: column(table, name) for key, name in zip(keys, columns.sensitive, strict=True)}
        # A comparison with what is missing is missing on some engines: the outermost questions are whether it is.
        for name, group in zip(columns.sensitive, passing.values(), strict=True):
            state = _which(group.is_null(), _NO_GROUP, state)
            if schema[name].is_float():
                state = _which(group.is_nan(), _NO_GROUP, state)
        state = _which(value.is_null(), _NO_SCORE, _which(value.is_nan(), _NO_SCORE, state))
        held = dict(zip(keys, self.values().values(), strict=True)) | {"known": [1] * len(self.groups)}
        joined = join_groups(table.select(state=state, **passing), keys, held)
        seen = joined.select("state", unknown=nw.col("known").is_null())
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

    def _check(
        self, schema: Mapping[str, nw.dtypes.DType], score: str, sensitive: str | Sequence[str]
    ) -> tuple[Columns, list[nw.dtypes.DType]]:
        """Return the columns, and the types in which those of the groups are compared."""
        columns = Columns.named(score=score, sensitive=sensitive)
        check_columns(schema, columns)
        if len(columns.sensitive) != len(self.groups.columns):
            raise ValueError(
                f"sensitive names {len(columns.sensitive)} columns; the repair was fitted with "
                f"{say_columns(self.groups.columns)}."
            )
        known = zip(columns.sensitive, self.values().values(), strict=True)
        return columns, [common_kind(name, schema[name], values) for name, values in known]

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


def _free(name: str, others: Collection[str]) -> str:
    """Return a name that no other column has."""
    while name in others:
        name += "_"
    return name


def _which(condition: nw.Expr, then: int, otherwise: nw.Expr | int) -> nw.Expr:
    other = nw.lit(otherwise, nw.Int64) if isinstance(otherwise, int) else otherwise
    return nw.when(condition).then(nw.lit(then, nw.Int64)).otherwise(other)


def _clamped(score: nw.Expr, grid: Grid) -> nw.Expr:
    """Return the scores within the range; NaN is missing."""
    value = score.cast(nw.Float64)
    above = nw.when(value > grid.high).then(nw.lit(grid.high)).otherwise(value)
    within = nw.when(value < grid.low).then(nw.lit(grid.low)).otherwise(above)
    return nw.when(~value.is_nan()).then(within)


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
