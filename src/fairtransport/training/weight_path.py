"""A path of parity weights, each fit started from the one before, and the rule that chooses a weight on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairtransport._arrays import Floats
from fairtransport._validation import check_choice, check_real
from fairtransport.criteria.penalty import SCALES
from fairtransport.training.evaluation import SPREADS, ScoreEvaluator, ScoreMetrics
from fairtransport.training.responses import Response

#: Columns of ``path_``, the path that a fitted model stores, beside the one of its loss.
_METRICS = ("disparity", "rank_disparity", "information_kept")
PATH_COLUMNS = ("weight", *_METRICS, "theta", "spread")

#: Weights that are tried in turn.
PATH_WEIGHTS = (0.1, 0.3, 1.0, 4.0, 15.0, 60.0)

#: Share of the initial model's information that an automatic weight keeps.
MIN_INFORMATION = 0.5

# Reasons for a weight; ``kept`` is filled in when they are said.
TOO_LITTLE_LEFT = (
    "{kept:.0%} of the initial model's information is left, and a clearly larger weight would leave less than half"
)
UNDONE = "training for parity does not help: the plain model is kept"

_BISECTIONS = 1
_MAX_BISECTIONS = 4  # where the information falls steeply between two weights
_CLOSE_TO_MIN = MIN_INFORMATION + 0.1
_STEP = 3.0  # a larger weight is tried if a line leaves it a tenth less information than required, or more
_NO_GAIN = 0.01  # of the information: a smaller weight would keep no more
_MIN_DECREASE = 0.1  # relative decrease of the disparity over two weights, for another one to be tried
_HEAVY = 1.0  # weight from which that is required
_NOISE_FLOOR = 1.2  # times the mean rank disparity under chance


def check_budget(parameters: Mapping[str, Any], *, finite: bool = True) -> tuple[float | None, float | None]:
    """Check how much parity an estimator's parameters ask for; return its weight and its limit, None where not set."""
    weight, limit = parameters["parity_weight"], parameters["max_disparity"]
    is_automatic = isinstance(weight, str)
    if is_automatic:
        check_choice(weight, ("auto",), name="parity_weight")
    else:
        check_real(weight, name="parity_weight", finite=finite)
    if limit is not None:
        check_real(limit, name="max_disparity")
        if not is_automatic:
            raise ValueError("max_disparity chooses the weight: leave parity_weight at 'auto', or it at None.")
    check_real(parameters["amount"], name="amount", most=1.0)
    check_choice(parameters["spread"], SPREADS, name="spread")
    check_choice(parameters["scale"], SCALES, name="scale")
    return None if is_automatic else float(weight), None if limit is None else float(limit)


Fit = Callable[[float, Any], "tuple[Any, Floats]"]


@dataclass(frozen=True, eq=False)
class PathPoint:
    """A model on the path: its weight, the result of its training, and the metrics of its scores."""

    weight: float
    result: Any
    metrics: ScoreMetrics


class WeightPath:
    """Fits along increasing weights, each from the result of the next smaller one."""

    def __init__(self, fit: Fit, evaluator: ScoreEvaluator) -> None:
        self._fit, self.evaluator = fit, evaluator
        self.points: list[PathPoint] = []

    def at(self, weight: float) -> PathPoint:
        """Return the point of a weight, fitted from the nearest one below it."""
        below = [point for point in self.points if point.weight <= weight]
        if below and below[-1].weight == weight:
            return below[-1]
        result, scores = self._fit(weight, below[-1].result if below else None)
        point = PathPoint(weight, result, self.evaluator.evaluate(scores))
        self.points.insert(len(below), point)
        return point

    def put(self, point: PathPoint) -> None:
        """Add a point, in place of one with its weight."""
        self.points = sorted([point, *(p for p in self.points if p.weight != point.weight)], key=lambda p: p.weight)

    def table(self) -> dict[str, Floats]:
        """Return the weights and metrics as columns."""
        columns = {"weight": np.array([point.weight for point in self.points])}
        for name in _METRICS:
            columns[name] = np.array([getattr(point.metrics, name) for point in self.points])
        columns[self.evaluator.response.loss_name] = np.array([point.metrics.loss for point in self.points])
        return columns


