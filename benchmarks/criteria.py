"""Error against equalized odds: ours and peers on Adult by sex and COMPAS by race, aware and blind, linear and trees.

Equalized odds is measured in two ways on test rows: as the difference of rates at the threshold .5 (the larger of the
differences of true and of false positive rates), and as the separation disparity of the scores (the sum over labels of
the mean pairwise Wasserstein-1 distance). For peers that decide instead of scoring, the decisions are the scores.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks import _odds_ours, _odds_peers, _timing
from benchmarks._odds_tasks import adult_tasks, compas_tasks
from benchmarks.frontier import Curve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CLAIM = (
    "Equalized odds at equal difference, on test rows: no peer's error is below that of our curve by more than one "
    "standard error, by the difference at .5 and by separation disparity, aware and blind, linear and boosted."
)
MEASURES = ("error", "odds difference", "separation")
N_BOOTSTRAP = 50
KEPT = Path("out/criteria")  # measurements of finished methods, so that a run can be continued
#: Accuracy at an equalized-odds difference on Adult, as published for LinearPost (arXiv:2405.04025).
PUBLISHED = {
    ("aware", "linear"): (0.838, 0.028),
    ("blind", "linear"): (0.841, 0.026),
    ("aware", "trees"): (0.858, 0.024),
    ("blind", "trees"): (0.861, 0.046),
}
DATA = {
    "Adult, sex": (adult_tasks, 3),
    "COMPAS, two races": (partial(compas_tasks, races="two"), 10),
    "COMPAS, all races": (partial(compas_tasks, races="all"), 10),
}


@dataclass(frozen=True)
class Method:
    """What gives a curve: ``run(task, grid)`` yields parameters with scores (ours) or chances of the decision 1."""

    name: str
    run: Callable[..., Iterator[tuple[float, np.ndarray]]]
    grid: tuple[float, ...]
    ours: bool = False
    situations: tuple[str, ...] = ("aware", "blind")
    bases: tuple[str, ...] = ("linear", "trees")
    n_tasks: int | None = None  # fewer than all, where a method takes minutes


BOUNDS = (0.001, 0.01, 0.02, 0.04, 0.06, 0.1, 0.15, 0.2)
PEERS = (
    Method("fairlearn ThresholdOptimizer", _odds_peers.threshold_optimizer, (0.0,), situations=("aware",)),
    Method(
        "fairlearn ExponentiatedGradient", _odds_peers.exponentiated_gradient, (0.01, 0.03, 0.08), bases=("linear",)
    ),
    Method(  # minutes for each model of Adult: few iterations
        "fairlearn ExponentiatedGradient", partial(_odds_peers.exponentiated_gradient, max_iter=10), (0.02,),
        bases=("trees",),
    ),
    Method("LinearPost", _odds_peers.linear_post, BOUNDS),
    Method("OxonFair", _odds_peers.oxonfair, BOUNDS),
)  # fmt: skip
METHODS = (*PEERS, *(Method(ours=True, **options) for options in _odds_ours.METHODS))


# ------------------------------------------------------------------------------------------------------ measuring


class TestRows:
    """Test rows with weights: all ones, then resampled rows, so that all methods share the noise of the rows."""

    __test__ = False

    def __init__(self, task, n_bootstrap):
        n = task.y_test.size
        draws = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=n_bootstrap)
        self.weights = np.vstack((np.ones(n), draws))
        self.labels = task.y_test
        names = np.unique(task.groups_train)
        self.cells = [[(task.groups_test == name) & (task.y_test == label) for name in names] for label in (0, 1)]

    def measure(self, scores, *, decides):
        """The three measures, one column each; one row for each row of weights.

        Scores may be several draws, one in each row: errors and rates are then means over the draws.
        """
        draws = np.atleast_2d(scores)
        chance = draws[0] if decides else (draws > 0.5).mean(axis=0)
        wrong = np.where(self.labels == 1, 1 - chance, chance)
        error = self.weights @ wrong / self.weights.sum(axis=1)
        rates = [
            np.stack([self.weights[:, cell] @ chance[cell] / self.weights[:, cell].sum(axis=1) for cell in cells])
            for cells in self.cells
        ]
        odds = np.max([np.ptp(of_label, axis=0) for of_label in rates], axis=0)
        if decides:
            separation = sum(_mean_pair(of_label, lambda one, other: np.abs(one - other)) for of_label in rates)
        else:
            separation = sum(self._wasserstein(draws, cells) for cells in self.cells)
        return np.column_stack((error, odds, separation))

    def _wasserstein(self, draws, cells):
        inside = np.flatnonzero(np.any(cells, axis=0))
        rows, values = np.tile(inside, len(draws)), draws[:, inside].ravel()
        order = np.argsort(values)
        rows, steps = rows[order], np.diff(values[order])
        masses = [self.weights[:, rows] * cell[rows] for cell in cells]
        shares = [np.cumsum(mass, axis=1)[:, :-1] / mass.sum(axis=1, keepdims=True) for mass in masses]
        return _mean_pair(shares, lambda one, other: np.abs(one - other) @ steps)


def _mean_pair(parts, distance):
    return np.mean([distance(one, other) for one, other in combinations(parts, 2)], axis=0)


@dataclass(frozen=True)
class Points:
    """Measures of a method: (tasks, parameters, weights of rows, measures)."""

    parameters: tuple[float, ...]
    values: np.ndarray

    def mean(self, tasks=slice(None), draw=0):
        return self.values[tasks, :, draw].mean(axis=0)

    def curve(self, measure, tasks=slice(None), draw=0):
        found = self.mean(tasks, draw)
        return Curve.through(found[:, measure], found[:, 0])


def resampled(points, n_draws=200):
    """Tasks drawn with replacement and, where test rows were resampled, one of the draws of rows."""
    rng = np.random.default_rng(0)
    n_tasks, _, n_weights, _ = points.values.shape
    for number in range(n_draws):
        yield rng.integers(n_tasks, size=n_tasks), 1 + number % (n_weights - 1) if n_weights > 1 else 0


def run_case(data, situation, base, options):
    """All methods of a case, each measured on all tasks; what was measured before is read."""
    make, n_tasks = DATA[data]
    n_tasks = 1 if options.quick else n_tasks
    found, tasks, rows = {}, None, None
    for method in METHODS:
        if situation not in method.situations or base not in method.bases:
            continue
        if options.only and method.name not in options.only:
            continue
        kept = KEPT / f"{data}, {situation}, {base}, {method.name}.npz"
        if kept.exists() and not options.quick and method.name not in options.again:
            stored = np.load(kept)
            found[method.name] = Points(tuple(stored["parameters"]), stored["values"])
            continue
        if options.stored:
            continue
        if tasks is None:
            tasks = list(make(aware=situation == "aware", base=base, n_tasks=n_tasks, quick=options.quick))
            n_bootstrap = N_BOOTSTRAP if data.startswith("Adult") else 0  # random splits have other test rows
            rows = [TestRows(task, n_bootstrap) for task in tasks]
        began, values = time.perf_counter(), []
        for task, test in list(zip(tasks, rows, strict=True))[: method.n_tasks]:
            grid = method.grid[:: max(1, len(method.grid) - 1)] if options.quick else method.grid
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                parts = list(method.run(task, grid))
            values.append([test.measure(scores, decides=not method.ours) for _, scores in parts])
        points = Points(tuple(value for value, _ in parts), np.array(values))
        found[method.name] = points
        if not options.quick:
            KEPT.mkdir(parents=True, exist_ok=True)
            np.savez(kept, parameters=points.parameters, values=points.values)
        told = "  ".join(
            f"{value:g}: {mean[0]:.4f} at {mean[1]:.3f}, {mean[2]:.3f}"
            for value, mean in zip(points.parameters, points.mean(), strict=True)
        )
        print(f"  {method.name}, {time.perf_counter() - began:.0f} s: {told}", flush=True)
    return found


# -------------------------------------------------------------------------------------------------------- judging


@dataclass(frozen=True)
class Gap:
    """How far the error of one of ours is above a peer's at the peer's difference; None where it is not reached."""

    case: str
    measure: str
    ours: str
    peer: str
    parameter: float
    difference: float
    peer_error: float
    our_error: float | None
    gap: float | None
    standard_error: float | None

    @property
    def met(self):
        return self.gap is not None and self.gap <= self.standard_error


def gaps(case, ours, peers, measures=MEASURES):
    """Each of our curves at each point of each peer, by each of the measures that follow the error."""
    found = []
    for name, peer in product(ours, peers):
        n_tasks = min(len(ours[name].values), len(peers[peer].values))
        own, theirs = (Points(one.parameters, one.values[:n_tasks]) for one in (ours[name], peers[peer]))
        for measure in range(1, len(measures)):
            drawn = [
                (own.curve(measure, tasks, draw), theirs.mean(tasks, draw)) for tasks, draw in resampled(own)
            ]  # fmt: skip
            for number, point in enumerate(theirs.mean()):
                value = own.curve(measure).at(point[measure])
                # A resampled curve may begin a little later; its first point stands in.
                spread = np.std(
                    [curve.at(mean[number, measure], below=None) - mean[number, 0] for curve, mean in drawn], ddof=1
                )
                reached = not np.isnan(value)
                found.append(
                    Gap(
                        case, measures[measure], name, peer, float(theirs.parameters[number]), float(point[measure]),
                        float(point[0]), float(value) if reached else None,
                        float(value - point[0]) if reached else None, float(spread) if reached else None,
                    )
                )  # fmt: skip
    return found


# ------------------------------------------------------------------------------------------------------ reporting


def standard_errors(points):
    drawn = [points.mean(tasks, draw) for tasks, draw in resampled(points)]
    return np.std(drawn, axis=0, ddof=1)


def save(folder, results, options):
    """Write what there is so far: an hour of fits is not lost to an interrupt."""
    compared = [gap for case, found in results.items() for gap in gaps_of(case, found)]
    curves = {
        ", ".join(case): {
            name: [
                {"parameter": float(value), **dict(zip(MEASURES, map(float, mean), strict=True)),
                 **{f"{measure} se": float(error) for measure, error in zip(MEASURES, spread, strict=True)}}
                for value, mean, spread in zip(points.parameters, points.mean(), standard_errors(points), strict=True)
            ]
            for name, points in found.items()
        }
        for case, found in results.items()
    }  # fmt: skip
    report = {
        "name": "criteria",
        "claim": CLAIM,
        "quick": options.quick,
        "machine": _timing.machine(),
        "versions": _timing.versions(),
        "settings": {"tasks": {name: n for name, (_, n) in DATA.items()}, "resamples of test rows": N_BOOTSTRAP},
        "rows": [],  # the speed benchmarks' ratios; what was measured here is in "curves"
        "notes": summary(compared),
        "curves": curves,
        "gaps": [vars(gap) for gap in compared],
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "criteria.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    (folder / "criteria.md").write_text(markdown(results, compared, options.quick), encoding="utf-8")


def gaps_of(case, found):
    ours = {method.name for method in METHODS if method.ours}
    own = {name: points for name, points in found.items() if name in ours}
    return gaps(", ".join(case), own, {name: points for name, points in found.items() if name not in ours})


def unmeasured(case, found):
    """The methods that belong to a case and have no results."""
    _, situation, base = case
    methods = [method.name for method in METHODS if situation in method.situations and base in method.bases]
    return [name for name in dict.fromkeys(methods) if name not in found]


def summary(compared):
    """One line for each of ours in each case: at how many of the peers' points it is not above."""
    lines = []
    for key in dict.fromkeys((gap.case, gap.measure, gap.ours) for gap in compared):
        own = [gap for gap in compared if (gap.case, gap.measure, gap.ours) == key]
        reached = [gap for gap in own if gap.gap is not None]
        worst = max(reached, key=lambda gap: gap.gap - gap.standard_error, default=None)
        line = f"{key[0]}, by {key[1]}: {key[2]}: not above at {sum(gap.met for gap in own)} of {len(own)} points"
        if worst is not None and not worst.met:
            line += (
                f"; most above {worst.peer}: {worst.our_error:.4f} against {worst.peer_error:.4f} at "
                f"{worst.difference:.3f} (standard error {worst.standard_error:.4f})"
            )
        if len(reached) < len(own):
            line += f"; {len(own) - len(reached)} not reached"
        lines.append(line)
    return lines


