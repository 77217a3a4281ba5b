"""The fit of blind repair, in stages: groups, cross-fitted models, cells, potentials, report."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils import assert_all_finite, get_tags

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport._sklearn import (
    Fold,
    as_features,
    canonical_rows,
    content_keys,
    deal_rows,
    last_step,
    make_folds,
    model_scores,
    n_rows,
    needs_groups,
    take_rows,
    upper_half,
)
from fairtransport._validation import check_choice, check_length, check_real
from fairtransport._warnings import FairnessWarning, warn_caller
from fairtransport.criteria import Criterion, DemographicParity
from fairtransport.criteria.comparisons import Comparisons, Represented
from fairtransport.criteria.criterion import as_criterion, needs_labels, resolve_criterion
from fairtransport.criteria.penalty import DiscretePenalty
from fairtransport.groups import GroupPolicy, Groups, check_policy
from fairtransport.repair._repaired_model import cannot_memorise, weight_options
from fairtransport.repair.blind.group_model import (
    Calibration,
    GroupModelReport,
    calibrate,
    default_group_estimators,
    describe_probabilities,
    fit_scaled_regression,
    is_scaled_regression,
    linear_scale,
    without_information,
)
from fairtransport.repair.blind.potentials import LOSSES, Cells, Potentials, make_cells, score_nodes, solve_potentials
from fairtransport.repair.blind.settings import BlindRepair
from fairtransport.repair.group_checks import separate_groups, stratum_codes
from fairtransport.strata import Strata, count_ranges, make_strata
from fairtransport.training.outcome import (
    FITTED_NOISE,
    HeldOutChange,
    Notice,
    held_out_change,
    judged_pairs,
    parity_evidence,
    repair_outcome,
)
from fairtransport.training.weight_path import MIN_INFORMATION
from fairtransport.transport.line import Sample

# The dual problem of blind repair: out-of-fold predictions, the slack of a limit, and held-out disparities.

_MOST_SOLUTIONS = 7  # of the search for a slack
_HALVES_TOL = 3e-7  # of the dual of half of the rows, which is solved to see what new rows show
_NO_LIMIT = 0.5  # a slack at which hardly anything is moved
_WIDER, _MOST_WIDER = 2.0, 12  # steps of an automatic slack to where half of what the model explains is kept
_EXACT = DiscretePenalty(huber_width=0.0, n_slices=None, scale="score")


@dataclass(frozen=True, eq=False)
class Problem:
    """Out-of-fold predictions and contrasts, and the pairs of groups that the criterion compares."""

    predicted: Floats
    contrasts: Floats
    centering: Floats
    chance: Floats
    label_weights: Floats
    loss: str
    low: float
    high: float
    weights: Floats | None
    pairs: Comparisons
    clip: bool

    @cached_property
    def nodes(self) -> Floats:
        return score_nodes(self.predicted, self.weights, loss=self.loss, low=self.low, high=self.high)

    def solve(
        self, slack: Floats, start: Potentials | None, rows: Ints | slice = slice(None), tol: float | None = None
    ) -> Potentials:
        return solve_potentials(
            self.predicted[rows], self.contrasts[rows], self.nodes, slack=slack, centering=self.centering,
            loss=self.loss, weights=None if self.weights is None else self.weights[rows], start=start, tol=tol,
        )  # fmt: skip

    def moved(self, potentials: Potentials, rows: Ints | slice = slice(None)) -> Floats:
        found = potentials.move(self.predicted[rows], self.contrasts[rows])
        return np.clip(found, self.low, self.high) if self.clip else found

    @property
    def unmoved(self) -> Potentials:
        """Potentials of the plain model."""
        return Potentials(self.nodes, np.zeros((self.chance.size, self.nodes.size - 1)), self.loss)

    def disparity(self, scores: Floats) -> float:
        """Return the mean distance between the pairs, by weight."""
        return float(_EXACT.value(scores, self.pairs) / self.pairs.weights.sum())

    def choose(
        self, slack: Any, limit: float | None, start: Potentials | None = None
    ) -> tuple[Floats, Potentials, bool]:
        """Return the slack of each cell, the potentials, and whether a limit on the disparity was reached."""
        if limit is None:
            each = self.chance if slack == "auto" else float(slack) / self.label_weights
            return each, self.solve(each, start), True
        low, high = (0.0, 0.0), (_NO_LIMIT, self.disparity(self.predicted))
        if high[1] <= limit:
            return np.full(self.chance.size, _NO_LIMIT), self.unmoved, True
        best = None
        # The disparity is almost linear in the slack, so that a few secants find the slack of the limit.
        for number in range(_MOST_SOLUTIONS):
            share = (limit - low[1]) / max(high[1] - low[1], 1e-12) if number else 0.3 * limit / high[1]
            trial = float(f"{low[0] + np.clip(share, 0.05, 0.95) * (high[0] - low[0]):.3g}")  # rounding decides nothing
            each = trial / self.label_weights
            start = self.solve(each, start)
            reached = self.disparity(self.moved(start))
            if reached <= limit:
                low, best = (trial, reached), (each, start)
                if reached >= 0.97 * limit:
                    break
            else:
                high = (trial, reached)
        if best is None:
            each = np.zeros(self.chance.size)
            best = each, self.solve(each, start)
        return *best, self.disparity(self.moved(best[1])) <= limit

    def repair_held_out(self, potentials: Potentials, slack: Floats, half: Ints) -> Floats:
        """Return repaired predictions, each half of the rows with potentials from the other half."""
        scores = np.empty(self.predicted.size)
        for rows, others in ((np.flatnonzero(half == one), np.flatnonzero(half != one)) for one in (0, 1)):
            # From nothing: potentials of all rows know those that are held out.
            part = self.solve(slack, None, others, tol=_HALVES_TOL) if potentials.slopes.any() else potentials
            scores[rows] = self.moved(part, rows)
        return scores


# Fits of the two models of blind repair, on all rows and without each fold, and their predictions.


def _check_predicts(estimator: Any, name: str, kind: str, method: str) -> None:
    """Raise unless a model has the methods that are needed."""
    if isinstance(estimator, type) or not hasattr(estimator, "fit") or not hasattr(estimator, method):
        adds = " Wrap it in sklearn.calibration.CalibratedClassifierCV, which adds it."
        hint = adds if method == "predict_proba" else ""
        raise TypeError(f"{name} must be a {kind} with fit and {method}; got a {_name(estimator)}.{hint}")


def _check_base_estimator(estimator: Any, *, regression: bool) -> None:
    """Raise unless the model predicts what is asked for, from features alone."""
    kind, method = ("regressor", "predict") if regression else ("classifier", "predict_proba")
    last = last_step(estimator)[1] if hasattr(estimator, "fit") else estimator
    _check_predicts(estimator, "estimator", kind, method)
    if is_regressor(last) is not regression and (regression or is_regressor(last)):
        raise TypeError(f"estimator must be a {kind}; got a {_name(last)}.")
    if _needs_groups(last):
        model = last.estimator if isinstance(last, FrozenEstimator) else last
        raise TypeError(
            f"estimator must be a model of the features alone, and {type(model).__name__} needs sensitive_features. "
            "Repair a plain model, or use that estimator as it is."
        )


def _needs_groups(model: Any) -> bool:
    """Return whether a model needs groups: one to be fitted in ``fit``, a frozen one at prediction."""
    if isinstance(model, FrozenEstimator):
        return needs_groups(model.estimator)
    try:
        groups = inspect.signature(model.fit).parameters.get("sensitive_features")
    except (TypeError, ValueError):  # compiled methods may have no signature
        return False
    return groups is not None and groups.default is inspect.Parameter.empty


def cross_fit(
    estimator: Any,
    rows: BlindRows,
    target: NDArray[Any],
    folds: Sequence[Fold],
    predict: Callable[[Any, Any], Floats],
    *,
    use: Bools | None = None,
    shown: Ints | None = None,
    fit: Callable[..., Any] | None = None,
) -> tuple[Any, Floats]:
    """Return the model fitted on all rows in use, and predictions of the rows to be shown by models without them."""
    fit, use = fit or _fit, np.ones(len(target), dtype=bool) if use is None else use

    def trained(positions: Ints, model: Any) -> Any:
        rest = rows.features(positions), target[positions], _take(rows.weights, positions)
        if model is not None:
            try:
                return fit(_started(clone(estimator), model, rest[1]), *rest)
            except ValueError:  # steps before it may leave other columns in this fold
                pass
        return fit(clone(estimator), *rest)

    model = trained(np.flatnonzero(use), None)
    shown = np.arange(len(target)) if shown is None else shown
    total, times = None, np.zeros(len(shown))
    for fold in folds:
        part = trained(fold.training[use[fold.training]], model)
        at = np.flatnonzero(np.bincount(fold.held_out, minlength=len(target))[shown])
        predicted = predict(part, rows.features(shown[at]))
        total = np.zeros((len(shown), *predicted.shape[1:])) if total is None else total
        total[at] += predicted
        times[at] += 1
    if isinstance(model, FrozenEstimator):
        model = model.estimator
    assert total is not None
    with np.errstate(invalid="ignore"):
        total /= times.reshape(-1, *[1] * (total.ndim - 1))
    return model, total


def _started(part: Any, model: Any, target: NDArray[Any]) -> Any:
    """Let the logistic regression of a fold start from that of all rows, where that cannot know single rows."""
    last, fitted = last_step(part)[1], last_step(model)[1]
    starts = type(last) is LogisticRegression and last.solver != "liblinear"
    if starts and cannot_memorise(model, target.size) and np.array_equal(np.unique(target), fitted.classes_):
        last.set_params(warm_start=True)
        last.coef_, last.intercept_ = fitted.coef_.copy(), fitted.intercept_.copy()
    return part


def _fit(model: Any, X: Any, target: NDArray[Any], weights: Floats | None) -> Any:
    with config_context(enable_metadata_routing=False):  # weights are passed by step name
        return model.fit(as_features(X), target, **weight_options(model, weights, "; leave the weights out."))


def predictions(model: Any, X: Any) -> Floats:
    """Return finite predictions of a regressor, or probabilities of class 1."""
    found = model_scores(model, X)
    if found.ndim != 1:
        raise ValueError(f"estimator must predict one number for each row; it predicted shape {found.shape}.")
    n_bad = int(np.count_nonzero(~np.isfinite(found)))
    if n_bad:
        raise ValueError(f"estimator predicts {n_bad} of {found.size} rows as NaN or infinite.")
    return found


def group_probabilities(model: Any, X: Any, n_classes: int) -> Floats:
    """Return the probabilities of the classes 0, 1, ..., n_classes - 1."""
    with config_context(enable_metadata_routing=False):
        found = np.asarray(model.predict_proba(as_features(X, model)), dtype=np.float64)
    classes = np.asarray(model.classes_)
    if classes.dtype.kind not in "iuf" or not np.isin(classes, np.arange(n_classes)).all():
        raise ValueError(
            f"group_estimator predicts other classes than the {n_classes} codes of the groups. Give it unfitted, or "
            "fit it to make_groups(...).codes before it is frozen."
        )
    if found.ndim != 2 or found.shape[1] != classes.size:
        raise ValueError(f"group_estimator must give a probability for each class; it gave shape {found.shape}.")
    if not np.isfinite(found).all() or (found < -1e-6).any():
        raise ValueError("group_estimator gives probabilities that are NaN, infinite or negative.")
    table = np.zeros((len(found), n_classes))
    table[:, classes.astype(np.int64)] = np.maximum(found, 0.0)
    return table


def _take(weights: Floats | None, rows: Ints) -> Floats | None:
    return None if weights is None else weights[rows]


def _name(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else type(value).__name__


MAX_ROWS = 100_000  # rows that potentials are computed from
_MOST_BINS = 5  # ranges of a real-valued label
_KNOWN = 0.95  # share of the groups' entropy above which features as good as contain the groups
_MOST_ERROR = 0.05  # of the probabilities of a linear model, beyond chance; one of the wrong form was off by .12
_LEAST_GAIN = 2.0  # of the group model's log-loss over a constant, in standard errors


@dataclass(frozen=True, eq=False)
class BlindRows:
    """Validated arguments of ``fit``."""

    X: Any
    target: NDArray[Any]
    is_high: Bools
    labels: Ints | None
    groups: Groups
    known: Bools
    strata: Strata | None
    weights: Floats | None
    order: Ints | None = None  # of the rows of X, which are not copied
    keys: Floats | None = None

    def features(self, positions: Ints) -> Any:
        """Return the features of some rows."""
        if self.order is None and np.array_equal(positions, np.arange(self.target.size)):
            return self.X
        return take_rows(self.X, positions if self.order is None else self.order[positions])

    def in_canonical_order(self) -> BlindRows:
        """Return the rows of positive weight in an order that their content decides, and that looks random."""
        if self.weights is not None and not self.weights.all():
            kept = np.flatnonzero(self.weights)
            return self._select(kept, X=take_rows(self.X, kept)).in_canonical_order()
        keys = content_keys(self.X)
        columns = (self.groups.codes, self.target, keys)
        order = np.lexsort(columns if self.weights is None else (self.weights, *columns))
        order = order[np.random.default_rng(0).permutation(order.size)]
        return self._select(order, X=self.X, order=order, keys=keys[order])

    def _select(self, rows: Ints, **features: Any) -> BlindRows:
        arrays = {name: getattr(self, name) for name in ("target", "is_high", "labels", "known", "weights")}
        taken: Any = {name: None if one is None else one[rows] for name, one in arrays.items()}
        strata = None if self.strata is None else self.strata.select(rows)
        return BlindRows(groups=self.groups.select(rows), strata=strata, **features, **taken)


@dataclass(frozen=True, eq=False)
class Solution:
    """The map for a slack, what it leaves on held-out rows, and whether a limit on the disparity was reached."""

    potentials: Potentials
    report: GroupModelReport
    reached: bool
    change: HeldOutChange
    is_widened: bool = False  # an automatic slack, to where half of what the model explains is kept

    def outcome(self, max_disparity: float | None) -> Notice:
        """Say what the repair leaves, and warn where it is not what it seems, or a limit was not reached."""
        report, change, warnings = self.report, self.change, list[str]()
        advice = "Repair with the group at hand (QuantileRepairClassifier, QuantileRepairRegressor) goes further."
        outcome = repair_outcome(change, "Blind repair", advice)
        text = outcome.text
        if not report.is_predictable:
            text = "the features do not tell the groups better than chance does; nothing was moved"
            warnings.append(
                "The features do not tell the groups better than chance does, so that predictions from them cannot "
                "differ between groups by more: nothing is repaired."
            )
        elif report.information > _KNOWN:
            warnings.append(
                f"The features tell {report.information:.0%} of what there is to know about the groups. Repair without "
                "the group then treats people as if their group were known; leave out columns that tell it if that is "
                "not intended."
            )
        if not self.reached:
            text = f"max_disparity={max_disparity:g} was not reached on held-out rows"
            warnings.append(
                f"max_disparity={max_disparity:g} was not reached: the disparity of held-out rows is "
                f"{report.disparity:.4g}, and chance alone shows {report.noise_floor:.4g}."
            )
        elif report.is_predictable and max_disparity is not None:
            text = f"max_disparity={max_disparity:g} was met on held-out rows"
        elif report.is_predictable and self.is_widened:
            text = "the scores were repaired as far as half of what the plain model explains is kept"
            warnings.append(
                "Blind repair stopped early, because going on would leave less than half of the plain model's "
                "information: on "
                f"{change.evidence.n_rows:,} {change.rows}, the mean rank disparity between groups goes from "
                f"{change.rank_disparity[0]:.3f} to {change.rank_disparity[1]:.3f}{change.evidence.text}. Set "
                f"slack to a smaller number to go on. {advice}"
            )
        elif report.is_predictable:
            return Notice(text, (*((one, FairnessWarning) for one in warnings), *outcome.warnings))
        return Notice(text, tuple((one, FairnessWarning) for one in warnings))


def check_options(model: Any, repair: BlindRepair, *, classifies: bool) -> None:
    """Raise for parameters that are not valid, before anything is fitted."""
    as_criterion(repair.criterion)
    check_choice(repair.loss, LOSSES, name="loss")
    check_real(model.amount, name="amount", most=1.0)
    if repair.max_disparity is not None:
        check_real(repair.max_disparity, name="max_disparity")
        if model.slack != "auto":
            raise ValueError("max_disparity chooses the slack: leave slack at 'auto', or max_disparity at None.")
    if isinstance(model.slack, str):
        check_choice(model.slack, ("auto",), name="slack")
    else:
        check_real(model.slack, name="slack", most=1.0)
    if model.group_estimator is not None:
        _check_predicts(model.group_estimator, "group_estimator", "classifier", "predict_proba")
    _check_base_estimator(model.estimator, regression=not classifies)
    if not classifies and repair.loss != "squared":
        raise ValueError(f"loss={repair.loss!r} is for classifiers; a regressor has loss='squared'.")


def read_rows(
    X: Any,
    target: NDArray[Any],
    *,
    model: Any,
    criterion: str | Criterion,
    classifies: bool,
    sensitive_features: Any,
    strata: Any,
    weights: Floats | None,
) -> BlindRows:
    """Return the rows with their groups, of which at least two must be left."""
    size = n_rows(X)
    check_length(target, size=size, name="y")
    X = canonical_rows(X)
    if isinstance(X, np.ndarray) and not get_tags(model.estimator).input_tags.allow_nan:
        assert_all_finite(X, input_name="X")  # before folds, of which few finite rows may not allow any
    if sensitive_features is None:
        raise ValueError(
            f"{type(model).__name__} needs sensitive_features in fit: the group of each row. Predictions do without."
        )
    policy = check_policy(model.groups)
    groups = separate_groups(sensitive_features, policy, n_rows=size, owner="BlindRepair")
    sizes = None if weights is None else groups.select(weights > 0).counts
    groups = groups.settle(policy.small, policy.min_size, sizes)
    groups.require()
    known = groups.codes < len(groups)
    warn_of_small_groups(groups.counts if weights is None else groups.select(weights > 0).counts, policy)
    if weights is not None:
        known &= weights > 0
        groups.select(np.flatnonzero(known)).require()
    cells = None if strata is None else make_strata(strata, n_groups=len(groups))
    if cells is not None:
        check_length(range(cells.n_rows), size=size, name="strata")
    is_high = target == np.unique(target)[-1] if classifies else upper_half(target, _quantiles(target, 0.5, weights))
    labels = None
    if needs_labels(criterion):
        labels = is_high.astype(np.int64) if classifies else _label_ranges(target, len(groups), weights)
    return BlindRows(X, target, is_high, labels, groups, known, cells, weights)


def warn_of_small_groups(sizes: NDArray[Any], policy: GroupPolicy) -> None:
    """Warn of groups with fewer rows than the policy asks for."""
    n_small = int(np.count_nonzero(sizes < policy.min_size))
    if n_small:
        have = "has" if n_small == 1 else "have"
        warn_caller(
            f"{n_small} of {len(sizes)} groups {have} fewer than {policy.min_size} rows, which tell little of them. "
            "Merge small groups with others (groups=GroupPolicy(small='pool')), or drop them (small='drop').",
            FairnessWarning,
        )


def _label_ranges(target: Floats, n_groups: int, weights: Floats | None) -> Ints:
    """Return the range of each real-valued label, for equalized odds: at most five, cut at quantiles."""
    size = target.size if weights is None else int(max(weights.sum(), np.count_nonzero(weights)))
    n_ranges = max(min(count_ranges(size, n_groups), _MOST_BINS), 2)
    cuts = np.unique(_quantiles(target, np.linspace(0.0, 1.0, n_ranges + 1)[1:-1], weights))
    return np.searchsorted(cuts, target, side="right").astype(np.int64)


def _quantiles(values: Floats, levels: Any, weights: Floats | None) -> Any:
    return Sample.from_values(values, weights).quantile(levels)


def joint_probabilities(probabilities: Floats, predicted: Floats | None, n_labels: int) -> Floats:
    """Return P(label, group | x) as an array (rows, labels, groups)."""
    table = probabilities.reshape(len(probabilities), -1, n_labels).transpose(0, 2, 1)
    if n_labels == 1 or predicted is None:
        return table
    given = table / np.maximum(table.sum(axis=2, keepdims=True), 1e-12)
    return given * np.column_stack((1.0 - predicted, predicted))[:, :, None]


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Both models, fitted on all rows, and the problem that their out-of-fold predictions pose."""

    estimator: Any
    group_estimator: Any
    calibration: Calibration
    cells: Cells
    problem: Problem
    outcomes: Floats
    information: float
    calibration_error: float
    is_predictable: bool
    groups: Groups
    strata: Strata | None
    seed: int
    half: Ints | None

    def solve(self, slack: Any, max_disparity: float | None, *, start: Potentials | None = None) -> Solution:
        """Solve the potentials for a slack, or for a limit on the disparity."""
        problem, is_automatic = self.problem, max_disparity is None and isinstance(slack, str)
        each, potentials, reached = problem.choose(slack, max_disparity, start)
        held_out, change = self._held_out(potentials, each)
        is_widened = is_automatic and change.helps and change.information_kept < MIN_INFORMATION
        if is_widened:
            for _ in range(_MOST_WIDER):  # a number is obeyed, however little it keeps
                each = _WIDER * each
                held_out, change = self._held_out(potentials, each)
                if change.information_kept >= MIN_INFORMATION:
                    break
            potentials = problem.solve(each, potentials)
        if max_disparity is None and not is_automatic and (each < problem.chance).any():
            # Differences below what chance shows are noise: what is wider there may be better in error and disparity.
            each = np.maximum(each, problem.chance)
            wider = problem.solve(each, potentials)
            scores, other = self._held_out(wider, each)
            if other.error[1] <= change.error[1] and other.rank_disparity[1] <= change.rank_disparity[1]:
                potentials, held_out, change = wider, scores, other
        if is_automatic and not change.helps:
            potentials, held_out, change = problem.unmoved, problem.predicted, change.undone()
        report = GroupModelReport(
            n_rows=problem.pairs.n_people, n_groups=len(self.groups), information=self.information,
            calibration_error=self.calibration_error, disparity_before=problem.disparity(problem.predicted),
            disparity=problem.disparity(held_out), is_predictable=self.is_predictable,
            noise_floor=parity_evidence(held_out, problem.pairs).floor,
            information_kept=change.information_kept,
        )  # fmt: skip
        return Solution(potentials, report, reached, change, is_widened and not change.is_undone)

    def _held_out(self, potentials: Potentials, slack: Floats) -> tuple[Floats, HeldOutChange]:
        """Return repaired predictions of rows that their potentials have not seen, and what became of them."""
        problem, nobody = self.problem, np.zeros(self.outcomes.size, dtype=np.int64)
        half = self.half
        if half is None:
            half = deal_rows(problem.predicted, nobody, nobody, 2, np.random.default_rng(self.seed))
        scores = problem.repair_held_out(potentials, slack, half)
        return scores, held_out_change(
            problem.predicted, scores, self.outcomes, problem.pairs, classifies=problem.clip, parts=half,
            excess_noise=FITTED_NOISE, decisions=problem.loss == "zero_one",
        )  # fmt: skip


