"""Columns that a model needs of an input line, and how they become its input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from fairtransport._arrays import Ints
from fairtransport._columns import default_names
from fairtransport._sklearn import take_rows
from fairtransport.stream._scorers import Scorer, scorer_for
from fairtransport.tabular import RowScorer
from fairtransport.tabular.cells import RowCells, WantedColumns
from fairtransport.tabular.rows import CallBudget, Owners, Replaced, RowReason, failure_reason, separate_failures


@dataclass(frozen=True, eq=False, repr=False)  # a repr may end up in a log
class InputBatch:
    """Rows of one batch as the scorer takes them, and those that cannot be scored, numbered from ``first`` on."""

    accepted: list[int]
    X: Any
    sensitive_features: Any
    rejected: list[tuple[int, RowReason]]
    first: int = 0
    lines: list[bytes] = field(default_factory=list)
    replaced: Replaced = field(default_factory=dict)  # cells that the model takes for others
    owners: Owners | None = None

    def without_failures(self, operation: Callable[[Any, Any], Any]) -> InputBatch:
        """Return the batch in which rows that make an operation fail are rejected."""
        kept, _, failures = separate_failures(
            range(len(self.accepted)),
            lambda rows: operation(*self._select(rows)),
            _parts(np.asarray(self.accepted), self.owners),
        )
        if not failures:
            return self
        X, sensitive_features = self._select(kept) if kept else (None, None)
        reasons = [(self.first + self.accepted[row], failure_reason("scored", error)) for row, error in failures]
        return replace(
            self,
            X=X,
            sensitive_features=sensitive_features,
            accepted=[self.accepted[row] for row in kept],
            rejected=sorted([*self.rejected, *reasons]),
        )

    def _select(self, rows: Sequence[int]) -> tuple[Any, Any]:
        index, groups = np.asarray(rows, dtype=np.int64), self.sensitive_features
        return take_rows(self.X, index), None if groups is None else take_rows(groups, index)


@dataclass(frozen=True)
class InputSchema:
    """Columns to read from each row, and the reader that turns them into the model's input."""

    scorer: Scorer
    reader: RowScorer
    sensitive: tuple[str, ...]
    unknown_group: str

    def __post_init__(self) -> None:
        self.reader.unknown_group = self.unknown_group

    @cached_property
    def wanted(self) -> WantedColumns:
        """The columns without which no row can be scored, and those of the groups."""
        inputs = {column.name: column for column in self.reader.columns}
        needed = {*inputs}
        if self.unknown_group != "error":
            needed -= {*self.reader.sensitive_columns} - {*self.reader.feature_names_in_}
        inputs = {column.name: column for column in self.reader.group_inputs} | inputs
        return WantedColumns(
            tuple(name for name in inputs if name in needed),
            tuple(name for name in self.sensitive if name not in needed),
            frozenset(name for name, column in inputs.items() if column.kind == "number"),
        )

    def read(self, cells: RowCells, *, first: int = 0, lines: Sequence[bytes] = ()) -> InputBatch:
        """Return rows as the model takes them; where new groups are adopted, with their sensitive columns."""
        known = len(self.scorer.groups) > 0
        absent = [name for name in self.reader.group_columns if name not in cells.columns] if known else []
        columns = {**cells.columns, **{name: np.full(cells.kept.size, None) for name in absent}}
        options = {"groups": known, "new_groups": self.scorer.adopts_groups}
        kept, rows, failures = separate_failures(
            range(cells.kept.size),
            lambda some: self.reader.read(take_rows(columns, np.array(some)), **options),
            _parts(cells.kept, cells.owners),
        )
        reasons = {**cells.rejected, **{int(cells.kept[row]): failure_reason("read", error) for row, error in failures}}
        accepted, X, groups = [], None, None
        replaced: Replaced = {}
        if rows is not None:
            numbers = cells.kept[kept]
            reasons |= {int(numbers[row]): reason for row, reason in rows.set_aside.reasons.items()}
            accepted, X = numbers[rows.kept].tolist(), rows.X
            groups = rows.sensitive_features if known else None
            replaced = {key: numbers[cells] for key, cells in rows.set_aside.replaced.items()}
        rejected = [(first + row, reasons[row]) for row in sorted(reasons)]
        return InputBatch(accepted, X, groups, rejected, first, [*lines], replaced, cells.owners)


def _parts(rows: Ints, owners: Owners | None) -> list[tuple[Sequence[int], CallBudget]] | None:
    """Return the positions of each owner's rows, and the budget of the search for those that fail."""
    if owners is None:
        return None
    ends = np.searchsorted(rows, [end for end, _ in owners]).tolist()
    return [(range(start, end), budget) for start, end, (_, budget) in zip([0, *ends], ends, owners, strict=False)]


def input_schema_for(
    model: Any,
    *,
    sensitive: Sequence[str] | None = None,
    score: str | None = None,
    features: Sequence[str] | None = None,
    unknown_group: str = "error",
) -> InputSchema:
    if isinstance(model, RowScorer):
        model = model.estimator_
    scorer = scorer_for(model.estimator_ if hasattr(model, "encoder_") else model)
    names = _sensitive_columns(scorer, sensitive)
    repairs = not hasattr(model, "predict")  # a column of scores
    if repairs and score is None:
        raise ValueError("A QuantileRepair needs the column of the scores: pass it as --score.")
    if not repairs and score is not None:
        raise ValueError("--score is for a QuantileRepair; this model computes its scores from features.")
    if not (repairs or features or hasattr(model, "encoder_") or hasattr(model, "feature_names_in_")):
        raise ValueError(
            f"The model was fitted without column names. Name its {model.n_features_in_} features in the order of fit "
            "with --features, or fit the model on a table."
        )
    reader = RowScorer(model, features=features, score=score or "score", sensitive_features=names or None)
    return InputSchema(scorer, reader, names, unknown_group)


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


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