def markdown(results, compared, quick):
    lines = ["# Equalized odds against peers", "", CLAIM, ""]
    if quick:
        lines += ["*A quick run: few rows and weights. Not for quoting.*", ""]
    lines += [f"- {line}" for line in summary(compared)]
    missing = [
        f"{', '.join(case)}: {'; '.join(names)}"
        for case, found in results.items()
        if (names := unmeasured(case, found))
    ]
    if missing:
        lines += ["", "Not measured yet:", "", *(f"- {line}" for line in missing)]
    for case, found in results.items():
        if not found:
            continue
        lines += ["", f"## {', '.join(case)}", ""]
        if case[0].startswith("Adult"):
            accuracy, difference = PUBLISHED[case[1:]]
            lines += [f"LinearPost as published: error {1 - accuracy:.3f} at difference {difference:.3f}.", ""]
        lines += ["| method | error, difference at .5, separation, along the parameter |", "| --- | --- |"]
        for name, points in found.items():
            told = "; ".join(
                f"{mean[0]:.4f} ± {spread[0]:.4f}, {mean[1]:.3f}, {mean[2]:.3f}"
                for mean, spread in zip(points.mean(), standard_errors(points), strict=True)
            )
            lines.append(f"| {name} | {told} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=CLAIM)
    parser.add_argument("--quick", action="store_true", help="few rows, one task, the ends of each path")
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--bases", nargs="+", choices=("linear", "trees"), default=["linear", "trees"])
    parser.add_argument("--situations", nargs="+", choices=("aware", "blind"), default=["aware", "blind"])
    parser.add_argument("--only", nargs="+", default=[], metavar="METHOD", help="these methods instead of all")
    parser.add_argument("--again", nargs="+", default=[], metavar="METHOD", help="measure these once more")
    parser.add_argument("--stored", action="store_true", help="measure nothing; report what earlier runs have measured")
    parser.add_argument("--out", type=Path, default=_timing.RESULTS, help="where the results go")
    options = parser.parse_args()
    results = {}
    with _timing.threads(1):
        for data in options.data:
            for base in options.bases:
                for situation in options.situations:
                    print(f"{data}, {situation}, {base}", flush=True)
                    results[data, situation, base] = run_case(data, situation, base, options)
                    save(options.out, results, options)
    print("\n".join(summary([gap for case, found in results.items() for gap in gaps_of(case, found)])))


if __name__ == "__main__":
    main()
