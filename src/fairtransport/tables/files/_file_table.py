"""Several files as one table, which may be larger than memory."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import narwhals as nw

from fairtransport._extras import load_extra
from fairtransport._validation import check_choice, check_real
from fairtransport.tables._engines import NumberedTable
from fairtransport.tables.files._batches import Batches
from fairtransport.tables.files._csv_head import ENCODINGS
from fairtransport.tables.files._csv_json import CsvOptions, csv_layouts, json_layouts
from fairtransport.tables.files._decompression_limit import MOST_EXPANSION, DecompressionGuard
from fairtransport.tables.files._engine_errors import redacted_error
from fairtransport.tables.files._excel import excel_layouts
from fairtransport.tables.files._layouts import kind_of, with_unique_names
from fairtransport.tables.files._parquet_feather import feather_layouts, parquet_layouts
from fairtransport.tables.files._schema_check import check_all, check_used
from fairtransport.tables.files._sql_queries import guessed_type, query_all, query_used
from fairtransport.tables.files.engine import DEFAULT_MEMORY, Engine
from fairtransport.tables.files.paths import find_files

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import Self

    from fairtransport.tables.column_roles import Columns
    from fairtransport.tables.files._layouts import Layout
    from fairtransport.tables.files.paths import FoundFile

__all__ = ["FileTable", "open_files"]

_BATCH = 1 << 17
T = TypeVar("T")


def open_files(
    names: Sequence[str | os.PathLike[str]],
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
    r"""Open files as one table; only their headers are read.

    Parameters
    ----------
    names : sequence of path
        CSV, Parquet, Feather (Arrow IPC), JSON lines or Excel (``.xlsx``, requires the extra ``excel``), all of one
        format; patterns such as ``scores/*.parquet``. CSV and JSON lines may be compressed: ``.gz`` and ``.zst``.
    format : {"csv", "parquet", "feather", "jsonl", "excel"}, optional
        Inferred from the extensions when omitted.
    delimiter : str, optional
        Delimiter of CSV files; one of comma, semicolon, tab and vertical bar is inferred when omitted.
    encoding : {"utf-8", "latin-1", "utf-16"}, default "utf-8"
        Encoding of CSV files.
    null : sequence of str
        Texts of CSV files that mean a missing value, besides the empty text.
    decimal : {".", ","}, default "."
        Decimal separator of CSV files.
    max_expansion : float, default 200
        A compressed file that decompresses to more than this many times its size, and to more than 1 GiB, is refused.
    sheet : str, optional
        Name of the sheet of Excel files; the first one when omitted.
    memory : str, default "2GiB"
        Memory limit of the engine, which writes to a temporary folder beyond it.
    threads : int, optional
        Threads of the engine; one for each core when omitted.

    Returns
    -------
    FileTable
        To be closed, or used in a ``with`` block.

    Raises
    ------
    OSError, ValueError
        The messages contain names of files and columns, line numbers and counts, never a value.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from fairtransport.tables import Columns, count_table
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "scores.csv"
    >>> _ = path.write_text("s;sex\n0.25;F\n0.5;M\n")
    >>> with open_files([path]) as table:
    ...     print(table.names)
    ...     table.run(count_table, Columns.named(score="s", sensitive_features="sex")).histograms
    ('s', 'sex')
    GroupHistograms(2 rows in 2 groups at 16385 nodes)
    >>> folder.cleanup()
    """
    check_choice(encoding, tuple(ENCODINGS), name="encoding")
    check_choice(decimal, (".", ","), name="decimal")
    check_real(max_expansion, name="max_expansion", least=1.0)
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(
            f"delimiter must be one character, and neither a quotation mark nor a line end; got {delimiter!r}."
        )
    files = find_files(names, format=format)
    engine = Engine(memory=memory, threads=threads)
    try:
        csv = CsvOptions(delimiter, encoding, tuple(null), decimal)
        return FileTable(engine, files, csv, max_expansion, sheet)
    except BaseException:
        engine.close()
        raise


class FileTable:
    """Files as one table; see `open_files`.

    Attributes
    ----------
    names : tuple of str
        Names of the columns in the first file. Columns of the same name are distinguished by their positions, counted
        from 1: ``race#2`` and ``race#5``.
    """

    def __init__(
        self, engine: Engine, files: list[FoundFile], csv: CsvOptions, max_expansion: float, sheet: str | None = None
    ) -> None:
        if sheet is not None and files[0].format != "excel":
            raise ValueError(f"sheet names a sheet of an Excel file, and {files[0].path} is none.")
        self._engine, self._files, self._max_expansion = engine, files, max_expansion
        self._layouts: list[Layout] = []
        self._checked = False  # whether all files have been decompressed once
        make: dict[str, Callable[[], Iterator[Layout]]] = {
            "csv": lambda: csv_layouts(files, engine.connection, csv),
            "jsonl": lambda: json_layouts(files, engine.connection),
            "parquet": lambda: parquet_layouts(files, engine.connection),
            "feather": lambda: feather_layouts(files, engine.connection),
            "excel": lambda: excel_layouts(files, engine.connection, sheet, max_expansion),
        }
        with self._redacted_errors():
            self._layouts = [with_unique_names(layout) for layout in make[files[0].format]()]
        self.names = self._layouts[0].names

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and remove the temporary folder of the engine."""
        self._layouts.clear()
        self._engine.close()

    # ---------------------------------------------------------------------------------------------------- columns

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

    def check(self, columns: Columns) -> None:
        """Raise unless every file has each column once, with the same kind of values."""
        check_used(self._layouts, columns)

    def check_new(self, name: str) -> None:
        """Raise when the table already has a column of this name."""
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
            kind = kind_of(guessed_type(self._layouts, columns.label))
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

    # ------------------------------------------------------------------------------------------------------ reading

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
        """Call ``work`` with a lazy table of these columns and with their names.

        Parameters
        ----------
        work : callable
            Such as `fairtransport.tables.count_table` or `fairtransport.audit_table`: takes a table, which
            `fairtransport.tables.open_table` reads, and those of ``score``, ``sensitive_features``, ``label``,
            ``strata`` and ``weight`` that ``columns`` names.
        columns : Columns
        title : str
            Title of the progress bar.
        show : bool, default False
            Show a progress bar after two seconds.
        as_text : bool, default False
            Read the sensitive columns as text, whatever their types.
        meanwhile : callable, optional
            Called while the engine works, for example to import modules.
        **options
            Further options of ``work``.

        Returns
        -------
        object
            What ``work`` returns.
        """
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
        """Return all rows in their order, in batches, with all columns.

        Parameters
        ----------
        columns : Columns, optional
            Columns that are also returned separately; see `Batches`.
        as_text : bool, default False
            Return the sensitive columns as text, whatever their types.
        guess : bool, default False
            Let the engine infer the types of the other columns of CSV files; otherwise they are text.

        Returns
        -------
        Batches
        """
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

    @contextmanager
    def _redacted_errors(self, *more: type[Exception]) -> Iterator[None]:
        """Raise errors of the engine without the values that they quote."""
        try:
            yield
        except (load_extra("duckdb").Error, load_extra("pyarrow").ArrowException, *more) as error:
            raise redacted_error(error, self._files, self._names_of) from None

    def _names_of(self, file: FoundFile) -> Sequence[str]:
        return next((layout.names for layout in self._layouts if file in layout.files), ())