def cross_fit_models(model: Any, repair: BlindRepair, rows: BlindRows, *, classifies: bool) -> CrossFit:
    """Fit both models, on all rows and without each fold."""
    rng = np.random.default_rng(repair.random_state)
    has_splits = not isinstance(model.cv, (int, np.integer))
    if not has_splits:  # those that are given are of the rows as they are
        rows = rows.in_canonical_order()
    n_labels = 1 if rows.labels is None else int(rows.labels.max()) + 1
    folds = make_folds(
        model.cv, rows.X, rows.is_high, rows.groups, rng=rng, weights=rows.weights, spreads_few=True, keys=rows.keys
    )
    for fold in folds if has_splits else ():
        fold.require_apart()
    classes = rows.groups.codes * n_labels + (0 if rows.labels is None else rows.labels)
    n_classes = len(rows.groups) * n_labels

    if any(np.unique(rows.groups.codes[fold.training][rows.known[fold.training]]).size < 2 for fold in folds):
        raise ValueError(
            "A group has a single row: a model that is fitted without it does not know it. Merge small groups with "
            "others (groups=GroupPolicy(small='pool')), or drop them (small='drop')."
        )
    base, predicted = cross_fit(model.estimator, rows, rows.target, folds, predictions)
    used = np.flatnonzero(rows.known & np.isfinite(predicted))
    if used.size > MAX_ROWS:
        used = np.sort(rng.choice(used, MAX_ROWS, replace=False))
    held_out = HeldOutRows(
        predicted[used], rows.is_high[used].astype(np.float64) if classifies else rows.target[used],
        None if rows.labels is None else rows.labels[used], n_labels, rows.groups.select(used),
        None if rows.strata is None else rows.strata.select(used), _take(rows.weights, used),
    )  # fmt: skip
    candidates = [model.group_estimator]
    if model.group_estimator is None:
        candidates = default_group_estimators(base, rows.X, repair.random_state)
    for group_estimator in candidates:  # the next one where the form of this one is wrong
        fit = fit_scaled_regression if model.group_estimator is None and is_scaled_regression(group_estimator) else None
        group_model, shown = cross_fit(
            group_estimator, rows, classes, folds, lambda fitted, X: group_probabilities(fitted, X, n_classes),
            use=rows.known, shown=used, fit=fit,
        )  # fmt: skip
        _check_seen(shown, n_labels)
        known = held_out.calibrate(shown, classifies=classifies)
        if known.gain >= _LEAST_GAIN and not known.has_wrong_form:
            break
    return pose(base, group_model, held_out, known, repair, classifies=classifies, seed=int(rng.integers(1 << 32)))


