"""Models as ONNX graphs, for runtimes without Python (extra: ``onnx``)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from fairtransport._extras import load_extra
from fairtransport._sklearn import last_step, needs_groups
from fairtransport.boosting import TransportBoostingClassifier, TransportBoostingRegressor
from fairtransport.groups import Groups
from fairtransport.linear import TransportClassifier, TransportRegressor
from fairtransport.persistence._files import PEOPLE_PER_POINT, pack_model, unpack_model
from fairtransport.persistence.trees import (
    CATEGORIES,
    MISSING_LEFT,
    ZERO_IS_MISSING,
    InvalidTreesError,
    Trees,
    is_tree_model,
    read_trees,
)
from fairtransport.repair import (
    BlindRepairClassifier,
    BlindRepairRegressor,
    QuantileRepair,
    QuantileRepairClassifier,
    QuantileRepairRegressor,
)
from fairtransport.tabular import RowScorer, TableModel
from fairtransport.tabular.column_plans import MAX_DEVIATIONS, MISSING, ColumnPlan
from fairtransport.tabular.input_columns import feature_columns, feature_names
from fairtransport.transport.line import QuantileMap

__all__ = ["to_onnx"]

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
        self.inputs.append(self._value(name, kind, width))
        return name

    def output(self, name: str, kind: str, width: int | None) -> None:
        """Declare an output."""
        self.outputs.append(self._value(name, kind, width))

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

    def _value(self, name: str, kind: str, width: int | None) -> Any:
        shape = [None] if width is None else [None, width]
        return self._onnx.helper.make_tensor_value_info(name, self.number_type(kind), shape)

    def _new_name(self, what: str) -> str:
        self._count += 1
        return f"{self._prefix}{what}_{self._count}"


# What models are made of, as nodes: the code of a group, a linear score, a repaired score, and what comes out.

_MOST_COMBINATIONS = 1 << 20


def add_group_codes(graph: Graph, groups: Groups) -> str:
    """Declare the sensitive columns as inputs, and return each row's group; one not seen in ``fit`` is beyond all."""
    labels = [label if isinstance(label, tuple) else (label,) for label in groups.labels]
    columns: list[tuple[Any, ...]] = list(zip(*labels, strict=True))
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
    """Return each score moved by the map of its group: a binary search among the knots, then a line between two."""
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
    kinds = load_extra("skl2onnx.common.data_types")
    if set(inputs) == {"X"}:
        types = [("X", kinds.DoubleTensorType([None, int(part.n_features_in_)]))]
    else:
        texts = {name: graph.is_text(given) for name, given in inputs.items()}
        types = [
            (name, (kinds.StringTensorType if is_text else kinds.DoubleTensorType)([None, 1]))
            for name, is_text in texts.items()
        ]
    try:
        made = skl2onnx.convert_sklearn(part, initial_types=types, options=options, target_opset=OPSETS)
    except (RuntimeError, AttributeError, TypeError, ValueError) as error:  # its own errors are RuntimeErrors
        raise TypeError(
            f"skl2onnx cannot convert this {type(part).__name__}, or one of its steps ({type(error).__name__}). Keep "
            "the model's own format, and export the QuantileRepair of its scores."
        ) from None
    outputs = graph.inline(made, inputs)
    return graph.cast(outputs[int(classifier)], "DOUBLE")


# Trees of any library as nodes, with thresholds in the precision of their library.

_MOST_PARTS = 64


