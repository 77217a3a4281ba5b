"""Lines of a stream, JSON and CSV: parsing a batch as a whole and line by line agree."""

from __future__ import annotations

import functools

import numpy as np

from fairtransport import QuantileRepair
from fairtransport.stream.input._csv_parser import CsvParser
from fairtransport.stream.input._json_parser import JsonParser
from fairtransport.stream.input._schema import input_schema_for

SHARE = 2


class AllRejectedError(ValueError):
    """All lines are rejected."""


REFUSALS = (AllRejectedError,)


def seeds() -> list[bytes]:
    """Return typical lines, and damaged ones."""
    objects = ['{"s": 0.5, "g": "a"}', '{"g": "CANARY7", "s": 0.25}', '{"s": NaN, "g": "b"}', '{"s": "x"}', "[" * 60]
    rows = ["0.5,a", '"0.25","CANARY7"', "1e999,b", "nan,a", '0.5,"a', "0.5,a,b"]
    return [
        b"\1" + "\n".join(objects).encode(),
        b"\1" + objects[0].encode(),
        b"\1" + objects[3].encode(),
        b"\0" + "\n".join(rows).encode(),
        b"\0" + rows[0].encode(),
    ]


@functools.cache
def _parsers() -> tuple[CsvParser, JsonParser]:
    repair = QuantileRepair().fit(np.linspace(0, 1, 80), sensitive_features={"g": np.tile(["a", "b"], 40)})
    schema = input_schema_for(repair, sensitive=["g"], score="s")
    return CsvParser(schema, "score", b"s,g"), JsonParser(schema, "score")


def case(data: bytes) -> None:
    """Parse the lines in the format that the first byte selects."""
    parser = _parsers()[data[0] % 2 if data else 0]
    lines = data[1:].split(b"\n")
    fast, slow = parser.parse(lines), parser.parse_lines(lines)
    if list(fast.accepted) != list(slow.accepted) or fast.rejected != slow.rejected:
        raise RuntimeError("The two ways of parsing differ.")
    if any("CANARY7" in reason for _, reason in fast.rejected):
        raise RuntimeError("A reason quotes a value.")
    for index in fast.accepted:
        if parser.append_score(lines[index], b"0.5").count(b"\n") != 1:
            raise RuntimeError("A line became two.")
    if fast.accepted and not np.array_equal(fast.columns["s"], slow.columns["s"]):
        raise RuntimeError("The two ways of parsing differ in a number.")
    if not fast.accepted:
        raise AllRejectedError("All lines are rejected.")
