"""The trade-off between error and disparity, as measured: a curve to choose from."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from fairtransport._extras import render
from fairtransport._sklearn.estimator_calls import last_step
from fairtransport._validation import check_choice, check_real
from fairtransport.selection._estimator_path import fit_along

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fairtransport.selection._estimator_path import TrainingRows

__all__ = ["CURVE_METRICS", "DISPARITIES", "Choice", "Frontier"]

DISPARITIES = (
    "wasserstein_disparity",
    "strong_demographic_disparity",
    "strong_pairwise_disparity",
    "rank_disparity",
)
CURVE_METRICS = ("error_rate", "log_loss", "auc", "information_kept", *DISPARITIES)
_FLOOR, _RANK_FLOOR = "noise_floor", "rank_noise_floor"
_NEAR_FLOOR = 1.5  # times the floor: what is read is mostly chance


@dataclass(frozen=True)
class Choice:
    """A place on the curve.

    Parameters
    ----------
    parameter : str
        Name of the estimator's parameter.
    value : float
        Its value there; between two values of the grid, the curve is taken as straight.
    metrics : dict of str to float
        What the curve reads there: means over held-out rows, not promises.
    """

    parameter: str
    value: float
    metrics: Mapping[str, float]


@dataclass(frozen=True, eq=False, repr=False)
class Frontier:
    """The trade-off between error and disparity on held-out rows, made by `fairtransport.frontier`.

    ``print(frontier)`` shows it as a table, `table` hands it on, `choose` returns a model.

    Parameters
    ----------
    estimator : estimator
        The one that was tried, not fitted.
    parameter : str
        Its parameter that leads from no parity to most: ``"parity_weight"`` or ``"amount"``.
    values : ndarray of shape (n_values,)
        What it was set to.
    folds : dict of str to ndarray of shape (n_folds, n_values)
        ``error_rate``, ``log_loss``, ``auc``, ``information_kept`` (share of the first value's gain in log-loss over a
        constant), ``wasserstein_disparity``, ``strong_demographic_disparity``,
        ``strong_pairwise_disparity``, ``noise_floor`` (of the last), ``rank_disparity`` and ``rank_noise_floor`` on
        each fold's held-out rows.
    situation : {"aware", "blind"}
        Whether the group is known at prediction.
    reason : str
        How that was found, in words.
    threshold : float
        Scores above it are decided positively; the error rate depends on it, the disparities do not.
    n_rows, n_groups : int
        What it was measured on.
    data : TrainingRows or None
        References to the rows, which `choose` needs: **a Frontier holds the data** until `drop_data`.
    settings : dict
        Parameters that the fits had besides: the seed, where `frontier` was given one and the estimator has none.
    """

    estimator: Any
    parameter: str
    values: NDArray[np.float64]
    folds: Mapping[str, NDArray[np.float64]]
    situation: str
    reason: str
    threshold: float
    n_rows: int
    n_groups: int
    data: TrainingRows | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_folds(self) -> int:
        """How many folds the figures are means over."""
        return int(next(iter(self.folds.values())).shape[0])

    def mean(self, metric: str) -> NDArray[np.float64]:
        """Return the mean of a metric over folds, for each value."""
        return np.asarray(self._of(metric).mean(axis=0))

    def standard_error(self, metric: str) -> NDArray[np.float64]:
        """Return the standard error of that mean; NaN with one fold.

        Folds share training rows, so it is a little too small.
        """
        if self.n_folds < 2:
            return np.full(self.values.size, np.nan)
        return np.asarray(self._of(metric).std(axis=0, ddof=1) / math.sqrt(self.n_folds))

    def table(self) -> dict[str, list[float]]:
        """Return the curve as columns, which any table library takes: ``pandas.DataFrame(frontier.table())``.

        Returns
        -------
        dict of str to list of float
            The parameter, then each metric's mean and, with ``_se`` added to its name, standard error.
        """
        columns = {self.parameter: self.values.tolist()}
        for metric in (*CURVE_METRICS, _FLOOR, _RANK_FLOOR):
            columns[metric] = self.mean(metric).tolist()
            columns[f"{metric}_se"] = self.standard_error(metric).tolist()
        return columns

    def find(
        self,
        *,
        max_disparity: float | None = None,
        max_error: float | None = None,
        metric: str = "strong_pairwise_disparity",
    ) -> Choice:
        """Return the place on the curve that `choose` would fit a model at; see there for the rule.

        Parameters
        ----------
        max_disparity, max_error, metric
            As for `choose`.

        Returns
        -------
        Choice
        """
        place = self._find(max_disparity, max_error, metric)
        names = (*CURVE_METRICS, _FLOOR, _RANK_FLOOR)
        return Choice(self.parameter, self._value_at(place), {m: self._at(place, self.mean(m)) for m in names})

    def choose(
        self,
        *,
        max_disparity: float | None = None,
        max_error: float | None = None,
        metric: str = "strong_pairwise_disparity",
    ) -> Any:
        """Return a model that keeps a limit, fitted on all rows.

        Parameters
        ----------
        max_disparity : float, optional
            Take the smallest value of the parameter at which the held-out curve is at or below this disparity:
            no more parity, and so no more error, than asked for.
        max_error : float, optional
            Take, of all values at which the held-out curve's error is at or below this, the one with the lowest
            disparity. Exactly one of the two limits is given.
        metric : str, default="strong_pairwise_disparity"
            The disparity that is meant.

        Returns
        -------
        estimator
            A clone of ``estimator`` at that value, fitted on all rows that `frontier` was given.

        Raises
        ------
        ValueError
            When no place on the curve keeps the limit; the text names the closest that can be reached.

        Notes
        -----
        Between two neighbouring values of the grid the curve is taken as straight: over the parameter, or, between
        two positive finite parity weights, over its logarithm. The limit is kept by the curve, a mean over held-out
        rows; new rows read a little more or less, as the standard errors say.
        """
        place = self._find(max_disparity, max_error, metric)
        value = self._value_at(place)
        if self.data is None:
            raise ValueError(
                "This frontier keeps no data, so it cannot fit a model. Fit its estimator with "
                f"{self.parameter}={value:.6g}."
            )
        model = clone(self.estimator).set_params(**self.settings)
        # Along a path the way matters a little: the model goes the one that was measured.
        before = self.values[: math.ceil(place)].tolist()
        return list(fit_along(model, self.parameter, [*before, value], self.data))[-1]

    def drop_data(self) -> Frontier:
        """Return this frontier without its reference to the rows, to be kept or sent on; `choose` needs them."""
        return replace(self, data=None)

    def plot(self, **options: Any) -> Any:
        """Draw the curve as a ``FrontierDisplay``; needs the extra ``report``."""
        return render("plot_frontier", self, **options)

    # ---------------------------------------------------------------- places on the curve

    # A place is a number: 2.25 lies a quarter of the way from the third value to the fourth.

    def _find(self, max_disparity: float | None, max_error: float | None, metric: str) -> float:
        check_choice(metric, DISPARITIES, name="metric")
        if (max_disparity is None) == (max_error is None):
            raise ValueError("Give exactly one of max_disparity and max_error.")
        if max_disparity is not None:
            limit = check_real(max_disparity, name="max_disparity", finite=False)
            return self._places_below(metric, limit, name="max_disparity")[0]
        places = self._places_below("error_rate", check_real(max_error, name="max_error", most=1.0), name="max_error")
        curve = self.mean(metric)
        return min(places, key=lambda place: self._at(place, curve))  # the first of equals: the least parity

    def _places_below(self, metric: str, limit: float, *, name: str) -> list[float]:
        """List the values at which a metric keeps a limit, and the places where it meets it, in order."""
        curve = self.mean(metric)
        places: list[float] = []
        for k, read in enumerate(curve.tolist()):
            if k and (curve[k - 1] > limit) != (read > limit) and self._is_straight(k):
                places.append(k - 1 + float((limit - curve[k - 1]) / (read - curve[k - 1])))
            if read <= limit:
                places.append(float(k))
        if not places:
            self._say_closest(metric, limit, name=name)
        return places

    def _say_closest(self, metric: str, limit: float, *, name: str) -> None:
        curve = self.mean(metric)
        best, last = int(curve.argmin()), curve.size - 1
        spread, value = self.standard_error(metric)[best], self.values[best]
        told = "" if np.isnan(spread) else f" (standard error {spread:.2g})"
        advice, floor = "", self.mean(_FLOOR)[best]
        at_end = best == (0 if name == "max_error" else last) and not (value in {0.0, np.inf} or self._is_amount(value))
        if metric == "strong_pairwise_disparity" and curve[best] < _NEAR_FLOOR * floor:
            advice = (
                f" Chance alone reads {floor:.4g} on so many held-out rows; more rows, or fewer folds, would show less."
            )
        elif at_end:
            advice = f" Try {'smaller' if name == 'max_error' else 'larger'} values of {self.parameter}."
        raise ValueError(
            f"{name}={limit:g} cannot be reached: the closest that the held-out rows show is {curve[best]:.4g}{told}, "
            f"at {self.parameter}={value:g}.{advice}"
        )

    def _is_amount(self, value: float) -> bool:
        return self.parameter.rpartition("__")[2] == "amount" and value == 1.0

    def _is_straight(self, k: int) -> bool:
        return bool(np.isfinite(self.values[k - 1 : k + 1]).all())

    def _at(self, place: float, curve: NDArray[np.float64]) -> float:
        return float(np.interp(place, np.arange(curve.size), curve))

    def _value_at(self, place: float) -> float:
        below, above = self.values[math.floor(place)], self.values[math.ceil(place)]
        share = place - math.floor(place)
        if share == 0.0:
            return float(below)
        if self.parameter.rpartition("__")[2] == "parity_weight" and below > 0:
            return float(below ** (1.0 - share) * above**share)
        return float((1.0 - share) * below + share * above)

    def _of(self, metric: str) -> NDArray[np.float64]:
        check_choice(metric, tuple(self.folds), name="metric")
        return self.folds[metric]

    # ---------------------------------------------------------------- for people

    def __repr__(self) -> str:
        error, apart = self.mean("error_rate"), self.mean("strong_pairwise_disparity")
        return (
            f"Frontier({self.parameter} {self.values[0]:g} to {self.values[-1]:g}, {self.situation}, error "
            f"{error[0]:.3f} to {error[-1]:.3f}, pairwise disparity {apart[0]:.3f} to {apart[-1]:.3f})"
        )

    def __str__(self) -> str:
        short = self.parameter.rpartition("__")[2]
        short = "weight" if short == "parity_weight" else short
        wide = max(len(short), 6)
        lines = [
            f"Trade-off of {type(last_step(self.estimator)[1]).__name__}: error against disparity",
            f"{self.situation} at prediction: {self.reason}",
            f"{self.n_rows:,} rows, {self.n_groups} groups; held-out means over {self.n_folds} folds, ± standard error",
            "",
            f"{short:>{wide}}  {'error':<12} log-loss    AUC   kept  {'SPDD':<12} floor  {'rank':<6} floor",
        ]
        plain = {"log_loss": 8, "auc": 6, "information_kept": 6}
        columns = [
            [f"{value:>{wide}g} " for value in self.values],
            self._with_errors("error_rate"),
            *([f"{value:{size}.3f}" for value in self.mean(metric)] for metric, size in plain.items()),
            [f" {told}" for told in self._with_errors("strong_pairwise_disparity")],
            [f"{value:.3f} " for value in self.mean(_FLOOR)],
            [f"{value:.3f} " for value in self.mean("rank_disparity")],
            [f"{value:.3f}" for value in self.mean(_RANK_FLOOR)],
        ]
        return "\n".join([*lines, *map(" ".join, zip(*columns, strict=True))])

    def _with_errors(self, metric: str) -> list[str]:
        spread = self.standard_error(metric)
        told = [
            f"{value:.3f}" if np.isnan(error) else f"{value:.3f} ±{error:.3f}"
            for value, error in zip(self.mean(metric), spread, strict=True)
        ]
        return [f"{text:<12}" for text in told]
