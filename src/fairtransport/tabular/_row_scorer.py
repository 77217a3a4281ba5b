"""One way to score the rows of a table, whatever the model."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from fairtransport._columns import say_columns
from fairtransport._sklearn import last_step, model_scores, needs_groups, take_rows
from fairtransport._validation import check_choice
from fairtransport.groups import UNKNOWN_GROUPS
from fairtransport.repair import QuantileRepair, TableRepair
from fairtransport.tables.column_roles import suggest_names
from fairtransport.tabular._model import TableModel
from fairtransport.tabular.column_plans import group_values, match_column, read_table
from fairtransport.tabular.input_columns import FeatureReader, InputColumn, SetAside, feature_columns, feature_names
from fairtransport.tabular.rows import ReasonKind, RowReason, RowScores, name_columns, separate_failures

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.strata import Strata


class RowScorer:
    """Scores of the rows of raw tables, by any model that `fairtransport.load` returns.

    Parameters
    ----------
    model : estimator
        Fitted: a transport estimator, a repair, a blind repair, boosted trees, a `TableModel`, a `QuantileRepair` or
        `TableRepair` of a column of scores, a classifier of two classes or a regressor of scikit-learn, or a `Pipeline`
        that ends in one of these.
    unknown_group : {"error", "pooled", "common"}, default="error"
        Where the model needs the group: whether rows of a group that training did not see, and rows without a group,
        are left without a score, scored as everyone pooled, or scored as members of the largest group.
    sensitive_features : sequence of str, optional
        Names of the sensitive columns in the tables, where they differ from those of training, in their order.
    features : sequence of str, optional
        Names of the features in the tables, in the order of ``fit``, for a model that was fitted without names; by
        default ``x0``, ``x1``, ...
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
        Columns of the groups and of the strata, where the model needs them to score a row.
    needs_groups_ : bool
        Whether it needs the groups.
    task : {"classification", "regression"}

    Notes
    -----
    `fairtransport.load` returns models of this package as they were saved, and other models within a `RowScorer`, so
    that everything that it returns has ``predict``, ``feature_names_in_``, ``needs_groups_`` and ``score_rows``.

    The score of a row does not depend on the other rows. Cells may be text, as in a CSV file.

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
        if isinstance(model, TableModel) and decimal is not None:
            model = model.with_decimal(decimal)
        self._repairs = isinstance(model, (QuantileRepair, TableRepair))  # a column of scores
        self.estimator_: Any = model
        self.unknown_group = check_choice(unknown_group, UNKNOWN_GROUPS, name="unknown_group")
        self.decimal = decimal
        self._score_column = model.score if isinstance(model, TableRepair) else score
        self.needs_groups_ = model.needs_groups_ if isinstance(model, TableModel) else needs_groups(model)
        self.task = _task_of(model)
        self._groups, self._strata = _groups_of(model), _strata_of(model)
        needed = self._groups.columns if self.needs_groups_ and self._groups is not None else ()
        self.sensitive_columns = _renamed(needed, sensitive_features)
        self.strata_columns = () if self._strata is None else tuple(self._strata.columns)
        self._given_features = features
        if features is not None:
            self._check_features(features)

    def __repr__(self) -> str:
        return f"RowScorer({self.estimator_!r})"

    # ------------------------------------------------------------------------------------------------------ the model

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features, as the model was fitted with them."""
        if isinstance(self.estimator_, TableModel):
            return self.estimator_.feature_names_in_
        return np.array([column.name for column in self._features.columns], dtype=object)

    @property
    def classes_(self) -> NDArray[Any]:
        """The two classes of a classifier."""
        return np.asarray(self.estimator_.classes_)

    def predict(self, X: Any, **options: Any) -> NDArray[Any]:
        """Return the model's predictions; see its ``predict``."""
        return np.asarray(self.estimator_.predict(X, **options))

    def predict_proba(self, X: Any, **options: Any) -> NDArray[np.float64]:
        """Return a classifier's probabilities; see its ``predict_proba``."""
        return np.asarray(self.estimator_.predict_proba(X, **options))

    # -------------------------------------------------------------------------------------------------------- scoring

    def score_rows(self, table: Any) -> RowScores:
        """Return a score for each row of a table.

        Parameters
        ----------
        table : table
            Of pandas, polars or pyarrow, a dict of columns, or, for a model that was fitted without names, a matrix.
            Columns are found by name, in any order; others are ignored.

        Returns
        -------
        RowScores
            Probabilities of the positive class or predictions; NaN, and a reason, where a row cannot be scored.
        """
        columns = read_table(table)
        self.check_columns(columns)
        if isinstance(self.estimator_, TableModel):
            return self.estimator_.score_rows(
                columns, sensitive_features=self.sensitive_columns or None, unknown_group=self.unknown_group
            )
        n_rows = len(columns[self.columns[0].name]) if self.columns else 0
        set_aside = SetAside(n_rows)
        values = self._features.read(columns, set_aside)
        repair = _repair_of(self.estimator_)
        if self._repairs and not repair.extrapolates:
            low, high = repair.range_
            outside = (values[self._score_column] < low) | (values[self._score_column] > high)
            text = f"column {self._score_column!r} is outside the range of scores"
            set_aside.add(outside, RowReason(text, ReasonKind.NOT_A_NUMBER))
        groups = self._read_groups(columns, set_aside)
        strata = self._read_strata(columns, set_aside)
        scores = np.full(n_rows, np.nan)

        def score(rows: Sequence[int]) -> NDArray[np.float64]:
            chosen = np.asarray(rows, dtype=np.int64)
            parts = {"sensitive_features": groups, "strata": strata}
            options: dict[str, Any] = {role: take_rows(part, chosen) or None for role, part in parts.items()}
            if groups and self.unknown_group != "error":
                options["unknown_group"] = self.unknown_group
            X = self._features.features(values, chosen)
            if not self._repairs:
                return model_scores(self.estimator_, X, **options)
            given = {name: value for name, value in options.items() if value is not None}
            return np.asarray(repair.transform(np.ravel(X), **given), dtype=np.float64).ravel()

        kept, result, failures = separate_failures(set_aside.kept.tolist(), score)
        for row, error in failures:
            reason = RowReason(f"cannot be scored ({type(error).__name__})", ReasonKind.OTHER)
            set_aside.add(np.array([row]), reason)
        if result is not None:
            scores[kept] = result
            infinite = ~np.isfinite(scores)
            scores[infinite] = np.nan
            set_aside.add(infinite, RowReason("the score is not a finite number", ReasonKind.NOT_A_NUMBER))
        return RowScores(scores, set_aside.reasons)

    def check_columns(self, names: Collection[str], *, of: str = "table") -> None:
        """Raise ValueError, with their names, unless a table with these columns has all that the model needs.

        Parameters
        ----------
        names : collection of str
        of : str, default="table"
            What has the columns, for the message.
        """
        absent = [column.name for column in self.columns if column.name not in names]
        if absent:
            close = f"; {suggest_names(absent[0], list(names))}" if len(absent) == 1 else "."
            raise ValueError(f"The {of} has no {say_columns(absent)}, which the model needs{close}")

    def _read_groups(self, columns: dict[str, Any], set_aside: SetAside) -> dict[str, NDArray[Any]]:
        if not self.needs_groups_ or self._groups is None:
            return {}
        groups, missing = {}, np.zeros(1, dtype=bool)
        for index, (name, here) in enumerate(zip(self._groups.columns, self.sensitive_columns, strict=True)):
            groups[name], gaps, _ = match_column(columns[here], here, group_values(self._groups, index))
            missing = missing | gaps
        if self.unknown_group == "error":
            unknown = ~self._groups.is_known(groups)
            set_aside.add(unknown & missing, name_columns(ReasonKind.NO_GROUP, self.sensitive_columns))
            set_aside.add(unknown, name_columns(ReasonKind.UNKNOWN_GROUP, self.sensitive_columns))
        return groups

    def _read_strata(self, columns: dict[str, Any], set_aside: SetAside) -> dict[str, NDArray[Any]]:
        if self._strata is None:
            return {}
        strata: dict[str, NDArray[Any]] = {}
        for index, name in enumerate(self._strata.columns):
            if self._strata.cuts[index] is None:
                strata[name] = match_column(columns[name], name, group_values(self._strata.cells, index))[0]
            else:
                strata[name] = self._features.numbers(columns[name], name, set_aside)
        unknown = self._strata.encode(strata).codes == len(self._strata)
        set_aside.add(unknown, name_columns(ReasonKind.UNKNOWN_STRATUM, self.strata_columns))
        return strata

    # ------------------------------------------------------------------------------------------------------ columns

    def _check_features(self, features: Sequence[str]) -> None:
        model = self.estimator_
        if self._repairs or isinstance(model, TableModel):
            return
        fitted = feature_names(model)
        if fitted is not None and [*features] != fitted:
            raise ValueError("features differ from the column names that the model was fitted with.")
        if len(features) != int(model.n_features_in_):
            raise ValueError(f"features names {len(features)} columns; the model has {model.n_features_in_} features.")

    @cached_property  # names of a million columns take memory, and not everyone asks for them
    def _features(self) -> FeatureReader:
        model, decimal = self.estimator_, self.decimal or "."
        if self._repairs:
            return FeatureReader([InputColumn(self._score_column, allows_missing=False)], named=False, decimal=decimal)
        if isinstance(model, TableModel):
            return FeatureReader([], named=False)
        fitted = feature_names(model)
        names = fitted or self._given_features or [f"x{index}" for index in range(int(model.n_features_in_))]
        return FeatureReader(feature_columns(model, [*names]), named=fitted is not None, decimal=decimal)

    @cached_property
    def columns(self) -> tuple[InputColumn, ...]:
        """What a row must have."""
        if isinstance(self.estimator_, TableModel):
            found = self.estimator_.input_columns()
        else:
            found = {column.name: column for column in self._features.columns}
            for index, name in enumerate(self.strata_columns):
                found.setdefault(name, _column_of_values(name, group_values(self._strata.cells, index)))  # type: ignore[union-attr]
        for index, name in enumerate(self.sensitive_columns):
            known = group_values(self._groups, index)  # type: ignore[arg-type]
            found[name] = found.get(name) or _column_of_values(name, known)
        return tuple(found.values())


