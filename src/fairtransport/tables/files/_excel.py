"""Layouts of Excel workbooks: one sheet each, read into memory."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairtransport._extras import load_extra
from fairtransport.tables.files._decompression_limit import ALWAYS_ALLOWED
from fairtransport.tables.files._layouts import Layout, describe

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fairtransport.tables.files.paths import FoundFile

__all__ = ["excel_layouts"]


@dataclass(frozen=True, eq=False)
class _Sheet(Layout):
    """A sheet in memory; the engine names columns c0, c1, ..., since it ignores the case of names."""

    rows: Any
    connection: Any
    label: str
    registered: list[str] = field(default_factory=list)

    def source(self, types: Mapping[int, str | None]) -> str:  # noqa: ARG002 - the engine reads only what is selected
        if not self.registered:
            self.connection.register(self.label, self.rows)
            self.registered.append(self.label)
        return self.label


def excel_layouts(
    files: Sequence[FoundFile], connection: Any, sheet: str | None, max_expansion: float
) -> Iterator[Layout]:
    """Yield the layout of each workbook.

    Parameters
    ----------
    files : sequence of FoundFile
    connection : duckdb.DuckDBPyConnection
    sheet : str or None
        Name of the sheet; the first one when None.
    max_expansion : float
        A workbook is a compressed archive; one that expands to more than this many times its size, and to more than
        1 GiB, is refused.
    """
    for number, file in enumerate(files):
        names, rows = _read_sheet(file, sheet, max_expansion)
        label = f"sheet_{number}"
        connection.register(label, rows.slice(0, 0))
        engine_names, types = describe(connection, label)
        connection.unregister(label)
        yield _Sheet((file,), names, engine_names, types, rows, connection, label)


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
    return names, arrow.table(columns, names=[f"c{position}" for position in range(len(names))])


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
    if expanded > max(ALWAYS_ALLOWED, max_expansion * file.path.stat().st_size):
        raise ValueError(
            f"{file.path} would expand to {expanded / file.path.stat().st_size:,.0f} times its size; if it is as it "
            "should be, raise max_expansion=."
        )
