"""Batches of the rows of files, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport._extras import load_extra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from fairtransport.tables.files._decompression_limit import DecompressionGuard

__all__ = ["Batches"]


class Batches:
    """Iterable of batches of rows, in their order.

    Parameters
    ----------
    reader : pyarrow.RecordBatchReader
    names : sequence of str
        Names of the columns.
    used : sequence of str
        Columns that are also returned separately, with numbers as floats.
    guard : DecompressionGuard or None
    redacted_errors : callable
        Returns a context manager in which errors of the engine are raised without the values that they quote.

    Attributes
    ----------
    schema : pyarrow.Schema
        Schema of the rows.
    """

    def __init__(
        self,
        reader: Any,
        names: Sequence[str],
        used: Sequence[str],
        guard: DecompressionGuard | None,
        redacted_errors: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._reader, self._used, self._guard, self._redacted_errors = reader, used, guard, redacted_errors
        fields = [reader.schema.field(index).with_name(name) for index, name in enumerate(names)]
        self.schema = load_extra("pyarrow").schema(fields)

    def __iter__(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Yield the rows of each batch, and the columns that are returned separately."""
        size = len(self.schema)
        try:
            while True:
                with self._redacted_errors():
                    batch = next(iter(self._reader), None)
                if self._guard is not None:
                    self._guard.check(wait=batch is None)
                if batch is None:
                    return
                arrays = batch.columns
                rows = load_extra("pyarrow").RecordBatch.from_arrays(arrays[:size], schema=self.schema)
                yield rows, dict(zip(self._used, arrays[size:], strict=True))
        finally:
            if self._guard is not None:
                self._guard.stop()
            self._reader.close()
