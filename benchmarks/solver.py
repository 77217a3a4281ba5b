"""How long a fit takes: one fixed weight and the automatic path, against a plain logistic regression."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from benchmarks import _ours, _report
from fairtransport.paper.splits import adult_split, communities_splits, german_splits

CLAIM = "A fit with one fixed weight and the automatic path: ratios to logistic regression, memory, growth with rows."
PLAIN = "scikit-learn's LogisticRegression"
DATA = {"Adult": adult_split, "German": lambda: german_splits(1)[0], "Communities": lambda: communities_splits(1)[0]}
NAMES = {"COT": "continuous", "DOT": "discrete"}
LIMIT_S, LIMIT_GIB = 60.0, 4.0
# Runs in a process of its own, with two threads.
MANY_ROWS = """
import json, resource
from benchmarks import _report, solver
solver.fits(*solver.sparse_rows(2_000))["COT, {weight}"]()  # compiles
call = solver.fits(*solver.sparse_rows({n}))["COT, {weight}"]
seconds = _report.clock(call)
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20]))
"""


def fits(X, y, groups):
    """The calls of a race, by name."""

    def transport(distance, **options):
        return lambda: _ours.classifier(distance, **options).fit(X, y, sensitive_features=groups)

    calls = {PLAIN: lambda: LogisticRegression(max_iter=1000).fit(X, y)}
    for name, distance in NAMES.items():
        calls |= {f"{name}, weight 1": transport(distance, parity_weight=1.0), f"{name}, auto": transport(distance)}
    return calls


def race_data_set(report, data):
    split = DATA[data]()
    calls = fits(split.X_train, split.y_train, split.groups_train)
    for name, distance in NAMES.items():
        for weight, told in ((1.0, "weight 1"), ("auto", "auto")):
            model = _ours.classifier(distance, group_specific=True, parity_weight=weight)
            calls[f"{name}, weights for each group, {told}"] = lambda m=model: m.fit(
                split.X_train, split.y_train, sensitive_features=split.groups_train
            )
    times = _report.race(calls, 1 if report.quick else 3)
    for name in calls:
        if name != PLAIN:
            report.add(_report.compare(f"{data}: {name}", times[name], PLAIN, times[PLAIN]))
    text = ", ".join(f"{name} {np.median(own):.2f} s" for name, own in times.items())
    report.note(f"{data}: {text}")


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


def many_rows(report):
    n = 20_000 if report.quick else 1_000_000
    threads = {f"{library}_NUM_THREADS": "2" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    for weight in ("weight 1", "auto"):
        command = [sys.executable, "-W", "ignore", "-c", MANY_ROWS.format(n=n, weight=weight)]
        settings = {"env": {**os.environ, **threads}, "cwd": Path(__file__).parents[1]}
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **settings)
        seconds, peak = json.loads(done.stdout)
        verdict = _report.met(seconds < LIMIT_S and peak < LIMIT_GIB)
        report.note(
            f"{n:,} rows x 100 sparse columns x 8 groups, COT, {weight}, 2 threads: {seconds:.1f} s, {peak:.2f} GiB; "
            f"required, under {LIMIT_S:g} s and {LIMIT_GIB:g} GiB: {verdict}"
        )


def growth(report):
    first = 5_000 if report.quick else 50_000
    sizes = (first, 2 * first, 4 * first)
    samples = {n: fits(*sparse_rows(n)) for n in sizes}
    for name in ("COT, weight 1", "COT, auto", "DOT, weight 1", PLAIN):
        times = _report.race({str(n): samples[n][name] for n in sizes}, 1 if report.quick else 3)
        medians = [float(np.median(times[str(n)])) for n in sizes]
        exponent = np.log(medians[-1] / medians[0]) / np.log(4)
        text = ", ".join(f"{n:,}: {_report.seconds(value)}" for n, value in zip(sizes, medians, strict=True))
        report.note(f"{name}, by rows: {text}; grows like rows^{exponent:.2f}")


def run(report):
    for data in DATA:
        race_data_set(report, data)
    growth(report)
    many_rows(report)
