"""Rows of a batch, and their conversion to the input of the model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairtransport._columns import short_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.stream.input._schema import InputSchema

__all__ = ["Row", "convert_rows", "object_array"]


class Row(NamedTuple):
    """One line, parsed.

    Attributes
    ----------
    line : int
        Index of the line in the batch.
    numbers : sequence of float
        Values of the schema's numeric columns.
    cells : sequence
        Values of its raw columns: text, True, False or None.
    group : tuple
        Codes of the groups that the row belongs to; where new groups are adopted, the values of the sensitive columns.
    """

    line: int
    numbers: Sequence[float]
    cells: Sequence[Any]
    group: tuple[Any, ...]


def convert_rows(schema: InputSchema, rows: Sequence[Row]) -> tuple[Any, Groups | dict[str, NDArray[Any]]]:
    """Return the features of the rows, and their groups or, where new groups are adopted, their sensitive columns."""
    numbers = np.array([row.numbers for row in rows], dtype=np.float64).reshape(len(rows), len(schema.numeric))
    columns = dict(zip(schema.numeric, numbers.T, strict=True))
    columns |= {name: object_array([row.cells[j] for row in rows]) for j, name in enumerate(schema.raw)}
    return schema.to_features(columns), _groups_of(schema, rows)


def _groups_of(schema: InputSchema, rows: Sequence[Row]) -> Groups | dict[str, NDArray[Any]]:
    if schema.adopts_groups:
        return {name: object_array([row.group[j] for row in rows]) for j, name in enumerate(schema.sensitive)}
    codes = np.array([row.group for row in rows], dtype=short_type(len(schema.groups)))
    return replace(schema.groups, memberships=tuple(np.ascontiguousarray(column) for column in codes.T))


def object_array(values: Sequence[Any]) -> NDArray[Any]:
    """Return a one-dimensional array of the values, without converting them."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