@dataclass(frozen=True, eq=False)
class KnownGroups:
    """Calibrated probabilities of the groups of rows, and what they tell about these groups."""

    calibration: Calibration
    probabilities: Floats
    information: float
    gain: float
    error: float
    has_wrong_form: bool


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """Rows of known groups with predictions by a model that has not seen them."""

    predicted: Floats
    outcomes: Floats
    labels: Ints | None
    n_labels: int
    groups: Groups
    strata: Strata | None
    weights: Floats | None
    half: Ints | None = None  # of rows that each stand for several: in which they are tested

    @property
    def copies(self) -> Floats | None:
        """The weights as counts of copies, unless they are smaller."""
        return None if self.weights is None else self.weights * max(self.weights.size / self.weights.sum(), 1.0)

    @property
    def classes(self) -> Ints:
        """Groups, crossed with labels where people with the same label are compared."""
        codes = self.groups.codes.astype(np.int64)
        return codes if self.labels is None else codes * self.n_labels + self.labels

    def calibrate(self, shown: Floats, *, classifies: bool) -> KnownGroups:
        """Calibrate probabilities of the classes by a model that has not seen the rows."""
        linear = linear_scale(self.predicted, are_probabilities=classifies)
        weights, codes = self.copies, self.groups.codes.astype(np.int64)
        calibration = calibrate(shown, self.classes, linear, weights)
        probabilities = calibration.apply(shown, linear)
        information, gain, error = _describe(probabilities, codes, self.labels, weights)
        size = self.predicted.size if weights is None else float(weights.sum())
        if gain < _LEAST_GAIN:
            calibration = without_information(self.classes, shown.shape[1], weights)
            probabilities = calibration.apply(shown, linear)
        return KnownGroups(calibration, probabilities, information, gain, error, error > _MOST_ERROR + size**-0.5)


