"""From rows to a linear model with parity: canonical rows -> initial model -> comparisons -> solver -> result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from fairtransport._progress import progress
from fairtransport.criteria import demographic_parity, weigh_by_reliability
from fairtransport.linear._information import Judge, before_and_after
from fairtransport.linear._initial_model import Start, starting_point
from fairtransport.linear._scaling import Scaling
from fairtransport.linear.solvers._lbfgs import LbfgsResult, LbfgsSolver
from fairtransport.linear.solvers._logistic_problem import LogisticProblem, canonical_order
from fairtransport.linear.weight_path import PATH_WEIGHTS, AutomaticWeight, PathPoint, WeightPath
from fairtransport.penalties import Comparisons, DiscretePenalty
from fairtransport.transport.logistic import sigmoid

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.linear._training_data import TrainingData
    from fairtransport.penalties import TransportPenalty

__all__ = ["LinearFit", "LinearFitter"]

_FOLDS = 3
_FLEXIBLE = 20  # rows for each column below which training rows flatter a model
_PATH_TOLERANCE = 20.0  # times that of the final fit
_PATH_ROWS = 200  # of a group for each column, and of 20 at least: enough to find a weight; the final fit has all rows


@dataclass(frozen=True, eq=False)
class LinearFit:
    """What training a linear model towards parity leaves.

    Attributes
    ----------
    theta : ndarray of shape (n_models, n_columns + 1)
        Weights for the features as given, intercept last: shared ones, or those of each group.
    common : ndarray of shape (n_columns + 1,)
        Weights of rows that are in no group.
    weight, unit : float
        Weight of the penalty, and its factor at weight 1.
    reason : str
        Why this weight, where it was chosen; empty otherwise.
    reached : bool
        Whether the goal of an automatic weight was reached.
    point : PathPoint
        The solver's result, and its measures: out of fold where the model is flexible.
    path : WeightPath
    path_weights : list of (theta, common)
        Weights of each point of the path.
    information : float
        Gain of the initial model over a constant, in log-loss.
    initial_scores, scores : ndarray of shape (n_rows,)
        Of the training rows, by the initial and by the trained model.
    figures : dict
        Figures of the initial and of the trained model on the training rows.
    comparisons : Comparisons
        Of the rows in canonical order.
    scores_in_order : ndarray of shape (n_rows,)
        Of the trained model, in that order.
    penalty : TransportPenalty
    start : Start
    scaling : Scaling
    target : ndarray or None
        Scores of the fixed target.
    """

    theta: NDArray[np.float64]
    common: NDArray[np.float64]
    weight: float
    unit: float
    reason: str
    reached: bool
    point: PathPoint
    path: WeightPath
    path_weights: list[tuple[NDArray[np.float64], NDArray[np.float64]]]
    information: float
    initial_scores: NDArray[np.float64]
    scores: NDArray[np.float64]
    figures: dict[str, tuple[float, float]]
    comparisons: Comparisons
    scores_in_order: NDArray[np.float64]
    penalty: TransportPenalty
    start: Start
    scaling: Scaling
    target: NDArray[np.float64] | None


class LinearFitter:
    """Trains linear logistic models towards parity with all rows at once.

    Parameters
    ----------
    data : TrainingData
        Rows in any order.
    estimator : estimator or None
        The initial model, fitted or not; None: logistic regression on columns in units of their own.
    make_penalty : callable
        Returns a new penalty, with no memory of earlier solutions.
    make_target : callable
        ``make_target(scores, data)`` returns the scores of a fixed target, or None where groups are compared with
        each other.
    own_weights : bool
        Weights for each group.
    tol, max_iter
        Of the solver.
    names : ndarray, optional
        Names of the columns.
    """

    def __init__(
        self,
        data: TrainingData,
        estimator: Any,
        *,
        make_penalty: Callable[[], TransportPenalty],
        make_target: Callable[[NDArray[np.float64], TrainingData], NDArray[np.float64] | None],
        own_weights: bool,
        tol: float,
        max_iter: int,
        names: NDArray[Any] | None = None,
    ) -> None:
        self.own_weights, self.tol, self.max_iter, self.data = own_weights, tol, max_iter, data
        self.order = order = _order(data, own_weights=own_weights)
        # The rows that the solver sees, in canonical order and in units of their own.
        rows = data.select(order)
        weights = rows.weights
        self.scaling = Scaling.of(rows.X, weights, centred=bool(getattr(estimator, "fit_intercept", True)))
        if estimator is not None:
            self.start = starting_point(estimator, rows.X, rows.y, weights, names=names)
        self.rows = rows = replace(rows, X=self.scaling.apply(rows.X, overwrite=True))
        n_columns = rows.X.shape[1]
        shares = rows.shares
        self.models = _groups_in_order(rows) if own_weights else ()
        if estimator is None:
            self.start = self._default_start(shares, names)
        ridge = np.full(n_columns, self.start.ridge)
        if estimator is not None:  # its ridge is that of the columns as given
            ridge /= self.scaling.unit**2
        self.problem = LogisticProblem(
            _parts(rows.X, rows.groups, self.models), rows.positive, shares, ridge, self.start.has_intercept,
            len(self.models), self.scaling.to_scaled(self.start.theta) if own_weights else None,
        )  # fmt: skip
        self.initial = np.tile(self.scaling.to_scaled(self.start.theta), (self.problem.shape[0], 1))
        self.scores = scores = sigmoid(self.problem.logits(self.initial))
        if np.ptp(scores) == 0.0:
            raise ValueError(
                "The initial model gives every row the same score, so there is nothing to transport: "
                "check that the features vary and that the model was able to learn."
            )
        between = weigh_by_reliability(demographic_parity(rows.groups, row_weights=weights), scores)
        self.target, self.comparisons = make_target(scores, rows), between
        if self.target is not None:
            aimed = demographic_parity(rows.groups, target=self.target, row_weights=weights)
            self.comparisons = weigh_by_reliability(aimed, scores)
        self.judge = Judge(rows.positive, shares, between, scores)
        self.make_penalty, self.penalty = make_penalty, make_penalty()
        value = self.penalty.value_and_gradient(scores, self.comparisons).value if self.comparisons.active.size else 0.0
        self.unit = self.judge.information / value if value > 0.0 else 0.0
        self.solver = LbfgsSolver(
            self.problem,
            self.penalty,
            self.comparisons,
            initial=self.initial,
            unit=self.unit,
            tol=tol,
            max_iter=max_iter,
        )
        self.rough = self._rough_solver()
        self._folds: list[_Fold] = []
        self._bar: Any = None

    def _rough_solver(self) -> LbfgsSolver:
        """Return a solver that stops early and sees some rows of large groups, for fits that others start from."""
        settings: dict[str, Any] = {"unit": self.unit, "tol": _PATH_TOLERANCE * self.tol, "max_iter": self.max_iter}
        picked, shares = self.spread(np.arange(len(self.problem.labels)))
        problem, comparisons = self.problem, self.comparisons
        if picked.size < len(self.problem.labels):
            problem = self.part(picked, shares)
            comparisons = comparisons.restricted(picked, shares * picked.size)
        settings["factors"] = self.solver.factors
        return LbfgsSolver(problem, self.make_penalty(), comparisons, initial=self.initial, **settings)

    def spread(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return some rows of large groups, at even distances, and their shares, which keep those of the groups."""
        shares, groups = self.problem.shares[rows], self.rows.groups
        if groups.overlapping:
            return rows, shares / shares.sum()
        codes, kept, mass = groups.codes[rows], [], []
        most = _PATH_ROWS * max(20, self.problem.n_columns)
        for code in range(len(groups) + 1):  # the last are rows of no group
            own = np.flatnonzero(codes == code)
            few = own[np.arange(0, own.size, max(1, -(-own.size // most)))]
            kept.append(few)
            mass.append(shares[few] * (shares[own].sum() / max(float(shares[few].sum()), 1e-300)))
        chosen = np.concatenate(kept)
        order = np.argsort(chosen)
        weights = np.concatenate(mass)[order]
        return rows[chosen[order]], weights / weights.sum()

    def part(self, rows: NDArray[np.int64], shares: NDArray[np.float64], n_rows: int | None = None) -> LogisticProblem:
        """Return the problem of some rows, which stand for ``n_rows``."""
        parts = _parts(self.rows.X[rows], self.rows.groups.select(rows), self.models)
        standing = len(self.problem.labels) if n_rows is None else n_rows
        return replace(self.problem, parts=parts, labels=self.problem.labels[rows], shares=shares, n_rows=standing)

    # ---------------------------------------------------------------- fitting

    @property
    def flexible(self) -> bool:
        """Whether training rows flatter the model, so that its disparity is estimated out of fold."""
        return self.own_weights or self.problem.n_columns * _FLEXIBLE > len(self.problem.labels)

    def fit(self, weight: float, *, verbose: bool, title: str) -> LinearFit:
        """Train with one weight."""
        path = WeightPath(self._run, self.judge)
        with progress(title, self.max_iter, show=verbose) as bar:
            self._bar = bar
            point = self._final(path, weight, self._approached(weight))
        return self._finished(path, point, "", reached=True)

    def fit_path(self, weights: list[float]) -> list[LinearFit]:
        """Train with each of several ascending weights, each from the one before."""
        found, path, start = [], WeightPath(self._run, self.judge), self.initial
        self._bar = None
        for weight in weights:
            point = self._final(path, weight, start)
            start = point.result.parameters
            found.append(self._finished(path, point, "", reached=True))
        return found

    def fit_automatic(self, rule: AutomaticWeight, *, verbose: bool, title: str) -> LinearFit:
        """Train with the weight that a rule chooses on the path."""
        path = WeightPath(self._run_judged if self.flexible else self._run, self.judge)
        with progress(title, 0, show=verbose) as bar:
            self._bar = bar
            chosen, reason, reached = rule.choose(path)
            final = chosen
            if chosen.weight > 0.0:
                result = self.solver.run(chosen.weight, chosen.result.parameters)
                seen = self._seen()
                measures, rough = (seen.measure(self._scores_of(one)) for one in (result, chosen.result))
                # Near the border of what was asked for, the last steps may cross it: then the rough fit stands.
                if rule.accepts(measures, rough):
                    final = PathPoint(chosen.weight, result, chosen.measures if self.flexible else measures)
        return self._finished(path, final, reason, reached=reached)

    def _approached(self, weight: float) -> NDArray[np.float64]:
        """Return where the fit of a weight begins: at a rough fit of smaller ones.

        The penalty is not convex. Coming from small weights, fits of different weights end in the same valley, and more
        weight means less disparity.
        """
        start = self.initial
        for smaller in PATH_WEIGHTS:
            if smaller < 0.5 * weight:
                start = self.rough.run(smaller, start).parameters
        return start

    def _final(self, path: WeightPath, weight: float, start: NDArray[np.float64]) -> PathPoint:
        result = self.solver.run(weight, start, self._report)
        point = PathPoint(weight, result, self.judge.measure(sigmoid(self.problem.logits(result.parameters))))
        path.points.append(point)
        return point

    def _report(self, iteration: int, penalty: float, loss: float) -> None:
        if self._bar is not None:
            self._bar.advance(iteration, f"penalty {penalty:.4f}, loss {loss:.4f}")

    def _run(self, weight: float, start: NDArray[np.float64] | None) -> tuple[LbfgsResult, NDArray[np.float64]]:
        start = self.initial if start is None else start
        if weight == 0.0 and not self.own_weights:
            result = LbfgsResult(start, True, "the initial model", 0, [])
        else:
            result = self.rough.run(weight, start, self._report)
        return result, self._scores_of(result)

    def _scores_of(self, result: LbfgsResult) -> NDArray[np.float64]:
        return np.asarray(sigmoid(self.problem.logits(result.parameters)))

    def _seen(self) -> Judge:
        """Return the judge of the training rows themselves, also where others were asked."""
        return Judge(self.judge.labels, self.judge.shares, self.judge.comparisons, self.scores)

    def _run_judged(self, weight: float, start: NDArray[np.float64] | None) -> tuple[LbfgsResult, NDArray[np.float64]]:
        """Fit all rows, and judge by models that have not seen the rows they score."""
        result = self._run(weight, start)[0]
        if not self._folds:
            self._folds = [_Fold(self, number) for number in range(_FOLDS)]
            unseen = np.empty_like(self.scores)
            for fold in self._folds:
                unseen[fold.held_out] = fold.initial_scores
            self.judge.initial = unseen
            vars(self.judge).pop("information", None)
        scores = np.empty_like(self.scores)
        for fold in self._folds:
            scores[fold.held_out] = fold.scores(weight)
        return result, scores

    # ---------------------------------------------------------------- results

    def _finished(self, path: WeightPath, point: PathPoint, reason: str, *, reached: bool) -> LinearFit:
        trained = sigmoid(self.problem.logits(point.result.parameters))
        theta, common = self._weights_of(point.result.parameters)
        return LinearFit(
            theta=theta,
            common=common,
            weight=point.weight,
            unit=self.unit,
            reason=reason,
            reached=reached,
            point=point,
            path=path,
            path_weights=[self._weights_of(one.result.parameters) for one in path.points],
            information=self.judge.information,
            initial_scores=_unsorted(self.scores, self.order),
            scores=_unsorted(trained, self.order),
            figures=before_and_after(self._seen(), trained),
            comparisons=self.comparisons,
            scores_in_order=trained,
            penalty=self.penalty,
            start=self.start,
            scaling=self.scaling,
            target=self.target,
        )

    def _weights_of(self, parameters: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the weights of each group in the groups' order, and the common ones, for features as given."""
        common = self.scaling.to_raw(self.problem.common(parameters))
        raw = self.scaling.to_raw(parameters)
        if not self.own_weights:
            return raw, common
        theta = np.tile(common, (len(self.rows.groups), 1))
        theta[list(self.models)] = raw
        return theta, common

    def _default_start(self, shares: NDArray[np.float64], names: NDArray[Any] | None) -> Start:
        """Fit logistic regression with the ridge of scikit-learn's default, on columns in units of their own."""
        rows, n_columns = self.rows, self.rows.X.shape[1]
        total = float(len(shares)) if rows.weights is None else float(rows.weights.sum())
        problem = LogisticProblem((rows.X,), rows.positive, shares, np.full(n_columns, 1.0 / total), has_intercept=True)
        rate = float(shares @ rows.positive)
        begin = np.zeros(problem.shape)
        begin[0, -1] = np.log(rate / (1.0 - rate))
        theta = self.scaling.to_raw(_minimise_loss(problem, begin)[0])
        model = LogisticRegression()
        model.classes_, model.n_features_in_ = rows.classes, n_columns
        model.coef_, model.intercept_ = theta[None, :-1].copy(), theta[-1:].copy()
        model.n_iter_ = np.ones(1, dtype=np.int32)
        if names is not None:
            model.feature_names_in_ = names
        return Start(model, theta, 1.0 / total, has_intercept=True)


class _Fold:
    """A model trained without some rows, along the same weights."""

    def __init__(self, fitter: LinearFitter, number: int) -> None:
        data, problem = fitter.rows, fitter.problem
        dealt = _dealt(data)
        self.held_out = np.flatnonzero(dealt % _FOLDS == number)
        kept = np.flatnonzero(dealt % _FOLDS != number)
        picked, shares = fitter.spread(kept)
        self.problem = fitter.part(picked, shares, kept.size)
        self._held = fitter.part(self.held_out, problem.shares[self.held_out])
        plain = replace(self.problem, parts=(data.X[picked],), n_groups=0, center=None)
        theta = _minimise_loss(plain, fitter.initial[:1])
        if problem.center is not None:
            self.problem, self._held = (replace(one, center=theta[0]) for one in (self.problem, self._held))
        self._initial = np.tile(theta, (problem.shape[0], 1))
        self.initial_scores = sigmoid(self._held.logits(self._initial))
        comparisons = fitter.comparisons.restricted(picked, shares * picked.size)
        self._solver = LbfgsSolver(
            self.problem, fitter.make_penalty(), comparisons, initial=self._initial, unit=fitter.unit,
            tol=_PATH_TOLERANCE * fitter.tol, max_iter=fitter.max_iter,
        )  # fmt: skip
        self._known: dict[float, NDArray[np.float64]] = {}

    def scores(self, weight: float) -> NDArray[np.float64]:
        """Return scores of the rows that were left out."""
        below = [w for w in self._known if w <= weight]
        start = self._known[max(below)] if below else self._initial
        self._known[weight] = self._solver.run(weight, start).parameters
        return sigmoid(self._held.logits(self._known[weight]))


def _minimise_loss(problem: LogisticProblem, begin: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fit without a penalty."""
    nothing = Comparisons.of_cells(len(problem.labels), [], [])
    solver = LbfgsSolver(problem, DiscretePenalty(), nothing, initial=begin, unit=0.0, tol=1e-6, max_iter=500)
    return solver.run(0.0, begin).parameters


def _order(data: TrainingData, *, own_weights: bool) -> NDArray[np.int64]:
    """Return the canonical order of the rows; with own weights, the rows of each group lie side by side."""
    order = canonical_order(data.X, data.positive, data.weights)
    if not own_weights:
        return order
    codes = data.groups.codes[order]
    counts, first = np.bincount(codes, minlength=len(data.groups) + 1), np.full(len(data.groups) + 1, len(order))
    seen, where = np.unique(codes, return_index=True)
    first[seen] = where
    position = np.empty(len(counts), np.int64)
    counts[-1] = len(order) + 1  # rows of no group come last
    position[np.lexsort((first, counts))] = np.arange(len(counts))  # free of the groups' names
    return np.asarray(order[np.argsort(position[codes], kind="stable")])


def _groups_in_order(rows: TrainingData) -> tuple[int, ...]:
    """Return the groups in the order of their rows, which lie side by side."""
    filled = [group for group, own in enumerate(rows.groups.rows) if own.size]
    return tuple(sorted(filled, key=lambda group: int(rows.groups.rows[group][0])))


def _parts(X: Any, groups: Groups, models: tuple[int, ...]) -> tuple[Any, ...]:
    """Return the rows of each group with own weights, then those of no group; all rows where weights are shared."""
    if not models:
        return (X,)
    sizes = groups.counts
    ends = np.concatenate(([0], np.cumsum([sizes[group] for group in models])))
    parts = [X[start:stop] for start, stop in pairwise(ends.tolist())]
    return (*parts, X[ends[-1] :]) if ends[-1] < X.shape[0] else tuple(parts)


def _dealt(rows: TrainingData) -> NDArray[np.int64]:
    """Return a number for each row, counted within its group and label, whose remainders spread them evenly."""
    cells = np.unique(np.column_stack((*rows.groups.memberships, rows.positive)), axis=0, return_inverse=True)[1]
    order = np.argsort(cells.reshape(-1), kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(cells.reshape(-1)))))[:-1]
    dealt = np.empty(len(order), np.int64)
    dealt[order] = np.arange(len(order)) - starts[cells.reshape(-1)[order]]
    return dealt


def _unsorted(values: NDArray[Any], order: NDArray[np.int64]) -> NDArray[Any]:
    back = np.empty_like(values)
    back[order] = values
    return back
