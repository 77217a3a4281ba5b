"""Parquet and Feather: files that say what their columns hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairtransport._extras import load_extra
from fairtransport.tables.files._layouts import Layout, describe, paths_of, runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fairtransport.tables.files.paths import FoundFile

__all__ = ["feather_layouts", "parquet_layouts"]


@dataclass(frozen=True, eq=False)
class _Parquet(Layout):
    def source(self, wanted: Mapping[int, str | None]) -> str:  # noqa: ARG002 - the engine reads what is selected
        return _scan(self.files)


def parquet_layouts(files: Sequence[FoundFile], connection: Any) -> Iterator[Layout]:
    """Read the end of each file."""
    arrow, parquet = load_extra("pyarrow"), load_extra("pyarrow.parquet")

    def look(file: FoundFile) -> Any:
        try:
            return parquet.read_schema(str(file.path)).remove_metadata()
        except (arrow.ArrowException, OSError):
            raise ValueError(f"{file.path} is no Parquet file, or is cut off: it does not end as one does.") from None

    for schema, alike in runs(files, look):
        yield _Parquet(alike, tuple(schema.names), *describe(connection, _scan(alike)))


def _scan(files: Sequence[FoundFile]) -> str:
    return f"read_parquet({paths_of(files)}, hive_partitioning = false)"


@dataclass(frozen=True, eq=False)
class _Feather(Layout):
    """The engine does not read Feather; it is given Arrow streams."""

    schema: Any
    connection: Any
    label: str
    streams: list[_Stream] = field(default_factory=list)

    def source(self, wanted: Mapping[int, str | None]) -> str:
        stream = _Stream(self.files, self.schema, list(wanted))
        name = f"{self.label}_{len(self.streams)}"
        self.connection.register(name, stream)
        self.streams.append(stream)
        return name

    def share(self) -> float | None:
        return self.streams[-1].share() if self.streams else None


def feather_layouts(files: Sequence[FoundFile], connection: Any) -> Iterator[Layout]:
    """Read the end of each file."""
    arrow = load_extra("pyarrow")

    def look(file: FoundFile) -> Any:
        try:
            with arrow.OSFile(str(file.path)) as raw:
                return arrow.ipc.open_file(raw).schema.remove_metadata()
        except (arrow.ArrowException, OSError):
            raise ValueError(
                f"{file.path} is no Feather file (Arrow IPC, version 2), or is cut off: it does not end as one does."
            ) from None

    for number, (schema, alike) in enumerate(runs(files, look)):
        label = f"feather_{number}"
        connection.register(label, _named_by_place(schema, range(len(schema))).empty_table())
        own, types = describe(connection, label)
        connection.unregister(label)
        yield _Feather(alike, tuple(schema.names), own, types, schema, connection, label)


def _named_by_place(schema: Any, places: Sequence[int]) -> Any:
    """Call columns c0, c1 and so on: the engine does not tell names apart that differ in case only."""
    return load_extra("pyarrow").schema([schema.field(place).with_name(f"c{place}") for place in places])


class _Stream:
    """Some columns of Feather files as an Arrow stream, which the engine may open as often as it likes."""

    def __init__(self, files: Sequence[FoundFile], schema: Any, places: list[int]) -> None:
        paths = [str(file.path) for file in files]
        self._dataset = load_extra("pyarrow.dataset").dataset(paths, format="feather", schema=schema)
        self._places = places
        self._schema = _named_by_place(schema, places)
        self._done = self._total = 0

    def share(self) -> float:
        """Return the share of the rows that the last one to open it has read."""
        return self._done / self._total if self._total else 0.0

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        arrow = load_extra("pyarrow")
        self._total = self._total or self._dataset.count_rows()
        self._done = 0
        return arrow.RecordBatchReader.from_batches(self._schema, self._batches()).__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[Any]:
        column = load_extra("pyarrow.compute").field
        chosen = {f"c{place}": column(place) for place in self._places}
        for batch in self._dataset.to_batches(columns=chosen):
            batch.validate(full=True)  # engines trust offsets and lengths: a damaged file would end the process
            self._done += batch.num_rows
            yield batch
