"""Writers of tables in batches; a file appears only when it is complete."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from fairtransport._extras import load_extra
from fairtransport._validation import check_choice
from fairtransport.storage import replacing
from fairtransport.tables.files.paths import FORMATS, split_suffixes


def check_output(path: str | os.PathLike[str]) -> str:
    """Return the format of a file to write, by its extension: csv, parquet, feather or jsonl; others raise."""
    suffix, compression = split_suffixes(Path(path))
    known = FORMATS.get(suffix)
    if known not in _WRITERS or (compression is not None and known not in {"csv", "jsonl"}):
        writable = ", ".join(extension for extension, name in FORMATS.items() if name in _WRITERS)
        raise ValueError(
            f"{path}: no format that can be written; known extensions are {writable}, those of text files also with "
            ".gz or .zst."
        )
    return known


@contextlib.contextmanager
def table_writer(path: str | os.PathLike[str], schema: Any) -> Iterator[Callable[[Any], None]]:
    """Open a file to write a table in batches; it appears when all is written."""
    target, known = Path(path), check_output(path)
    arrow = load_extra("pyarrow")
    with replacing(target) as draft, contextlib.ExitStack() as stack, _redacted_errors(target, known):
        sink = stack.enter_context(arrow.OSFile(str(draft), "wb"))
        compression = split_suffixes(target)[1]
        if compression is not None:
            sink = stack.enter_context(arrow.CompressedOutputStream(sink, compression))
        yield _WRITERS[known](stack, sink, schema, target)


@contextlib.contextmanager
def stream_writer(file: BinaryIO, known: str, schema: Any) -> Iterator[Callable[[Any], None]]:
    """Write a table in batches to an open file, such as standard output, as csv or jsonl."""
    check_choice(known, _TEXT, name="format")
    with contextlib.ExitStack() as stack, _redacted_errors("standard output", known):
        yield _WRITERS[known](stack, file, schema, Path(f"-.{known}"))


@contextlib.contextmanager
def _redacted_errors(target: object, known: str) -> Iterator[None]:
    """Raise errors of the libraries that write, without the values that they quote."""
    arrow = load_extra("pyarrow")
    errors = (arrow.ArrowException, *((load_extra("polars").exceptions.PolarsError,) if known in _TEXT else ()))
    try:
        yield
    except errors:
        raise ValueError(
            f"{target}: a column cannot be written as {known}. Lists and records can be written as .parquet."
        ) from None


def _parquet(stack: contextlib.ExitStack, sink: Any, schema: Any, _: Path) -> Callable[[Any], None]:
    floating = load_extra("pyarrow").types.is_floating
    encoded = [column.name for column in schema if not floating(column.type)]  # dictionaries of floats do not pay
    writer = load_extra("pyarrow.parquet").ParquetWriter(sink, schema, compression="zstd", use_dictionary=encoded)
    return stack.enter_context(writer).write_batch


def _feather(stack: contextlib.ExitStack, sink: Any, schema: Any, _: Path) -> Callable[[Any], None]:
    ipc = load_extra("pyarrow").ipc
    writer = ipc.new_file(sink, schema, options=ipc.IpcWriteOptions(compression="lz4"))
    return stack.enter_context(writer).write_batch


def _csv(_: contextlib.ExitStack, sink: Any, schema: Any, path: Path) -> Callable[[Any], None]:
    separator = "\t" if split_suffixes(path)[0] == ".tsv" else ","
    sink.write(_polars_frame(schema.empty_table()).write_csv(separator=separator).encode())
    return lambda rows: sink.write(_polars_frame(rows).write_csv(include_header=False, separator=separator).encode())


def _json(_: contextlib.ExitStack, sink: Any, schema: Any, path: Path) -> Callable[[Any], None]:  # noqa: ARG001
    return lambda rows: sink.write(_polars_frame(rows).write_ndjson().encode())


def _polars_frame(rows: Any) -> Any:
    """Return rows as a table of polars, which would rename a column whose name is empty."""
    frame = load_extra("polars").from_arrow(rows)
    frame.columns = rows.schema.names
    return frame


_TEXT = ("csv", "jsonl")
_WRITERS = {"parquet": _parquet, "feather": _feather, "csv": _csv, "jsonl": _json}
