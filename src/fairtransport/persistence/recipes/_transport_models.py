"""Recipes of the classifiers and regressors by optimal transport, linear and boosted, and of models of raw tables."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from fairtransport.criteria import (
    ContinuousDistance,
    DemographicParity,
    DiscreteDistance,
    EqualizedOdds,
    EqualOpportunity,
)
from fairtransport.criteria.penalty import SCALES, Duals
from fairtransport.groups import GroupPolicy, Groups
from fairtransport.linear.online import OnlineMemory
from fairtransport.linear.settings import SgdSettings
from fairtransport.linear.sketches import POINTS, Sketches
from fairtransport.persistence.recipes import _checks as check
from fairtransport.persistence.recipes._registry import Recipe, ValueType, named_recipe, record, summarize_target
from fairtransport.persistence.trees import TreeClassifier, TreeRegressor
from fairtransport.repair import QuantileRepair
from fairtransport.strata import Strata
from fairtransport.tabular.column_plans import DATE_PATTERNS, ColumnPlan
from fairtransport.training.online import OnlineSettings
from fairtransport.training.responses import LOSSES, Y_COLUMN, BinaryResponse, RealResponse, Response
from fairtransport.training.weight_path import PATH_COLUMNS
from fairtransport.transport.fourier import FourierFeatures

_MOST_UPDATES, _MOST_ROWS = 1_000_000_000, 1_000_000  # of the stochastic solver, and of each update
_MOST_FEATURES = 100_000


def _is_consistent_classifier(model: Any) -> bool:
    """Return whether the parts of a classifier agree, and its maps are of probabilities."""
    spreads = [getattr(model, "spread_", np.zeros(0)), *getattr(model, "path_", {}).get("spread", ())]
    inside = all(not spread.size or (spread.min() >= 0.0 and spread.max() <= 1.0) for spread in spreads)
    return bool(inside and model.classes_.shape == (2,) and _is_consistent(model, BinaryResponse))


def _is_consistent(model: Any, response: type[Response]) -> bool:
    """Return whether weights, groups and columns of a model agree."""
    n_rows, n_columns, start = len(model.coef_), model.n_features_in_, model.initial_estimator_
    common, state = getattr(model, "common_coef_", None), getattr(model, "adjusting_", None)
    return bool(
        model.coef_.shape[1] == n_columns == len(getattr(model, "feature_names_in_", range(n_columns)))
        and model.intercept_.shape == (n_rows,)
        and n_rows in {1, len(model.groups_)}
        and (np.size(start.coef_), np.size(start.intercept_)) == (n_columns, 1)  # it predicts if amount is below 1
        and (n_rows == 1 if common is None else common.shape == (n_columns,))
        and (n_rows == 1 or hasattr(model, "common_intercept_"))
        and (state is None or (_is_memory_of(state, model) and state.loss is response.loss))
        and _is_consistent_path(model, response.loss_name)
    )


def _is_consistent_path(model: Any, loss_name: str) -> bool:
    """Return whether the models of a path have the columns of the model, and no more groups than it."""
    path = getattr(model, "path_", None)
    if path is None or not len(path["weight"]):
        return True
    if set(path) != {*PATH_COLUMNS, loss_name}:
        return False
    theta, spread = path["theta"], path["spread"]
    n_models = len(model.coef_)
    return bool(
        theta.ndim == 3
        and theta.shape[2] == model.n_features_in_ + 1
        and (theta.shape[1] == 2 if n_models == 1 else 2 < theta.shape[1] <= n_models + 1)
        and spread.ndim == 3
        and all(map(check.increasing_map, spread))
    )


def _is_memory_of(state: OnlineMemory, model: Any) -> bool:
    """Return whether the memory of a stream has the groups, strata and columns of the model."""
    n_groups, n_features = len(model.groups_), model.n_features_in_
    strata = getattr(model, "strata_", None)
    return bool(
        state.centre.shape == (len(model.coef_), n_features + 1)
        and state.sketches.means.shape == (len(state.blocks) * n_groups, n_features)
        and state.blocks[:, 1].max() < (0 if strata is None else len(strata))
    )


def _is_consistent_boosted(model: Any) -> bool:
    repair = model.repair_
    columns = {model.estimator_.n_features_in_, model.initial_estimator_.n_features_in_}
    return len(columns) == 1 and (repair is None or repair.groups_.labels == model.groups_.labels)


def _is_consistent_boosted_classifier(model: Any) -> bool:
    inside = model.spread_.min() >= 0.0 and model.spread_.max() <= 1.0
    return bool(inside and model.classes_.size == 2 and _is_consistent_boosted(model))


def _is_path(value: Any) -> bool:
    """Return whether these are columns of equal length, one of them the weights."""
    if not isinstance(value, dict) or not check.array(1)(value.get("weight")):
        return False
    return all(
        isinstance(name, str)
        and check.array(3 if len(column) and name in {"theta", "spread"} else 1)(column)
        and len(column) == len(value["weight"])
        for name, column in value.items()
    )


def _is_plan(plan: ColumnPlan) -> bool:
    """Return whether the parts of a column are those of its kind, each with a mean and a positive scale."""
    fitting = {"number": plan.parts == ("",), "date": "" not in plan.parts, "words": plan.parts == ()}
    return bool(
        plan.width
        and fitting[plan.kind]
        and len({*plan.parts}) == len(plan.parts)
        and len({*plan.words}) == len(plan.words)
        and bool(plan.words) == (plan.kind == "words")
        and (not plan.other or plan.kind == "words")
        and plan.centre.shape == plan.scale.shape == (len(plan.parts),)
        and (plan.scale > 0).all()
    )


def _is_consistent_encoder(encoder: Any) -> bool:
    names = [plan.name for plan in encoder.plans_]
    if hasattr(encoder, "feature_names_in_"):
        columns = encoder.feature_names_in_.tolist()
        named = set(names) <= set(columns) and len(columns) == encoder.n_features_in_
    else:  # a matrix: x0, x1, ...
        named = all(re.fullmatch(r"x\d{1,9}", name) and int(name[1:]) < encoder.n_features_in_ for name in names)
    return bool(
        names
        and named
        and len(set(names)) == len(names)
        and encoder.decimal in {".", ","}
        and encoder.sparse_output in {True, False}
    )


def _is_consistent_model(model: Any) -> bool:
    names = (model.label, *model.group_columns)
    if not all(isinstance(name, str) for name in names):
        return False
    if model.task == "regression":
        labelled = is_regressor(model.estimator_) and not hasattr(model, "classes_")
    else:
        words = getattr(model, "classes_", np.empty(0)).tolist()
        binary = hasattr(model.estimator_, "predict_proba") and np.size(getattr(model.estimator_, "classes_", ())) == 2
        labelled = binary and [*map(type, words)] == [str, str]
    width = sum(plan.width for plan in model.encoder_.plans_) if hasattr(model.encoder_, "plans_") else -1
    groups = getattr(getattr(model.estimator_, "repair_", model.estimator_), "groups_", None)
    fits = groups is None or tuple(groups.columns) == model.group_columns
    strata = model.known_strata
    ranges = (Y_COLUMN,) if model.task == "regression" and model.criterion == "equalized_odds" else ()
    fits &= strata is None or tuple(strata.columns) == (*ranges, *model.strata)
    fits &= {*model.numeric_strata_} <= {*model.strata} and {*model.strata}.isdisjoint(names)
    return bool(labelled and fits and model.estimator_.n_features_in_ == width)


def _are_duals(duals: Duals) -> bool:
    shape = (len(duals.groups), len(duals.features))
    return duals.group_weights.shape == duals.target_weights.shape == shape and duals.unit > 0.0


def _are_sketches(sketches: Sketches) -> bool:
    """Return whether the arrays have the shapes of empty sketches, and masses and spreads that there can be."""
    n_groups, means = len(sketches.masses), sketches.means
    if not check.array(2)(means) or len(means) != n_groups:  # before arrays of the same shape are allocated
        return False
    for name, empty in vars(Sketches.empty(n_groups, means.shape[1])).items():
        array = getattr(sketches, name)
        if not check.array(1, 2)(array) or array.shape != empty.shape:
            return False
    sums = (sketches.masses, sketches.recent, sketches.weights, sketches.variances)
    positive = all((array >= 0.0).all() for array in sums) and (sketches.stretches > 0.0).all()
    return bool(positive and sketches.masses.any(axis=1).all())


def _is_memory(memory: OnlineMemory) -> bool:
    """Return whether a stream's memory says where groups are compared, in arrays that agree in shape."""
    if memory.blocks.shape[1:] != (3,) or not len(memory.blocks):
        return False
    labels, strata, weights = memory.blocks.T
    if not np.isin(labels, (-1, 0, 1)).all() or (strata < -1).any() or (strata % 1).any() or not (weights > 0).all():
        return False
    n_columns = memory.sketches.means.shape[1]
    return bool(
        memory.origin.shape == memory.unit.shape == memory.reach.shape == (n_columns,)
        and memory.scale.shape == (n_columns + 1,)
        and memory.matrix.shape in {(0, 0), (n_columns + 1, n_columns + 1)}
        and memory.target.shape == (len(memory.blocks), POINTS)
        and (memory.unit != 0).all()
    )


