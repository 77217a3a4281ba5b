"""Quantile repair as a small table, to join with on any engine, and to export: as a DataFrame, SQL or a file."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from fairtransport._columns import say_columns
from fairtransport._validation import check_choice
from fairtransport.histograms import SLACK, Grid
from fairtransport.storage import write_atomically
from fairtransport.tables._sql_dialects import DIALECTS

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path
    from typing import Self

    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.tables._sql_dialects import Dialect
    from fairtransport.transport.line import QuantileMap

__all__ = ["RepairLookup"]

_ROWS_PER_INSERT = 500


@dataclass(frozen=True, eq=False)
class RepairLookup:
    """The repaired score of each group at each node of a grid; between two nodes the repair is linear.

    `QuantileRepair.lookup` and `TableRepair.lookup` return it.

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
                "fill them with a value of their own before the fit."
            )
        nodes = grid.nodes
        images = np.array([(1.0 - amount) * nodes + amount * carry(nodes) for carry in maps])
        return cls(grid, groups, images)

    @property
    def names(self) -> list[str]:
        """Names of the columns ``bin``, ``start``, ``base`` and ``slope``; none is that of a column of groups."""
        return [_free_name(name, self.groups.columns) for name in ("bin", "start", "base", "slope")]

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

    # --------------------------------------------------------------------------------------------------- export

    def to_frame(self, library: str = "pandas") -> Any:
        """Return the table as a DataFrame.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, default="pandas"

        Returns
        -------
        DataFrame
            One row for each group and bin: the columns of the groups, and then ``bin``, ``start``, ``base`` and
            ``slope``; see `RepairLookup`.
        """
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

        Parameters
        ----------
        score : str
            Column of the scores in the table ``rows``.
        sensitive_features : str or list of str, optional
            Columns of the groups there; those of the fit when omitted.
        rows : str, default="scores"
            Table that holds the scores.
        table : str, default="repair"
            Table to create: one row for each group and bin.
        output : str, default="repaired"
            Name of the new column.
        dialect : {"duckdb", "mysql", "postgresql", "sqlite"}, default="postgresql"
            Dialect of the database; ``"mysql"`` is also that of MariaDB. Databases that follow the standard read that
            of PostgreSQL or DuckDB.

        Returns
        -------
        str
            Statements that create and fill the table, with the columns ``group_0``, ..., ``bin``, ``start``, ``base``
            and ``slope``, and last the query that uses it. Where the score or the group is missing (NULL, or a NaN), or
            the group was not seen in the fit, the result is NULL; scores outside the fitted range are clamped. Text is
            compared character by character, whatever the collation of the database.

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
        lines = [f"CREATE TABLE {lookup} ({', '.join(definitions)});", *self._inserts(lookup, sql)]
        low, high, scale, slack = map(sql.number, (self.grid.low, self.grid.high, self.grid.scale, SLACK))
        raw = sql.as_number(f"s.{sql.identifier(score)}")
        value = f"CASE WHEN {raw} < {low} THEN {low} WHEN {raw} > {high} THEN {high} ELSE {raw} END"
        conditions = []
        for name, key, kind in zip(groups, map(sql.identifier, keys), map(_kind, groups.values()), strict=True):
            conditions.append(f"r.{name} = {sql.as_text(f's.{key}') if kind is str else f's.{key}'}")
        conditions.append(f"r.bin = {sql.ceiling(f'(({value}) - {low}) * {scale} - {slack}')}")
        image = f"r.base + (({value}) - r.start) * r.slope"
        lines.append(
            f"SELECT s.*, {image} AS {result}\nFROM {scores} AS s\n"
            f"LEFT JOIN {lookup} AS r ON " + "\n  AND ".join(conditions) + ";"
        )
        return "\n".join(lines) + "\n"

    def _inserts(self, table: str, sql: Dialect) -> Iterator[str]:
        columns = [map(sql.literal, column) for column in self.columns().values()]
        rows = [f"({', '.join(row)})" for row in zip(*columns, strict=True)]
        for first in range(0, len(rows), _ROWS_PER_INSERT):
            yield f"INSERT INTO {table} VALUES\n" + ",\n".join(rows[first : first + _ROWS_PER_INSERT]) + ";"

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


def _free_name(name: str, others: Collection[str]) -> str:
    """Return a name that no other column has."""
    while name in others:
        name += "_"
    return name


def _kind(values: list[Any]) -> type:
    return type(values[0])