def pose(
    base: Any, group_model: Any, rows: HeldOutRows, known: KnownGroups, repair: BlindRepair, *, classifies: bool,
    seed: int,
) -> CrossFit:  # fmt: skip
    """Return both models with the problem that predictions and probabilities of groups pose."""
    criterion, weights, labels = as_criterion(repair.criterion), rows.copies, rows.labels
    joint = joint_probabilities(known.probabilities, rows.predicted if classifies else None, rows.n_labels)
    codes = None if rows.strata is None else rows.strata.codes
    compared = {"equalized_odds": tuple(range(rows.n_labels)), "equal_opportunity": (1,)}.get(criterion.name, (0,))
    cells, chance = make_cells(
        joint, groups=rows.groups.codes.astype(np.int64), labels=labels, compared=compared, codes=codes,
        n_strata=0 if rows.strata is None else len(rows.strata), weights=weights,
    )  # fmt: skip
    low, high = (0.0, 1.0) if classifies else _quantiles(rows.predicted, (0.005, 0.995), weights).tolist()
    problem = Problem(
        rows.predicted, cells.contrasts(joint, codes), cells.centering, chance,
        _label_weights(criterion, cells, labels, weights), repair.loss, low, high, weights,
        _comparisons(criterion, rows), clip=classifies,
    )  # fmt: skip
    nobody = np.arange(0)
    return CrossFit(
        base, group_model, known.calibration, cells, problem, rows.outcomes, known.information, known.error,
        is_predictable=known.gain >= _LEAST_GAIN, groups=rows.groups.select(nobody),
        strata=None if rows.strata is None else rows.strata.select(nobody), seed=seed, half=rows.half,
    )  # fmt: skip


