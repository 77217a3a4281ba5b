"""Which lines are scored, what they mean, and reasons for rejecting the others, which quote no value."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import fairtransport as ft
from fairtransport.cli.app import app

from .worlds import cot, repair


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of two numbers that needs the group."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["F", "M"], 400)
    X = pd.DataFrame({"a": rng.normal(size=400) + (sex == "M"), "b": rng.normal(size=400)})
    fitted = ft.TransportClassifier(parity_weight=0.3, group_specific=True)
    fitted.fit(X, X["a"] > 0, sensitive_features={"sex": sex})
    return ft.save(fitted, tmp_path_factory.mktemp("model") / "m.ft")


def stream(folder, model, content, kind, *options):
    """Run the command; return the result, the lines it wrote and the rejected ones with their reasons."""
    rows, out = folder / f"rows.{kind}", folder / f"out.{kind}"
    rows.write_bytes(content)
    fixed = ["stream", rows, "--model", model, "--out", out, "--freeze", "--max-rejected", 1, "--force"]
    result = CliRunner().invoke(app, [*map(str, fixed), *options])
    aside = folder / f"out.{kind}.rejected.jsonl"
    rejected = [json.loads(line) for line in aside.read_text().splitlines()] if aside.exists() else []
    written = out.read_bytes().splitlines() if out.exists() else []
    return result, written, {entry["line"]: entry["reason"] for entry in rejected}


MAX_LINE_BYTES = 1 << 20
GOOD = [b'{"a": 1, "sex": "F", "b": 2.5}', b'{"sex":"M","b":-1e-300,"a":0.5,"id":[1,{"x":"}"}]} ']
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
    b'{"a": 1, "sex": "F"}': "no column 'b'",
    b'{"a": 1, "b": 2}': "no column 'sex'",
    b'{"a": 1, "a": 2, "b": 2, "sex": "F"}': "a key is repeated",
    b'{"a": "CANARY", "b": 2, "sex": "F"}': "column 'a' is not a number",
    b'{"a": "1_000", "b": 2, "sex": "F"}': "column 'a' is not a number",
    b'{"a": null, "b": 2, "sex": "F"}': "column 'a' has no value",
    b'{"a": NaN, "b": 2, "sex": "F"}': "column 'a' has no value",
    b'{"a": 1, "b": -Infinity, "sex": "F"}': "column 'b' has no value",
    b'{"a": 1e400, "b": 2, "sex": "F"}': "column 'a' has no value",
    b'{"a": 1%s, "b": 2, "sex": "F"}' % (b"0" * 309): "column 'a' has no value",
    b'{"a": 1%s, "b": 2, "sex": "F"}' % (b"0" * 5000): "not JSON",
    b'{"a": 1, "b": 2, "sex": "CANARY"}': "unknown group in 'sex'",
    b'{"a": 1, "b": 2, "sex": null}': "no group in 'sex'",
    b'{"a": 1, "b": 2, "sex": ["F"]}': "column 'sex' is not a single value",
    b'{"a": 1, "b": 2, "sex": 3}': "unknown group in 'sex'",
    b'{"a": 1, "b": 2, "sex": "\\ud800"}': "column 'sex' is not valid Unicode",
    b'{"a": 1, "b": 2, "sex": "F", "score": 1}': "already has a column 'score'; name another one with --column",
    b'{"a": 1, "b": 2, "sex": "\xff"}': "not UTF-8",
    b"[" * 100_000: "not JSON",
    b'{"a":1,"b":2,"sex":"F","x":%s1%s}' % (b"[" * 100_000, b"]" * 100_000): "not JSON",
    b'{"a":1,"b":2,"sex":"F","x":"' + b"y" * MAX_LINE_BYTES + b'"}': f"longer than {MAX_LINE_BYTES} bytes",
}
BAD_CSV = {
    b"": "empty line",
    b"1,2": "has 2 fields; the header has 4",
    b"1,2,F,4,5": "has 5 fields; the header has 4",
    b"CANARY,2,F,x": "column 'a' is not a number",
    b"1_0,2,F,x": "column 'a' is not a number",
    b"0x1,2,F,x": "column 'a' is not a number",
    "\uff11,2,F,x".encode(): "column 'a' is not a number",
    b",2,F,x": "column 'a' has no value",
    b"nan,2,F,x": "column 'a' has no value",
    b"1,1e999,F,x": "column 'b' has no value",
    b"1,2,CANARY,x": "unknown group in 'sex'",
    b"1,2,,x": "no group in 'sex'",
    b'1,2,"F,x': "a quote that is not closed in the line",
    b'1,2,F,"x""': "a quote that is not closed in the line",
    b'1,2,"F"F,x': "text after a closing quote",
    b'1,2,F,x"': "a quote in a field that is not quoted",
    b"1,2,F,x\r1,2,F,x": "a carriage return within the line",
    b"1,2,F,\0": "a NUL character",
    b"1,2,F,\xff": "not UTF-8",
}
LONG = b"y" * (1 << 18)  # the csv module has a limit of 128 KiB
GOOD_CSV = [b"1,2,F,x", b'3,"4","M","a, b"', b"1,2,F," + LONG, b'1,2,F,"' + LONG + b'"', b"1, 2\t,F,x", b'"1",2,F,""']


@pytest.mark.parametrize(
    ("kind", "good", "bad"), [("jsonl", GOOD, BAD_JSON), ("csv", GOOD_CSV, BAD_CSV)], ids=["jsonl", "csv"]
)
def test_bad_lines_are_rejected_and_the_others_are_scored(tmp_path, model, kind, good, bad):
    """Good lines stand around each bad one; every line of the input is written or rejected, once."""
    mixed = [line for each in bad for line in (good[0], each, good[-1])] + good
    head = [b"a,b,sex,id"] if kind == "csv" else []
    result, written, rejected = stream(tmp_path, model, b"\n".join([*head, *mixed]) + b"\n", kind)
    assert result.exit_code == 0, result.output
    assert rejected == {3 * index + 2 + len(head): reason for index, reason in enumerate(bad.values())}
    assert len(written) == len(head) + len(mixed) - len(bad)
    assert "CANARY" not in result.output + str(rejected)
    scores = [float(line.rpartition(b"," if head else b":")[2].rstrip(b"}")) for line in written[len(head) :]]
    assert len({*np.round(scores[:2], 12)}) == len({*np.round(scores[: 2 * len(bad)], 12)})
    assert all(0 < score < 1 for score in scores)


def test_a_row_with_a_newline_in_quotes_is_rejected_as_two_lines(tmp_path, model):
    _, _, rejected = stream(tmp_path, model, b'note,a,b,sex\n"one\ntwo",1,2,F\nx,1,2,F\n', "csv")
    assert [*rejected] == [2, 3]


@pytest.mark.parametrize(
    ("head", "options", "message"),
    [
        (b"a,sex", (), "lacks 1 of 3 columns"),
        (b"a,b,sex,score", (), "already has a column 'score'"),
        (b"a,b,sex,a", (), "twice"),
        (b'a,b,"sex', (), "not the header"),
        (b"a,b,sex\xff", (), "not the header"),
        (b"a,b,sex", ("--column", "a\nb"), "line break"),
        (b"a,b,sex", ("--delimiter", ",,"), "delimiter must be one character"),
        (b"a,b,sex", ("--delimiter", "1"), "delimiter must be one character"),
    ],
)
def test_headers_that_are_refused(tmp_path, model, head, options, message):
    result, _, _ = stream(tmp_path, model, head + b"\n1,2,F\n", "csv", *options)
    assert result.exit_code in (1, 64)
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize("labels", [[0, 1], [True, False], [0.5, 2.0], [None, "F"]])
def test_groups_that_are_not_text_are_found_in_csv_and_json(tmp_path, labels):
    scores, groups = np.linspace(0, 1, 80), np.array(labels * 40, dtype=object)
    fitted = ft.QuantileRepair(groups=ft.GroupPolicy(missing="group")).fit(scores, sensitive_features={"g": groups})
    path = ft.save(fitted, tmp_path / "m.ft", people_per_point=1)
    expected = fitted.transform(np.full(2, 0.3), sensitive_features={"g": groups[:2]})
    texts = ["" if label is None else str(label) for label in labels]
    for kind, content in {
        "csv": "s,g\n" + "".join(f"0.3,{text}\n" for text in texts),
        "jsonl": "".join(json.dumps({"s": 0.3, "g": label}) + "\n" for label in labels),
    }.items():
        result, written, _ = stream(tmp_path, path, content.encode(), kind, "--score", "s")
        assert result.exit_code == 0, result.output
        found = [float(line.rpartition(b":" if kind == "jsonl" else b",")[2].rstrip(b"}")) for line in written[-2:]]
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (cot, (), "without column names"),
        (cot, ("--features", "x,y"), "names 2 columns; the model has 3"),
        (cot, ("--features", "x,y,z", "--sensitive", "race"), "defined by 'sex', but --sensitive names 'race'"),
        (cot, ("--score", "s"), "--score is for"),
        (repair, (), "pass it as --score"),
    ],
)
def test_options_that_do_not_fit_the_model(tmp_path, make, options, message):
    path = ft.save(make(), tmp_path / "m.ft")
    result, _, _ = stream(tmp_path, path, b'{"x":1}\n', "jsonl", *options)
    assert result.exit_code in (1, 64)
    assert message in " ".join(result.stderr.split())
