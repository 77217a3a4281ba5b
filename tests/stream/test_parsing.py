"""Parsing a batch as a whole and line by line agree; reasons for rejecting a line quote no value."""

import json
import os
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairtransport as ft
from fairtransport.stream.input._csv_parser import CsvParser
from fairtransport.stream.input._json_parser import JsonParser
from fairtransport.stream.input._line_source import MAX_LINE_BYTES, LineSource
from fairtransport.stream.input._schema import InputSchema, input_schema_for
from fairtransport.tabular import TableModel

from .worlds import cot, repair

CANARY = "CANARY"


class _Model:
    new_groups = "error"


def schema(groups=None, **options):
    groups = ft.make_groups({"sex": ["F", "M"]}) if groups is None else groups
    return InputSchema(_Model(), ("a", "b"), groups.columns, groups, lambda columns: columns, **options)


def slow(parser, lines):
    parser._arrow = None
    return parser.parse(lines)


def same(one, other):
    assert list(one.accepted) == list(other.accepted)
    assert one.rejected == other.rejected
    assert set(one.columns) == set(other.columns)
    for name, values in one.columns.items():
        assert (values == other.columns[name]).all()
    assert one.groups == other.groups


GOOD = [b'{"a": 1, "sex": "F", "b": 2.5}', b'{"sex":"M","b":-1e-300,"a":12345678901234567890,"id":[1,{"x":"}"}]} ']

BAD_JSON = {
    b"": "empty line",
    b"   ": "empty line",
    b"CANARY": "not JSON",
    b'{"a": 1': "not JSON",
    b'{"a":1,"b":2,"sex":"F"}{"a":1,"b":2,"sex":"F"}': "not JSON",
    b"[1, 2]": "not a JSON object",
    b'"CANARY"': "not a JSON object",
    b'{"a": 1, "sex": "F"}': "missing column 'b'",
    b'{"a": 1, "b": 2}': "missing column 'sex'",
    b'{"a": "CANARY", "b": 2, "sex": "F"}': "column 'a' is not a number",
    b'{"a": true, "b": 2, "sex": "F"}': "column 'a' is not a number",
    b'{"a": null, "b": 2, "sex": "F"}': "column 'a' is not a number",
    b'{"a": NaN, "b": 2, "sex": "F"}': "column 'a' is not a finite number",
    b'{"a": 1, "b": -Infinity, "sex": "F"}': "column 'b' is not a finite number",
    b'{"a": 1e400, "b": 2, "sex": "F"}': "column 'a' is not a finite number",
    b'{"a": 1, "b": 2, "sex": "CANARY"}': "unknown group in 'sex'",
    b'{"a": 1, "b": 2, "sex": null}': "unknown group in 'sex'",
    b'{"a": 1, "b": 2, "sex": ["F"]}': "no group in 'sex'",
    b'{"a": 1, "b": 2, "sex": 3}': "unknown group in 'sex'",
    b'{"a": 1, "b": 2, "sex": "F", "score": 1}': "already has a column 'score'; name another one with --column",
    b'{"a": 1, "b": 2, "sex": "\xff"}': "not UTF-8",
    b"[" * 100_000: "not JSON",
    b'{"a":1,"b":2,"sex":"F","x":"' + b"y" * MAX_LINE_BYTES + b'"}': f"longer than {MAX_LINE_BYTES} bytes",
}


@pytest.mark.parametrize(("line", "reason"), BAD_JSON.items(), ids=lambda value: str(value)[:40])
def test_bad_json_lines_are_rejected_and_the_others_are_used(line, reason):
    parsed = JsonParser(schema(), "score").parse([GOOD[0], line, GOOD[1]])
    assert parsed.rejected == [(1, reason)]
    assert list(parsed.accepted) == [0, 2]
    assert parsed.columns["a"].tolist() == [1.0, 12345678901234567890.0]
    assert parsed.groups.counts.tolist() == [1, 1]
    assert CANARY not in reason


def test_good_json_lines_are_parsed_as_a_whole(monkeypatch):
    parser = JsonParser(schema(), "score")
    monkeypatch.setattr(parser, "parse_lines", None)  # must not be called
    fast = parser.parse(GOOD)
    assert fast.columns["b"].tolist() == [2.5, -1e-300]
    same(fast, slow(JsonParser(schema(), "score"), GOOD))


