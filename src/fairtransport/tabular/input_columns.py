"""Columns that a fitted model needs of a table, and what they contain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from fairtransport.tabular.tree_categories import pandas_categories

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["InputColumn", "feature_columns", "feature_names"]

_HISTOGRAM_TREES = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)


@dataclass(frozen=True)
class InputColumn:
    """A column that a model needs of each row.

    Parameters
    ----------
    name : str
    kind : {"number", "text", "date"}
    categories : tuple, optional
        The values that the model knows, where it knows them: of a column of categories or of groups.
    allows_missing : bool, default=True
        Whether a row without a value can be scored.
    allows_unknown : bool, default=True
        Whether a row with a category that the model does not know can be scored.
    is_category : bool, default=False
        Whether the model takes a column of pandas categories.
    """

    name: str
    kind: str = "number"
    categories: tuple[Any, ...] | None = None
    allows_missing: bool = True
    allows_unknown: bool = True
    is_category: bool = False


class _Branch(NamedTuple):
    """Columns and the steps that they go through together."""

    names: Sequence[str]
    steps: tuple[Any, ...]


def feature_names(model: Any) -> list[str] | None:
    """Return the names of a fitted model's features; None if it was fitted without names."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [*map(str, names)]


def feature_columns(model: Any, names: Sequence[str]) -> list[InputColumn]:
    """Return the columns of a model's features that it uses, in their order.

    Parameters
    ----------
    model : estimator
        Fitted.
    names : sequence of str
        Names of all its features.

    Returns
    -------
    list of InputColumn
        A `ColumnTransformer` needs no columns that it drops. Columns are numbers unless an encoder, an imputer or a
        tree says otherwise.
    """
    known: dict[str, InputColumn] = {}
    for branch in _branches(model, names, ()):
        for index, name in enumerate(branch.names):
            column = _describe(branch, index)
            if name in known:
                column = _merge(known[name], column)
            known[name] = column
    return [known[name] for name in names if name in known]


def _branches(model: Any, names: Sequence[str], after: tuple[Any, ...]) -> Iterator[_Branch]:
    """Yield the columns that go through the same steps, and these; ``after`` are the steps behind the model."""
    if isinstance(model, str) or model is None:
        if model != "drop":
            yield _Branch(names, after)
    elif isinstance(model, Pipeline):
        steps = [step for _, step in model.steps if step not in (None, "passthrough")]
        yield from _branches(steps[0] if steps else None, names, (*steps[1:], *after))
    else:
        parts = _parts(model, names)
        for part, chosen in parts:
            yield from _branches(part, chosen, after)
        if not parts:
            yield _Branch(names, (model, *after))


def _parts(model: Any, names: Sequence[str]) -> list[tuple[Any, Sequence[str]]]:
    """Return the models and transformers side by side in a model, each with its columns; none for a simple one."""
    if isinstance(model, ColumnTransformer):
        positions = model._transformer_to_input_indices  # noqa: SLF001 - columns may be names, masks or slices
        return [(step, [names[index] for index in positions.get(name, ())]) for name, step, _ in model.transformers_]
    if isinstance(model, FeatureUnion):
        return [(step, names) for _, step in model.transformer_list]
    inner = [vars(model).get(name) for name in ("estimator_", "group_estimator_")]
    return [(one, names) for one in inner if hasattr(one, "get_params")]


def _describe(branch: _Branch, index: int) -> InputColumn:
    column = InputColumn(branch.names[index])
    for step in branch.steps:
        if _is_imputer(step):
            statistics = getattr(step, "statistics_", None)
            if statistics is not None and statistics.dtype.kind == "O" and index < statistics.size:
                is_text = isinstance(statistics[index], str)
                column = replace(column, kind="text" if is_text else column.kind)
            continue
        categories = _categories(step, index, len(branch.names))
        if categories is not None:
            return _with_categories(column, categories, step, imputed=_is_imputed(branch.steps))
    return replace(column, allows_missing=_tolerates_missing(branch.steps))


def _categories(step: Any, index: int, n_columns: int) -> Any:
    """Return the categories of a column that a step encodes; None where there are none."""
    if isinstance(step, _HISTOGRAM_TREES):
        encoder: Any = getattr(step, "_preprocessor", None)
        if step.is_categorical_ is None or encoder is None or step.n_features_in_ != n_columns:
            return None
        chosen = [*encoder._transformer_to_input_indices["encoder"]]  # noqa: SLF001 - of scikit-learn
        known = encoder.named_transformers_["encoder"].categories_
        return known[chosen.index(index)] if index in chosen else None
    categories = getattr(step, "categories_", None)
    if isinstance(categories, list) and len(categories) == n_columns:
        return categories[index]
    return pandas_categories(step, n_columns).get(index)


def _with_categories(column: InputColumn, categories: Any, step: Any, *, imputed: bool) -> InputColumn:
    values = tuple(categories.tolist() if hasattr(categories, "tolist") else categories)
    present = tuple(value for value in values if not _is_missing(value))
    is_text = not all(isinstance(value, (int, float)) for value in present)
    handled = getattr(step, "handle_unknown", "ignore") != "error"
    return replace(
        column,
        kind="text" if is_text else "number",
        categories=values,
        allows_missing=imputed or handled or len(present) < len(values),
        allows_unknown=handled,
        is_category=not hasattr(step, "categories_"),
    )


def _merge(one: InputColumn, other: InputColumn) -> InputColumn:
    """Return the description of a column that two branches use."""
    main = other if one.categories is None and one.kind == "number" else one
    return replace(
        main,
        allows_missing=one.allows_missing and other.allows_missing,
        allows_unknown=one.allows_unknown and other.allows_unknown,
    )


def _is_missing(value: Any) -> bool:
    return value is None or value != value  # noqa: PLR0124 - NaN


def _is_imputer(step: Any) -> bool:
    return type(step).__name__.endswith("Imputer")


def _is_imputed(steps: Sequence[Any]) -> bool:
    return any(map(_is_imputer, steps))


def _tolerates_missing(steps: Sequence[Any]) -> bool:
    """Return whether a number may be missing: until a step replaces it, each must let it through."""
    for step in steps:
        if _is_imputer(step):
            return True
        try:
            if not get_tags(step).input_tags.allow_nan:
                return False
        except (AttributeError, TypeError, ValueError):  # of another library: it says at prediction
            continue
    return True
