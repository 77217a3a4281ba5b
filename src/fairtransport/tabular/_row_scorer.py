"""One way to read and score the rows of a table, whatever the model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport._columns import say_columns
from fairtransport._sklearn import last_step, model_scores, needs_groups, take_rows, takes
from fairtransport._validation import check_choice
from fairtransport.groups import UNKNOWN_GROUPS, Groups
from fairtransport.repair import QuantileRepair, TableRepair
from fairtransport.strata import Strata
from fairtransport.tables.column_roles import suggest_names
from fairtransport.tabular.column_plans import (
    UNREADABLE,
    encode_text,
    group_values,
    known_texts,
    match_column,
    read_table,
)
from fairtransport.tabular.input_columns import FeatureReader, InputColumn, feature_columns, feature_names
from fairtransport.tabular.rows import (
    CallBudget,
    ReasonKind,
    RowReason,
    RowScores,
    SetAside,
    failure_reason,
    name_columns,
    separate_failures,
    unreadable_cell,
)


@dataclass(frozen=True, eq=False, repr=False)  # a repr may end up in a log
class InputRows:
    """Rows of a raw table as a model takes them: which rows these are, their features, groups and strata.

    ``X`` is None without any row; groups and strata have the values that the model knows, and are empty if they were
    not read. ``set_aside`` has the other rows with their reasons, and the cells of these that were replaced.
    """

    kept: Ints
    X: Any
    sensitive_features: dict[str, NDArray[Any]]
    strata: dict[str, NDArray[Any]]
    set_aside: SetAside

    def select(self, rows: Sequence[int]) -> tuple[Any, dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
        """Return features, groups and strata of some of the rows."""
        parts = (self.X, self.sensitive_features, self.strata)
        if len(rows) == self.kept.size:
            return parts
        index = np.asarray(rows, dtype=np.int64)
        return tuple(take_rows(part, index) for part in parts)


class RowScorer:
    """Scores of the rows of raw tables, by any model that `fairtransport.load` returns.

    Parameters
    ----------
    model : estimator
        Fitted: a model of this package, a `QuantileRepair` or `TableRepair` of a column of scores, a classifier of two
        classes or a regressor of scikit-learn, or a `Pipeline` that ends in one of these.
    unknown_group : {"error", "pooled", "common"}, default="error"
        Where the model needs the group: whether rows without one that training saw are left without a score, scored as
        everyone pooled, or scored as members of the largest group.
    sensitive_features : sequence of str, optional
        Names of the sensitive columns in the tables, where they differ from those of training, in their order.
    features : sequence of str, default=("x0", "x1", ...)
        Names of the features in the tables, in the order of ``fit``, for a model that was fitted without names.
    score : str, default="score"
        Column of the scores, for a `QuantileRepair`.
    decimal : {".", ","}, optional
        The decimal separator of numbers that are written as text; by default that of training.

    Attributes
    ----------
    estimator_ : estimator
        The model.
    columns : tuple of InputColumn
        What a row must have: ``name``, ``kind`` ("number", "text" or "date") and ``categories``, where they are known.
    sensitive_columns, strata_columns : tuple of str
        Columns of the groups and of the strata, where the model needs them to score a row; see ``needs_groups_``.
    task : {"classification", "regression"}

    Notes
    -----
    `fairtransport.load` returns models of other libraries within a `RowScorer`. The score of a row does not depend on
    the other rows. Cells may be text, as in a CSV file.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"hours": [20, 30, 40, 50]})
    >>> scorer = RowScorer(LogisticRegression().fit(X, [0, 0, 1, 1]))
    >>> scorer.columns[0].name, scorer.needs_groups_
    ('hours', False)
    >>> result = scorer.score_rows({"hours": ["35", "many", None]})
    >>> result.scores.round(3), result.reasons
    (array([0.5, nan, nan]), {1: "column 'hours' is not a number", 2: "column 'hours' has no value"})
    """

    def __init__(
        self,
        model: Any,
        *,
        unknown_group: str = "error",
        sensitive_features: Sequence[str] | None = None,
        features: Sequence[str] | None = None,
        score: str = "score",
        decimal: str | None = None,
    ) -> None:
        if isinstance(model, RowScorer):
            model = model.estimator_
        _check_model(model)
        self._encoder: Any = getattr(model, "encoder_", None)  # of a `TableModel`
        if self._encoder is not None and decimal is not None:
            model = model.with_decimal(decimal)
            self._encoder = model.encoder_
        self.estimator_: Any = model
        self._model: Any = model if self._encoder is None else model.estimator_  # of encoded rows
        self._repair = _repair_of(self._model)
        self._repairs = isinstance(model, (QuantileRepair, TableRepair))  # a column of scores
        self.unknown_group = check_choice(unknown_group, UNKNOWN_GROUPS, name="unknown_group")
        self.decimal: str = getattr(model, "decimal", ".") if decimal is None else decimal
        self._score_column = model.score if isinstance(model, TableRepair) else score
        self.needs_groups_ = needs_groups(self._model)
        holder = self._repair or last_step(self._model)[1]
        self.groups: Groups | None = getattr(holder, "groups_", None)
        strata = getattr(holder, "strata_", None)
        self._strata: Strata | None = strata if self._repairs or takes(self._model, "strata") else None
        self.group_columns = () if self.groups is None else _renamed(self.groups.columns, sensitive_features)
        self.sensitive_columns = self.group_columns if self.needs_groups_ else ()
        self.strata_columns = () if self._strata is None else tuple(self._strata.columns)
        self._given_features = features
        if features is not None:
            self._check_features(features)

    def __repr__(self) -> str:
        return f"RowScorer({self.estimator_!r})"

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features, as the model was fitted with them."""
        if self._encoder is not None:
            return np.asarray(self._encoder.feature_names_in_)
        return np.array([column.name for column in self._features.columns], dtype=object)

    @property
    def task(self) -> str:
        """The task: "classification" (scores are probabilities) or "regression" (predictions of numbers)."""
        if self._repairs:
            return "classification" if self._repair.range == (0.0, 1.0) else "regression"
        return "regression" if is_regressor(last_step(self._model)[1]) else "classification"

    @property
    def classes_(self) -> NDArray[Any]:
        """The two classes of a classifier."""
        return np.asarray(self.estimator_.classes_)

    def predict(self, X: Any, **options: Any) -> NDArray[Any]:
        """Return the model's predictions; see its ``predict``."""
        return np.asarray(self.estimator_.predict(X, **options))

    def predict_proba(self, X: Any, **options: Any) -> Floats:
        """Return a classifier's probabilities; see its ``predict_proba``."""
        return np.asarray(self.estimator_.predict_proba(X, **options))

    def score_rows(self, table: Any) -> RowScores:
        """Return a score for each row of a table: a probability or a prediction, or NaN and a reason.

        Parameters
        ----------
        table : table
            Of pandas, polars or pyarrow, a dict of columns, or, for a model that was fitted without names, a matrix.
            Columns are found by name, in any order; others are ignored.
        """
        return self.score_within(table, CallBudget())

    def score_table(self, table: Any, *, output: str = "score") -> Any:
        """Return a table with the scores of its rows in one more column, on the engine that has it.

        Parameters
        ----------
        table : table
            Of pandas, polars (eager or lazy), pyarrow, DuckDB, Dask or PySpark. A lazy table stays lazy.
        output : str, default="score"
            Name of the new column. Rows that cannot be scored have a missing score; `score_rows` gives the reasons.
        """
        from fairtransport.tabular.table_scoring import score_table  # noqa: PLC0415 - engines take a while

        return score_table(self, table, output=output)

    def score_within(self, table: Any, budget: CallBudget) -> RowScores:
        """Return the scores, with a budget for the search for rows that make the model fail."""
        rows = self.read(table)
        scores, set_aside = np.full(rows.set_aside.size, np.nan), rows.set_aside

        def score(chosen: Sequence[int]) -> Floats:
            X, groups, strata = rows.select(chosen)
            given = {"sensitive_features": groups, "strata": strata}
            options: dict[str, Any] = {role: part for role, part in given.items() if part}
            if groups and self.unknown_group != "error":
                options["unknown_group"] = self.unknown_group
            if not self._repairs:
                return model_scores(self._model, X, **options)
            return np.asarray(self._repair.transform(np.ravel(X), **options), dtype=np.float64).ravel()

        every = range(rows.kept.size)
        with np.errstate(all="ignore"):  # large numbers; their rows have no score
            kept, result, failures = separate_failures(every, score, [(every, budget)])
        for row, error in failures:
            set_aside.add(rows.kept[[row]], failure_reason("scored", error))
        if result is not None:
            scores[rows.kept[kept]] = result
            infinite = ~np.isfinite(scores)
            scores[infinite] = np.nan
            set_aside.add(infinite, RowReason("the score is not a finite number", ReasonKind.NOT_A_NUMBER))
        return RowScores(scores, set_aside.reasons, set_aside.replaced)

    def read(self, table: Any, *, groups: bool = False, new_groups: bool = False) -> InputRows:
        """Return the rows of a table as the model takes them, with ``new_groups`` also those of unknown groups.

        With ``groups``, groups are read even if they are not needed; an absent column counts as missing values.
        """
        columns = read_table(table)
        self.check_columns(columns)
        n_rows = len(next(iter(columns.values()))) if columns else 0
        set_aside = SetAside(n_rows)
        values = columns if self._encoder is not None else self._features.read(columns, set_aside)
        if self._repairs and not self._repair.extrapolates:
            low, high = self._repair.range_
            outside = (values[self._score_column] < low) | (values[self._score_column] > high)
            text = f"column {self._score_column!r} is outside the range of scores"
            set_aside.add(outside, RowReason(text, ReasonKind.NOT_A_NUMBER))
        known: dict[str, NDArray[Any]] = {}
        if self.groups is not None and (groups or self.needs_groups_):
            known, missing = self._read_groups(columns, n_rows)
            if self.needs_groups_ and self.unknown_group == "error":
                unknown = ~self.groups.is_known(known)
                set_aside.add(unknown & missing, name_columns(ReasonKind.NO_GROUP, self.group_columns))
                if not new_groups:
                    set_aside.add(unknown, name_columns(ReasonKind.UNKNOWN_GROUP, self.group_columns))
        strata = self._read_strata(columns, set_aside)
        kept, X = set_aside.kept, None
        if kept.size and self._encoder is not None:
            X, kept = self._encode(columns, set_aside)
        elif kept.size:
            X = self._features.features(values, kept)
        return InputRows(kept, X, take_rows(known, kept), take_rows(strata, kept), set_aside)

    def _encode(self, columns: Mapping[str, Any], set_aside: SetAside) -> tuple[Any, Ints]:
        """Return the encoded rows, and which these are; those with text in a column of numbers are set aside."""
        read, encoder = set_aside.kept, self._encoder
        X, replaced = encoder.transform_noted({name: take_rows(columns[name], read) for name in encoder.names})
        for (kind, name), rows in replaced.items():
            if kind != UNREADABLE or name in encoder.unreadable_:  # in training such cells were missing
                set_aside.note(read[rows], kind, name)
            else:
                dates = (plan.pattern for plan in encoder.plans_ if plan.name == name and plan.kind == "date")
                set_aside.add(read[rows], unreadable_cell(name, next(dates, None)))
        kept = set_aside.kept
        return X if kept.size == read.size else take_rows(X, np.searchsorted(read, kept)), kept

    def check_columns(self, names: Collection[str], *, of: str = "table") -> None:
        """Raise ValueError, with their names, unless a table (``of``) with these columns has all that are needed."""
        absent = [column.name for column in self.columns if column.name not in names]
        if absent:
            close = f"; {suggest_names(absent[0], list(names))}" if len(absent) == 1 else "."
            raise ValueError(f"The {of} has no {say_columns(absent)}, which the model needs{close}")

    def encode_groups(self, table: Any) -> Groups:
        """Return the groups of the rows of a table; rows of none that the model knows are pooled."""
        columns = read_table(table)
        groups, _ = self._read_groups(columns, len(columns[self.group_columns[0]]))
        return self.groups.encode(groups, unknown_group="pooled")  # type: ignore[union-attr]

    def _read_groups(self, columns: Mapping[str, Any], n_rows: int) -> tuple[dict[str, NDArray[Any]], Bools]:
        """Return the sensitive columns as the values that the model knows, and which rows lack one of them."""
        groups: dict[str, NDArray[Any]] = {}
        missing = np.zeros(n_rows, dtype=bool)
        for index, (name, here) in enumerate(zip(self.groups.columns, self.group_columns, strict=True)):  # type: ignore[union-attr]
            column = columns[here] if here in columns else np.full(n_rows, None)
            if self._encoder is not None:
                words, codes = encode_text(column, here)
                words = known_texts(words, group_values(self.groups, index))  # type: ignore[arg-type]
                groups[name], gaps = np.array([*words, "missing"], dtype=object)[codes], codes < 0
            else:
                groups[name], gaps, _ = match_column(column, here, group_values(self.groups, index))  # type: ignore[arg-type]
            missing |= gaps
        return groups, missing

    def _read_strata(self, columns: Mapping[str, Any], set_aside: SetAside) -> dict[str, NDArray[Any]]:
        if self._strata is None:
            return {}
        strata: dict[str, NDArray[Any]] = {}
        if self._encoder is not None:
            strata = self.estimator_.strata_of(columns, np.ones(set_aside.size, dtype=bool))
        for index, name in enumerate(self._strata.columns if not strata else ()):
            if self._strata.cuts[index] is None:
                strata[name] = match_column(columns[name], name, group_values(self._strata.cells, index))[0]
            else:
                strata[name] = self._features.numbers(columns[name], name, set_aside)
        unknown = self._strata.encode(strata).codes == len(self._strata)
        set_aside.add(unknown, name_columns(ReasonKind.UNKNOWN_STRATUM, self.strata_columns))
        return strata

    def _check_features(self, features: Sequence[str]) -> None:
        if self._repairs or self._encoder is not None:
            return
        fitted, n_features = feature_names(self._model), int(self._model.n_features_in_)
        if fitted is not None and [*features] != fitted:
            raise ValueError("features differ from the column names that the model was fitted with; leave them out.")
        if len(features) != n_features:
            raise ValueError(f"features names {len(features)} columns; the model has {n_features} features.")

    @cached_property  # names of a million columns take memory, and not everyone asks for them
    def _features(self) -> FeatureReader:
        if self._repairs:
            column = InputColumn(self._score_column, allows_missing=False)
            return FeatureReader([column], named=False, decimal=self.decimal)
        fitted = feature_names(self._model)
        names = fitted or self._given_features or [f"x{index}" for index in range(int(self._model.n_features_in_))]
        columns = feature_columns(self._model, [*names])
        return FeatureReader(columns, named=fitted is not None, decimal=self.decimal)

    @cached_property
    def columns(self) -> tuple[InputColumn, ...]:
        """The columns that a row must have."""
        if self._encoder is not None:
            found = self.estimator_.input_columns()
        else:
            found = {column.name: column for column in self._features.columns}
            for index, name in enumerate(self.strata_columns):
                found.setdefault(name, _column_of_values(name, group_values(self._strata.cells, index)))  # type: ignore[union-attr]
        for column in self.group_inputs if self.needs_groups_ else ():
            found.setdefault(column.name, column)
        return tuple(found.values())

    @property
    def group_inputs(self) -> tuple[InputColumn, ...]:
        """The columns of the groups that the model knows, with their values."""
        if self.groups is None:
            return ()
        values = [group_values(self.groups, index) for index in range(len(self.group_columns))]
        return tuple(map(_column_of_values, self.group_columns, values))


