"""Small inputs that ask for much: refused, with memory under a stated limit and within a stated time.

A process of its own reads them one after the other and says how much its memory grew at most.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.trust

MOST_MEMORY = 150  # MiB beyond what the libraries take; docs/model_files.md says three times the file, and 100 MiB
MOST_SECONDS = 120  # for all of them, on a busy machine


def test_small_inputs_that_ask_for_much(tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).with_name("bombs.py")), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=MOST_SECONDS, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert len(told) == 17
    accepted = {name for name, (answer, _) in told.items() if answer == "accepted"}
    assert accepted <= {"NUL in a table"}, told
    assert max(grown for _, grown in told.values()) < MOST_MEMORY, told
    assert not list(Path(tmp_path).parent.glob("schema.json"))
