"""What a user waits for once: the import, and the first fit with nothing compiled yet."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import _report

CLAIM = "Import, and a first fit on an empty cache of compiled code."
ROOT = Path(__file__).parents[1]
FIT = """
import time, numpy as np
import fairtransport as ft
from benchmarks import _ours
rng = np.random.default_rng(0)
X, group = rng.normal(size=(2000, 5)), rng.integers(2, size=2000)
y = (X[:, 0] + group + rng.normal(size=2000) > 0.5).astype(int)
scores = rng.random(2000)
began = time.perf_counter()
{what}
print(time.perf_counter() - began)
"""
CALLS = {
    "COT fit": "_ours.classifier(parity_weight=1.0).fit(X, y, sensitive_features=group)",
    "QuantileRepair fit and transform": "ft.QuantileRepair().fit_transform(scores, sensitive_features=group)",
    "metrics.disparities": "ft.metrics.disparities(scores, sensitive_features=group)",
}
PEERS = {"numpy": "import numpy", "scikit-learn's linear models": "import sklearn.linear_model"}


def python(code, cache):
    settings = {"env": {**os.environ, "NUMBA_CACHE_DIR": cache}, "cwd": ROOT}
    return subprocess.run(
        [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True, **settings
    ).stdout


def run(report):
    rounds = 1 if report.quick else 9
    with tempfile.TemporaryDirectory() as cache:
        calls = {"ours": "import fairtransport", "an empty Python": "pass", **PEERS}
        times = _report.race({name: lambda code=code: python(code, cache) for name, code in calls.items()}, rounds)
    for name in ("an empty Python", *PEERS):
        report.add(_report.compare("import fairtransport", times["ours"], name, times[name]))
    text = ", ".join(f"{row.peer} {_report.seconds(row.peer_s)}" for row in report.rows)
    report.note(f"import fairtransport: {_report.seconds(report.rows[0].ours_s)} ({text})")
    for name, what in CALLS.items():
        cold, warm = [], []
        for _ in range(1 if report.quick else 3):
            with tempfile.TemporaryDirectory() as cache:
                cold.append(float(python(FIT.format(what=what), cache)))
                warm.append(float(python(FIT.format(what=what), cache)))
        first, compiling = (_report.seconds(float(np.median(own))) for own in (warm, cold))
        report.note(f"{name}: first call {first}, with nothing compiled yet {compiling}")
