"""The time of a round of boosting with the transport objective, relative to a plain round."""

from __future__ import annotations

import os

import lightgbm
import numpy as np
import xgboost

from benchmarks import _report
from fairtransport.boosting import TransportObjective
from fairtransport.criteria.criterion import resolve_criterion
from fairtransport.groups import make_groups

CLAIM = (
    "A round with the transport objective takes at most 1.6 times as long as a plain round, one with the library's own "
    "logistic objective: 1 million rows, 30 features, 8 groups."
)
N_GROUPS, N_FEATURES = 8, 30


def make_rows(n):
    """Return features, labels that depend on five of them and on the group, and groups."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, N_FEATURES)).astype(np.float32)
    groups = rng.integers(N_GROUPS, size=n)
    logits = X[:, :5].sum(axis=1) + 0.3 * (groups - 3.5) - 1.0
    return X, (logits + rng.logistic(size=n) > 0.0).astype(np.int64), groups


def objectives(groups, n_rows):
    """Return objectives that are at full weight from the second round on."""
    rng = np.random.default_rng(1)
    probabilities = rng.dirichlet(np.full(N_GROUPS, 0.5), size=n_rows)
    pairs = resolve_criterion("demographic_parity", make_groups(groups)).comparisons()
    settings = {"unit": 0.3, "comparisons": pairs, "ramp": 1}
    return {
        "continuous": TransportObjective(groups, distance="continuous", **settings),
        "discrete": TransportObjective(groups, distance="discrete", **settings),
        "continuous, groups smoothed": TransportObjective(
            groups, distance="continuous", group_probabilities=probabilities, **settings
        ),
    }


def lightgbm_rounds(X, y, groups, n_threads):
    settings = {"verbose": -1, "num_threads": n_threads, "seed": 0}
    data = lightgbm.Dataset(X, y, params=settings).construct()
    plain = lightgbm.Booster({"objective": "binary", **settings}, data)
    calls = {"plain": plain.update}
    for name, objective in objectives(groups, len(y)).items():
        booster = lightgbm.Booster({"objective": "none", **settings}, data)
        calls[name] = lambda booster=booster, objective=objective: booster.update(fobj=objective)
    return calls


def xgboost_rounds(X, y, groups, n_threads):
    settings = {"nthread": n_threads, "objective": "binary:logistic", "seed": 0}
    data = xgboost.QuantileDMatrix(X, y, nthread=n_threads)
    calls = {}
    for name, objective in {"plain": None, **objectives(groups, len(y))}.items():
        booster, rounds = xgboost.Booster(settings, [data]), iter(range(10_000))

        def update(booster=booster, objective=objective, rounds=rounds):
            booster.update(data, next(rounds), fobj=objective)

        calls[name] = update
    return calls


def run(report):
    cores = os.cpu_count() or 1
    n, rounds = (50_000, 5) if report.quick else (1_000_000, 15)
    X, y, groups = make_rows(n)
    report.settings.update(
        rows=n, features=N_FEATURES, groups=N_GROUPS, lightgbm=lightgbm.__version__, xgboost=xgboost.__version__,
        trees="library defaults",
    )  # fmt: skip
    for library, make in (("LightGBM", lightgbm_rounds), ("XGBoost", xgboost_rounds)):
        for n_threads in sorted({1, cores}):
            threads = "one thread" if n_threads == 1 else f"{n_threads} threads"
            with _report.threads(n_threads):
                times = _report.race(make(X, y, groups, n_threads), rounds)
            for kind, seconds in times.items():
                if kind != "plain":
                    report.add(
                        _report.compare(
                            f"{library}, {kind}, {threads}", seconds, "plain round", times["plain"], at_most=1.6
                        )
                    )
