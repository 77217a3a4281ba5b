"""Which lines are accepted, what they mean, and reasons for rejecting the others, which quote no value."""

import csv
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairtransport as ft
from fairtransport.stream.input._csv_parser import CsvParser
from fairtransport.stream.input._json_parser import JsonParser
from fairtransport.stream.input._line_source import MAX_LINE_BYTES
from fairtransport.stream.input._rows import convert_rows
from fairtransport.stream.input._schema import InputSchema, input_schema_for
from fairtransport.tabular import TableModel

from .worlds import cot, repair

CANARY = "CANARY"


class _Model:
    new_groups = "error"


def schema(groups=None, **options):
    groups = ft.make_groups({"sex": ["F", "M"]}) if groups is None else groups
    return InputSchema(_Model(), ("a", "b"), groups.columns, groups, lambda columns: columns, **options)


def converted(parser, lines):
    """Return the columns and the groups of lines that are all accepted."""
    rows, rejected = parser.parse(lines)
    assert rejected == []
    return convert_rows(parser.schema, rows)


GOOD = [b'{"a": 1, "sex": "F", "b": 2.5}', b'{"sex":"M","b":-1e-300,"a":12345678901234567890,"id":[1,{"x":"}"}]} ']

BAD_JSON = {
    b"": "empty line",
    b"   ": "empty line",
    b"CANARY": "not JSON",
    b'{"a": 1': "not JSON",
    b'{"a":1,"b":2,"sex":"F"}{"a":1,"b":2,"sex":"F"}': "not JSON",
    b'{"a":1,"b":2,"sex":"F"} {"a":1,"b":2,"sex":"F"}': "not JSON",
    b'{"a":1,"b":2,"sex":"F"}\r{"a":1,"b":2,"sex":"F"}': "a carriage return within the line",
    b'{"a":1,"b":2,\r"sex":"F"}': "a carriage return within the line",
    b'{"a":1,"b":2,"sex":"F"}\0': "a NUL character",
    b'\xef\xbb\xbf{"a":1,"b":2,"sex":"F"}': "not JSON",  # of the second line; that of the input is removed
    b"[1, 2]": "not a JSON object",
    b'"CANARY"': "not a JSON object",
    b'{"a": 1, "sex": "F"}': "missing column 'b'",
    b'{"a": 1, "b": 2}': "missing column 'sex'",
    b'{"a": 1, "a": 2, "b": 2, "sex": "F"}': "a key is repeated",
    b'{"a": "CANARY", "b": 2, "sex": "F"}': "column 'a' is not a number",
    b'{"a": true, "b": 2, "sex": "F"}': "column 'a' is not a number",
    b'{"a": null, "b": 2, "sex": "F"}': "column 'a' is not a number",
    b'{"a": NaN, "b": 2, "sex": "F"}': "column 'a' is not a finite number",
    b'{"a": 1, "b": -Infinity, "sex": "F"}': "column 'b' is not a finite number",
    b'{"a": Infinity, "b": -Infinity, "sex": "F"}': "column 'a' is not a finite number",
    b'{"a": 1e400, "b": 2, "sex": "F"}': "column 'a' is not a finite number",
    b'{"a": 1e999999999999, "b": 2, "sex": "F"}': "column 'a' is not a finite number",
    b'{"a": 1%s, "b": 2, "sex": "F"}' % (b"0" * 309): "column 'a' is not a finite number",
    b'{"a": 1%s, "b": 2, "sex": "F"}' % (b"0" * 5000): "not JSON",
    b'{"a": 1, "b": 2, "sex": "CANARY"}': "unknown group in 'sex'",
    b'{"a": 1, "b": 2, "sex": null}': "no group in 'sex'",
    b'{"a": 1, "b": 2, "sex": ["F"]}': "no group in 'sex'",
    b'{"a": 1, "b": 2, "sex": {"F": 1}}': "no group in 'sex'",
    b'{"a": 1, "b": 2, "sex": NaN}': "no group in 'sex'",
    b'{"a": 1, "b": 2, "sex": 3}': "unknown group in 'sex'",
    b'{"a": 1, "b": 2, "sex": "\\ud800"}': "column 'sex' is not valid Unicode",
    b'{"a": 1, "b": 2, "sex": "F", "score": 1}': "already has a column 'score'; name another one with --column",
    b'{"a": 1, "b": 2, "sex": "\xff"}': "not UTF-8",
    b"[" * 100_000: "not JSON",
    b'{"a":1,"b":2,"sex":"F","x":%s1%s}' % (b"[" * 100_000, b"]" * 100_000): "not JSON",
    b'{"a":1,"b":2,"sex":"F","x":"' + b"y" * MAX_LINE_BYTES + b'"}': f"longer than {MAX_LINE_BYTES} bytes",
}


