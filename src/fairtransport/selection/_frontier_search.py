"""Measurement of the trade-off between error and disparity on held-out rows."""

from __future__ import annotations

import contextlib
import ctypes
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from concurrent.futures import thread as thread_pool
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn import config_context, get_config
from sklearn.base import clone, is_regressor
from sklearn.utils import check_random_state

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport._labels import real_targets, two_classes
from fairtransport._progress import progress
from fairtransport._sklearn import (
    GROUPS_NEEDED,
    GROUPS_UNUSED,
    Fold,
    describe_group_features,
    last_step,
    make_folds,
    n_rows,
    needs_groups,
    policy_of,
    score_with_groups,
    upper_half,
)
from fairtransport._validation import check_flag, check_length, check_real, check_weights
from fairtransport._warnings import warn_caller
from fairtransport.criteria import Criterion
from fairtransport.criteria.criterion import (
    compares_each_other,
    criterion_of,
    needs_labels,
    resolve_criterion,
    resolve_group_target,
)
from fairtransport.criteria.penalty import DiscretePenalty
from fairtransport.groups import Groups, read_groups
from fairtransport.metrics import disparities, error_rate, rank_disparity
from fairtransport.metrics.ranks import pooled_ranks
from fairtransport.selection.frontier_result import (
    CURVE_METRICS,
    FLOORS,
    REGRESSION_METRICS,
    Frontier,
    TrainingRows,
    fit_along,
    path_settings,
)
from fairtransport.strata import Strata, make_strata
from fairtransport.training.responses import RealResponse, ScoredClasses
from fairtransport.transport.line import Sample

Compared: TypeAlias = tuple[Criterion, Ints | None, Strata | None]

# Errors of models on held-out rows: of classifiers, or of regressors; ``halves`` is a binary y to stratify folds by.


@dataclass(frozen=True, eq=False)
class ClassificationErrors:
    """Errors of probabilities: error rate at a threshold, log-loss and AUC."""

    metrics: ClassVar = CURVE_METRICS
    scale: ClassVar = "probability"

    y: NDArray[Any]
    halves: Bools  # whether the label is positive
    threshold: float

    def measure(self, scores: Floats, weights: Floats | None) -> dict[str, float]:
        """Return error rate, log-loss and AUC, as scikit-learn defines them."""
        shares = np.full(scores.size, 1.0 / scores.size) if weights is None else weights / weights.sum()
        if self.halves.all() or not self.halves.any():
            raise ValueError("The held-out rows of a fold have one class only; use fewer folds.")
        likelihoods = np.where(self.halves, scores, 1.0 - scores)
        return {
            "error_rate": error_rate(self.halves, scores, self.threshold, sample_weight=weights),
            "log_loss": float(-shares @ np.log(np.maximum(likelihoods, np.finfo(float).eps))),
            "auc": ScoredClasses.quality(scores, pooled_ranks(scores, weights), self.halves.astype(np.float64), shares),
        }

    def information_kept(self, records: dict[str, list[float]], weights: Floats | None) -> list[float]:
        """Return the gain in log-loss over a constant of each model, relative to that of the first."""
        rate = float(np.average(self.halves, weights=weights))
        return _shares_of_gain(-(rate * np.log(rate) + (1.0 - rate) * np.log1p(-rate)), records["log_loss"])

    def compared_within(self, criterion: Criterion, strata: Strata | None, n_groups: int) -> Compared:  # noqa: ARG002
        """Return a criterion, labels and strata, with which it is resolved."""
        return criterion, self.halves.astype(np.int64), strata


@dataclass(frozen=True, eq=False)
class RegressionErrors:
    """Errors of real-valued predictions, in units of y: root mean squared and mean absolute error, and R2."""

    metrics: ClassVar = REGRESSION_METRICS
    scale: ClassVar = "score"

    y: Floats
    halves: Bools  # whether y is above its median

    def measure(self, scores: Floats, weights: Floats | None) -> dict[str, float]:
        """Return root mean squared error, mean absolute error and R2."""
        residuals = self.y - scores
        squared = float(np.average(residuals**2, weights=weights))
        return {
            "rmse": float(np.sqrt(squared)),
            "mae": float(np.average(np.abs(residuals), weights=weights)),
            "r2": 1.0 - squared / self._variance(weights),
        }

    def information_kept(self, records: dict[str, list[float]], weights: Floats | None) -> list[float]:
        """Return shares of the gain in squared error."""
        return _shares_of_gain(self._variance(weights), [error**2 for error in records["rmse"]])

    def compared_within(self, criterion: Criterion, strata: Strata | None, n_groups: int) -> Compared:
        """Return demographic parity within strata, to which ranges of y belong where the criterion compares those."""
        response = RealResponse.of(self.y, None, "frontier")
        within = response.compared_strata(self.y, strata, criterion, n_groups)
        return response.criterion_within_strata(criterion), None, within

    def _variance(self, weights: Floats | None) -> float:
        variance = float(np.average((self.y - np.average(self.y, weights=weights)) ** 2, weights=weights))
        if not variance > 0.0:
            raise ValueError("y is constant among the held-out rows of a fold; use fewer folds.")
        return variance


