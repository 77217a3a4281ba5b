"""The model that is served, and the groups of its rows."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from fairtransport._arrays import Ints
from fairtransport._columns import default_names
from fairtransport.persistence import load
from fairtransport.serving.settings import ServerSettings
from fairtransport.tabular import InputColumn, RowScorer
from fairtransport.tabular.cells import WantedColumns, object_array

_MAX_KNOWN, _MAX_TEXT = 1000, 100  # spellings of groups that are remembered, and their characters


@dataclass(frozen=True)
class ServedModel:
    """One version of the model."""

    scorer: RowScorer
    version: str
    loaded: str
    wanted: WantedColumns
    _memberships: dict[tuple[str, ...], Ints] = field(default_factory=dict, repr=False)

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
        needed = tuple(column.name for column in scorer.columns)
        groups = () if _are_unnamed(scorer.group_columns) else scorer.group_columns
        wanted = WantedColumns(
            needed,
            tuple(name for name in groups if name not in needed),
            frozenset(column.name for column in (*scorer.columns, *scorer.group_inputs) if column.kind == "number"),
        )
        loaded = cls(scorer, version, datetime.now(UTC).isoformat(timespec="seconds"), wanted)
        scorer.score_rows({name: [value] for name, value in loaded.example().items()})  # compiled before a request
        return loaded

    @property
    def inputs(self) -> list[InputColumn]:
        """Columns that a request must have, and then those that it may have."""
        known = {column.name: column for column in (*self.scorer.group_inputs, *self.scorer.columns)}
        return [known[name] for name in self.wanted.names]

    @property
    def group_names(self) -> tuple[str, ...]:
        """Names of the groups that the model knows; none if they were fitted without names of their columns."""
        groups = self.scorer.groups
        return () if groups is None or _are_unnamed(self.scorer.group_columns) else tuple(groups.names)

    def group_codes(self, columns: dict[str, Any]) -> Ints | None:
        """Return the groups of each row, one column for each membership; ``len(group_names)`` means none.

        None if a sensitive column is absent.
        """
        names = self.scorer.group_columns
        if any(name not in columns for name in names):
            return None
        keys = [*zip(*(columns[name].tolist() for name in names), strict=True)]
        distinct = {*keys}
        known = self._memberships
        if not distinct <= known.keys():
            short = all(isinstance(cell, str) and len(cell) <= _MAX_TEXT for key in distinct for cell in key)
            if not short or len(known) + len(distinct) > _MAX_KNOWN:
                return self._encode(columns)
            rows = [*distinct]
            found = self._encode({name: object_array([key[index] for key in rows]) for index, name in enumerate(names)})
            known.update(zip(rows, found, strict=True))
        return np.stack([known[key] for key in keys])

    def _encode(self, columns: dict[str, Any]) -> Ints:
        return np.stack(self.scorer.encode_groups(columns).memberships, axis=1).astype(np.int64)

    def example(self) -> dict[str, Any]:
        """Return an invented row with the columns of the model."""
        return {column.name: _example_value(column) for column in self.inputs}


def _are_unnamed(columns: Sequence[str]) -> bool:
    return tuple(columns) == default_names(len(columns))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]


def _example_value(column: Any) -> Any:
    values = [value for value in column.categories or () if value is not None and value == value]  # noqa: PLR0124
    if values:
        return values[0]
    return {"number": 1.0, "date": "2026-01-31"}.get(column.kind, "text")
