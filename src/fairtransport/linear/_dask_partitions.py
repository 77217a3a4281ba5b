"""Parts of a Dask table, encoded once and kept on its workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from importlib import import_module
from typing import Any, TypeVar

from fairtransport._arrays import Floats
from fairtransport._columns import say_columns
from fairtransport._extras import load_extra
from fairtransport.linear._partitions import EncodedRows, Partitions, RawParts, Sums, add, thinned

T = TypeVar("T")

_SUM_EVERY = 8  # partial sums in one task


def _on_arrow(part: Any, work: Callable[[Any], T]) -> T:
    """Return ``work`` of a pandas partition."""
    return work(load_extra("pyarrow").Table.from_pandas(part, preserve_index=False))


def _added(*sums: Sums) -> Sums:
    return reduce(add, sums)


class DaskParts(RawParts):
    """The partitions of a Dask table, on the cluster of the current client."""

    is_remote = True

    def __init__(self, table: Any) -> None:
        self._table = table
        try:
            self._client = load_extra("distributed").get_client()
        except ValueError:
            raise ValueError(
                "Training on a Dask table needs a cluster: make a distributed.Client first; Client() starts one here."
            ) from None
        workers = self._client.run(import_module, "fairtransport", on_error="return")
        without = sum(isinstance(answer, ImportError) for answer in workers.values())
        if without:
            raise ValueError(
                f"{without} of {len(workers)} Dask workers cannot import fairtransport: install it on each of them."
            )

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        return tuple(self._table.columns)

    def _tasks(self, names: Sequence[str], work: Callable[..., Any]) -> list[Any]:
        """Return futures of ``work`` of each partition."""
        delayed = load_extra("dask").delayed
        shared, run = delayed(work), delayed(_on_arrow)
        return list(self._client.compute([run(part, shared) for part in self._table[list(names)].to_delayed()]))

    def summaries(self, work: Callable[[Any], T], names: Sequence[str]) -> Sequence[T]:
        """Return the summary of each partition."""
        try:
            # gather() would leave exceptions unread when it is interrupted.
            return [task.result() for task in self._tasks(names, work)]
        except KeyError:
            raise ValueError(f"Not all parts of the table have {say_columns(names)}.") from None

    def encoded(self, work: Callable[[Any], EncodedRows], names: Sequence[str]) -> Partitions:
        """Return the partitions encoded; they stay on the workers."""
        return DaskPartitions(self._client, self._tasks(names, work))


class DaskPartitions(Partitions):
    """Encoded rows on workers. A part that is lost with its worker is read and encoded again."""

    def __init__(self, client: Any, parts: list[Any]) -> None:
        self._client, self._parts = client, parts

    def total(self, work: Callable[..., Sums], *shared: Any) -> Sums:
        """Return the sum over all partitions, added on the workers."""
        sent = [self._client.scatter(one, broadcast=True, hash=False) for one in shared]
        sums = [self._client.submit(work, part, *sent, pure=False) for part in self._parts]
        while len(sums) > 1:
            some = [sums[start : start + _SUM_EVERY] for start in range(0, len(sums), _SUM_EVERY)]
            sums = [self._client.submit(_added, *each, pure=False) for each in some]
        result: Sums = sums[0].result()
        return result

    def thinned(self, rates: Floats) -> Partitions:
        """Return a share of the rows, on the same workers."""
        return DaskPartitions(self._client, self._client.map(thinned, self._parts, rates=rates, pure=False))

    def close(self) -> None:
        """Let the workers forget the rows."""
        self._client.cancel(self._parts)
