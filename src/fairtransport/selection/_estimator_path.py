"""Fits of one estimator along a path of values of its parity parameter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fairtransport._sklearn.estimator_calls import fit_model, last_step
from fairtransport.linear.base import LinearTransportModel
from fairtransport.linear.solvers.settings import sgd_settings
from fairtransport.repair import (
    BlindRepairClassifier,
    BlindRepairRegressor,
    QuantileRepairClassifier,
    QuantileRepairRegressor,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["TrainingRows", "fit_along", "fit_next", "path_settings"]

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


def path_settings(estimator: Any, seed: int | None) -> dict[str, Any]:
    """Return further parameters of an estimator along the path: a seed, where it takes one and has none."""
    (prefix, last), known = last_step(estimator), estimator.get_params()
    if seed is not None and isinstance(last, LinearTransportModel):
        settings = sgd_settings(last.solver)
        if settings is None or settings.random_state is not None:
            return {}
        return {f"{prefix}solver": replace(settings, random_state=seed)}
    if seed is not None and known.get(f"{prefix}random_state", 0) is None:
        return {f"{prefix}random_state": seed}
    return {}


def fit_along(model: Any, parameter: str, values: list[float], rows: TrainingRows) -> Iterator[Any]:
    """Yield a fitted model for each value of a parameter, reusing work where the estimator allows it.

    Transport models are trained along one warm-started path of weights, on rows that are prepared once. Blind repair
    fits its two models once for all slacks.
    """
    has_path = isinstance(model, LinearTransportModel) and sgd_settings(model.solver) is None
    if has_path and parameter == "parity_weight" and values == sorted(values):
        yield from model.fit_path(rows.X, rows.y, values, **rows.options())
        return
    if isinstance(model, _BLIND) and parameter == "slack" and values == sorted(values, reverse=True):
        yield from model.fit_path(rows.X, rows.y, values, **rows.options())
        return
    for number, value in enumerate(values):
        fit_next(model, parameter, value, rows, first=number == 0)
        yield model


def fit_next(model: Any, parameter: str, value: float, rows: TrainingRows, *, first: bool) -> None:
    """Set the next value of the parameter, and refit the model unless the value matters only at prediction."""
    model.set_params(**{parameter: value})
    prefix, last = last_step(model)
    if not first and parameter == f"{prefix}amount" and hasattr(last, "initial_estimator_"):  # which it mixes with
        return
    if not first and parameter == "amount" and isinstance(model, _REPAIRED):
        return
    fit_model(model, rows.X, rows.y, **rows.options())