def _check_model(model: Any) -> None:
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise ValueError(f"This {type(model).__name__} is not fitted; call fit first.") from None
    last = last_step(model)[1]
    if _repair_of(last) is last or hasattr(model, "encoder_") or isinstance(last, TableRepair) or is_regressor(last):
        return
    if not hasattr(model, "predict_proba"):
        raise TypeError(
            f"A {type(model).__name__} gives no scores: a model needs predict_proba, or predict of a regressor."
        )
    if np.size(model.classes_) != 2:
        raise TypeError(f"Scores are those of two classes; this {type(model).__name__} has {np.size(model.classes_)}.")


def _repair_of(model: Any) -> Any:
    last = last_step(model)[1]
    if isinstance(last, TableRepair):
        return vars(last).get("repair_", last.repair)
    return last if isinstance(last, QuantileRepair) else vars(last).get("repair_")


def _renamed(names: Sequence[str], here: Sequence[str] | None) -> tuple[str, ...]:
    if here is None or not names:
        return tuple(names)
    if len(here) != len(names):
        raise ValueError(f"The model has {len(names)} sensitive columns; {len(here)} are named.")
    return tuple(names) if {*here} == {*names} else tuple(here)


def _column_of_values(name: str, values: Sequence[Any]) -> InputColumn:
    known = tuple(dict.fromkeys(value for value in values if value is not None))
    is_text = not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in known)
    return InputColumn(name, "text" if is_text else "number", known)
