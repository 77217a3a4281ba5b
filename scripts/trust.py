"""Run the test suites that docs/trust.md reports on, and write its table.

    python scripts/trust.py                 all parts; takes minutes
    python scripts/trust.py --only checks   one part; its table is printed, and its figures are kept in out/trust
    python scripts/trust.py --gather        the page from the figures in out/trust

The numbers of fuzz cases are those of all runs of `make fuzz` (docs/trust/fuzz.json).
"""
# ruff: noqa: INP001, T201 - a program that prints

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "trust.md"
RESULTS = ROOT / "out" / "trust"
FUZZ_FIGURES = ROOT / "docs" / "trust" / "fuzz.json"

SELECTED = "not (paper or engines or models or browser)"
#: Tests that try to break something, by the beginning of their names, and what they try.
FAMILIES = {
    "tests/storage/test_container.py": "bytes of a file: cut, added, every bit flipped; invalid arrays and JSON",
    "tests/storage/test_signatures.py": "signatures: every bit flipped, other keys, other purposes",
    "tests/storage/test_faults.py": "a call of the system fails once while a file is written",
    "tests/persistence/test_parameters.py": "models with correct checksums: parameters, encoders, references",
    "tests/persistence/test_hostile.py": "models with correct checksums: any value, any array",
    "tests/persistence/test_hostile_trees.py": "models with correct checksums: boosted trees",
    "tests/security/test_bombs.py": "inputs that ask for much memory",
    "tests/security/test_hardened.py": "read-only systems, without a home or temporary files",
    "tests/stream/test_line_meaning.py": "lines of a stream: each has the score that it has alone",
    "tests/stream/test_failing_rows.py": "lines of a stream that cannot be scored",
    "tests/tables/test_column_names.py": "names of columns that look like patterns or code",
    "tests/crash/test_kills.py::test_200_kills_leave": "kills in the middle of a save",
    "tests/crash/test_kills.py::test_200_kills_of_a_server": "kills of a server that adjusts its model",
    "tests/crash/test_kills.py": "kills in the middle of a stream, of files and of topics",
    "tests/crash/test_stream": "streams: calls that fail, the protocol explored",
    "tests/crash": "faults: clocks, workers",
}
PARTS = {
    "checks": ["tests/contract", "tests/test_checks.py"],
    "hostile": sorted({"tests/crash", "tests/security", *(name for name in FAMILIES if name.endswith(".py"))}),
    "seeds": ["tests/properties/test_seeds.py", "tests/properties/test_solvers.py"],
    "examples": [
        *("tests/properties/test_repair.py", "tests/properties/test_distances.py", "tests/metrics"),
        *("tests/transport", "tests/histograms", "tests/test_groups.py", "tests/repair/test_quantile.py"),
    ],
}
_GENERATED = re.compile(r"test_generated_checks\[(\w+)\(")


def run(part: str, workers: int) -> tuple[list[tuple[str, str, int]], int]:
    """Run one part; return the outcome and the number of cases of each test, and that of hypothesis examples."""
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            str(workers),
            "-m",
            SELECTED,
            "-p",
            "tests.counting",
            *PARTS[part],
        ]
        paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "TRUST_FOLDER": str(counts), "PROPERTY_EXAMPLES": "250", "PYTHONPATH": paths}
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False)  # noqa: S603 - ourselves
        lines = [line.rsplit(" ", 2) for file in counts.glob("*.tests") for line in file.read_text().splitlines()]
        examples = sum(int(line) for file in counts.glob("*.examples") for line in file.read_text().split())
    outcomes = [(name, outcome, int(cases)) for name, outcome, cases in lines]
    if done.returncode and all(outcome == "passed" for _, outcome, _ in outcomes):
        outcomes.append((f"{part}: pytest ended with {done.returncode}", "failed", 1))
    return outcomes, examples


