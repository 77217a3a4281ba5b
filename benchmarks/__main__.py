"""Run benchmarks, each in a process of its own: ``python -m benchmarks [names...] [--quick]``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from benchmarks import _timing

NAMES = ("update", "fit", "ot_stochastic", "audit", "repair", "startup", "growth", "tables", "nets", "boosting")
QUALITY = ("frontier", "robustness", "trees", "dask_scaling", "stream")  # long, or of a cluster: only when named


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="name",
        help=f"any of: {', '.join(NAMES)} (default: all of these), {', '.join(QUALITY)}",
    )
    parser.add_argument("--quick", action="store_true", help="smaller cases and fewer rounds, to see that it runs")
    options = parser.parse_args()
    unknown = set(options.names) - {*NAMES, *QUALITY}
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join((*NAMES, *QUALITY))}")
    # BLAS, OpenMP and numba read these when they are loaded; whoever needs more threads says so in the row.
    alone = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    failed = []
    for name in options.names or NAMES:
        command = [sys.executable, "-m", f"benchmarks.{name}", *(["--quick"] if options.quick else [])]
        done = subprocess.run(command, env={**os.environ, **alone}, cwd=Path(__file__).parents[1], check=False)
        if done.returncode:
            failed.append(name)
    _timing.summarize()
    print("Written: benchmarks/results/summary.md and one JSON file for each benchmark.")
    if failed:
        print(f"Did not finish: {', '.join(failed)}", file=sys.stderr)
    return len(failed)


if __name__ == "__main__":
    raise SystemExit(main())
