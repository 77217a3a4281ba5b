"""The page on production runs from top to bottom, with a broker and a port of its own."""

import json
import socket
import subprocess
import sys

import polars as pl
import pytest

from .pages import DOCS, ROOT, blocks, run_page

pytestmark = [
    pytest.mark.docs,
    # MLflow's own code, and pandas within it
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*type hint"),
]


@pytest.fixture
def broker():
    topics = ["rows=2", "scored=2", "rejected=1"]
    command = [sys.executable, str(ROOT / "tests" / "stream" / "kafka_broker.py"), *topics]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield f"127.0.0.1:{process.stdout.readline().strip()}"
        process.kill()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def test_page_on_production(broker, tmp_path, monkeypatch):
    text = (DOCS / "deployment.md").read_text(encoding="utf-8")
    page = tmp_path / "deployment.md"
    page.write_text(text.replace("localhost:9092", broker).replace("8765", str(free_port())), encoding="utf-8")
    work = tmp_path / "work"
    work.mkdir()
    ran, compared = run_page(page, work, monkeypatch)
    assert (ran, compared) == (len(blocks(page)) - 2, 2)
    assert json.loads((work / "ready.json").read_text())["ready"] is True
    (row,) = json.loads((work / "answer.json").read_text())["scores"]
    assert 0 < row < 1
    assert pl.read_csv(work / "scored.csv")["score"].is_between(0, 1).all()
    journal = [json.loads(line) for line in (work / "run" / "journal.jsonl").read_text().splitlines()]
    assert sum(entry["lines"] for entry in journal) == 401
    assert sum(entry["rejected"] for entry in journal) == 1
