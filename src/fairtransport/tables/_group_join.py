"""A table joined with a small one by its groups, in types in which both compare alike on every engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals as nw

from fairtransport.tables._engines import beside

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["common_kind", "join_groups"]

_WITHIN_INT64 = (nw.Boolean, nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32)
_WORDS = {str: "text", bool: "booleans", int: "whole numbers", float: "numbers"}


def join_groups(
    table: nw.LazyFrame[Any],
    keys: Mapping[str, nw.dtypes.DType],
    held: Mapping[str, Sequence[Any]],
    *,
    on: Sequence[str] = (),
) -> nw.LazyFrame[Any]:
    """Join a table with a small one from the left; each of its rows finds one at most.

    Parameters
    ----------
    table : LazyFrame
        With the columns of the groups under the names of ``keys``; these are gone after the join.
    keys : dict
        Names of the columns of the groups, in both tables, and the type to compare them in.
    held : dict of columns
        The small table: the keys, the columns ``on``, and what is to be found.
    on : list of str
        Further columns to join on.
    """
    small = beside(table, held)
    for key, kind in keys.items():
        if kind != nw.Object:
            table, small = (one.with_columns(nw.col(key).cast(kind)) for one in (table, small))
    return table.join(small, on=[*keys, *on], how="left").drop(*keys)


def common_kind(name: str, kind: nw.dtypes.DType, values: Sequence[Any]) -> nw.dtypes.DType:
    """Return the type in which a column and the groups that a repair knows are compared.

    Every value keeps its identity in it: no two groups become one, and no cast can fail on one, as engines quote
    the value that they could not cast.

    Parameters
    ----------
    name : str
        The column's.
    kind : DType
        Of the column.
    values : sequence
        The groups: text, numbers and booleans, as a repair has no others.

    Examples
    --------
    >>> common_kind("sex", nw.Categorical(), ["F", "M"])
    String
    >>> common_kind("sex", nw.Int8(), [0, 1])
    Int64
    """
    kinds = {type(value) for value in values}
    if kind == nw.Object:  # pandas and Dask: values of any type, which compare as they are
        return kind
    if kinds == {str} and isinstance(kind, (nw.String, nw.Categorical, nw.Enum)):
        return nw.String()
    if kinds <= {bool, int, float} and (kind == nw.Boolean or kind.is_numeric()):
        return _number_kind(kind, kinds, values)
    said = " and ".join(sorted(_WORDS[one] for one in kinds))
    raise TypeError(
        f"Column {name!r} holds {type(kind).__name__}; the repair was fitted to groups that are {said}. Cast the "
        "column first."
    )


def _number_kind(kind: nw.dtypes.DType, kinds: set[type], values: Sequence[Any]) -> nw.dtypes.DType:
    if kinds == {bool} and kind == nw.Boolean:
        return nw.Boolean()
    if kind == nw.UInt64 and float not in kinds and min(values) >= 0:
        return nw.UInt64()
    if float not in kinds and isinstance(kind, _WITHIN_INT64) and max(values) < 1 << 63:
        return nw.Int64()
    return nw.Float64()
