"""The measured trade-off between error and disparity, and the choice of a model on it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from fairtransport._arrays import Floats, Ints
from fairtransport._extras import make_frame, render
from fairtransport._sklearn import fit_model, last_step, take_rows
from fairtransport._validation import check_choice, check_real
from fairtransport.criteria.criterion import criterion_of
from fairtransport.linear.base import TransportModel
from fairtransport.linear.settings import sgd_settings
from fairtransport.repair import (
    BlindRepairClassifier,
    BlindRepairRegressor,
    QuantileRepairClassifier,
    QuantileRepairRegressor,
)

# Fits of one estimator along a path of values of its parity parameter.

_BLIND = (BlindRepairClassifier, BlindRepairRegressor)
# Their amount may be set after ``fit``.
_REPAIRED = (*_BLIND, QuantileRepairClassifier, QuantileRepairRegressor)


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Arguments of ``fit``."""

    X: Any
    y: Any
    sensitive_features: Any
    sample_weight: Any = None
    strata: Any = None

    def options(self) -> dict[str, Any]:
        """Return the columns that ``fit`` takes beside features and labels; strata only where there are any."""
        columns = {"sensitive_features": self.sensitive_features, "sample_weight": self.sample_weight}
        return columns if self.strata is None else {**columns, "strata": self.strata}

    def select(self, rows: Ints) -> TrainingRows:
        """Return some of the rows."""
        return TrainingRows(
            take_rows(self.X, rows),
            self.y[rows],
            take_rows(self.sensitive_features, rows),
            None if self.sample_weight is None else self.sample_weight[rows],
            None if self.strata is None else self.strata.select(rows),
        )


def path_settings(estimator: Any, seed: int | None) -> dict[str, Any]:
    """Return further parameters of an estimator along the path: a seed, where it takes one and has none."""
    (prefix, last), known = last_step(estimator), estimator.get_params()
    if seed is not None and isinstance(last, TransportModel):
        settings = sgd_settings(last.solver)
        if settings is None or settings.random_state is not None:
            return {}
        return {f"{prefix}solver": replace(settings, random_state=seed)}
    names = [f"{prefix}{name}" for name in ("random_state", "repair__random_state")]
    return {} if seed is None else {name: seed for name in names if known.get(name, 0) is None}


def fit_along(model: Any, parameter: str, values: list[float], rows: TrainingRows) -> Iterator[Any]:
    """Yield a fitted model for each value of a parameter, reusing work where the estimator allows it."""
    has_path = isinstance(model, TransportModel) and sgd_settings(model.solver) is None
    by_weight = has_path and parameter == "parity_weight" and values == sorted(values)
    by_slack = isinstance(model, _BLIND) and parameter == "slack" and values == sorted(values, reverse=True)
    if by_weight or by_slack:
        yield from model.fit_path(rows.X, rows.y, values, **rows.options())
        return
    for number, value in enumerate(values):
        model.set_params(**{parameter: value})
        prefix, last = last_step(model)
        mixes = parameter == f"{prefix}amount" and hasattr(last, "initial_estimator_")  # with which it mixes
        if number == 0 or not (mixes or (parameter == "amount" and isinstance(model, _REPAIRED))):
            fit_model(model, rows.X, rows.y, **rows.options())
        yield model


DISPARITIES = (
    "wasserstein_disparity",
    "strong_demographic_disparity",
    "pairwise_disparity",
    "rank_disparity",
    "criterion_disparity",
)
#: Metrics of the curve of a classifier, and of that of a regressor.
CURVE_METRICS = ("error_rate", "log_loss", "auc", "information_kept", *DISPARITIES)
REGRESSION_METRICS = ("rmse", "mae", "r2", "information_kept", *DISPARITIES)
FLOORS = _FLOOR, _RANK_FLOOR, _CRITERION_FLOOR = "noise_floor", "rank_noise_floor", "criterion_noise_floor"
_PLAIN = {"log_loss": "log-loss", "mae": "MAE", "auc": "AUC", "r2": "R2", "information_kept": "kept"}
_NEAR_FLOOR = 1.5  # factor of the noise floor below which a disparity is mostly noise


