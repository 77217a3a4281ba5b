"""Several files as one table, which may be larger than memory."""

from __future__ import annotations

import errno
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import narwhals as nw

from fairtransport._extras import load_extra
from fairtransport._validation import check_choice, check_real
from fairtransport.tables._engines import NumberedTable, quoted
from fairtransport.tables.column_roles import suggest_names
from fairtransport.tables.files import _formats as formats
from fairtransport.tables.files.engine import DEFAULT_MEMORY, MOST_EXPANSION, DecompressionGuard, Engine
from fairtransport.tables.files.paths import FoundFile, find_files

if TYPE_CHECKING:
    from fairtransport.tables.column_roles import Columns
    from fairtransport.tables.files._formats import Layout

# Batches of the rows of files, in their order.


class Batches:
    """Iterable of batches of rows, in their order."""

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


# Errors of the engine about malformed files, without the values that they quote.

_CSV_LINE = re.compile(r"\A[\w ]+ Error: CSV Error on Line: (\d+)\n")
_CSV_COLUMN = re.compile(r'^Error when converting column "c(\d+)"\.', re.MULTILINE)
_JSON_LINE = re.compile(r"(?:at byte \d+ )?in line (\d+):")
_QUOTES = "a quotation mark is not closed, or characters follow the closing one."
_CSV_REASONS = {
    "Invalid unicode": "the file is not UTF-8; give its encoding=, or convert it.",
    "unterminated quote": _QUOTES,
    "quote should be followed": _QUOTES,
    "Maximum line size": f"the line is longer than {formats.MOST_LINE:,} bytes.",
}


def redacted_error(error: Exception, files: Sequence[FoundFile], names: Mapping[FoundFile, Sequence[str]]) -> Exception:
    """Return an error without quoted values, to raise in place of one of the engine."""
    text = str(error)
    duckdb: Any = load_extra("duckdb")
    if isinstance(error, (duckdb.OutOfMemoryException, MemoryError)) or "Out of Memory" in text[:60]:
        return OSError(errno.ENOMEM, "The engine needs more memory than its limit; raise memory=")
    if "No space left" in text or "max_temp_directory_size" in text:
        return OSError(errno.ENOSPC, "The disk for temporary files is full")
    line = _CSV_LINE.match(text)
    if line is not None:
        return _csv_error(text, int(line[1]), files, names)
    for opening in ("Malformed JSON", "JSON transform error"):
        for file in files:
            start = f'Invalid Input Error: {opening} in file "{file.location}", '
            match = _JSON_LINE.match(text[len(start) :]) if text.startswith(start) else None
            if match is not None:
                return _json_error(file, int(match[1]), malformed=opening == "Malformed JSON")
    return _other_error(text, files)


def _csv_error(
    text: str, line: int, files: Sequence[FoundFile], names_of: Mapping[FoundFile, Sequence[str]]
) -> ValueError:
    file = _last_named(text, files)
    where = f"line {line}" if file is None else f"{file.path}, line {line}"
    details = text[text.find("\nOriginal Line:") :]
    names = [] if file is None else names_of.get(file, ())
    column = _CSV_COLUMN.search(details)
    if column is not None:
        index = int(column[1])
        named = f"column {names[index]!r}" if index < len(names) else "a column"
        return ValueError(
            f"{where}: {named} contains something that is not a number. If it marks a missing value, give it with "
            "null=; if numbers have a decimal comma, use decimal=','; otherwise name another column."
        )
    if "Expected Number of Columns" in details and not any(words in details for words in _CSV_REASONS):
        expected = f"the {len(names)} fields" if names else "the number of fields"
        return ValueError(f"{where}: the row does not have {expected} that the first line has.")
    reasons = (reason for words, reason in _CSV_REASONS.items() if words in details)
    return ValueError(f"{where}: {next(reasons, 'the row could not be read.')}")


def _json_error(file: FoundFile, line: int, *, malformed: bool) -> ValueError:
    if not malformed:
        return ValueError(
            f"{file.path}, line {line}: a value does not have the type of its column, or a name occurs twice."
        )
    return ValueError(f"{file.path}, line {_malformed_line(file, line)}: the line is not a JSON object.")


