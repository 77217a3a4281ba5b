"""What a user waits for: first calls, default fits, audits and commands, against the plain model of the same run.

Processor seconds of one thread. Each line has a profile: which parts of our package and of others the time is spent in.
"""

from __future__ import annotations

import cProfile
import os
import pstats
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from functools import partial
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from benchmarks import _report
from fairtransport.paper.splits import adult_split

CLAIM = "Default calls near the cost of the plain model, and a first call without a coffee: processor seconds, ratios."
ROOT = Path(__file__).parents[1]
PLAIN, TREES, SORT = "LogisticRegression", "LightGBM", "numpy.sort"
PREPARE = """
import numpy as np, fairtransport as ft
rng = np.random.default_rng(0)
X, group = rng.normal(size=(600, 5)), rng.integers(2, size=600)
y = (X[:, 0] + group + rng.normal(size=600) > 0.5).astype(int)
"""
#: Calls of a process with an empty cache of compiled code, and the seconds that they may take.
FIRST = {
    "first fit, 600 rows": ("ft.TransportClassifier().fit(X, y, sensitive_features=group)", 4.0),
    "first audit, two groups": ("ft.audit(rng.random(600), y, sensitive_features=group)", 3.0),
    "import fairtransport": ("", np.inf),
}
MEMORY = """
import sys, warnings
from benchmarks import waiting
warnings.simplefilter("ignore")
name, n = sys.argv[1], int(sys.argv[2])

def kilobytes(field):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(field))

waiting.fits(*waiting.grown(5_000, 100))[name][0]()  # loads libraries and compiled code
X, y, groups = waiting.grown(n, 100)
call, size = waiting.fits(X, y, groups)[name][0], X.data.nbytes + X.indices.nbytes + y.nbytes + groups.nbytes
with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")
before = kilobytes("VmRSS")
call()
print(f"{1024 * (kilobytes('VmHWM') - before) / size:.1f}")
"""
BUSY = """
import sys, time, warnings
from benchmarks import waiting
warnings.simplefilter("ignore")
call = waiting.fits(*waiting.adult_rows())[sys.argv[1]][0]
call()
began = time.process_time()
call()
print(time.process_time() - began)
"""
COMMAND = "import sys; from fairtransport.cli import main; sys.exit(main())"


def fits(X, y, groups):
    """Default calls by name, each with its peer and how many times as long as that it may take."""

    def fit(make, **options):
        return lambda: make(**options).fit(X, y, sensitive_features=groups)

    transport, boosting = ft.TransportClassifier, ft.TransportBoostingClassifier
    return {
        "COT, automatic weight": (fit(transport), PLAIN, 4.0),
        "COT, weight 1": (fit(transport, parity_weight=1.0), PLAIN, 1.5),
        "DOT, automatic weight": (fit(transport, distance="discrete"), PLAIN, 4.0),
        "COT, own weights, automatic": (fit(transport, group_specific=True), PLAIN, 8.0),
        "blind repair": (fit(partial(ft.BlindRepairClassifier, LogisticRegression(max_iter=1000))), PLAIN, 15.0),
        "boosting, weight 1": (fit(boosting, parity_weight=1.0), TREES, 3.0),
        "boosting, automatic weight": (fit(boosting), TREES, 12.0),
        "frontier, 5 folds, 12 points": (
            lambda: ft.frontier(
                transport(),
                X,
                y,
                sensitive_features=groups,
                parity_weights=np.geomspace(0.1, 30.0, 12),
                random_state=0,
                n_jobs=1,
            ),
            PLAIN,
            25.0,
        ),
    }


def plain_fits(X, y):
    return {
        PLAIN: lambda: LogisticRegression(max_iter=1000).fit(X, y),
        TREES: lambda: lightgbm.LGBMClassifier(n_jobs=1, verbose=-1).fit(X, y),
    }


def profile(call):
    """Return where the time of a call goes: shares of our sub-packages and of other libraries, largest first."""
    profiler, shares = cProfile.Profile(time.process_time), Counter()
    profiler.runcall(call)
    for (file, _, name), (_, _, own, *_) in pstats.Stats(profiler).stats.items():
        parts = Path(file).parts
        if "fairtransport" in parts:
            place = "/".join(parts[len(parts) - parts[::-1].index("fairtransport") :][:2]).removesuffix(".py")
        elif "site-packages" in parts:
            place = parts[parts.index("site-packages") + 1]
        else:
            place = name.strip("<>").removeprefix("built-in method ").partition(" of ")[0] if file == "~" else "Python"
        shares[place] += own
    total = sum(shares.values())
    return ", ".join(f"{place} {own / total:.0%}" for place, own in shares.most_common(5))


