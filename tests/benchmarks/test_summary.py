"""The summary of the benchmarks is made from all results, whatever format a benchmark has for them."""

import importlib
import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_results_of_any_format(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    timing = importlib.import_module("benchmarks._timing")
    report = timing.Report("race", "Ours is as fast.", quick=False, folder=tmp_path)
    report.add(timing.compare("a case", [1.0, 1.0], "a peer", [2.0, 2.0], at_least=1.5))
    report.add(timing.compare("another", [1.0, 1.0], "a peer", [2.0, 2.0], at_least=3.0))
    report.save()
    timing.Report("quality", "Ours is as good.", quick=False, folder=tmp_path).save()
    (tmp_path / "quality.md").write_text("# Quality")
    (tmp_path / "coverage.json").write_text(json.dumps({"audits": 3}))
    (tmp_path / "peers.json").write_text(json.dumps({"versions": {}, "rows": [{"runs": 3}]}))
    text = timing.summarize(tmp_path)
    assert "1 of 2 bars of speed met." in text
    assert "- MISSED: race: another against a peer" in text
    assert "## race" in text
    assert "## quality" not in text
    assert "[quality](quality.md)" in text
    assert "[coverage.json](coverage.json), [peers.json](peers.json)" in text
