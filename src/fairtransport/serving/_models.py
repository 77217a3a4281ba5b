"""The model that is served, loaded again when its file changes, and the groups of its rows."""

from __future__ import annotations

import hashlib
import threading
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._sklearn import last_step
from fairtransport._validation import describe_error
from fairtransport.persistence import load
from fairtransport.serving.bodies import WantedColumns
from fairtransport.tabular import InputColumn, RowScorer, TableModel
from fairtransport.tabular.column_plans import group_values, match_column, normalize_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.serving.settings import ServerSettings

# Groups of the rows of requests, for the figures by group.


class GroupReader:
    """Finder of the groups of rows."""

    def __init__(self, groups: Groups, columns: Sequence[str], *, as_text: bool) -> None:
        self._groups, self._as_text = groups, as_text
        self.columns, self.names = tuple(columns), tuple(groups.names)
        self._codes: dict[tuple[Any, ...], tuple[int, ...]] = {}  # of known values, so it cannot grow without limit

    @classmethod
    def of_model(cls, model: Any) -> GroupReader | None:
        """Return the reader for a model; None if it knows no groups, or not the columns that define them."""
        if isinstance(model, TableModel):
            groups = model.known_groups
            return None if groups is None else cls(groups, model.sensitive_features, as_text=True)
        last = last_step(model)[1]
        holder = vars(last).get("repair_") or last
        groups = getattr(holder, "groups_", None)
        if groups is None or any(name.startswith("sensitive_feature_") for name in groups.columns):
            return None
        return cls(groups, groups.columns, as_text=False)

    def inputs(self) -> list[InputColumn]:
        """Return the sensitive columns, with the values that the model knows."""
        columns = []
        for index, name in enumerate(self.columns):
            values = dict.fromkeys(value for value in group_values(self._groups, index) if value is not None)
            is_text = not all(isinstance(value, (int, float)) for value in values)
            columns.append(InputColumn(name, "text" if is_text else "number", tuple(values)))
        return columns

    def codes(self, table: Any) -> NDArray[np.int64] | None:
        """Return the groups of each row, one column for each membership; ``len(names)`` means none.

        None if the table lacks a sensitive column.
        """
        names = table.column_names if hasattr(table, "column_names") else table
        if any(name not in names for name in self.columns):
            return None
        values = [*zip(*(_values(table[name]) for name in self.columns), strict=True)]
        unknown = {*values} - self._codes.keys()
        found = self._codes if not unknown else {**self._codes, **self._find([*unknown])}
        return np.array([found[value] for value in values], dtype=np.int64).reshape(len(values), -1)

    def _find(self, values: list[tuple[Any, ...]]) -> dict[tuple[Any, ...], tuple[int, ...]]:
        """Return the groups of distinct values, and remember known ones."""
        table = {}
        for index, name in enumerate(self._groups.columns):
            column = np.empty(len(values), dtype=object)
            column[:] = [value[index] for value in values]
            if self._as_text:
                column[:] = [normalize_text(value) or "missing" for value in column]
            table[name] = match_column(column, name, group_values(self._groups, index))[0]
        memberships = self._groups.encode(table, unknown_group="pooled").memberships
        found = {value: tuple(int(codes[n]) for codes in memberships) for n, value in enumerate(values)}
        none = len(self.names)
        self._codes |= {value: codes for value, codes in found.items() if none not in codes}
        return found


def _values(column: Any) -> list[Any]:
    return column.to_pylist() if hasattr(column, "to_pylist") else column.tolist()


@dataclass(frozen=True)
class ServedModel:
    """One version of the model."""

    scorer: RowScorer
    version: str
    loaded: str
    wanted: WantedColumns
    groups: GroupReader | None

    @classmethod
    def load(cls, settings: ServerSettings) -> ServedModel:
        """Load the model file; raise as `fairtransport.load` does."""
        version = _digest(settings.model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other versions of scikit-learn; `describe` lists them
            model = load(settings.model, verify=settings.verify)
        if _digest(settings.model) != version:
            raise ValueError("The file was replaced while it was read.")
        scorer = RowScorer(
            model, unknown_group=settings.unknown_group, features=settings.features, score=settings.score
        )
        groups = GroupReader.of_model(scorer.estimator_)
        needed = tuple(column.name for column in scorer.columns)
        wanted = WantedColumns(
            needed,
            numbers=frozenset(column.name for column in scorer.columns if column.kind == "number"),
            optional=() if groups is None else tuple(name for name in groups.columns if name not in needed),
        )
        loaded = cls(scorer, version, datetime.now(UTC).isoformat(timespec="seconds"), wanted, groups)
        loaded.warm_up()
        return loaded

    @property
    def inputs(self) -> list[InputColumn]:
        """Columns that a request must have, and then those that it may have."""
        known = {column.name: column for column in self.scorer.columns}
        groups = {} if self.groups is None else {column.name: column for column in self.groups.inputs()}
        return [known.get(name) or groups[name] for name in (*self.wanted.needed, *self.wanted.optional)]

    def warm_up(self) -> None:
        """Score one row, so that the first request does not wait for compilation."""
        self.scorer.score_rows({name: [value] for name, value in self.example().items()})

    def example(self) -> dict[str, Any]:
        """Return an invented row with the columns of the model."""
        return {column.name: _example_value(column) for column in self.inputs}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]


def _example_value(column: Any) -> Any:
    values = [value for value in column.categories or () if value is not None and value == value]  # noqa: PLR0124
    if values:
        return values[0]
    return {"number": 1.0, "date": "2026-01-31"}.get(column.kind, "text")


class ModelFile:
    """The file of the model, and the version of it that is served."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._identity = _identity_of(settings.model)
        self.current = ServedModel.load(settings)
        self.failure: str | None = None

    def reload(self, *, force: bool = False) -> bool:
        """Load the file if it has changed, and return whether a new version is served.

        If the file cannot be loaded, the old version stays and ``failure`` says why.
        """
        with self._lock:
            identity = _identity_of(self._settings.model)
            if identity == self._identity and not force:
                return False
            try:
                model = ServedModel.load(self._settings)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with the file, the old version is served
                reason = error.strerror if isinstance(error, OSError) else None
                self._identity, self.failure = identity, reason or describe_error(error)
                return False
            self._identity, self.failure = identity, None
            changed = model.version != self.current.version
            self.current = model
            return changed


def _identity_of(path: Path) -> tuple[int, ...] | None:
    """Return what changes when a file is replaced or written; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
