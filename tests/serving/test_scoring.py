"""Scores over HTTP are those of the model, in every format; what cannot be scored says why, and no value of a row."""

import asyncio
import csv
import io
import json
import logging
import threading
import time
from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fairtransport as ft
from fairtransport.serving import ServerSettings, create_app
from fairtransport.serving._models import ServedModel
from fairtransport.serving.bodies import in_worker, is_small
from fairtransport.tabular.cells import object_array

ARROW = "application/vnd.apache.arrow.stream"
KINDS = {"json": "application/json", "jsonl": "application/x-ndjson", "csv": "text/csv", "arrow": ARROW}


def arrow_body(frame, **options):
    table = frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame, preserve_index=False)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def body_of(rows, kind):
    if kind == "json":
        return json.dumps(rows).encode()
    if kind == "jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    frame = pd.DataFrame(rows)
    return frame.to_csv(index=False).encode() if kind == "csv" else arrow_body(frame)


def scores_in(response):
    kind = response.headers["content-type"].partition(";")[0]
    if kind == "application/json":
        return response.json()["scores"]
    if kind == "application/x-ndjson":
        return [json.loads(line).get("score") for line in response.text.splitlines()]
    if kind == "text/csv":
        return [float(row["score"]) if row["score"] else None for row in csv.DictReader(io.StringIO(response.text))]
    return pa.ipc.open_stream(response.content).read_all()["score"].to_pylist()


def ask(client, body, kind="application/json", **headers):
    return client.post("/score", content=body, headers={"Content-Type": kind, **headers})


@pytest.mark.parametrize("sent", KINDS)
@pytest.mark.parametrize("asked", KINDS)
def test_scores_are_the_models_in_every_format(client, files, rows, sent, asked):
    X, people = rows
    response = ask(client(), body_of(people, sent), KINDS[sent], Accept=KINDS[asked])
    assert response.status_code == 200, response.text
    expected = ft.load(files / "m.ft").predict_proba(X)[:, 1]
    np.testing.assert_allclose(scores_in(response), expected, rtol=1e-12)
    assert len(response.headers["X-Model-Version"]) == 12


@pytest.mark.parametrize("sent", KINDS)
@pytest.mark.parametrize("name", ["table.ft", "aware.ft"])
def test_raw_columns_and_groups(client, files, rows, sent, name):
    people = [{**row, "job": "cook"} for row in rows[1]]
    response = ask(client(name), body_of(people, sent), KINDS[sent])
    expected = ft.load(files / name).score_rows(pd.DataFrame(people)).scores
    np.testing.assert_allclose(scores_in(response), expected, rtol=1e-12)


def test_a_row_that_cannot_be_scored_has_a_reason_and_the_others_a_score(client, rows):
    good = rows[1][0]
    odd = [
        good,
        {name: value for name, value in good.items() if name != "age"},
        {**good, "age": None},
        {**good, "age": "CANARY"},
        {**good, "age": [1]},
        "CANARY",
        {**good, "age": 10**400},
        {**good, "more": {"deep": [[[1]]]}},
    ]
    content = ask(client(), json.dumps(odd).encode()).json()
    assert [score is None for score in content["scores"]] == [False, True, True, True, True, True, True, False]
    assert content["scores"][0] == content["scores"][-1]
    assert [one["row"] for one in content["rejected"]] == [1, 2, 3, 4, 5, 6]
    reasons = {one["row"]: one["reason"] for one in content["rejected"]}
    assert reasons[1] == "no column 'age'"
    assert reasons[2] == "column 'age' has no value"
    assert reasons[3] == "column 'age' is not a number"
    assert reasons[4] == "column 'age' is not a single value"
    assert "CANARY" not in str(reasons)