def _check_model(model: Any) -> None:
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise ValueError(f"This {type(model).__name__} is not fitted; call fit first.") from None
    if isinstance(model, (QuantileRepair, TableRepair, TableModel)) or is_regressor(last_step(model)[1]):
        return
    if not hasattr(model, "predict_proba"):
        raise TypeError(
            f"A {type(model).__name__} gives no scores: a model needs predict_proba, or predict of a regressor."
        )
    if np.size(model.classes_) != 2:
        raise TypeError(f"Scores are those of two classes; this {type(model).__name__} has {np.size(model.classes_)}.")


def _task_of(model: Any) -> str:
    if isinstance(model, TableModel):
        return model.task
    if isinstance(model, (QuantileRepair, TableRepair)):
        return "classification" if _repair_of(model).range == (0.0, 1.0) else "regression"
    return "regression" if is_regressor(last_step(model)[1]) else "classification"


def _repair_of(model: Any) -> Any:
    last = last_step(model)[1]
    if isinstance(last, TableRepair):
        return vars(last).get("repair_", last.repair)
    return last if isinstance(last, QuantileRepair) else vars(last).get("repair_")


def _groups_of(model: Any) -> Groups | None:
    if isinstance(model, TableModel):
        return model.known_groups
    return getattr(_repair_of(model) or last_step(model)[1], "groups_", None)


def _strata_of(model: Any) -> Strata | None:
    """Return the strata that are needed to score a row."""
    if isinstance(model, TableModel):
        return model.known_strata if model.needs_strata else None
    last = last_step(model)[1]
    holder = _repair_of(model)
    if holder is None and hasattr(last, "potentials_"):  # a blind repair
        holder = last
    return getattr(holder, "strata_", None)


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