def adult_rows(*, quick=False):
    split = adult_split()
    kept = np.arange(split.X_train.shape[0])[:: 10 if quick else 1]
    return split.X_train[kept], split.y_train[kept], np.asarray(split.groups_train.codes)[kept]


def race_fits(report):
    X, y, groups = adult_rows(quick=report.quick)
    ours, rounds = fits(X, y, groups), 1 if report.quick else 3
    calls = {**plain_fits(X, y), **{name: call for name, (call, _, _) in ours.items()}}
    times = _report.race(calls, rounds, timer=time.process_time)
    for name, (call, peer, bar) in ours.items():
        report.add(_report.compare(name, times[name], peer, times[peer], at_most=bar))
        report.note(f"{name}: {_report.seconds(float(np.median(times[name])))}; {profile(call)}")


def grown(n, n_columns=100, filled=10, n_groups=8):
    """CSR rows with a few non-zeros each; a fifth of the columns is more frequent in some groups than in others."""
    rng = np.random.default_rng(0)
    groups, columns = rng.integers(n_groups, size=n), rng.integers(n_columns, size=(n, filled))
    own = rng.random(n) < 0.5
    columns[own, 0] = n_columns - 1 - (groups[own] * 2 + rng.integers(4, size=own.sum())) % (n_columns // 5)
    columns.sort(axis=1)
    X = sparse.csr_matrix((np.ones(n * filled), columns.ravel(), np.arange(n + 1) * filled), (n, n_columns))
    X.sum_duplicates()
    effects = np.random.default_rng(1).normal(size=n_columns)
    return X, (X @ effects + rng.logistic(size=n) > 0).astype(np.int64), groups


def growth(report):
    """Time of 10 and 100 times the rows, and of ten times the columns with as many non-zeros in a row; memory."""
    n = 1_000 if report.quick else 10_000
    sizes = {"rows": (n, 100), "10 x rows": (10 * n, 100), "100 x rows": (100 * n, 100), "10 x columns": (n, 1_000)}
    samples = {size: fits(*grown(rows, columns)) for size, (rows, columns) in sizes.items()}
    for name, (first, _, _) in samples["rows"].items():
        first()  # so that no compilation is counted
        times = {size: _report.clock(samples[size][name][0], time.process_time) for size in sizes}
        found = ", ".join(f"{size} {times[size] / times['rows']:.1f} x" for size in sizes if size != "rows")
        command = [sys.executable, "-c", MEMORY, name, str(100 * n)]
        peak = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout.split()[-1]
        found = f"{found}; memory at 100 x rows {peak} x that of the rows, beside them"
        report.note(f"{name}, time against {n:,} rows x 100 columns: {found}")
    for (name, call), many in zip(audit_calls(5 * n).items(), audit_calls(500 * n).values(), strict=True):
        call()
        times = [_report.clock(each, time.process_time) for each in (call, many)]
        report.note(f"{name}, time of 100 x rows: {times[1] / times[0]:.1f} x")


def of_many_groups(*, quick=False):
    """8,000 rows of 10 and 16 groups: numbers, people by race and sex, and sparse rows."""
    n, rng = 800 if quick else 8_000, np.random.default_rng(0)
    groups, X = rng.integers(16, size=n), rng.normal(size=(n, 20))
    X[:, :4] += 0.3 * rng.normal(size=(16, 4))[groups]
    numbers = X, (0.5 * X[:, :6].sum(axis=1) + rng.logistic(size=n) > 0).astype(int), groups
    adult = ft.datasets.load_adult()
    rows = rng.permutation(len(adult.target))[:n]
    crossed = adult.sensitive_features.iloc[rows].astype(str).agg("-".join, axis=1).to_numpy()
    people = pd.get_dummies(adult.data.drop(columns=["race", "sex"]), dtype=float).to_numpy()[rows]
    return {
        "16 groups, 20 numbers": numbers,
        "Adult by race and sex": (sparse.csr_matrix(people), np.asarray(adult.target)[rows], crossed),
        "16 groups, 100 sparse columns": grown(n, 100, n_groups=16),
    }


def many_groups(report):
    for name, (X, y, groups) in of_many_groups(quick=report.quick).items():
        call, peer, bar = fits(X, y, groups)["boosting, automatic weight"]
        calls = {peer: plain_fits(X, y)[peer], name: call}
        times = _report.race(calls, 1 if report.quick else 5, timer=time.process_time)
        report.add(_report.compare(f"boosting, automatic weight, {name}", times[name], peer, times[peer], at_most=bar))
        report.note(f"{name}: {_report.seconds(float(np.median(times[name])))}; {profile(call)}")


def audit_calls(n):
    rng = np.random.default_rng(0)
    group = rng.choice(4, size=n, p=[0.6, 0.25, 0.1, 0.05])
    scores = rng.beta(2.0 + 0.1 * group, 3.0)
    y = (rng.random(n) < scores).astype(int)
    inference = ft.auditing.Inference(n_bootstrap=1_000, n_permutations=1_000)
    return {
        f"audit, {n:,} rows with labels": lambda: ft.audit(scores, y, sensitive_features=group, inference=inference),
        f"rank_disparity, {n:,} scores": lambda: ft.metrics.rank_disparity(scores, sensitive_features=group),
    }


def audits(report):
    rng = np.random.default_rng(0)
    (name, audit), _ = audit_calls(4_600 if report.quick else 46_000).items()
    many = rng.random(300_000 if report.quick else 3_000_000)
    halves = rng.integers(2, size=many.size)
    ranks = "rank_disparity, 3 million scores"
    calls = {
        name: audit,
        ranks: lambda: ft.metrics.rank_disparity(many, sensitive_features=halves),
        SORT: lambda: np.sort(many),
    }
    times = _report.race(calls, 1 if report.quick else 3, timer=time.process_time)
    report.note(f"{name}: {np.median(times[name]):.2f} s, required .8; {profile(audit)}")
    report.add(_report.compare(ranks, times[ranks], SORT, times[SORT], at_most=2.0))


def busy(report):
    """Processor time with as many threads as libraries want, beside a busy process for each core."""
    spin = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(spin) for _ in range(os.cpu_count() or 1)]
    open_threads = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    try:
        for name in list(fits(*grown(100)))[:1] if report.quick else fits(*grown(100)):
            one, many = (
                float(subprocess.run(
                    [sys.executable, "-c", BUSY, name], check=True, env=env, cwd=ROOT, stdout=subprocess.PIPE, text=True
                ).stdout.split()[-1])
                for env in (dict(os.environ), open_threads)
            )  # fmt: skip
            report.note(f"{name}, default threads and busy cores: {many / one:.2f} x the processor time of one thread")
    finally:
        for process in others:
            process.kill()
            process.wait()