@pytest.mark.parametrize("adjusting", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_text_in_a_column_of_numbers_and_unseen_categories_are_told(client, rows, tmp_path, kind, adjusting):
    served = client("table.ft", **({"store": tmp_path / "store"} if adjusting else {}))
    people = [{**row, "age": str(row["age"]), "job": "cook"} for row in rows[1][:6]]
    people[1]["age"], people[2]["age"], people[3]["job"], people[4]["job"] = "CANARY", "1_000", "CANARY", "CANARY"
    response = ask(served, body_of(people, kind), KINDS[kind])
    content = response.json()
    reason = "column 'age' is not a number"
    assert content["rejected"] == [{"row": 1, "reason": reason}, {"row": 2, "reason": reason}]
    assert content["replaced"] == {"unseen category": {"job": 2}}
    assert json.loads(response.headers["X-Replaced-Cells"]) == {"unseen category": 2}
    metrics = served.get("/metrics").text
    assert 'fairtransport_replaced_cells_total{kind="unseen category"} 2.0' in metrics
    assert 'fairtransport_rejected_rows_total{reason="not a number"} 2.0' in metrics
    assert "CANARY" not in response.text + metrics


def test_many_rows_that_the_model_cannot_score_take_a_bounded_number_of_calls(client, rows, monkeypatch, capfd):
    real, calls = ft.TransportClassifier.predict_proba, []

    def fail(self, X, **options):
        calls.append(len(X))
        if (np.asarray(X) > 1e100).any():
            raise ValueError("CANARY")
        return real(self, X, **options)

    served = client(max_rows=5000)
    monkeypatch.setattr(ft.TransportClassifier, "predict_proba", fail)
    content = ask(served, json.dumps([{**rows[1][0], "age": 1e200}] * 2000 + [rows[1][0]]).encode()).json()
    assert all(score is None for score in content["scores"][:2000])
    assert len(calls) <= 300
    assert "CANARY" not in str(content)
    assert capfd.readouterr().err == ""


def test_unknown_groups_are_set_aside_or_pooled(client, rows):
    people = [{**rows[1][0], "sex": "D"}, rows[1][0]]
    content = ask(client("aware.ft"), json.dumps(people).encode()).json()
    assert content["rejected"] == [{"row": 0, "reason": "unknown group in 'sex'"}]
    assert None not in ask(client("aware.ft", unknown_group="pooled"), json.dumps(people).encode()).json()["scores"]


def test_large_bodies_are_scored_in_a_thread(client, files, rows):
    people = rows[1] * 100
    assert len(json.dumps(people)) > 2**16
    assert len(set(ask(client(), json.dumps(people).encode()).json()["scores"])) == len(rows[1])


DEEP = b"[" * 100_000 + b"]" * 100_000
BAD = {
    "empty": (b"", "application/json", 400, "no body"),
    "not JSON": (b"[{", "application/json", 400, "not JSON"),
    "NaN": (b'[{"hours": NaN}]', "application/json", 400, "NaN"),
    "deep": (DEEP, "application/json", 400, "nested too deeply"),
    "not UTF-8": (b'["\xff"]', "application/json", 400, "not JSON"),
    "no list": (b'{"hours": 1}', "application/json", 422, "list of rows"),
    "missing columns": (b'[{"age": 1}]', "application/json", 422, "no columns 'hours', 'grade'"),
    "CSV without a column": (b"hours,age\n1,2\n", "text/csv", 422, "no column 'grade'"),
    "CSV with an open quote": (b'hours,age,grade\n"1,2,3\n', "text/csv", 400, "not CSV"),
    "CSV with a column twice": (b"hours,age,grade,age\n1,2,3,4\n", "text/csv", 400, "'age'"),
    "CSV whose line ends were removed": (b"hours,age,grade1,2,3", "text/csv", 422, "no column 'grade'"),
    "CSV of one line": (b"hours,age,grade", "text/csv", 400, "curl keeps them with --data-binary"),
    "CSV header of many names": (b"n," * 120_000 + b"n\n", "text/csv", 400, "more than 10,000 columns"),
    "CSV in another encoding": ("hours,age,grade\né,1,2".encode("latin-1"), "text/csv", 400, "UTF-8"),
    "no Arrow": (b"nonsense", ARROW, 400, "not an Arrow"),
    "wrong type": (b"[]", "text/plain", 415, "application/json"),
    "no type": (b"[]", "", 415, "application/json"),
    "many rows": (b"[" + b",".join([b"1"] * 200) + b"]", "application/json", 413, "100 rows"),
    "many lines": (b"1\n" * 200, "application/x-ndjson", 413, "100 rows"),
    "large": (b"[" + b" " * 300_000 + b"]", "application/json", 413, "262,144 bytes"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_requests_are_refused_with_what_to_do(client, name):
    body, kind, status, text = BAD[name]
    response = ask(client(max_bytes=2**18, max_rows=100), body, kind)
    assert (response.status_code, text in response.json()["error"]) == (status, True), response.text


def test_other_refusals(client, rows):
    served = client(max_bytes=2**18, max_rows=100)
    body = json.dumps(rows[1]).encode()
    assert served.get("/score").status_code == 405
    assert served.get("/score").headers["Allow"] == "POST"
    assert ask(served, body, Accept="image/png").status_code == 406
    assert ask(served, body, **{"Content-Encoding": "gzip"}).status_code == 415
    assert ask(served, body, **{"Idempotency-Key": "x" * 201}).status_code == 400
    parts = iter([b"["] + [b" " * 100_000] * 5)  # without a length, in parts
    assert ask(served, parts).status_code == 413


def test_compressed_and_huge_arrow_streams_are_refused(client, rows):
    served, frame = client(max_rows=1000), pd.DataFrame(rows[1])
    for compression in ("zstd", "lz4"):
        response = ask(served, arrow_body(frame, compression=compression), ARROW)
        assert (response.status_code, "compression" in response.text) == (415, True)
    endless = pa.RecordBatch.from_arrays([pa.nulls(10**9)] * 3, names=["hours", "age", "grade"])  # takes no memory
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, endless.schema) as writer:
        writer.write_batch(endless)
    assert ask(served, sink.getvalue().to_pybytes(), ARROW).status_code == 413
    body = arrow_body(frame)
    for cut in range(0, len(body), 97):
        assert ask(served, body[:cut], ARROW).status_code in (200, 400)


N_ROWS = 50_000
ONE_TEXT = pa.array(["x" * 50_000])
VIEW = pa.array(["x" * 50_000], pa.string_view())
BOMBS = {
    "dictionary": pa.DictionaryArray.from_arrays(np.zeros(N_ROWS, dtype=np.int8), ONE_TEXT),
    "dictionary of large strings": pa.DictionaryArray.from_arrays(
        np.zeros(N_ROWS, dtype=np.int8), ONE_TEXT.cast(pa.large_string())
    ),
    "string view": pa.Array.from_buffers(
        pa.string_view(), N_ROWS, [None, pa.py_buffer(bytes(VIEW.buffers()[1])[:16] * N_ROWS), *VIEW.buffers()[2:]]
    ),
    "dictionary of string views": pa.DictionaryArray.from_arrays(np.zeros(N_ROWS, dtype=np.int8), VIEW),
}
BOMBS["dictionary that no row uses"] = pa.DictionaryArray.from_arrays(pa.nulls(N_ROWS, pa.int8()), BOMBS["string view"])


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_arrow_stream_of_large_texts_is_refused_before_it_is_decoded(client, name):
    served, before = client(), pa.total_allocated_bytes()
    column = {one: pa.array(np.ones(N_ROWS)) for one in ("hours", "age", "grade")} | {"sex": BOMBS[name]}
    body = arrow_body(pa.table(column))
    response = ask(served, body, ARROW)
    assert len(body) < 2**22
    assert (response.status_code, "several requests" in response.text) == (413, True)
    assert pa.default_memory_pool().max_memory() - before < 2**27  # 2.5 GB as texts


def forged_view(view):
    """Three text views, of which the last is missing."""
    views = np.array([[1, ord("F"), 0, 0]] * 2 + [view], np.int32)
    return pa.Array.from_buffers(pa.string_view(), 3, [pa.py_buffer(b"\x03"), pa.py_buffer(views)])


FORGED = {
    "offsets": pa.Array.from_buffers(
        pa.string(), 3, [None, pa.py_buffer(np.array([0, 2**30, 2**30, 3], np.int32)), pa.py_buffer(b"abc")]
    ),
    "indices": pa.DictionaryArray.from_arrays(pa.array(np.array([0, 7, 0], np.int8)), pa.array(["F"]), safe=False),
    "views of missing cells": forged_view([-65_535, 0, 0, 0]),
    "buffers of missing cells": forged_view([2**20, 0, 3, 2**20]),
}
FORGED["dictionary of views"] = pa.DictionaryArray.from_arrays(pa.array([0, 0, 0]), FORGED["views of missing cells"])


@pytest.mark.parametrize("name", FORGED)
def test_arrow_streams_that_point_outside_their_buffers_are_refused(client, rows, name):
    """Compiled code would read there, and end the process."""
    table = pa.table({**{one: [1.0] * 3 for one in ("hours", "age", "grade")}, "sex": FORGED[name]})
    response = ask(client(), arrow_body(table), ARROW)
    assert (response.status_code, "can be read" in response.text) == (400, True)


ARROW_TYPES = {
    "decimal": (pa.array([Decimal("1.5")]), 200),
    "large integer": (pa.array([2**63], pa.uint64()), 200),
    "half": (pa.array(np.ones(1, np.float16)), 200),
    "view": (pa.array(["1"], pa.string_view()), 200),
    "words": (pa.array(["1"]).dictionary_encode(), 200),
    "numbers": (pa.array([1]).dictionary_encode(), 200),
    "categories of polars": (
        pa.DictionaryArray.from_arrays(pa.array([0], pa.uint32()), pa.array(["1"], pa.string_view())),
        200,
    ),
    "date": (pa.array([date(2026, 1, 31)]), 200),
    "timestamp": (pa.array([datetime(2026, 1, 31)]), 200),  # noqa: DTZ001
    "time of day": (pa.array([1], pa.time64("us")), 422),
    "seconds of a day": (pa.array([1], pa.time32("s")), 422),
    "duration": (pa.array([timedelta(1)]), 422),
    "binary": (pa.array([b"1"]), 422),
    "list": (pa.array([[1.0]]), 422),
}


@pytest.mark.parametrize("adjusting", [False, True])
def test_each_type_of_arrow_is_a_cell_or_a_clear_refusal(client, rows, tmp_path, adjusting):
    served = client("table.ft", **({"store": tmp_path / "store"} if adjusting else {}))
    row = {**rows[1][0], "job": "cook"}
    for column in ("age", "job", "sex"):
        for name, (cells, status) in ARROW_TYPES.items():
            table = pa.table({one: cells if one == column else [value] for one, value in row.items()})
            response = ask(served, arrow_body(table), ARROW)
            assert response.status_code == status, (column, name, response.text)
            assert status == 200 or f"'{column}' is not number, text, boolean, date or timestamp" in response.text


def test_json_of_many_rows_is_decoded_row_by_row(client, rows):
    row, served = json.dumps(rows[1][0]), client(max_rows=10_000)
    body = (" [" + f"{row} ,\n{row}," * 3000 + row + "] ").encode()
    assert len(body) > 2**18
    assert len({*ask(served, body).json()["scores"]}) == 1
    for end in (b"]]", b",]", b"", b"] 1", b"}]"):
        assert ask(served, body.rstrip()[:-1] + end).status_code == 400
    wide = json.dumps([{**rows[1][0], "more": [0] * 200_000}]).encode()
    response = ask(served, wide)
    assert (response.status_code, "characters" in response.text) == (400, True)
    assert ask(served, b"[" + b"1," * 200_000 + b"1]").status_code == 413
    content = ask(served, b"\n".join([row.encode(), wide[1:-1]]), "application/x-ndjson").json()
    assert [score is None for score in content["scores"]] == [False, True]


def test_a_search_for_rows_runs_in_a_thread(client, rows, monkeypatch):
    real, threads = ft.TransportClassifier.predict_proba, []

    def fail(self, X, **options):
        if (np.asarray(X) > 1e100).any():
            threads.append(threading.current_thread().name)
            raise ValueError
        return real(self, X, **options)

    served = client()
    monkeypatch.setattr(ft.TransportClassifier, "predict_proba", fail)
    content = ask(served, json.dumps([*rows[1][:20], {**rows[1][0], "age": 1e200}]).encode()).json()
    assert [row for row, score in enumerate(content["scores"]) if score is None] == [20]
    assert len({*threads[1:]} - {threads[0]}) == 1
    assert "fairtransport_rows_total 21.0" in served.get("/metrics").text


def test_bodies_that_are_held_are_bounded_and_small_requests_are_answered(files, rows, monkeypatch):
    monkeypatch.setattr("fairtransport.serving.app._MAX_HELD", 1)
    app = create_app(ServerSettings(files / "m.ft", max_bytes=2**17))
    small = json.dumps(rows[1][:1]).encode()

    async def status(body, more=None):
        parts = iter([(body, more is not None), (b" ", False)])
        statuses = []

        async def receive():
            part, is_more = next(parts)
            if not is_more and more is not None:
                await more.wait()
            return {"type": "http.request", "body": part, "more_body": is_more}

        async def send(message):
            statuses.append(message.get("status"))

        headers = [(b"content-type", b"application/json")]
        await app({"type": "http", "method": "POST", "path": "/score", "headers": headers}, receive, send)
        return statuses[0]

    async def ask_all():
        more = asyncio.Event()
        slow = asyncio.create_task(status(small + b" " * 100_000, more))
        await asyncio.sleep(0)
        found = [await status(small + b" " * 60_000), await status(small)]
        more.set()
        return [*found, await slow, await status(small + b" " * 60_000)]

    assert asyncio.run(ask_all()) == [503, 200, 200, 200]


def test_answers_that_are_not_read_are_bounded_in_bytes(files, rows, monkeypatch):
    monkeypatch.setattr("fairtransport.serving.app._MAX_HELD", 1)
    app = create_app(ServerSettings(files / "m.ft", max_bytes=2**15))
    large, small = json.dumps([1] * 2000).encode(), json.dumps(rows[1][:1]).encode()  # an answer of 100 KB

    async def status(body, *, read=None):
        statuses = []

        async def receive():
            return {"type": "http.request", "body": body}

        async def send(message):
            statuses.append(message.get("status"))
            if read is not None:
                await read.wait()

        headers = [(b"content-type", b"application/json")]
        await app({"type": "http", "method": "POST", "path": "/score", "headers": headers}, receive, send)
        return statuses[0]

    async def ask_all():
        read = asyncio.Event()
        unread = asyncio.create_task(status(large, read=read))
        await asyncio.sleep(0.5)
        found = [await status(large), await status(small)]
        read.set()
        return [*found, await unread, await status(large)]

    assert asyncio.run(ask_all()) == [503, 200, 200, 200]


def test_no_value_is_logged_or_told(client, rows, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    served = client("table.ft")
    secret = [{**row, "age": "CANARY", "job": "CANARY", "sex": "CANARY"} for row in rows[1]]
    texts = [ask(served, body_of(secret, kind), KINDS[kind]).text for kind in KINDS]
    texts += [ask(served, b'[{"CANARY": 1}, "CANARY"', "application/json").text, served.get("/metrics").text]
    captured = capfd.readouterr()
    assert "CANARY" not in "".join([*texts, caplog.text, captured.out, captured.err])


def test_an_error_of_the_model_is_not_told(client, rows, caplog, monkeypatch):
    served = client()

    def fail(*_):
        raise RuntimeError("CANARY")

    monkeypatch.setattr("fairtransport.tabular.RowScorer.score_within", fail)
    response = ask(served, json.dumps(rows[1]).encode())
    assert response.status_code == 500
    assert "CANARY" not in response.text + caplog.text
    assert "RuntimeError" in caplog.text


def test_scoring_that_takes_too_long(client, rows, monkeypatch):
    served = client(timeout=0.2)
    monkeypatch.setattr("fairtransport.tabular.RowScorer.score_within", lambda *_: time.sleep(1.0))
    response = ask(served, json.dumps(rows[1] * 100).encode())
    assert (response.status_code, "0.2 seconds" in response.text) == (504, True)


def test_of_large_requests_one_is_read_at_a_time_and_smaller_ones_do_not_wait_for_it():
    at_once, most, read_small = [], [], threading.Event()

    def read_large():
        at_once.append(None)
        most.append(len(at_once))
        assert read_small.wait(60)
        at_once.pop()

    async def ask_all():
        large = [asyncio.ensure_future(in_worker(2**20, read_large)) for _ in range(4)]
        await asyncio.sleep(0.1)
        await asyncio.gather(*(in_worker(2**14, time.sleep, 0.01) for _ in range(4)))
        read_small.set()
        await asyncio.gather(*large)

    asyncio.run(ask_all())
    assert most == [1] * 4


def test_groups_are_those_of_the_model_however_they_are_spelled(files):
    model = ServedModel.load(ServerSettings(files / "m.ft"))
    spellings = [" F" + " " * number for number in range(700)] + ["M", "x" * 200, "unknown", "f"]
    for cells in ([*spellings[:3], "M", None], spellings, spellings[::-1], [1.0, True, "1", "F"]):
        columns = {"sex": object_array(cells)}
        expected = np.stack(model.scorer.encode_groups(columns).memberships, axis=1)
        np.testing.assert_array_equal(model.group_codes(columns), expected)
        np.testing.assert_array_equal(model.group_codes(columns), expected)
    assert len(model._memberships) <= 1000


def test_bodies_of_few_cells_are_scored_in_the_event_loop_and_others_in_a_thread(client, rows):
    few, many = json.dumps(rows[1] * 10).encode(), b"[" + b"1," * 5000 + b"1]"
    assert [is_small(body, "json") for body in (few[:30_000], many, b" " * 2**16)] == [True, False, False]
    assert [is_small(b"x" * 2**14, kind) for kind in ("csv", "arrow")] == [True, False]
    assert ask(client(), json.dumps(rows[1][:2]).encode() + b"\n" * 400_000).status_code == 200
