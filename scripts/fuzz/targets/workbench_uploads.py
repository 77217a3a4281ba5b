"""Files that are uploaded to the workbench: any name, and any bytes; columns are described, guessed and warned of."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from unittest.mock import patch

import polars as pl

from fairtransport.app import worker
from fairtransport.app.projects import STEPS
from fairtransport.tables import file_extension
from fairtransport.tables.files._file_table import FileTable
from fairtransport.tables.files._formats import CsvOptions
from fairtransport.tables.files.paths import find_files

from .table_file import ENGINE, FOLDER
from .table_head import quotable as column_names

SHARE = 2
REFUSALS = (ValueError, TypeError, OSError)

_NAMES = ("a.csv", "../../a.jsonl", "x/.csv.gz", "a.PARQUET", "a\0b.feather", "a.xlsx", "a.txt")
_SETTINGS = {name: value for fields in STEPS.values() for name, value in fields.items()}


def seeds() -> list[bytes]:
    """Return a small table in each format, damaged ones, and a name that is no table's."""
    table = pl.DataFrame(
        {
            "id": [f"p{k}" for k in range(80)],
            "sex": ["F", "M"] * 40,
            "title": ["Ms", "CANARY7"] * 40,
            "score": [k / 80 for k in range(80)],
            "hired": ["yes", None, "no", "no"] * 20,
        }
    )
    written = []
    for write in (table.write_csv, table.write_ndjson, table.write_parquet, table.write_ipc):
        file = io.BytesIO()
        write(file)
        written.append(file.getvalue())
    (csv, lines, packed, framed), sheet = written, _sheet(table)
    odd = b"score,score,\xff,\nnan,1e999,CANARY7\n,,\n"
    return [b"\0" + csv, b"\0" + odd, b"\0", b"\1" + lines, b"\1" + lines[:99], b"\3" + packed, b"\3" + packed[:-9],
            b"\4" + framed, b"\5" + sheet, b"\5" + sheet[:-40], b"\6" + csv]  # fmt: skip


_SCHEMAS = "http://schemas.openxmlformats.org/"
_LINK = (
    f'<Relationships xmlns="{_SCHEMAS}package/2006/relationships"><Relationship Id="r1" Target="%s" '
    f'Type="{_SCHEMAS}officeDocument/2006/relationships/%s"/></Relationships>'
)
_BOOK = (
    f'<workbook xmlns="{_SCHEMAS}spreadsheetml/2006/main" xmlns:r="{_SCHEMAS}officeDocument/2006/relationships">'
    '<sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>'
)


def _sheet(table: pl.DataFrame) -> bytes:
    """Return the smallest Excel file that has the rows."""
    rows = [[f'<c t="inlineStr"><is><t>{c}</t></is></c>' for c in row] for row in (table.columns, *table.rows())]
    cells = "".join(f"<row>{''.join(row)}</row>" for row in rows)
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_SCHEMAS}package/2006/content-types"/>',
        "_rels/.rels": _LINK % ("xl/workbook.xml", "officeDocument"),
        "xl/workbook.xml": _BOOK,
        "xl/_rels/workbook.xml.rels": _LINK % ("s.xml", "worksheet"),
        "xl/s.xml": f'<worksheet xmlns="{_SCHEMAS}spreadsheetml/2006/main"><sheetData>{cells}</sheetData></worksheet>',
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as book:
        for name, text in parts.items():
            book.writestr(name, text)
    return file.getvalue()


def quotable(data: bytes) -> bytes:
    """Return the names of columns: the first line of a CSV file, or the keys of objects; any bytes of other formats."""
    kind = (data[0] if data else 0) % len(_NAMES)
    return column_names(bytes([kind]) + data[1:]) if kind < 2 else data


def case(data: bytes) -> None:
    """Copy the case as the name that the first byte selects would be, and do what the workbench does with it."""
    ending = file_extension(_NAMES[(data[0] if data else 0) % len(_NAMES)])
    if not ending:
        raise ValueError("The server refuses this name.")
    name = f"data{ending}"
    path = FOLDER / name
    if path.parent != FOLDER or not name.startswith("data"):
        raise RuntimeError("The copy is not in the folder of the project.")
    path.write_bytes(data[1:])

    def opened(paths: list[str]) -> FileTable:
        return FileTable(ENGINE, find_files([Path(one) for one in paths]), CsvOptions(), max_expansion=200.0)

    job = {"kind": "look", "path": str(path), "folder": str(FOLDER), "settings": _SETTINGS, "shipped": None}
    with patch.object(worker.ft.tables, "open_files", opened):
        found = worker.look(job, worker.Report([].append))
    json.dumps(found)  # as it is sent
    if not {found["guess"]["score"], *found["guess"]["sensitive"]} <= {"", *(one["name"] for one in found["columns"])}:
        raise RuntimeError("A guess that is no column.")
