"""Scores for requests, by the model as it is in its file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from anyio import to_thread

from fairtransport.serving._answers import Answer, merge
from fairtransport.serving._counters import ScoreCounts
from fairtransport.serving._models import ModelFile
from fairtransport.serving.bodies import read_rows

if TYPE_CHECKING:
    from fairtransport.serving._counters import RequestCounts, SharedCounts
    from fairtransport.serving._models import ServedModel
    from fairtransport.serving.settings import ServerSettings

__all__ = ["FileScoring"]

_SMALL_BODY = 2**16  # bytes up to which a request is answered in the event loop; a thread costs more than it saves


class FileScoring:
    """Scoring by a model file, which is loaded again when it changes.

    Parameters
    ----------
    settings : ServerSettings
    requests : RequestCounts
    shared : SharedCounts, optional
        For one of several processes.
    """

    def __init__(self, settings: ServerSettings, requests: RequestCounts, shared: SharedCounts | None = None) -> None:
        self._settings, self._requests, self._shared = settings, requests, shared
        self._file = ModelFile(settings)
        self._scores = self._new_counts()

    @property
    def model(self) -> ServedModel:
        """The version of the model that is served."""
        return self._file.current

    @property
    def problems(self) -> list[str]:
        """What an operator should know; the server answers nevertheless."""
        failure = self._file.failure
        return [] if failure is None else [f"The new model file could not be loaded; the old one is served. {failure}"]

    @property
    def ready(self) -> bool:
        """Whether requests can be answered."""
        return True

    def reload(self) -> bool:
        """Load the model file if it has changed; return whether another version is served."""
        changed = self._file.reload()
        if changed:
            self._scores = self._new_counts()
        return changed

    def _new_counts(self) -> tuple[ServedModel, ScoreCounts | None]:
        model = self._file.current
        n_groups = 0 if model.groups is None else len(model.groups.names)
        return model, ScoreCounts(n_groups, self._shared, model.version) if n_groups else None

    async def score(self, body: bytes, file_format: str, key: str | None) -> Answer:  # noqa: ARG002 - nothing to repeat
        """Return the scores of the rows of a body."""
        if len(body) <= _SMALL_BODY:
            return self._score(body, file_format)
        return await to_thread.run_sync(self._score, body, file_format, abandon_on_cancel=True)

    def _score(self, body: bytes, file_format: str) -> Answer:
        model, counts = self._scores
        rows = read_rows(body, file_format, model.wanted, self._settings.max_rows)
        if len(rows.rejected) == rows.n_rows:
            answer = Answer(np.full(rows.n_rows, np.nan), rows.rejected, model.version)
        else:
            result = model.scorer.score_rows(rows.table)
            scores, reasons = merge(rows.n_rows, rows.rejected, result.scores, result.reasons)
            answer = Answer(scores, reasons, model.version)
            self._requests.add_replaced(result.counts)
            if counts is not None and model.groups is not None:
                codes = model.groups.codes(rows.table)
                if codes is not None:
                    scored = ~np.isnan(result.scores)
                    counts.add(result.scores[scored], codes[scored])
        self._requests.add_rows(rows.n_rows, answer.reasons.values())
        return answer

    def state(self) -> dict[str, Any]:
        """Return what `Metrics` shows."""
        model, counts = self._scores
        return {
            "version": model.version,
            "loaded": self._file.failure is None,
            "task": model.scorer.task,
            "groups": () if model.groups is None else model.groups.names,
            "scores": counts,
            "stream": None,
        }

    def close(self) -> None:
        """Do nothing: there is nothing to store."""
