"""Dask: a partition is counted or repaired as a table of pandas is, in one task; counts are added up in a tree.

narwhals' expressions for Dask give the same numbers. But every number in a formula becomes a table of its own in the
graph, all columns are read for the first rows, and distinct values are shuffled between workers.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import narwhals as nw

from fairtransport.tables._engines import collect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["add_up", "each", "look_first"]

_A_BRANCH = 8  # counts that are added up at once
_LOOK_FURTHER = 4  # times as many partitions, where the first ones have too few rows


def add_up(
    table: nw.LazyFrame[Any], work: Callable[[nw.LazyFrame[Any]], nw.LazyFrame[Any]], *, keys: Sequence[str]
) -> nw.LazyFrame[Any]:
    """Return the sums of what ``work`` counts in each partition, by the columns ``keys``; nothing is computed yet."""
    native = table.to_native()
    count, add = partial(_on_pandas, work=work), partial(_add, keys=list(keys))
    counted = native.reduction(count, aggregate=add, combine=add, meta=count(native._meta), split_every=_A_BRANCH)  # noqa: SLF001 - Dask documents it: the table without rows
    return nw.from_native(counted).lazy()


def _on_pandas(part: Any, *, work: Callable[[nw.LazyFrame[Any]], nw.LazyFrame[Any]]) -> Any:
    return work(nw.from_native(part).lazy()).collect().to_native()


def _add(counts: Any, *, keys: list[str]) -> Any:
    frame = nw.from_native(counts, eager_only=True)
    rest = [name for name in frame.columns if name not in keys]
    return frame.group_by(*keys).agg(nw.col(*rest).sum()).to_native()


def each(table: nw.LazyFrame[Any], work: Callable[[Any, Any], Any], held: Any) -> Any:
    """Return the table of ``work(partition, held)``; nothing is computed yet. ``held`` is sent once to each worker."""
    native = table.to_native()
    sent = import_module("dask").delayed(held)
    return native.map_partitions(work, sent, meta=work(native._meta, held))  # noqa: SLF001 - likewise


def look_first(
    table: nw.LazyFrame[Any],
    distinct: Callable[[nw.LazyFrame[Any]], nw.LazyFrame[Any]],
    count: Callable[[nw.LazyFrame[Any]], Sequence[int]],
    *,
    keys: Sequence[str],
    n_rows: int,
) -> Iterator[list[int]]:
    """Count values in the first partition, and in more of them until these have ``n_rows``; the values stay there.

    Parameters
    ----------
    table : LazyFrame
        Of Dask.
    distinct : callable
        A partition -> its distinct ``keys``, and in the column ``rows`` how many rows have them.
    count : callable
        The distinct keys of all -> numbers.
    keys : list of str
    n_rows : int

    Yields
    ------
    list of int
        What ``count`` found.
    """
    native, n_read = table.to_native(), 1
    answer = partial(_in_one_row, count=count)
    while True:
        first = nw.from_native(native.partitions[:n_read]).lazy()
        found = add_up(first, distinct, keys=keys).to_native()
        made = answer(found._meta)  # noqa: SLF001 - likewise
        n_seen, *counts = collect(nw.from_native(found.map_partitions(answer, meta=made)).lazy()).row(0)
        yield counts
        if n_seen >= n_rows or n_read >= native.npartitions:
            return
        n_read *= _LOOK_FURTHER


def _in_one_row(found: Any, *, count: Callable[[nw.LazyFrame[Any]], Sequence[int]]) -> Any:
    counts = [found["rows"].sum(), *count(nw.from_native(found).lazy())]
    return import_module("pandas").DataFrame([counts], columns=[f"n{place}" for place in range(len(counts))])
