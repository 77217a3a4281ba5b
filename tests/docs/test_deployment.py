"""The page on production runs from top to bottom, with a broker of its own."""

import json

import polars as pl
import pytest
from tests.stream.kafka_world import broker

from .pages import DOCS, blocks, run_page

pytestmark = [
    pytest.mark.docs,
    # MLflow's own code, and pandas within it
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*type hint"),
]


def test_page_on_production(tmp_path, monkeypatch):
    text = (DOCS / "deployment.md").read_text(encoding="utf-8")
    page = tmp_path / "deployment.md"
    work = tmp_path / "work"
    work.mkdir()
    with broker("rows=2", "scored=2", "rejected=1") as brokers:
        page.write_text(text.replace("localhost:9092", brokers), encoding="utf-8")
        ran, compared = run_page(page, work, monkeypatch)
    assert (ran, compared) == (len(blocks(page)) - 1, 1)
    assert pl.read_csv(work / "scored.csv")["score"].is_between(0, 1).all()
    journal = [json.loads(line) for line in (work / "run" / "journal.jsonl").read_text().splitlines()]
    assert sum(entry["lines"] for entry in journal) == 401
    assert sum(entry["rejected"] for entry in journal) == 1
