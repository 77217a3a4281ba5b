"""A stream between Kafka topics, killed many times: is each message in the output once, with the right score?

The program of the tests (``tests/crash/killed_kafka.py``) with more kills; its broker is the one of the tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CLAIM = "Each message is scored exactly once, in order, as by a run that was not killed."
PROGRAM = Path(__file__).parents[1] / "tests" / "crash" / "killed_kafka.py"


def run(report):
    results = report.data.setdefault("results", {})
    for kind in ("topic", "file"):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, str(PROGRAM), folder, kind, "5" if report.quick else "100"]
            alone = {**os.environ, "NUMBA_NUM_THREADS": "1"}
            done = subprocess.run(command, env=alone, stdout=subprocess.PIPE, text=True, check=True)
        results[kind] = {name: value for name, value in json.loads(done.stdout).items() if name != "seconds"}
        own = results[kind]
        report.note(
            f"into a {kind}: {own['kills']} kills, {own['aborted']} messages in transactions that kills left open; "
            f"messages that are missing, repeated or differ: {len(own['wrong'])}"
        )
