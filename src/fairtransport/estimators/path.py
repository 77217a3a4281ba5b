"""One estimator on its way from no parity to most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairtransport.estimators._linear import LinearTransportClassifier
from fairtransport.estimators.calling import fit_model, last_step
from fairtransport.estimators.repair_classifier import QuantileRepairClassifier

__all__ = ["TrainingRows", "fit_next", "path_settings"]


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """What a model is fitted on."""

    X: Any
    y: Any
    sensitive_features: Any
    sample_weight: Any = None


def path_settings(estimator: Any, seed: int | None) -> dict[str, Any]:
    """Return what the estimator is told besides the value of its parameter: the seed it lacks, and warm starts.

    Warm starts are for our own linear models, where they mean to go on from the present weights. Elsewhere they may
    mean something else, such as more trees.
    """
    prefix, last = last_step(estimator)
    known, settings = estimator.get_params(), {}
    if seed is not None and known.get(f"{prefix}random_state", 0) is None:
        settings[f"{prefix}random_state"] = seed
    if isinstance(last, LinearTransportClassifier):
        settings[f"{prefix}warm_start"] = True
    return settings


def fit_next(model: Any, parameter: str, value: float, rows: TrainingRows, *, first: bool) -> None:
    """Bring the model to the next value of its parameter, with no more work than that takes."""
    model.set_params(**{parameter: value})
    prefix, last = last_step(model)
    if not first and parameter == f"{prefix}amount" and isinstance(last, LinearTransportClassifier):
        return  # the amount is for prediction
    if not first and parameter == "amount" and isinstance(model, QuantileRepairClassifier):
        model.repair_.set_params(amount=value)  # the maps are the same for every amount
        return
    fit_model(model, rows.X, rows.y, sensitive_features=rows.sensitive_features, sample_weight=rows.sample_weight)
