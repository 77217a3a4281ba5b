"""Columns that a model needs of an input line, and how they become its features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._columns import default_names
from fairtransport.repair import QuantileRepair
from fairtransport.stream.scorers import scorer_for
from fairtransport.tabular import RowScorer, TableModel
from fairtransport.tabular.column_plans import normalize_text
from fairtransport.tabular.input_columns import FeatureReader, InputColumn, feature_columns, feature_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from fairtransport.stream.scorers import Scorer


@dataclass(frozen=True)
class InputSchema:
    """Columns to read from each line, and the function that turns them into the model's input."""

    scorer: Scorer
    sensitive: tuple[str, ...]
    unknown_group: str
    to_features: Callable[[Mapping[str, NDArray[Any]]], Any]
    numeric: tuple[str, ...] = ()
    raw: tuple[str, ...] = ()
    low: float = -np.inf
    high: float = np.inf
    label_of: Callable[[Any], Any] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns to read, without duplicates."""
        return tuple(dict.fromkeys((*self.numeric, *self.raw, *self.sensitive)))

    @property
    def required(self) -> tuple[str, ...]:
        """The columns without which no line can be scored."""
        if self.scorer.needs_groups and self.unknown_group == "error":
            return self.columns
        return tuple(dict.fromkeys((*self.numeric, *self.raw)))


def input_schema_for(
    model: Any,
    *,
    sensitive: Sequence[str] | None = None,
    score: str | None = None,
    features: Sequence[str] | None = None,
    unknown_group: str = "error",
) -> InputSchema:
    """Return the input schema of a loaded model."""
    if isinstance(model, RowScorer):
        model = model.estimator_
    inner = model.estimator_ if isinstance(model, TableModel) else model
    scorer = scorer_for(inner)
    schema = partial(InputSchema, scorer, _sensitive_columns(scorer, sensitive), unknown_group)
    if isinstance(model, QuantileRepair):
        if score is None:
            raise ValueError("A QuantileRepair needs the column of the scores: pass it as --score.")
        low, high = (-np.inf, np.inf) if model.extrapolates else (scorer.grid.low, scorer.grid.high)
        return schema(lambda columns: columns[score], numeric=(score,), low=low, high=high)
    if score is not None:
        raise ValueError("--score is for a QuantileRepair; this model computes its scores from features.")
    if isinstance(model, TableModel):
        encoder = model.encoder_
        names = tuple(encoder.names)
        return schema(
            lambda columns: encoder.transform({name: columns[name] for name in names}),
            raw=names,
            label_of=lambda value: normalize_text(value) or "missing",
        )
    names = _feature_names(model, features)
    columns = feature_columns(model, names)
    if all(_is_plain_number(column) for column in columns):
        return schema(lambda values: np.column_stack([values[name] for name in names]), numeric=names)
    reader = FeatureReader(columns, named=feature_names(model) is not None)
    return schema(reader.require, raw=tuple(column.name for column in columns))


def _is_plain_number(column: InputColumn) -> bool:
    return column.kind == "number" and column.categories is None and not column.allows_missing


def _sensitive_columns(scorer: Scorer, names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns of the groups in the model's order; raise if the names differ from the model's."""
    expected = tuple(scorer.groups.columns)
    is_unnamed = expected == default_names(len(expected))
    if names is None:
        if is_unnamed and (scorer.needs_groups or scorer.learns):
            raise ValueError("The model was fitted without names of the groups' columns; name them with --sensitive.")
        return () if is_unnamed else expected
    if is_unnamed and len(names) == len(expected):
        expected = tuple(names)
    if set(expected) != set(names):
        raise ValueError(
            f"The groups of the model are defined by {_quoted(expected)}, but --sensitive names {_quoted(names)}. Name "
            "the same columns, or leave it out."
        )
    return expected


def _feature_names(model: Any, names: Sequence[str] | None) -> tuple[str, ...]:
    fitted = getattr(model, "feature_names_in_", None)
    expected = None if fitted is None else tuple(map(str, fitted))
    if names is not None:
        if expected is not None and expected != tuple(names):
            raise ValueError("--features differs from the column names that the model was fitted with; leave it out.")
        if len(names) != model.n_features_in_:
            raise ValueError(f"--features names {len(names)} columns; the model has {model.n_features_in_} features.")
        return tuple(names)
    if expected is None:
        raise ValueError(
            f"The model was fitted without column names. Name its {model.n_features_in_} features in the order of fit "
            "with --features, or fit the model on a table."
        )
    return expected


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
