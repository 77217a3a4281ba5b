"""`to_onnx`: a fitted model as one ONNX graph."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from fairtransport._extras import load_extra
from fairtransport._sklearn.estimator_calls import last_step
from fairtransport._sklearn.group_awareness import needs_groups
from fairtransport.persistence._files import PEOPLE_PER_POINT
from fairtransport.persistence.onnx._conversion import declare_features
from fairtransport.persistence.onnx._graph import Graph
from fairtransport.persistence.onnx._models import add_scores, summed_up
from fairtransport.persistence.onnx._operators import add_classes, add_group_codes, add_repair, require_range
from fairtransport.persistence.onnx._table_encoder import add_encoder
from fairtransport.repair import QuantileRepair
from fairtransport.tabular import RowScorer, TableModel

if TYPE_CHECKING:
    from fairtransport.groups import Groups

__all__ = ["to_onnx"]


def to_onnx(model: Any, *, people_per_point: int = PEOPLE_PER_POINT) -> Any:
    """Return a fitted model as an ONNX graph, for runtimes without Python.

    Parameters
    ----------
    model : estimator
        `ContinuousTransportClassifier`, `DiscreteTransportClassifier`, their regressors, `QuantileRepair`,
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
    >>> session = onnxruntime.InferenceSession(ft.to_onnx(repair).SerializeToString())
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
        scores = graph.input("scores", "DOUBLE", None)
        largest = float(np.finfo(np.float64).max)
        ends = (-largest, largest) if repair.extrapolates else repair.range_
        codes = add_group_codes(graph, repair.groups_)
        checked = require_range(graph, scores, *ends)
        options = {"extrapolate": repair.extrapolates}
        repaired = add_repair(graph, checked, codes, repair.maps_, float(repair.amount), **options)
        graph.output(graph.add("Identity", repaired, output="repaired"), "DOUBLE", None)
        return _finished(graph, repair.groups_)
    if isinstance(model, TableModel):
        inner, features, classes = (
            model.estimator_,
            add_encoder(graph, model.encoder_),
            getattr(model, "classes_", None),
        )
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