def _describe(
    probabilities: Floats, groups: Ints, labels: Ints | None, weights: Floats | None
) -> tuple[float, float, float]:
    """Return what calibrated probabilities tell about the groups, within labels if there are any."""
    n_parameters = probabilities.shape[1] + 1  # of the calibration: two factors and a slope for each class but one
    if labels is None:
        return describe_probabilities(probabilities, groups, weights=weights, n_parameters=n_parameters)
    table = joint_probabilities(probabilities, None, int(labels.max()) + 1)[np.arange(labels.size), labels]
    given = table / np.maximum(table.sum(axis=1, keepdims=True), 1e-12)
    return describe_probabilities(given, groups, labels=labels, weights=weights, n_parameters=n_parameters)


def _check_seen(probabilities: Floats, n_labels: int) -> None:
    """Raise for groups that a model of the groups has never seen: their probability is 0 for every row."""
    highest = np.nanmax(probabilities, axis=0).reshape(-1, n_labels).max(axis=1)
    unseen = int(np.count_nonzero(highest == 0.0))
    if unseen:
        raise ValueError(
            f"group_estimator has not seen {unseen} of {highest.size} groups. Fit it with rows of every group, or "
            "merge small groups with others (groups=GroupPolicy(small='pool'))."
        )


def _comparisons(criterion: Criterion, rows: HeldOutRows) -> Comparisons:
    """Return the pairs of groups whose disparity is reported, as notes do; ranges of a real-valued label are strata."""
    strata, labels = rows.strata, rows.labels
    if labels is not None and int(labels.max()) > 1:
        columns = {"label": labels} if strata is None else {"label": labels, "stratum": strata.codes}
        criterion, strata = DemographicParity(criterion.stratum_weight), make_strata(columns)
    pairs = resolve_criterion(
        criterion, rows.groups, labels=labels if needs_labels(criterion) else None, strata=strata,
        row_weights=rows.weights,
    ).comparisons()  # fmt: skip
    if rows.weights is not None and rows.half is not None:
        pairs = replace(pairs, represented=Represented(int(rows.weights.sum()), rows.weights))
    return judged_pairs(pairs)


