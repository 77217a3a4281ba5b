"""``fairtransport stream``: lines in, scored lines out, once each; signals, bad lines, resumes."""

import json
import os
import signal
import socket
import subprocess
import sys
from types import ModuleType

import numpy as np
import polars as pl
import pytest
from tests.processes import until
from tests.worlds import people

import fairtransport as ft
from fairtransport.cli.stream import StreamReporter
from fairtransport.stream import StoreError, read_journal

CANARY = "CANARY"
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
ROWS = 230


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Model files: COT with names of columns."""
    folder = tmp_path_factory.mktemp("models")
    X, y, sex = people(2000, groups=("F", "M"), shift=(0.0, 1.0), coef=(1.0, 1.0), names="ab")
    cot = ft.TransportClassifier(parity_weight=0.5).fit(X, y, sensitive_features={"sex": sex})
    ft.save(cot, folder / "cot.ft")
    return folder


@pytest.fixture
def here(here):
    rng = np.random.default_rng(1)
    sex = rng.choice(["F", "M"], ROWS)
    table = pl.DataFrame({"id": np.arange(ROWS), "a": rng.normal(size=ROWS), "b": rng.normal(size=ROWS), "sex": sex})
    table.write_csv("rows.csv")
    table.select("sex", "b", "a", "id").write_ndjson("rows.jsonl")
    return here


@pytest.fixture
def stream(run, models, here):
    def call(*arguments):
        return run("stream", "--model", models / "cot.ft", "--sensitive", "sex", "--batch", 20, *arguments)

    return call


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def error(result, status=1):
    assert result.exit_code == status, result.output
    assert CANARY not in result.output
    return result.stderr.splitlines()[-1]


def test_each_line_once_in_order_with_the_score_of_the_library(stream, models, here):
    assert stream("rows.jsonl", "--out", "out.jsonl", "--store", "st").exit_code == 0
    found, given = read(here / "out.jsonl"), read(here / "rows.jsonl")
    assert [{name: row[name] for name in row if name != "score"} for row in found] == given
    adjuster = ft.stream.ContinualAdjuster(ft.load(models / "cot.ft"), checkpoint_every=None)
    table, expected = pl.DataFrame(given), []
    for begin in range(0, ROWS, 20):
        part = table[begin : begin + 20]
        report = adjuster.adjust(part.select("a", "b").to_pandas(), sensitive_features=part.select("sex"))
        expected += report.scores.tolist()
    # Rows of a data frame lie by columns, and those of a file do not: products may round the last digit otherwise.
    assert [row["score"] for row in found] == pytest.approx(expected, rel=1e-13)
    assert len(read_journal(here / "st")) == 12


def spoil(here):
    lines = (here / "rows.jsonl").read_text().splitlines()
    lines[3] = CANARY
    lines[30] = '{"a": 1, "sex": "F"}'
    lines[31] = json.dumps({"a": 1, "b": CANARY, "sex": "F"})
    lines[229] = '{"a": NaN, "b": 1, "sex": "F"}'
    (here / "bad.jsonl").write_text("\n".join(lines) + "\n")
    return [4, 31, 32, 230]


@pytest.mark.parametrize(("where", "place"), [("--store", "st/rejected.jsonl"), ("--out", "st.rejected.jsonl")])
def test_bad_lines_are_rejected_with_number_and_reason(stream, here, where, place):
    numbers = spoil(here)
    result = stream("bad.jsonl", where, "st")
    assert result.exit_code == 0, result.output
    aside = read(here / place)
    assert [entry["line"] for entry in aside] == numbers
    assert aside[1] == {"line": 31, "reason": "no column 'b'"}
    assert CANARY not in (here / place).read_text()
    assert "4 lines rejected" in result.stderr


def test_bad_lines_without_a_file_for_them_end_the_run(stream, here):
    spoil(here)
    assert "Line 4 cannot be scored: not JSON" in error(stream("bad.jsonl"))


def test_too_many_bad_lines_end_the_run_with_status_2(stream, here):
    spoil(here)
    result = stream("bad.jsonl", "--store", "st", "--max-rejected", "0.01")
    assert "3 of 100 lines were rejected, more than --max-rejected 0.01" in error(result, status=2)
    assert "st/rejected.jsonl" in error(result, status=2)
    assert len(read(here / "st" / "rejected.jsonl")) == 3


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv"])
@pytest.mark.parametrize("growing", [False, True])
def test_going_on_with_a_file_that_has_grown(stream, here, name, growing):
    out = f"out.{name.split('.')[1]}"
    stream(name, "--out", f"whole.{name.split('.')[1]}", "--store", "whole", "--checkpoint-every", 2)
    lines = (here / name).read_bytes().splitlines(keepends=True)
    part = here / f"part.{name.split('.')[1]}"
    part.write_bytes(b"".join(lines[: 100 + name.endswith("csv")]))
    first = stream(part.name, "--out", out, "--store", "st", "--checkpoint-every", 2, "--resume")
    assert first.exit_code == 0, first.output
    part.write_bytes(b"".join(lines))
    if growing:  # as after a kill: what was written after the last checkpoint stays and is completed
        written = (here / f"whole.{name.split('.')[1]}").read_bytes()
        with (here / out).open("ab") as file:
            file.write(written[file.tell() :][:99])
        with (here / "st" / "journal.jsonl").open("ab") as file:
            file.write((here / "whole/journal.jsonl").read_bytes()[file.tell() :][:40])
    again = stream(part.name, "--out", out, "--store", "st", "--checkpoint-every", 2, "--resume")
    assert again.exit_code == 0, again.output
    assert (here / out).read_bytes() == (here / f"whole.{name.split('.')[1]}").read_bytes()
    assert (here / "st/journal.jsonl").read_bytes() == (here / "whole/journal.jsonl").read_bytes()


def test_a_finished_run_that_is_started_again_changes_nothing(stream, here):
    arguments = ("rows.jsonl", "--out", "out.jsonl", "--store", "st", "--resume")
    stream(*arguments)
    changing = {"clock.json", "writer"}
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file() and path.name not in changing}
    assert stream(*arguments).exit_code == 0
    assert {path: path.read_bytes() for path in before} == before


def test_a_damaged_checkpoint_gives_a_warning(stream, here):
    stream("rows.jsonl", "--out", "out.jsonl", "--store", "st", "--resume", "--checkpoint-every", 3)
    whole = (here / "out.jsonl").read_bytes()
    newest = max((here / "st").glob("checkpoint-*.ft"))
    newest.write_bytes(newest.read_bytes()[:-5])
    result = stream("rows.jsonl", "--out", "out.jsonl", "--store", "st", "--resume", "--checkpoint-every", 3)
    assert result.exit_code == 0, result.output
    assert "warning: 1 checkpoint(s) of the store are damaged" in result.stderr
    assert (here / "out.jsonl").read_bytes() == whole


def test_what_does_not_fit_is_refused(stream, here):
    stream("rows.jsonl", "--out", "out.jsonl", "--store", "st")
    again = ("rows.jsonl", "--out", "out.jsonl", "--store", "st")
    assert "contains a stream already" in error(stream(*again))
    assert "another batch" in error(stream(*again, "--resume", "--batch", 30))
    assert "another column" in error(stream(*again, "--resume", "--column", "p"))
    (here / "short.jsonl").write_bytes((here / "rows.jsonl").read_bytes()[:5000])
    assert "fewer bytes" in error(stream("short.jsonl", *again[1:], "--resume"))
    (here / "out.jsonl").write_bytes(b"x")
    assert "were written" in error(stream(*again, "--resume"))
    assert "use --force" in error(stream("rows.jsonl", "--out", "out.jsonl"))
    assert stream("rows.jsonl", "--out", "out.jsonl", "--force").exit_code == 0
    assert "is an input" in error(stream("rows.jsonl", "--out", "rows.jsonl", "--force"))
    assert "same file name, x" in error(stream("rows.jsonl", "--out", "x", "--rejected", "x"))
    assert "--resume needs --store" in error(stream("rows.jsonl", "--resume"), status=64)
    assert "--follow needs a FILE" in error(stream("--follow"), status=64)
    assert "No such file" in error(stream("nowhere.jsonl"))


def test_foreign_lines_in_the_output_are_found_and_not_torn(stream, here):
    again = ("rows.jsonl", "--out", "out.jsonl", "--store", "st", "--resume")
    stream(*again)
    written = (here / "out.jsonl").read_bytes()
    for content, match in (
        (written + b'{"foreign": 1}\n', "out.jsonl has content that this run has not written"),
        (written[:-1] + b" ", "bytes of out.jsonl are not those that were written"),
        (written[:-9], "were written. Restore the file"),
    ):
        (here / "out.jsonl").write_bytes(content)
        assert match in error(stream(*again))
        assert (here / "out.jsonl").read_bytes() == content
    (here / "out.jsonl").write_bytes(written)
    assert stream(*again).exit_code == 0


TAMPERING = {
    "truncated": (lambda path: os.truncate(path, 100), "was truncated by another program"),
    "deleted": (lambda path: path.unlink(), "was deleted by another program. Its content was written again"),
    "extended": (lambda path: path.write_bytes(path.read_bytes() + b"x\n"), "was extended by another program"),
}


@pytest.mark.parametrize("name", TAMPERING)
@pytest.mark.parametrize("batch", [3, 12])
def test_an_output_that_is_changed_while_the_stream_runs_ends_it(stream, here, monkeypatch, name, batch):
    """Before the third batch, or after the last one: the run does not end as if nothing had happened."""
    change, match = TAMPERING[name]
    real, before = StreamReporter.report_batch, []

    def report_batch(self, report, **counts):
        real(self, report, **counts)
        if report.batch == batch:
            before.append((here / "out.jsonl").read_bytes())
            change(here / "out.jsonl")

    with monkeypatch.context() as patch:
        patch.setattr(StreamReporter, "report_batch", report_batch)
        assert match in error(stream("rows.jsonl", "--out", "out.jsonl", "--store", "st", "--checkpoint-every", 2))
    (here / "out.jsonl").write_bytes(before[0]) if name != "deleted" else None
    assert (here / "out.jsonl").read_bytes() == before[0]
    again = stream("rows.jsonl", "--out", "out.jsonl", "--store", "st", "--checkpoint-every", 2, "--resume")
    assert again.exit_code == 0, again.output
    stream("rows.jsonl", "--out", "whole.jsonl", "--store", "whole", "--checkpoint-every", 2)
    for first, second in (("out.jsonl", "whole.jsonl"), ("st/journal.jsonl", "whole/journal.jsonl")):
        assert (here / first).read_bytes() == (here / second).read_bytes()


def test_freezing_at_a_restart_comes_after_what_was_given_out(stream, here, monkeypatch):
    """A run is killed after batches that were scored with an adjusted model."""
    how = ("rows.jsonl", "--out", "out.jsonl", "--store", "st", "--checkpoint-every", 3, "--resume")

    def report_batch(self, report, **counts):
        if report.batch == 5:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StreamReporter, "report_batch", report_batch)
        assert stream(*how).exit_code == 130
    for action in ("freeze", "accept"):  # by an operator, in Python
        adjuster = ft.stream.ContinualAdjuster.resume(here / "st")
        with adjuster, pytest.raises(StoreError, match="has processed 2 more batch"):
            getattr(adjuster, action)()
    before = (here / "out.jsonl").read_bytes()
    assert before.count(b"\n") == 100
    assert stream(*how, "--freeze").exit_code == 0
    assert (here / "out.jsonl").read_bytes().startswith(before)
    entries = read_journal(here / "st")
    assert [entry.get("operator") for entry in entries].index("freeze") == 5
    assert {entry["updates"] for entry in entries[6:]} == {0}


def test_a_last_line_without_its_end_is_no_line_yet(stream, here):
    how = ("part.jsonl", "--out", "out.jsonl", "--store", "st", "--resume")
    content = (here / "rows.jsonl").read_bytes()
    (here / "part.jsonl").write_bytes(content[:-10])
    assert "Line 230 was not scored: the input ends without a newline" in error(stream(*how))
    assert len(read(here / "out.jsonl")) == ROWS - 1
    (here / "part.jsonl").write_bytes(content)
    assert stream(*how).exit_code == 0
    assert [row["id"] for row in read(here / "out.jsonl")] == list(range(ROWS))
    (here / "part.jsonl").write_bytes(content.replace(b'"id":150}', b'"id":151}') + b"{}\n")
    assert "not those that the run to resume has read" in error(stream(*how))


def test_the_page_gets_snapshots_and_is_closed(stream, here, monkeypatch):
    told = []

    class Handle:
        url = "http://127.0.0.1:8010/"

        def close(self):
            told.append("closed")

    def serve_page(snapshot, port):
        told.extend([port, snapshot()["title"]])
        return Handle()

    module = ModuleType("fairtransport.serving.live_page")
    module.serve_page = serve_page
    monkeypatch.setitem(sys.modules, module.__name__, module)
    result = stream("rows.jsonl", "--out", "out.jsonl", "--page", 8010)
    assert result.exit_code == 0, result.output
    assert told == [8010, "cot.ft", "closed"]
    assert "page: http://127.0.0.1:8010/" in result.stderr


def test_a_page_that_cannot_be_served_does_not_stop_the_stream(stream, here):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = stream("rows.jsonl", "--out", "out.jsonl", "--page", port)
    assert result.exit_code == 0, result.output
    assert f"warning: there is no page. Port {port} is in use by another program" in result.stderr
    assert len(read(here / "out.jsonl")) == ROWS


def test_freezing_and_reports(stream, here):
    result = stream("rows.jsonl", "--out", "out.jsonl", "--store", "st", "--freeze", "--report", 0)
    assert result.exit_code == 0, result.output
    assert {entry["updates"] for entry in read_journal(here / "st") if "updates" in entry} == {0}
    lines = [line for line in result.stderr.splitlines() if line.startswith("batch ")]
    assert len(lines) == 12
    assert all("frozen" in line and "disparity" in line for line in lines)


def start(models, here, *arguments, stdin=None):
    command = [sys.executable, "-m", "fairtransport.cli", "stream", "--model", models / "cot.ft", "--sensitive", "sex"]
    return subprocess.Popen(
        [*map(str, command), *map(str, arguments)],
        cwd=here,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ONE_THREAD,
    )


def count(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.trust
@pytest.mark.parametrize(("sent", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_the_batch_and_writes_a_checkpoint(models, here, sent, status):
    how = ("rows.jsonl", "--follow", "--store", "st", "--out", "out.jsonl", "--batch", 50, "--resume")
    process = start(models, here, *how)
    until(lambda: count(here / "out.jsonl") == 200)
    process.send_signal(sent)
    _, told = process.communicate(timeout=120)
    assert process.returncode == status, told
    assert count(here / "out.jsonl") == 200  # the last 30 lines are no batch yet, and stay in the file
    adjuster = ft.stream.ContinualAdjuster.resume(here / "st")
    assert (adjuster.rows, adjuster.extra["lines"]) == (200, 200)
    adjuster.close()
    with (here / "rows.jsonl").open("ab") as file:
        file.write(b'{"a":1,"b":1,"sex":"F"}\n' * 20)
    process = start(models, here, *how)
    until(lambda: count(here / "out.jsonl") == 250)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)


@pytest.mark.trust
def test_a_pipe_and_a_kill(models, here):
    content = (here / "rows.jsonl").read_bytes()
    how = ("--store", "st", "--out", "out.jsonl", "--batch", 10, "--checkpoint-every", 3, "--resume")
    process = start(models, here, *how, stdin=subprocess.PIPE)
    process.stdin.write(b"".join(content.splitlines(keepends=True)[:100]))
    process.stdin.flush()
    until(lambda: count(here / "out.jsonl") == 100)
    process.kill()
    process.communicate(timeout=120)
    process = start(models, here, *how, stdin=subprocess.PIPE)  # the sender begins again
    _, told = process.communicate(content, timeout=120)
    assert process.returncode == 0, told
    whole = start(models, here, "--batch", 10, stdin=subprocess.PIPE)
    out, _ = whole.communicate(content, timeout=120)
    assert (here / "out.jsonl").read_bytes() == out
    assert out.count(b"\n") == ROWS
