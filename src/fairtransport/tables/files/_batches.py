"""The rows of files in their order, part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport._extras import load_extra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from fairtransport.tables.files._decompression_limit import UnpackingGuard

__all__ = ["Batches"]


class Batches:
    """Rows in their order, part by part.

    Parameters
    ----------
    reader : pyarrow.RecordBatchReader
    names : sequence of str
        Of the columns.
    used : sequence of str
        Columns that are given on their own as well, numbers as floats.
    guard : UnpackingGuard or None
    plain_errors : callable
        Makes a context in which errors of the engine are raised without what they quote.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of the rows.
    """

    def __init__(
        self,
        reader: Any,
        names: Sequence[str],
        used: Sequence[str],
        guard: UnpackingGuard | None,
        plain_errors: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._reader, self._used, self._guard, self._plain_errors = reader, used, guard, plain_errors
        held = [reader.schema.field(place).with_name(name) for place, name in enumerate(names)]
        self.schema = load_extra("pyarrow").schema(held)

    def __iter__(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Give the rows of each part, and the columns that were asked for on their own."""
        size = len(self.schema)
        try:
            while True:
                with self._plain_errors():
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
