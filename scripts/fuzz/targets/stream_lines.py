"""Lines of a stream, JSON and CSV: the quick reader and the one that goes line by line say the same."""

from __future__ import annotations

import functools

import numpy as np

from fairtransport import QuantileRepair
from fairtransport.stream.input._csv_parser import CsvParser
from fairtransport.stream.input._json_parser import JsonParser
from fairtransport.stream.input._schema import input_schema_for

SHARE = 2


class SetAsideError(ValueError):
    """All lines are bad."""


REFUSALS = (SetAsideError,)


def seeds() -> list[bytes]:
    """Return lines as people have them."""
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
    feeding = input_schema_for(repair, sensitive=["g"], score="s")
    return CsvParser(feeding, "score", b"s,g"), JsonParser(feeding, "score")


def case(data: bytes) -> None:
    """Let the first byte say which format."""
    parser = _parsers()[data[0] % 2 if data else 0]
    lines = data[1:].split(b"\n")
    quick, slow = parser.parse(lines), parser._one_by_one(lines)  # noqa: SLF001 - the two must agree
    if list(quick.good) != list(slow.good) or quick.bad != slow.bad:
        raise RuntimeError("The two readers differ.")
    if any("CANARY7" in reason for _, reason in quick.bad):
        raise RuntimeError("A reason tells a value.")
    for place in quick.good:
        if parser.add(lines[place], b"0.5").count(b"\n") != 1:
            raise RuntimeError("A line became two.")
    if quick.good and not np.array_equal(quick.columns["s"], slow.columns["s"]):
        raise RuntimeError("The two readers differ in a number.")
    if not quick.good:
        raise SetAsideError("All lines are bad.")
