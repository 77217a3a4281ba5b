"""docs/serving.md runs from top to bottom."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from tests.processes import free_port, run_block, with_command

pytestmark = [pytest.mark.trust, pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl")]

PAGE = (Path(__file__).parents[2] / "docs" / "serving.md").read_text(encoding="utf-8")


def test_the_page_from_top_to_bottom(tmp_path):
    environment = with_command(tmp_path / "bin")
    environment["PATH"] += os.pathsep + str(Path(sys.executable).parent)
    port = free_port()
    blocks = re.findall(r"^```(python|sh)\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    for language, text in blocks:
        run_block(language, text.replace("8000", str(port)), tmp_path, environment)
    answer = json.loads((tmp_path / "answer.json").read_text())
    assert answer["scores"][0] > 0.5
    assert answer["rejected"] == [{"row": 1, "reason": "column 'income' has no value"}]
    metrics = (tmp_path / "metrics.txt").read_text()
    assert "fairtransport_model_file_loaded 1.0" in metrics
    first, second = (tmp_path / "twice.jsonl").read_text().splitlines()
    assert first == second
    assert len((tmp_path / "run" / "journal.jsonl").read_text().splitlines()) == 1


def test_metrics_of_the_page_exist():
    folder = Path(__file__).parents[2] / "src" / "fairtransport" / "serving"
    code = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    named = {name.removesuffix("_total") for name in re.findall(r"`(fairtransport_\w+)", PAGE)}
    assert {name for name in named if name not in code} - {"fairtransport_stream_"} == set()