FIELD = st.one_of(
    st.floats(allow_nan=True), st.integers(-(10**25), 10**25), st.text(max_size=3), st.booleans(), st.none(),
    st.sampled_from(["F", "M", "score"]),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.dictionaries(st.sampled_from(["a", "b", "sex", "id", "score"]), FIELD),
            st.fixed_dictionaries({"a": st.floats(-9, 9), "b": st.integers(-9, 9), "sex": st.sampled_from(["F", "M"])}),
        ),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_json_fast_equals_slow(rows, plain):
    lines = [json.dumps(row, ensure_ascii=plain).encode("utf-8", "surrogatepass") for row in rows]
    same(JsonParser(schema(), "score").parse(lines), slow(JsonParser(schema(), "score"), lines))


CELL = st.one_of(
    st.floats(allow_nan=True).map(repr),
    st.sampled_from(["F", "M", "", " 1", "1_0", "nan", '"1"', '"', "0x1", "1e5", "+1"]),
    st.text(alphabet='a1.,"-\u00e9 ', max_size=4),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(CELL, min_size=3, max_size=4).map(",".join), min_size=1, max_size=4))
def test_csv_fast_equals_slow(lines):
    encoded = [line.encode() for line in lines]
    header = b"a,b,sex"
    one, other = (CsvParser(schema(), "score", header) for _ in range(2))
    same(one.parse(encoded), slow(other, encoded))


BAD_CSV = {
    b"": "empty line",
    b"1,2": "has 2 fields; the header has 4",
    b"1,2,F,4,5": "has 5 fields; the header has 4",
    b"CANARY,2,F,x": "column 'a' is not a number",
    b"1_0,2,F,x": "column 'a' is not a number",
    b",2,F,x": "column 'a' is not a number",
    b"nan,2,F,x": "column 'a' is not a finite number",
    b"1,inf,F,x": "column 'b' is not a finite number",
    b"1,2,CANARY,x": "unknown group in 'sex'",
    b"1,2,,x": "unknown group in 'sex'",
    b'1,2,"F,x': "not a row of a CSV file",
    b"1,2,F,\xff": "not UTF-8",
}


@pytest.mark.parametrize(("line", "reason"), BAD_CSV.items(), ids=str)
def test_bad_csv_lines_are_rejected(line, reason):
    parser = CsvParser(schema(), "score", b"\xef\xbb\xbfa,b,sex,id")
    parsed = parser.parse([b"1,2,F,x", line, b'3,"4","M","a, b"'])
    assert parsed.rejected == [(1, reason)]
    assert parsed.columns["a"].tolist() == [1.0, 3.0]
    assert parser.unused == ("id",)


def test_a_quote_at_the_end_of_a_batch_must_be_closed():
    """Arrow closes it silently; whether a line is accepted would depend on its position in the batch."""
    lines = [b"1,2,F", b'1,2,"M']
    quick = CsvParser(schema(), "score", b"a,b,sex").parse(lines)
    same(quick, slow(CsvParser(schema(), "score", b"a,b,sex"), lines))
    assert list(quick.accepted) == [0]


def test_headers():
    with pytest.raises(ValueError, match=r"lacks 1 of 3 columns.*'b'"):
        CsvParser(schema(), "score", b"a,sex")
    with pytest.raises(ValueError, match="already has a column 'score'"):
        CsvParser(schema(), "score", b"a,b,sex,score")
    with pytest.raises(ValueError, match="twice"):
        CsvParser(schema(), "score", b"a,b,sex,a")
    swapped = CsvParser(schema(), "score", b"sex,b,a").parse([b"F,2,1"])
    assert (swapped.columns["a"][0], swapped.columns["b"][0]) == (1.0, 2.0)


@pytest.mark.parametrize("labels", [[0, 1], [True, False], [0.5, 2.0], [None, "F"]])
def test_labels_that_are_not_text_are_found_in_csv_and_json(labels):
    groups = ft.make_groups({"g": labels}, missing="group")
    texts = ["" if label is None else str(label) for label in labels]
    csv = CsvParser(schema(groups), "s", b"a,b,g").parse([f"1,2,{text}".encode() for text in texts])
    jsonl = JsonParser(schema(groups), "s").parse([json.dumps({"a": 1, "b": 2, "g": g}).encode() for g in labels])
    expected = groups.encode({"g": labels})
    assert csv.groups == jsonl.groups == expected
    assert csv.rejected == jsonl.rejected == []


