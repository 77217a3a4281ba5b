"""Metrics and repair of arrays of scores: against one sort, and against scipy and EquiPy."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import wasserstein_distance

from benchmarks import _report
from fairtransport import QuantileRepair, make_groups, metrics
from fairtransport.transport.line import Sample
from fairtransport.transport.targets import w1_barycenter

CLAIM = (
    "Error rate, Wass1, SDD and SPDD of 10 million scores in 8 groups: at most 4 times np.sort of the same scores, and "
    "at least 15 times as fast as scipy.stats.wasserstein_distance pair by pair; 100 million in 24 GiB. Repair of 10 "
    "million scores in 4 groups: at most 2 times np.sort on all cores, at least 10 times as fast as EquiPy."
)
N_GROUPS = 8
MEMORY = """
import resource
import numpy as np
from fairtransport import make_groups, metrics
rng = np.random.default_rng(0)
codes, scores = rng.integers(0, 8, {n}, dtype=np.int8), rng.random({n})
metrics.disparities(scores, sensitive_features=make_groups(codes))
metrics.error_rate(codes > 3, scores)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def scored(n, n_groups, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_groups, n)
    scores = 1 / (1 + np.exp(1 - 0.2 * codes - 1.5 * rng.normal(size=n)))
    return scores, codes, (rng.random(n) < scores).astype(np.int64)


def ours(scores, groups, labels):
    return {"error_rate": metrics.error_rate(labels, scores), **metrics.disparities(scores, sensitive_features=groups)}


def pair_by_pair(scores, codes, labels):
    """The same four with scipy's function for two samples: to the barycenter, to everyone, and of each pair."""
    parts = [scores[codes == code] for code in np.unique(codes)]
    middle = w1_barycenter([Sample.from_values(part) for part in parts]).equal_mass(4096)
    return {
        "error_rate": np.mean((scores > 0.5) != labels),
        "wasserstein_disparity": sum(wasserstein_distance(part, middle) for part in parts),
        "strong_demographic_disparity": sum(wasserstein_distance(part, scores) for part in parts),
        "strong_pairwise_disparity": sum(wasserstein_distance(a, b) for a, b in combinations(parts, 2)),
    }


def race_metrics(report, n, rounds, few):
    scores, codes, labels = scored(n, N_GROUPS)
    text = np.array([f"g{code}" for code in range(N_GROUPS)])[codes]
    columns = {
        "Groups": make_groups(codes), "integers": codes, "short text": text, "pandas text": pd.Series(text),
        "a pandas categorical": pd.Series(text, dtype="category"),
    }  # fmt: skip
    calls = {name: lambda g=column: ours(scores, g, labels) for name, column in columns.items()}
    calls |= {"np.sort": lambda: np.sort(scores), "scipy": lambda: pair_by_pair(scores, codes, labels)}
    found, theirs = calls["Groups"](), calls["scipy"]()
    assert all(calls[name]() == found for name in columns)
    # scipy gets 4096 scores that stand for the barycenter: its distances differ by at most 1 / 4096 a group.
    for name, value in found.items():
        tolerance = {"atol": N_GROUPS / 4096} if name == "wasserstein_disparity" else {"rtol": 1e-9}
        np.testing.assert_allclose(value, theirs[name], **tolerance)
    times = _report.race(calls, rounds, {"scipy": few})
    for name in columns:
        case = f"metrics of {n:,} scores, groups as {name}"
        most = np.inf if name == "pandas text" or report.quick else 4  # most of that time is pandas', reading its text
        least = 0 if report.quick else 15
        report.add(
            _report.compare(case, times[name], "np.sort", times["np.sort"], at_most=most),
            _report.compare(case, times[name], "scipy pair by pair", times["scipy"], at_least=least),
        )


def race_repair(report, n, rounds, few):
    from equipy.fairness import FairWasserstein  # noqa: PLC0415 - a peer that need not be installed

    cores = os.cpu_count() or 1
    scores, codes, _ = scored(n, 4)
    groups = make_groups(codes)
    repair = QuantileRepair(target="barycenter_w2").fit(scores, sensitive_features=groups)
    peer = FairWasserstein(sigma=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # EquiPy's own
        peer.fit(scores, codes)

    def transform(number):
        with _report.our_threads(number):
            return repair.transform(scores, sensitive_features=groups)

    calls = {
        "all": lambda: transform(cores), "one": lambda: transform(1), "np.sort": lambda: np.sort(scores),
        "EquiPy": lambda: peer.transform(scores, codes),
    }  # fmt: skip
    times = _report.race(calls, rounds, {"EquiPy": few})
    for who, text in (("all", f"all {cores} cores"), ("one", "one thread")):
        case = f"repair of {n:,} scores, {text}"
        most, least = (2 if who == "all" and not report.quick else np.inf), 0 if report.quick else 10
        report.add(
            _report.compare(case, times[who], "np.sort (one thread)", times["np.sort"], at_most=most),
            _report.compare(case, times[who], "EquiPy transform", times["EquiPy"], at_least=least),
        )


def run(report):
    n = 100_000 if report.quick else 10_000_000
    race_metrics(report, n, 3 if report.quick else 7, 2)
    race_repair(report, n, 3 if report.quick else 9, 1)
    n = 1_000_000 if report.quick else 100_000_000
    done = subprocess.run([sys.executable, "-c", MEMORY.format(n=n)], check=True, capture_output=True, text=True)
    peak = int(done.stdout) / 1024**2  # Linux counts in kB
    report.note(f"Metrics of {n:,} scores take {peak:.1f} GiB at most; required, 24 GiB: {_report.met(peak <= 24)}.")
