"""Run benchmarks, each in a process of its own: ``python -m benchmarks [name ...] [--quick]``."""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
RESULTS, PAGE = HERE / "results", HERE.parent / "docs" / "benchmarks.md"
FILES = {path.stem: path for path in HERE.glob("[a-z]*.py")}
FILES |= {path.parent.name: path for path in HERE.glob("[a-z]*/__init__.py")}
NAMES = sorted(FILES)
# Minutes each, and they measure speed; the others are run when they are named.
SPEED = ("updates", "scores", "waiting", "tables", "torch_penalty", "boosting")
# BLAS, OpenMP and numba read these when they are loaded; a benchmark that needs more threads says so in the row.
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}


def parse():
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"any of: {', '.join(NAMES)} (default: {', '.join(SPEED)})"
    )
    parser.add_argument("--list", action="store_true", help="say what there is, and stop")
    parser.add_argument("--quick", action="store_true", help="smallest cases, to see that it runs; into out/benchmarks")
    parser.add_argument("--out", type=Path, help="where the results go (default: benchmarks/results)")
    parser.add_argument("--data", type=Path, help="folder with tables that are not shipped")
    parser.add_argument("--minutes", type=float, help="field: stop after so many; 0 only writes its page")
    parser.add_argument("--page", action="store_true", help="only write docs/benchmarks.md from the stored results")
    options = parser.parse_args()
    unknown = set(options.names) - set(NAMES)
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    options.out = options.out or (Path("out/benchmarks") if options.quick else RESULTS)
    return options


def describe(name):
    return ast.get_docstring(ast.parse(FILES[name].read_text(encoding="utf-8"))).splitlines()[0]


def run(name, options):
    """Run one benchmark in this process."""
    os.environ.update(ONE_THREAD)
    from benchmarks import _report  # noqa: PLC0415 - numpy must not be loaded before the number of threads is set

    module = importlib.import_module(f"benchmarks.{name}")
    known = {"quick": options.quick, "folder": options.out, "data_folder": options.data, "minutes": options.minutes}
    report = _report.Report(name, module.CLAIM, **known)
    print(f"{name}: {module.CLAIM}", flush=True)
    with _report.threads(1):
        module.run(report)
    report.save()


def run_all(names, options):
    """Run each in a process of its own; return the names of those that failed."""
    passed = ["--out", str(options.out.resolve()), *(["--quick"] if options.quick else [])]
    passed += ["--data", str(options.data.resolve())] if options.data else []
    passed += ["--minutes", str(options.minutes)] if options.minutes is not None else []
    commands = {name: [sys.executable, "-m", "benchmarks", name, *passed] for name in names}
    return [
        name for name, command in commands.items() if subprocess.run(command, cwd=HERE.parent, check=False).returncode
    ]


def main() -> int:
    options = parse()
    failed = []
    if options.list:
        print("\n".join(f"{name:18}{describe(name)}" for name in NAMES))
        return 0
    if not options.page:
        if len(options.names) == 1:
            run(options.names[0], options)
        else:
            failed = run_all(options.names or SPEED, options)
    if options.out.resolve() == RESULTS:
        from benchmarks import _report  # noqa: PLC0415

        PAGE.write_text(_report.page(RESULTS), encoding="utf-8")
    if failed:
        print(f"Did not finish: {', '.join(failed)}", file=sys.stderr)
    return len(failed)


if __name__ == "__main__":  # workers of a cluster import this file
    raise SystemExit(main())
