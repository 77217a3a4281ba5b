"""What a user waits for once: the import, and the first fit with nothing compiled yet."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from benchmarks import _timing

CLAIM = "Import, and a first fit on an empty cache of compiled code."
IMPORT = "import fairtransport"
FIT = """
import time, numpy as np
import fairtransport as ft
rng = np.random.default_rng(0)
X, group = rng.normal(size=(2000, 5)), rng.integers(2, size=2000)
y = (X[:, 0] + group + rng.normal(size=2000) > 0.5).astype(int)
scores = rng.random(2000)
began = time.perf_counter()
{what}
print(time.perf_counter() - began)
"""
CALLS = {
    "COT fit": "ft.ContinuousTransportClassifier(parity_weight=1.0).fit(X, y, sensitive_features=group)",
    "QuantileRepair fit and transform": "ft.QuantileRepair().fit_transform(scores, sensitive_features=group)",
    "metrics.disparities": "ft.metrics.disparities(scores, sensitive_features=group)",
}
PEERS = {"numpy": "import numpy", "scikit-learn's linear models": "import sklearn.linear_model"}


def python(code, cache):
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "NUMBA_CACHE_DIR": cache}, check=True, capture_output=True,
        text=True,
    )  # fmt: skip
    return done.stdout


def run(report):
    rounds = 2 if report.quick else 9
    with tempfile.TemporaryDirectory() as cache:
        calls = {"ours": IMPORT, "fit": "import fairtransport.linear", "nothing": "pass", **PEERS}
        times = _timing.race({name: lambda code=code: python(code, cache) for name, code in calls.items()}, rounds)
    for peer in ("nothing", *PEERS):
        told = "an empty Python" if peer == "nothing" else f"import of {peer}"
        report.add(_timing.compare("import fairtransport", times["ours"], told, times[peer]))
    report.add(_timing.compare("import fairtransport.linear", times["fit"], "an empty Python", times["nothing"]))
    for name, what in CALLS.items():
        cold, warm = [], []
        for _ in range(1 if report.quick else 3):
            with tempfile.TemporaryDirectory() as cache:
                cold.append(float(python(FIT.format(what=what), cache)))
                warm.append(float(python(FIT.format(what=what), cache)))
        report.add(_timing.compare(f"{name}: first call, compiled before", warm, "nothing compiled yet", cold))
    report.note(
        "The last rows compare us with ourselves: the ratio is what compiling costs, once for each installation."
    )


if __name__ == "__main__":
    _timing.main("startup", CLAIM, run)
