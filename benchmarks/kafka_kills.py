"""A stream between Kafka topics that is killed many times: is each message in the output once, with the right score?

The program of the tests (``tests/crash/killed_kafka.py``) with more kills; its broker is the one of the tests. The
result is stored in ``benchmarks/results/kafka_kills.json``::

    python -m benchmarks.kafka_kills --kills 100
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="for each kind of output (default: 100)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "kafka_kills.json")
    options = parser.parse_args()
    script = ROOT / "tests" / "crash" / "killed_kafka.py"
    results = {}
    for kind in ("topic", "file"):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, str(script), folder, kind, str(options.kills)]
            done = subprocess.run(command, env={**os.environ, **THREADS}, stdout=subprocess.PIPE, text=True, check=True)
        results[kind] = {name: value for name, value in json.loads(done.stdout).items() if name != "seconds"}
        print(kind, results[kind])
    claim = "Each message is scored exactly once, in order, as by a run that was not killed; 'wrong' is empty."
    options.out.write_text(json.dumps({"name": "kafka_kills", "claim": claim, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
