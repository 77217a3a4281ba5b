"""Categories of columns that boosted trees were trained with as pandas categories."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["pandas_categories"]


def pandas_categories(model: Any, n_columns: int) -> dict[int, tuple[Any, ...]]:
    """Return the categories of the columns that a model of LightGBM or XGBoost takes as pandas categories.

    Parameters
    ----------
    model : object
        A fitted estimator; one of another library has none.
    n_columns : int
        Columns that it was fitted on.

    Returns
    -------
    dict of int to tuple
        By the position of the column.
    """
    library = type(model).__module__.partition(".")[0]
    if getattr(model, "n_features_in_", None) != n_columns:
        return {}
    if library == "lightgbm":
        return _lightgbm_categories(model.booster_)
    return _xgboost_categories(model.get_booster()) if library == "xgboost" else {}


def _lightgbm_categories(booster: Any) -> dict[int, tuple[Any, ...]]:
    categories = booster.pandas_categorical
    if not categories:
        return {}
    known = getattr(booster, "category_columns", None)  # of a model file
    if known:
        return {index: tuple(values) for index, values in zip(known, categories, strict=True)}
    infos = re.search(r"^feature_infos=(.*)$", booster.model_to_string(num_iteration=1), re.MULTILINE)
    described = infos.group(1).split(" ") if infos else []
    positions = [index for index, info in enumerate(described) if not info.startswith("[")]
    if len(positions) > len(categories):  # a column with one value is described by "none", whatever its type
        positions = [index for index in positions if described[index] != "none"]
    if len(positions) != len(categories):  # some have a single value, so that LightGBM does not tell
        return {}
    return {index: tuple(values) for index, values in zip(positions, categories, strict=True)}


def _xgboost_categories(booster: Any) -> dict[int, tuple[Any, ...]]:
    types = booster.feature_types or []
    if "c" not in types or not hasattr(booster, "get_categories"):  # XGBoost 3.1 stores them
        return {}
    columns = booster.get_categories(export_to_arrow=True).to_arrow()
    return {index: tuple(values.to_pylist()) for index, (_, values) in enumerate(columns) if values is not None}
