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
                transport(), X, y, sensitive_features=groups, parity_weights=np.geomspace(0.1, 30.0, 12), random_state=0
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


def race_fits(report):
    split = adult_split()
    kept = np.arange(split.X_train.shape[0])[:: 10 if report.quick else 1]
    X, y, groups = split.X_train[kept], split.y_train[kept], np.asarray(split.groups_train.codes)[kept]
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
    """Time of ten times the rows, and of ten times the columns with as many non-zeros in a row."""
    n = 2_000 if report.quick else 10_000
    sizes = {"rows": (n, 100), "10 x rows": (10 * n, 100), "10 x columns": (n, 1_000)}
    named = ("COT, automatic weight", "COT, weight 1", "DOT, automatic weight", "boosting, weight 1")
    samples = {size: fits(*grown(rows, columns)) for size, (rows, columns) in sizes.items()}
    for name in named:
        times = {size: _report.clock(samples[size][name][0], time.process_time) for size in sizes}
        rows, columns = (times[size] / times["rows"] for size in ("10 x rows", "10 x columns"))
        report.note(f"{name}, {n:,} rows x 100 columns: 10 x rows {rows:.1f} x the time, 10 x columns {columns:.1f} x")


def audits(report):
    rng, n = np.random.default_rng(0), 4_600 if report.quick else 46_000
    group = rng.choice(4, size=n, p=[0.6, 0.25, 0.1, 0.05])
    scores = rng.beta(2.0 + 0.1 * group, 3.0)
    y = (rng.random(n) < scores).astype(int)
    inference = ft.auditing.Inference(n_bootstrap=1_000, n_permutations=1_000)
    many = rng.random(300_000 if report.quick else 3_000_000)
    halves = rng.integers(2, size=many.size)
    calls = {
        "audit, 46,000 rows with labels": lambda: ft.audit(scores, y, sensitive_features=group, inference=inference),
        "rank_disparity, 3 million scores": lambda: ft.metrics.rank_disparity(many, sensitive_features=halves),
        SORT: lambda: np.sort(many),
    }
    times = _report.race(calls, 1 if report.quick else 3, timer=time.process_time)
    audit, ranks, peer = times.values()
    report.note(f"{next(iter(calls))}: {np.median(audit):.2f} s, required .8; {profile(next(iter(calls.values())))}")
    report.add(_report.compare("rank_disparity, 3 million scores", ranks, SORT, peer, at_most=2.0))


def in_process(code, cache, *arguments):
    """Return the processor seconds of a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
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
    for part in (processes, audits, race_fits, growth):
        part(report)
        report.save()
