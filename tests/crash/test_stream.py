"""kill -9 at random moments, inside a checkpoint too: what is left in the end is what would have been there anyway."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.trust

KILLS = 200


@pytest.mark.parametrize("kind", ["COT", "repair"])
def test_200_kills_change_no_byte_of_output_journal_and_model(tmp_path, kind):
    script = Path(__file__).with_name("killed_streams.py")
    command = [sys.executable, str(script), str(tmp_path), kind, str(KILLS)]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **threads}, timeout=600
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["wrong"] == []
    assert told["kills"] >= KILLS
    assert told["finished"] >= 5  # every one of them equal to the run that nobody killed
    assert told["inside"] >= 5  # some kills came between the first byte of a checkpoint and its name
    assert told["lines"] == 396  # 400, less those that are not JSON