def _shares_of_gain(constant: float, losses: list[float]) -> list[float]:
    gain = max(constant - losses[0], 0.01 * constant)
    return [float((constant - loss) / gain) for loss in losses]


_PARITY_WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 1.0, 3.0, 10.0)
_AMOUNTS = tuple(k / 10 for k in range(11))
_SHUFFLES = 20  # permutations for the noise floor of one fold


def frontier(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    strata: Any = None,
    parity_weights: ArrayLike | None = None,
    amounts: ArrayLike | None = None,
    slacks: ArrayLike | None = None,
    parameter: str | None = None,
    values: ArrayLike | None = None,
    cv: Any = 5,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    threshold: float = 0.5,
    sample_weight: ArrayLike | None = None,
    verbose: bool = False,
) -> Frontier:
    """Measure the trade-off between error and disparity along a parameter, by cross-validation.

    Parameters
    ----------
    estimator : estimator
        A classifier or regressor whose ``fit`` takes ``sensitive_features``, with a parameter that controls parity
        (``parity_weight``, ``amount``, ``slack`` or another, named with ``parameter``), or a pipeline that ends in one.
        It is cloned, so a fitted model inside it is trained anew on the training rows of each fold.
    X : table or matrix with n rows
        Whatever the estimator accepts.
    y : array-like of shape (n,)
        Two classes, of which the larger label is class 1; or real numbers, for a regressor.
    sensitive_features : column, table or Groups
        At least two groups; ``crossed`` and ``missing`` of the estimator's ``groups`` apply.
    strata : column, table or Strata, optional
        Columns within whose values groups are compared, for an estimator whose ``fit`` takes ``strata``.
    parity_weights : array-like, optional
        Non-negative (``inf`` with ``solver="sgd"``); by default 0, 0.1, 0.2, 0.3, 0.4, 0.6, 1, 3 and 10.
    amounts : array-like, optional
        Within 0 and 1; by default 0, 0.1, ..., 1.
    slacks : array-like, optional
        Within 0 and 1, for blind repair.
    parameter, values : str and array-like, optional
        Another parameter, and its values from no parity to most.
    cv : int, splitter or iterable of splits, default=5
        With an integer, rows are shuffled, and the folds are stratified by group and label. Every fold needs every
        group that is measured among its training and its held-out rows. Groups with fewer than ``min_size`` rows
        (30, see `GroupPolicy`) are not measured where two are larger, and are among the training rows of every fold.
    n_jobs : int, optional
        Number of folds in parallel, in threads, as in joblib. The result does not depend on it.
    random_state : int, RandomState or None
        Seed of the folds and the noise floor, and of the estimator where its ``random_state`` is None.
    threshold : float, default=0.5
        Scores above it are classified as positive; used only for the error rate of classifiers.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, for training and for all metrics.
    verbose : bool, default=False
        Show a progress bar.

    Returns
    -------
    Frontier
        ``print`` shows the curve, ``choose(max_disparity=...)`` returns a fitted model, ``plot()`` draws it.

    Raises
    ------
    ValueError
        When a value is negative, NaN or too large for the parameter, or a group has fewer rows than there are folds;
        before any training.

    Notes
    -----
    Within a fold, transport classifiers are trained along one warm-started path of weights, and so they are by
    `Frontier.choose`. Repairs are fitted once for all amounts; blind repair fits its models once for all slacks, too.

    Metrics are means over folds, each on held-out rows. Those of a regressor are in units of y, with RMSE, mean
    absolute error and R2 in place of error rate, log-loss and AUC. ``wasserstein_disparity`` is the distance to the
    ``target`` of the estimator (or the Wasserstein-1 barycenter of the groups) at the first value, as in [1]_.
    ``pairwise_disparity`` is the mean over all pairs of groups, ``noise_floor`` its mean when group membership is
    permuted among the held-out rows: a disparity near it is not distinguishable from 0, and it is higher with fewer
    held-out rows. ``criterion_disparity`` is that of the estimator's criterion and of ``strata``, with its own floor.

    References
    ----------
    .. [1] Chiappa and Pacchiano (2021), "Fairness with Continuous Optimal Transport", Section "Changing Level of
           Unfairness".

    Examples
    --------
    >>> import numpy as np
    >>> import fairtransport as ft
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    >>> y = (X @ [1.0, 1.0, 0.5] + rng.logistic(size=2000) > 0.5).astype(int)
    >>> repair = ft.QuantileRepairClassifier(LogisticRegression())
    >>> curve = ft.frontier(repair, X, y, sensitive_features=group, random_state=0)
    >>> curve.situation, curve.reason
    ('aware', 'the group is needed at prediction')
    >>> model = curve.choose(max_disparity=0.1)
    >>> 0 < model.amount < 1
    True
    """
    named = {"parity_weights": parity_weights, "amounts": amounts, "slacks": slacks}
    name, grid = _grid(estimator, named, parameter, values)
    check_real(threshold, name="threshold", most=1.0)
    errors = _errors(estimator, y, float(threshold))
    check_length(errors.y, size=n_rows(X), name="y")
    weights = check_weights(sample_weight, size=errors.y.size)
    every = _groups(estimator, sensitive_features, size=errors.y.size)
    groups = _measured(every, policy_of(estimator).min_size)
    seeds = np.random.SeedSequence(int(check_random_state(random_state).randint(np.iinfo(np.int32).max)))
    folds = make_folds(cv, X, errors.halves, groups, rng=np.random.default_rng(seeds.spawn(1)[0]), weights=weights)
    folds = [_without_rows(fold, every.has_group & ~groups.has_group) for fold in folds]
    settings = path_settings(estimator, None if random_state is None else int(seeds.generate_state(1)[0] >> 1))
    parts = None if strata is None else make_strata(strata, n_groups=len(every))
    if parts is not None:
        check_length(range(parts.n_rows), size=errors.y.size, name="strata")
    rows = TrainingRows(X, errors.y, sensitive_features, weights, parts)
    criterion = criterion_of(getattr(last_step(estimator)[1], "criterion", None))
    has_criterion = needs_labels(criterion) or parts is not None
    compared = errors.compared_within(criterion, parts, len(groups)) if has_criterion else None
    path = _FoldPath(clone(estimator), name, grid, settings, rows, groups, errors, compared)
    results = run_in_threads(
        [partial(path.run, fold, seed) for fold, seed in zip(folds, seeds.spawn(len(folds)), strict=True)],
        names=[f"fold {number + 1} of {len(folds)}" for number in range(len(folds))],
        n_jobs=n_jobs,
        n_steps=grid.size,
        title=f"trade-off in {len(folds)} folds",
        verbose=verbose,
    )
    reason = GROUPS_NEEDED if any(needed for _, needed in results) else describe_group_features(X, every)
    return Frontier(
        estimator=clone(estimator),
        parameter=name,
        values=grid,
        folds={metric: np.array([metrics[metric] for metrics, _ in results]) for metric in results[0][0]},
        situation="blind" if reason is None else "aware",
        reason=reason or GROUPS_UNUSED,
        threshold=float(threshold),
        n_rows=errors.y.size,
        n_groups=len(groups),
        n_small_groups=len(every) - len(groups),
        data=rows,
        settings=settings,
    )


