"""The model that is served: loaded from its file, and loaded again when the file changes."""

from __future__ import annotations

import hashlib
import threading
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fairtransport._validation.error_redaction import redacted
from fairtransport.persistence import load
from fairtransport.serving._groups import GroupReader
from fairtransport.serving.bodies import WantedColumns
from fairtransport.tabular import RowScorer

if TYPE_CHECKING:
    from pathlib import Path

    from fairtransport.serving.settings import ServerSettings
    from fairtransport.tabular import InputColumn

__all__ = ["ModelFile", "ServedModel"]


@dataclass(frozen=True)
class ServedModel:
    """One version of the model.

    Attributes
    ----------
    scorer : RowScorer
    version : str
        The beginning of the SHA-256 digest of the file.
    loaded : str
        When it was loaded, in UTC.
    wanted : WantedColumns
        Columns to read from a request.
    groups : GroupReader or None
        Reader of the groups of rows; None for a model that knows none.
    """

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
    """The file of the model, and the version of it that is served.

    Parameters
    ----------
    settings : ServerSettings

    Attributes
    ----------
    current : ServedModel
    failure : str or None
        Why the latest version of the file could not be loaded; None if it is the one that is served.
    """

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
                safe = redacted(error)
                reason = safe.strerror if isinstance(safe, OSError) else str(safe)
                self._identity, self.failure = identity, reason or type(error).__name__
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
