"""Updates of the paper's algorithm (COT by SGD): ours against NumPy, torch and JAX, a whole fit, and growth."""

from __future__ import annotations

import numpy as np

from benchmarks import _ours, _report
from benchmarks._update_peers import DUAL_STEP, PARAMETER_STEP, PEERS, Problem, adult, check_equal, make_trainer
from benchmarks.waiting import grown

CLAIM = (
    "One update of continuous optimal transport on Adult (sparse rows, 4 groups, 50 Fourier features) takes a fraction "
    "of what peers take, and a fit of 100,000 updates at batch 100 less than JAX needs for the updates alone."
)
JAX = "JAX jit + scan"
AT_LEAST = {  # times as long as ours, by batch size
    100: {"torch eager, group by group": 25.0, "NumPy, group by group": 18.0, JAX: 6.0},
    10: {"torch eager, group by group": 60.0},
}
FIT_AT_LEAST, N_GROWTH = 4.0, 200


def race_updates(report, data):
    rounds, n_updates = (2, 10) if report.quick else (15, 200)
    for dtype in ("float64", "float32"):
        for batch in (100, 10):
            trainer = make_trainer(data, batch, dtype)
            problem = Problem.of(trainer)
            peers = [kind(problem) for kind in PEERS]
            check_equal(trainer, peers)
            counts = {"ours": 10 * n_updates, **dict.fromkeys([peer.name for peer in peers], n_updates)}
            counts[JAX] = 10 * n_updates
            calls = {"ours": lambda t=trainer, n=counts["ours"]: t.advance(n, average_from=10**12)}
            calls |= {peer.name: lambda p=peer, n=counts[peer.name]: p.run(n) for peer in peers}
            times = {name: np.array(own) / counts[name] for name, own in _report.race(calls, rounds).items()}
            for peer in peers:
                bar = AT_LEAST[batch].get(peer.name, 0.0)
                case = f"batch {batch}, {dtype}"
                report.add(_report.compare(case, times["ours"], peer.name, times[peer.name], at_least=bar))


def race_fit(report, data):
    n_updates, rounds = (1_000, 1) if report.quick else (100_000, 3)
    X, y, sensitive = data
    trainer = make_trainer(data, 100)
    peer = PEERS[-1](Problem.of(trainer))
    model = _ours.sgd_classifier(dual_step=DUAL_STEP, parameter_step=PARAMETER_STEP, n_updates=n_updates)
    calls = {"fit": lambda: model.fit(X, y, sensitive_features=sensitive), JAX: lambda: peer.run(n_updates)}
    times = _report.race(calls, rounds)
    case = f"fit: initial model, {n_updates:,} updates, history"
    report.add(_report.compare(case, times["fit"], f"{JAX}, updates only", times[JAX], at_least=FIT_AT_LEAST))


def growth(report):
    curves = {
        "rows": ([1_000, 10_000, 100_000], lambda n: make_trainer(grown(n), 100)),
        "batch": ([10, 100, 1_000], lambda n: make_trainer(grown(20_000), n)),
        "non-zeros of a row": ([2, 10, 50], lambda n: make_trainer(grown(20_000, filled=n), 100)),
        "Fourier features": ([10, 50, 200, 800], lambda n: make_trainer(grown(20_000), 100, n_features=n)),
        "groups": ([2, 8, 32], lambda n: make_trainer(grown(20_000, n_groups=n), 100)),
    }
    for name, (sizes, make) in curves.items():
        trainers = {str(size): make(size) for size in sizes[: 2 if report.quick else None]}
        calls = {size: lambda t=one: t.advance(N_GROWTH, average_from=10**12) for size, one in trainers.items()}
        times = _report.race(calls, 2 if report.quick else 7)
        medians = {size: float(np.median(own)) / N_GROWTH for size, own in times.items()}
        report.data.setdefault("curves", {})[name] = medians
        text = ", ".join(f"{int(size):,}: {_report.seconds(value)}" for size, value in medians.items())
        report.note(f"time of an update by {name}: {text}")


def run(report):
    data = adult()
    race_updates(report, data)
    race_fit(report, data)
    growth(report)
