"""One COT update: ours against plain NumPy, torch and JAX."""

from __future__ import annotations

from benchmarks import _timing
from benchmarks._peers import DUAL_STEP, PARAMETER_STEP, PEERS, STRENGTH, Problem, adult, check_equal, make_trainer

CLAIM = "One COT update on Adult (sparse rows, 4 groups, 50 Fourier features) takes a fraction of what peers take."
# Times as long as ours, by batch size; 0: no bar. The bars are for the forms that people write: group by group, as the
# paper's algorithm box reads (NumPy, torch), and compiled with the loop over updates inside (JAX). The batched forms
# stand beside them.
AT_LEAST = {
    100: {"torch eager, group by group": 25.0, "NumPy, group by group": 18.0, "JAX jit + scan": 6.0},
    10: {"torch eager, group by group": 60.0},
}


def per_update(peer, n_updates):
    return lambda: peer.run(n_updates)


def run(report):
    report.settings.update(
        regularizer="l2", opposite_duals=True, pairs="matched", strength=STRENGTH, dual_step=DUAL_STEP,
        parameter_step=PARAMETER_STEP, fourier_features=50, objective="the paper's (no anchor)",
        peers="dense rows, gradients written out, rows drawn by their own generator",
    )  # fmt: skip
    data = adult()
    report.settings["rows and columns"] = f"{data[0].shape[0]} x {data[0].shape[1]}"
    rounds, n_updates = (3, 20) if report.quick else (15, 200)
    for dtype in ("float64", "float32"):
        for batch in (100, 10):
            trainer = make_trainer(batch, dtype, data=data)
            problem = Problem.of(trainer)
            peers = [kind(problem) for kind in PEERS]
            check_equal(trainer, peers)
            many = 10 * n_updates
            calls = {"ours": lambda t=trainer, n=many: t.advance(n, average_from=10**12)}
            calls |= {peer.name: per_update(peer, many if "JAX" in peer.name else n_updates) for peer in peers}
            times = _timing.race(calls, rounds)
            ours = [time / many for time in times["ours"]]
            for peer in peers:
                theirs = [time / (many if "JAX" in peer.name else n_updates) for time in times[peer.name]]
                case = f"batch {batch}, {dtype}"
                report.add(_timing.compare(case, ours, peer.name, theirs, at_least=AT_LEAST[batch].get(peer.name, 0.0)))
    report.note("Before timing, three updates from the same state on the same rows gave the same theta and duals "
                "(1e-6; 1e-3 in float32).")  # fmt: skip


if __name__ == "__main__":
    _timing.main("update", CLAIM, run)
