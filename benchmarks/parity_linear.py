"""Demographic parity of linear models: error at equal disparity, ours and peers, group known or not."""

from __future__ import annotations

from functools import partial

from benchmarks import _ours, _peers, _tasks
from benchmarks._curves import Case, Method, run_cases

CLAIM = (
    "Error at equal SPDD (strong pairwise demographic disparity) of linear models on test rows. Counted are the points "
    "of peers at which the best of our curves is not above the peer's error by more than one standard error."
)
WEIGHTS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
AMOUNTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
PENALTIES = (0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 1.0, 2.0, 5.0)
BOUNDS = (0.001, 0.01, 0.02, 0.04, 0.08, 0.14)
LEFT = tuple(round(1.0 - amount, 2) for amount in AMOUNTS)
fairlearn = partial(_peers.exponentiated_gradient, criterion="demographic_parity", mean_score=True)


def transport(prefix="", **options):
    """Return both distances, along the path of weights and along amount."""
    return tuple(
        Method(f"{name}{prefix}{along}", partial(run, distance=distance, **options), grid, ours=True)
        for name, distance in (("COT", "continuous"), ("DOT", "discrete"))
        for along, run, grid in (("", _ours.linear, WEIGHTS), (", amount", _ours.linear_amount, AMOUNTS))
    )


BLIND = (
    *transport(),
    Method("fairlearn", fairlearn, BOUNDS),
    Method("fairret", partial(_peers.fairret, loss="lse"), PENALTIES),
    Method("fairret, norm", partial(_peers.fairret, loss="norm1"), PENALTIES),
    Method("Jiang et al.", _peers.jiang, PENALTIES),
    Method("reweighing", _peers.reweighing, (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)),
)
AWARE = (
    *BLIND,
    *transport(", group-specific", group_specific=True),
    Method("QuantileRepair", _ours.repair, AMOUNTS, ours=True),
    Method("EquiPy", _peers.equipy, LEFT),
    Method("Jiang et al., weights for each group", partial(_peers.jiang, own_weights=True), PENALTIES),
)
DATA = {"Adult": (1, 50), "German": (30, 0), "Communities": (10, 0)}  # splits, and resamples of test rows
AT = {("Adult", "aware"): (0.06, 0.12, 0.16), ("Adult", "blind"): (0.073, 0.13, 0.255)}
CASES = [
    Case(
        f"{name}, {situation}", _tasks.paper, n_tasks, methods, ("SPDD",), AT.get((name, situation), ()), n_bootstrap,
        {"data": name, "aware": situation == "aware", "base": "linear"},
    )
    for name, (n_tasks, n_bootstrap) in DATA.items()
    for situation, methods in (("aware", AWARE), ("blind", BLIND))
]  # fmt: skip


def run(report):
    run_cases(report, CASES)