VALUE_TYPES = (
    ValueType("groups", Groups, lambda one: {"spec": one.to_spec()}, lambda parts: Groups.from_spec(parts["spec"])),
    ValueType("strata", Strata, lambda one: {"spec": one.to_spec()}, lambda parts: Strata.from_spec(parts["spec"])),
    record("group_policy", GroupPolicy),
    *(record(one.name, one) for one in (DemographicParity, EqualizedOdds, EqualOpportunity)),
    record("online", OnlineSettings),
    record("discrete", DiscreteDistance),
    record("continuous", ContinuousDistance, n_fourier_features=check.count_up_to(_MOST_FEATURES)),
    record(
        "sgd",
        SgdSettings,
        n_updates=check.count_up_to(_MOST_UPDATES),
        batch_size=check.or_none(check.count_up_to(_MOST_ROWS)),
        random_state=check.seed,
    ),
    record(
        "fourier",
        FourierFeatures,
        lambda features: features.frequency.shape == features.phase.shape,
        frequency=check.array(1),
        phase=check.array(1),
    ),
    record(
        "duals",
        Duals,
        _are_duals,
        features=check.instance_of(FourierFeatures),
        group_weights=check.array(2),
        target_weights=check.array(2),
        groups=check.instance_of(Groups),
        center=check.finite,
        unit=check.finite,
    ),
    record("sketches", Sketches, _are_sketches),
    record(
        "adjustment",
        OnlineMemory,
        _is_memory,
        loss_name=check.one_of(*LOSSES),
        sketches=check.instance_of(Sketches),
        blocks=check.array(2),
        **dict.fromkeys(("n_batches", "n_rows", "n_skipped"), check.count),
        **dict.fromkeys(("parity", "anchor", "curvature", "size", "trace"), check.weight),
        **dict.fromkeys(("origin", "unit", "reach", "scale", "matrix", "target", "centre"), check.array(1, 2)),
    ),
    record(
        "column",
        ColumnPlan,
        _is_plan,
        name=check.text,
        kind=check.one_of("number", "date", "words"),
        pattern=check.one_of(*DATE_PATTERNS),
        parts=check.tuple_of(check.one_of("", "days", "month", "weekday", "hour")),
        words=check.tuple_of(check.text),
        centre=check.array(1),
        scale=check.array(1),
        other=check.boolean,
        missing=check.boolean,
    ),
)

