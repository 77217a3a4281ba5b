"""Measurement of the trade-off between error and disparity on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.utils import check_random_state

from fairtransport._labels import real_targets, two_classes
from fairtransport._sklearn import (
    GROUPS_NEEDED,
    GROUPS_UNUSED,
    describe_group_features,
    last_step,
    make_folds,
    n_rows,
    needs_groups,
    policy_of,
    score_with_groups,
)
from fairtransport._validation import check_length, check_real, check_weights
from fairtransport.criteria.criterion import (
    compares_each_other,
    criterion_of,
    needs_labels,
    resolve_criterion,
    resolve_group_target,
)
from fairtransport.criteria.penalty import DiscretePenalty
from fairtransport.groups import Groups, read_groups
from fairtransport.metrics import disparities, error_rate, noise_floor, pairwise_disparity, rank_disparity
from fairtransport.selection._thread_pool import run_in_threads
from fairtransport.selection.frontier_result import (
    DISPARITIES,
    FLOORS,
    Frontier,
    TrainingRows,
    fit_along,
    path_settings,
)
from fairtransport.strata import make_strata
from fairtransport.training.responses import RealResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from fairtransport._sklearn import Fold
    from fairtransport.criteria import Criterion
    from fairtransport.selection._thread_pool import Control
    from fairtransport.strata import Strata
    from fairtransport.transport.line import Sample

# Errors of models on held-out rows: of classifiers, or of regressors.


@dataclass(frozen=True, eq=False)
class ClassificationErrors:
    """Errors of probabilities: error rate at a threshold, log-loss and AUC."""

    metrics: ClassVar = ("error_rate", "log_loss", "auc")
    scale: ClassVar = "probability"

    y: NDArray[Any]
    positive: NDArray[np.bool_]
    threshold: float

    @property
    def halves(self) -> NDArray[np.bool_]:
        """A binary column by which folds are stratified: whether the label is positive."""
        return self.positive

    def measure(
        self, scores: NDArray[np.float64], rows: NDArray[np.int64], weights: NDArray[np.float64] | None
    ) -> dict[str, float]:
        """Return error rate, log-loss and AUC."""
        positive = self.positive[rows]
        return {
            "error_rate": error_rate(positive, scores, self.threshold, sample_weight=weights),
            "log_loss": float(log_loss(positive, scores, labels=[False, True], sample_weight=weights)),
            "auc": float(roc_auc_score(positive, scores, sample_weight=weights)),
        }

    def information_kept(
        self, records: dict[str, list[float]], rows: NDArray[np.int64], weights: NDArray[np.float64] | None
    ) -> list[float]:
        """Return the gain in log-loss over a constant of each model, relative to that of the first."""
        rate = float(np.average(self.positive[rows], weights=weights))
        return _shares_of_gain(-(rate * np.log(rate) + (1.0 - rate) * np.log1p(-rate)), records["log_loss"])

    def compared_within(
        self,
        criterion: Criterion,
        strata: Strata | None,
        n_groups: int,  # noqa: ARG002
    ) -> tuple[Criterion, NDArray[np.int64] | None, Strata | None]:
        """Return a criterion, labels and strata of all rows, with which it is resolved."""
        return criterion, self.positive.astype(np.int64), strata


@dataclass(frozen=True, eq=False)
class RegressionErrors:
    """Errors of real-valued predictions, in units of y: root mean squared and mean absolute error, and R2."""

    metrics: ClassVar = ("rmse", "mae", "r2")
    scale: ClassVar = "score"

    y: NDArray[np.float64]

    @property
    def halves(self) -> NDArray[np.bool_]:
        """Whether y is above its median."""
        return np.asarray(self.y > np.median(self.y))

    def measure(
        self, scores: NDArray[np.float64], rows: NDArray[np.int64], weights: NDArray[np.float64] | None
    ) -> dict[str, float]:
        """Return root mean squared error, mean absolute error and R2."""
        residuals = self.y[rows] - scores
        squared = float(np.average(residuals**2, weights=weights))
        return {
            "rmse": float(np.sqrt(squared)),
            "mae": float(np.average(np.abs(residuals), weights=weights)),
            "r2": 1.0 - squared / self._variance(rows, weights),
        }

    def information_kept(
        self, records: dict[str, list[float]], rows: NDArray[np.int64], weights: NDArray[np.float64] | None
    ) -> list[float]:
        """Return shares of the gain in squared error."""
        return _shares_of_gain(self._variance(rows, weights), [error**2 for error in records["rmse"]])

    def compared_within(
        self, criterion: Criterion, strata: Strata | None, n_groups: int
    ) -> tuple[Criterion, NDArray[np.int64] | None, Strata | None]:
        """Return demographic parity within strata, to which ranges of y belong where the criterion compares those."""
        response = RealResponse.of(self.y, np.full(self.y.size, 1.0 / self.y.size))
        within = response.compared_strata(self.y, strata, criterion, n_groups)
        return response.criterion_within_strata(criterion), None, within

    def _variance(self, rows: NDArray[np.int64], weights: NDArray[np.float64] | None) -> float:
        y = self.y[rows]
        variance = float(np.average((y - np.average(y, weights=weights)) ** 2, weights=weights))
        if not variance > 0.0:
            raise ValueError("y is constant among the held-out rows of a fold; use fewer folds.")
        return variance


HeldOutErrors = ClassificationErrors | RegressionErrors


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
        A classifier or regressor whose ``fit`` takes ``sensitive_features``, with a parameter that controls parity:
        ``parity_weight`` (continuous and discrete optimal transport), ``amount`` (repairs), ``slack`` (blind repair) or
        another, named with ``parameter``; or a pipeline that ends in one. It is cloned, so a fitted model inside it is
        trained anew on the training rows of each fold.
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
        With an integer, rows are shuffled, and the folds are stratified by group and label. Splitters and splits are as
        in scikit-learn; every fold needs every group among its training and its held-out rows.
    n_jobs : int, optional
        Number of folds in parallel, in threads. As in joblib, None is 1 and -1 means all cores. The result does not
        depend on it.
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
        ``print`` shows the curve, ``table()`` returns it, ``choose(max_disparity=...)`` and ``choose(max_error=...)``
        return a fitted model, ``plot()`` draws it.

    Raises
    ------
    ValueError
        When a value is negative, NaN or too large for the parameter, or a group has fewer rows than there are folds;
        before any training.

    Notes
    -----
    Within a fold, transport classifiers are trained along one warm-started path of weights, and so they are by
    `Frontier.choose`. Repairs are fitted once for all amounts; blind repair fits its models once for all slacks, too.

    Metrics are means over folds, each on held-out rows. Errors and disparities of a regressor are in units of y: RMSE
    takes the place of the error rate, the mean absolute error that of log-loss, and R2 that of the AUC.
    ``wasserstein_disparity`` is the distance to the ``target`` of the estimator (the Wasserstein-1 barycenter of the
    groups, where it has no fixed target), computed from the held-out scores at the first value and fixed along the
    curve, as in [1]_. ``pairwise_disparity`` is the mean over all pairs of groups, ``noise_floor`` its mean when group
    membership is permuted among the held-out rows: a disparity near it is not distinguishable from 0.
    ``criterion_disparity`` is that of the estimator's criterion and of ``strata``, weighted as it says, with a floor of
    its own: the mean over pairs, which for demographic parity is ``pairwise_disparity``. The floor is higher with fewer
    held-out rows, so compare curves only for equal numbers of folds.

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
    groups = _groups(estimator, sensitive_features, size=errors.y.size)
    seeds = np.random.SeedSequence(int(check_random_state(random_state).randint(np.iinfo(np.int32).max)))
    folds = make_folds(cv, X, errors.halves, groups, rng=np.random.default_rng(seeds.spawn(1)[0]), weights=weights)
    settings = path_settings(estimator, None if random_state is None else int(seeds.generate_state(1)[0] >> 1))
    parts = None if strata is None else make_strata(strata, n_groups=len(groups))
    if parts is not None:
        check_length(range(parts.n_rows), size=errors.y.size, name="strata")
    rows = TrainingRows(X, errors.y, sensitive_features, weights, parts)
    path = _FoldPath(clone(estimator), name, grid, settings, rows, groups, errors)
    results = run_in_threads(
        [partial(path.run, fold, seed) for fold, seed in zip(folds, seeds.spawn(len(folds)), strict=True)],
        names=[f"fold {number + 1} of {len(folds)}" for number in range(len(folds))],
        n_jobs=n_jobs,
        n_steps=grid.size,
        title=f"trade-off in {len(folds)} folds",
        verbose=verbose,
    )
    reason = GROUPS_NEEDED if any(needed for _, needed in results) else describe_group_features(X, groups)
    return Frontier(
        estimator=clone(estimator),
        parameter=name,
        values=grid,
        folds={metric: np.array([metrics[metric] for metrics, _ in results]) for metric in path.metrics},
        situation="blind" if reason is None else "aware",
        reason=reason or GROUPS_UNUSED,
        threshold=float(threshold),
        n_rows=errors.y.size,
        n_groups=len(groups),
        data=rows,
        settings=settings,
    )


@dataclass(frozen=True, eq=False)
class _FoldPath:
    """Models and metrics along the values of the parameter, for any fold."""

    template: Any
    parameter: str
    values: NDArray[np.float64]
    settings: Mapping[str, Any]
    rows: TrainingRows
    groups: Groups
    errors: HeldOutErrors

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics, in the order of a table."""
        return (*self.errors.metrics, "information_kept", *DISPARITIES, *FLOORS)

    def run(self, fold: Fold, seed: np.random.SeedSequence, control: Control) -> tuple[dict[str, list[float]], bool]:
        """Return the metrics at every value, and whether the last model needs groups at prediction."""
        model = clone(self.template).set_params(**self.settings)
        silence = f"{last_step(model)[0]}verbose"
        if model.get_params().get(silence) is True:
            model.set_params(**{silence: False})  # only the common bar is shown
        held_out = self.rows.select(fold.held_out)
        X, groups = held_out.X, held_out.sensitive_features
        records: dict[str, list[float]] = {metric: [] for metric in self.metrics}
        target: Sample | None = None
        models = fit_along(model, self.parameter, self.values.tolist(), self.rows.select(fold.training))
        for number, value in enumerate(self.values.tolist()):
            if number:
                control.step()
            try:
                model = next(models)
                scores = score_with_groups(model, X, groups, held_out.strata)
            except Exception as error:
                error.add_note(f"With {self.parameter}={value:g}.")
                raise
            target = self._target(scores, fold) if target is None else target
            for metric, figure in self._measure(scores, fold, target, seed).items():
                records[metric].append(figure)
        records["information_kept"] = self.errors.information_kept(records, fold.held_out, self._weights(fold))
        return records, needs_groups(model, X, sensitive_features=groups)

    def _target(self, scores: NDArray[np.float64], fold: Fold) -> Sample:
        """Return the target distribution of the estimator for these scores."""
        weights, groups = self._weights(fold), self.groups.select(fold.held_out)
        target = getattr(last_step(self.template)[1], "target", None)
        if target is None or compares_each_other(target):
            target = "barycenter"  # the estimator has no fixed target
        bounds = (0.0, 1.0) if self.errors.scale == "probability" else None
        return resolve_group_target(target, scores, groups, weights, score_range=bounds)

    def _measure(
        self, scores: NDArray[np.float64], fold: Fold, target: Sample, seed: np.random.SeedSequence
    ) -> dict[str, float]:
        weights, groups, scale = self._weights(fold), self.groups.select(fold.held_out), self.errors.scale
        floors = [
            noise_floor(
                metric,
                scores,
                sensitive_features=groups,
                n_shuffles=_SHUFFLES,
                random_state=np.random.default_rng(seed),  # the same permutations for every value
                sample_weight=weights,
            ).mean
            for metric in (partial(pairwise_disparity, scale=scale), rank_disparity)
        ]
        sums = disparities(scores, sensitive_features=groups, target=target, scale=scale, sample_weight=weights)
        mean = sums.pop("strong_pairwise_disparity") / (len(groups) * (len(groups) - 1) // 2)
        figures = self._criterion_figures(scores, fold, seed)
        return {
            **self.errors.measure(scores, fold.held_out, weights),
            **sums,
            "pairwise_disparity": mean,
            "rank_disparity": rank_disparity(scores, sensitive_features=groups, sample_weight=weights),
            **dict(zip(FLOORS, floors, strict=False)),
            **(figures or {"criterion_disparity": mean, FLOORS[2]: floors[0]}),
        }

    def _criterion_figures(
        self, scores: NDArray[np.float64], fold: Fold, seed: np.random.SeedSequence
    ) -> dict[str, float] | None:
        """Return the disparity of the estimator's criterion and its noise floor; None for demographic parity."""
        criterion = criterion_of(getattr(last_step(self.template)[1], "criterion", None))
        strata = self.rows.strata
        if not needs_labels(criterion) and strata is None:
            return None
        criterion, labels, strata = self.errors.compared_within(criterion, strata, len(self.groups))
        pairs = resolve_criterion(
            criterion,
            self.groups.select(fold.held_out),
            labels=None if labels is None else labels[fold.held_out],
            strata=None if strata is None else strata.select(fold.held_out),
            row_weights=self._weights(fold),
        ).comparisons()
        exact, rng = DiscretePenalty(huber_width=0.0, n_slices=None, scale="score"), np.random.default_rng(seed)
        by_chance = [exact.value_and_gradient(scores, pairs.shuffled(rng)).value for _ in range(_SHUFFLES)]
        value = exact.value_and_gradient(scores, pairs).value
        total = float(pairs.weights.sum())
        return {"criterion_disparity": value / total, FLOORS[2]: float(np.mean(by_chance)) / total}

    def _weights(self, fold: Fold) -> NDArray[np.float64] | None:
        weights = self.rows.sample_weight
        return None if weights is None else np.asarray(weights[fold.held_out])


def _grid(
    estimator: Any, grids: Mapping[str, Any], parameter: str | None, values: Any
) -> tuple[str, NDArray[np.float64]]:
    """Return the parameter and its values, from no parity to most."""
    needed = ("get_params", "fit")
    if isinstance(estimator, type) or not (
        all(hasattr(estimator, name) for name in needed)
        and (hasattr(estimator, "predict_proba") or _predicts(estimator))
    ):
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


def _errors(estimator: Any, y: Any, threshold: float) -> HeldOutErrors:
    """Return how models are judged: y is two classes, or real numbers for a regressor."""
    if _predicts(estimator):
        return RegressionErrors(real_targets(y, "frontier"))
    labels, classes = two_classes(y, "frontier")
    return ClassificationErrors(labels, labels == classes[1], threshold)


def _numbers(
    values: Iterable[Any] | Any, *, name: str, most: float = np.inf, finite: bool = True, sort: bool = True
) -> NDArray[np.float64]:
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
