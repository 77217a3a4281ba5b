"""Whatever bytes come, each scored line has the score that it has alone, from the values that are in it."""

import csv
import functools
import json
import math
import os
import random
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairtransport as ft
from fairtransport.stream._scorers import scorer_for
from fairtransport.stream.input import BatchReader, LineSource, input_schema_for
from fairtransport.tabular import TableModel

from .worlds import cot, repair

FORMATS = ("csv", "jsonl")
MARK = b"\xef\xbb\xbf"


def read_batch(content, schema, file_format):
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        reader = BatchReader(LineSource(file.fileno()), schema, "score", file_format, ",")
        assert reader.open()
        return reader, reader.read(1000)


class World:
    """A model, and what a valid row of its input has."""

    def __init__(self, model, columns, sensitive, **options):
        self.schema = input_schema_for(model, sensitive=sensitive, **options)
        self.scorer = scorer_for(self.schema.scorer.model)
        self.columns = columns  # name -> values to draw from
        self.tokens = sorted({_token(value) for values in columns.values() for value in values})

    def row(self, chance):
        return {name: chance.choice(values) for name, values in self.columns.items()}

    def line(self, chance, file_format):
        row = self.row(chance)
        if file_format == "jsonl":
            return json.dumps(row, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
        quoting = csv.QUOTE_ALL if chance.random() < 0.3 else csv.QUOTE_MINIMAL
        written = []
        file = type("File", (), {"write": lambda _, text: written.append(text)})()
        csv.writer(file, lineterminator="", quoting=quoting).writerow("" if v is None else v for v in row.values())
        return written[0].encode("utf-8", "replace")

    def read(self, content, file_format):
        """Return the batch of an input, its scores, and the lines that would be written."""
        beginning = MARK if content.startswith(MARK) else b""  # so that a mark of the first line is its own
        if file_format == "csv":
            beginning = ",".join(self.columns).encode() + b"\n"
        reader, batch = read_batch(beginning + content, self.schema, file_format)
        if batch is None:
            return None, np.empty(0), []
        if not batch.accepted:
            return batch, np.empty(0), []
        if self.schema.scorer.adopts_groups:  # scoring a new group changes the model; compare what it is given instead
            scores = batch.X.sum(axis=1)
        else:
            scores = self.scorer.score(batch.X, self.scorer.encode(batch.sensitive_features))
        return batch, scores, [line.removesuffix(b"\n") for line in reader.scored_lines(batch, scores)]


def group(batch, place):
    return [repr(column[place]) for column in batch.sensitive_features.values()]


def _token(value):
    return json.dumps(value).encode()


@functools.cache
def worlds():
    numbers = [0, 1, -1.5, 2e-300, 12345678901234567890, 3.25]
    rng = np.random.default_rng(0)
    table = {
        "size": rng.normal(5, 2, 400).round(1).astype(str),
        "age": np.array(["2020-01-02", "2021-05-06", "2019-11-30", ""])[rng.integers(4, size=400)],
        "job": np.array(["cook", "1", "true", "a b"])[rng.integers(4, size=400)],
        "sex": np.array(["F", "M"])[rng.integers(2, size=400)],
    }
    table["label"] = np.where(rng.random(400) < 0.5, "yes", "no")
    estimator = ft.TransportClassifier(parity_weight=0.3)
    raw = TableModel(estimator, label="label", sensitive_features=["sex"]).fit(table)
    scores = np.linspace(0, 1, 400)
    by_type = {"int": [0, 1, 7, 12], "bool": [True, False], "float": [0.5, 2.0], "missing": ["F", None]}
    found = {
        "numbers": World(
            cot(), {**dict.fromkeys("xyz", numbers), "sex": ["F", "M"]}, ["sex"], features=["x", "y", "z"]
        ),
        "adopted": World(
            cot(groups=ft.GroupPolicy(new="adopt")),
            {"x": numbers, "sex": ["F", "M", "A", 1, True, None], "y": numbers, "z": numbers, "id": [1, "a,b", '"']},
            ["sex"],
            features=["x", "y", "z"],
        ),
        "scores": World(repair(), {"s": [0, 0.25, 1, 1.5, -0.0], "sex": ["F", "M"]}, ["sex"], score="s"),
        "raw": World(
            raw,
            {
                "size": [1, True, "7.5", None, 10**309, 2.0, "x"],
                "age": ["2020-01-02", "", 5, None, "2020-01-02T03:04:05"],
                "job": ["cook", 1, True, 1.0, "a b", None, "1", "new", "\ud800"],
                "sex": ["F", " M", "f", None],
            },
            ["sex"],
        ),
    }
    for name, labels in by_type.items():
        groups = np.array(labels, dtype=object)[np.arange(400) % len(labels)]
        model = ft.QuantileRepair(groups=ft.GroupPolicy(missing="group")).fit(scores, sensitive_features={"g": groups})
        drawn = [*labels, 0, 1, 0.0, True, "0", "1", "true", "nan", None]
        found[name] = World(model, {"s": [0.5, 0.25, 1], "g": drawn}, ["g"], score="s")
    crossed = {"race": np.array(["B", "W"])[np.arange(400) % 2], "sex": np.array(["F", "M"])[np.arange(400) // 2 % 2]}
    model = ft.QuantileRepair().fit(scores, sensitive_features=crossed)
    found["crossed"] = World(
        model, {"race": ["B", "W", "X"], "s": [0.5, 0.25], "sex": ["F", "M"]}, ["race", "sex"], score="s"
    )
    return found


def check_each_line_alone(world, content, file_format):
    """Read the input as a whole and each line alone; return the number of scored lines."""
    batch, scores, written = world.read(content, file_format)
    lines = content.split(b"\n")[:-1]
    if batch is None:
        assert lines == []
        return 0
    first = 2 if file_format == "csv" else 1
    reasons = {number - first: reason for number, reason in batch.rejected}
    assert len(batch.lines) == len(lines)
    assert sorted([*batch.accepted, *reasons]) == list(range(len(lines)))  # each line once
    for place, index in enumerate(batch.accepted):
        alone, [score], [out] = world.read(lines[index] + b"\n", file_format)
        assert (alone.accepted, group(alone, 0)) == ([0], group(batch, place))
        # the rounding of a sum of products depends on the size of the matrix, in BLAS
        assert score == pytest.approx(scores[place], rel=1e-12, abs=1e-15)
        end = b":" if file_format == "jsonl" else b","
        assert written[place].rpartition(end)[0] == out.rpartition(end)[0]
        check_values(world, batch, place, lines[index], written[place], file_format)
    for index, reason in reasons.items():
        alone, _, _ = world.read(lines[index] + b"\n", file_format)
        assert alone.rejected == [(first, reason)]
    return len(batch.accepted)


def check_values(world, batch, place, line, written, file_format):
    """Compare with another reader of this one line: its numbers are in the batch, and its score is the last value."""
    if file_format == "csv":
        before, after = (next(csv.reader([text.removesuffix(b"\r").decode()])) for text in (line, written))
        values = dict(zip(world.columns, before, strict=True))
        assert after[:-1] == before
        assert math.isfinite(float(after[-1]))
    else:
        values, after = json.loads(line), json.loads(written)
        assert math.isfinite(after.pop("score"))
        assert json.dumps(after) == json.dumps(values)
    features = [column.name for column in world.schema.reader.columns if column.name not in world.schema.sensitive]
    for column, name in enumerate(features if isinstance(batch.X, np.ndarray) else ()):  # others are encoded
        assert float(values[name]) == batch.X[place, column]


PIECES = [
    b"\r", b"\r\n", b"\n", b"\0", b'"', b'""', b'",', b",", b"\\", b"{", b"}", b"}{", b"[", b"]", b"\xef\xbb\xbf",
    b"\xff", b"\xe2\x80\xa8", b"\xc2\x85", b"\x0b", b"\x0c", b"\x1c", b"1e999", b"-", b"_", b"NaN", b"1" * 310,
    b"[" * 1100,    b'"\\ud800"', b" ", b"\t", b'"sex":', b'"x":1,', b"0x1", b"'", b"#", b"//",
]  # fmt: skip


def mutated(world, chance, file_format):
    """Return valid lines, some damaged: overwritten, cut, doubled, joined, or with a hostile piece inside."""
    lines = [world.line(chance, file_format) for _ in range(chance.randint(1, 7))]
    content = bytearray(b"\n".join(lines) + (b"\n" if chance.random() < 0.9 else b""))
    for _ in range(chance.randint(0, 5)):
        at = chance.randrange(len(content) + 1)
        piece = chance.choice(
            [chance.choice(PIECES), chance.choice(world.tokens), chance.randbytes(chance.randint(1, 3))]
        )
        kind = chance.random()
        if kind < 0.1:
            end = content.find(b"\n", at)
            content[at : end + 1 if end >= 0 else None] = piece
        elif kind < 0.2:
            content[at:at] = bytes(content[max(0, at - 40) : at])
        else:
            content[at : at + chance.choice([0, 0, len(piece), 1])] = piece
    return bytes(content)


@pytest.mark.parametrize(("n_batches", "least"), [(12, 1), pytest.param(150, 50, marks=pytest.mark.trust)])
@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("name", worlds())
def test_each_line_has_the_score_that_it_has_alone(name, file_format, n_batches, least):
    world, chance = worlds()[name], random.Random(name + file_format * (n_batches > 12))  # noqa: S311
    contents = [mutated(world, chance, file_format) for _ in range(n_batches)]
    assert sum(check_each_line_alone(world, content, file_format) for content in contents) >= least


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["numbers", "raw"]), st.sampled_from(FORMATS), st.binary(max_size=60), st.data())
def test_any_bytes_beside_valid_lines(name, file_format, noise, data):
    world = worlds()[name]
    chance = random.Random(data.draw(st.integers(0, 1000)))  # noqa: S311
    valid = [world.line(chance, file_format) + b"\n" for _ in range(2)]
    check_each_line_alone(world, valid[0] + noise + b"\n" + valid[1] + noise, file_format)


def test_a_byte_order_mark_costs_no_row():
    schema = worlds()["numbers"].schema
    lines = b'{"x":1,"y":2,"z":3,"sex":"F"}\n' * 2
    reader, batch = read_batch(MARK + lines, schema, "jsonl")
    assert (batch.accepted, b"".join(reader.scored_lines(batch, np.zeros(2)))) == (
        [0, 1],
        lines.replace(b"}", b',"score":0.0}'),
    )
    _, batch = read_batch(MARK + MARK + lines, schema, "jsonl")
    assert batch.rejected == [(1, "not JSON")]
    reader, batch = read_batch(MARK + b"x,y,z,sex\n1,2,3,F\n", schema, "csv")
    assert (reader.parser.output_header, batch.accepted) == (b"x,y,z,sex,score\n", [0])
