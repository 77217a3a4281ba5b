"""Run the test suites that docs/trust.md reports on, and write its table.

    python scripts/trust.py                 all parts; takes minutes
    python scripts/trust.py --only checks   one part; its table is printed, and its figures are kept in out/trust
    python scripts/trust.py --gather        the page from the figures in out/trust

The numbers of fuzz cases come from the last `make fuzz` (docs/trust/fuzz.json), those of simulated audits from
`python -m benchmarks coverage` and `python -m benchmarks generated_audits`.
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
COVERAGE = ROOT / "benchmarks" / "results" / "coverage.json"
GENERATED_AUDITS = ROOT / "benchmarks" / "results" / "generated_audits.json"

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


def rows_of(outcomes: list[tuple[str, str, int]], examples: int) -> list[tuple[str, str, str, str]]:
    """Return the lines of the table: title, and numbers of cases that ran, passed, and were expected to fail."""
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
        rows.append(("hypothesis: examples run", f"{examples:,}", f"{examples:,}", "-"))
    return rows


def _row(title: str, counts: Counter[str]) -> tuple[str, str, str, str]:
    return title, f"{counts.total():,}", f"{counts['passed']:,}", f"{counts['xfailed']}"


def table(rows: list[tuple[str, str, str, str]]) -> str:
    """Return the rows as a table in Markdown."""
    head = ("", "run", "passed", "expected to fail")
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ("---", "--:", "--:", "--:"), *rows))


def fuzz_rows() -> list[tuple[str, str, str, str]]:
    """Return the figures of the last `make fuzz`."""
    if not FUZZ_FIGURES.exists():
        return [("fuzz cases: `make fuzz` has not been run", "0", "0", "-")]
    content = json.loads(FUZZ_FIGURES.read_text())
    name = f"fuzz cases of {len(content['targets'])} targets"
    return [(name, f"{content['cases']:,}", f"{content['cases'] - content['findings']:,}", "-")]


def statistics() -> str:
    """Return what simulated audits have shown about intervals, p-values and verdicts."""
    coverage, generated = (json.loads(path.read_text()) for path in (COVERAGE, GENERATED_AUDITS))
    worlds = coverage["worlds"].values()
    nulls = [world["p_value"] for world in worlds if world["null"]]
    rejected = [100 * sum(p[f"at most {level}"] for p in nulls) / len(nulls) for level in (".01", ".05", ".1", ".5")]
    names = {
        "strong_pairwise_disparity": "strong pairwise disparity (SPDD)",
        "pair": "distance of the clearest pair",
        "mean_difference": "difference of its means",
        "rate": "share above a threshold",
        "rate_difference": "difference of shares",
        "rate_ratio": "ratio of shares",
    }
    lines = []
    for name, title in names.items():
        shares = sorted(100 * world[name][1] for world in worlds if name in world)
        middle = shares[len(shares) // 2]
        lines.append(f"{title} {shares[0]:.1f} to {shares[-1]:.1f} (median {middle:.1f})")
    claims = "; ".join(
        f"{name} {100 * one['false'] / one['made']:.1f} % of {one['made']:,}"
        for name, one in generated["claims"].items()
    )
    return f"""## Intervals, p-values and verdicts

`python -m benchmarks coverage` audits samples of {len(worlds)} worlds whose truth is known, {coverage["audits"]}
times each: two to twelve groups of 12 to 5,000 rows, with ties, atoms and weights that depend on the score. In the
{len(nulls)} worlds without a difference, p-values of at most .01, .05, .1 and .5 occur in
{", ".join(f"{share:.1f}" for share in rejected[:-1])} and {rejected[-1]:.1f} % of the audits. The 95% intervals cover
the truth in this share of audits, in % (the standard error of one world is about 1.1): {"; ".join(lines)}.

In {generated["audits"]:,} audits of groups of 1 to 50,000 rows (`python -m benchmarks generated_audits`) verdict,
intervals, p-values and limits contradicted each other {sum(generated["contradictions"].values())} times. False claims,
where confidence levels allow 5.25 % on average: {claims}.

Error rates agree with fairlearn's `MetricFrame` and with scikit-learn to 1e-12 (`python -m benchmarks error_rates`).
"""


def page(rows: list[tuple[str, str, str, str]]) -> str:
    """Return docs/trust.md."""
    content = json.loads(FUZZ_FIGURES.read_text()) if FUZZ_FIGURES.exists() else {"memory_limit_mib": 0, "targets": {}}
    most = max((one["most_memory_mib"] for one in content["targets"].values()), default=0)
    minutes = round(sum(one["seconds"] for one in content["targets"].values()) / 60)
    return f"""# Trust, in figures

Written by `make trust`; fuzz cases are those of the last `make fuzz` ({minutes} minutes of atheris in total; where
`docs/trust/fuzz.json` says `coverage_guided: false`, of random changes of the seeds).

{table(rows)}

- **Generated checks** are all checks of scikit-learn's `parametrize_with_checks` on the public classes, with fixed and
  automatic weights and both solvers; none is skipped. Over 100 seeds, renaming groups, or weighting rows instead of
  repeating them, changes scores by less than 1e-6 on average.
- **Files.** No file is read that the writer would not have written byte for byte. A forged file with correct checksums
  names no path, module or function, and gives numbers between 0 and 1 as scores; loading and predicting open no file to
  write, start no process and unpickle nothing. Reading takes at most three times the size of the file and 100 MiB.
- **A call that fails once.** Each call of the system that a writer makes fails in turn in six ways; the old file or the
  new one is complete.
- **Kills** end the process at random moments. A stream that is resumed after each kill ends with the bytes of one that
  was not killed, and a server that adjusts its model counts every request once.
- **Fuzz cases** end in a result or in one of this package's errors, within 20 seconds and
  {content["memory_limit_mib"]} MiB (the largest process took {most} MiB). An error that quotes a canary, which stands
  for a person's value, counts as a finding. `docs/trust/fuzz.json` has the targets.
- [SECURITY.md](../SECURITY.md) states what is promised, and what is not.

{statistics()}"""


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