@pytest.mark.parametrize(("line", "reason"), BAD_JSON.items(), ids=lambda value: str(value)[:40])
def test_bad_json_lines_are_rejected_and_the_others_are_used(line, reason):
    rows, rejected = JsonParser(schema(), "score").parse([GOOD[0], line, GOOD[1]])
    assert rejected == [(1, reason)]
    assert [row.line for row in rows] == [0, 2]
    columns, groups = convert_rows(schema(), rows)
    assert columns["a"].tolist() == [1.0, 12345678901234567890.0]
    assert groups.counts.tolist() == [1, 1]
    assert CANARY not in reason


BAD_CSV = {
    b"": "empty line",
    b"1,2": "has 2 fields; the header has 4",
    b"1,2,F,4,5": "has 5 fields; the header has 4",
    b"CANARY,2,F,x": "column 'a' is not a number",
    b"1_0,2,F,x": "column 'a' is not a number",
    b"0x1,2,F,x": "column 'a' is not a number",
    "\uff11,2,F,x".encode(): "column 'a' is not a number",
    b",2,F,x": "column 'a' is not a number",
    b"nan,2,F,x": "column 'a' is not a finite number",
    b"1,inf,F,x": "column 'b' is not a finite number",
    b"1,1e999,F,x": "column 'b' is not a finite number",
    b"1,2,CANARY,x": "unknown group in 'sex'",
    b"1,2,,x": "unknown group in 'sex'",
    b'1,2,"F,x': "a quote that is not closed in the line",
    b'1,2,F,"x""': "a quote that is not closed in the line",
    b'1,2,"F"F,x': "text after a closing quote",
    b'1,2,F,x"': "a quote in a field that is not quoted",
    b"1,2,F,x\r1,2,F,x": "a carriage return within the line",
    b"\r1,2,F,x": "a carriage return within the line",
    b'1,2,F,"x\ry"': "a carriage return within the line",
    b"1,2,F,\0": "a NUL character",
    b"1,2,F,\xff": "not UTF-8",
}


@pytest.mark.parametrize(("line", "reason"), BAD_CSV.items(), ids=str)
@pytest.mark.parametrize("neighbour", [b"1,2,F,x", b'1,2,"F","x"'])
def test_bad_csv_lines_are_rejected(line, reason, neighbour):
    parser = CsvParser(schema(), "score", b"a,b,sex,id")
    rows, rejected = parser.parse([neighbour, line, b'3,"4","M","a, b"'])
    assert rejected == [(1, reason)]
    assert convert_rows(schema(), rows)[0]["a"].tolist() == [1.0, 3.0]
    assert parser.unused == ("id",)


LONG = b"y" * (1 << 18)  # the csv module has a limit of 128 KiB


@pytest.mark.parametrize("line", [b"1,2,F," + LONG, b'1,2,F,"' + LONG + b'"', b"1, 2\t,F,x", b'"1",2,F,""', b"1,2,F,"])
@pytest.mark.parametrize("neighbour", [b"1,2,F,x", b'1,2,"F","x"', b""])
def test_valid_lines_are_accepted_beside_any_neighbour(line, neighbour):
    rows, _ = CsvParser(schema(), "score", b"a,b,sex,id").parse([neighbour, line, neighbour])
    assert ([1.0, 2.0], (0,)) in [(row.numbers, row.group) for row in rows if row.line == 1]


def test_a_row_with_a_newline_in_quotes_is_rejected_as_two_lines():
    parser = CsvParser(schema(), "score", b"note,a,b,sex")
    rows, rejected = parser.parse(b'"one\ntwo",1,2,F'.split(b"\n"))
    assert (rows, [index for index, _ in rejected]) == ([], [0, 1])


TEXT = st.text(alphabet='a1.,;"-\u00e9 ', max_size=5)


@settings(max_examples=150, deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=5))
def test_the_fields_of_a_row_are_those_that_the_csv_module_writes_and_reads(fields):
    written = []
    csv.writer(type("File", (), {"write": lambda _, text: written.append(text)})(), lineterminator="").writerow(fields)
    parser = CsvParser(schema(), "score", b"a,b,sex")
    assert parser._split(written[0]) == fields == next(csv.reader(written))


@settings(max_examples=150, deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=4).map(",".join).filter(bool))
def test_a_line_that_is_split_is_split_as_the_csv_module_splits_it(line):
    parser = CsvParser(schema(), "score", b"a,b,sex")
    try:
        fields = parser._split(line)
    except ValueError:
        return
    assert fields == next(csv.reader([line], strict=True))


def test_headers():
    with pytest.raises(ValueError, match=r"lacks 1 of 3 columns.*'b'"):
        CsvParser(schema(), "score", b"a,sex")
    with pytest.raises(ValueError, match="already has a column 'score'"):
        CsvParser(schema(), "score", b"a,b,sex,score")
    with pytest.raises(ValueError, match="twice"):
        CsvParser(schema(), "score", b"a,b,sex,a")
    for header in (b"", b"a,b,sex\r", b'a,b,"sex', b"a,b,sex\xff"):
        with pytest.raises(ValueError, match="not the header"):
            CsvParser(schema(), "score", header)
    with pytest.raises(ValueError, match="line break"):
        CsvParser(schema(), "a\nb", b"a,b,sex")
    for delimiter in ("", ",,", ".", "1", "e", '"', "\n"):
        with pytest.raises(ValueError, match="delimiter must be one character"):
            CsvParser(schema(), "score", b"a,b,sex", delimiter)
    swapped, _ = converted(CsvParser(schema(), "score", b"sex,b,a"), [b"F,2,1"])
    assert (swapped["a"][0], swapped["b"][0]) == (1.0, 2.0)


