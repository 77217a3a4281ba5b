"""The result of reproducing one table or figure: figures, numbers, checked claims, and cached parts."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairtransport import __version__
from fairtransport._arrays import Floats
from fairtransport._progress import progress
from fairtransport._warnings import FairnessWarning
from fairtransport.storage import write_atomically


@dataclass(frozen=True)
class Claim:
    """One claim of the paper, checked: ``verdict`` is "agrees", "better" or "differs"."""

    text: str
    paper: str
    ours: str
    verdict: str
    reason: str = ""


def check(text: str, ours: str, reason: str = "", *, holds: bool | np.bool_, paper: str = "") -> Claim:
    """Return a claim of the paper that our figures agree with, or not."""
    return Claim(text, paper, ours, "agrees" if holds else "differs", reason)


@dataclass(frozen=True, eq=False)
class Table:
    """The numbers behind a figure."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, records: Iterable[Mapping[str, Any]]) -> Table:
        """Return a table with a row for each record, all of which have the same keys."""
        rows = list(records)
        return cls(tuple(rows[0]), tuple(tuple(row.values()) for row in rows))

    def to_csv(self) -> str:
        """Return the table as CSV with a header."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return text.getvalue()


def bin_table(edges: Floats, columns: Mapping[str, Floats]) -> Table:
    """Return the percentages in the bins of histograms, one column for each."""
    ends = np.round([edges[:-1], edges[1:]], 4).tolist()
    shares = np.round(list(columns.values()), 3).tolist()
    return Table(("from", "to", *columns), tuple(zip(*ends, *shares, strict=True)))


def shares_of(values: Floats, edges: Floats) -> Floats:
    """Return the percentage of the values in each bin."""
    return 100.0 * np.histogram(values, edges)[0] / values.size


def rounded(*values: float | np.floating[Any]) -> tuple[float, ...]:
    """Return numbers as tables have them."""
    return tuple(round(float(value), 5) for value in values)


SPREAD = ("wass1_mean", "wass1_min", "wass1_max", "error_mean", "error_min", "error_max")
"""The columns of `spread_of` Wass1 and the error."""


def spread_of(*measures: Floats) -> tuple[float, ...]:
    """Return mean, minimum and maximum over seeds of each measure."""
    return rounded(*(value for values in measures for value in (values.mean(), values.min(), values.max())))


@dataclass(frozen=True, eq=False)
class Finding:
    """One reproduced table or figure."""

    name: str
    title: str
    caption: str
    figures: Mapping[str, Any] = field(default_factory=dict)  # file stem -> matplotlib Figure
    tables: Mapping[str, Table] = field(default_factory=dict)  # file stem -> numbers
    shown: Mapping[str, Table] = field(default_factory=dict)  # short tables to print on the page
    claims: tuple[Claim, ...] = ()

    @property
    def short(self) -> str:
        """The title up to the colon."""
        return self.title.partition(":")[0]


# The warnings of training that reproducing the paper provokes on purpose.


@contextlib.contextmanager
def ignore_training_warnings() -> Iterator[None]:
    """Ignore what the tables and figures report anyway: what parity costs, and that training was interrupted.

    Python's filters belong to the whole process, so this is entered once, around all threads that train, and never
    inside one of them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        warnings.filterwarnings("ignore", message="Training was interrupted")
        yield


# Long computations in parts that run in parallel, can be interrupted, and are cached on disk.

Result = dict[str, "NDArray[Any]"]

# Increase this when results change while the version and the settings stay the same; cached results then expire.
_CACHE_VERSION = 2


class Stopped(Exception):  # noqa: N818 - nothing went wrong
    """Raised inside a part when the user has asked to stop."""


class Stop(threading.Event):
    """A request to stop, which parts check between two pieces of work."""

    def check(self) -> None:
        """Raise `Stopped` if a stop was requested."""
        if self.is_set():
            raise Stopped


@dataclass(frozen=True, eq=False)
class Part:
    """One piece of a long computation."""

    name: str
    settings: dict[str, Any]
    compute: Callable[[Stop], Result]
    cost: float = field(default=1.0)

    @property
    def digest(self) -> str:
        """Short hash of the name, the settings and the version of the package."""
        text = json.dumps(
            {"name": self.name, "version": [__version__, _CACHE_VERSION], **self.settings}, sort_keys=True
        )
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def path(self, folder: Path) -> Path:
        """Return the file that caches the result."""
        return folder / f"{self.name}-{self.digest}.npz"


def seeded_parts(
    name: str, settings: dict[str, Any], compute: Callable[[dict[str, Any], Stop], Result], *, n_seeds: int, cost: float
) -> list[Part]:
    """Return one part for each seed, which is the last of its settings and ends its name."""
    seeded = [{**settings, "seed": seed} for seed in range(n_seeds)]
    return [Part(f"{name}-seed{one['seed']}", one, partial(compute, one), cost) for one in seeded]


def seeded_results(results: Mapping[str, Result], name: str) -> list[Result]:
    """Return the results of all seeds of `seeded_parts`, in order."""
    names = takewhile(results.__contains__, (f"{name}-seed{seed}" for seed in count()))
    return [results[each] for each in names]


def stack_seeds(results: Mapping[str, Result], name: str) -> Result:
    """Return the results of all seeds as arrays whose first axis are the seeds."""
    runs = seeded_results(results, name)
    return {key: np.array([run[key] for run in runs]) for key in runs[0]}


def _load(path: Path) -> Result | None:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
        return None  # missing, truncated or damaged: compute it


def _save(path: Path, result: Result) -> None:
    file = io.BytesIO()
    np.savez(file, **result)  # type: ignore[arg-type]
    write_atomically(path, file.getvalue())


def run_parts(
    parts: Sequence[Part], *, folder: Path | None = None, n_jobs: int = 1, title: str = "computing", show: bool = False
) -> dict[str, Result]:
    """Compute all parts, except those whose results are cached."""
    done: dict[str, Result] = {}
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        done = {p.name: result for p in parts if (result := _load(p.path(folder))) is not None}
    todo = sorted((p for p in parts if p.name not in done), key=lambda p: -p.cost)
    stop = Stop()

    def compute(part: Part) -> Result:
        stop.check()
        result = {name: np.asarray(value) for name, value in part.compute(stop).items()}
        if folder is not None:
            _save(part.path(folder), result)
        return result

    costs = {p.name: p.cost for p in parts}
    total = sum(costs.values())
    with (
        ignore_training_warnings(),
        progress(title, 1000, show=show) as bar,
        ThreadPoolExecutor(max_workers=max(1, n_jobs)) as pool,
    ):
        bar.advance(int(1000 * sum(costs[n] for n in done) / total))
        running: dict[Future[Result], Part] = {pool.submit(compute, part): part for part in todo}
        try:
            while running:
                finished, _ = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in finished:
                    part = running.pop(future)
                    done[part.name] = future.result()
                    bar.advance(int(1000 * sum(costs[n] for n in done) / total), f"{len(done)}/{len(parts)} parts")
        except BaseException:
            stop.set()
            for future in running:
                future.cancel()
            raise
    return {p.name: done[p.name] for p in parts}
