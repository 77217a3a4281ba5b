"""Fitted models as nodes: from features, or from the columns of a table, to scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.pipeline import Pipeline

from fairtransport._sklearn.group_awareness import needs_groups
from fairtransport.boosting import TransportBoostingClassifier, TransportBoostingRegressor
from fairtransport.linear import (
    ContinuousTransportClassifier,
    ContinuousTransportRegressor,
    DiscreteTransportClassifier,
    DiscreteTransportRegressor,
)
from fairtransport.persistence._files import _model_of, pack_model
from fairtransport.persistence.onnx._conversion import add_converted
from fairtransport.persistence.onnx._operators import add_group_codes, add_linear, add_mixture, add_repair, as_vector
from fairtransport.persistence.onnx._trees import add_margins, has_log_link, is_boosted
from fairtransport.repair import (
    BlindRepairClassifier,
    BlindRepairRegressor,
    QuantileRepair,
    QuantileRepairClassifier,
    QuantileRepairRegressor,
)
from fairtransport.storage import unpack_container

if TYPE_CHECKING:
    from fairtransport.persistence.onnx._graph import Graph

__all__ = ["add_scores", "summed_up"]

_LINEAR = (
    ContinuousTransportClassifier,
    DiscreteTransportClassifier,
    ContinuousTransportRegressor,
    DiscreteTransportRegressor,
)
_REPAIRED = (QuantileRepairClassifier, QuantileRepairRegressor)
_BOOSTING = (TransportBoostingClassifier, TransportBoostingRegressor)
_BLIND = (BlindRepairClassifier, BlindRepairRegressor)


def add_scores(graph: Graph, model: Any, features: Any, people_per_point: int) -> str:
    """Add a model, and return its scores: probabilities of the positive class, or predictions, as a vector of doubles.

    Parameters
    ----------
    graph : Graph
    model : estimator
    features : str or dict of str to str
        Name of a matrix of doubles, or of the columns of a table.
    people_per_point : int
        See `to_onnx`.
    """
    if isinstance(model, Pipeline):
        return _add_pipeline(graph, model, features, people_per_point)
    if isinstance(model, _LINEAR):
        return _add_transport(graph, model, features)
    if isinstance(model, _REPAIRED):
        scores = add_scores(graph, model.estimator_, features, people_per_point)
        return _add_repaired(graph, scores, summed_up(model.repair_, people_per_point))
    if isinstance(model, _BOOSTING):
        return _add_boosting(graph, model, features, people_per_point)
    return _add_foreign(graph, model, features)


def _add_pipeline(graph: Graph, model: Any, features: Any, people_per_point: int) -> str:
    steps = [(name, step) for name, step in model.steps[:-1] if step not in (None, "passthrough")]
    if steps:
        features = add_converted(graph, Pipeline(steps), features, classifier=False)
    return add_scores(graph, model[-1], features, people_per_point)


def _add_foreign(graph: Graph, model: Any, features: Any) -> str:
    """Add a model of another library."""
    if isinstance(model, _BLIND):
        raise TypeError(
            f"A {type(model).__name__} cannot be exported to ONNX: its map depends on the probabilities of all groups. "
            "Save it with fairtransport.save; or export a transport estimator, which needs no group either."
        )
    if is_boosted(model):
        margins = add_margins(graph, model, features)
        if is_regressor(model):
            return graph.add("Exp", margins) if has_log_link(model) else margins
        return graph.add("Sigmoid", margins)
    if is_regressor(model):
        return as_vector(graph, add_converted(graph, model, features, classifier=False))
    if not hasattr(model, "predict_proba"):
        raise TypeError(
            f"A {type(model).__name__} cannot be exported by to_onnx: it has neither probabilities of two classes nor "
            "predictions of numbers."
        )
    output = add_converted(graph, model, features, classifier=True)
    return graph.add("Gather", output, graph.constant(np.int64(1)), axis=1)


def _add_transport(graph: Graph, model: Any, features: str) -> str:
    if model.spread != "trained":
        raise ValueError("A model with spread='initial' cannot be exported; set spread='trained', which keeps ranks.")
    codes = add_group_codes(graph, model.groups_) if needs_groups(model) else None
    logistic = not is_regressor(model)
    moved = add_linear(graph, features, model.coef_, model.intercept_, codes, logistic=logistic)
    if model.amount == 1.0:
        return moved
    start = model.initial_estimator_
    weights = np.reshape(start.coef_, (1, -1)), np.ravel(start.intercept_)[:1]
    return add_mixture(
        graph, add_linear(graph, features, *weights, None, logistic=logistic), moved, float(model.amount)
    )


def _add_boosting(graph: Graph, model: Any, features: str, people_per_point: int) -> str:
    if getattr(model, "spread", "trained") != "trained":
        raise ValueError("A model with spread='initial' cannot be exported; set spread='trained', which keeps ranks.")
    scores = _add_link(graph, model, add_margins(graph, model.estimator_, features))
    if model.repair_ is not None:
        scores = _add_repaired(graph, scores, summed_up(model.repair_, people_per_point))
    amount = float(getattr(model, "amount", 1.0))
    if amount == 1.0:
        return scores
    plain = _add_link(graph, model, add_margins(graph, model.initial_estimator_, features))
    return add_mixture(graph, plain, scores, amount)


def _add_link(graph: Graph, model: Any, margins: str) -> str:
    if not is_regressor(model):
        return graph.add("Sigmoid", margins)
    moved = graph.add("Exp", margins) if model.loss_ in {"poisson", "tweedie"} else margins
    scaled = graph.add("Mul", moved, graph.constant(np.float64(model.y_scale_)))
    return graph.add("Add", scaled, graph.constant(np.float64(model.y_center_)))


def _add_repaired(graph: Graph, scores: str, repair: Any) -> str:
    codes = add_group_codes(graph, repair.groups_)
    return add_repair(graph, scores, codes, repair.maps_, float(repair.amount), extrapolate=repair.extrapolates)


def summed_up(repair: QuantileRepair, people_per_point: int) -> Any:
    """Return the repair as a model file would give it back: without anybody's score."""
    if repair.strata_ is not None:
        raise ValueError(
            "A repair within strata cannot be exported to ONNX: the graph has inputs for groups, not for strata. Save "
            "it with fairtransport.save, or export one repair for each stratum."
        )
    if hasattr(repair, "randomized_maps_"):
        raise ValueError(
            "A randomised repair cannot be exported to ONNX, which has no draws that are the same in every call. Save "
            "it with fairtransport.save, or fit it with randomize=False."
        )
    return _model_of(unpack_container(pack_model(repair, people_per_point)[0]))