@pytest.mark.parametrize("labels", [[0, 1], [True, False], [0.5, 2.0], [None, "F"]])
def test_labels_that_are_not_text_are_found_in_csv_and_json(labels):
    groups = ft.make_groups({"g": labels}, missing="group")
    texts = ["" if label is None else str(label) for label in labels]
    of_csv = converted(CsvParser(schema(groups), "s", b"a,b,g"), [f"1,2,{text}".encode() for text in texts])[1]
    objects = [json.dumps({"a": 1, "b": 2, "g": label}).encode() for label in labels]
    assert of_csv == converted(JsonParser(schema(groups), "s"), objects)[1] == groups.encode({"g": labels})


def test_crossed_and_single_columns():
    table = {"race": ["B", "W", "W"], "sex": ["F", "F", "M"]}
    line = b'{"a":1,"b":2,"race":"B","sex":"M"}'
    crossed, each = (JsonParser(schema(ft.make_groups(table, grouping=how)), "s") for how in ("crossed", "each"))
    assert crossed.parse([line])[1] == [(0, "unknown group in 'race', 'sex'")]
    assert converted(each, [line])[1] == ft.make_groups(table, grouping="each").encode({"race": ["B"], "sex": ["M"]})


@pytest.mark.parametrize("policy", ["pool", "drop"])
@pytest.mark.parametrize("labels", [["a", "b", "c"], [1, 2, 3]])
def test_small_groups_are_those_of_the_library(policy, labels):
    groups = ft.make_groups({"g": labels[:1] * 40 + labels[1:2] * 40 + labels[2:]}).settle(policy)
    of_csv = converted(CsvParser(schema(groups), "s", b"a,b,g"), [f"1,2,{label}".encode() for label in labels])[1]
    objects = [json.dumps({"a": 1, "b": 2, "g": label}).encode() for label in labels]
    assert of_csv == converted(JsonParser(schema(groups), "s"), objects)[1] == groups.encode({"g": labels})
    named_like_the_pool = b'{"a":1,"b":2,"g":"(small groups)"}'
    assert JsonParser(schema(groups), "s").parse([named_like_the_pool])[1] == [(0, "unknown group in 'g'")]


def test_scores_outside_the_range_are_rejected():
    parser = JsonParser(schema(low=0.0, high=1.0), "s")
    _, rejected = parser.parse([b'{"a":0,"b":1.5,"sex":"F"}', b'{"a":0,"b":1,"sex":"F"}'])
    assert rejected == [(0, "column 'b' is outside the range of scores")]


def test_finite_numbers_whose_sum_is_infinite_are_accepted():
    columns, _ = converted(JsonParser(schema(), "s"), [b'{"a":1.7e308,"b":1.7e308,"sex":"F"}'])
    assert math.isfinite(columns["a"][0])


def test_scored_lines_are_still_json_and_csv():
    parser = JsonParser(schema(), 'my "score"')
    assert json.loads(parser.append_score(GOOD[1], b"0.25"))['my "score"'] == 0.25
    assert CsvParser(schema(), "s", b"a;b;sex", ";").append_score(b"1;2;F", b"0.5") == b"1;2;F;0.5\n"
    assert CsvParser(schema(), 'my "score", new', b"a,b,sex").score_field == b'"my ""score"", new"'


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
    jsonl, csv_parser = JsonParser(needed, "score"), CsvParser(needed, "score", b"size,age,job,sex")
    of_json = converted(jsonl, [json.dumps(row).encode() for row in rows])
    of_csv = converted(csv_parser, [",".join(row.values()).encode() for row in rows])
    assert of_json[0].tolist() == of_csv[0].tolist() == [[2, 10, 0], [1, 1, 4]]
    assert of_json[1] == of_csv[1]
    accepted, rejected = jsonl.parse(
        [
            b'{"size":null,"age":1.5,"job":true,"sex":"F"}',
            b'{"size":[1],"age":1,"job":1,"sex":"F"}',
            b'{"size":1,"age":1,"job":1,"sex":null}',
            b'{"size":1,"age":1,"sex":"F"}',
            b'{"size":1,"age":1,"job":"\\udfff","sex":"F"}',
        ]
    )
    assert [row.cells for row in accepted] == [[None, "1.5", True], ["1", "1", "1"]]  # no group is needed
    assert [reason for _, reason in rejected] == [
        "column 'size' is not a single value",
        "missing column 'job'",
        "column 'job' is not valid Unicode",
    ]
