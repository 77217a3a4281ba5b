"""Error against disparity: measures of test rows with their noise, curves, and ours at each point of a peer."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from benchmarks._tasks import Task

MEASURES = ("error", "difference", "SPDD", "rank disparity", "odds difference", "separation")
N_RESAMPLES = 200


@dataclass(frozen=True)
class Method:
    """A curve: ``run(task, grid)`` yields parameters with scores, or with None and probabilities of the decision 1."""

    name: str
    run: Callable[..., Iterator[tuple]]
    grid: tuple[float, ...]
    ours: bool = False


@dataclass(frozen=True)
class Case:
    """Tasks and the methods that are compared on them.

    ``measures`` are the disparities of the comparison, and ``at`` has the values of the first of them at which all
    curves are read. ``n_bootstrap`` resamples test rows, for tasks that share them.
    """

    name: str
    tasks: Callable[..., Iterator[Task]]
    n_tasks: int
    methods: tuple[Method, ...]
    measures: tuple[str, ...]
    at: tuple[float, ...] = ()
    n_bootstrap: int = 0
    options: Mapping[str, object] = field(default_factory=dict)


# ------------------------------------------------------------------------------------------------------ measuring


class TestRows:
    """Test rows with weights: all ones, then resampled rows, so that all methods share the noise of the rows."""

    __test__ = False

    def __init__(self, task, n_bootstrap):
        n = task.y_test.size
        draws = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=n_bootstrap)
        self.weights, self.labels = np.vstack((np.ones(n), draws)), task.y_test
        codes = np.unique(task.groups_train)
        self.groups = [task.groups_test == code for code in codes]
        self.cells = [[(task.groups_test == code) & (task.y_test == label) for code in codes] for label in (0, 1)]

    def measure(self, scores, chance=None):
        """Columns `MEASURES`, one row for each row of weights; NaN for disparities of scores where there are none.

        Scores may be several draws, one in each row: errors and rates are then means over the draws. The separation of
        decisions is that of their rates. SPDD is a sum over pairs of groups, separation a sum over labels of the mean,
        and the rank disparity a mean over pairs.
        """
        draws = None if scores is None else np.clip(np.atleast_2d(scores), 0.0, 1.0)
        chance = (draws > 0.5).mean(axis=0) if chance is None else chance
        wrong = np.where(self.labels == 1, 1 - chance, chance)
        error = self.weights @ wrong / self.weights.sum(axis=1)
        by_label = [self._rates(chance, cells) for cells in self.cells]
        odds = np.max([np.ptp(rates, axis=0) for rates in by_label], axis=0)
        spdd = rank = np.full(len(self.weights), np.nan)
        if draws is None:
            separation = sum(np.mean([np.abs(a - b) for a, b in combinations(r, 2)], axis=0) for r in by_label)
        else:
            n_pairs = len(self.groups) * (len(self.groups) - 1) / 2
            spdd = self._distances(draws, self.groups)
            rank = self._distances((rankdata(draws[:1]) - 0.5)[None] / self.labels.size, self.groups) / n_pairs
            separation = sum(self._distances(draws, cells) for cells in self.cells) / n_pairs
        return np.column_stack((error, np.ptp(self._rates(chance, self.groups), axis=0), spdd, rank, odds, separation))

    def _rates(self, chance, cells):
        return [self.weights[:, rows] @ chance[rows] / self.weights[:, rows].sum(axis=1) for rows in cells]

    def _distances(self, draws, cells):
        """Sum of Wasserstein-1 distances over pairs of cells."""
        inside = np.flatnonzero(np.any(cells, axis=0))
        rows, values = np.tile(inside, len(draws)), draws[:, inside].ravel()
        order = np.argsort(values)
        rows, steps = rows[order], np.diff(values[order])
        masses = [self.weights[:, rows] * cell[rows] for cell in cells]
        shares = [np.cumsum(mass, axis=1)[:, :-1] / mass.sum(axis=1, keepdims=True) for mass in masses]
        return sum(np.abs(one - other) @ steps for one, other in combinations(shares, 2))


@dataclass(frozen=True)
class Points:
    """Measures of a method: (tasks, parameters, weights of rows, measures)."""

    parameters: tuple[float, ...]
    values: np.ndarray

    def mean(self, tasks=slice(None), draw=0):
        return self.values[tasks, :, draw].mean(axis=0)

    def curve(self, measure, tasks=slice(None), draw=0):
        found = self.mean(tasks, draw)
        return Curve.through(found[:, MEASURES.index(measure)], found[:, 0])

    def resampled(self):
        """Yield tasks drawn with replacement and, where test rows were resampled, one of the draws of rows."""
        rng = np.random.default_rng(0)
        n_tasks, _, n_weights, _ = self.values.shape
        for number in range(N_RESAMPLES):
            yield rng.integers(n_tasks, size=n_tasks), 1 + number % (n_weights - 1) if n_weights > 1 else 0

    def standard_errors(self):
        return np.std([self.mean(tasks, draw) for tasks, draw in self.resampled()], axis=0, ddof=1)


@dataclass(frozen=True)
class Curve:
    """The least error at or below a disparity: linear between points that no other point of the method dominates."""

    disparities: np.ndarray
    errors: np.ndarray

    @classmethod
    def through(cls, disparities, errors):
        order = np.lexsort((errors, disparities))
        disparities, errors = np.asarray(disparities)[order], np.asarray(errors)[order]
        kept = np.append(True, errors[1:] < np.minimum.accumulate(errors)[:-1])
        return cls(disparities[kept], errors[kept])

    def at(self, disparity, *, below=np.nan):
        """Constant beyond the last point; ``below`` where the curve does not reach (None: the first point's error)."""
        return np.interp(disparity, self.disparities, self.errors, left=below)


def measure_case(case, *, quick=False):
    """Return `Points` of each method, by its name."""
    tasks = list(case.tasks(1 if quick else case.n_tasks, quick=quick, **case.options))
    rows = [TestRows(task, min(case.n_bootstrap, 2) if quick else case.n_bootstrap) for task in tasks]
    found = {}
    for method in case.methods:
        began, values = time.perf_counter(), []
        grid = method.grid[:: max(1, len(method.grid) - 1)] if quick else method.grid
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for task, test in zip(tasks, rows, strict=True):
                    points = list(method.run(task, grid))
                    values.append([test.measure(*point[1:]) for point in points])
        except (ImportError, OSError) as error:
            print(f"  {case.name}, {method.name} does not load here: {type(error).__name__}", flush=True)
            continue
        found[method.name] = Points(tuple(float(point[0]) for point in points), np.array(values))
        print(f"  {case.name}, {method.name}: {time.perf_counter() - began:.0f} s", flush=True)
    return found


# -------------------------------------------------------------------------------------------------------- judging


@dataclass(frozen=True)
class Gap:
    """How far the error of one of ours is above a peer's at the peer's disparity; None where it is not reached."""

    ours: str
    peer: str
    parameter: float
    disparity: float
    peer_error: float
    our_error: float | None
    standard_error: float | None

    @property
    def excess(self):
        """Our error less the peer's and one standard error; infinite where ours is not reached."""
        return np.inf if self.our_error is None else self.our_error - self.peer_error - self.standard_error


def gaps(ours, peers, measure):
    """Yield each of our curves at each point of each peer."""
    column = MEASURES.index(measure)
    for name, own in ours.items():
        drawn = [(own.curve(measure, tasks, draw), tasks, draw) for tasks, draw in own.resampled()]
        for peer, theirs in peers.items():
            others = [theirs.mean(tasks, draw) for _, tasks, draw in drawn]
            for number, point in enumerate(theirs.mean()):
                value = float(own.curve(measure).at(point[column]))
                # A resampled curve may begin a little later; its first point stands in.
                differences = [
                    curve.at(other[number, column], below=None) - other[number, 0]
                    for (curve, _, _), other in zip(drawn, others, strict=True)
                ]
                reached = not np.isnan(value)
                figures = (value, float(np.std(differences, ddof=1))) if reached else (None, None)
                yield Gap(name, peer, theirs.parameters[number], float(point[column]), float(point[0]), *figures)


def conclude(found, case, measure):
    """Return the gaps by one measure, and at how many points of peers the best of ours is at most one error above."""
    known = {name: own for name, own in found.items() if not np.isnan(own.mean()[:, MEASURES.index(measure)]).any()}
    is_ours = {method.name: method.ours for method in case.methods}
    ours, peers = ({n: own for n, own in known.items() if is_ours[n] is which} for which in (True, False))
    compared = list(gaps(ours, peers, measure))
    best = [
        min((gap for gap in compared if (gap.peer, gap.parameter) == point), key=lambda gap: gap.excess)
        for point in dict.fromkeys((gap.peer, gap.parameter) for gap in compared)
    ]
    if not best:
        return compared, None
    text = f"{case.name}, by {measure}: {sum(gap.excess <= 0 for gap in best)} of {len(best)} points"
    above = [gap for gap in best if 0 < gap.excess < np.inf]
    if above:
        worst = max(above, key=lambda gap: gap.excess)
        errors = f"{worst.our_error:.4f} against {worst.peer_error:.4f}"
        text += f"; most above {worst.peer}: {errors} at {worst.disparity:.3f}"
    missing = sum(np.isinf(gap.excess) for gap in best)
    return compared, text + (f"; {missing} not reached" if missing else "")


def run_cases(report, cases):
    """Measure and compare; all points and gaps are stored, a sentence for each case and measure is shown."""
    curves, compared = report.data.setdefault("curves", {}), report.data.setdefault("gaps", {})
    for case in cases[:4] if report.quick else cases:
        found = measure_case(case, quick=report.quick)
        shown = ("error", *case.measures)
        columns = [MEASURES.index(name) for name in shown]
        curves[case.name] = {
            name: [
                {"parameter": value, **dict(zip(shown, map(_number, mean[columns]), strict=True)),
                 "error se": float(spread[0])}
                for value, mean, spread in zip(own.parameters, own.mean(), own.standard_errors(), strict=True)
            ]
            for name, own in found.items()
        }  # fmt: skip
        for measure in case.measures:
            found_gaps, text = conclude(found, case, measure)
            compared[f"{case.name}, {measure}"] = [vars(gap) for gap in found_gaps]
            if text:
                report.note(text)
        if case.at:
            report.note(read_curves(found, case))
        report.save()


def _number(value):
    return None if np.isnan(value) else float(value)


def read_curves(found, case):
    """Errors of all methods at a few values of the first measure."""
    measure, parts = case.measures[0], []
    for name, own in found.items():
        if np.isnan(own.mean()[:, MEASURES.index(measure)]).any():
            continue
        values = own.curve(measure).at(np.array(case.at))
        parts.append(f"{name} {', '.join('-' if np.isnan(value) else f'{value:.4f}' for value in values)}")
    return f"{case.name}: error at {measure} {', '.join(f'{place:g}' for place in case.at)}: {'; '.join(parts)}"
