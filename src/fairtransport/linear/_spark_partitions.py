"""Parts of a Spark table, encoded once and persisted on its executors."""

from __future__ import annotations

import pickle  # objects of our own, between the driver and its executors
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from fairtransport._arrays import Floats
from fairtransport._extras import load_extra
from fairtransport.linear._partitions import EncodedRows, Partitions, RawParts, Sums, add, thinned

T = TypeVar("T")

_SCHEMA = "part int, content binary"


def _one_row(part: int, value: Any) -> Any:
    arrow = load_extra("pyarrow")
    columns = [arrow.array([part], arrow.int32()), arrow.array([pickle.dumps(value, protocol=5)], arrow.binary())]
    return arrow.RecordBatch.from_arrays(columns, ["part", "content"])


def _on_rows(batches: Iterator[Any], work: Callable[[Any], Any]) -> Iterator[Any]:
    """Yield ``work`` of the rows of one partition."""
    from pyspark import TaskContext  # noqa: PLC0415 - on executors

    rows = list(batches)
    if rows:
        yield _one_row(TaskContext.get().partitionId(), work(load_extra("pyarrow").Table.from_batches(rows)))


def _on_encoded(batches: Iterator[Any], work: Callable[..., Any]) -> Iterator[Any]:
    """Yield ``work`` of encoded parts."""
    for batch in batches:
        for part, content in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            yield _one_row(part, work(pickle.loads(content)))  # noqa: S301


def _results(frame: Any) -> Iterator[tuple[int, Any]]:
    """Yield partitions and their results, one partition at a time on the driver."""
    try:
        for row in frame.toLocalIterator(prefetchPartitions=True):
            yield row["part"], pickle.loads(bytes(row["content"]))  # noqa: S301
    except Exception as error:  # of Spark, or of the gateway to it
        if "ModuleNotFoundError: No module named" not in str(error):
            raise
        raise ValueError(
            "Spark's executors cannot import fairtransport and what it needs: install it on each of them, and set "
            "PYSPARK_PYTHON to the Python that has it before the session is created."
        ) from None


class SparkParts(RawParts):
    """The partitions of a Spark table."""

    is_remote = True

    def __init__(self, table: Any) -> None:
        self._table = table

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        return tuple(self._table.columns)

    def _mapped(self, names: Sequence[str], work: Callable[[Any], Any]) -> Any:
        chosen = self._table.select(*(f"`{name.replace('`', '``')}`" for name in names))
        return chosen.mapInArrow(partial(_on_rows, work=work), _SCHEMA)

    def summaries(self, work: Callable[[Any], T], names: Sequence[str]) -> Sequence[T]:
        """Return the summary of each partition that has rows."""
        return [result for _, result in sorted(_results(self._mapped(names, work)), key=lambda one: one[0])]

    def encoded(self, work: Callable[[Any], EncodedRows], names: Sequence[str]) -> Partitions:
        """Return the partitions encoded; they stay on the executors."""
        return SparkPartitions(self._mapped(names, work))


class SparkPartitions(Partitions):
    """Encoded rows that are persisted on executors, in memory and on disk. Lost ones are encoded again."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame.persist(load_extra("pyspark").StorageLevel.MEMORY_AND_DISK)
        self._samples: list[SparkPartitions] = []

    def _mapped(self, work: Callable[..., Any]) -> Any:
        return self._frame.mapInArrow(partial(_on_encoded, work=work), _SCHEMA)

    def total(self, work: Callable[..., Sums], *shared: Any) -> Sums:
        """Return the sum over all partitions, added on the driver in their order."""
        total: Sums | None = None
        for _, result in _results(self._mapped(partial(_with, work=work, shared=shared))):
            total = result if total is None else add(total, result)
        if total is None:
            raise ValueError("The table has no rows.")
        return total

    def thinned(self, rates: Floats) -> Partitions:
        """Return a share of the rows, on the same executors."""
        self._samples.append(SparkPartitions(self._mapped(partial(thinned, rates=rates))))
        return self._samples[-1]

    def close(self) -> None:
        """Let the executors forget the rows, and their samples."""
        for sample in self._samples:
            sample.close()
        with suppress(load_extra("py4j.protocol").Py4JError, OSError):  # Spark has ended, and the rows with it
            self._frame.unpersist()


def _with(part: EncodedRows, work: Callable[..., Sums], shared: tuple[Any, ...]) -> Sums:
    return work(part, *shared)
