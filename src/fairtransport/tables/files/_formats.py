"""CSV, JSON lines, Parquet, Feather and Excel files, and the SQL that reads them.

Names of files and columns enter SQL only through `quoted` and `literal`.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import glob
import io
import json
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

from fairtransport._extras import load_extra
from fairtransport.tables._engines import numbers, quoted
from fairtransport.tables.files import engine
from fairtransport.tables.files.paths import FoundFile

#: Number of rows from which types are inferred, in formats that do not store them.
SAMPLE = 20_480

_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "BIGNUM")


@dataclass(frozen=True, eq=False)
class Layout:
    """Files with the same columns.

    ``source`` returns the SQL of a table with at least the columns at these indices, of these types (None: unchanged).
    ``sampled_types``, in formats that do not store types, infers them from the first rows. ``streams`` are those that
    the engine reads, where it does not report its progress.
    """

    files: tuple[FoundFile, ...]
    names: tuple[str, ...]
    engine_names: tuple[str, ...]
    types: tuple[str, ...]
    source: Callable[[Mapping[int, str | None]], str]
    typed: bool = True
    sampled_types: Callable[[], tuple[str, ...]] | None = None
    streams: list[_Stream] | None = None

    def kind(self, name: str) -> str:
        """Return the kind of values of a column, as one word."""
        return kind_of(self.types[self.names.index(name)])

    def guess(self) -> tuple[str, ...]:
        """Return the types of the columns, inferred from the first rows where the files do not store them."""
        return self.types if self.sampled_types is None else self.sampled_types()

    def share(self) -> float | None:
        """Return the share of the running scan that is done; None where the engine reports it."""
        return self.streams[-1].share() if self.streams else None


def with_unique_names(layout: Layout) -> Layout:
    """Tell columns of the same name apart by their positions: ``race#2`` and ``race#5``."""
    counts = Counter(layout.names)
    names = tuple(
        f"{name}#{position}" if counts[name] > 1 else name for position, name in enumerate(layout.names, start=1)
    )
    return layout if len({*names}) < len(names) else replace(layout, names=names)


def literal(text: str) -> str:
    """Return a text as an SQL literal."""
    return quoted(text, "'")


def literals(texts: Iterable[str]) -> str:
    """Return texts as an SQL list."""
    return f"[{', '.join(map(literal, texts))}]"


def paths_of(files: Iterable[FoundFile]) -> str:
    """Return files as an SQL list; pattern characters are escaped, since the engine treats names as patterns."""
    return literals(map(_escaped, files))


def _escaped(file: FoundFile) -> str:
    if not glob.has_magic(file.location):
        return file.location
    if "\\" in file.location:
        raise ValueError(f"{file.path} has a backslash and one of *?[ in its path, which the engine cannot open.")
    return glob.escape(file.location)


def kind_of(type_name: str) -> str:
    """Return the kind of values of a type of the engine, as one word."""
    word = type_name if type_name.endswith("]") else type_name.partition("(")[0]
    if word in _NUMBERS or word.removeprefix("U") in _NUMBERS:
        return "numbers"
    return "text" if word in {"VARCHAR", "ENUM"} else type_name


def runs(
    files: Sequence[FoundFile], inspect: Callable[[FoundFile], Any]
) -> Iterator[tuple[Any, tuple[FoundFile, ...]]]:
    """Yield runs of consecutive files with the same properties; the order of the files is kept."""
    for properties, pairs in groupby(((inspect(file), file) for file in files), key=lambda pair: pair[0]):
        yield properties, tuple(file for _, file in pairs)