_CHECKS = {
    **check.SHARED,
    **check.by_name(
        {
            check.amount: "tol y_scale_",
            check.any_of(check.amount, check.one_of("auto")): "parity_weight",
            check.any_of(check.text, check.names): "sensitive_features",
            check.any_of(check.word, check.instance_of((ContinuousDistance, DiscreteDistance))): "distance",
            check.any_of(check.word, check.instance_of(SgdSettings)): "solver",
            check.array(1): "common_coef_ intercept_ target_",
            check.array(2): "coef_",
            check.boolean: "aware group_specific smooth_groups sparse_output",
            check.class_named("TableEncoder"): "encoder_",
            check.count: "max_categories min_frequency",
            check.count_up_to(1_000_000_000): "max_iter",
            check.dict_of(check.array(1, finite=False)): "history_",
            check.dict_of(check.count): "set_aside_ unreadable_",
            check.dict_of(check.text): "left_out_",
            check.dict_of(check.tuple_of(check.finite, 2)): "before_after_",
            check.finite: "common_intercept_ information_kept_ y_center_ y_mean_ y_std_",
            check.having("coef_", "intercept_"): "initial_estimator_",
            check.increasing_map: "spread_",
            check.instance_of(Duals): "duals_",
            check.instance_of(OnlineMemory): "adjusting_",
            check.instance_of(float): "unit_",
            check.list_of(check.instance_of(ColumnPlan)): "plans_",
            check.list_of(check.text): "leaking_columns_ numeric_strata_",
            check.names: "categorical drop strata",
            check.number_in(0.0, np.inf): "parity_weight_",
            check.one_of(*SCALES): "scale",
            check.one_of("squared_error", "absolute_error", "poisson", "tweedie"): "loss_",
            check.one_of("trained", "initial"): "spread",
            check.or_none(check.count, check.one_of("auto")): "n_iter_no_change",
            check.or_none(check.share): "validation_fraction",
            check.or_none(lambda value: isinstance(value, QuantileRepair) and hasattr(value, "maps_")): "repair_",
            check.plain: "pos_label",
            check.text: "label outcome_",
            check.word: "decimal",
            _is_path: "path_",
        }
    ),
}
_recipe = partial(named_recipe, _CHECKS)
_OPTIONAL = "before_after_ group_sizes_ history_ information_kept_ n_iter_ outcome_ parity_weight_ path_"
_PARAMS = "amount criterion distance estimator groups max_disparity parity_weight scale spread target"
_ESTIMATOR = {"estimator": check.or_none(check.estimator)}