@dataclass(frozen=True)
class Choice:
    """A point on the curve.

    Parameters
    ----------
    parameter : str
        Name of the estimator's parameter.
    value : float
        Value of the parameter; between two values of the grid, the curve is interpolated linearly.
    metrics : dict of str to float
        Metrics of the curve at this point: means over held-out rows.
    """

    parameter: str
    value: float
    metrics: Mapping[str, float]


@dataclass(frozen=True, eq=False, repr=False)
class Frontier:
    """The trade-off between error and disparity on held-out rows, as `fairtransport.frontier` returns it.

    ``print(frontier)`` shows it as a table, `table` returns its columns, `choose` returns a fitted model.

    Parameters
    ----------
    estimator : estimator
        The estimator, not fitted.
    parameter : str
        Name of its parameter that controls parity, such as ``"parity_weight"`` or ``"amount"``.
    values : ndarray of shape (n_values,)
        Values of the parameter.
    folds : dict of str to ndarray of shape (n_folds, n_values)
        Metrics on the held-out rows of each fold: ``error_rate``, ``log_loss``, ``auc`` (of a regressor ``rmse``,
        ``mae`` and ``r2``, and disparities in units of y), ``information_kept`` (gain in log-loss, or squared error,
        over a constant, relative to that of the first value), ``wasserstein_disparity``,
        ``strong_demographic_disparity`` (SDD), ``pairwise_disparity`` (the mean over pairs of groups), its
        ``noise_floor``, ``rank_disparity`` and ``rank_noise_floor``; ``criterion_disparity`` and
        ``criterion_noise_floor``: those of the estimator's criterion, for demographic parity ``pairwise_disparity``.
    situation : {"aware", "blind"}
        Whether the group is known at prediction.
    reason : str
        Why, in words.
    threshold : float
        Scores above it are classified as positive; it affects only the error rate of classifiers.
    n_rows, n_groups, n_small_groups : int
        Numbers of rows, of groups that are measured, and of groups with too few rows for that.
    data : TrainingRows or None
        References to the rows, which `choose` needs: **a Frontier contains the data** until `drop_data`.
    settings : dict
        Further parameters of the fits: the seed, where `frontier` was given one and the estimator has none.
    """

    estimator: Any
    parameter: str
    values: Floats
    folds: Mapping[str, Floats]
    situation: str
    reason: str
    threshold: float
    n_rows: int
    n_groups: int
    n_small_groups: int = 0
    data: TrainingRows | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(next(iter(self.folds.values())).shape[0])

    @property
    def error_metric(self) -> str:
        """Name of the error: ``"error_rate"``, or ``"rmse"`` of a regressor."""
        return "error_rate" if "error_rate" in self.folds else "rmse"

    @property
    def _name(self) -> str:
        return self.parameter.rpartition("__")[2]

    def mean(self, metric: str) -> Floats:
        """Return the mean of a metric over folds, for each value."""
        return np.asarray(self._of(metric).mean(axis=0))

    def standard_error(self, metric: str) -> Floats:
        """Return the standard error of the mean of a metric over folds; NaN with one fold.

        It is slightly too small, since folds share training rows.
        """
        if self.n_folds < 2:
            return np.full(self.values.size, np.nan)
        return np.asarray(self._of(metric).std(axis=0, ddof=1) / math.sqrt(self.n_folds))

    def to_frame(self, *, library: str | None = None) -> Any:
        """Return the columns of `table` as a data frame of pandas (the default), polars or pyarrow."""
        columns = self.table()
        rows = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
        return make_frame(rows, library)

    def _repr_html_(self) -> str:
        """Show the curve as a table in a notebook."""
        return str(render("pages.documents.frontier_cell", self))

    def table(self) -> dict[str, list[float]]:
        """Return the curve as columns: the parameter, each metric's mean and, as ``<metric>_se``, standard error."""
        columns = {self.parameter: self.values.tolist()}
        for metric in self.folds:
            columns[metric] = self.mean(metric).tolist()
            columns[f"{metric}_se"] = self.standard_error(metric).tolist()
        return columns

    def find(
        self, *, max_disparity: float | None = None, max_error: float | None = None, metric: str = "criterion_disparity"
    ) -> Choice:
        """Return the point on the curve, a `Choice`, at which `choose` would fit a model."""
        position = self._find(max_disparity, max_error, metric)
        metrics = {metric: self._at(position, self.mean(metric)) for metric in self.folds}
        return Choice(self.parameter, self._value_at(position), metrics)

    def choose(
        self, *, max_disparity: float | None = None, max_error: float | None = None, metric: str = "criterion_disparity"
    ) -> Any:
        """Return a model that satisfies a limit on the curve, fitted on all rows.

        Parameters
        ----------
        max_disparity : float, optional
            Use the smallest value of the parameter at which the held-out disparity, a mean over pairs of groups, is at
            most this: no more parity, and so no more error, than asked for.
        max_error : float, optional
            Use, among the values at which the held-out error is at most this, the one with the lowest disparity.
            Exactly one of the two limits is required.
        metric : str, default="criterion_disparity"
            The disparity to limit or to minimise. That of a classifier is the mean distance that audits judge; those of
            a regressor judge ``"rank_disparity"``.

        Returns
        -------
        estimator
            A clone of ``estimator`` with that value, fitted on all rows of `frontier`.

        Raises
        ------
        ValueError
            When no point on the curve satisfies the limit; the message names the closest one.

        Notes
        -----
        Between two neighbouring values of the grid the curve is interpolated linearly in the parameter or, between two
        positive finite parity weights, in its logarithm. The curve satisfies the limit as a mean over held-out rows; on
        new rows the metric varies, as the standard errors indicate.
        """
        position = self._find(max_disparity, max_error, metric)
        value = self._value_at(position)
        if self.data is None:
            raise ValueError(
                "This frontier keeps no data, so it cannot fit a model. Fit its estimator with "
                f"{self.parameter}={value:.6g}."
            )
        model = clone(self.estimator).set_params(**self.settings)
        # The result depends slightly on the path, so the model is trained along the measured one.
        before = self.values[: math.ceil(position)].tolist()
        return list(fit_along(model, self.parameter, [*before, value], self.data))[-1]

    def drop_data(self) -> Frontier:
        """Return this frontier without the data, to store or share it; `choose` needs the data."""
        return replace(self, data=None)

    def plot(self, **options: Any) -> Any:
        """Draw the curve as a ``FrontierDisplay``; needs the extra ``report``."""
        return render("FrontierDisplay.from_frontier", self, **options)

    # A position is a number: 2.25 is a quarter of the way from the third value to the fourth.

    def _find(self, max_disparity: float | None, max_error: float | None, metric: str) -> float:
        check_choice(metric, DISPARITIES, name="metric")
        if (max_disparity is None) == (max_error is None):
            raise ValueError("Give exactly one of max_disparity and max_error.")
        if max_disparity is not None:
            limit = check_real(max_disparity, name="max_disparity", finite=False)
            return self._positions_below(metric, limit, name="max_disparity")[0]
        most = 1.0 if self.error_metric == "error_rate" else np.inf
        error = check_real(max_error, name="max_error", most=most)
        positions = self._positions_below(self.error_metric, error, name="max_error")
        curve = self.mean(metric)
        return min(positions, key=lambda position: self._at(position, curve))  # the first of equals: the least parity

    def _positions_below(self, metric: str, limit: float, *, name: str) -> list[float]:
        """Return the positions of the values at which a metric satisfies a limit, and where it crosses it, in order."""
        curve = self.mean(metric)
        positions: list[float] = []
        for k, read in enumerate(curve.tolist()):
            is_straight = np.isfinite(self.values[max(k - 1, 0) : k + 1]).all()
            if k and (curve[k - 1] > limit) != (read > limit) and is_straight:
                positions.append(k - 1 + float((limit - curve[k - 1]) / (read - curve[k - 1])))
            if read <= limit:
                positions.append(float(k))
        if not positions:
            self._raise_unreachable(metric, limit, name=name)
        return positions

    def _raise_unreachable(self, metric: str, limit: float, *, name: str) -> None:
        curve = self.mean(metric)
        best, last = int(curve.argmin()), curve.size - 1
        spread, value = self.standard_error(metric)[best], self.values[best]
        uncertainty = "" if np.isnan(spread) else f" (standard error {spread:.2g})"
        floors = {"pairwise_disparity": _FLOOR, "criterion_disparity": _CRITERION_FLOOR}
        advice, floor = "", self.mean(floors.get(metric, _FLOOR))[best]
        at_end = best == (0 if name == "max_error" else last) and not (
            value in {0.0, np.inf} or (self._name == "amount" and value == 1.0)
        )
        if metric in floors and curve[best] < _NEAR_FLOOR * floor:
            advice = (
                f" The noise floor of so many held-out rows is {floor:.4g}; more rows, or fewer folds, would lower it."
            )
        elif at_end:
            less_parity = name == "max_error"
            smaller = less_parity != bool(self.values[0] > self.values[-1])  # a slack falls towards parity
            advice = f" Try {'smaller' if smaller else 'larger'} values of {self.parameter}."
        raise ValueError(
            f"{name}={limit:g} cannot be reached: the lowest value on held-out rows is {curve[best]:.4g}{uncertainty}, "
            f"at {self.parameter}={value:g}.{advice}"
        )

    def _at(self, position: float, curve: Floats) -> float:
        return float(np.interp(position, np.arange(curve.size), curve))

    def _value_at(self, position: float) -> float:
        below, above = self.values[math.floor(position)], self.values[math.ceil(position)]
        share = position - math.floor(position)
        if share == 0.0:
            return float(below)
        if self._name == "parity_weight" and below > 0:
            return float(below ** (1.0 - share) * above**share)
        return float((1.0 - share) * below + share * above)

    def _of(self, metric: str) -> Floats:
        check_choice(metric, tuple(self.folds), name="metric")
        return self.folds[metric]

    def __repr__(self) -> str:
        error, disparity = self.mean(self.error_metric), self.mean("criterion_disparity")
        return (
            f"Frontier({self.parameter} {self.values[0]:g} to {self.values[-1]:g}, {self.situation}, error "
            f"{_show(error[0])} to {_show(error[-1])}, disparity {_show(disparity[0])} to {_show(disparity[-1])})"
        )

    def __str__(self) -> str:
        short = "weight" if self._name == "parity_weight" else self._name
        width, name = max(len(short), 6), self._disparity_name
        error = "error" if self.error_metric == "error_rate" else "RMSE"
        plain = {metric: 8 if metric in {"log_loss", "mae"} else 6 for metric in _PLAIN if metric in self.folds}
        heads = [f"{_PLAIN[metric]:>{size}}" for metric, size in plain.items()]
        size = f"{self.n_rows:,} rows, {self.n_groups} groups"
        if self.n_small_groups:
            size += f" (and {self.n_small_groups} small, not measured)"
        lines = [
            f"Trade-off of {type(last_step(self.estimator)[1]).__name__}: error against disparity",
            f"{self.situation} at prediction: {self.reason}",
            f"{size}; held-out means over {self.n_folds} folds, ± standard error",
            "",
            f"{short:>{width}}  {error:<12} {' '.join(heads)}  {name:<12} floor  {'rank':<6} floor",
        ]
        columns = [
            [f"{value:>{width}g} " for value in self.values],
            self._with_errors(self.error_metric),
            *([f"{_show(value):>{size}}" for value in self.mean(metric)] for metric, size in plain.items()),
            [f" {text}" for text in self._with_errors("criterion_disparity")],
            [f"{_show(value)} " for value in self.mean(_CRITERION_FLOOR)],
            [f"{value:.3f} " for value in self.mean("rank_disparity")],
            [f"{value:.3f}" for value in self.mean(_RANK_FLOOR)],
        ]
        return "\n".join([*lines, *map(" ".join, zip(*columns, strict=True))])

    @property
    def _disparity_name(self) -> str:
        """A word for the mean over pairs of groups, by criterion."""
        criterion = criterion_of(getattr(last_step(self.estimator)[1], "criterion", None)).name
        names = {"equalized_odds": "odds", "equal_opportunity": "opportunity"}
        is_conditional = self.data is not None and self.data.strata is not None
        return names.get(criterion, "conditional" if is_conditional else "pairs")

    def _with_errors(self, metric: str) -> list[str]:
        spread = self.standard_error(metric)
        texts = [
            _show(value) if np.isnan(error) else f"{_show(value)} ±{_show(error, like=value)}"
            for value, error in zip(self.mean(metric), spread, strict=True)
        ]
        return [f"{text:<12}" for text in texts]


