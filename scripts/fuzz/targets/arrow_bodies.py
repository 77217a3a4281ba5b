"""Arrow streams of every type as bodies of requests: numbers in messages and buffers overwritten, moved and cut."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache

import numpy as np
import pyarrow as pa

from fairtransport.serving.bodies import RequestError
from targets.request_bodies import read_checked, stream

SHARE = 2
REFUSALS = (RequestError,)

_EDIT = struct.Struct("<BHHq")  # kind of change, position, other position, number
_N_ROWS = 5
_WORDS = ["a", None, "CANARY7", "a text of more than twelve bytes", ""]
_NUMBERS = [1, None, 3, 0, 1]
_TIME = datetime(2026, 1, 31, tzinfo=UTC)


@cache
def _streams() -> list[bytes]:
    """Return streams with a column of each type, as the group or as the number."""
    words, numbers = pa.array(_WORDS), pa.array(_NUMBERS, pa.int8())
    texts = [words, words.cast(pa.large_string()), words.cast(pa.string_view())]
    dictionary = pa.array(["CANARY7", "a text of more than twelve bytes", "", "b"])
    encoded = [
        pa.DictionaryArray.from_arrays(numbers.cast(index), dictionary.cast(kind))
        for index in (pa.int8(), pa.uint32(), pa.int64())
        for kind in (pa.string(), pa.large_string(), pa.string_view())
    ]
    others = [
        *(numbers.cast(kind) for kind in (pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_())),
        pa.array([Decimal("1.5"), None] * 2 + [Decimal(0)], pa.decimal128(5, 2)),
        pa.array([0] * _N_ROWS, pa.time32("s")),
        pa.array([_TIME] * _N_ROWS, pa.timestamp("ns", "UTC")),
        pa.array([_TIME.date()] * _N_ROWS, pa.date64()),
        pa.array([b"1"] * _N_ROWS),
        pa.array([[1], None, []] + [[2]] * 2),
        pa.array([{"a": 1}] * _N_ROWS),
        pa.RunEndEncodedArray.from_arrays([2, _N_ROWS], ["a", "b"]),
        pa.nulls(_N_ROWS),
        numbers.dictionary_encode(),
    ]
    columns = [*texts, *encoded, *others]
    tables = [pa.table({"s": np.ones(_N_ROWS), "g": column}) for column in columns]
    tables += [pa.table({"s": column, "g": words, "h": column}) for column in columns]
    tables += [pa.concat_tables([table, table.slice(1)]) for table in tables[:6]]
    return [stream(table) for table in tables]


def seeds() -> list[bytes]:
    """Return every stream as it is, and with one number changed."""
    plain = [bytes([number]) for number in range(len(_streams()))]
    edits = [(kind, position, 3, number) for kind in range(7) for position in (5, 90) for number in (-1, 7, 1 << 30)]
    edited = (bytes([n % len(plain)]) + _EDIT.pack(*edit) for n, edit in enumerate(edits))
    found = b"\x1d\xff\xff*\x10\x00\x01\x00\xff\xff\x00?3\xf7"  # by this target: the view of a missing cell
    return [*plain, *edited, found]


def case(data: bytes) -> None:
    """Apply the edits to the stream that the first byte selects, and read it."""
    body = bytearray(_streams()[(data[0] if data else 0) % len(_streams())])
    for start in range(1, len(data) - _EDIT.size + 1, _EDIT.size):
        _change(body, *_EDIT.unpack_from(data, start))
    read_checked(bytes(body), "arrow")


def _change(body: bytearray, kind: int, position: int, other: int, number: int) -> None:
    """Overwrite a number of 1, 2, 4 or 8 bytes where one may begin; copy 16 bytes, repeat a part, or cut."""
    kind %= 7
    if kind < 4:
        size = 1 << kind
        at = position % max(len(body) // size, 1) * size
        body[at : at + size] = (number % (1 << 8 * size)).to_bytes(size, "little")
    elif kind == 4:
        at, source = position % max(len(body) // 8, 1) * 8, other % max(len(body) // 8, 1) * 8
        body[at : at + 16] = body[source : source + 16]
    elif kind == 5:
        at = position % max(len(body) // 8, 1) * 8
        body[at:at] = body[at : at + other % 512]
    else:
        at = position % (len(body) + 1)
        del body[at : at + other % 512]
