"""How long a fit takes: one fixed weight and the automatic path, against a plain logistic regression.

``python -m benchmarks.solver [--quick] [--baseline PATH]``. PATH is a checkout of another version of this package;
its default fit takes part in the same interleaved race, in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from benchmarks import _timing
from fairtransport import ContinuousTransportClassifier, DiscreteTransportClassifier
from fairtransport.paper.splits import adult_split, communities_splits, german_splits

CLAIM = "A fit with one fixed weight and the automatic path: ratios to logistic regression, memory, growth with rows."
PLAIN = "scikit-learn's LogisticRegression"
DATA = {
    "Adult": adult_split,
    "German": lambda: german_splits(1)[0],
    "Communities": lambda: communities_splits(1)[0],
}
# How many times as long the earlier version's default fit must take.
AT_LEAST = {("Adult", "weight 1"): 3.0, ("Adult", "auto"): 1.0, ("German", "weight 1"): 10.0,
            ("Communities", "weight 1"): 3.0}  # fmt: skip
LIMIT_S, LIMIT_GIB = 60.0, 4.0
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA")}

# Runs in the other version: fits once for each line of its input and answers with the seconds.
BASELINE = """
import sys, time, warnings
import fairtransport
from fairtransport import ContinuousTransportClassifier
from fairtransport.paper.splits import adult_split, communities_splits, german_splits
warnings.simplefilter("ignore")
split = {"Adult": adult_split, "German": lambda: german_splits(1)[0], "Communities": lambda: communities_splits(1)[0]}
split = split[sys.argv[1]]()
groups = split.groups_train
print(fairtransport.__file__, flush=True)
for line in sys.stdin:
    began = time.perf_counter()
    ContinuousTransportClassifier().fit(split.X_train, split.y_train, sensitive_features=groups)
    print(time.perf_counter() - began, flush=True)
