"""Headers of CSV bodies: many, long, equal and quoted names; they cost little, and cells belong to their names."""

from __future__ import annotations

import csv
import io
import time

from fairtransport.serving.bodies import RequestError
from fairtransport.tabular.cells import WantedColumns
from targets.request_bodies import read_checked

SHARE = 2
REFUSALS = (RequestError,)

_MAX_SECONDS = 1.0  # of the processor, for one header; quadratic work would take longer
_MAX_SIZE = 150_000  # characters; one field may have 131,072
_PIECES = (
    *("s", "g", "h", "n", " ", ",", ",,", "n,", '"', '""', '"n",', "\r", "\n", "\r\n", "\0", "\ufeff", "\u2028", "ß,"),
    *("s,g", '"s"', "g,s", "x" * 1000, "1,", "a\n", ";", "\t", "'", "\\", "\x0b", "\x85", "s,g\n1,a\n", "CANARY7"),
)
_WANTED = (
    WantedColumns(("s", "g"), ("h",), frozenset({"s"})),
    WantedColumns(tuple(f"x{n}" for n in range(2000)), ("s", "g")),
)


def _build(data: bytes) -> str:
    """Return pieces of text, each repeated 1 to 2**19 times; other bytes as they are."""
    text, size = [], 0
    for code in range(0, len(data) - 1, 2):
        piece, power = data[code], data[code + 1]
        part = _PIECES[piece % len(_PIECES)] if piece < 128 else chr(piece)
        times = 1 << power % 20 if power >= 128 else 1
        part *= min(times, (_MAX_SIZE - size) // len(part))
        text.append(part)
        size += len(part)
    return "".join(text)


def _code(*pieces: str | tuple[str, int]) -> bytes:
    """Return the bytes that `_build` turns into pieces, some of them with a power of two."""
    pairs = [piece if isinstance(piece, tuple) else (piece, None) for piece in pieces]
    powers = [
        0 if power is None else next(code for code in range(128, 256) if code % 20 == power) for _, power in pairs
    ]
    return bytes(
        byte for (piece, _), power in zip(pairs, powers, strict=True) for byte in (_PIECES.index(piece), power)
    )


def seeds() -> list[bytes]:
    """Return headers with rows, with very many names, and damaged ones."""
    row = ("\n", "1,", "CANARY7", "\n")
    return [
        b"\0" + _code(*pieces)
        for pieces in (
            ("s,g", *row),
            ("g,s", *row),
            ("n,", "s,g", "\n", "1,", *row[1:]),
            (("n,", 12), "s,g", *row),
            (("n,", 19), "s,g", *row),
            (('"n",', 17), *row),
            ("s,g", (",", 18), *row),
            ('"', ("x" * 1000, 8), '"', ",", "s,g", *row),
            ('"s"', ",", "g", "\r\n", "1,", '"', "a\n", '""', '"'),
            ("\ufeff", "s,g", *row),
            ("s,g", ",", "s", *row),
            ("s,g", ("\n", 19)),
            (("\0", 18), "s,g", *row),
        )
    ] + [b"\1" + _code("s,g", *row)]


def case(data: bytes) -> None:
    """Read the text with few or many wanted columns, and compare each cell with the field below its name."""
    text, wanted = _build(data[1:]), _WANTED[data[0] % 2 if data else 0]
    body = text.encode()
    began = time.process_time()
    try:
        cells = read_checked(body, "csv", wanted)
    finally:
        if time.process_time() - began > _MAX_SECONDS:
            raise RuntimeError("A header takes the processor for long.")
    header, *rows = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    rows = [row for row in rows if row]
    for name, column in cells.columns.items():
        if [*column] != [rows[row][header.index(name)] for row in cells.kept]:
            raise RuntimeError("A cell is not the field below its name.")
