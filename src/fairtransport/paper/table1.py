"""Table 1 of the paper: four metrics of every method on every data set, ours beside the published figures."""

from __future__ import annotations

import re
import threading
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from fairtransport._validation import check_choice, check_count
from fairtransport.paper._cached_parts import Part, run_parts
from fairtransport.paper._methods import fit_method, measure, prepare, settings_of, shuffled_floor
from fairtransport.paper._published import METRICS, published_value
from fairtransport.paper._table1_claims import table1_claims
from fairtransport.paper._table1_data import NOISE_FLOOR, Table1, Table1Row
from fairtransport.paper.finding import Finding, Table
from fairtransport.paper.splits import adult_split, communities_splits, german_splits

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from fairtransport.paper._cached_parts import Result, Stop
    from fairtransport.paper._methods import Problem
    from fairtransport.paper.splits import Split

__all__ = ["DATASETS", "TABLE_METHODS", "Table1", "Table1Row", "assemble", "parts", "run_table1"]

TABLE_METHODS = ("LR", "DPP", "DPP (W2)", "DOT", "COT (paper)", "COT (anchor)")
_DETERMINISTIC = ("LR", "DPP", "DPP (W2)")

# Runs of each data set: seeds of the training on Adult, whose split is given, and splits elsewhere.
_RUNS = MappingProxyType(
    {"Adult": 5, "German": 20, "Communities (crossed)": 10, "Communities (each)": 10, "Adult (binned)": 5}
)
_QUICK_RUNS = MappingProxyType(
    {"Adult": 1, "German": 3, "Communities (crossed)": 1, "Communities (each)": 1, "Adult (binned)": 1}
)

DATASETS = ("Adult", "German", "Communities (crossed)", "Communities (each)")
"""The paper's data sets, Communities and Crime in both readings of its eight groups."""


def run_table1(
    *,
    quick: bool = False,
    n_seeds: int | None = None,
    n_jobs: int = 1,
    datasets: Collection[str] | None = None,
    folder: Path | None = None,
    show: bool = False,
) -> Table1:
    """Compute Table 1.

    Parameters
    ----------
    quick : bool, default=False
        Few runs and a tenth of the updates: seconds instead of minutes, and rougher figures.
    n_seeds : int, optional
        Runs of each data set: seeds of the training on Adult, splits on the others. By default 5 on Adult, 20
        on German Credit and 10 on Communities and Crime.
    n_jobs : int, default=1
        Number of trainings that run at once, as threads: the compiled loops release the interpreter lock. The
        figures do not depend on it.
    datasets : collection of str, optional
        Some of `DATASETS`, or ``"Adult (binned)"``, where logistic regression has a lower error than in the paper (see
        `fairtransport.paper.splits.adult_split`); by default all of `DATASETS`.
    folder : Path, optional
        Keep finished trainings here, so that an interrupted run resumes where it stopped.
    show : bool, default=False
        Show a progress bar with the time left.

    Returns
    -------
    Table1
    """
    check_count(n_jobs, name="n_jobs")
    chosen = DATASETS if datasets is None else tuple(datasets)
    for dataset in chosen:
        check_choice(dataset, _RUNS, name="datasets")
    jobs = _jobs(chosen, quick=quick, n_seeds=n_seeds)
    results = run_parts([job.part for job in jobs], folder=folder, n_jobs=n_jobs, title="Table 1", show=show)
    return _table(jobs, results, quick=quick)


def parts(*, quick: bool) -> list[Part]:
    """Return one part for each training of the whole table."""
    return [job.part for job in _jobs(DATASETS, quick=quick)]


def assemble(results: Mapping[str, Result], *, quick: bool) -> Finding:
    """Build the table from the trainings' results and check the paper's claims about it."""
    table = _table(_jobs(DATASETS, quick=quick), results, quick=quick)
    return Finding(
        name="table1",
        title="Table 1: four metrics on three data sets",
        caption=table.caption,
        tables={"table1": Table(tuple(asdict(table.rows[0])), tuple(tuple(asdict(r).values()) for r in table.rows))},
        shown={"table1": _shown(table)},
        claims=table1_claims(table),
    )


