"""Columns that a fitted model needs of a table, and how its features are read from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from fairtransport._arrays import Floats, Ints
from fairtransport._extras import load_extra
from fairtransport._sklearn import take_rows
from fairtransport.tabular.column_plans import UNSEEN, known_categories, match_column, parse_numbers
from fairtransport.tabular.rows import ReasonKind, RowReason, unreadable_cell

if TYPE_CHECKING:
    from fairtransport.tabular.rows import SetAside

    Steps = tuple[Any, ...]


@dataclass(frozen=True)
class InputColumn:
    """A column that a model needs of each row.

    Parameters
    ----------
    name : str
    kind : {"number", "text", "date"}
    categories : tuple, optional
        The values that the model knows, where it knows them: of a column of categories or of groups.
    allows_missing, allows_unknown : bool, default=True
        Whether a row without a value, or with a category that the model does not know, can be scored.
    is_category : bool, default=False
        Whether the model takes a column of pandas categories.
    """

    name: str
    kind: str = "number"
    categories: tuple[Any, ...] | None = None
    allows_missing: bool = True
    allows_unknown: bool = True
    is_category: bool = False


def feature_names(model: Any) -> list[str] | None:
    """Return the names of a fitted model's features; None if it was fitted without names."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [*map(str, names)]


def feature_columns(model: Any, names: Sequence[str]) -> list[InputColumn]:
    """Return the columns of a model's features that it uses, in their order."""
    known: dict[str, InputColumn] = {}
    for chosen, steps in _branches(model, names, ()):
        for index, name in enumerate(chosen):
            column = _describe(chosen, index, steps)
            if name in known:
                column = _merge(known[name], column)
            known[name] = column
    return [known[name] for name in names if name in known]


def _branches(model: Any, names: Sequence[str], after: Steps) -> Iterator[tuple[Sequence[str], Steps]]:
    """Yield the columns that go through the same steps, and these; ``after`` are the steps behind the model."""
    if isinstance(model, str) or model is None:
        if model != "drop":
            yield names, after
    elif isinstance(model, Pipeline):
        steps = [step for _, step in model.steps if step not in (None, "passthrough")]
        yield from _branches(steps[0] if steps else None, names, (*steps[1:], *after))
    else:
        parts = _parts(model, names)
        for part, chosen in parts:
            yield from _branches(part, chosen, after)
        if not parts:
            yield names, (model, *after)


def _parts(model: Any, names: Sequence[str]) -> list[tuple[Any, Sequence[str]]]:
    """Return the models and transformers side by side in a model, each with its columns; none for a simple one."""
    if isinstance(model, ColumnTransformer):
        positions = model._transformer_to_input_indices  # noqa: SLF001 - columns may be names, masks or slices
        return [(step, [names[index] for index in positions.get(name, ())]) for name, step, _ in model.transformers_]
    if isinstance(model, FeatureUnion):
        return [(step, names) for _, step in model.transformer_list]
    inner = [vars(model).get(name) for name in ("estimator_", "group_estimator_")]
    return [(one, names) for one in inner if hasattr(one, "get_params")]


def _describe(names: Sequence[str], index: int, steps: Steps) -> InputColumn:
    """Return the description of one of the columns that go through the same steps."""
    column = InputColumn(names[index])
    for step in steps:
        if _is_imputer(step):
            statistics = getattr(step, "statistics_", None)
            if statistics is not None and statistics.dtype.kind == "O" and index < statistics.size:
                is_text = isinstance(statistics[index], str)
                column = replace(column, kind="text" if is_text else column.kind)
            continue
        encoded: Any = getattr(step, "categories_", None)
        has_all = isinstance(encoded, list) and len(encoded) == len(names)
        categories = encoded[index] if has_all else known_categories(step, len(names)).get(index)
        if categories is not None:
            return _with_categories(column, categories, step, imputed=any(map(_is_imputer, steps)))
    return replace(column, allows_missing=_tolerates_missing(steps))