@dataclass(frozen=True, eq=False)
class _FoldPath:
    """Models and metrics along the values of the parameter, for any fold."""

    template: Any
    parameter: str
    values: Floats
    settings: Mapping[str, Any]
    rows: TrainingRows
    groups: Groups
    errors: ClassificationErrors | RegressionErrors
    compared: Compared | None  # what the criterion compares; None for demographic parity

    def select(self, rows: Ints) -> _FoldPath:
        """Return the same for some of the rows."""
        compared = self.compared
        if compared is not None:
            criterion, labels, strata = compared
            inside = None if labels is None else labels[rows], None if strata is None else strata.select(rows)
            compared = criterion, *inside
        errors = replace(self.errors, y=self.errors.y[rows], halves=self.errors.halves[rows])
        groups = self.groups.select(rows)
        return replace(self, rows=self.rows.select(rows), groups=groups, errors=errors, compared=compared)

    def run(self, fold: Fold, seed: np.random.SeedSequence, control: Control) -> tuple[dict[str, list[float]], bool]:
        """Return the metrics at every value, and whether the last model needs groups at prediction."""
        model = clone(self.template).set_params(**self.settings)
        silence = f"{last_step(model)[0]}verbose"
        if model.get_params().get(silence) is True:
            model.set_params(**{silence: False})  # only the common bar is shown
        held_out = self.select(fold.held_out)
        X, groups, strata = held_out.rows.X, held_out.rows.sensitive_features, held_out.rows.strata
        records: dict[str, list[float]] = {metric: [] for metric in (*self.errors.metrics, *FLOORS)}
        target, chance = None, _PermutedGroups(held_out.groups, seed)
        models = fit_along(model, self.parameter, self.values.tolist(), self.rows.select(fold.training))
        for number, value in enumerate(self.values.tolist()):
            if number:
                control.step()
            try:
                model = next(models)
                scores = score_with_groups(model, X, groups, strata)
            except Exception as error:
                error.add_note(f"With {self.parameter}={value:g}.")
                raise
            target = held_out.target(scores) if target is None else target
            for metric, figure in held_out.measure(scores, target, chance).items():
                records[metric].append(figure)
        records["information_kept"] = held_out.errors.information_kept(records, held_out.rows.sample_weight)
        return records, needs_groups(model, X, sensitive_features=groups)

    def target(self, scores: Floats) -> Sample:
        """Return the target distribution of the estimator for these scores."""
        target = getattr(last_step(self.template)[1], "target", None)
        if target is None or compares_each_other(target):
            target = "barycenter"  # the estimator has no fixed target
        bounds = (0.0, 1.0) if self.errors.scale == "probability" else None
        return resolve_group_target(target, scores, self.groups, self.rows.sample_weight, score_range=bounds)

    def measure(self, scores: Floats, target: Sample, chance: _PermutedGroups) -> dict[str, float]:
        """Return errors, disparities and noise floors of the scores of these rows."""
        weights, groups, scale = self.rows.sample_weight, self.groups, self.errors.scale
        floors = chance.floors(scores, weights)
        sums = disparities(scores, sensitive_features=groups, target=target, scale=scale, sample_weight=weights)
        mean = sums.pop("strong_pairwise_disparity") / (len(groups) * (len(groups) - 1) // 2)
        return {
            **self.errors.measure(scores, weights),
            **sums,
            "pairwise_disparity": mean,
            "rank_disparity": rank_disparity(scores, sensitive_features=groups, sample_weight=weights),
            **dict(zip(FLOORS, floors, strict=False)),
            **(self._criterion_figures(scores, chance.seed) or {"criterion_disparity": mean, FLOORS[2]: floors[0]}),
        }

    def _criterion_figures(self, scores: Floats, seed: np.random.SeedSequence) -> dict[str, float] | None:
        """Return the disparity of the estimator's criterion and its noise floor; None for demographic parity."""
        if self.compared is None:
            return None
        criterion, labels, strata = self.compared
        pairs = resolve_criterion(
            criterion, self.groups, labels=labels, strata=strata, row_weights=self.rows.sample_weight
        ).comparisons()
        exact, rng = DiscretePenalty(huber_width=0.0, n_slices=None, scale="score"), np.random.default_rng(seed)
        by_chance = [exact.value(scores, pairs.shuffled(rng)) for _ in range(_SHUFFLES)]
        value = exact.value(scores, pairs)
        total = float(pairs.weights.sum())
        return {"criterion_disparity": value / total, FLOORS[2]: float(np.mean(by_chance)) / total}


@dataclass(frozen=True, eq=False)
class _PermutedGroups:
    """Groups whose membership is permuted: the same permutations for all scores of these rows."""

    groups: Groups
    seed: np.random.SeedSequence

    def floors(self, scores: Floats, weights: Floats | None) -> list[float]:
        """Return the mean of the pairwise disparity of scores, and of their ranks, over the permutations."""
        order = np.argsort(scores)
        gaps = self._equal_weights if weights is None else self._mean_gaps(weights[order])
        return [float(gaps @ np.diff(each[order])) for each in (scores, pooled_ranks(scores, weights))]

    @cached_property
    def _equal_weights(self) -> Floats:
        """The gaps of any scores: membership that is permuted does not depend on their order."""
        return self._mean_gaps(np.ones(self.groups.n_rows))

    def _mean_gaps(self, weights: Floats) -> Floats:
        """Return the mean difference of two distribution functions after each sorted score but the last."""
        n_groups, rng = len(self.groups), np.random.default_rng(self.seed)
        members, total = np.zeros((n_groups, weights.size)), np.zeros(weights.size)
        for group, rows in enumerate(self.groups.rows):
            members[group, rows] = 1.0
        for _ in range(_SHUFFLES):
            functions = np.cumsum(members[:, rng.permutation(weights.size)] * weights, axis=1)
            functions /= np.maximum(functions[:, -1:], 1e-300)
            functions.sort(axis=0)
            total += (2.0 * np.arange(n_groups) + 1.0 - n_groups) @ functions  # the sum over pairs, as in SortedScores
        return np.asarray(total[:-1] / (_SHUFFLES * n_groups * (n_groups - 1) / 2.0))


def _grid(estimator: Any, grids: Mapping[str, Any], parameter: str | None, values: Any) -> tuple[str, Floats]:
    """Return the parameter and its values, from no parity to most."""
    is_estimator = not isinstance(estimator, type) and hasattr(estimator, "get_params") and hasattr(estimator, "fit")
    if not is_estimator or not (hasattr(estimator, "predict_proba") or _predicts(estimator)):
        raise TypeError(
            "estimator must be a classifier with fit, predict_proba and get_params, or a regressor with predict."
        )
    prefix, last = last_step(estimator)
    known = estimator.get_params()
    given = {name: grid for name, grid in grids.items() if grid is not None}
    if (parameter is None) != (values is None) or len(given) + (parameter is not None) > 1:
        raise ValueError("Give one of parity_weights, amounts, slacks, or parameter and values together.")
    if not given and parameter is None:
        has_weight = f"{prefix}parity_weight" in known
        given = {"parity_weights": _PARITY_WEIGHTS} if has_weight else {"amounts": _AMOUNTS}
    if parameter is not None:
        name, grid = parameter, _numbers(values, name="values", sort=False)
    elif "parity_weights" in given:
        name, grid = f"{prefix}parity_weight", _numbers(*given.values(), name="parity_weights", finite=False)
    elif "amounts" in given:
        name, grid = f"{prefix}amount", _numbers(*given.values(), name="amounts", most=1.0)
    else:
        name, grid = f"{prefix}slack", _numbers(*given.values(), name="slacks", most=1.0)[::-1]
    if name not in known:
        raise ValueError(
            f"{type(last).__name__} has no parameter {name.rpartition('__')[2]!r}; name the one that controls parity "
            "with parameter=, and give its values with values=."
        )
    return name, grid


def _predicts(estimator: Any) -> bool:
    """Return whether an estimator, or the last step of a pipeline, is a regressor."""
    last = last_step(estimator)[1]
    return hasattr(last, "__sklearn_tags__") and is_regressor(last)


def _errors(estimator: Any, y: Any, threshold: float) -> ClassificationErrors | RegressionErrors:
    """Return how models are judged: y is two classes, or real numbers for a regressor."""
    if _predicts(estimator):
        numbers = real_targets(y, "frontier")
        return RegressionErrors(numbers, upper_half(numbers, float(np.median(numbers))))
    labels, classes = two_classes(y, "frontier")
    return ClassificationErrors(labels, labels == classes[1], threshold)


def _numbers(
    values: Iterable[Any] | Any, *, name: str, most: float = np.inf, finite: bool = True, sort: bool = True
) -> Floats:
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be a list of at least one number; it has shape {array.shape}.")
    least = 0.0 if sort else -np.inf
    numbers = np.array([check_real(value, name=name, least=least, most=most, finite=finite) for value in array])
    return np.unique(numbers) if sort else numbers


def _groups(estimator: Any, sensitive_features: Any, *, size: int) -> Groups:
    if sensitive_features is None:
        raise ValueError("frontier needs sensitive_features: the column or columns that define groups.")
    groups = read_groups(sensitive_features, policy_of(estimator), at_least=2)
    check_length(range(groups.n_rows), size=size, name="sensitive_features")
    return groups


def _measured(groups: Groups, min_size: int) -> Groups:
    """Return the groups without small ones, as audits judge them, where two are larger."""
    return groups.settle("drop", min_size) if np.count_nonzero(groups.counts >= min_size) > 1 else groups


def _without_rows(fold: Fold, few: Bools) -> Fold:
    """Return a fold whose held-out rows of small groups are training rows instead."""
    if not few[fold.held_out].any():
        return fold
    own = few[fold.held_out]
    return Fold(np.union1d(fold.training, fold.held_out[own]), fold.held_out[~own])


# Tasks in parallel threads; the compiled loops release the global interpreter lock.

T = TypeVar("T")
_POLL = 0.2  # seconds between two checks for Ctrl-C
_REPEAT = 2.0  # seconds until tasks are stopped again: Python drops an exception that arrives inside a destructor


class Control:
    """Counts the steps of tasks and stops them; see `run_in_threads`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = False
        self._running: set[int] = set()
        self.steps = 0

    def step(self) -> None:
        """Count a step as done; raise KeyboardInterrupt where the tasks have been stopped."""
        with self._lock:
            self._check()
            self.steps += 1

    def _check(self) -> None:
        if self._stopped:
            raise KeyboardInterrupt

    def stop(self) -> None:
        """Stop all tasks by a KeyboardInterrupt in their threads."""
        with self._lock:
            self._stopped = True
            for thread in self._running:
                # Python delivers Ctrl-C to the main thread only.
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))

    @contextlib.contextmanager
    def stoppable(self) -> Iterator[None]:
        """Make this thread stoppable while the block runs."""
        thread = threading.get_ident()
        with self._lock:
            self._check()
            self._running.add(thread)
        try:
            yield
        finally:
            with self._lock:
                self._running.discard(thread)


def run_in_threads(
    tasks: Sequence[Callable[[Control], T]],
    *,
    names: Sequence[str],
    n_steps: int,
    n_jobs: int | None,
    title: str,
    verbose: bool,
) -> list[T]:
    """Run tasks with the scikit-learn configuration of the caller, and return their results in order.

    Warnings are issued once at the end: many tasks would repeat them, and warning filters are not thread-safe.
    """
    check_flag(verbose, name="verbose")
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int)):
        raise TypeError(f"n_jobs must be an integer or None; got {type(n_jobs).__name__}.")
    n_threads = max(1, min(effective_n_jobs(n_jobs), len(tasks)))
    control, settings = Control(), get_config()
    total = n_steps * len(tasks)

    def run(task: Callable[[Control], T]) -> T:
        with control.stoppable(), config_context(**settings):
            result = task(control)
            control.step()  # the last one
            return result

    results: dict[int, T] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with progress(title, total, show=verbose) as bar, ThreadPoolExecutor(n_threads) as pool:
            waiting: dict[Future[T], int] = {}
            try:
                for index, task in enumerate(tasks):  # within try: a task may be stopped before the last is submitted
                    waiting[pool.submit(run, task)] = index
                while waiting:
                    finished, _ = wait(waiting, timeout=_POLL, return_when=FIRST_COMPLETED)
                    for future in sorted(finished, key=waiting.__getitem__):
                        results[waiting[future]] = _result(future, names[waiting[future]])
                        del waiting[future]
                    bar.advance(control.steps, f"{control.steps}/{total}")
            except BaseException:
                for future in waiting:
                    future.cancel()
                control.stop()
                while wait(waiting, timeout=_REPEAT).not_done:
                    control.stop()
                raise
    _issue_again(caught)
    return [results[index] for index in range(len(tasks))]


def _result(future: Future[T], name: str) -> T:
    try:
        return future.result()
    except Exception as error:
        error.add_note(f"Raised in {name}.")
        raise


def _issue_again(caught: Sequence[warnings.WarningMessage]) -> None:
    """Issue each warning of one line of code once, with its number."""
    by_line: dict[Any, list[warnings.WarningMessage]] = defaultdict(list)
    for warning in caught:
        by_line[warning.category, warning.filename, warning.lineno].append(warning)
    for (category, filename, line), same in by_line.items():
        message: Any = same[0].message
        if len(same) > 1:
            with contextlib.suppress(TypeError):  # a category that takes further arguments
                message = category(f"{message} (One of {len(same)} such warnings.)")
        if filename == thread_pool.__file__:  # of this package, at the end of a thread's frames
            warn_caller(message, category)
        else:
            warnings.warn_explicit(message, category, filename, line)