_COSTS = {"DOT": 5.0, "COT (paper)": 1.0, "COT (anchor)": 3.0}  # rough seconds, to estimate the time left


class _Problems:
    """The problems of one data set, prepared once by whichever training needs them first."""

    def __init__(self, dataset: str, n_runs: int) -> None:
        self.dataset, self.n_runs = dataset, n_runs
        self._lock = threading.Lock()
        self._problems: tuple[Problem, ...] = ()

    def __getitem__(self, run: int) -> Problem:
        with self._lock:
            if not self._problems:
                self._problems = tuple(prepare(split) for split in _splits(self.dataset, self.n_runs))
        return self._problems[min(run, len(self._problems) - 1)]


@dataclass(frozen=True, eq=False)
class _Job:
    """One method trained on one split with one seed, or the noise floor of one split."""

    problems: _Problems
    method: str
    run: int
    quick: bool

    def compute(self, stop: Stop) -> Result:
        stop.check()
        problem = self.problems[self.run]
        if self.method == NOISE_FLOOR:
            metrics = shuffled_floor(fit_method("DPP", problem), problem)
        else:
            metrics = measure(fit_method(self.method, problem, random_state=self.run, quick=self.quick), problem)
        return {name: np.array(value) for name, value in metrics.items()}

    @property
    def part(self) -> Part:
        dataset = self.problems.dataset
        settings = {
            "dataset": dataset,
            "method": self.method,
            "run": self.run,
            "n_runs": self.problems.n_runs,
            "quick": self.quick,
            "settings": repr(sorted(settings_of(self.method, dataset).items())),
        }
        name = re.sub(r"[^a-z0-9]+", "-", f"table1 {dataset} {self.method} {self.run}".lower())
        return Part(name, settings, self.compute, cost=_COSTS.get(self.method, 0.3))


def _splits(dataset: str, n_runs: int) -> tuple[Split, ...]:
    if dataset.startswith("Adult"):
        return (adult_split("binned" if "binned" in dataset else "standard"),)
    if dataset == "German":
        return german_splits(n_runs)
    return communities_splits(n_runs, grouping=dataset.partition("(")[2].rstrip(")"))


def _jobs(datasets: Collection[str], *, quick: bool, n_seeds: int | None = None) -> list[_Job]:
    runs = dict(_QUICK_RUNS if quick else _RUNS)
    if n_seeds is not None:
        runs = dict.fromkeys(runs, check_count(n_seeds, name="n_seeds"))
    jobs = []
    for dataset in datasets:
        problems = _Problems(dataset, runs[dataset])
        for method in (*TABLE_METHODS, NOISE_FLOOR):
            # Adult has one split, on which repeated runs of a deterministic method would be equal.
            once = dataset.startswith("Adult") and method in (*_DETERMINISTIC, NOISE_FLOOR)
            jobs += [_Job(problems, method, run, quick) for run in range(1 if once else runs[dataset])]
    return jobs


def _table(jobs: Sequence[_Job], results: Mapping[str, Result], *, quick: bool) -> Table1:
    measured: dict[tuple[str, str], list[Result]] = {}
    for job in jobs:
        measured.setdefault((job.problems.dataset, job.method), []).append(results[job.part.name])
    rows = []
    for (dataset, method), runs in measured.items():
        if method == NOISE_FLOOR:
            continue
        for metric, name in METRICS.items():
            values = np.array([float(run[name]) for run in runs])
            floors = [float(run[name]) for run in measured[dataset, NOISE_FLOOR] if name in run]
            spread = float(values.std(ddof=1)) if values.size > 1 else 0.0
            published = published_value(dataset, method, metric)
            floor = float(np.mean(floors)) if floors else None
            mean = float(values.mean())
            rows.append(Table1Row(dataset, method, metric, mean, spread, values.size, published, floor))
    return Table1(tuple(rows), quick=quick)


def _shown(table: Table1) -> Table:
    rows = tuple(
        (dataset, method, *(cell.replace("**", "") for cell in cells))
        for dataset in table.datasets
        for method, cells, _ in table.lines(dataset)
    )
    return Table(("data", "method", *METRICS), rows)
