"""Layouts of Parquet and Feather files, which store the types of their columns."""

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
    def source(self, types: Mapping[int, str | None]) -> str:  # noqa: ARG002 - the engine reads only what is selected
        return _scan(self.files)


def parquet_layouts(files: Sequence[FoundFile], connection: Any) -> Iterator[Layout]:
    """Yield the layouts of Parquet files, from their footers."""
    arrow, parquet = load_extra("pyarrow"), load_extra("pyarrow.parquet")

    def inspect(file: FoundFile) -> Any:
        try:
            return parquet.read_schema(file.location).remove_metadata()
        except (arrow.ArrowException, OSError):
            raise ValueError(f"{file.path} is not a Parquet file, or is truncated: it has no footer.") from None

    for schema, same_files in runs(files, inspect):
        _check_names(same_files[0], schema.names)
        yield _Parquet(same_files, tuple(schema.names), *describe(connection, _scan(same_files)))


def _check_names(file: FoundFile, names: Sequence[str]) -> None:
    """Raise when a column has the name that the engine gives to one whose name is empty."""
    given = {f"c{index}" for index, name in enumerate(names) if not name}
    taken = next((name for name in names if name.casefold() in given), None)
    if taken is not None:
        raise ValueError(f"{file.path} has a column whose name is empty, which the engine confuses with {taken!r}.")


def _scan(files: Sequence[FoundFile]) -> str:
    return f"read_parquet({paths_of(files)}, hive_partitioning = false)"


@dataclass(frozen=True, eq=False)
class _Feather(Layout):
    """Feather files, which the engine reads as Arrow streams."""

    schema: Any
    connection: Any
    label: str
    streams: list[_Stream] = field(default_factory=list)

    def source(self, types: Mapping[int, str | None]) -> str:
        stream = _Stream(self.files, self.schema, list(types))
        name = f"{self.label}_{len(self.streams)}"
        self.connection.register(name, stream)
        self.streams.append(stream)
        return name

    def share(self) -> float | None:
        return self.streams[-1].share() if self.streams else None


def feather_layouts(files: Sequence[FoundFile], connection: Any) -> Iterator[Layout]:
    """Yield the layouts of Feather files, from their footers."""
    arrow = load_extra("pyarrow")

    def inspect(file: FoundFile) -> Any:
        try:
            with arrow.OSFile(file.location) as raw:
                return arrow.ipc.open_file(raw).schema.remove_metadata()
        except (arrow.ArrowException, OSError):
            raise ValueError(
                f"{file.path} is not a Feather file (Arrow IPC, version 2), or is truncated: it has no footer."
            ) from None

    for number, (schema, same_files) in enumerate(runs(files, inspect)):
        label = f"feather_{number}"
        connection.register(label, _named_by_index(schema, range(len(schema))).empty_table())
        engine_names, types = describe(connection, label)
        connection.unregister(label)
        yield _Feather(same_files, tuple(schema.names), engine_names, types, schema, connection, label)


def _named_by_index(schema: Any, indices: Sequence[int]) -> Any:
    """Rename columns to c0, c1, ..., since the engine ignores the case of names."""
    return load_extra("pyarrow").schema([schema.field(index).with_name(f"c{index}") for index in indices])


class _Stream:
    """Columns of Feather files as an Arrow stream that can be opened repeatedly."""

    def __init__(self, files: Sequence[FoundFile], schema: Any, indices: list[int]) -> None:
        paths = [file.location for file in files]
        self._dataset = load_extra("pyarrow.dataset").dataset(paths, format="feather", schema=schema)
        self._indices = indices
        self._schema = _named_by_index(schema, indices)
        self._done = self._total = 0

    def share(self) -> float:
        """Return the share of the rows that the last reader has read."""
        return self._done / self._total if self._total else 0.0

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        arrow = load_extra("pyarrow")
        self._total = self._total or self._dataset.count_rows()
        self._done = 0
        return arrow.RecordBatchReader.from_batches(self._schema, self._batches()).__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[Any]:
        column = load_extra("pyarrow.compute").field
        chosen = {f"c{index}": column(index) for index in self._indices}
        for batch in self._dataset.to_batches(columns=chosen):
            batch.validate(full=True)  # engines trust offsets: a damaged file could crash the process
            self._done += batch.num_rows
            yield batch
