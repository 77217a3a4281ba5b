"""Join of a table with a small one on the columns of the groups, with types that compare alike on every engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals as nw

from fairtransport.tables._engines import small_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["common_kind", "join_groups"]

_WITHIN_INT64 = (nw.Boolean, nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32)
_KIND_NAMES = {str: "text", bool: "booleans", int: "whole numbers", float: "numbers"}


def join_groups(
    table: nw.LazyFrame[Any],
    keys: Mapping[str, nw.dtypes.DType],
    lookup: Mapping[str, Sequence[Any]],
    *,
    on: Sequence[str] = (),
) -> nw.LazyFrame[Any]:
    """Left join of a table with a small one; each row matches at most one row of it.

    Parameters
    ----------
    table : LazyFrame
        With the columns of the groups under the names of ``keys``; these are dropped after the join.
    keys : dict
        Names of the columns of the groups, in both tables, and the type to compare them in.
    lookup : dict of columns
        The small table: the keys, the columns ``on``, and the columns to add.
    on : list of str
        Further columns to join on.
    """
    small = small_table(table, lookup)
    for key, kind in keys.items():
        if kind != nw.Object:
            table, small = (frame.with_columns(nw.col(key).cast(kind)) for frame in (table, small))
    return table.join(small, on=[*keys, *on], how="left").drop(*keys)


def common_kind(name: str, kind: nw.dtypes.DType, values: Sequence[Any]) -> nw.dtypes.DType:
    """Return the type in which a column and the known groups are compared.

    Casts to it are injective and cannot fail: no two groups become one, and no engine quotes a value that it could not
    cast.

    Parameters
    ----------
    name : str
        Name of the column.
    kind : DType
        Type of the column.
    values : sequence
        The known groups: text, numbers and booleans.

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
