"""Columns that a model needs of an input line, and how they become its features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.repair import QuantileRepair
from fairtransport.stream.scorers import scorer_for
from fairtransport.tabular import TableModel
from fairtransport.tabular.value_parsing import normalize_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.stream.scorers import Scorer

__all__ = ["InputSchema", "input_schema_for"]


@dataclass(frozen=True)
class InputSchema:
    """Columns to read from each line, and the function that turns them into the model's input.

    Attributes
    ----------
    model : estimator
        The model to pass to `ContinualAdjuster`.
    numeric : tuple of str
        Columns that are read as finite numbers.
    sensitive : tuple of str
        Columns of the groups, in the model's order.
    groups : Groups
        Groups that the model knows.
    to_features : callable
        Takes a mapping of column names to arrays and returns what the model scores.
    low, high : float
        Range of the numeric columns.
    raw : tuple of str
        Columns that are read without conversion, missing values included, for a model with its own preprocessing.
    label_of : callable, optional
        Converts a value of a sensitive column to its part of the group's label, where labels are text.
    needs_groups : bool, default=True
        Whether a line without a known group is rejected. If not, the sensitive columns need not be there.
    """

    model: Any
    numeric: tuple[str, ...]
    sensitive: tuple[str, ...]
    groups: Groups
    to_features: Callable[[Mapping[str, NDArray[Any]]], Any]
    low: float = -np.inf
    high: float = np.inf
    raw: tuple[str, ...] = ()
    label_of: Callable[[Any], Any] | None = None
    needs_groups: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns to read, without duplicates."""
        return tuple(dict.fromkeys((*self.numeric, *self.raw, *self.sensitive)))

    @property
    def required(self) -> tuple[str, ...]:
        """The columns without which no line can be scored."""
        return self.columns if self.needs_groups else tuple(dict.fromkeys((*self.numeric, *self.raw)))

    @property
    def adopts_groups(self) -> bool:
        """Whether the model accepts groups that it does not know."""
        return self.needs_groups and str(self.model.new_groups) == "adopt"


def input_schema_for(
    model: Any, *, sensitive: Sequence[str], score: str | None = None, features: Sequence[str] | None = None
) -> InputSchema:
    """Return the input schema of a loaded model.

    Parameters
    ----------
    model : estimator
        A model that `fairtransport.load` returned.
    sensitive : sequence of str
        Columns of the groups, in any order if the model knows their names.
    score : str, optional
        Column of the scores, for a `QuantileRepair`.
    features : sequence of str, optional
        Columns of the features in the order of ``fit``, for a model that was fitted without column names.

    Returns
    -------
    InputSchema
        For a `TableModel`, the schema of its classifier: the columns of the table are ``raw``, and ``to_features``
        applies the model's encoder.
    """
    if isinstance(model, TableModel):
        return _schema_of_table_model(model, sensitive)
    scorer = scorer_for(model)
    sensitive_columns = _sensitive_columns(scorer, sensitive)
    if isinstance(model, QuantileRepair):
        if score is None:
            raise ValueError("A QuantileRepair needs the column of the scores: pass it as --score.")
        grid = scorer.grid
        return InputSchema(
            model,
            (score,),
            sensitive_columns,
            scorer.groups,
            lambda columns: columns[score],
            low=-np.inf if model.extrapolates else grid.low,
            high=np.inf if model.extrapolates else grid.high,
        )
    if score is not None:
        raise ValueError("--score is for a QuantileRepair; this model computes its scores from features.")
    names = _feature_names(model, features)
    return InputSchema(
        model,
        names,
        sensitive_columns,
        scorer.groups,
        lambda columns: np.column_stack([columns[name] for name in names]),
        needs_groups=scorer.needs_groups,
    )


def _schema_of_table_model(model: TableModel, sensitive: Sequence[str]) -> InputSchema:
    scorer, encoder = scorer_for(model.estimator_), model.encoder_
    names = tuple(encoder.names)
    return InputSchema(
        model.estimator_,
        (),
        _sensitive_columns(scorer, sensitive),
        scorer.groups,
        lambda columns: encoder.transform({name: columns[name] for name in names}),
        raw=names,
        label_of=lambda value: normalize_text(value) or "missing",
        needs_groups=scorer.needs_groups,
    )


def _sensitive_columns(scorer: Scorer, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of the groups in the model's order; raise if the names differ from the model's."""
    expected = tuple(scorer.groups.columns)
    unnamed = tuple(f"sensitive_feature_{index}" for index in range(len(expected)))
    if expected == unnamed and len(names) == len(expected):
        expected = tuple(names)
    if set(expected) != set(names):
        raise ValueError(
            f"The groups of the model are defined by {_quoted(expected)}, but --sensitive names {_quoted(names)}. Name "
            "the same columns."
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
