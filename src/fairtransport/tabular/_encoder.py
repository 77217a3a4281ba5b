"""Encoder of raw tables as matrices of numbers, by rules that a model file can store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from fairtransport._arrays import Bools
from fairtransport._columns import say_columns
from fairtransport._validation import check_choice, check_count, check_flag
from fairtransport.tabular.column_plans import ColumnRules, ColumnTally, LeftOut, read_table, tally_column

_DIGITS = 9  # of means and deviations, so that the order in which parts of a table are added does not change them


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encoder of raw columns (numbers, text, dates, missing values) as numbers for a linear model.

    Parameters
    ----------
    categorical : sequence of str, default=()
        Columns of numbers that are codes, such as postcodes: each value gets an indicator column.
    min_frequency : int, default=5
        A category that occurs in fewer training rows has no indicator column of its own; such categories share one. So
        a model file contains no text that only few people have.
    max_categories : int, default=100
        Largest number of indicator columns of one raw column; the most frequent categories get them.
    decimal : {".", ","}, default="."
        The decimal separator of numbers that are written as text.
    sparse_output : bool, default=False
        Return a CSR matrix.

    Attributes
    ----------
    plans_ : list of ColumnPlan
        The encoding of each column that is used.
    left_out_ : dict of str to str
        Columns that are not used, and why: no values, a single value, a different text in almost every row (an
        identifier), row numbers, the index of a pandas table, lists or records.
    unreadable_ : dict of str to int
        Cells of numeric or date columns that contain something else, treated as missing: at most 5% of a column.
    n_features_in_, feature_names_in_
        Columns of the table, and their names.

    Notes
    -----
    **Columns** are found by name, in any order; further columns are ignored, and a missing column raises. The kind of a
    column follows from its type or, for text, from its values: numbers where at least 95% of the values are numbers and
    none has leading zeros; dates where 95% of the values are dates; categories otherwise. Text is stripped, and ``?``,
    ``NA``, ``null``, ``None``, ``-`` and similar texts are missing values.

    **Numbers** are standardised. A missing number is replaced by the mean and marked in an indicator column where at
    least ``min_frequency`` training rows had missing values. **Dates** become days, month, weekday and hour, as far as
    these vary. **Categories** get one indicator column each; those that ``fit`` did not see count as rare ones. Where
    ``fit`` saw no rare or no missing ones, all indicators are 0.

    Examples
    --------
    >>> table = {"age": ["31", "?", "45", "27"] * 5, "job": ["cook", "smith", "cook", None] * 5, "id": list(range(20))}
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'age missing', 'job=cook', 'job=smith', 'job missing']
    >>> encoder.left_out_
    {'id': 'it numbers the rows'}
    >>> encoder.transform({"job": ["smith", "judge"], "age": [31, None]}).round(2).tolist()
    [[-0.43, 0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0]]
    """

    def __init__(
        self,
        *,
        categorical: Sequence[str] = (),
        min_frequency: int = 5,
        max_categories: int = 100,
        decimal: str = ".",
        sparse_output: bool = False,
    ) -> None:
        self.categorical = categorical
        self.min_frequency = min_frequency
        self.max_categories = max_categories
        self.decimal = decimal
        self.sparse_output = sparse_output

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 - scikit-learn's signature
        """Infer what each column contains.

        Parameters
        ----------
        X : table or matrix
            Of pandas, polars, pyarrow, a dict of columns, or a NumPy matrix, whose columns are called x0, x1, ...
        y : ignored
        """
        rules = self.rules()
        columns = self._columns(X, reset=True)
        unknown = [name for name in self.categorical if name not in columns]
        if unknown:
            raise ValueError(f"categorical names {say_columns(unknown)}, which the table does not have.")
        n_rows = len(next(iter(columns.values()))) if columns else 0
        if not n_rows:
            raise ValueError(f"The table has {len(columns)} columns and no rows; at least one of each is needed.")
        self._plan({n: tally_column(n, c, rules, categorical=n in self.categorical) for n, c in columns.items()})
        return self

    def fit_tallies(self, tallies: Mapping[str, ColumnTally]) -> Self:
        """Infer the same from what parts of a table contain, merged; columns of numbers come first."""
        self.feature_names_in_, self.n_features_in_ = np.array(list(tallies), dtype=object), len(tallies)
        self._plan(tallies, digits=_DIGITS)
        self.plans_.sort(key=lambda plan: plan.kind == "words")
        return self

    def _plan(self, tallies: Mapping[str, ColumnTally], digits: int | None = None) -> None:
        rules, plans, left_out, unreadable = self.rules(), [], {}, {}
        for name, tally in tallies.items():
            try:
                plan, n_unreadable = tally.plan(rules, digits=digits)
            except LeftOut as reason:
                left_out[name] = str(reason)
                continue
            plans.append(plan)
            if n_unreadable:
                unreadable[name] = n_unreadable
        if not plans:
            reasons = "; ".join(f"{name!r}: {why}" for name, why in left_out.items())
            n_rows = next(iter(tallies.values())).n_rows
            raise ValueError(f"None of the {len(tallies)} columns can be used (n_samples = {n_rows}): {reasons}.")
        self.plans_, self.left_out_, self.unreadable_ = plans, left_out, unreadable

    def transform(self, X: Any) -> Any:
        """Return the encoded rows, an array or a CSR matrix, of a table with the columns that are used, by name."""
        return self.transform_noted(X)[0]

    def transform_noted(self, X: Any) -> tuple[Any, dict[tuple[str, str], Bools]]:
        """Return the encoded rows, and where cells were replaced, by kind (unreadable, unseen) and column."""
        check_is_fitted(self)
        self.rules()
        columns = self._columns(X, reset=False)
        absent = [plan.name for plan in self.plans_ if plan.name not in columns]
        if absent:
            raise ValueError(f"The table has no {say_columns(absent)}, which the model was trained with.")
        replaced, values, indices, start = {}, [], [], 0
        for plan in self.plans_:
            column_values, column_indices, kind, rows = plan.entries(columns[plan.name], self.decimal)
            values.append(column_values)
            indices.append(column_indices + start)
            start += plan.width
            if rows.any():
                replaced[kind, plan.name] = rows
        cells = np.hstack(values)  # of each row the same number
        ends = np.arange(0, cells.size + 1, cells.shape[1])
        matrix = csr_matrix((cells.ravel(), np.hstack(indices).ravel(), ends), shape=(len(cells), start))
        matrix.eliminate_zeros()
        return (matrix if self.sparse_output else matrix.toarray()), replaced

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:  # noqa: ARG002
        """Return the names of the encoded columns, such as ``age``, ``age missing``, ``job=cook``, ``joined month``."""
        check_is_fitted(self)
        return np.array([name for plan in self.plans_ for name in plan.outputs], dtype=object)

    @property
    def names(self) -> list[str]:
        """Columns that ``transform`` needs."""
        check_is_fitted(self)
        return [plan.name for plan in self.plans_]

    def _columns(self, X: Any, *, reset: bool) -> dict[str, Any]:
        """Return columns by name; those of a matrix are identified by position."""
        named = isinstance(nw.from_native(X, pass_through=True), (nw.DataFrame, nw.LazyFrame)) or isinstance(X, Mapping)
        if not named or issparse(X):  # some sparse matrices are dicts
            return read_table(validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False))
        columns = read_table(X)
        if reset:
            self.feature_names_in_ = np.array(list(columns), dtype=object)
            self.n_features_in_ = len(columns)
        return columns

    def rules(self) -> ColumnRules:
        """Return the parameters, once they are checked."""
        check_flag(self.sparse_output, name="sparse_output")
        return ColumnRules(
            check_count(self.min_frequency, name="min_frequency"),
            check_count(self.max_categories, name="max_categories"),
            check_choice(self.decimal, (".", ","), name="decimal"),
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags
