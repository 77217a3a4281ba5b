"""A graph under construction: nodes, constants and inputs, each by a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from fairtransport._extras import load_extra
from fairtransport.tabular.input_columns import feature_columns, feature_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.transport.line import QuantileMap

ML_DOMAIN = "ai.onnx.ml"
#: Versions of the operators; onnxruntime has them since 1.12.
OPSETS = {"": 17, ML_DOMAIN: 3}


class Graph:
    """Nodes in the order in which they are added; every value has a name."""

    def __init__(self, prefix: str = "ft_") -> None:
        self._onnx = load_extra("onnx")
        load_extra("onnx.compose")
        self._prefix, self._count, self._inlined = prefix, 0, 0
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def add(self, operator: str, *inputs: Any, domain: str = "", output: str | None = None, **options: Any) -> str:
        """Add a node and return the name of what it gives; inputs are names, or constants."""
        names = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        name = output or self._new_name(operator)
        self.nodes.append(self._onnx.helper.make_node(operator, names, [name], domain=domain, **options))
        return name

    def cast(self, value: str, kind: str) -> str:
        """Add a conversion to another type."""
        return self.add("Cast", value, to=self.number_type(kind))

    def constant(self, value: Any) -> str:
        """Add a constant array and return its name."""
        name, array = self._new_name("constant"), np.asarray(value)
        if array.dtype.kind in "UO":
            tensor = self._onnx.helper.make_tensor(
                name, self._onnx.TensorProto.STRING, array.shape, [str(word).encode() for word in array.ravel()]
            )
        else:
            tensor = self._onnx.numpy_helper.from_array(array, name)
        self.constants.append(tensor)
        return name

    def input(self, name: str, kind: str, width: int | None) -> str:
        """Declare an input of ``width`` columns (None: a vector) of doubles, integers or text."""
        self.inputs.append(self._value(name, kind, [None] if width is None else [None, width]))
        return name

    def output(self, name: str, kind: str, width: int | None) -> None:
        """Declare an output."""
        self.outputs.append(self._value(name, kind, [None] if width is None else [None, width]))

    def is_text(self, name: str) -> bool:
        """Return whether an input of this name is text."""
        kinds = {one.name: one.type.tensor_type.elem_type for one in self.inputs}
        return kinds.get(name) == self.number_type("STRING")

    def inline(self, made: Any, inputs: Mapping[str, str]) -> list[str]:
        """Add the nodes of a model of another converter."""
        self._inlined += 1
        prefix = f"{self._prefix}part{self._inlined}_"
        part = self._onnx.compose.add_prefix(made, prefix).graph
        known = {f"{prefix}{name}": value for name, value in inputs.items()}
        for node in part.node:
            node.input[:] = [known.get(name, name) for name in node.input]
            if node.op_type == "Imputer":
                self._impute(node)
            else:
                self.nodes.append(node)
        self.constants.extend(part.initializer)
        return [known.get(one.name, one.name) for one in part.output]

    def _impute(self, node: Any) -> None:
        """Add what an imputer of missing doubles does, for which runtimes have no operator."""
        values = {one.name: self._onnx.helper.get_attribute_value(one) for one in node.attribute}
        if not np.isnan(values.get("replaced_value_float", 0.0)):
            raise TypeError("An imputer of other values than NaN cannot be exported to ONNX.")
        filled = np.asarray(values["imputed_value_floats"], dtype=np.float64)[None]
        self.add("Where", self.add("IsNaN", node.input[0]), filled, node.input[0], output=node.output[0])

    def number_type(self, kind: str) -> int:
        """Return ONNX's number of a type."""
        return int(getattr(self._onnx.TensorProto, kind))

    def model(self, name: str) -> Any:
        """Return the graph as an ONNX model."""
        helper = self._onnx.helper
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="fairtransport")

    def _value(self, name: str, kind: str, shape: list[int | None]) -> Any:
        return self._onnx.helper.make_tensor_value_info(name, self.number_type(kind), shape)

    def _new_name(self, what: str) -> str:
        self._count += 1
        return f"{self._prefix}{what}_{self._count}"


