"""Training of models of raw tables whose rows stay in parts: the encoder is learned from what the parts contain.

A model is a `fairtransport.tabular.TableModel`, whose own methods read labels, groups and strata, on workers as well.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport._extras import load_extra
from fairtransport._sklearn import policy_of, take_rows
from fairtransport.groups import missing_values_error
from fairtransport.linear.table_predictions import predict_parts
from fairtransport.linear.table_training import EncodedRows, Partitions, RawParts, TableColumns
from fairtransport.repair import BlindRepairClassifier, BlindRepairRegressor
from fairtransport.tabular._encoder import TableEncoder
from fairtransport.tabular.column_plans import (
    ColumnPlan,
    ColumnRules,
    ColumnTally,
    encode_text,
    read_table,
    tally_column,
)
from fairtransport.tabular.label_columns import order_labels
from fairtransport.tabular.rows import ReasonKind

_FEATURE = "feature\0"  # before the names of columns of features, which may be groups as well
_MOST_LABELS = 1_000  # that are looked at to tell classes from numbers
_LEAK_ROWS = 5_000  # of each part that are tested for columns that give the label away


class Tallies(NamedTuple):
    """Contents of parts of a table: columns of features and strata, labels, rows that are set aside, missing groups."""

    columns: dict[str, ColumnTally]
    labels: ColumnTally
    set_aside: Counter[ReasonKind]
    missing: Counter[str]

    def merged(self, other: Tallies) -> Tallies:
        """Return what both contain."""
        columns = {name: tally.merged(other.columns[name]) for name, tally in self.columns.items()}
        set_aside, missing = self.set_aside + other.set_aside, self.missing + other.missing
        return Tallies(columns, self.labels.merged(other.labels), set_aside, missing)


class _RawRows(NamedTuple):
    """Raw rows of one part: their columns, and which of them have a label and a group."""

    columns: dict[str, Any]
    labels: Any
    kept: Bools
    set_aside: dict[ReasonKind, Bools]


def _read_rows(rows: Any, model: Any) -> _RawRows:
    columns = read_table(_as_table(rows))
    if hasattr(model, "classes_") or model.task == "regression":
        labels, has_label = model.read_labels(columns[model.label])
    else:
        labels = encode_text(columns[model.label], model.label)[1]
        has_label = labels >= 0
    return _RawRows(columns, labels, *model.usable_rows(columns, has_label))


def _tally(rows: Any, model: Any, names: Sequence[str], rules: ColumnRules) -> Tallies:
    raw = _read_rows(rows, model)
    columns = {name: take_rows(raw.columns[name], np.flatnonzero(raw.kept)) for name in names}
    tallies = {n: tally_column(n, c, rules, categorical=n in model.categorical) for n, c in columns.items()}
    labels = tally_column(model.label, raw.columns[model.label], rules, categorical=model.task == "classification")
    set_aside = Counter({reason: int(which.sum()) for reason, which in raw.set_aside.items()})
    return Tallies(tallies, labels, set_aside, Counter(model.count_missing(raw.columns, raw.set_aside)))


@dataclass(frozen=True, eq=False)
class PlannedFeatures:
    """Columns of features encoded by the plans of an encoder: numbers first, then the indicators of categories."""

    plans: tuple[ColumnPlan, ...]
    decimal: str

    @property
    def n_numbers(self) -> int:
        """Number of columns of numbers."""
        return sum(plan.width for plan in self.plans if plan.kind != "words")

    @property
    def n_indicators(self) -> int:
        """Number of indicators."""
        return sum(plan.width for plan in self.plans if plan.kind == "words")

    def __call__(self, rows: Any) -> tuple[Floats, Ints | None]:
        """Return the numbers of each row, and of each column of categories the indicator that is 1, or -1."""
        numbers, codes, start = [np.zeros((rows.num_rows, 0))], [], 0
        for plan in self.plans:
            values, indices, *_ = plan.entries(rows.column(_FEATURE + plan.name), self.decimal)
            if plan.kind == "words":
                codes.append(np.where(values[:, 0] > 0.0, indices[:, 0] + start, -1))
                start += plan.width
            else:
                numbers.append(values)
        return np.hstack(numbers), np.column_stack(codes) if codes else None


@dataclass(frozen=True, eq=False)
class _Prepared:
    """Applies ``work`` to usable rows only: labels as numbers, groups and strata as a model of raw tables has them."""

    model: Any
    names: tuple[str, ...]
    work: Callable[[Any], Any]

    def __call__(self, rows: Any) -> Any:
        arrow, model, raw = load_extra("pyarrow"), self.model, _read_rows(rows, self.model)
        chosen = np.flatnonzero(raw.kept)
        text = {**model.groups_of(raw.columns, raw.kept), **(model.strata_of(raw.columns, raw.kept) or {})}
        columns = {}
        for name in self.names:
            if name.startswith(_FEATURE):
                columns[name] = take_rows(raw.columns[name.removeprefix(_FEATURE)], chosen)
            elif name == model.label:
                columns[name] = raw.labels[chosen]
            else:
                kind = arrow.float64() if name in model.numeric_strata_ else arrow.string()
                columns[name] = arrow.array(text[name].tolist(), kind, from_pandas=True)
        return self.work(arrow.table(columns))


class _MappedParts(RawParts):
    """The raw parts of another source, of which each is changed before it is used."""

    def __init__(self, source: RawParts) -> None:
        self._source, self.is_remote = source, source.is_remote

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        return self._source.names

    @abstractmethod
    def _mapped(self, work: Callable[[Any], Any], names: Sequence[str]) -> tuple[Callable[[Any], Any], Sequence[str]]:
        """Return ``work`` of changed parts, and the columns that it needs."""

    def summaries(self, work: Callable[[Any], Any], names: Sequence[str]) -> Iterable[Any]:
        """Return ``work`` of each part."""
        return self._source.summaries(*self._mapped(work, names))

    def encoded(self, work: Callable[[Any], EncodedRows], names: Sequence[str]) -> Partitions:
        """Return the parts encoded."""
        return self._source.encoded(*self._mapped(work, names))


class _PreparedParts(_MappedParts):
    """Parts with the rows and columns that training uses."""

    def __init__(self, source: RawParts, model: Any) -> None:
        super().__init__(source)
        self._model = model

    def _mapped(self, work: Callable[[Any], Any], names: Sequence[str]) -> tuple[Callable[[Any], Any], Sequence[str]]:
        needed = (self._model.label, *self._model.group_columns, *self._model.strata)
        raw = dict.fromkeys((*needed, *(name.removeprefix(_FEATURE) for name in names)))
        return _Prepared(self._model, tuple(names), work), tuple(raw)


def _leaking(rows: Any, model: Any) -> list[str] | None:
    """Return the columns of a part that give the label away; None where it has too few rows to say."""
    some = rows.take(np.arange(0, rows.num_rows, max(1, rows.num_rows // _LEAK_ROWS)))
    columns = {name: some.column(_FEATURE + name) for name in model.encoder_.names}
    return model.leaks(model.encoder_.transform(columns), some.column(model.label).to_numpy()) if len(some) else None


def fit_parts(model: Any, source: RawParts, checkpoint: str | os.PathLike[str] | None) -> None:
    """Fit the encoder and the estimator of a model of raw tables to a table whose rows stay where they are."""
    estimator: Any = clone(model.candidates[""]) if len(model.candidates) == 1 and "" in model.candidates else None
    is_blind = isinstance(estimator, (BlindRepairClassifier, BlindRepairRegressor))
    if not is_blind and not hasattr(estimator, "fit_parts"):
        kind = "several estimators" if estimator is None else type(estimator).__name__
        raise ValueError(
            f"Training {kind} needs all rows in memory, and this table is too large or stays on workers: of such "
            "tables, TransportClassifier and TransportRegressor can be trained, and BlindRepairClassifier and "
            "BlindRepairRegressor of linear models."
        )
    if is_blind and checkpoint is not None:
        raise ValueError("Blind repair has no checkpoint: leave it out.")
    if is_blind and model.max_disparity is not None:
        raise ValueError("Of a table that is not in memory, give max_disparity to the BlindRepair of the estimator.")
    if model.max_disparity is not None:
        estimator.set_params(max_disparity=model.max_disparity)
    not_features = {model.label, *model.drop, *(() if model.aware else model.group_columns)}
    features = tuple(name for name in source.names if name not in not_features)
    if not features:
        raise ValueError("No column is left for the features: all are labels, groups or dropped.")
    for name in [name for name in vars(model) if name.endswith("_")]:
        delattr(model, name)
    categorical = tuple(name for name in model.categorical if name in features)
    encoder = TableEncoder(categorical=categorical, decimal=model.decimal, sparse_output=True)
    names = tuple(dict.fromkeys((*features, *model.strata)))
    tally = partial(_tally, model=model, names=names, rules=encoder.rules())
    needed = tuple(dict.fromkeys((model.label, *model.group_columns, *names)))
    tallies: Tallies | None = None
    for part in source.summaries(tally, needed):
        tallies = part if tallies is None else tallies.merged(part)
    if tallies is None:
        raise ValueError("The table has no rows.")
    _read_tallies(model, tallies)
    model.encoder_ = encoder.fit_tallies({name: tallies.columns[name] for name in features})
    planned = PlannedFeatures(tuple(encoder.plans_), model.decimal)
    used = tuple(_FEATURE + plan.name for plan in planned.plans)
    columns = TableColumns(
        used, model.label, model.group_columns, tuple(model.strata),
        classifies=model.task == "classification", encoder=planned,
    )  # fmt: skip
    rows = _PreparedParts(source, model)
    leaks = rows.summaries(partial(_leaking, model=model), (*used, model.label))
    found = [names for names in leaks if names is not None]
    model.set_leaking([name for name in encoder.names if found and all(name in names for names in found)])
    model.estimator_ = (
        _repair_blindly(estimator, rows, columns) if is_blind else estimator.fit_parts(rows, columns, checkpoint)
    )


def _repair_blindly(estimator: Any, rows: RawParts, columns: TableColumns) -> Any:
    """Fit both models of a blind repair where the rows are, and its map to counts of their predictions."""
    found = predict_parts(
        rows, columns, estimator=estimator.estimator, group_estimator=estimator.group_estimator,
        criterion=estimator.criterion, groups=policy_of(estimator), owner=type(estimator).__name__,
    )  # fmt: skip
    return estimator.fit_predictions(
        found.model, found.group_model, predicted=found.predicted, probabilities=found.probabilities,
        y=found.outcomes, groups=found.groups, strata=found.strata, counts=found.counts, half=found.half,
    )  # fmt: skip


def _read_tallies(model: Any, tallies: Tallies) -> None:
    """Store what the first reading says: labels, rows that are set aside and numeric strata."""
    if model.policy.missing == "error" and tallies.set_aside[ReasonKind.NO_GROUP]:
        raise missing_values_error({name: tallies.missing[name] for name in model.group_columns})
    model.set_aside_ = {str(reason): count for reason, count in tallies.set_aside.items()}
    if not next(iter(tallies.columns.values())).n_rows:
        reasons = ", ".join(f"{rows:,} have {reason}" for reason, rows in model.set_aside_.items())
        raise ValueError(
            f"None of the rows has a label and a group: {reasons}." if reasons else "The table has no rows."
        )
    if model.task == "classification":
        missing = np.full(tallies.labels.n_rows - tallies.labels.n_present, -1)
        model.classes_ = order_labels(sorted(tallies.labels.counts), missing, model.label, model.pos_label)
    rules = ColumnRules(decimal=model.decimal)
    model.numeric_strata_ = [name for name in model.strata if tallies.columns[name].is_number(rules)]


# Held-out rows, and what a column of labels contains, of tables that stay where they are.


class TrainingParts(_MappedParts):
    """Parts without every ``step``-th of their rows, which are held out; all rows for 0."""

    def __init__(self, source: RawParts, step: int) -> None:
        super().__init__(source)
        self._step = step

    def _mapped(self, work: Callable[[Any], Any], names: Sequence[str]) -> tuple[Callable[[Any], Any], Sequence[str]]:
        return partial(_without, step=self._step, work=work), names

    def held_out(self) -> Any:
        """Return the held-out rows as an Arrow table."""
        parts = [*self._source.summaries(partial(_every, step=self._step), self.names)]
        return load_extra("pyarrow").concat_tables(parts, promote_options="permissive")


def _as_table(rows: Any) -> Any:
    arrow = load_extra("pyarrow")
    return arrow.Table.from_batches([rows]) if isinstance(rows, arrow.RecordBatch) else rows


def _without(rows: Any, step: int, work: Callable[[Any], Any]) -> Any:
    return work(rows.filter(np.arange(rows.num_rows) % step != 0) if step else rows)


def _every(rows: Any, step: int) -> Any:
    return _as_table(rows).take(np.arange(0, rows.num_rows, step))


def read_label(source: RawParts, label: str) -> tuple[NDArray[Any], int]:
    """Return the distinct labels of a table, of many only some, and the number of its rows."""
    words: set[str] = set()
    n_rows = 0
    for part, size in source.summaries(partial(_some_labels, label=label), (label,)):
        words.update(part)
        n_rows += size
    return np.array(sorted(words)[:_MOST_LABELS], dtype=object), n_rows


def _some_labels(rows: Any, label: str) -> tuple[list[str], int]:
    words, codes = encode_text(rows.column(label), label)
    return words[:_MOST_LABELS], len(codes)