def add_margins(graph: Graph, model: Any, features: str) -> str:
    """Add the trees of a fitted estimator, and return their sum for each row, of a few at a time: ONNX rounds sums."""
    try:
        trees = read_trees(model).trees_
    except InvalidTreesError as error:
        raise TypeError(f"These trees cannot be exported to ONNX: {error}.") from None
    if (trees.flags & CATEGORIES).any():
        raise TypeError("Splits of categories cannot be exported to ONNX; encode the columns as numbers first.")
    if (trees.flags & ZERO_IS_MISSING).any() or not np.isnan(trees.missing):
        raise TypeError("A model for which a number is a missing value cannot be exported to ONNX.")
    if trees.is_single:
        features = graph.cast(graph.cast(features, "FLOAT"), "DOUBLE")
    total = graph.constant(np.float64(trees.base[-1]))
    size = -(-trees.n_trees // _MOST_PARTS)
    for first in range(0, trees.n_trees, size):
        chosen = range(first, min(first + size, trees.n_trees))
        total = graph.add("Add", total, _add_part(graph, features, trees, chosen))
    return graph.add("Div", total, np.float64(trees.n_trees)) if trees.link == "mean" else total


def _add_part(graph: Graph, features: str, trees: Trees, chosen: range) -> str:
    make = load_extra("onnx").numpy_helper.from_array
    nodes = slice(*trees.starts[[chosen.start, chosen.stop]].tolist())
    sizes = np.diff(trees.starts[chosen.start : chosen.stop + 1])
    numbers = np.concatenate([np.arange(size) for size in sizes])
    tree, left, right = np.repeat(chosen, sizes), trees.left[nodes], trees.right[nodes]
    is_leaf = left < 0
    mode = "BRANCH_LT" if trees.library == "xgboost" else "BRANCH_LEQ"
    weights = trees.values[right[is_leaf], -1].astype(np.float64)
    options = {
        "nodes_treeids": tree.tolist(),
        "nodes_nodeids": numbers.tolist(),
        "nodes_featureids": trees.feature[nodes].tolist(),
        "nodes_modes": ["LEAF" if leaf else mode for leaf in is_leaf.tolist()],
        "nodes_values_as_tensor": make(np.ascontiguousarray(trees.threshold[nodes]), "nodes_values"),
        "nodes_truenodeids": np.where(is_leaf, 0, left).tolist(),
        "nodes_falsenodeids": np.where(is_leaf, 0, right).tolist(),
        "nodes_missing_value_tracks_true": (trees.flags[nodes] & MISSING_LEFT).astype(np.int64).tolist(),
        "target_treeids": tree[is_leaf].tolist(),
        "target_nodeids": numbers[is_leaf].tolist(),
        "target_ids": [0] * int(is_leaf.sum()),
        "target_weights_as_tensor": make(weights, "target_weights"),
        "n_targets": 1,
        "aggregate_function": "SUM",
        "post_transform": "NONE",
    }
    total = graph.add("TreeEnsembleRegressor", features, domain=ML_DOMAIN, **options)
    return graph.cast(as_vector(graph, total), "DOUBLE")


# Fitted models as nodes: from features, or from the columns of a table, to scores.

_LINEAR = (TransportClassifier, TransportRegressor)
_REPAIRED = (QuantileRepairClassifier, QuantileRepairRegressor)
_BOOSTING = (TransportBoostingClassifier, TransportBoostingRegressor)
_BLIND = (BlindRepairClassifier, BlindRepairRegressor)


def add_scores(graph: Graph, model: Any, features: Any, people_per_point: int) -> str:
    """Add a model and return its scores, probabilities or predictions, as a vector of doubles."""
    if isinstance(model, Pipeline):
        steps = [(name, step) for name, step in model.steps[:-1] if step not in (None, "passthrough")]
        if steps:
            features = add_converted(graph, Pipeline(steps), features, classifier=False)
        return add_scores(graph, model[-1], features, people_per_point)
    if isinstance(model, _LINEAR):
        return _add_transport(graph, model, features)
    if isinstance(model, _REPAIRED):
        scores = add_scores(graph, model.estimator_, features, people_per_point)
        return _add_repaired(graph, scores, summed_up(model.repair_, people_per_point))
    if isinstance(model, _BOOSTING):
        return _add_boosting(graph, model, features, people_per_point)
    return _add_foreign(graph, model, features)


def _add_foreign(graph: Graph, model: Any, features: Any) -> str:
    """Add a model of another library."""
    if isinstance(model, _BLIND):
        raise TypeError(
            f"A {type(model).__name__} cannot be exported to ONNX: its map depends on the probabilities of all groups. "
            "Save it with fairtransport.save; or export a transport estimator, which needs no group either."
        )
    if is_tree_model(model):
        margins = add_margins(graph, model, features)
        link = {"logistic": "Sigmoid", "exp": "Exp"}.get(read_trees(model).trees_.link)
        return margins if link is None else graph.add(link, margins)
    if is_regressor(model):
        return as_vector(graph, add_converted(graph, model, features, classifier=False))
    if not hasattr(model, "predict_proba"):
        raise TypeError(
            f"A {type(model).__name__} cannot be exported by to_onnx: it has neither probabilities of two classes nor "
            "predictions of numbers."
        )
    output = add_converted(graph, model, features, classifier=True)
    return graph.add("Gather", output, np.int64(1), axis=1)


def _require_trained_spread(model: Any) -> None:
    if model.spread != "trained":
        raise ValueError("A model with spread='initial' cannot be exported; set spread='trained', which keeps ranks.")


def _add_transport(graph: Graph, model: Any, features: str) -> str:
    _require_trained_spread(model)
    codes = add_group_codes(graph, model.groups_) if needs_groups(model) else None
    logistic = not is_regressor(model)
    moved = add_linear(graph, features, model.coef_, model.intercept_, codes, logistic=logistic)
    if model.amount == 1.0:
        return moved
    start = model.initial_estimator_
    weights = np.reshape(start.coef_, (1, -1)), np.ravel(start.intercept_)[:1]
    initial = add_linear(graph, features, *weights, None, logistic=logistic)
    return add_mixture(graph, initial, moved, float(model.amount))


def _add_boosting(graph: Graph, model: Any, features: str, people_per_point: int) -> str:
    _require_trained_spread(model)
    scores = _add_link(graph, model, add_margins(graph, model.estimator_, features))
    if model.repair_ is not None:
        scores = _add_repaired(graph, scores, summed_up(model.repair_, people_per_point))
    if model.amount == 1.0:
        return scores
    plain = _add_link(graph, model, add_margins(graph, model.initial_estimator_, features))
    return add_mixture(graph, plain, scores, float(model.amount))


def _add_link(graph: Graph, model: Any, margins: str) -> str:
    if not is_regressor(model):
        return graph.add("Sigmoid", margins)
    moved = graph.add("Exp", margins) if model.loss_ in {"poisson", "tweedie"} else margins
    scaled = graph.add("Mul", moved, np.float64(model.y_scale_))
    return graph.add("Add", scaled, np.float64(model.y_center_))


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
    return unpack_model(pack_model(repair, people_per_point)[0])


# The encoder of a `TableModel` as nodes: raw columns in, the matrix of the model's features out.


def _add_column(graph: Graph, plan: ColumnPlan) -> str:
    if plan.kind == "words":
        return _add_words(graph, plan)
    if plan.kind == "date":
        raise ValueError(
            f"Column {plan.name!r} is a date, which ONNX does not know. Give the model numbers instead, such as the "
            "days since a date, or drop the column."
        )
    column = graph.input(plan.name, "DOUBLE", 1)
    scaled = graph.add("Div", graph.add("Sub", column, plan.centre), plan.scale)
    missing = graph.add("IsNaN", column)
    filled = graph.add("Where", missing, np.float64(0.0), scaled)
    clipped = graph.add("Clip", filled, np.float64(-MAX_DEVIATIONS), np.float64(MAX_DEVIATIONS))
    return graph.add("Concat", clipped, graph.cast(missing, "DOUBLE"), axis=1) if plan.missing else clipped


def _add_words(graph: Graph, plan: ColumnPlan) -> str:
    """One row of a table for each known text, for any other, and for none."""
    n_words = len(plan.words)
    other, missing = n_words, n_words + 1
    rows = np.zeros((n_words + 2, plan.width))
    rows[:n_words, :n_words] = np.eye(n_words)
    if plan.other:
        rows[[other, missing], n_words] = 1.0
    if plan.missing:
        rows[missing] = 0.0
        rows[missing, -1] = 1.0
    spellings = sorted({way for text in MISSING for way in (text, text.upper(), text.capitalize(), text.title())})
    keys = [*plan.words, *(text for text in spellings if text not in plan.words)]
    values = [*range(n_words), *[missing] * (len(keys) - n_words)]
    column = graph.input(plan.name, "STRING", 1)
    codes = graph.add(
        "LabelEncoder", column, domain=ML_DOMAIN, keys_strings=keys, values_int64s=values, default_int64=other
    )
    return graph.add("Gather", rows, as_vector(graph, codes), axis=0)


def to_onnx(model: Any, *, people_per_point: int = PEOPLE_PER_POINT) -> Any:
    """Return a fitted model as an ONNX graph, for runtimes without Python.

    Parameters
    ----------
    model : estimator
        `TransportClassifier`, `TransportRegressor`, `QuantileRepair`,
        `QuantileRepairClassifier` and `QuantileRepairRegressor` around any model that can be exported, the boosted
        trees of `fairtransport.boosting`, LightGBM, XGBoost and scikit-learn, estimators that skl2onnx converts, a
        `Pipeline` that ends in one of these, and `fairtransport.tabular.TableModel`.
    people_per_point : int, default=5
        As in `fairtransport.save`: the points of a repair's maps stand for at least so many training rows each.

    Returns
    -------
    onnx.ModelProto
        ``onnx.save(made, "model.onnx")`` writes it. Inputs: ``X``, doubles, of shape (n, n_features), in the order of
        ``fit``; of a `TableModel` and a model that begins with a `ColumnTransformer`, each column of the table under
        its name, text or doubles of shape (n, 1); of a `QuantileRepair` ``scores``, of shape (n,). Where the group is
        needed, each sensitive column under its name, of shape (n,): text, or int64 of integers and booleans. Outputs:
        ``label`` and ``probabilities``, ``prediction`` of a regressor, or ``repaired``.

    Raises
    ------
    ValueError, TypeError
        For what cannot be exported: blind repairs, splits of categories, dates, groups of fractions or missing values,
        parts that skl2onnx does not know.

    Notes
    -----
    All is computed in doubles, so scores agree with ours to rounding (1e-12 in the tests), with two exceptions: the
    sum of boosted trees is a float of 32 bits (1e-6 in the tests), and so is much of what skl2onnx converts. Texts of a
    `TableModel` are compared as they are: pass them without blanks around them, and missing ones empty. A group that
    was not seen in ``fit``, a score outside the range of a repair and a score that is NaN make the runtime raise an
    error.

    The graph reveals as much about people as a model file (docs/model_files.md). The groups' labels are in it.

    Examples
    --------
    >>> import numpy as np, onnxruntime, fairtransport as ft
    >>> scores, sex = np.linspace(0, 1, 100), np.repeat(["F", "M"], 50)
    >>> repair = ft.QuantileRepair().fit(scores, sensitive_features=sex)
    >>> session = onnxruntime.InferenceSession(to_onnx(repair).SerializeToString())
    >>> session.run(None, {"scores": np.array([0.25]), "sensitive_feature_0": np.array(["F"])})[0].round(3)
    array([0.503])
    """
    load_extra("onnx")
    if isinstance(model, RowScorer):
        model = model.estimator_
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise ValueError(f"This {type(model).__name__} is not fitted; fit it before exporting it.") from None
    graph = Graph()
    if isinstance(model, QuantileRepair):
        repair = summed_up(model, people_per_point)
        largest = float(np.finfo(np.float64).max)
        ends = (-largest, largest) if repair.extrapolates else repair.range_
        checked = require_range(graph, graph.input("scores", "DOUBLE", None), *ends)
        graph.output(graph.add("Identity", _add_repaired(graph, checked, repair), output="repaired"), "DOUBLE", None)
        return _finished(graph, repair.groups_)
    if isinstance(model, TableModel):
        inner, classes = model.estimator_, getattr(model, "classes_", None)
        features: Any = graph.add("Concat", *[_add_column(graph, plan) for plan in model.encoder_.plans_], axis=1)
    else:
        inner, features = model, declare_features(graph, model)
        classes = None if is_regressor(model) else np.asarray(getattr(model, "classes_", ()))
    if classes is not None and classes.size not in {0, 2}:
        raise TypeError(f"Scores are those of two classes; this {type(model).__name__} has {classes.size}.")
    scores = add_scores(graph, inner, features, people_per_point)
    if classes is None:
        graph.output(graph.add("Identity", scores, output="prediction"), "DOUBLE", None)
    else:
        add_classes(graph, scores, classes)
    return _finished(graph, _groups_of(inner) if needs_groups(inner) else None)


def _groups_of(model: Any) -> Groups | None:
    last = last_step(model)[1]
    repair = vars(last).get("repair_")
    return getattr(last if repair is None else repair, "groups_", None)


def _finished(graph: Graph, groups: Groups | None) -> Any:
    made = graph.model("fairtransport")
    metadata = {"fairtransport.version": str(__import__("fairtransport").__version__)}  # not a circular import
    if groups is not None:
        metadata["fairtransport.groups"] = json.dumps(groups.to_spec())
    for key, value in metadata.items():
        entry = made.metadata_props.add()
        entry.key, entry.value = key, value
    load_extra("onnx.checker").check_model(made)
    return made
