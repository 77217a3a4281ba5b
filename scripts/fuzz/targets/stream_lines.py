"""Lines of a stream, JSON and CSV: each line means what it means alone, whatever lines are around it."""

from __future__ import annotations

import functools

import numpy as np

from fairtransport import QuantileRepair
from fairtransport.stream.input import InputBatch, InputSchema, input_schema_for
from fairtransport.stream.input._batch_reader import CsvParser, JsonParser, Parser

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
        b"\1" + (objects[0] * 2 + "\n" + objects[0] + "\n" + objects[1].replace(",", ",\n")).encode(),
        b"\0" + "\n".join(rows).encode(),
        b"\0" + rows[0].encode(),
        b"\0" + f"{rows[0]}\r{rows[0]}\n{rows[0]}\n\n".encode(),
    ]


@functools.cache
def _parsers() -> tuple[InputSchema, CsvParser, JsonParser]:
    repair = QuantileRepair().fit(np.linspace(0, 1, 80), sensitive_features={"g": np.tile(["a", "b"], 40)})
    schema = input_schema_for(repair, sensitive=["g"], score="s")
    return schema, CsvParser(schema, "score", b"s,g"), JsonParser(schema, "score")


def case(data: bytes) -> None:
    """Parse the lines in the format that the first byte selects."""
    schema, *parsers = _parsers()
    parser: Parser = parsers[data[0] % 2 if data else 0]
    lines = data[1:].split(b"\n")

    def read(some: list[bytes]) -> InputBatch:
        return schema.read(parser.parse(some))

    batch = read(lines)
    if sorted(batch.accepted + [index for index, _ in batch.rejected]) != list(range(len(lines))):
        raise RuntimeError("A line is lost or counted twice.")
    if any("CANARY7" in reason for _, reason in batch.rejected):
        raise RuntimeError("A reason quotes a value.")
    for index, reason in batch.rejected:
        if read([lines[index]]).rejected != [(0, reason)]:
            raise RuntimeError("A rejected line differs from the line alone.")
    for row, index in enumerate(batch.accepted):
        alone = read([lines[index]])
        same = alone.X[0] == batch.X[row] and alone.sensitive_features["g"][0] == batch.sensitive_features["g"][row]
        if alone.accepted != [0] or not same:
            raise RuntimeError("A line differs from the line alone.")
        if parser.append_score(lines[index], b"0.5").count(b"\n") != 1:
            raise RuntimeError("A line became two.")
    if not batch.accepted:
        raise AllRejectedError("All lines are rejected.")