def test_crossed_and_single_columns():
    table = {"race": ["B", "W", "W"], "sex": ["F", "F", "M"]}
    line = b'{"a":1,"b":2,"race":"B","sex":"M"}'
    crossed, each = (JsonParser(schema(ft.make_groups(table, grouping=how)), "s") for how in ("crossed", "each"))
    assert crossed.parse([line]).rejected == [(0, "unknown group in 'race', 'sex'")]
    assert each.parse([line]).rejected == []
    assert slow(each, [line]).groups == ft.make_groups(table, grouping="each").encode({"race": ["B"], "sex": ["M"]})


def test_scores_outside_the_range_are_rejected():
    parsed = JsonParser(schema(low=0.0, high=1.0), "s").parse(
        [b'{"a":0,"b":1.5,"sex":"F"}', b'{"a":0,"b":1,"sex":"F"}']
    )
    assert parsed.rejected == [(0, "column 'b' is outside the range of scores")]


def test_scored_lines_are_still_json_and_csv():
    parser = JsonParser(schema(), 'my "score"')
    assert json.loads(parser.append_score(GOOD[1], b"0.25"))['my "score"'] == 0.25
    assert CsvParser(schema(), "s", b"a;b;sex", ";").append_score(b"1;2;F", b"0.5") == b"1;2;F;0.5\n"


# ---------------------------------------------------------------- input schema


def test_input_schema_of_models():
    needed = input_schema_for(cot(), sensitive=["sex"], features=["x", "y", "z"])
    assert needed.columns == ("x", "y", "z", "sex")
    assert needed.to_features({"x": np.array([1.0]), "y": np.array([2.0]), "z": np.array([3.0])}).tolist() == [
        [1.0, 2.0, 3.0]
    ]
    with pytest.raises(ValueError, match="without column names"):
        input_schema_for(cot(), sensitive=["sex"])
    with pytest.raises(ValueError, match="names 2 columns; the model has 3"):
        input_schema_for(cot(), sensitive=["sex"], features=["x", "y"])
    with pytest.raises(ValueError, match="defined by 'sex', but --sensitive names 'race'"):
        input_schema_for(cot(), sensitive=["race"], features=["x", "y", "z"])
    with pytest.raises(ValueError, match="--score is for"):
        input_schema_for(cot(), sensitive=["sex"], score="s")
    with pytest.raises(ValueError, match="pass it as --score"):
        input_schema_for(repair(), sensitive=["sex"])
    needed = input_schema_for(repair(), sensitive=["sex"], score="s")
    assert (needed.numeric, needed.low, needed.high) == (("s",), 0.0, 1.0)


# ---------------------------------------------------------------- lines


def pipe(content):
    """Return a pipe to which a thread writes in small pieces."""
    reading, writing = os.pipe()

    def write():
        for begin in range(0, len(content), 7):
            os.write(writing, content[begin : begin + 7])
        os.close(writing)

    threading.Thread(target=write, daemon=True).start()
    return reading


@pytest.mark.parametrize("kind", ["file", "pipe"])
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize("stop_at", [1, 2, 3])
def test_lines_and_position(tmp_path, kind, end, stop_at):
    content = b"one\r\ntwo\n\nfour" + end
    path = tmp_path / "lines"
    path.write_bytes(content)

    def opened():
        return os.open(path, os.O_RDONLY) if kind == "file" else pipe(content)

    source = LineSource(opened())
    assert source.take(2) + source.take(9) == [b"one", b"two", b"", b"four"]
    assert (source.lines, source.position, source.ended) == (4, len(content), True)
    first = LineSource(opened())
    first.take(stop_at)
    again = LineSource(opened())
    again.skip(first.position, first.lines, first.head)
    assert again.take(9) == [b"one", b"two", b"", b"four"][stop_at:]
    assert again.position == len(content)