def in_process(code, cache, *arguments):
    """Return the processor seconds of a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONDONTWRITEBYTECODE": ""}  # as installers write it
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *arguments], check=True, env=environment, cwd=ROOT,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def processes(report):
    rounds = 1 if report.quick else 3
    for name, (call, bar) in FIRST.items():
        used = []
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as cache:
                used.append(in_process(f"{PREPARE}\n{call}", cache))
        required = "" if bar == np.inf else f", required {bar:g}: {_report.met(float(np.median(used)) <= bar)}"
        report.note(f"{name}, nothing compiled yet: {np.median(used):.1f} s{required}")
    with tempfile.TemporaryDirectory() as folder:
        write_scores(Path(folder) / "scores.csv", 4_900 if report.quick else 49_000)
        arguments = ("audit", f"{folder}/scores.csv", "--score", "score", "--sensitive", "group", "--label", "hired")
        used = [in_process(COMMAND, folder, *arguments, "--html", f"{folder}/{k}.html") for k in range(rounds + 1)][1:]
    verdict = _report.met(float(np.median(used)) <= 3.0)
    report.note(
        f"audit of a CSV of 49,000 rows, ten groups, labels, page: {np.median(used):.1f} s, required 3: {verdict}"
    )


def write_scores(path, n):
    rng = np.random.default_rng(0)
    group, scores = rng.integers(10, size=n), rng.beta(2.0, 3.0, size=n)
    rows = zip(group, scores, rng.random(n) < scores, strict=True)
    lines = [f"{letter},{score:.6f},{int(label)}" for letter, score, label in rows]
    path.write_text("group,score,hired\n" + "\n".join(lines) + "\n", encoding="utf-8")


def run(report):
    warnings.simplefilter("ignore", ft.FairnessWarning)
    for part in (processes, audits, race_fits, many_groups, busy, growth):
        part(report)
        report.save()