"""


class Baseline:
    """Another version of the package in a process that waits for a line, fits, and answers."""

    def __init__(self, checkout, data):
        source = checkout.resolve() / "src"
        self._process = subprocess.Popen(
            [sys.executable, "-c", BASELINE, data], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": str(source)}, cwd=checkout,
        )  # fmt: skip
        imported = self._process.stdout.readline().strip()
        if not imported or source not in Path(imported).parents:
            self.close()
            raise RuntimeError(f"The baseline was imported from {imported or 'nowhere'}, not from {source}.")

    def fit(self):
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        if not self._process.stdout.readline():
            raise RuntimeError("The baseline's process ended; its error is printed above.")

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def fits(X, y, groups):
    """The calls of a race, by name."""

    def transport(kind, weight):
        return lambda: kind(parity_weight=weight).fit(X, y, sensitive_features=groups)

    return {
        PLAIN: lambda: LogisticRegression(max_iter=1000).fit(X, y),
        "COT, weight 1": transport(ContinuousTransportClassifier, 1.0),
        "COT, auto": transport(ContinuousTransportClassifier, "auto"),
        "DOT, weight 1": transport(DiscreteTransportClassifier, 1.0),
        "DOT, auto": transport(DiscreteTransportClassifier, "auto"),
    }


def race_data_set(report, data, baseline):
    split = DATA[data]()
    calls = fits(split.X_train, split.y_train, split.groups_train)
    ours = [name for name in calls if name != PLAIN]
    with ExitStack() as stack:
        if baseline:
            calls["baseline"] = stack.enter_context(closing(Baseline(baseline, data))).fit
        times = _timing.race(calls, 1 if report.quick else 3)
    for name in ours:
        report.add(_timing.compare(f"{data}: {name}", times[name], PLAIN, times[PLAIN]))
    for name in ours if baseline else ():
        learner, budget = name.split(", ")
        at_least = AT_LEAST.get((data, budget), 0.0) if learner == "COT" else 0.0
        row = _timing.compare(
            f"{data}: {name}", times[name], "earlier version, default COT", times["baseline"], at_least=at_least
        )
        report.add(row)


# ----------------------------------------------------------------------------------------------------- many rows


def sparse_rows(n, n_columns=100, filled=10, n_groups=8, seed=0):
    """CSR rows with a few non-zeros each; a fifth of the columns is more frequent in some groups than in others."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(n_groups, size=n)
    columns = rng.integers(n_columns, size=(n, filled))
    own = rng.random(n) < 0.5
    columns[own, 0] = n_columns - 1 - (groups[own] * 2 + rng.integers(4, size=own.sum())) % (n_columns // 5)
    columns.sort(axis=1)
    X = sparse.csr_matrix((np.ones(n * filled), columns.ravel(), np.arange(n + 1) * filled), (n, n_columns))
    X.sum_duplicates()
    effects = np.random.default_rng(1).normal(size=n_columns)
    y = (X @ effects + rng.logistic(size=n) > 0).astype(np.int64)
    return X, y, groups


def fit_many_rows(n, weight):
    """Fit in this process, and print seconds and peak memory; run by `many_rows` in a process of its own."""
    fits(*sparse_rows(2_000))[f"COT, {weight}"]()  # compiles
    X, y, groups = sparse_rows(n)
    before = peak_gib()
    began = time.perf_counter()
    model = fits(X, y, groups)[f"COT, {weight}"]()
    result = {"seconds": time.perf_counter() - began, "before_gib": before, "peak_gib": peak_gib()}
    print(json.dumps({**result, "outcome": model.outcome_}))


def peak_gib():
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 2**30


def many_rows(report):
    n = 20_000 if report.quick else 1_000_000
    two_threads = dict.fromkeys(ONE_THREAD, "2")
    for weight in ("weight 1", "auto"):
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.solver", "--many-rows", str(n), weight],
            env={**os.environ, **two_threads}, cwd=Path(__file__).parents[1], check=True, stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        found = json.loads(done.stdout.splitlines()[-1])
        seconds, peak = found["seconds"], found["peak_gib"]
        ratio = LIMIT_S / seconds
        met = seconds < LIMIT_S and peak < LIMIT_GIB
        report.add(
            _timing.Row(
                f"{n:,} rows x 100 sparse columns x 8 groups: COT, {weight}, 2 threads", f"a limit of {LIMIT_S:g} s",
                seconds, LIMIT_S, ratio, ratio, ratio,
                f"under {LIMIT_S:g} s and {LIMIT_GIB:g} GiB; peak {peak:.2f} GiB", None if report.quick else met,
            )
        )  # fmt: skip
        report.note(
            f"{n:,} rows, {weight}: {seconds:.1f} s, peak {peak:.2f} GiB ({found['before_gib']:.2f} GiB before it, "
            f"with the rows); outcome: {found['outcome']}"
        )


def growth(report):
    first = 5_000 if report.quick else 50_000
    sizes = (first, 2 * first, 4 * first)
    samples = {n: fits(*sparse_rows(n)) for n in sizes}
    for name in ("COT, weight 1", "COT, auto", "DOT, weight 1", PLAIN):
        times = _timing.race({str(n): samples[n][name] for n in sizes}, 1 if report.quick else 3)
        medians = {n: float(np.median(times[str(n)])) for n in sizes}
        report.curves[f"{name}, by rows"] = medians
        exponent = np.log(medians[sizes[-1]] / medians[first]) / np.log(4)
        told = ", ".join(f"{n:,}: {_timing.seconds(value)}" for n, value in medians.items())
        report.note(f"{name}, by rows (100 sparse columns, 8 groups): {told}; grows like rows^{exponent:.2f}")


def run(report, baseline):
    report.settings.update(random_state=0, baseline="a checkout of an earlier version" if baseline else "none")
    for data in DATA:
        race_data_set(report, data, baseline)
    growth(report)
    many_rows(report)


def main() -> int:
    parser = argparse.ArgumentParser(description=CLAIM)
    parser.add_argument("--quick", action="store_true", help="smaller cases and fewer rounds, to see that it runs")
    parser.add_argument("--out", type=Path, default=_timing.RESULTS, help="where the results go")
    parser.add_argument("--baseline", type=Path, metavar="PATH", help="a checkout of another version of the package")
    parser.add_argument("--many-rows", nargs=2, metavar=("ROWS", "WEIGHT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.many_rows:
        fit_many_rows(int(options.many_rows[0]), options.many_rows[1])
        return 0
    if options.baseline and not (options.baseline / "src" / "fairtransport").is_dir():
        parser.error(f"--baseline: {options.baseline} has no src/fairtransport.")
    report = _timing.Report("solver", CLAIM, quick=options.quick, folder=options.out)
    print(f"solver: {CLAIM}", flush=True)
    with _timing.threads(1):
        run(report, options.baseline)
    data = report.save()
    print("\n" + _timing.text_table(data["rows"]) + f"\n\n{_timing.markdown(data)}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