def _malformed_line(file: FoundFile, line: int) -> int:
    """Return the line number; the engine counts malformed lines from 1 or from 2, depending on its version."""
    if file.compression is not None:
        return line
    with file.path.open("rb") as lines:
        before = next(islice(lines, line - 2, None), b"{}") if line > 1 else b"{}"
    try:
        json.loads(before)
    except (ValueError, RecursionError):
        return line - 1
    return line


def _other_error(text: str, files: Sequence[FoundFile]) -> ValueError:
    file = _last_named(text, files)
    named = f"One of the {len(files)} files" if file is None else str(file.path)
    if "invalid state" in text:
        return ValueError(f"{named} cannot be read as CSV: line ends or quotation marks are mixed.")
    return ValueError(
        f"{named} cannot be read: it is damaged, truncated, or not of the format that its extension says."
    )


def _last_named(text: str, files: Sequence[FoundFile]) -> FoundFile | None:
    """Return the file that the text names last: the engine names it after the values that it quotes."""
    if len(files) == 1:
        return files[0]
    positions = [(text.rfind(file.location), len(file.location), file) for file in files]
    position, _, file = max(positions, key=lambda entry: entry[:2])
    return file if position >= 0 else None


# Checks that files have the named columns, once each, with the same kinds of values.


def check_used(layouts: Sequence[Layout], columns: Iterable[str]) -> None:
    """Raise unless every file has each named column once, with the same kind of values."""
    for layout in layouts:
        counts = Counter(layout.names)
        for name in columns:
            if name not in counts:
                raise ValueError(_repeated_message(name, layout) or _absent_message(name, layout))
            if counts[name] > 1:
                raise ValueError(f"{layout.files[0].path} has {counts[name]} columns named {name!r}; rename them.")
    _check_kinds(layouts, list(columns))


def check_all(layouts: Sequence[Layout], columns: Columns | None) -> None:
    """Raise when files have different columns, two columns have the same name, or scores are not numbers."""
    first = layouts[0]
    for layout in layouts:
        repeated = [name for name, count in Counter(layout.names).items() if count > 1]
        if repeated:
            raise ValueError(f"{layout.files[0].path} has several columns named {_show(repeated[0])}; rename them.")
        for name in sorted({*first.names} ^ {*layout.names}):
            with_it, without = (first, layout) if name in first.names else (layout, first)
            raise ValueError(
                f"{with_it.files[0].path} has a column {_show(name)}, and {without.files[0].path} has not."
            )
    _check_kinds(layouts, first.names)
    for name in filter(None, (columns.score, columns.weight) if columns is not None else ()):
        kind = first.kind(name)
        if first.files[0].format != "csv" and kind not in {"numbers", "JSON"}:
            raise TypeError(f"Column {name!r} contains {kind}, not numbers. Cast it first, or name another column.")


def _check_kinds(layouts: Sequence[Layout], names: Sequence[str]) -> None:
    first = layouts[0]
    for layout in layouts[1:]:
        for name in names:
            kind, other = first.kind(name), layout.kind(name)
            if first.typed and kind != other:
                raise ValueError(
                    f"Column {_show(name)} contains {kind} in {first.files[0].path} and {other} in "
                    f"{layout.files[0].path}."
                )


def _repeated_message(name: str, layout: Layout) -> str | None:
    """Return how to choose one of several columns of the same name; None where there are none."""
    known = [other for other in layout.names if other.rpartition("#")[0] == name]
    if len(known) < 2:
        return None
    return (
        f"{layout.files[0].path} has {len(known)} columns named {name!r}; choose one by its position: "
        f"{' or '.join(map(repr, known))}."
    )


def _absent_message(name: str, layout: Layout) -> str:
    message = f"{layout.files[0].path} has no column {name!r}"
    if any(map(_is_number, layout.names)):  # a row of data, which must not be shown
        return f"{message}; its first line contains numbers, and should contain the names of the columns."
    if any(map(_has_lines, layout.names)):  # may contain rows of data
        return f"{message}; a name in its first line extends over several lines: perhaps a quote is not closed."
    hint = ""
    if not layout.typed and len(layout.names) == 1 and any(one in layout.names[0] for one in formats.DELIMITERS):
        hint = " Is the delimiter right (delimiter=)?"
    return f"{message}; {suggest_names(name, list(layout.names))}{hint}"


