"""Conversion of scikit-learn's estimators by skl2onnx, into a graph under construction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from fairtransport._extras import load_extra
from fairtransport.persistence.onnx._graph import OPSETS, Graph
from fairtransport.tabular.input_columns import feature_columns, feature_names

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["add_converted", "declare_features"]


def declare_features(graph: Graph, model: Any) -> Any:
    """Declare the inputs of a model: the columns of a table where it begins by selecting them, a matrix elsewhere.

    Returns
    -------
    str or dict of str to str
        Name of the matrix, or of each column.
    """
    names = feature_names(model)
    if names is None or not _selects_columns(model):
        return graph.input("X", "DOUBLE", int(model.n_features_in_))
    kinds = {column.name: column.kind for column in feature_columns(model, names)}
    return {name: graph.input(name, "STRING" if kinds.get(name) == "text" else "DOUBLE", 1) for name in names}


def _selects_columns(model: Any) -> bool:
    while not isinstance(model, (Pipeline, ColumnTransformer)):
        model = vars(model).get("estimator_")
        if model is None:
            return False
    if isinstance(model, ColumnTransformer):
        return True
    steps = [step for _, step in model.steps if step not in (None, "passthrough")]
    return bool(steps) and (isinstance(steps[0], ColumnTransformer) or _selects_columns(steps[0]))


def add_converted(graph: Graph, part: Any, features: Any, *, classifier: bool) -> str:
    """Add a transformer, a classifier or a regressor of scikit-learn, and return its output, as doubles.

    Parameters
    ----------
    graph : Graph
    part : estimator
    features : str or dict of str to str
        Name of a matrix of doubles, or of columns, by which the estimator knows them.
    classifier : bool
        Whether the output are probabilities.
    """
    skl2onnx = load_extra("skl2onnx")
    options = {id(part): {"zipmap": False}} if classifier else None
    inputs: Mapping[str, str] = features if isinstance(features, dict) else {"X": features}
    types = _types_of(graph, part, inputs)
    try:
        made = skl2onnx.convert_sklearn(part, initial_types=types, options=options, target_opset=OPSETS)
    except _refusals() as error:
        raise TypeError(
            f"skl2onnx cannot convert this {type(part).__name__}, or one of its steps ({type(error).__name__}). Keep "
            "the model's own format, and export the QuantileRepair of its scores."
        ) from None
    outputs = graph.inline(made, inputs)
    return graph.add("Cast", outputs[1] if classifier else outputs[0], to=graph.number_type("DOUBLE"))


def _types_of(graph: Graph, part: Any, inputs: Mapping[str, str]) -> list[tuple[str, Any]]:
    types = load_extra("skl2onnx.common.data_types")
    if set(inputs) == {"X"}:
        return [("X", types.DoubleTensorType([None, int(part.n_features_in_)]))]
    return [
        (name, (types.StringTensorType if graph.is_text(given) else types.DoubleTensorType)([None, 1]))
        for name, given in inputs.items()
    ]


def _refusals() -> tuple[type[Exception], ...]:
    errors = load_extra("skl2onnx.common.exceptions")
    return (
        errors.MissingShapeCalculator,
        errors.MissingConverter,
        RuntimeError,
        NotImplementedError,
        AttributeError,
        TypeError,
        ValueError,
    )
