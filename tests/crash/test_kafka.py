"""kill -9 of a stream between topics: each message is scored once, as if nothing had happened.

``python -m benchmarks kafka_kills`` has more kills.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.trust


@pytest.mark.parametrize(("kind", "n_kills"), [("topic", 25), ("file", 4)])
def test_kills_change_nothing_that_readers_of_committed_messages_see(tmp_path, kind, n_kills):
    script = Path(__file__).with_name("killed_kafka.py")
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), kind, str(n_kills)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **threads},
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["wrong"] == []
    assert result["kills"] >= n_kills
    assert result["finished"] >= 2
    assert result["rows"] == 98  # 100, less those that are not JSON
    assert kind == "file" or result["aborted"] > 0  # messages that were sent, and that no reader may see
