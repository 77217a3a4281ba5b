"""``python -m fairtransport.compile`` compiles what default calls use, for installers and containers.

Functions are otherwise compiled when they are first called, which takes seconds. The compiled code goes where that of
any call goes (see the documentation on installing); ``NUMBA_CACHE_DIR`` names another folder.
"""

from __future__ import annotations

import sys
import time
import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import fairtransport as ft


def calls(n: int = 4_000) -> dict[str, Any]:
    """Return calls of everything that is compiled on default paths, by name."""
    rng = np.random.default_rng(0)
    codes, X = rng.integers(3, size=n), rng.normal(size=(n, 4))
    numbers, groups = X.sum(axis=1) + codes + rng.normal(size=n), np.array(["a", "b", "c"])[codes]
    labels, scores = (numbers > 1.0).astype(int), 1.0 / (1.0 + np.exp(-numbers))

    def fit(model: Any, y: Any = labels) -> Any:
        return lambda: model.fit(X, y, sensitive_features=groups)

    every = {
        "audit": lambda: ft.audit(scores, labels, sensitive_features={"number": codes, "name": groups}),
        "training, continuous": fit(ft.TransportClassifier()),
        "training, discrete": fit(ft.TransportClassifier(distance="discrete")),
        "training, own weights": fit(ft.TransportClassifier(group_specific=True)),
        "regression": fit(ft.TransportRegressor(), numbers),
        "updates": lambda: ft.TransportClassifier().fit(X, labels, sensitive_features=groups).partial_fit(
            X, labels, sensitive_features=groups
        ),
        "quantile repair": fit(ft.QuantileRepairClassifier(LogisticRegression())),
        "blind repair": fit(ft.BlindRepairClassifier(LogisticRegression())),
    }  # fmt: skip
    if find_spec("lightgbm") is not None:
        every["boosted trees"] = fit(ft.TransportBoostingClassifier())
    return every


def main() -> int:
    """Run each call once, and say how long it took."""
    for name, call in calls().items():
        began = time.perf_counter()
        with warnings.catch_warnings(action="ignore"):  # of models of a few random rows
            call()
        print(f"{name}: {time.perf_counter() - began:.1f} s", flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