def test_another_input_is_refused(tmp_path):
    (tmp_path / "a").write_bytes(b"one\ntwo\n")
    (tmp_path / "b").write_bytes(b"eins\nzwei\n")
    first = LineSource(os.open(tmp_path / "a", os.O_RDONLY))
    first.take(1)
    with pytest.raises(ValueError, match="does not begin like"):
        LineSource(os.open(tmp_path / "b", os.O_RDONLY)).skip(first.position, first.lines, first.head)
    (tmp_path / "a").write_bytes(b"one\n")
    longer = 8, 2, first.head
    with pytest.raises(ValueError, match="fewer bytes"):
        LineSource(os.open(tmp_path / "a", os.O_RDONLY)).skip(*longer)
    with pytest.raises(ValueError, match="ends before line 2"):
        LineSource(pipe(b"one\n")).skip(*longer)


def test_a_file_that_ended_without_a_newline_and_grew(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo")
    first = LineSource(os.open(path, os.O_RDONLY))
    first.take(5)
    path.write_bytes(b"one\ntwo\nthree\n")
    again = LineSource(os.open(path, os.O_RDONLY))
    again.skip(first.position, first.lines, first.head)
    assert again.take(5) == [b"three"]


def test_a_line_that_is_too_long_does_not_fill_the_memory(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"a\n" + b"x" * (5 * MAX_LINE_BYTES) + b"\nb\n")
    source = LineSource(os.open(path, os.O_RDONLY))
    taken = source.take(3)
    assert [line[:1] for line in taken] == [b"a", b"x", b"b"]
    assert MAX_LINE_BYTES < len(taken[1]) < 2 * MAX_LINE_BYTES
    assert source.position == path.stat().st_size


def test_following_a_file_and_waiting(tmp_path):
    path, stop = tmp_path / "lines", threading.Event()
    path.write_bytes(b"one\ntw")
    source = LineSource(os.open(path, os.O_RDONLY), follow=True, stop=stop.is_set)
    assert source.take(2, wait=0.05) == [b"one"]  # the second is incomplete
    with path.open("ab") as file:
        file.write(b"o\nthree\n")
    assert source.take(2) == [b"two", b"three"]
    threading.Timer(0.2, stop.set).start()
    assert source.take(2) == []
    path.write_bytes(b"")
    stop.clear()
    with pytest.raises(ValueError, match="shorter"):
        source.take(1)


def test_a_stopped_pipe_returns_the_lines_it_has(tmp_path):
    stop = threading.Event()
    reading, writing = os.pipe()
    os.write(writing, b"one\ntwo\n")
    source = LineSource(reading, stop=stop.is_set)
    threading.Timer(0.3, stop.set).start()
    assert source.take(5) == [b"one", b"two"]
    os.close(writing)


# ---------------------------------------------------------------- models that bring their own preprocessing


class _Encoder:
    """Stands in for that of ``fairtransport train``: raw cells of any kind become numbers."""

    names = ("size", "age", "job")

    def transform(self, table):
        return np.column_stack([[len(str(cell)) for cell in table[name]] for name in self.names]).astype(float)


class _TableModel(TableModel):
    def __init__(self):
        self.encoder_, self.estimator_ = _Encoder(), cot()


def test_raw_columns_are_passed_to_the_encoder_without_conversion():
    needed = input_schema_for(_TableModel(), sensitive=["sex"])
    assert needed.model.coef_.shape == (1, 3)
    assert needed.columns == ("size", "age", "job", "sex")
    rows = [
        {"size": "10", "age": "2020-01-02", "job": "", "sex": " F"},
        {"size": "7", "age": "x", "job": "cook", "sex": "M"},
    ]
    lines = [json.dumps(row).encode() for row in rows]
    texts = [",".join(row.values()).encode() for row in rows]
    jsonl, csv = JsonParser(needed, "score"), CsvParser(needed, "score", b"size,age,job,sex")
    same(jsonl.parse(lines), csv.parse(texts))
    same(csv.parse(texts), slow(CsvParser(needed, "score", b"size,age,job,sex"), texts))
    assert needed.to_features(csv.parse(texts).columns).tolist() == [[2, 10, 0], [1, 1, 4]]
    bad = jsonl.parse([b'{"size":null,"age":1.5,"job":true,"sex":"F"}', b'{"size":[1],"age":1,"job":1,"sex":"F"}',
                       b'{"size":1,"age":1,"job":1,"sex":null}', b'{"size":1,"age":1,"sex":"F"}'])  # fmt: skip
    assert list(bad.accepted) == [0]
    reasons = [reason for _, reason in bad.rejected]
    assert reasons == ["column 'size' is not a single value", "unknown group in 'sex'", "missing column 'job'"]