# What models are made of, as nodes: the code of a group, a linear score, a repaired score, and what comes out.

_MOST_COMBINATIONS = 1 << 20


def add_group_codes(graph: Graph, groups: Groups) -> str:
    """Declare an input for each sensitive column, and return the index of each row's group, as a vector.

    Columns of text are text, those of integers or booleans are int64. A value or combination that was not seen in
    ``fit`` gets an index beyond all tables.
    """
    columns: list[tuple[Any, ...]] = list(zip(*map(_parts, groups.labels), strict=True))
    values = [list(dict.fromkeys(column)) for column in columns]
    n_combinations = int(np.prod([len(known) for known in values], dtype=np.int64))
    if n_combinations > _MOST_COMBINATIONS:
        raise ValueError(
            f"The sensitive columns have {n_combinations} combinations; {_MOST_COMBINATIONS} can be exported."
        )
    index, *codes = [_code_of(graph, name, known) for name, known in zip(groups.columns, values, strict=True)]
    for code, known in zip(codes, values[1:], strict=True):  # beyond all if one of the values is unknown
        index = graph.add("Add", graph.add("Mul", index, np.int64(len(known))), code)
    table = np.full(n_combinations, len(groups), dtype=np.int64)
    where = np.ravel_multi_index(
        [[known.index(value) for value in column] for known, column in zip(values, columns, strict=True)],
        [len(known) for known in values],
    )
    table[where] = np.arange(len(groups))
    return graph.add("Gather", table, index)


def _parts(label: Any) -> tuple[Any, ...]:
    return label if isinstance(label, tuple) else (label,)


def _code_of(graph: Graph, name: str, known: list[Any]) -> str:
    text = all(isinstance(value, str) for value in known)
    if not text and not all(isinstance(value, (bool, int)) and abs(value) < 1 << 62 for value in known):
        raise ValueError(
            f"Groups of column {name!r} cannot be exported: ONNX identifies groups by text or by integers, and "
            "this column holds fractions, missing or mixed values. Write them as text, and fit again."
        )
    column = graph.input(name, "STRING" if text else "INT64", None)
    keys: dict[str, Any] = {"keys_strings": known} if text else {"keys_int64s": [int(value) for value in known]}
    unknown = 1 << 40  # far beyond any table, also when it is multiplied by the sizes of other columns
    return graph.add(
        "LabelEncoder", column, domain=ML_DOMAIN, values_int64s=list(range(len(known))), default_int64=unknown, **keys
    )


def add_linear(
    graph: Graph,
    features: str,
    coef: NDArray[Any],
    intercept: NDArray[Any],
    codes: str | None,
    *,
    logistic: bool = True,
) -> str:
    """Return the score of a linear model, or of that of each row's group, as a vector: a probability where logistic."""
    weights, shift = (np.asarray(one, dtype=np.float64) for one in (coef, intercept))
    scores = graph.add("Add", graph.add("MatMul", features, weights.T.copy()), shift)
    if codes is not None:
        column = graph.add("Unsqueeze", codes, np.array([1], dtype=np.int64))
        scores = graph.add("GatherElements", scores, column, axis=1)
    return as_vector(graph, graph.add("Sigmoid", scores) if logistic else scores)


def add_mixture(graph: Graph, first: str, second: str, amount: float) -> str:
    """Return (1 - amount) * first + amount * second."""
    if amount == 1.0:
        return second
    shares = (np.float64(1.0 - amount), np.float64(amount))
    return graph.add("Add", graph.add("Mul", first, shares[0]), graph.add("Mul", second, shares[1]))