def describe(connection: Any, source: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names and types of the columns of a source in the engine."""
    rows = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()  # noqa: S608 - quoted
    return tuple(row[0] for row in rows), tuple(row[1] for row in rows)


# The header of a CSV file: its delimiter and the names of its columns.

#: Encodings that the engine reads, and their names in Python.
ENCODINGS = {"utf-8": "utf-8-sig", "latin-1": "latin-1", "utf-16": "utf-16"}
#: Largest length of a line in bytes, as in the engine.
MOST_LINE = 2_000_000
DELIMITERS = (",", ";", "\t", "|")
_OTHERS = {"<!doctype html": "a web page", "<html": "a web page", "<?xml": "XML", "%pdf-": "a PDF"}
_HEAD_BYTES = 1 << 17
_MOST_RECORDS = 50


@dataclass(frozen=True)
class Head:
    """Header of a CSV file."""

    names: tuple[str, ...]
    delimiter: str
    skipped: int = 0


def read_head(file: FoundFile, *, delimiter: str | None = None, encoding: str = "utf-8") -> Head:
    """Read the names of the columns and infer the delimiter: the one that splits the first lines most evenly."""
    text = _first_text(file, encoding)
    lines = list(io.StringIO(text, newline=""))
    skipped = next((index for index, line in enumerate(lines) if line.strip()), None)
    if skipped is None:
        raise ValueError(f"{file.path} has only empty lines.")
    body = lines[skipped:]
    other = next((kind for start, kind in _OTHERS.items() if body[0].lstrip().lower().startswith(start)), None)
    if other is not None:
        raise ValueError(f"{file.path} is not a CSV file but {other}; export or download the table itself.")
    if delimiter is None and file.tabbed:
        delimiter = "\t"
    candidates = (delimiter,) if delimiter is not None else DELIMITERS
    records = {character: _records(body, character) for character in candidates}
    best = max(candidates, key=lambda character: _evenness(records[character]))
    return Head(tuple(name.strip() for name in records[best][0]), best, skipped)


def _first_text(file: FoundFile, encoding: str) -> str:
    """Return the first lines as text, without an incomplete last line."""
    data = first_bytes(file, _HEAD_BYTES)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and encoding != "utf-16":
        raise ValueError(f"{file.path} is UTF-16; use encoding='utf-16'.")
    if encoding != "utf-16" and b"\0" in data:
        raise ValueError(f"{file.path} is not a CSV file: it contains zero bytes.")
    try:
        for size in (_HEAD_BYTES, MOST_LINE):
            data = data if size == _HEAD_BYTES else first_bytes(file, size)
            whole = len(data) < size
            text = codecs.getincrementaldecoder(ENCODINGS[encoding])(errors="strict").decode(data, final=whole)
            if whole or "\n" in text or "\r" in text:
                break
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{file.path}, line {line}: the file is not {encoding.upper()}; give its encoding= "
            f"({', '.join(ENCODINGS)}), or convert it."
        ) from None
    if whole:
        return text
    end = max(text.rfind("\n"), text.rfind("\r"))
    if end < 0:
        raise ValueError(f"{file.path} is not a CSV file: its first line does not end within {MOST_LINE:,} bytes.")
    return text[: end + 1]


def first_bytes(file: FoundFile, size: int) -> bytes:
    """Return the first bytes of a file, decompressed."""
    if file.compression is None:
        with file.path.open("rb") as plain:
            return plain.read(size)
    arrow: Any = load_extra("pyarrow")
    try:
        with arrow.OSFile(file.location) as raw, arrow.CompressedInputStream(raw, file.compression) as stream:
            return bytes(stream.read(size))
    except (arrow.ArrowException, OSError):
        raise ValueError(f"{file.path} is not a {file.compression} file, or is truncated.") from None


def _records(lines: list[str], delimiter: str) -> list[list[str]]:
    """Split the first lines into fields; the first record has the names."""
    records: list[list[str]] = []
    with contextlib.suppress(csv.Error):  # the engine reports fields of more than 128 KiB
        for record in csv.reader(lines, delimiter=delimiter):
            if record:
                records.append(record)
            if len(records) == _MOST_RECORDS:
                break
    return records or [[""]]


def _evenness(records: list[list[str]]) -> tuple[float, int]:
    """Return the share of records with as many fields as there are names, and the number of names."""
    n_names = len(records[0])
    even = sum(len(record) == n_names for record in records) / len(records)
    return (even if n_names > 1 else 0.0), n_names


# Layouts of CSV and JSON lines files, whose columns have no types of their own.

_LINES = "format = 'newline_delimited', records = true, map_inference_threshold = -1"
_SAMPLED_BYTES = 1 << 16


@dataclass(frozen=True)
class CsvOptions:
    """Options of CSV files that the files themselves do not state."""

    delimiter: str | None = None
    encoding: str = "utf-8"
    null: tuple[str, ...] = ()
    decimal: str = "."

    def dialect(self, head: Head) -> str:
        """Return the options as arguments of ``read_csv`` in SQL."""
        return (
            f"header = true, skip = {head.skipped}, delim = {literal(head.delimiter)}, quote = '\"', escape = '\"', "
            f"strict_mode = true, nullstr = {literals(('', *self.null))}, encoding = {literal(self.encoding)}, "
            f"decimal_separator = {literal(self.decimal)}"
        )


def csv_layouts(files: Sequence[FoundFile], connection: Any, options: CsvOptions) -> Iterator[Layout]:
    """Yield the layouts of CSV files, from their first lines; the engine, which ignores case, sees c0, c1, ..."""

    def inspect(file: FoundFile) -> Head:
        return read_head(file, delimiter=options.delimiter, encoding=options.encoding)

    def layout(head: Head, same_files: tuple[FoundFile, ...]) -> Layout:
        dialect, names = options.dialect(head), numbers(len(head.names))

        def source(types: Mapping[int, str | None]) -> str:
            columns = _struct((name, types.get(index) or "VARCHAR") for index, name in enumerate(names))
            return f"read_csv({paths_of(same_files)}, auto_detect = false, columns = {columns}, {dialect})"

        def sampled_types() -> tuple[str, ...]:
            sample = (
                f"read_csv({paths_of(same_files[:1])}, names = {literals(names)}, {dialect}, "
                f"sample_size = {SAMPLE}, auto_type_candidates = ['BIGINT', 'DOUBLE', 'VARCHAR'])"
            )
            return describe(connection, sample)[1]

        types = ("VARCHAR",) * len(names)
        return Layout(same_files, head.names, tuple(names), types, source, False, sampled_types)

    for head, same_files in runs(files, inspect):
        yield layout(head, same_files)


def json_layouts(files: Sequence[FoundFile], connection: Any) -> Iterator[Layout]:
    """Yield the layouts of JSON lines files, from their first objects."""

    def inspect(file: FoundFile) -> tuple[tuple[str, ...], tuple[str, ...]]:
        _check_keys(file)
        return describe(connection, f"read_json({paths_of([file])}, {_LINES}, sample_size = {SAMPLE})")

    def layout(names: tuple[str, ...], types: tuple[str, ...], same_files: tuple[FoundFile, ...]) -> Layout:
        def source(kinds: Mapping[int, str | None]) -> str:
            columns = _struct((names[index], kind or types[index]) for index, kind in kinds.items())
            return f"read_json({paths_of(same_files)}, {_LINES}, columns = {columns})"

        return Layout(same_files, names, names, types, source, typed=False)

    for (names, types), same_files in runs(files, inspect):
        yield layout(names, types, same_files)


def _check_keys(file: FoundFile) -> None:
    """Raise when the engine could not tell the keys of the first objects apart, or could not address one."""
    keys: set[str] = set()
    for number, line in enumerate(first_bytes(file, _SAMPLED_BYTES).splitlines(), start=1):
        record: Any = {}
        with contextlib.suppress(ValueError, RecursionError):  # the engine reports malformed lines
            record = json.loads(line)
        if not isinstance(record, dict):
            raise ValueError(f"{file.path}, line {number}: the line is not a JSON object.")  # noqa: TRY004
        keys.update(record)
    if len({key.casefold() for key in keys}) < len(keys):
        raise ValueError(f"{file.path} has names that differ only in case; rename one.")
    if "" in keys:
        raise ValueError(f"{file.path} has a column whose name is empty; rename it.")


def _struct(pairs: Iterable[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in pairs) + "}"


# Layouts of Excel workbooks: one sheet each, read into memory.


def excel_layouts(
    files: Sequence[FoundFile], connection: Any, sheet: str | None, max_expansion: float
) -> Iterator[Layout]:
    """Yield the layout of each workbook; the engine, which ignores the case of names, sees c0, c1, ..."""
    for number, file in enumerate(files):
        names, rows = _read_sheet(file, sheet, max_expansion)
        label = f"sheet_{number}"
        connection.register(label, rows)
        yield Layout((file,), names, *describe(connection, label), partial(_named, label))


def _named(label: str, _: Mapping[int, str | None]) -> str:
    """Return the SQL of something that reads only the columns that are selected."""
    return label


def _read_sheet(file: FoundFile, sheet: str | None, max_expansion: float) -> tuple[tuple[str, ...], Any]:
    """Return the names of the columns, and the rows as an Arrow table with columns c0, c1, ..."""
    excel, arrow = load_extra("fastexcel"), load_extra("pyarrow")
    _check_expansion(file, max_expansion)
    try:
        workbook = excel.read_excel(str(file.path))
    except excel.FastExcelError:
        raise ValueError(f"{file.path} is not an Excel workbook (.xlsx), or is damaged.") from None
    if sheet is not None and sheet not in workbook.sheet_names:
        raise ValueError(f"{file.path} has no sheet {sheet!r}; it has {', '.join(map(repr, workbook.sheet_names))}.")
    index: int | str = 0 if sheet is None else sheet
    try:
        header = workbook.load_sheet(index, header_row=None, n_rows=1, dtypes="string").to_arrow()
        rows = workbook.load_sheet(index, schema_sample_rows=None).to_arrow()
    except excel.FastExcelError:
        raise ValueError(f"{file.path}: the sheet has no rows, or cannot be read.") from None
    names = tuple((column[0].as_py() or "").strip() if len(column) else "" for column in header.columns)
    if len(names) != rows.num_columns or not any(names):
        raise ValueError(f"{file.path}: the first line of the sheet has no names of columns.")
    columns = [_without_blanks(column) for column in rows.columns]
    return names, arrow.table(columns, names=numbers(len(names)))


def _without_blanks(column: Any) -> Any:
    """Return a column with whole numbers as integers, and blank text as missing: a sheet knows only numbers."""
    arrow, compute = load_extra("pyarrow"), load_extra("pyarrow.compute")
    if arrow.types.is_floating(column.type):
        try:
            return compute.cast(column, arrow.int64())
        except arrow.ArrowInvalid:
            return column
    if not arrow.types.is_string(column.type):
        return column
    stripped = compute.utf8_trim_whitespace(column)
    return compute.if_else(compute.equal(stripped, ""), arrow.scalar(None, arrow.string()), stripped)


def _check_expansion(file: FoundFile, max_expansion: float) -> None:
    try:
        with zipfile.ZipFile(file.path) as archive:
            expanded = sum(part.file_size for part in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise ValueError(f"{file.path} is not an Excel workbook (.xlsx), or is damaged.") from None
    if expanded > max(engine.ALWAYS_ALLOWED, max_expansion * file.path.stat().st_size):
        raise ValueError(
            f"{file.path} would expand to {expanded / file.path.stat().st_size:,.0f} times its size; if it is as it "
            "should be, raise max_expansion=."
        )


# Layouts of Parquet and Feather files, which store the types of their columns.


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
        scan = f"read_parquet({paths_of(same_files)}, hive_partitioning = false)"
        yield Layout(same_files, tuple(schema.names), *describe(connection, scan), partial(_named, scan))


def _check_names(file: FoundFile, names: Sequence[str]) -> None:
    """Raise when a column has the name that the engine gives to one whose name is empty."""
    given = {f"c{index}" for index, name in enumerate(names) if not name}
    taken = next((name for name in names if name.casefold() in given), None)
    if taken is not None:
        raise ValueError(f"{file.path} has a column whose name is empty, which the engine confuses with {taken!r}.")


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

    def layout(label: str, schema: Any, same_files: tuple[FoundFile, ...]) -> Layout:
        streams: list[_Stream] = []

        def source(types: Mapping[int, str | None]) -> str:
            streams.append(_Stream(same_files, schema, list(types)))
            connection.register(f"{label}_{len(streams)}", streams[-1])
            return f"{label}_{len(streams)}"

        connection.register(label, _named_by_index(schema, range(len(schema))).empty_table())
        described = describe(connection, label)
        connection.unregister(label)
        return Layout(same_files, tuple(schema.names), *described, source, streams=streams)

    for number, (schema, same_files) in enumerate(runs(files, inspect)):
        yield layout(f"feather_{number}", schema, same_files)


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
