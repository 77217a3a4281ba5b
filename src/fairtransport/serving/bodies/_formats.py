"""Formats of bodies, by their media types."""

from __future__ import annotations

import csv
import io
import json
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.serving._errors import RequestError
from fairtransport.serving.bodies._arrow import read_arrow
from fairtransport.serving.bodies._columns import RequestRows, WantedColumns, columns_of_rows, missing_columns

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FORMATS", "read_rows"]

#: Media types, and the format that each means.
FORMATS = {
    "application/json": "json",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "text/csv": "csv",
    "application/vnd.apache.arrow.stream": "arrow",
}


def read_rows(body: bytes, file_format: str, wanted: WantedColumns, max_rows: int) -> RequestRows:
    """Return the rows of a body.

    Parameters
    ----------
    body : bytes
    file_format : {"json", "jsonl", "csv", "arrow"}
    wanted : WantedColumns
    max_rows : int
        Largest number of rows.

    Returns
    -------
    RequestRows

    Raises
    ------
    RequestError
        If the body does not have this format, has too many rows, or lacks a column.
    """
    if not body:
        raise RequestError(400, "The request has no body.")
    if file_format == "arrow":
        return read_arrow(body, wanted, max_rows)
    return _READERS[file_format](body, wanted, max_rows)


def _refuse_constant(_: str) -> None:
    raise ValueError("NaN and Infinity are not JSON")


_decode_json: Callable[[str], Any] = json.JSONDecoder(parse_constant=_refuse_constant).decode
_load_json: Callable[[bytes], Any]
if find_spec("orjson") is not None:
    _load_json = import_module("orjson").loads
else:

    def _load_json(body: bytes) -> Any:
        return _decode_json(body.decode())


def _read_json(body: bytes, wanted: WantedColumns, max_rows: int) -> RequestRows:
    try:
        rows = _load_json(body)
    except RecursionError:
        raise RequestError(400, "The JSON is nested too deeply; rows are objects of single values.") from None
    except ValueError:
        raise RequestError(
            400, "The body is not JSON. NaN and Infinity are none either; a missing value is null."
        ) from None
    if not isinstance(rows, list):
        raise RequestError(422, 'The JSON must be a list of rows: [{"column": value, ...}, ...].')
    _check_rows(len(rows), max_rows)
    return columns_of_rows(rows, wanted)


def _read_json_lines(body: bytes, wanted: WantedColumns, max_rows: int) -> RequestRows:
    lines = [line for line in body.splitlines() if line.strip()]
    _check_rows(len(lines), max_rows)
    rows: list[Any] = []
    rejected = {}
    for n, line in enumerate(lines):
        try:
            rows.append(_load_json(line))
        except (ValueError, RecursionError):
            rows.append(None)
            rejected[n] = "not JSON"
    return columns_of_rows(rows, wanted, rejected)


def _read_csv(body: bytes, wanted: WantedColumns, max_rows: int) -> RequestRows:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RequestError(400, "The CSV is not UTF-8.") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        rows = [row for row in reader if row]
    except csv.Error:
        raise RequestError(400, "The body is not CSV: a quote is not closed, or a field is too long.") from None
    _check_rows(len(rows), max_rows)
    repeated = sorted({name for name in header if header.count(name) > 1} & {*wanted.needed, *wanted.optional})
    if repeated:
        raise RequestError(400, f"The header of the CSV has a column twice: {', '.join(map(repr, repeated))}.")
    positions = {name: index for index, name in enumerate(header)}
    absent = [name for name in wanted.needed if name not in positions]
    if absent:
        raise missing_columns(absent)
    reason = f"another number of fields than the header, which has {len(header)}"
    rejected = {n: reason for n, row in enumerate(rows) if len(row) != len(header)}
    kept = [row for row in rows if len(row) == len(header)] if rejected else rows
    columns = [*wanted.needed, *(name for name in wanted.optional if name in positions)]
    table = {name: np.array([row[positions[name]] for row in kept], dtype=object) for name in columns}
    return RequestRows(len(rows), table, rejected)


def _check_rows(n_rows: int, most: int) -> None:
    if n_rows > most:
        raise RequestError(413, f"The request has more than {most:,} rows; send them in several requests.")


_READERS: dict[str, Callable[[bytes, WantedColumns, int], RequestRows]] = {
    "json": _read_json,
    "jsonl": _read_json_lines,
    "csv": _read_csv,
}
