"""The optimal dual variables of two samples: `solve_dual` against POT's stochastic solvers, to the same accuracy."""

from __future__ import annotations

import numpy as np
import ot
from scipy.special import logsumexp

from benchmarks import _timing
from fairtransport import solve_dual

CLAIM = (
    "Time to within 1 % of the optimal value of the entropic dual. POT keeps a variable for each row and needs the "
    "matrix of costs; solve_dual draws batches and does not know how many rows there are."
)
STRENGTH, WITHIN, SEEDS = 0.1, 0.01, range(3)
BUDGETS = [2**k for k in range(7, 15)]


class Samples:
    """Two samples of scores and the exact optimum."""

    def __init__(self, n):
        rng = np.random.default_rng(0)
        self.n, self.x, self.y = n, rng.beta(2, 4, n), rng.beta(3, 2, n)
        self.cost = np.abs(self.x[:, None] - self.y)
        self.share = np.full(n, 1 / n)
        u = v = np.zeros(n)
        for _ in range(200):
            u = -STRENGTH * logsumexp((v - self.cost) / STRENGTH, axis=1, b=1 / n)
            v = -STRENGTH * logsumexp((u[:, None] - self.cost) / STRENGTH, axis=0, b=1 / n)
        self.best = self.value(u, v)

    def value(self, u, v):
        with np.errstate(over="ignore", invalid="ignore"):
            return u.mean() + v.mean() - STRENGTH * np.mean(np.exp((u[:, None] + v - self.cost) / STRENGTH))


def ours(samples, budget, seed):
    found = solve_dual(
        samples.x, samples.y, strength=STRENGTH, regularizer="entropy", kernel_variance=0.1, n_updates=budget,
        random_state=seed,
    )  # fmt: skip
    return found.x_dual(samples.x), found.y_dual(samples.y)


def dual_descent(samples, budget, seed, size):
    with np.errstate(over="ignore", invalid="ignore"):
        return ot.stochastic.sgd_entropic_regularization(
            samples.share, samples.share, samples.cost, STRENGTH, 100, budget, size, random_state=seed
        )


def semi_dual(solver):
    def call(samples, budget, seed):
        v = solver(samples.share, samples.share, samples.cost, STRENGTH, budget, random_state=seed)
        return ot.stochastic.c_transform_entropic(samples.share, samples.cost, STRENGTH, v), v

    return call


PEERS = {
    "POT dual SGD, its step (1)": lambda *given: dual_descent(*given, size=1),
    "POT dual SGD, best step of 1 to 1000": None,
    "POT semi-dual SAG": semi_dual(ot.stochastic.sag_entropic_transport),
    "POT semi-dual averaged SGD": semi_dual(ot.stochastic.averaged_sgd_entropic_transport),
}


def enough(samples, call):
    """The smallest budget that gets there on average, or None."""
    for budget in BUDGETS:
        values = [samples.value(*call(samples, budget, seed)) for seed in SEEDS]
        if np.mean(values) >= (1 - WITHIN) * samples.best:
            return budget
    return None


def best_descent(samples):
    found = {}
    for size in (1, 10, 100, 1000):
        budget = enough(samples, lambda *given, size=size: dual_descent(*given, size=size))
        if budget:
            found[size] = budget
    size = min(found, key=found.get, default=None)
    return None if size is None else (lambda *given: dual_descent(*given, size=size))


def run(report):
    report.settings.update(regularizer="entropy", strength=STRENGTH, accuracy=WITHIN, most=f"{BUDGETS[-1]} steps")
    for n in (300,) if report.quick else (300, 2_000, 8_000):
        samples = Samples(n)
        solvers = {"ours": ours, **PEERS}
        solvers["POT dual SGD, best step of 1 to 1000"] = best_descent(samples)
        budgets = {name: enough(samples, call) for name, call in solvers.items() if call is not None}
        ready = {name: budget for name, budget in budgets.items() if budget}
        if "ours" not in ready:
            report.note(f"{n:,} rows: ours did not get there in {BUDGETS[-1]} steps.")
            continue
        calls = {
            name: lambda call=solvers[name], budget=budget: call(samples, budget, 0)  # noqa: B023 - called in this turn
            for name, budget in ready.items()
        }
        times = _timing.race(calls, 3 if report.quick else 9)
        for name in PEERS:
            if name in ready:
                case = f"{n:,} rows ({ready['ours']:,} steps, theirs {ready[name]:,})"
                report.add(_timing.compare(case, times["ours"], name, times[name]))
            else:
                report.note(f"{n:,} rows: {name} did not get within 1 % in {BUDGETS[-1]:,} steps.")
    report.note("A ratio below 1 means that POT was faster. The matrix of costs is made before POT's time starts.")


if __name__ == "__main__":
    _timing.main("ot_stochastic", CLAIM, run)
