"""The cells of the benchmark in the order in which they run, and the methods of each with their settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.field import ours, peers
from benchmarks.field.tasks import SOURCES

PARITY, ODDS = "demographic_parity", "equalized_odds"
ANCHORS = "Adult, sex, all rows"
CLASSES = tuple(name for name, source in SOURCES.items() if not source.regression and name != ANCHORS)
NUMBERS = tuple(name for name, source in SOURCES.items() if source.regression)
FROM_BASE = ("quantile repair", "blind repair, amount")  # with amount 0 they are the base model
AMOUNTS = (0.2, 0.4, 0.6, 0.8, 0.9, 1.0)
WEIGHTS = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 2.0, 5.0)
SLACKS = (0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.0)
BOUNDS = (0.15, 0.1, 0.06, 0.03, 0.01, 0.001)
PENALTIES = (0.02, 0.05, 0.1, 0.2, 0.4, 1.0, 3.0)
FEW_PENALTIES = (0.05, 0.2, 0.4, 1.0)
BOOSTED = tuple((weight, amount) for weight in (0.5, 2.0, 8.0) for amount in (0.6, 0.8, 1.0))
BOOSTED_REPAIR = tuple((weight, amount) for weight in (0.0, 0.05) for amount in (0.5, 0.75, 0.9, 1.0))


@dataclass(frozen=True)
class Cell:
    """A data set, whether the group is known, the base model and the criterion."""

    data: str
    regime: str
    base: str
    criterion: str

    @property
    def aware(self):
        return self.regime == "aware"

    @property
    def regression(self):
        return SOURCES[self.data].regression

    def __str__(self):
        criterion = "parity" if self.criterion == PARITY else "equalized odds"
        return f"{self.data}, {self.regime}, {self.base}, {criterion}"


@dataclass(frozen=True)
class Method:
    """A curve: ``run(task, grid)`` yields settings with scores, or with None and probabilities of the decision 1."""

    name: str
    run: Callable[..., Iterator[tuple[Any, ...]]]
    grid: tuple[Any, ...]
    ours: bool = False
    needs: tuple[str, ...] = ()  # predictions of the base model that are made before the clock starts


def cells():
    """Yield cells, the most telling first: linear models before trees, both before networks, the slowest."""
    both = ("blind", "aware")
    yield from (Cell(name, regime, "linear", PARITY) for name in CLASSES for regime in both)
    yield Cell(ANCHORS, "aware", "network", PARITY)
    yield from (Cell(name, regime, "linear", PARITY) for name in NUMBERS for regime in both)
    yield from (Cell(name, regime, "trees", PARITY) for name in (*CLASSES, *NUMBERS) for regime in both)
    for base, criterion in (("linear", ODDS), ("trees", ODDS), ("network", PARITY), ("network", ODDS)):
        yield from (Cell(name, regime, base, criterion) for name in CLASSES for regime in both)


def recommended(cell):
    """The one of our methods that the documentation names first, chosen before any test row was seen."""
    return "quantile repair" if cell.aware else "blind repair, amount"


def methods(cell, folder=None):
    """Yield the methods of a cell, the cheapest first."""
    yield Method("base model", peers.plain, (0.0,), needs=("scores",))
    odds = {} if cell.criterion == PARITY else {"criterion": ODDS}
    yield from _repairs(cell, odds)
    if cell.base == "linear":
        yield from _linear(cell, odds)
    if cell.base == "trees":
        yield Method("boosting", partial(ours.boosted, **odds), BOOSTED, ours=True)
        if cell.aware and not odds:
            yield Method("boosting, repaired", ours.boosted_repair, BOOSTED_REPAIR, ours=True)
        if not (odds or cell.regression):
            yield Method("fair-trees", peers.fair_trees, (0.2, 0.4, 0.6, 0.8, 0.95))
    if cell.base == "network":
        yield from _networks(cell, odds)
    if cell.aware and not odds:
        grid = tuple(round(1.0 - amount, 2) for amount in AMOUNTS)
        yield Method("EquiPy", peers.equipy, grid, needs=("scores",))
        if cell.base != "network":
            yield Method("fairlearn, correlation remover", peers.correlation_remover, (0.3, 0.6, 0.8, 0.9, 1.0))
    if not cell.regression and cell.data != ANCHORS:  # decisions have no such figures
        yield from _of_decisions(cell, folder)


NETWORK_PENALTIES = {
    "HSIC": (1.0, 3.0, 10.0, 30.0, 100.0), "DiffDP": (0.1, 0.3, 1.0, 3.0, 10.0),
    "adversary": (0.1, 0.3, 1.0, 3.0, 10.0), "fairret": (0.1, 0.3, 1.0, 3.0, 10.0),
}  # fmt: skip


def _repairs(cell, odds):
    if cell.aware:
        yield Method("quantile repair", partial(ours.repair, **odds), AMOUNTS, ours=True, needs=("scores",))
        if odds:
            run = partial(ours.repair, randomize=True, **odds)
            yield Method("quantile repair, randomised", run, AMOUNTS, ours=True, needs=("scores",))
        return
    needs = ("scores", "joint" if odds else "shares")
    yield Method("blind repair, amount", partial(ours.blind_amounts, **odds), AMOUNTS, ours=True, needs=needs)
    yield Method("blind repair, slack", partial(ours.slacks, **odds), SLACKS, ours=True, needs=needs)
    if not cell.regression:
        run = partial(ours.slacks, loss="zero_one", **odds)
        yield Method("blind repair of decisions", run, SLACKS, ours=True, needs=needs)


def _linear(cell, odds):
    yield Method("COT", partial(ours.weights, **odds), WEIGHTS, ours=True)
    yield Method("DOT", partial(ours.weights, distance="discrete", **odds), WEIGHTS, ours=True)
    yield Method("COT, amount", partial(ours.amounts, **odds), AMOUNTS, ours=True)
    yield Method("DOT, amount", partial(ours.amounts, distance="discrete", **odds), AMOUNTS, ours=True)
    if cell.aware:
        run = partial(ours.amounts, group_specific=True, **odds)
        yield Method("COT, own weights, amount", run, AMOUNTS, ours=True)
    if odds:
        run = partial(ours.weights, spread="initial", **odds)
        yield Method("COT, initial spread", run, WEIGHTS, ours=True)
    elif not cell.regression:
        yield Method("fairret", peers.fairret, FEW_PENALTIES)
        yield Method("Jiang et al.", peers.jiang, PENALTIES)
        if cell.aware and cell.data == "German, age":  # minutes for each of more rows
            yield Method("AIF360, prejudice remover", peers.prejudice_remover, (1.0, 5.0, 25.0, 100.0))


def _networks(cell, odds):
    grid = (0.2, 0.5, 1.0, 2.0, 4.0, 10.0)
    yield Method("network, transport penalty", partial(ours.network, **odds), grid, ours=True)
    for name, grid in NETWORK_PENALTIES.items():
        yield Method(f"network, {name}", partial(peers.network, penalty=name, **odds), grid)
    if not odds and "race x sex" not in cell.data and cell.data != ANCHORS:  # two groups, and a network of its own
        yield Method("AIF360, adversarial debiasing", peers.adversarial_debiasing, (0.03, 0.1, 0.3, 1.0))


def _of_decisions(cell, folder):
    criterion = {"criterion": cell.criterion}
    if cell.criterion == PARITY and cell.base != "network":
        yield Method("reweighing", peers.reweighing, (0.25, 0.5, 0.75, 1.0, 1.5, 2.0))
    if cell.aware:
        run, tolerances = (
            partial(peers.threshold_optimizer, **criterion),
            BOUNDS[:4] if cell.criterion == PARITY else (),
        )
        yield Method("fairlearn, threshold optimizer", run, (0.0, *tolerances), needs=("scores",))
    needs = ("scores", "shares", "joint")
    yield Method("LinearPost", partial(peers.linear_post, folder=folder, **criterion), BOUNDS, needs=needs)
    if "race x sex" not in cell.data:  # its search grows by a factor of 30 with each group
        yield Method("OxonFair", partial(peers.oxonfair, **criterion), BOUNDS, needs=("scores", "shares"))
    if cell.base != "network":
        run = partial(peers.exponentiated_gradient, max_iter=25 if cell.base == "linear" else 10, **criterion)
        yield Method("fairlearn, exponentiated gradient", run, (0.1, 0.05, 0.02))