def _with_categories(column: InputColumn, categories: Any, step: Any, *, imputed: bool) -> InputColumn:
    values = tuple(categories.tolist() if hasattr(categories, "tolist") else categories)
    present = tuple(value for value in values if value is not None and value == value)  # noqa: PLR0124 - NaN
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


def _is_imputer(step: Any) -> bool:
    return type(step).__name__.endswith("Imputer")


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


# Columns of a raw table -> the features that a fitted estimator takes, and the rows for which that fails.


@dataclass(frozen=True)
class FeatureReader:
    """Reader of the features of an estimator."""

    columns: Sequence[InputColumn]
    named: bool
    decimal: str = "."

    def read(self, table: Mapping[str, Any], set_aside: SetAside) -> dict[str, NDArray[Any]]:
        """Return the columns as numbers and known categories; rows that no estimator could score are set aside."""
        numbers = self._finite_numbers(table)
        if numbers is not None:
            return numbers
        return {column.name: self._read_column(column, table[column.name], set_aside) for column in self.columns}

    def _finite_numbers(self, table: Mapping[str, Any]) -> dict[str, NDArray[Any]] | None:
        """Return the columns if all of them are finite numbers already, as in most requests to a server, else None."""
        if not self.columns or any(one.kind != "number" or one.categories is not None for one in self.columns):
            return None
        cells = [table[column.name] for column in self.columns]
        if not all(isinstance(one, np.ndarray) and one.dtype.kind in "iuf" for one in cells):
            return None
        matrix = np.column_stack(cells).astype(np.float64, copy=False)
        if not np.isfinite(matrix).all():
            return None
        return {column.name: matrix[:, index] for index, column in enumerate(self.columns)}

    def _read_column(self, column: InputColumn, cells: Any, set_aside: SetAside) -> NDArray[Any]:
        name = column.name
        new = RowReason(f"column {name!r} has an unknown category", ReasonKind.UNKNOWN_CATEGORY)
        values: NDArray[Any]
        if column.kind == "number":
            values = self.numbers(cells, name, set_aside)
            missing = np.isnan(values)
            known = [float(value) for value in column.categories or () if value == value]  # noqa: PLR0124
            unknown = ~missing & ~np.isin(values, known)
        else:
            marker = None if column.categories is not None and None in column.categories else np.nan
            values, missing, unknown = match_column(cells, name, column.categories, marker)
            if column.is_category:
                values[unknown] = marker  # as the library itself treats it
        if column.categories is not None and (column.is_category or column.allows_unknown):
            set_aside.note(unknown, UNSEEN, name)
        elif column.categories is not None:
            set_aside.add(unknown, new)
        if not column.allows_missing:
            set_aside.add(missing, RowReason(f"column {name!r} has no value", ReasonKind.MISSING_VALUE))
        return values

    def numbers(self, cells: Any, name: str, set_aside: SetAside) -> Floats:
        """Return a column as numbers; rows with something else are set aside."""
        values, unreadable = parse_numbers(cells, name, self.decimal)
        set_aside.add(unreadable, unreadable_cell(name))
        return values

    def features(self, values: dict[str, NDArray[Any]], rows: Ints) -> Any:
        """Return some rows as the estimator takes them: a table with names, or a matrix."""
        chosen = {name: take_rows(column, rows) for name, column in values.items()}
        if not self.named:
            return np.column_stack([*chosen.values()]) if chosen else np.empty((rows.size, 0))
        if find_spec("pandas") is None and find_spec("polars") is not None:
            return load_extra("polars").DataFrame(chosen)
        pandas = load_extra("pandas")
        if all(column.dtype == np.float64 for column in chosen.values()):  # one block, which scikit-learn reads at once
            return pandas.DataFrame(np.column_stack([*chosen.values()]), columns=[*chosen], copy=False)
        for column in self.columns:
            if column.is_category:
                chosen[column.name] = pandas.Categorical(chosen[column.name], categories=[*(column.categories or ())])
        return pandas.DataFrame(chosen, copy=False)
