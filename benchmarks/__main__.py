"""Run benchmarks, each in a process of its own: ``python -m benchmarks [names...] [--quick]``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from benchmarks import _timing

NAMES = (
    "update",
    "fit",
    "ot_stochastic",
    "audit",
    "repair",
    "startup",
    "growth",
    "tables",
    "torch_penalty",
    "boosting",
)
# Long, or of a cluster: only when named.
QUALITY = (
    "frontier",
    "criteria",
    "robustness",
    "hard_tables",
    "regression_repair",
    "blind_repair",
    "which_method",
    "solver",
    "trees",
    "dask_scaling",
    "stream",
    "serving",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="name",
        help=f"any of: {', '.join(NAMES)} (default: all of these), {', '.join(QUALITY)}",
    )
    parser.add_argument("--quick", action="store_true", help="smaller cases and fewer rounds, to see that it runs")
    parser.add_argument("--baseline", metavar="PATH", help="for solver: a checkout of another version to race against")
    options = parser.parse_args()
    unknown = set(options.names) - {*NAMES, *QUALITY}
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join((*NAMES, *QUALITY))}")
    if options.baseline and "solver" not in options.names:
        parser.error("--baseline is for the benchmark solver, which must be named.")
    # BLAS, OpenMP and numba read these when they are loaded; whoever needs more threads says so in the row.
    alone = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    failed = []
    for name in options.names or NAMES:
        command = [sys.executable, "-m", f"benchmarks.{name}", *(["--quick"] if options.quick else [])]
        if options.baseline and name == "solver":
            command += ["--baseline", str(Path(options.baseline).resolve())]
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
