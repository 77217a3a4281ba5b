"""Counts of requests, rows and scores, of one process or of several that share a folder.

Each process adds to a part of its own, so that they need no common lock; whoever is asked for the figures adds the
parts up. With a folder the parts are memory-mapped files: what a process has counted remains when it is killed, and the
process that replaces it goes on.
"""

from __future__ import annotations

import mmap
import os
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairtransport._arrays import Floats, Ints
from fairtransport.groups import MIN_SHOWN_ROWS
from fairtransport.tabular.rows import REPLACED, ReasonKind

if TYPE_CHECKING:
    from fairtransport.serving._answers import Answer


#: Upper bounds, in seconds, of the histogram of latencies; the last one is infinite.
LATENCY_BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
#: Statuses of responses that are counted; others are counted as the last one.
STATUSES = (200, 400, 408, 413, 415, 422, 500, 503, 504, 0)
#: Kinds of reasons for which a row has no score.
REASONS = tuple(kind for kind in ReasonKind if kind != ReasonKind.NO_LABEL)
#: Bins of the histograms of scores in [0, 1].
SCORE_BINS = 50


@dataclass(frozen=True)
class SharedCounts:
    """Where the processes of a server count."""

    folder: Path
    n_processes: int
    process: int


def _parts(size: int, shared: SharedCounts | None, name: str) -> tuple[Floats, Floats]:
    """Return the counts of all processes, of shape (n_processes, size), and the part of this one."""
    if shared is None:
        array = np.zeros((1, size))
        return array, array[0]
    handle = os.open(shared.folder / f"{name}.counts", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.ftruncate(handle, shared.n_processes * size * 8)
        mapped = mmap.mmap(handle, 0)
    finally:
        os.close(handle)
    array = np.frombuffer(mapped, dtype=np.float64).reshape(shared.n_processes, size)
    return array, array[shared.process]


class RequestCounts:
    """Counts of requests and rows."""

    def __init__(self, shared: SharedCounts | None = None) -> None:
        self._sizes = (len(STATUSES), len(LATENCY_BOUNDS) + 1, 2, len(REASONS), len(REPLACED))
        self._all, own = _parts(sum(self._sizes), shared, "requests")
        self._by_status, self._by_latency, self._sums, self._by_reason, self._replaced = self._split(own)
        self._bounds = np.array(LATENCY_BOUNDS)
        self._status_index = {status: index for index, status in enumerate(STATUSES)}

    def _split(self, array: Floats) -> list[Floats]:
        return np.split(array, np.cumsum(self._sizes)[:-1])

    def add(self, status: int, seconds: float) -> None:
        self._by_status[self._status_index.get(status, -1)] += 1.0
        self._by_latency[int(self._bounds.searchsorted(seconds))] += 1.0
        self._sums[0] += seconds

    def add_answer(self, answer: Answer) -> None:
        self._sums[1] += answer.scores.size
        for reason, number in Counter(reason.kind for reason in answer.reasons.values()).items():
            self._by_reason[REASONS.index(reason)] += number
        for kind, cells in answer.replaced.items():
            self._replaced[[*REPLACED].index(kind)] += sum(cells.values())

    def total(self) -> dict[str, Floats]:
        """Return the counts of all processes."""
        total = self._split(self._all.sum(axis=0))
        return dict(zip(("statuses", "latencies", "sums", "reasons", "replaced"), total, strict=True))


class ScoreCounts:
    """Histograms of the scores of each group."""

    def __init__(self, names: Sequence[str], shared: SharedCounts | None = None, version: str = "") -> None:
        self.names = names
        self._shape = (len(names), SCORE_BINS + 1)  # and the sum of the scores
        self._all, own = _parts(len(names) * (SCORE_BINS + 1), shared, f"scores-{version}")
        self._own = own.reshape(self._shape)
        self._withheld, self._mutex = np.zeros(self._shape), threading.Lock()  # requests are scored in threads

    def add(self, scores: Floats, codes: Ints) -> None:
        """Count scores; ``codes`` has a column for each membership, where the number of groups means none."""
        n_groups = self._shape[0]
        bins, added = np.clip((scores * SCORE_BINS).astype(np.int64), 0, SCORE_BINS - 1), np.zeros(self._shape)
        for column in codes.T:
            inside = column < n_groups
            index = column[inside] * (SCORE_BINS + 1) + bins[inside]
            added += np.bincount(index, minlength=self._own.size).reshape(self._shape)
            added[:, -1] += np.bincount(column[inside], weights=scores[inside], minlength=n_groups)
        with self._mutex:
            self._withheld += added
            shown = self._withheld[:, :-1].sum(axis=1) >= MIN_SHOWN_ROWS
            self._own[shown] += self._withheld[shown]
            self._withheld[shown] = 0.0

    def total(self) -> tuple[Floats, Floats]:
        """Return the histograms of all processes, of shape (n_groups, n_bins), and the sums of the scores."""
        whole = self._all.sum(axis=0).reshape(self._shape)
        return whole[:, :-1], whole[:, -1]
