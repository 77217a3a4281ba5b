"""Every command of docs/stream.md runs, in the order of the page."""

import json
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest
from tests.processes import run_block, until, with_command

import fairtransport as ft

pytestmark = pytest.mark.trust

PAGE = (Path(__file__).parents[2] / "docs" / "stream.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A program of that name, whichever way the package is installed."""
    return with_command(tmp_path_factory.mktemp("programs"))


def test_the_page_from_top_to_bottom(tmp_path, environment):
    folder = tmp_path
    for language, text in BLOCKS:
        if language == "ini":
            start_and_stop(text, folder, environment)
        elif language in {"python", "sh"}:
            imports = "import fairtransport as ft\n" * (language == "python" and not text.startswith("import"))
            run_block(language, imports + text, folder, environment)
    for name, lines in {"scored": 4000, "piped": 1000, "service": 4000, "some-scored": 200, "second": 4000}.items():
        rows = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
        assert len(rows) == lines, name
        assert all(0.0 < row["score"] < 1.0 for row in rows)
    assert "score_repaired" in rows[-1]
    assert json.loads((folder / "some-scored.jsonl.rejected.jsonl").read_text()) == {"line": 201, "reason": "not JSON"}
    told = [entry["operator"] for entry in ft.stream.read_journal(folder / "run") if "operator" in entry]
    assert [what.split(" to ")[0] for what in told] == ["roll back", "thaw", "accept"]


def start_and_stop(unit, folder, environment):
    """What systemd would do: start, later SIGTERM."""
    command = shlex.split(re.search(r"^ExecStart=(.*)$", unit, flags=re.MULTILINE)[1])
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE) as process:
        out = folder / "service.jsonl"
        until(lambda: process.poll() is not None or (out.exists() and out.read_bytes().count(b"\n") == 4000))
        assert process.poll() is None, process.stderr.read()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0


def test_every_option_that_the_page_names_exists(environment):
    command, wide = ["fairtransport", "stream", "--help"], {**environment, "COLUMNS": "200"}
    text = subprocess.run(command, env=wide, capture_output=True, text=True, check=True, timeout=120).stdout
    for option in set(re.findall(r"--[a-z][a-z-]+", PAGE)):
        assert option in text, option
