"""Conversion by skl2onnx of the scikit-learn estimators before a model, and their connection to its graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from fairtransport._extras import load_extra
from fairtransport.persistence.onnx._graph import OPSETS, Graph

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Front", "front_of"]


@dataclass(frozen=True, eq=False)
class Front:
    """What comes before: a converted graph, or only inputs.

    Parameters
    ----------
    model : onnx.ModelProto or None
    inputs : tuple of (str, str, int)
        Names, types and widths of the inputs where there is no graph.
    gives : str
        Name of the output that goes on.
    classifier : bool
        Whether that output is probabilities of two classes, of which the second goes on.
    """

    model: Any
    inputs: Sequence[tuple[str, str, int]]
    gives: str = ""
    classifier: bool = False

    def begin(self, graph: Graph) -> str:
        """Begin a graph with what this gives, as doubles, and return its name."""
        if self.model is None:
            names = [graph.input(*one) for one in self.inputs]
            return names[0]
        output = graph.input(f"ft_{self.gives}", *self._kind())
        double = graph.add("Cast", output, to=graph.number_type("DOUBLE"))
        if not self.classifier:
            return double
        return graph.add("Gather", double, graph.constant(np.int64(1)), axis=1)

    def joined(self, tail: Any) -> Any:
        """Return this graph with the other behind it."""
        if self.model is None:
            return tail
        compose = load_extra("onnx.compose")
        outputs = [one.name for one in tail.graph.output]
        return compose.merge_models(
            self.model, tail, io_map=[(self.gives, f"ft_{self.gives}")], outputs=outputs, producer_name="fairtransport"
        )

    def _kind(self) -> tuple[str, int | None]:
        onnx = load_extra("onnx")
        output_type = next(one for one in self.model.graph.output if one.name == self.gives).type.tensor_type
        width = output_type.shape.dim[1].dim_value if len(output_type.shape.dim) > 1 else 0
        return onnx.TensorProto.DataType.Name(output_type.elem_type), 2 if self.classifier else width


def front_of(part: Any, X: Any, *, classifier: bool) -> Front:
    """Convert a transformer, a classifier or a regressor of scikit-learn."""
    skl2onnx = load_extra("skl2onnx")
    options = {id(part): {"zipmap": False}} if classifier else None
    types = _types_of(part, X)
    try:
        made = skl2onnx.convert_sklearn(part, initial_types=types, options=options, target_opset=OPSETS)
    except _refusals() as error:
        raise TypeError(
            f"skl2onnx cannot convert this {type(part).__name__}, or one of its steps ({type(error).__name__}). Keep "
            "the model's own format, and export the QuantileRepair of its scores."
        ) from None
    for (
        known
    ) in made.opset_import:  # what it declares is the least that it needs; one version must hold for both graphs
        known.version = OPSETS.get(known.domain, known.version)
    declared = {known.domain for known in made.opset_import}
    for domain in OPSETS.keys() - declared:
        made.opset_import.add(domain=domain, version=OPSETS[domain])
    made.ir_version = 8
    _declare_singles(made)
    made = load_extra("onnx.compose").add_prefix(made, "sk_", rename_inputs=False)
    names = [one.name for one in made.graph.output]
    return Front(made, (), names[1] if classifier else names[0], classifier)


def _declare_singles(made: Any) -> None:
    """Declare the output of regression trees as what it is, floats of 32 bits; skl2onnx declares that of the input."""
    single = load_extra("onnx").TensorProto.FLOAT
    trees = {name for node in made.graph.node if node.op_type == "TreeEnsembleRegressor" for name in node.output}
    for output in made.graph.output:
        if output.name in trees:
            output.type.tensor_type.elem_type = single


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


def _types_of(part: Any, X: Any) -> list[tuple[str, Any]]:
    types = load_extra("skl2onnx.common.data_types")
    if X is None:
        if hasattr(part, "feature_names_in_"):
            raise ValueError(
                "This model was fitted on a table: pass some of its rows as X, so that the names and types of the "
                "columns are known."
            )
        return [("X", types.DoubleTensorType([None, int(part.n_features_in_)]))]
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return [("X", types.DoubleTensorType([None, int(part.n_features_in_)]))]
    columns = getattr(part, "feature_names_in_", frame.columns)
    return [
        (name, (types.DoubleTensorType if frame[name].dtype.is_numeric() else types.StringTensorType)([None, 1]))
        for name in columns
    ]