def _show(name: str) -> str:
    return "of several lines" if _has_lines(name) else repr(name)


def _has_lines(name: str) -> bool:
    return len(name.splitlines()) > 1


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# SQL queries for some columns of files, or for all; columns are numbered, since names may differ in case only.

_READ_AS_TEXT = frozenset({"numbers", "text", "BOOLEAN", "JSON"})  # kinds of groups in files without types
_NUMBERS = frozenset({"BIGINT", "INTEGER", "HUGEINT", "DOUBLE", "FLOAT"})


def query_used(layouts: Sequence[Layout], columns: Columns, *, as_text: bool, numeric_strata: bool = False) -> str:
    """Return a query for columns, as c0, c1, ...; with ``as_text``, groups are cast to text.

    With ``numeric_strata`` columns of strata that contain numbers are read as such, not as text.
    """
    parts = []
    for layout in layouts:
        chosen = []
        for number, name in enumerate(columns):
            column = quoted(layout.engine_names[layout.names.index(name)])
            if layout.files[0].format == "parquet" and layout.types[layout.names.index(name)] in {"DOUBLE", "FLOAT"}:
                # The engine decides comparisons, and whether a value is NaN, by statistics that leave NaN out.
                column = f"nullif({column}, 'nan'::DOUBLE)"
            if as_text and name in columns.sensitive_features:
                column = f"CAST({column} AS VARCHAR)"
            chosen.append(f"{column} AS c{number}")
        parts.append(_select(chosen, layout.source(_types(layouts, layout, columns, numeric_strata=numeric_strata))))
    return "\nUNION ALL\n".join(parts)


def query_all(layouts: Sequence[Layout], columns: Columns | None, *, as_text: bool, guess: bool) -> str:
    """Return a query for all columns, as n0, n1, ..., and then for the named columns, as u0, u1, ..."""
    names = layouts[0].names
    parts = []
    for layout in layouts:
        types: dict[int, str | None] = dict.fromkeys(range(len(layout.names)))
        if guess:
            types |= enumerate(layout.guess())
        if columns is not None:
            types |= _types(layouts, layout, columns)
        identifiers = {name: quoted(layout.engine_names[layout.names.index(name)]) for name in names}
        chosen = [f"{identifiers[name]} AS n{index}" for index, name in enumerate(names)]
        if columns is not None:
            casts = _cast(columns, identifiers, as_text=as_text)
            chosen += [f"{column} AS u{index}" for index, column in enumerate(casts)]
        parts.append(_select(chosen, layout.source(types)))
    return "\nUNION ALL\n".join(parts)


def query_some(layouts: Sequence[Layout], names: Sequence[str], *, raw: bool = False) -> str:
    """Return a query for some columns, as n0, n1, ..., with inferred types where files do not store them.

    With ``raw``, those columns are text.
    """
    parts = []
    for layout in layouts:
        indices = [layout.names.index(name) for name in names]
        known = raw or layout.typed
        types = {i: None if known else guessed_type(layouts, n) for i, n in zip(indices, names, strict=True)}
        chosen = [f"{quoted(layout.engine_names[index])} AS n{number}" for number, index in enumerate(indices)]
        parts.append(_select(chosen, layout.source(types)))
    return "\nUNION ALL\n".join(parts)


def _cast(columns: Columns, identifiers: Mapping[str, str], *, as_text: bool) -> Iterator[str]:
    for name in columns:
        if name in {columns.score, columns.weight}:
            yield f"CAST({identifiers[name]} AS DOUBLE)"
        elif as_text and name in columns.sensitive_features:
            yield f"CAST({identifiers[name]} AS VARCHAR)"
        else:
            yield identifiers[name]


def _select(chosen: Sequence[str], source: str) -> str:
    return f"SELECT {', '.join(chosen)} FROM {source}"  # noqa: S608 - names are quoted


def guessed_type(layouts: Sequence[Layout], name: str) -> str:
    """Return the type of a column in the first file, inferred where the file does not store it."""
    return layouts[0].guess()[layouts[0].names.index(name)]


