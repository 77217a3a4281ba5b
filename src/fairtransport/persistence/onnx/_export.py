"""`to_onnx`: a fitted model as one ONNX graph."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from fairtransport._extras import load_extra
from fairtransport._sklearn.group_awareness import needs_groups
from fairtransport.linear import (
    ContinuousTransportClassifier,
    ContinuousTransportRegressor,
    DiscreteTransportClassifier,
    DiscreteTransportRegressor,
)
from fairtransport.persistence._files import PEOPLE_PER_POINT, _model_of, pack_model
from fairtransport.persistence.onnx._graph import Graph
from fairtransport.persistence.onnx._operators import (
    add_classes,
    add_group_codes,
    add_linear,
    add_mixture,
    add_repair,
    as_vector,
    require_range,
)
from fairtransport.persistence.onnx._sklearn_models import Front, front_of
from fairtransport.repair import QuantileRepair, QuantileRepairClassifier, QuantileRepairRegressor
from fairtransport.storage import unpack_container

if TYPE_CHECKING:
    from fairtransport.groups import Groups

__all__ = ["to_onnx"]

_REGRESSORS = (ContinuousTransportRegressor, DiscreteTransportRegressor)
_LINEAR = (ContinuousTransportClassifier, DiscreteTransportClassifier, *_REGRESSORS)


def to_onnx(model: Any, X: Any = None, *, people_per_point: int = PEOPLE_PER_POINT) -> Any:
    """Return a fitted model as an ONNX graph, for runtimes without Python.

    Parameters
    ----------
    model : estimator
        `ContinuousTransportClassifier`, `DiscreteTransportClassifier`, their regressors, a `Pipeline` that ends in one,
        `QuantileRepair`, or `QuantileRepairClassifier` and `QuantileRepairRegressor` around any model or pipeline that
        skl2onnx converts.
    X : table, optional
        Some rows of the features, for pipelines that begin with the columns of a table: the graph then has an input for
        each column, of text or of doubles. Only names and types are read. Matrices need none.
    people_per_point : int, default=5
        As in `fairtransport.save`: the points of a repair's maps stand for at least so many training rows each.

    Returns
    -------
    onnx.ModelProto
        ``onnx.save(made, "model.onnx")`` writes it. Inputs: ``X``, doubles, of shape (n, n_features), or one of
        shape (n, 1) for each column of a table, or ``scores`` for a `QuantileRepair`, doubles of shape (n,). Where the
        group is needed, one more for each sensitive column, under its name, of shape (n,): text if the column was
        text in ``fit``, int64 if it had integers or booleans. Outputs: ``label`` and ``probabilities``, ``prediction``
        of a regressor, or ``repaired``.

    Raises
    ------
    ValueError, TypeError
        For what cannot be exported: other models, groups of fractions or missing values, parts that skl2onnx does not
        know.

    Notes
    -----
    All is computed in doubles, so scores agree with ours to rounding (1e-12 in the tests), as far as the converted
    parts of scikit-learn are, too: trees and one-hot encoders work in single precision. A group that was not seen in
    ``fit``, a score outside the range of a repair and a score that is NaN make the runtime raise an error.

    What the graph tells about people is what a model file tells (docs/model_files.md). The groups' labels are in it.

    Examples
    --------
    >>> import numpy as np, onnxruntime, fairtransport as ft
    >>> scores, sex = np.linspace(0, 1, 100), np.repeat(["F", "M"], 50)
    >>> repair = ft.QuantileRepair().fit(scores, sensitive_features=sex)
    >>> session = onnxruntime.InferenceSession(ft.to_onnx(repair).SerializeToString())
    >>> session.run(None, {"scores": np.array([0.25]), "sensitive_feature_0": np.array(["F"])})[0].round(3)
    array([0.503])
    """
    load_extra("onnx")
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise ValueError(f"This {type(model).__name__} is not fitted; fit it before exporting it.") from None
    graph = Graph()
    if isinstance(model, QuantileRepair):
        repair = _summed_up(model, people_per_point)
        scores = graph.input("scores", "DOUBLE", None)
        largest = float(np.finfo(np.float64).max)
        ends = (-largest, largest) if repair.extrapolates else repair.range_
        repaired = _repaired(graph, require_range(graph, scores, *ends), repair)
        repaired = graph.add("Identity", repaired, output="repaired")
        graph.output(repaired, "DOUBLE", None)
        return _finished(graph, None, repair.groups_)
    if isinstance(model, QuantileRepairClassifier):
        repair = _summed_up(model.repair_, people_per_point)
        if _is_linear(model.estimator_):
            front, scores = _linear_scores(graph, model.estimator_, X)
        else:
            front = front_of(model.estimator_, X, classifier=True)
            scores = front.begin(graph)
        add_classes(graph, _repaired(graph, scores, repair), model.classes_)
        return _finished(graph, front, repair.groups_)
    if isinstance(model, QuantileRepairRegressor):
        repair = _summed_up(model.repair_, people_per_point)
        front = front_of(model.estimator_, X, classifier=False)
        repaired = _repaired(graph, as_vector(graph, front.begin(graph)), repair)
        graph.output(graph.add("Identity", repaired, output="prediction"), "DOUBLE", None)
        return _finished(graph, front, repair.groups_)
    if not _is_linear(model):
        last = model[-1] if isinstance(model, Pipeline) else model
        raise TypeError(
            f"A {type(last).__name__}{' behind other steps' if last is not model else ''} cannot be exported by "
            "to_onnx. The transport classifiers and regressors can, alone or at the end of a Pipeline, and so can "
            "QuantileRepair, QuantileRepairClassifier and QuantileRepairRegressor, with the pipeline inside. For "
            "models of scikit-learn use skl2onnx."
        )
    front, scores = _linear_scores(graph, model, X)
    last = model[-1] if isinstance(model, Pipeline) else model
    if isinstance(last, _REGRESSORS):
        graph.output(graph.add("Identity", scores, output="prediction"), "DOUBLE", None)
    else:
        add_classes(graph, scores, last.classes_)
    return _finished(graph, front, last.groups_ if needs_groups(last) else None)


def _is_linear(model: Any) -> bool:
    """Whether this is a transport classifier or regressor, or a pipeline that ends in one."""
    return isinstance(model[-1] if isinstance(model, Pipeline) else model, _LINEAR)


def _linear_scores(graph: Graph, model: Any, X: Any) -> tuple[Front, str]:
    """Add a transport model, and return what stands before it and the name of its scores or predictions."""
    front, last = Front(None, (("X", "DOUBLE", int(model.n_features_in_)),)), model
    if isinstance(model, Pipeline):
        last = model[-1]
        steps = [(name, step) for name, step in model.steps[:-1] if step not in (None, "passthrough")]
        front = front_of(Pipeline(steps), X, classifier=False) if steps else front
    if last.spread != "trained":
        raise ValueError("A model with spread='initial' cannot be exported; set spread='trained', which keeps ranks.")
    features = front.begin(graph)
    codes = add_group_codes(graph, last.groups_) if needs_groups(last) else None
    logistic = not isinstance(last, _REGRESSORS)
    moved = add_linear(graph, features, last.coef_, last.intercept_, codes, logistic=logistic)
    if last.amount == 1.0:
        return front, moved
    start = last.initial_estimator_
    weights = np.reshape(start.coef_, (1, -1)), np.ravel(start.intercept_)[:1]
    initial = add_linear(graph, features, *weights, None, logistic=logistic)
    return front, add_mixture(graph, initial, moved, float(last.amount))


def _summed_up(repair: QuantileRepair, people_per_point: int) -> Any:
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


def _repaired(graph: Graph, scores: str, repair: Any) -> str:
    codes = add_group_codes(graph, repair.groups_)
    return add_repair(graph, scores, codes, repair.maps_, float(repair.amount), extrapolate=repair.extrapolates)


def _finished(graph: Graph, front: Front | None, groups: Groups | None) -> Any:
    made = graph.model("fairtransport")
    if front is not None:
        made = front.joined(made)
    metadata = {"fairtransport.version": _version()}
    if groups is not None:
        metadata["fairtransport.groups"] = json.dumps(groups.to_spec())
    for key, value in metadata.items():
        entry = made.metadata_props.add()
        entry.key, entry.value = key, value
    load_extra("onnx.checker").check_model(made)
    return made


def _version() -> str:
    return str(__import__("fairtransport").__version__)  # by name, to avoid a circular import
