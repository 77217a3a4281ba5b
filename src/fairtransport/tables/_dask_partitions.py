"""Work on the partitions of Dask tables: each is counted or repaired as a pandas table, in one task.

The expressions of narwhals for Dask give the same numbers, but every number in a formula becomes a table in the graph,
all columns are read for the first rows, and distinct values are shuffled between workers.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import narwhals as nw

from fairtransport.tables._engines import collect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["HIGHEST", "count_first_partitions", "map_partitions", "sum_partitions"]

#: Column of the largest score of a bin.
HIGHEST = "highest"

_SUM_EVERY = 8  # partial counts in one task
_GROWTH = 4  # factor of the number of partitions, where the first ones have too few rows


def sum_partitions(
    table: nw.LazyFrame[Any], work: Callable[[nw.LazyFrame[Any]], nw.LazyFrame[Any]], *, keys: Sequence[str]
) -> nw.LazyFrame[Any]:
    """Return the lazy sum over partitions of the counts that ``work`` returns, by the columns ``keys``.

    Of the column `HIGHEST`, the maximum.
    """
    native = table.to_native()
    count, add = partial(_on_pandas, work=work), partial(_add, keys=list(keys))
    counted = native.reduction(count, aggregate=add, combine=add, meta=count(native._meta), split_every=_SUM_EVERY)  # noqa: SLF001 - the documented attribute of the empty table
    return nw.from_native(counted).lazy()


def _on_pandas(part: Any, *, work: Callable[[nw.LazyFrame[Any]], nw.LazyFrame[Any]]) -> Any:
    return work(nw.from_native(part).lazy()).collect().to_native()


def _add(counts: Any, *, keys: list[str]) -> Any:
    frame = nw.from_native(counts, eager_only=True)
    rest = [name for name in frame.columns if name not in keys and name != HIGHEST]
    highest = [nw.col(HIGHEST).max()] if HIGHEST in frame.columns else []
    return frame.group_by(*keys).agg(nw.col(*rest).sum(), *highest).to_native()


def map_partitions(table: nw.LazyFrame[Any], work: Callable[[Any, Any], Any], shared: Any) -> Any:
    """Return the lazy table of ``work(partition, shared)``; ``shared`` is sent once to each worker."""
    native = table.to_native()
    sent = import_module("dask").delayed(shared)
    return native.map_partitions(work, sent, meta=work(native._meta, shared))  # noqa: SLF001


def count_first_partitions(
    table: nw.LazyFrame[Any],
    distinct: Callable[[nw.LazyFrame[Any]], nw.LazyFrame[Any]],
    count: Callable[[nw.LazyFrame[Any]], Sequence[int]],
    *,
    keys: Sequence[str],
    n_rows: int,
) -> Iterator[list[int]]:
    """Count distinct values in the first partition, and in more partitions until these have ``n_rows`` rows.

    The values stay on the workers.

    Parameters
    ----------
    table : LazyFrame
        A Dask table.
    distinct : callable
        From a partition to its distinct ``keys`` and, in the column ``rows``, the number of rows that have them.
    count : callable
        From the distinct keys of all partitions to numbers.
    keys : list of str
    n_rows : int

    Yields
    ------
    list of int
        The result of ``count``.
    """
    native, n_read = table.to_native(), 1
    answer = partial(_count_row, count=count)
    while True:
        first = nw.from_native(native.partitions[:n_read]).lazy()
        values = sum_partitions(first, distinct, keys=keys).to_native()
        meta = answer(values._meta)  # noqa: SLF001
        n_seen, *counts = collect(nw.from_native(values.map_partitions(answer, meta=meta)).lazy()).row(0)
        yield counts
        if n_seen >= n_rows or n_read >= native.npartitions:
            return
        n_read *= _GROWTH


def _count_row(values: Any, *, count: Callable[[nw.LazyFrame[Any]], Sequence[int]]) -> Any:
    counts = [values["rows"].sum(), *count(nw.from_native(values).lazy())]
    return import_module("pandas").DataFrame([counts], columns=[f"n{index}" for index in range(len(counts))])
