"""Equalized odds: error at equal difference, ours and peers, on Adult by sex and COMPAS by race."""

from __future__ import annotations

from functools import partial

from benchmarks import _ours, _peers, _tasks
from benchmarks._curves import Case, Method, run_cases

CLAIM = (
    "Equalized odds on test rows, by the difference of rates at .5 and by the separation disparity of scores (a sum "
    "over labels; of decisions, for peers that only decide). Counted are the points of peers at which the best of our "
    "curves is not above the peer's error by more than one standard error."
)
ODDS = {"criterion": "equalized_odds"}
WEIGHTS = (0.03, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 5.0)
SLACKS = (0.15, 0.1, 0.075, 0.05, 0.03, 0.02, 0.01, 0.005, 0.0)
BOUNDS = (0.001, 0.01, 0.02, 0.04, 0.06, 0.1, 0.15, 0.2)
AMOUNTS = (0.25, 0.5, 0.75, 1.0)


def linear(name, **options):
    return Method(name, partial(_ours.linear, **ODDS, **options), WEIGHTS, ours=True)


def fairlearn(bounds, max_iter=50):
    peer = partial(_peers.exponentiated_gradient, max_iter=max_iter, **ODDS)
    return Method("fairlearn ExponentiatedGradient", peer, bounds)


BASES = {
    "linear": (
        linear("COT"), linear("DOT", distance="discrete"), linear("COT, initial spread", spread="initial"),
        fairlearn((0.01, 0.03, 0.08)),
    ),
    "trees": (
        Method("boosting", partial(_ours.boosted, **ODDS), (0.02, 0.05, 0.1, 0.3, 0.6, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0),
               ours=True),
        fairlearn((0.02,), max_iter=10),  # minutes for each model of Adult
    ),
}  # fmt: skip
SITUATIONS = {
    "aware": (
        Method("repair", partial(_ours.repair, **ODDS), AMOUNTS, ours=True),
        Method("repair, randomised", partial(_ours.repair, randomize=True, **ODDS), AMOUNTS, ours=True),
        Method("fairlearn ThresholdOptimizer", _peers.threshold_optimizer, (0.0,)),
    ),
    "blind": (
        Method("blind repair", partial(_ours.blind_repair, loss="squared", **ODDS), SLACKS, ours=True),
        Method("blind repair of decisions", partial(_ours.blind_repair, loss="zero_one", **ODDS), SLACKS, ours=True),
    ),
}
BOTH = (
    Method("LinearPost", partial(_peers.linear_post, **ODDS), BOUNDS),
    Method("OxonFair", partial(_peers.oxonfair, **ODDS), BOUNDS),
)
OWN = {("linear", "aware"): (linear("COT, group-specific", group_specific=True),)}
DATA = {"Adult, sex": (_tasks.adult_sex, 3, 50), "COMPAS, two races": (_tasks.compas, 10, 0)}
CASES = [
    Case(
        f"{name}, {base}, {situation}", make, n_tasks,
        (*BOTH, *BASES[base], *SITUATIONS[situation], *OWN.get((base, situation), ())),
        ("odds difference", "separation"), (), n_bootstrap, {"aware": situation == "aware", "base": base},
    )
    for name, (make, n_tasks, n_bootstrap) in DATA.items()
    for base in BASES
    for situation in SITUATIONS
]  # fmt: skip


def run(report):
    run_cases(report, CASES)