def _linear(kind: str, fitted: str, is_consistent: check.Check) -> Recipe:
    return _recipe(
        f"fairtransport.Transport{kind}",
        f"{fitted} coef_ groups_ initial_estimator_ intercept_ n_features_in_",
        f"{_OPTIONAL} adjusting_ common_coef_ common_intercept_ duals_ feature_names_in_ spread_ strata_ target_",
        f"{_PARAMS} group_specific max_iter online solver tol",
        other=_ESTIMATOR,
        not_stored=("verbose",),
        is_consistent=is_consistent,
        summarize=summarize_target,
    )


def _boosted(kind: str, trees: type, fitted: str, is_consistent: check.Check) -> Recipe:
    def is_fitted(value: Any) -> bool:
        return isinstance(value, trees) and hasattr(value, "trees_")

    of_trees = {"estimator_": is_fitted, "initial_estimator_": is_fitted, "path_": check.dict_of(check.array(1))}
    return _recipe(
        f"fairtransport.boosting.TransportBoosting{kind}",
        f"{fitted} estimator_ groups_ initial_estimator_ repair_ spread_ strata_",
        f"{_OPTIONAL} unit_",
        f"{_PARAMS} n_iter_no_change random_state repair smooth_groups validation_fraction",
        other={**_ESTIMATOR, **of_trees},
        is_consistent=is_consistent,
        summarize=summarize_target,
    )


RECIPES = (
    _linear("Classifier", "classes_", _is_consistent_classifier),
    _linear("Regressor", "y_mean_ y_std_", lambda one: one.y_std_ > 0.0 and _is_consistent(one, RealResponse)),
    _boosted("Classifier", TreeClassifier, "classes_", _is_consistent_boosted_classifier),
    _boosted("Regressor", TreeRegressor, "loss_ y_center_ y_scale_", _is_consistent_boosted),
    _recipe(
        "fairtransport.tabular.TableEncoder",
        "n_features_in_ plans_",
        "feature_names_in_ left_out_ unreadable_",
        "categorical decimal max_categories min_frequency sparse_output",
        is_consistent=_is_consistent_encoder,
    ),
    _recipe(
        "fairtransport.tabular.TableModel",
        "encoder_ estimator_ numeric_strata_",
        "chosen_ classes_ leaking_columns_ set_aside_",
        "aware categorical decimal drop estimator groups label max_disparity pos_label sensitive_features strata",
        other={"chosen_": check.word, "estimator": check.any_of(check.estimator, check.dict_of(check.estimator))},
        not_stored=("verbose",),
        is_consistent=_is_consistent_model,
    ),
)