class Frontiers(Mapping[str, Frontier]):
    """Trade-off curves of several estimators, of which the best at a limit is chosen.

    Parameters
    ----------
    frontiers : dict of str to Frontier
        Curves by name. They must be of the same rows, and are best measured in the same folds, with one
        ``random_state`` for all.

    Examples
    --------
    >>> import numpy as np
    >>> import fairtransport as ft
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = np.column_stack((rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.0], group))
    >>> y = (X[:, :3].sum(axis=1) + rng.logistic(size=2000) > 1).astype(int)
    >>> methods = {"training": ft.TransportClassifier(), "repair": ft.QuantileRepairClassifier(LogisticRegression())}
    >>> curves = ft.selection.Frontiers(
    ...     {name: ft.frontier(one, X, y, sensitive_features=group, random_state=0) for name, one in methods.items()}
    ... )
    >>> curves.best(max_disparity=0.05)
    'training'
    >>> curves.choose(max_disparity=0.05)
    TransportClassifier(...)
    """

    def __init__(self, frontiers: Mapping[str, Frontier]) -> None:
        self._frontiers = dict(frontiers)
        if len({(curve.n_rows, curve.n_groups, curve.n_folds, curve.error_metric) for curve in self.values()}) != 1:
            raise ValueError("Give one or more curves of the same rows, groups and number of folds.")

    def __getitem__(self, name: str) -> Frontier:
        return self._frontiers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._frontiers)

    def __len__(self) -> int:
        return len(self._frontiers)

    def best(self, *, metric: str = "criterion_disparity", **limit: float) -> str:
        """Return the name of the curve with the least held-out error at ``max_disparity``.

        With ``max_error``, it is the one with the least disparity. Curves that do not satisfy the limit are left out.
        """
        found, failures = {}, {}
        for name, curve in self.items():
            try:
                found[name] = curve.find(metric=metric, **limit).metrics
            except ValueError as error:
                failures[str(error)] = f"{name}: {error}"
        if not found:
            raise ValueError(next(iter(failures)) if len(failures) == 1 else " ".join(failures.values()))
        judged = metric if "max_error" in limit else next(iter(self.values())).error_metric
        return min(found, key=lambda name: found[name][judged])

    def choose(self, *, metric: str = "criterion_disparity", **limit: float) -> Any:
        """Return the model of `best`, fitted on all rows, as `Frontier.choose` does."""
        return self[self.best(metric=metric, **limit)].choose(metric=metric, **limit)

    def plot(self, **options: Any) -> Any:
        """Draw all curves as a ``FrontierDisplay``; needs the extra ``report``."""
        return render("FrontierDisplay.from_frontier", self, **options)

    def __str__(self) -> str:
        return "\n\n".join(f"{name}\n{curve}" for name, curve in self.items())


def _show(value: float, *, like: float | None = None) -> str:
    """Return a number with three decimals, or with three digits where that shows none or too many of ``like``."""
    like = value if like is None else like
    return f"{value:.3f}" if like == 0.0 or 5e-4 <= abs(like) < 1e3 else f"{value:.3g}"
