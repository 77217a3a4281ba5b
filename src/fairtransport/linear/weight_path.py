"""A path of parity weights, each fit started from the last one, and the rule that chooses a point on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.linear._information import HALF, Judge, Measures

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.linear.solvers._lbfgs import LbfgsResult

__all__ = ["PATH_COLUMNS", "PATH_WEIGHTS", "AutomaticWeight", "PathPoint", "WeightPath"]

#: What a fitted model keeps of a path.
PATH_COLUMNS = ("weight", "disparity", "rank_disparity", "log_loss", "information_kept", "theta", "spread")

#: Weights that are tried in turn.
PATH_WEIGHTS = (0.1, 0.3, 1.0, 4.0, 15.0, 60.0)

_BISECTIONS = 1
_MOST_BISECTIONS = 4  # where the information falls steeply between two weights
_NEARLY_HALF = HALF + 0.1
_NOTHING_TO_SAVE = 0.01  # of the information: a smaller weight would keep no more
_STILL_FALLS = 0.1  # what two steps along the path must lower the disparity by, for another one to be tried
_HEAVY = 1.0  # weight from which that is asked
_REACHED = 1.2  # times what chance shows on average

Fit = Callable[[float, "NDArray[np.float64] | None"], "tuple[LbfgsResult, NDArray[np.float64]]"]


@dataclass(frozen=True, eq=False)
class PathPoint:
    """A model on the path: its weight, the solver's result, and what its scores measure."""

    weight: float
    result: LbfgsResult
    measures: Measures


class WeightPath:
    """Fits along increasing weights, each from the parameters of its neighbour below.

    Parameters
    ----------
    fit : callable
        ``fit(weight, start) -> (result, scores)``, the scores being those to be judged: of the training rows, or of
        held-out folds where the model is flexible. ``start`` is a result's parameters, or None for the initial model.
    judge : Judge
    """

    def __init__(self, fit: Fit, judge: Judge) -> None:
        self._fit, self.judge = fit, judge
        self.points: list[PathPoint] = []

    def at(self, weight: float) -> PathPoint:
        """Return the point of a weight, fitted from the nearest one below it."""
        below = [point for point in self.points if point.weight <= weight]
        if below and below[-1].weight == weight:
            return below[-1]
        result, scores = self._fit(weight, below[-1].result.parameters if below else None)
        point = PathPoint(weight, result, self.judge.measure(scores))
        self.points.insert(len(below), point)
        return point

    def table(self) -> dict[str, NDArray[np.float64]]:
        """Return the path as columns."""
        columns = {"weight": np.array([point.weight for point in self.points])}
        for name in ("disparity", "rank_disparity", "log_loss", "information_kept"):
            columns[name] = np.array([getattr(point.measures, name) for point in self.points])
        return columns


@dataclass(frozen=True)
class AutomaticWeight:
    """The rule of ``parity_weight="auto"`` and of ``max_disparity``.

    Attributes
    ----------
    max_disparity : float or None
        A limit of the disparity (SPDD); None: the noise floor of the rank disparity.
    """

    max_disparity: float | None = None

    def choose(self, path: WeightPath) -> tuple[PathPoint, str, bool]:
        """Walk along the path; return the point, the reason to stop there, and whether the goal was reached."""
        last = path.at(0.0)
        if self._reached(last):
            return last, f"{self._goal} without any weight", True
        for weight in PATH_WEIGHTS:
            point = path.at(weight)
            if self.max_disparity is None and point.measures.information_kept < HALF:
                kept = self._most_that_keeps_half(path, last, point)
                if self._reached(kept):
                    return self._bisect(path, last, kept, self._reached), self._goal, True
                share = f"{max(kept.measures.information_kept, 0.0):.0%} of the initial model's information is left"
                return kept, f"{share}, and more weight would leave less than half", False
            if self._reached(point):
                return self._bisect(path, last, point, self._reached), self._goal, True
            if self._stalled(path):
                break
            last = point
        allowed = [p for p in path.points if self.max_disparity is not None or p.measures.information_kept >= HALF]
        allowed = allowed or path.points[:1]  # own weights may lose half before any parity
        chosen = self._nearly_lowest(path, allowed)
        return chosen, "more weight no longer lowers the disparity: these features allow no more", False

    def accepts(self, measures: Measures, before: Measures) -> bool:
        """Whether a model is within what was asked for, or no farther outside than another one."""
        if self.max_disparity is not None:
            return measures.disparity <= max(self.max_disparity, before.disparity)
        return measures.information_kept >= min(HALF, before.information_kept)

    @property
    def _goal(self) -> str:
        if self.max_disparity is None:
            return "the rank disparity is at its noise floor"
        return f"the disparity is at most {self.max_disparity:g}"

    def _measure(self, point: PathPoint) -> float:
        return point.measures.excess if self.max_disparity is None else point.measures.disparity

    def _reached(self, point: PathPoint) -> bool:
        return self._measure(point) <= (_REACHED if self.max_disparity is None else self.max_disparity)

    def _stalled(self, path: WeightPath) -> bool:
        """Whether the last two steps, at weights where parity counts more than the loss, brought little."""
        if path.points[-2].weight < _HEAVY:
            return False
        before, now = self._measure(path.points[-3]), min(self._measure(p) for p in path.points[-2:])
        return now > (1.0 - _STILL_FALLS) * before

    def _nearly_lowest(self, path: WeightPath, allowed: list[PathPoint]) -> PathPoint:
        """Return about the smallest weight that nearly reaches the lowest disparity.

        Between two weights of the path the disparity is read off a straight line, so that a rounding error moves the
        weight a little and does not choose its neighbour.
        """
        enough = (1.0 + _STILL_FALLS) * min(map(self._measure, allowed))
        index = next(i for i, point in enumerate(allowed) if self._measure(point) <= enough)
        high = allowed[index]
        if not index:
            return high
        low = allowed[index - 1]
        part = (self._measure(low) - enough) / (self._measure(low) - self._measure(high))
        smallest = max(low.weight, 0.1 * high.weight)
        return path.at(float(f"{smallest * (high.weight / smallest) ** part:.3g}"))

    def _bisect(
        self, path: WeightPath, low: PathPoint, high: PathPoint, holds: Callable[[PathPoint], bool]
    ) -> PathPoint:
        """Return about the smallest weight at which a condition holds, as it does at the higher of two points."""
        # A limit that somebody has named is met closely; for the noise floor a weight nearby is as good.
        for _ in range(_BISECTIONS if self.max_disparity is None else _MOST_BISECTIONS):
            if low.measures.information_kept - high.measures.information_kept < _NOTHING_TO_SAVE:
                break
            middle = path.at(_between(low, high))
            low, high = (low, middle) if holds(middle) else (middle, high)
        return high

    def _most_that_keeps_half(self, path: WeightPath, low: PathPoint, high: PathPoint) -> PathPoint:
        """Return about the largest weight that leaves half of the information, as the lower of two points does."""
        for _ in range(_MOST_BISECTIONS):
            if low.weight > 0.0 and low.measures.information_kept < _NEARLY_HALF:
                break
            middle = path.at(_between(low, high))
            low, high = (low, middle) if middle.measures.information_kept < HALF else (middle, high)
        return low


def _between(low: PathPoint, high: PathPoint) -> float:
    return float(np.sqrt(max(low.weight, 0.1 * high.weight) * high.weight))
