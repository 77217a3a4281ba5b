"""Repair of the rows of a table by a join with a small table, on any engine or as SQL."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import narwhals as nw
import numpy as np

from fairtransport._arrays import Floats
from fairtransport._columns import say_columns
from fairtransport._validation import check_choice
from fairtransport.groups import Groups
from fairtransport.histograms import SLACK, Grid
from fairtransport.storage import write_atomically
from fairtransport.tables._engines import (
    NumberedTable,
    choose_code,
    code_missing,
    collect,
    map_partitions,
    node_of,
    numbers,
    quoted,
    rename_all,
    schema_of,
    small_table,
    sum_partitions,
)
from fairtransport.tables.column_roles import Columns, check_columns, free_name, open_table
from fairtransport.transport.line import QuantileMap

# Join of a table with a small one on the columns of the groups, with types that compare alike on every engine.

_WITHIN_INT64 = (nw.Boolean, nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32)
_KIND_NAMES = {str: "text", bool: "booleans", int: "whole numbers", float: "numbers"}


def join_groups(
    table: nw.LazyFrame[Any],
    keys: Mapping[str, nw.dtypes.DType],
    lookup: Mapping[str, Sequence[Any]],
    *,
    on: Sequence[str] = (),
) -> nw.LazyFrame[Any]:
    """Left join of a table with a small one; each row matches at most one row of it."""
    small = small_table(table, lookup)
    for key, kind in keys.items():
        if kind != nw.Object:
            table, small = (frame.with_columns(nw.col(key).cast(kind)) for frame in (table, small))
    return table.join(small, on=[*keys, *on], how="left").drop(*keys)


def common_kind(name: str, kind: nw.dtypes.DType, values: Sequence[Any]) -> nw.dtypes.DType:
    """Return the type in which a column and the known groups are compared.

    Casts to it are injective and cannot fail: no two groups become one, and no engine quotes a value that it could not
    cast.
    """
    kinds = {type(value) for value in values}
    if kind == nw.Object:  # pandas and Dask: values of any type, which compare as they are
        return kind
    if kinds == {str} and isinstance(kind, (nw.String, nw.Categorical, nw.Enum)):
        return nw.String()
    if kinds <= {bool, int, float} and (kind == nw.Boolean or kind.is_numeric()):
        return _number_kind(kind, kinds, values)
    group_kinds = " and ".join(sorted(_KIND_NAMES[kind] for kind in kinds))
    raise TypeError(
        f"Column {name!r} contains {type(kind).__name__}; the repair was fitted to groups that are {group_kinds}. Cast "
        "the column first."
    )


def _number_kind(kind: nw.dtypes.DType, kinds: set[type], values: Sequence[Any]) -> nw.dtypes.DType:
    if kinds == {bool} and kind == nw.Boolean:
        return nw.Boolean()
    if kind == nw.UInt64 and float not in kinds and min(values) >= 0:
        return nw.UInt64()
    if float not in kinds and isinstance(kind, _WITHIN_INT64) and max(values) < 1 << 63:
        return nw.Int64()
    return nw.Float64()


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


def repair_rows(
    lookup: RepairLookup, frame: Any, *, score: str, sensitive_features: str | Sequence[str], output: str
) -> Any:
    """Return the table with one more column, as lazily as the engine is; see `fairtransport.repair.TableRepair`."""
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
    """Add a column ``repaired`` at the end: of the scores clamped to the range, missing where they are NaN."""
    keys, grid = {f"key{index}": kind for index, kind in enumerate(task.kinds)}, task.grid
    score = nw.col(task.columns.score).cast(nw.Float64)
    above = nw.when(score > grid.high).then(nw.lit(grid.high)).otherwise(score)
    within = nw.when(score < grid.low).then(nw.lit(grid.low)).otherwise(above)
    value = nw.when(~score.is_nan()).then(within)
    passing = {key: nw.col(name) for key, name in zip(keys, task.columns.sensitive_features, strict=True)}
    with_nodes = table.with_columns(node_of(value, task.grid).alias("bin"), **passing)
    columns = dict(zip((*keys, "bin", "start", "base", "slope"), lookup.columns().values(), strict=True))
    image = nw.col("base") + (value - nw.col("start")) * nw.col("slope")
    joined = join_groups(with_nodes, keys, columns, on=["bin"])
    return joined.with_columns(image.alias("repaired")).drop("bin", "start", "base", "slope")


def check_rows(
    lookup: RepairLookup, frame: Any, *, score: str, sensitive_features: str | Sequence[str]
) -> dict[str, int]:
    """Count the rows that are clamped and those without a repaired score, in one pass on the engine."""
    table = open_table(frame)
    task = _Task.of(lookup, table, score=score, sensitive_features=sensitive_features)
    count = partial(_count_states, task=task, known=list(lookup.values().values()))
    states = collect(sum_partitions(table.frame.select(*task.columns), count, keys=["state", "unknown"]))
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
    for name, group in zip(task.columns.sensitive_features, passing.values(), strict=True):
        if schema[name].is_float():
            state = code_missing(group, _NO_GROUP, state)
        else:
            state = choose_code(group.is_null(), _NO_GROUP, state)
    state = code_missing(value, _NO_SCORE, state)
    lookup = {**dict(zip(keys, known, strict=True)), "known": [1] * len(known[0])}
    joined = join_groups(table.select(state=state, **passing), keys, lookup)
    states = joined.select("state", unknown=nw.col("known").is_null())
    return states.group_by("state", "unknown").agg(nw.len().alias("rows"))


# Dialects of SQL: identifiers, literals, types, and how text and numbers compare.

_TYPES = ((bool, "BOOLEAN"), (int, "BIGINT"), (float, "DOUBLE PRECISION"))
_INT64 = 1 << 63


def _text(value: str) -> str:
    return quoted(value, "'")


def _postgresql_text(value: str) -> str:
    if "\0" in value:
        raise ValueError("A group contains the character U+0000, which PostgreSQL does not have.")
    return "E" + _text(value).replace("\\", "\\\\") if "\\" in value else _text(value)


def _sqlite_text(value: str) -> str:
    return f"CAST(X'{value.encode().hex()}' AS TEXT)" if "\0" in value else _text(value)


def _mysql_text(value: str) -> str:
    if value.isascii() and value.isprintable() and "\\" not in value:
        return _text(value)
    return f"X'{value.encode().hex()}'"  # independent of NO_BACKSLASH_ESCAPES and of the client's character set


@dataclass(frozen=True)
class Dialect:
    """A dialect of SQL: standard SQL as DuckDB reads it, where nothing else is said.

    ``as_text`` is the form in which text is compared, since the column's own collation may ignore case; ``as_number``
    has double precision, with NaN as missing; ``ceiling`` is for numbers above -1.
    """

    name: str
    mark: str = '"'
    most: int | None = None
    length: Callable[[str], int] = len
    text: Callable[[str], str] = _text
    text_type: Callable[[Sequence[str]], str] = lambda _: "VARCHAR"
    as_text: str = 'CAST({0} AS VARCHAR) COLLATE "C"'
    as_number: str = "NULLIF(CAST({0} AS DOUBLE PRECISION), CAST('NaN' AS DOUBLE PRECISION))"
    ceiling: str = "CAST(CEIL({0}) AS INTEGER)"

    def identifier(self, name: str) -> str:
        """Return a name as a quoted identifier."""
        if not name or "\0" in name:
            raise ValueError(f"{self.name} has no column or table named {name!r}; rename it.")
        if self.most is not None and self.length(name) > self.most:
            raise ValueError(
                f"{name[: self.most]!r}... is longer than the {self.most} that a name may have in {self.name}; "
                "rename it."
            )
        return quoted(name, self.mark)

    def literal(self, value: Any) -> str:
        """Return text, a number or a boolean as a literal; floats with an exponent, since others would be decimal."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bool):
            return str(value).upper()
        shown = repr(float(value) if isinstance(value, float) else int(value))
        return f"{shown}e0" if isinstance(value, float) and "e" not in shown else shown

    def column_type(self, values: Sequence[Any], name: str) -> str:
        """Return the type of a column with these values."""
        kinds = {type(value) for value in values}
        if kinds == {int} and not all(-_INT64 <= value < _INT64 for value in values):
            raise ValueError(
                f"Groups of column {name!r} are whole numbers beyond 64 bits, which databases do not have."
            )
        if kinds == {str}:
            return self.text_type(values)
        for kind, word in _TYPES:
            if kinds == {kind}:
                return word
        raise TypeError(f"Groups of column {name!r} are not text, whole numbers, numbers or booleans alone.")


