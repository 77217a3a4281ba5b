"""Quantile repair as a small table, for any engine, and to hand on: as SQL, as a file."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._columns import say_columns
from fairtransport.histograms import SLACK, Grid
from fairtransport.storage import write_atomically

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Sequence
    from pathlib import Path
    from typing import Self

    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.transport.line import QuantileMap

__all__ = ["RepairLookup", "free_name"]

_A_STATEMENT = 500  # rows of one INSERT


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
        return [free_name(name, self.groups.columns) for name in ("bin", "start", "base", "slope")]

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


def free_name(name: str, others: Collection[str]) -> str:
    """Return a name that no other column has."""
    while name in others:
        name += "_"
    return name


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
