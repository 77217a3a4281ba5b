"""`to_onnx`: a fitted model as one ONNX graph."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from fairtransport._extras import load_extra
from fairtransport._sklearn import last_step, needs_groups
from fairtransport.boosting import TransportBoostingClassifier, TransportBoostingRegressor
from fairtransport.linear import TransportClassifier, TransportRegressor
from fairtransport.persistence._files import PEOPLE_PER_POINT, _model_of, pack_model
from fairtransport.persistence.onnx._graph import (
    ML_DOMAIN,
    Graph,
    add_classes,
    add_converted,
    add_group_codes,
    add_linear,
    add_mixture,
    add_repair,
    as_vector,
    declare_features,
    require_range,
)
from fairtransport.persistence.recipes._trees import is_tree_model, read_trees
from fairtransport.persistence.trees import CATEGORIES, MISSING_LEFT, ZERO_IS_MISSING, InvalidTreesError
from fairtransport.repair import (
    BlindRepairClassifier,
    BlindRepairRegressor,
    QuantileRepair,
    QuantileRepairClassifier,
    QuantileRepairRegressor,
)
from fairtransport.storage import unpack_container
from fairtransport.tabular import RowScorer, TableModel
from fairtransport.tabular.column_plans import MAX_DEVIATIONS, MISSING

if TYPE_CHECKING:
    from fairtransport.groups import Groups
    from fairtransport.persistence.trees import Trees
    from fairtransport.tabular.column_plans import ColumnPlan

# Trees of any library as nodes, with thresholds in the precision of their library.

_MOST_PARTS = 64


def add_margins(graph: Graph, model: Any, features: str) -> str:
    """Add the trees of a fitted estimator, and return their sum for each row: a logit, or a prediction.

    It is the sum of a few at a time, because ONNX rounds each sum to a float of 32 bits. Comparisons are made in the
    precision of the library.
    """
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
    return _model_of(unpack_container(pack_model(repair, people_per_point)[0]))


# The encoder of a `TableModel` as nodes: raw columns in, the matrix of the model's features out.


def _add_column(graph: Graph, plan: ColumnPlan) -> str:
    if plan.kind == "date":
        raise ValueError(
            f"Column {plan.name!r} is a date, which ONNX does not know. Give the model numbers instead, such as the "
            "days since a date, or drop the column."
        )
    return _add_words(graph, plan) if plan.kind == "words" else _add_number(graph, plan)


def _add_number(graph: Graph, plan: ColumnPlan) -> str:
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
        ``fit``; for a `TableModel` and for a model that begins with a `ColumnTransformer`, one of shape (n, 1) for each
        column of the table, under its name, of text or of doubles; for a `QuantileRepair` ``scores``, doubles of shape
        (n,). Where the
        group is needed, one more for each sensitive column, under its name, of shape (n,): text if the column was
        text in ``fit``, int64 if it had integers or booleans. Outputs: ``label`` and ``probabilities``, ``prediction``
        of a regressor, or ``repaired``.

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

    What the graph tells about people is what a model file tells (docs/model_files.md). The groups' labels are in it.

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
    groups: Groups | None = getattr(last if repair is None else repair, "groups_", None)
    return groups


def _finished(graph: Graph, groups: Groups | None) -> Any:
    made = graph.model("fairtransport")
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