#: Dialects by name.
DIALECTS: dict[str, Dialect] = {
    "duckdb": Dialect("DuckDB"),
    "postgresql": Dialect("PostgreSQL", most=63, length=lambda name: len(name.encode()), text=_postgresql_text),
    "sqlite": Dialect(
        "SQLite",
        text=_sqlite_text,
        as_text="{0}",  # compared by the collation of the column on the left, that of the lookup table
        as_number="{0}",  # SQLite has no NaN
        ceiling="CAST({0} AS INTEGER) + (({0}) > CAST({0} AS INTEGER))",  # not every build has CEIL
    ),
    "mysql": Dialect(  # text is compared as bytes: collations ignore spaces at the end, and most ignore case
        "MySQL",
        mark="`",
        most=64,
        text=_mysql_text,
        text_type=lambda values: f"VARBINARY({max(1, *(len(value.encode()) for value in values))})",
        as_text="CAST(CONVERT({0} USING utf8mb4) AS BINARY)",
        as_number="({0} + 0e0)",  # MySQL has no NaN
        ceiling="CAST(CEIL({0}) AS SIGNED)",
    ),
}


# Quantile repair as a small table, to join with on any engine, and to export: as a DataFrame, SQL or a file.

_ROWS_PER_INSERT = 500


@dataclass(frozen=True, eq=False)
class RepairLookup:
    """The repaired score of each group at each node of a grid; between two nodes the repair is linear.

    `QuantileRepair.lookup` and `TableRepair.lookup` return it.

    Notes
    -----
    Row (group, k) of the table has ``bin`` k, ``start``, the node k - 1, and ``base`` and ``slope``: a score s of that
    group in (node k - 1, node k] becomes ``base + (s - start) * slope``. Row 0 is for the scores at the lowest node.
    """

    grid: Grid
    groups: Groups
    images: Floats

    @classmethod
    def of_maps(cls, grid: Grid, groups: Groups, maps: Sequence[QuantileMap], amount: float) -> Self:
        """Return the lookup of maps whose knots are nodes, so that nothing is lost."""
        if any(None in (label if isinstance(label, tuple) else (label,)) for label in groups.labels):
            raise ValueError(
                f"A group of {say_columns(groups.columns)} is that of missing values, and a join does not find these; "
                "fill them with a value of their own before the fit."
            )
        nodes = grid.nodes
        images = np.array([(1.0 - amount) * nodes + amount * carry(nodes) for carry in maps])
        return cls(grid, groups, images)

    @property
    def names(self) -> list[str]:
        """Names of the columns ``bin``, ``start``, ``base`` and ``slope``; none is that of a column of groups."""
        return [free_name(name, self.groups.columns) for name in ("bin", "start", "base", "slope")]

    def values(self) -> dict[str, list[Any]]:
        """Return the value of each group in each column of the groups."""
        labels = [label if isinstance(label, tuple) else (label,) for label in self.groups.labels]
        if self.groups.grouping == "each":
            labels = [(label[1],) for label in labels]
        return {name: [label[index] for label in labels] for index, name in enumerate(self.groups.columns)}

    def columns(self) -> dict[str, Any]:
        """Return the table as plain columns: those of the groups, and then `names`."""
        n_nodes, nodes = self.grid.n_nodes, self.grid.nodes
        before = np.maximum(np.arange(n_nodes) - 1, 0)
        rise = np.diff(self.images, axis=1, prepend=self.images[:, :1])
        step = np.diff(nodes, prepend=nodes[0] - self.grid.width)
        keys = {name: [value for value in column for _ in range(n_nodes)] for name, column in self.values().items()}
        numbers = (
            np.tile(np.arange(n_nodes), len(self.groups)),
            np.tile(nodes[before], len(self.groups)),
            self.images[:, before].ravel(),
            (rise / step).ravel(),
        )
        return {**keys, **dict(zip(self.names, numbers, strict=True))}

    def to_frame(self, library: str = "pandas") -> Any:
        """Return the table as a DataFrame."""
        backend: Any = check_choice(library, ("pandas", "polars", "pyarrow"), name="library")
        return nw.from_dict(self.columns(), backend=backend).to_native()

    def to_sql(
        self,
        *,
        score: str,
        sensitive_features: str | Sequence[str] | None = None,
        rows: str = "scores",
        table: str = "repair",
        output: str = "repaired",
        dialect: str = "postgresql",
    ) -> str:
        """Return the repair as SQL, to apply it in a database.

        Notes
        -----
        Names and values are quoted so that no setting of the server changes their meaning, and names that a database
        does not have raise ValueError.
        """
        sql = DIALECTS[check_choice(dialect, tuple(DIALECTS), name="dialect")]
        if sensitive_features is None:
            keys: Sequence[str] = self.groups.columns
        else:
            keys = (sensitive_features,) if isinstance(sensitive_features, str) else sensitive_features
        values = self.values()
        if len(keys) != len(values):
            raise ValueError(
                f"sensitive_features names {len(keys)} columns; the repair was fitted with "
                f"{say_columns(self.groups.columns)}."
            )
        lookup, scores, result = map(sql.identifier, (table, rows, output))
        groups = {f"group_{number}": values[name] for number, name in enumerate(values)}
        types = [sql.column_type(column, name) for name, column in values.items()]
        definitions = [f"{name} {kind}" for name, kind in zip(groups, types, strict=True)]
        definitions += ["bin INTEGER", *(f"{name} DOUBLE PRECISION" for name in ("start", "base", "slope"))]
        literals = [map(sql.literal, column) for column in self.columns().values()]
        values_of = [f"({', '.join(row)})" for row in zip(*literals, strict=True)]
        some = [values_of[first : first + _ROWS_PER_INSERT] for first in range(0, len(values_of), _ROWS_PER_INSERT)]
        lines = [f"CREATE TABLE {lookup} ({', '.join(definitions)});"]
        lines += [f"INSERT INTO {lookup} VALUES\n" + ",\n".join(one) + ";" for one in some]
        low, high, scale, slack = map(sql.literal, (self.grid.low, self.grid.high, self.grid.scale, SLACK))
        raw = sql.as_number.format(f"s.{sql.identifier(score)}")
        value = f"CASE WHEN {raw} < {low} THEN {low} WHEN {raw} > {high} THEN {high} ELSE {raw} END"
        conditions = []
        for name, key in zip(groups, keys, strict=True):
            column = f"s.{sql.identifier(key)}"
            is_text = isinstance(groups[name][0], str)
            conditions.append(f"r.{name} = {sql.as_text.format(column) if is_text else column}")
        conditions.append(f"r.bin = {sql.ceiling.format(f'(({value}) - {low}) * {scale} - {slack}')}")
        image = f"r.base + (({value}) - r.start) * r.slope"
        lines.append(
            f"SELECT s.*, {image} AS {result}\nFROM {scores} AS s\n"
            f"LEFT JOIN {lookup} AS r ON " + "\n  AND ".join(conditions) + ";"
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