def add_repair(
    graph: Graph, scores: str, codes: str, maps: Sequence[QuantileMap], amount: float, *, extrapolate: bool = False
) -> str:
    """Return each score moved by the map of its group: a binary search among the knots, then a line between two.

    With ``extrapolate``, scores beyond the knots are shifted as far as the score at the last one.
    """
    if extrapolate:
        low, high = (graph.add("Gather", np.array([one.knots[end] for one in maps]), codes) for end in (0, -1))
        inside = graph.add("Max", graph.add("Min", scores, high), low)
        moved = add_repair(graph, inside, codes, maps, amount)
        return graph.add("Add", moved, graph.add("Sub", scores, inside))
    # More than any map has, so that the last is infinite.
    width = 1 << max(carry.knots.size for carry in maps).bit_length()
    knots, images = np.full((len(maps), width), np.inf), np.empty((len(maps), width))
    for row, carry in enumerate(maps):
        knots[row, : carry.knots.size], images[row, : carry.knots.size] = carry.knots, carry.images
        images[row, carry.knots.size :] = carry.images[-1]
    knot_table, image_table = graph.constant(knots.ravel()), graph.constant(images.ravel())
    # An index beyond the last group is beyond the table.
    at = graph.add("Mul", codes, np.int64(width))
    step = width // 2
    while step:
        further = graph.add("Add", at, np.int64(step))
        passed = graph.add("LessOrEqual", graph.add("Gather", knot_table, further), scores)
        at = graph.add("Where", passed, further, at)
        step //= 2
    then = graph.add("Add", at, np.int64(1))
    low, high = (graph.add("Gather", knot_table, index) for index in (at, then))
    start, end = (graph.add("Gather", image_table, index) for index in (at, then))
    share = graph.add("Div", graph.add("Sub", scores, low), graph.add("Sub", high, low))
    share = graph.add("Max", share, np.float64(0.0))  # below the first knot
    moved = graph.add("Add", start, graph.add("Mul", share, graph.add("Sub", end, start)))
    return add_mixture(graph, scores, moved, amount)


def require_range(graph: Graph, scores: str, low: float, high: float) -> str:
    """Return the scores; one outside of the range, or no number, makes the runtime raise."""
    above = graph.add("GreaterOrEqual", scores, np.float64(low))
    fine = graph.add("And", above, graph.add("LessOrEqual", scores, np.float64(high)))
    zero = graph.add("Gather", np.array([0.0]), graph.cast(graph.add("Not", fine), "INT64"))
    return graph.add("Add", scores, zero)


def add_classes(graph: Graph, positive: str, classes: NDArray[Any]) -> None:
    """Declare the outputs of a classifier: ``label`` and ``probabilities``."""
    yes = graph.add("Unsqueeze", positive, np.array([1], dtype=np.int64))
    no = graph.add("Sub", np.float64(1.0), yes)
    graph.add("Concat", no, yes, axis=1, output="probabilities")
    index = graph.cast(graph.add("Greater", positive, np.float64(0.5)), "INT64")
    table, kind = _class_table(classes)
    graph.add("Gather", table, index, output="label")
    graph.output("label", kind, None)
    graph.output("probabilities", "DOUBLE", 2)


def _class_table(classes: NDArray[Any]) -> tuple[NDArray[Any], str]:
    kind = classes.dtype.kind
    if kind in "biu":
        return classes.astype(np.int64), "INT64"
    if kind == "f":
        return classes.astype(np.float64), "DOUBLE"
    if all(isinstance(label, str) for label in classes.tolist()):
        return classes.astype(object), "STRING"
    raise ValueError("The two classes cannot be exported: ONNX has numbers and text, and these labels are neither.")


def as_vector(graph: Graph, column: str) -> str:
    """Return a matrix of one column as a vector."""
    return graph.add("Reshape", column, np.array([-1], dtype=np.int64))


# Conversion of scikit-learn's estimators by skl2onnx, into a graph under construction.


def declare_features(graph: Graph, model: Any) -> Any:
    """Declare the inputs of a model: the columns of a table where it begins by selecting them, a matrix elsewhere."""
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
    """Add a transformer, a classifier or a regressor of scikit-learn, and return its output, as doubles."""
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
    return graph.cast(outputs[int(classifier)], "DOUBLE")


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
