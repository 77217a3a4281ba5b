"""Files of tables, opened as one table that may be larger than memory."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from fairtransport._validation import check_choice, check_real
from fairtransport.tables.binary_files import feather_layouts, parquet_layouts
from fairtransport.tables.complaints import plain_error
from fairtransport.tables.delimited import ENCODINGS
from fairtransport.tables.engine import DEFAULT_MEMORY, Engine
from fairtransport.tables.extra import load_extra
from fairtransport.tables.layouts import kind_of, quoted
from fairtransport.tables.paths import find_files
from fairtransport.tables.reading import Columns, say_close
from fairtransport.tables.text_files import CsvOptions, csv_layouts, json_layouts
from fairtransport.tables.unpacking import MOST_EXPANSION, UnpackingGuard

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Self

    from fairtransport.tables.layouts import Layout
    from fairtransport.tables.paths import FoundFile

__all__ = ["Batches", "FileTable", "open_files"]

_BATCH = 1 << 17
T = TypeVar("T")


def open_files(
    names: Sequence[str | os.PathLike[str]],
    *,
    format: str | None = None,  # noqa: A002 - the word that users have for it
    delimiter: str | None = None,
    encoding: str = "utf-8",
    null: Sequence[str] = (),
    decimal: str = ".",
    max_expansion: float = MOST_EXPANSION,
    memory: str = DEFAULT_MEMORY,
    threads: int | None = None,
) -> FileTable:
    """Open files as one table; only their heads are read yet.

    Parameters
    ----------
    names : sequence of path
        CSV, Parquet, Feather (Arrow IPC) or JSON lines, all of one format; patterns such as ``scores/*.parquet``. CSV
        and JSON lines may be packed: ``.gz`` and ``.zst``.
    format : {"csv", "parquet", "feather", "jsonl"}, optional
        By the ends of the names when omitted.
    delimiter : str, optional
        Of CSV files; comma, semicolon, tab or bar are found when omitted.
    encoding : {"utf-8", "latin-1", "utf-16"}, default "utf-8"
        Of CSV files.
    null : sequence of str
        Texts of CSV files that mean a missing value, besides nothing at all.
    decimal : {".", ","}, default "."
        The sign before decimals in CSV files.
    max_expansion : float, default 200
        A packed file that unpacks to more than this many times its size, and to more than 1 GiB, is refused.
    memory : str, default "2GiB"
        What the engine may keep in memory; beyond that it uses a temporary folder.
    threads : int, optional
        Of the engine; one a core when omitted.

    Returns
    -------
    FileTable
        To be closed, or used in a ``with`` block.

    Raises
    ------
    OSError, ValueError
        The texts hold names of files and columns, numbers of lines and counts, never a value.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from fairtransport.tables import count_table
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "scores.csv"
    >>> _ = path.write_text("s;sex\\n0.25;F\\n0.5;M\\n")
    >>> with open_files([path]) as table:
    ...     print(table.names)
    ...     table.run(count_table, Columns.named(score="s", sensitive="sex")).histograms
    ('s', 'sex')
    GroupHistograms(2 rows in 2 groups at 16385 nodes)
    >>> folder.cleanup()
    """
    check_choice(encoding, tuple(ENCODINGS), name="encoding")
    check_choice(decimal, (".", ","), name="decimal")
    check_real(max_expansion, name="max_expansion", least=1.0)
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(f"delimiter must be one sign, and neither a quotation mark nor a line end; got {delimiter!r}.")
    files = find_files(names, format=format)
    engine = Engine(memory=memory, threads=threads)
    try:
        return FileTable(engine, files, CsvOptions(delimiter, encoding, tuple(null), decimal), max_expansion)
    except BaseException:
        engine.close()
        raise


class FileTable:
    """Files as one table; see `open_files`.

    Attributes
    ----------
    names : tuple of str
        Of the columns, as the first file has them.
    """

    def __init__(self, engine: Engine, files: list[FoundFile], csv: CsvOptions, max_expansion: float) -> None:
        self._engine, self._files, self._max_expansion = engine, files, max_expansion
        self._layouts: list[Layout] = []
        self._checked = False  # whether all files have been unpacked once
        make: dict[str, Callable[[], Iterator[Layout]]] = {
            "csv": lambda: csv_layouts(files, engine.connection, csv),
            "jsonl": lambda: json_layouts(files, engine.connection),
            "parquet": lambda: parquet_layouts(files, engine.connection),
            "feather": lambda: feather_layouts(files, engine.connection),
        }
        with self._plain_errors():
            self._layouts = list(make[files[0].format]())
        self.names = self._layouts[0].names

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files, and of the engine's temporary folder."""
        self._layouts.clear()
        self._engine.close()

    # ---------------------------------------------------------------------------------------------------- columns

    def split(self, value: str | Sequence[str]) -> list[str]:
        """Return names that were given as one text: ``"race,sex"`` is two, unless there is such a column."""
        given = [value] if isinstance(value, str) else list(value)
        names: list[str] = []
        for text in given:
            names += [text] if text in self.names else [part.strip() for part in text.split(",")]
        return names

    def check(self, columns: Columns) -> None:
        """Raise when a column is not there once, in every file, with the same kind of values."""
        for layout in self._layouts:
            counts = Counter(layout.names)
            for name in columns:
                if name not in counts:
                    raise ValueError(self._say_absent(name, layout))
                if counts[name] > 1:
                    raise ValueError(f"{layout.files[0].path} has {counts[name]} columns named {name!r}; rename them.")
        self._check_kinds(list(columns))
        if len({name.casefold() for name in columns}) < len(list(columns)):
            raise ValueError("Two of the columns that are named differ in capital letters only; rename one.")

    def check_all(self) -> None:
        """Raise when files differ in their columns, or two columns are named alike."""
        first = self._layouts[0]
        for layout in self._layouts:
            alike = [name for name, count in Counter(layout.names).items() if count > 1]
            if alike:
                raise ValueError(f"{layout.files[0].path} has several columns named {alike[0]!r}; rename them.")
            for name in sorted({*first.names} ^ {*layout.names}):
                with_it, without = (first, layout) if name in first.names else (layout, first)
                raise ValueError(f"{with_it.files[0].path} has a column {name!r}, and {without.files[0].path} has not.")
        self._check_kinds(first.names)

    def _check_kinds(self, names: Sequence[str]) -> None:
        first = self._layouts[0]
        for layout in self._layouts[1:]:
            for name in names:
                ours, theirs = (kind_of(one.types[one.names.index(name)]) for one in (first, layout))
                if first.typed and ours != theirs:
                    raise ValueError(
                        f"Column {name!r} holds {ours} in {first.files[0].path} and {theirs} in {layout.files[0].path}."
                    )

    def check_new(self, name: str) -> None:
        """Raise when a column has this name already."""
        taken = next((one for one in self.names if one.casefold() == name.casefold()), None)
        if taken is not None:
            raise ValueError(f"The table has a column {taken!r} already; name another with output=.")

    def kinds(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return what columns hold, in a word each."""
        first = self._layouts[0]
        return tuple(kind_of(first.types[first.names.index(name)]) for name in names)

    def read_label(self, columns: Columns, text: str) -> Any:
        """Return a label that was given as text, as the column of labels has it: a number, True or False, or text."""
        if columns.label is None:
            raise ValueError("A positive label needs a column of labels.")
        self.check(columns)
        with self._plain_errors():
            kind = kind_of(self._guess(columns.label))
        if kind == "numbers":
            try:
                number = float(text)
            except ValueError:
                raise ValueError(f"Column {columns.label!r} holds numbers, and pos_label is none.") from None
            return int(number) if number.is_integer() else number
        if kind == "BOOLEAN":
            if text.lower() not in {"true", "false"}:
                raise ValueError(f"Column {columns.label!r} holds true and false, and pos_label is neither.")
            return text.lower() == "true"
        return text

    def _guess(self, name: str) -> str:
        """Return the type of a column, by its first rows where the files do not say it."""
        first = self._layouts[0]
        return first.guess()[first.names.index(name)]

    def _say_absent(self, name: str, layout: Layout) -> str:
        told = f"{layout.files[0].path} has no column {name!r}"
        if any(_is_number(one) for one in layout.names):  # then it is a row, and rows are not shown
            return f"{told}; its first line holds numbers, and should hold the names of the columns."
        return f"{told}; {say_close(name, list(layout.names))}"

    # ------------------------------------------------------------------------------------------------------ reading

    def run(
        self,
        work: Callable[..., T],
        columns: Columns,
        *,
        title: str = "Reading",
        show: bool = False,
        as_text: bool = False,
        **options: Any,
    ) -> T:
        """Call ``work`` with a lazy table of these columns, and with their names.

        Parameters
        ----------
        work : callable
            Such as `fairtransport.tables.count_table` or `fairtransport.audit_table`: takes a table, and ``score``,
            ``sensitive``, ``label``, ``by`` and ``weight`` where they are named.
        columns : Columns
        title : str
            What the bar says.
        show : bool, default False
            Show a bar when it takes more than two seconds; for terminals.
        as_text : bool, default False
            Read the sensitive columns as text, whatever they hold.
        **options
            Further options of ``work``.

        Returns
        -------
        object
            What ``work`` returns.
        """
        self.check(columns)
        with self._plain_errors():
            query = self._query(columns, as_text=as_text)
            frame = self._engine.connection.sql(query)
            named = {name: value for name, value in vars(columns).items() if value}
            guard = None if self._checked else UnpackingGuard(self._files, self._max_expansion)
            result = self._engine.run(
                lambda: work(frame, **named, **options), title=title, show=show, guard=guard, share=self.share
            )
        self._checked = True
        return result

    def share(self) -> float:
        """Return how much of the files has been read, from 0 to 1, while they are read."""
        parts = [layout.share() for layout in self._layouts]
        return self._engine.progress() if None in parts else sum(part or 0.0 for part in parts) / len(parts)

    def batches(self, columns: Columns, *, as_text: bool = False, guess: bool = False) -> Batches:
        """Return all rows in their order, part by part, with all columns.

        Parameters
        ----------
        columns : Columns
            Those that are needed on their own; see `Batches`.
        as_text : bool, default False
            Give the sensitive columns as text, whatever they hold.
        guess : bool, default False
            Let the engine guess what the other columns of CSV files hold; they are text otherwise.

        Returns
        -------
        Batches
        """
        self.check(columns)
        self.check_all()
        with self._plain_errors():
            guard = None if self._checked else UnpackingGuard(self._files, self._max_expansion)
            reader = self._engine.connection.sql(self._query_all(columns, as_text, guess)).to_arrow_reader(_BATCH)
        return Batches(reader, self.names, list(columns), guard, self._plain_errors)

    def _query_all(self, columns: Columns, as_text: bool, guess: bool) -> str:
        """Return a query for all columns, called n0, n1 and so on, and then for those that are needed."""
        parts = []
        for layout in self._layouts:
            types: dict[int, str | None] = dict.fromkeys(range(len(layout.names)))
            if guess:
                types |= enumerate(layout.guess())
            types |= self._types(layout, columns)
            own = [quoted(layout.engine_names[layout.names.index(name)]) for name in self.names]
            chosen = [f"{name} AS n{place}" for place, name in enumerate(own)]
            for place, name in enumerate(columns):
                number = name in (columns.score, columns.weight)
                text = as_text and name in columns.sensitive
                column = own[self.names.index(name)]
                kind = "DOUBLE" if number else "VARCHAR" if text else None
                chosen.append(f"{column if kind is None else f'CAST({column} AS {kind})'} AS u{place}")
            parts.append(f"SELECT {', '.join(chosen)} FROM {layout.source(types)}")
        return "\nUNION ALL\n".join(parts)

    def _query(self, columns: Columns, *, as_text: bool) -> str:
        """Return a query for the columns, under their own names."""
        parts = []
        for layout in self._layouts:
            wanted = self._types(layout, columns)
            chosen = []
            for place in wanted:
                name = layout.names[place]
                column = quoted(layout.engine_names[place])
                if as_text and name in columns.sensitive:
                    column = f"CAST({column} AS VARCHAR)"
                chosen.append(f"{column} AS {quoted(name)}")
            parts.append(f"SELECT {', '.join(chosen)} FROM {layout.source(wanted)}")
        return "\nUNION ALL\n".join(parts)

    def _types(self, layout: Layout, columns: Columns) -> dict[int, str | None]:
        """Return the places of the columns, and as what each is read; None: as what it is."""
        wanted: dict[int, str | None] = {layout.names.index(name): None for name in columns}
        if layout.typed:
            return wanted
        for name in (*columns.sensitive, *columns.by):
            place = layout.names.index(name)
            if kind_of(layout.types[place]) in {"numbers", "text", "BOOLEAN", "JSON"}:
                wanted[place] = "VARCHAR"
        for name in filter(None, (columns.score, columns.weight)):
            place = layout.names.index(name)
            if layout.files[0].format == "csv" or kind_of(layout.types[place]) in {"numbers", "JSON"}:
                wanted[place] = "DOUBLE"
        if columns.label is not None:
            place = layout.names.index(columns.label)
            wanted[place] = self._guess(columns.label)
        return wanted

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        """Raise errors of the engine without what they quote."""
        arrow, duckdb = load_extra("pyarrow"), load_extra("duckdb")
        try:
            yield
        except (duckdb.Error, arrow.ArrowException) as error:
            raise plain_error(error, self._files, self._names_of) from None

    def _names_of(self, file: FoundFile) -> Sequence[str]:
        return next((layout.names for layout in self._layouts if file in layout.files), ())


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
                if self._guard is not None and self._guard.error is not None:
                    raise self._guard.error
                if batch is None:
                    return
                arrays = batch.columns
                rows = load_extra("pyarrow").RecordBatch.from_arrays(arrays[:size], schema=self.schema)
                yield rows, dict(zip(self._used, arrays[size:], strict=True))
        finally:
            if self._guard is not None:
                self._guard.stop()
            self._reader.close()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