def empty_path(response: Response) -> dict[str, Floats]:
    """Return the columns of a path without points."""
    return {name: np.zeros(0) for name in (*PATH_COLUMNS, response.loss_name)}


@dataclass(frozen=True)
class AutomaticWeight:
    """The rule of ``parity_weight="auto"`` and of ``max_disparity``."""

    max_disparity: float | None = None
    weights: tuple[float, ...] = PATH_WEIGHTS
    least_step: float | None = None  # relative decrease of the disparity by one weight, for another one to be tried

    def choose(self, path: WeightPath, *, differs: bool = True) -> tuple[PathPoint, str, bool]:
        """Return the chosen point of the path, the reason for it, and whether the goal was reached.

        Groups that do not clearly differ are left alone, unless there is a limit.
        """
        last = path.at(0.0)
        if self.is_reached(last):
            return last, f"{self.goal} without any weight", True
        if self.max_disparity is None and not differs:
            return last, "the groups of the initial model differ too little to be told from chance", True
        for weight in self.weights:
            point = path.at(weight)
            kept = point.metrics.information_kept
            if self.max_disparity is None and (kept < MIN_INFORMATION or self._is_at_border(last, point)):
                largest = point if kept >= MIN_INFORMATION else self._largest_informative(path, last, point)
                if self.is_reached(largest):
                    return self.bisect(path, last, largest), self.goal, True
                lowest = min(self._disparity(p) for p in path.points if p.weight <= largest.weight)
                if self._disparity(largest) <= (1.0 + _MIN_DECREASE) * lowest:
                    return largest, TOO_LITTLE_LEFT, False
                break  # a smaller weight is better in both
            if self.is_reached(point):
                return self.bisect(path, last, point), self.goal, True
            if self._has_stalled(path):
                break
            last = point
        has_limit = self.max_disparity is not None
        allowed = [p for p in path.points if has_limit or p.metrics.information_kept >= MIN_INFORMATION]
        allowed = allowed or path.points[:1]  # weights for each group may lose half before any parity
        chosen = self._nearly_lowest(path, allowed)
        return chosen, "more weight no longer lowers the disparity: these features allow no more", False

    def accepts(self, metrics: ScoreMetrics, before: ScoreMetrics) -> bool:
        """Return whether a model meets the limits, or misses them by no more than another one."""
        if self.max_disparity is not None:
            return metrics.disparity <= max(self.max_disparity, before.disparity)
        return metrics.information_kept >= min(MIN_INFORMATION, before.information_kept)

    def is_worse(self, metrics: ScoreMetrics, before: ScoreMetrics) -> bool:
        """Return whether a model, where there is no limit, is above the noise floor and clearly above another one."""
        return self.max_disparity is None and metrics.excess > max(_NOISE_FLOOR, (1.0 + _MIN_DECREASE) * before.excess)

    @property
    def goal(self) -> str:
        """The aim, in words."""
        if self.max_disparity is None:
            return "the rank disparity is at its noise floor"
        return f"the disparity is at most {self.max_disparity:g}"

    def _disparity(self, point: PathPoint) -> float:
        return point.metrics.excess if self.max_disparity is None else point.metrics.disparity

    def is_reached(self, point: PathPoint) -> bool:
        """Return whether a point is at the noise floor, or within the limit."""
        return self._disparity(point) <= self._limit

    def distance(self, point: PathPoint) -> float:
        """Return the disparity of a point in multiples of that at which the goal is reached."""
        return max(self._disparity(point), 1e-12) / max(self._limit, 1e-12)

    @property
    def _limit(self) -> float:
        return _NOISE_FLOOR if self.max_disparity is None else self.max_disparity

    def _has_stalled(self, path: WeightPath) -> bool:
        """Return whether the last weights, where parity counts more than the loss, lowered the disparity little."""
        if path.points[-2].weight < _HEAVY:
            return False
        first, before, now = (self._disparity(point) for point in path.points[-3:])
        is_flat = self.least_step is not None and now > (1.0 - self.least_step) * before
        return is_flat or min(before, now) > (1.0 - _MIN_DECREASE) * first

    def _nearly_lowest(self, path: WeightPath, allowed: list[PathPoint]) -> PathPoint:
        """Return about the smallest weight that nearly reaches the lowest disparity.

        The disparity is interpolated linearly between two weights of the path, so that a rounding error changes the
        weight a little and does not choose its neighbour.
        """
        enough = (1.0 + _MIN_DECREASE) * min(map(self._disparity, allowed))
        index = next(i for i, point in enumerate(allowed) if self._disparity(point) <= enough)
        low, high = allowed[max(index - 1, 0)], allowed[index]
        if not index:
            return high
        part = (self._disparity(low) - enough) / (self._disparity(low) - self._disparity(high))
        smallest = max(low.weight, 0.1 * high.weight)
        return path.at(float(f"{smallest * (high.weight / smallest) ** part:.3g}"))

    def bisect(self, path: WeightPath, low: PathPoint, high: PathPoint) -> PathPoint:
        """Return about the smallest weight at which the goal is reached, as it is at the higher of two points."""
        # A limit that the user has set is met closely; for the noise floor a weight nearby is as good.
        for _ in range(_BISECTIONS if self.max_disparity is None else _MAX_BISECTIONS):
            if low.metrics.information_kept - high.metrics.information_kept < _NO_GAIN:
                break
            middle = path.at(_between(low, high, 0.5))
            low, high = (low, middle) if self.is_reached(middle) else (middle, high)
        return high

    def _is_at_border(self, low: PathPoint, point: PathPoint) -> bool:
        """Return whether a point keeps little more information than it has to, and lines from another one less soon.

        One line is in the logarithm of the weight; the other, in the disparity, ends at the goal: near it, more weight
        costs little.
        """
        kept = point.metrics.information_kept
        lost = low.metrics.information_kept - kept
        steps = np.log(_STEP) / np.log(point.weight / max(low.weight, 0.1 * point.weight))
        gained, left = self._disparity(low) - self._disparity(point), self._disparity(point) - self._limit
        return bool(
            kept < _CLOSE_TO_MIN
            and kept - lost * steps < MIN_INFORMATION - 0.1
            and lost * left > (kept - MIN_INFORMATION) * gained
        )

    def _largest_informative(self, path: WeightPath, low: PathPoint, high: PathPoint) -> PathPoint:
        """Return about the largest weight that keeps half of the information, as the lower of two points does."""
        # False position on a line in the logarithm of the weight. Where an end stays for a second time, its distance
        # from the aim is halved (the Illinois rule), because on a cliff the other one would approach it slowly.
        aim, stays = 0.5 * (MIN_INFORMATION + _CLOSE_TO_MIN), ""
        above, below = low.metrics.information_kept - aim, aim - high.metrics.information_kept
        for _ in range(_MAX_BISECTIONS):
            if low.weight > 0.0 and low.metrics.information_kept < _CLOSE_TO_MIN:
                break
            middle = path.at(_between(low, high, min(max(above / (above + below), 0.2), 0.8)))
            kept = middle.metrics.information_kept
            if kept < MIN_INFORMATION:
                high, below, above = middle, aim - kept, above * (0.5 if stays == "low" else 1.0)
                stays = "low"
            else:
                low, above, below = middle, kept - aim, below * (0.5 if stays == "high" else 1.0)
                stays = "high"
        return low


def _between(low: PathPoint, high: PathPoint, share: float) -> float:
    """Return a weight between two, the lower of which counts as a tenth of the higher one, or more."""
    smallest = max(low.weight, 0.1 * high.weight)
    return float(smallest * (high.weight / smallest) ** share)