def rows_of(outcomes: list[tuple[str, str, int]], examples: int) -> list[tuple[str, str]]:
    """Return the lines of the table: title and number of cases that ran."""
    generated: dict[str, Counter[str]] = {}
    others: dict[str, Counter[str]] = {}
    titles = {
        "tests/test_checks.py::test_ours_pass": "checks of a fair estimator (`check_fair_estimator`)",
        "tests/properties/test_seeds.py": "checks of a fair estimator for seeds 0 to 99, ten seeds a test",
        "tests/properties/test_solvers.py": "agreement of solvers, also for seeds 0 to 99, ten seeds a test",
        "tests/contract": "checks that scikit-learn does not yield, routing, parameters, threads",
        **FAMILIES,
    }
    for name, outcome, cases in outcomes:
        match = _GENERATED.search(name)
        if match:
            generated.setdefault(match[1].replace("Grouped", ""), Counter())[outcome] += 1
            continue
        title = next((title for start, title in titles.items() if name.startswith(start)), None)
        if title is not None:
            others.setdefault(title, Counter())[outcome] += cases
    rows = [_row(f"generated checks: {name}", counts) for name, counts in generated.items()]
    rows += [_row(title, others[title]) for title in titles.values() if title in others]
    if examples:
        rows.append(("hypothesis: examples run", f"{examples:,}"))
    return rows


def _row(title: str, counts: Counter[str]) -> tuple[str, str]:
    return title, f"{counts.total():,}"


def table(rows: list[tuple[str, str]]) -> str:
    """Return the rows as a table in Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (("", "run"), ("---", "--:"), *rows))


def fuzz_rows() -> list[tuple[str, str]]:
    """Return the figures of all runs of `make fuzz`."""
    if not FUZZ_FIGURES.exists():
        return [("fuzz cases: `make fuzz` has not been run", "0")]
    content = json.loads(FUZZ_FIGURES.read_text())
    name = f"fuzz cases of {len(content['targets'])} targets"
    return [(f"{name}, of which {content['findings']} findings", f"{content['cases']:,}")]


def page(rows: list[tuple[str, str]]) -> str:
    """Return docs/trust.md."""
    content = json.loads(FUZZ_FIGURES.read_text()) if FUZZ_FIGURES.exists() else {"memory_limit_mib": 0, "targets": {}}
    most = max((one["most_memory_mib"] for one in content["targets"].values()), default=0)
    minutes = round(sum(one["seconds"] for one in content["targets"].values()) / 60)
    return f"""# Trust, in figures

Written by `make trust`; fuzz cases are those of all runs of `make fuzz` ({minutes} minutes of atheris in total, by
target in `docs/trust/fuzz.json`). All tests passed.

{table(rows)}

- **Generated checks** are those of scikit-learn's `parametrize_with_checks` on the public classes; none is skipped.
- **Files.** No file is read that the writer would not have written byte for byte. Loading and predicting, also from a
  forged file, open no file to write, start no process and unpickle nothing.
- **A call that fails once.** Whichever call of the system fails, the old file or the new one is complete.
- **Kills** end the process at random moments. A stream ends with the bytes of one that was not killed, and a server
  counts every request once.
- **Fuzz cases** end in a result or in one of this package's errors, within 20 seconds and
  {content["memory_limit_mib"]} MiB (the largest process took {most} MiB). An error that quotes a canary, which stands
  for a person's value, counts as a finding.

[Benchmarks](benchmarks.md#coverage) has how often intervals, p-values and verdicts of audits are right.
"""


def main() -> None:
    """Run the parts, print the table and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(PARTS), help="one part")
    parser.add_argument("--gather", action="store_true", help="run nothing")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    parts = [options.only] if options.only else list(PARTS)
    if not options.gather:
        RESULTS.mkdir(parents=True, exist_ok=True)
        for part in parts:
            (RESULTS / f"{part}.json").write_text(json.dumps(run(part, options.workers)))
    figures = [json.loads((RESULTS / f"{part}.json").read_text()) for part in parts]
    outcomes = [(name, outcome, cases) for one, _ in figures for name, outcome, cases in one]
    examples = sum(tried for _, tried in figures)
    rows = rows_of(outcomes, examples)
    rows += fuzz_rows() if options.only is None else []
    print("\n" + table(rows))
    failed = [name for name, outcome, _ in outcomes if outcome != "passed"]
    if failed:
        print(f"\n{len(failed)} tests did not pass:\n" + "\n".join(failed))
        sys.exit(1)
    if options.only is None:
        PAGE.write_text(page(rows))


if __name__ == "__main__":
    main()