def _types(
    layouts: Sequence[Layout], layout: Layout, columns: Columns, *, numeric_strata: bool = False
) -> dict[int, str | None]:
    """Return the indices of the columns, and the type that each is read as; None for its own type."""
    types: dict[int, str | None] = {layout.names.index(name): None for name in columns}
    if layout.typed:
        return types
    if columns.label is not None:
        types[layout.names.index(columns.label)] = guessed_type(layouts, columns.label)
    for name in (*columns.sensitive_features, *columns.strata):
        if layout.kind(name) in _READ_AS_TEXT:
            guess = guessed_type(layouts, name) if numeric_strata and name in columns.strata else "VARCHAR"
            types[layout.names.index(name)] = guess if guess in _NUMBERS else "VARCHAR"
    for name in filter(None, (columns.score, columns.weight)):
        if layout.files[0].format == "csv" or layout.kind(name) in {"numbers", "JSON"}:
            types[layout.names.index(name)] = "DOUBLE"
    return types


_BATCH = 1 << 17
T = TypeVar("T")


def check_open(table: object) -> None:
    """Raise unless files are open."""
    if not isinstance(table, FileTable):
        raise TypeError(f"table must be open files (fairtransport.tables.open_files); got {type(table).__name__}.")


def open_files(
    names: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    format: str | None = None,  # noqa: A002 - the common name
    delimiter: str | None = None,
    encoding: str = "utf-8",
    null: Sequence[str] = (),
    decimal: str = ".",
    max_expansion: float = MOST_EXPANSION,
    sheet: str | None = None,
    memory: str = DEFAULT_MEMORY,
    threads: int | None = None,
) -> FileTable:
    """Open a file, or several as one table; only their headers are read."""
    check_choice(encoding, tuple(formats.ENCODINGS), name="encoding")
    check_choice(decimal, (".", ","), name="decimal")
    check_real(max_expansion, name="max_expansion", least=1.0)
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(
            f"delimiter must be one character, and neither a quotation mark nor a line end; got {delimiter!r}."
        )
    files = find_files([names] if isinstance(names, str | os.PathLike) else names, format=format)
    engine = Engine(memory=memory, threads=threads)
    try:
        csv = formats.CsvOptions(delimiter, encoding, tuple(null), decimal)
        return FileTable(engine, files, csv, max_expansion, sheet)
    except BaseException:
        engine.close()
        raise