def _label_weights(criterion: Criterion, cells: Cells, labels: Ints | None, weights: Floats | None) -> Floats:
    """Return by what the slack of each cell is divided: the label's share, relative to an equal one, or 1."""
    if labels is None or criterion.stratum_weight != "share":
        return np.ones(len(cells))
    shares = np.bincount(labels, weights)
    return np.asarray(shares[cells.labels] / shares.mean())


# Predictions of a fitted blind repair.


def repaired_predictions(model: Any, X: Any, strata: Any, *, predicts_label: bool) -> Floats:
    """Return the mixture of predictions and repaired predictions: two model calls and one evaluation of the map."""
    amount = check_real(model.amount, name="amount", most=1.0)
    codes = stratum_codes(model.strata_, strata, n_rows(X))
    predicted = predictions(model.estimator_, X)
    if amount == 0.0:
        return predicted
    probabilities = group_probabilities(model.group_estimator_, X, model.group_calibration_.offsets.size)
    linear = linear_scale(predicted, are_probabilities=predicts_label)
    calibrated = model.group_calibration_.apply(probabilities, linear)
    n_labels = calibrated.shape[1] // len(model.groups_)
    joint = joint_probabilities(calibrated, np.clip(predicted, 0.0, 1.0) if predicts_label else None, n_labels)
    moved = model.potentials_.move(predicted, model.cells_.contrasts(joint, codes))
    return (1.0 - amount) * predicted + amount * moved