class FileTable:
    """Files as one table; see `open_files`."""

    def __init__(
        self,
        engine: Engine,
        files: list[FoundFile],
        csv: formats.CsvOptions,
        max_expansion: float,
        sheet: str | None = None,
    ) -> None:
        if sheet is not None and files[0].format != "excel":
            raise ValueError(f"sheet names a sheet of an Excel file, and {files[0].path} is none.")
        self._engine, self._files, self._max_expansion = engine, files, max_expansion
        self._layouts: list[Layout] = []
        self._checked = False  # whether all files have been decompressed once
        make: dict[str, Callable[[], Iterator[Layout]]] = {
            "csv": lambda: formats.csv_layouts(files, engine.connection, csv),
            "jsonl": lambda: formats.json_layouts(files, engine.connection),
            "parquet": lambda: formats.parquet_layouts(files, engine.connection),
            "feather": lambda: formats.feather_layouts(files, engine.connection),
            "excel": lambda: formats.excel_layouts(files, engine.connection, sheet, max_expansion),
        }
        with self._redacted_errors():
            self._layouts = [formats.with_unique_names(layout) for layout in make[files[0].format]()]
        self.names = self._layouts[0].names

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and remove the temporary folder of the engine."""
        self._layouts.clear()
        self._engine.close()

    @property
    def paths(self) -> list[Path]:
        """The files, in their order."""
        return [file.path for file in self._files]

    def split(self, value: str | Sequence[str]) -> list[str]:
        """Split names at commas: ``"race,sex"`` is two names, unless there is a column of that name."""
        texts = [value] if isinstance(value, str) else list(value)
        names: list[str] = []
        for text in texts:
            names += [text] if text in self.names else [part.strip() for part in text.split(",")]
        return names

    def check(self, columns: Iterable[str]) -> None:
        """Raise unless every file has each column once, with the same kind of values."""
        check_used(self._layouts, columns)

    def check_output(self, path: str | os.PathLike[str]) -> None:
        """Raise when a file to write is one of those that are read."""
        if any(Path(path).resolve() == one.resolve() for one in self.paths):
            raise ValueError(f"{path} is read, and cannot be written at once; name another file.")

    def check_new(self, name: str) -> None:
        """Raise when the table already has a column of this name, or when the name is empty."""
        if not name:
            raise ValueError("The new column needs a name: output= is empty.")
        taken = next((known for known in self.names if known.casefold() == name.casefold()), None)
        if taken is not None:
            raise ValueError(f"The table has a column {taken!r} already; name another with output=.")

    def kinds(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the kind of values of columns, as one word each."""
        return tuple(map(self._layouts[0].kind, names))

    def read_label(self, columns: Columns, text: str) -> Any:
        """Return a label as a value of the column of labels: a number, True or False, or text."""
        if columns.label is None:
            raise ValueError("A positive label requires a column of labels.")
        self.check(columns)
        with self._redacted_errors():
            kind = formats.kind_of(guessed_type(self._layouts, columns.label))
        if kind == "numbers":
            try:
                number = float(text)
            except ValueError:
                raise ValueError(f"Column {columns.label!r} contains numbers, and pos_label is not a number.") from None
            return int(number) if number.is_integer() else number
        if kind == "BOOLEAN":
            if text.lower() not in {"true", "false"}:
                raise ValueError(f"Column {columns.label!r} contains true and false, and pos_label is neither.")
            return text.lower() == "true"
        return text

    def run(
        self,
        work: Callable[..., T],
        columns: Columns,
        *,
        title: str = "Reading",
        show: bool = False,
        as_text: bool = False,
        meanwhile: Callable[[], object] | None = None,
        **options: Any,
    ) -> T:
        """Call ``work`` with a lazy table of these columns and with their names."""
        self.check(columns)
        with self._redacted_errors():
            cut = bool(options.get("cut_strata"))
            query = query_used(self._layouts, columns, as_text=as_text, numeric_strata=cut)
            frame = NumberedTable(nw.from_native(self._engine.connection.sql(query)), tuple(columns))
            named = {name: value for name, value in vars(columns).items() if value}
            guard = None if self._checked else DecompressionGuard(self._files, self._max_expansion)
            result = self._engine.run(
                lambda: work(frame, **named, **options),
                title=title,
                show=show,
                guard=guard,
                share=self.share,
                meanwhile=meanwhile,
            )
        self._checked = True
        return result

    def share(self) -> float:
        """Return the share of the files that has been read, from 0 to 1."""
        parts = [layout.share() for layout in self._layouts]
        return self._engine.progress() if None in parts else sum(part or 0.0 for part in parts) / len(parts)

    def batches(self, columns: Columns | None = None, *, as_text: bool = False, guess: bool = False) -> Batches:
        """Return all rows in their order, in batches, with all columns."""
        if columns is not None:
            self.check(columns)
        check_all(self._layouts, columns)
        with self._redacted_errors():
            query = query_all(self._layouts, columns, as_text=as_text, guess=guess)
            reader = self._engine.connection.sql(query).to_arrow_reader(_BATCH)
        guard = None if self._checked else DecompressionGuard(self._files, self._max_expansion)
        return Batches(
            reader, self.names, list(columns or ()), guard, lambda: self._redacted_errors(OSError, RuntimeError)
        )

    def scan(self, names: Sequence[str], *, raw: bool = False) -> Batches:
        """Return all rows in their order, in batches, with some of the columns; with ``raw``, those of CSV are text."""
        check_used(self._layouts, names)
        with self._redacted_errors():
            reader = self._engine.connection.sql(query_some(self._layouts, names, raw=raw)).to_arrow_reader(_BATCH)
        guard = None if self._checked else DecompressionGuard(self._files, self._max_expansion)
        return Batches(reader, names, (), guard, lambda: self._redacted_errors(OSError, RuntimeError))

    @contextmanager
    def _redacted_errors(self, *more: type[Exception]) -> Iterator[None]:
        """Raise errors of the engine without the values that they quote."""
        try:
            yield
        except (load_extra("duckdb").Error, load_extra("pyarrow").ArrowException, *more) as error:
            names = {file: layout.names for layout in self._layouts for file in layout.files}
            raise redacted_error(error, self._files, names) from None
