"""Table 1 of the paper: four metrics of every method on every data set, ours beside the published figures."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import threading
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from fairtransport import __version__
from fairtransport._validation import check_choice, check_count
from fairtransport.paper._methods import fit_method, measure, prepare, settings_of, shuffled_floor
from fairtransport.paper._published import METRICS, published_value, three_digits
from fairtransport.paper._runs import Part, run_parts
from fairtransport.paper._table1_claims import table1_claims
from fairtransport.paper.finding import Finding, Table
from fairtransport.paper.setups import adult_split, communities_splits, german_splits
from fairtransport.storage import write_atomically

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from fairtransport.paper._methods import Problem
    from fairtransport.paper._runs import Result, Stop
    from fairtransport.paper.setups import Split

__all__ = ["DATASETS", "TABLE_METHODS", "Table1", "Table1Row", "assemble", "parts", "run_table1"]

TABLE_METHODS = ("LR", "DPP", "DPP (W2)", "DOT", "COT (paper)", "COT (anchor)")
_WITHOUT_CHANCE = ("LR", "DPP", "DPP (W2)")

# Runs of each data set: seeds of the training on Adult, whose split is given, and splits elsewhere.
_RUNS = MappingProxyType(
    {"Adult": 5, "German": 20, "Communities (crossed)": 10, "Communities (each)": 10, "Adult (binned)": 5}
)
_QUICK_RUNS = MappingProxyType(
    {"Adult": 1, "German": 3, "Communities (crossed)": 1, "Communities (each)": 1, "Adult (binned)": 1}
)

DATASETS = ("Adult", "German", "Communities (crossed)", "Communities (each)")
"""The paper's data sets, Communities and Crime in both readings of its eight groups."""


@dataclass(frozen=True)
class Table1Row:
    """One figure.

    Attributes
    ----------
    dataset, method : str
        Of `DATASETS` and `TABLE_METHODS`.
    metric : str
        In the paper's spelling: ``"Err-.5"``, ``"Wass1"``, ``"SDD"`` or ``"SPDD"``.
    mean, spread : float
        Mean and standard deviation (0 for a single run) over runs.
    n : int
        How many runs: seeds on Adult (one where nothing is drawn), splits on the others.
    published : float or None
        The paper's figure; a variant stands beside the figure of the paper's own.
    floor : float or None
        What the metric shows under perfect parity on as many test rows: DPP's with membership shuffled.
    """

    dataset: str
    method: str
    metric: str
    mean: float
    spread: float
    n: int
    published: float | None
    floor: float | None

    @property
    def beyond(self) -> bool:
        """Whether ours is lower than the published figure, by more than its standard error.

        Never for LR: its figures show how alike the set-up is, they are no achievement.
        """
        if self.published is None or self.method == "LR":
            return False
        return round(self.mean + self.spread / math.sqrt(self.n), 3) < self.published


@dataclass(frozen=True)
class Table1:
    """All figures, and how to write them down.

    Attributes
    ----------
    rows : tuple of Table1Row
        Data sets, methods and metrics in the paper's order.
    quick : bool
        Whether training was cut short.
    """

    rows: tuple[Table1Row, ...]
    quick: bool = False

    def value(self, dataset: str, method: str, metric: str) -> Table1Row:
        """Return one figure; KeyError when the table does not have it."""
        for row in self.rows:
            if (row.dataset, row.method, row.metric) == (dataset, method, metric):
                return row
        raise KeyError((dataset, method, metric))

    def to_markdown(self) -> str:
        """Write one table a data set: ours ± spread (published), bold where ours is lower."""
        lines = ["# Table 1: ours beside the published figures", "", _NOTE]
        if self.quick:
            lines += ["", "**Quick run: training was cut short and runs are few, so the figures are rough.**"]
        for dataset in dict.fromkeys(row.dataset for row in self.rows):
            rows = [row for row in self.rows if row.dataset == dataset]
            lines += ["", f"## {dataset}", "", f"| | {' | '.join(METRICS)} | runs |", "| --- |" + " ---: |" * 5]
            for method in dict.fromkeys(row.method for row in rows):
                own = [row for row in rows if row.method == method]
                lines.append(f"| {method} | {' | '.join(map(_cell, own))} | {own[0].n} |")
            floors = {row.metric: row.floor for row in rows}
            told = ["" if (floor := floors[metric]) is None else three_digits(floor) for metric in METRICS]
            lines.append(f"| noise floor | {' | '.join(told)} | |")
        return "\n".join(lines) + "\n"

    def to_csv(self) -> str:
        """Write one line a figure, with all digits."""
        text = io.StringIO()
        records = [{**asdict(row), "beyond": row.beyond} for row in self.rows]
        writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        return text.getvalue()

    def to_json(self) -> str:
        """Write an object with the version, whether it was quick, and ``rows``."""
        rows = [{**asdict(row), "beyond": row.beyond} for row in self.rows]
        told = {"table": "table1", "version": __version__, "quick": self.quick, "rows": rows}
        return json.dumps(told, indent=1, allow_nan=False) + "\n"

    def write(self, folder: Path) -> list[Path]:
        """Write ``table1.md``, ``table1.csv`` and ``table1.json`` into an existing folder."""
        texts = {"md": self.to_markdown(), "csv": self.to_csv(), "json": self.to_json()}
        return [write_atomically(folder / f"table1.{ending}", text.encode()) for ending, text in texts.items()]


_BOLD = " **Bold**:\nbelow the paper's by more than the standard error."
_NOTE = f"""\
Test rows; mean ± standard deviation over runs, with the paper's figure in parentheses. Lower is better.{_BOLD}
One figure alone says little, because error and disparity are traded for each other.

- Variants of a method stand beside the paper's figure of that method. *Paper*: the published algorithm. *Anchor*:
  this package's defaults, which keep the logistic loss. *W2*: the Wasserstein-2 barycenter by group size.
- Wass1 is the distance to the target that a method aims at, fixed at logistic regression's scores of the test rows.
- Runs are splits into training and test rows; on Adult, whose split is given, seeds of the training.
- The noise floor is what perfect parity shows on so few test rows: the metric of DPP's scores after shuffling
  group membership, mean over the splits."""


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
        How many trainings run at once, as threads: the compiled loops release the interpreter's lock. The
        figures do not depend on it.
    datasets : collection of str, optional
        Some of `DATASETS`, or ``"Adult (binned)"``, where logistic regression errs less than in the paper (see
        `fairtransport.paper.setups.adult_split`); by default all of `DATASETS`.
    folder : Path, optional
        Where finished trainings are kept, so that an interrupted run goes on where it stopped.
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
    """Return the trainings of the whole table."""
    return [job.part for job in _jobs(DATASETS, quick=quick)]


def assemble(results: Mapping[str, Result], *, quick: bool) -> Finding:
    """Judge the table from the trainings' results."""
    table = _table(_jobs(DATASETS, quick=quick), results, quick=quick)
    return Finding(
        name="table1",
        title="Table 1: four metrics on three data sets",
        caption=_NOTE.replace(_BOLD, "").replace("*", "").replace("\n- ", " ").replace("\n", " "),
        tables={"table1": Table(tuple(asdict(table.rows[0])), tuple(tuple(asdict(r).values()) for r in table.rows))},
        shown={"table1": _shown(table)},
        claims=table1_claims(table),
    )


_FLOOR = "noise floor"
_COSTS = {"DOT": 5.0, "COT (paper)": 1.0, "COT (anchor)": 3.0}  # rough seconds, for the time left


class _Source:
    """The problems of one data set, prepared once, by whichever training comes first."""

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

    source: _Source
    method: str
    run: int
    quick: bool

    def compute(self, stop: Stop) -> Result:
        stop.check()
        problem = self.source[self.run]
        if self.method == _FLOOR:
            metrics = shuffled_floor(fit_method("DPP", problem), problem)
        else:
            metrics = measure(fit_method(self.method, problem, random_state=self.run, quick=self.quick), problem)
        return {name: np.array(value) for name, value in metrics.items()}

    @property
    def part(self) -> Part:
        dataset = self.source.dataset
        settings = {
            "dataset": dataset,
            "method": self.method,
            "run": self.run,
            "n_runs": self.source.n_runs,
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
        source = _Source(dataset, runs[dataset])
        for method in (*TABLE_METHODS, _FLOOR):
            # Adult has one split, which leaves nothing to chance for methods that draw nothing.
            once = dataset.startswith("Adult") and method in (*_WITHOUT_CHANCE, _FLOOR)
            jobs += [_Job(source, method, run, quick) for run in range(1 if once else runs[dataset])]
    return jobs


def _table(jobs: Sequence[_Job], results: Mapping[str, Result], *, quick: bool) -> Table1:
    measured: dict[tuple[str, str], list[Result]] = {}
    for job in jobs:
        measured.setdefault((job.source.dataset, job.method), []).append(results[job.part.name])
    rows = []
    for (dataset, method), runs in measured.items():
        if method == _FLOOR:
            continue
        for metric, name in METRICS.items():
            values = np.array([float(run[name]) for run in runs])
            floors = [float(run[name]) for run in measured[dataset, _FLOOR] if name in run]
            spread = float(values.std(ddof=1)) if values.size > 1 else 0.0
            published = published_value(dataset, method, metric)
            floor = float(np.mean(floors)) if floors else None
            mean = float(values.mean())
            rows.append(Table1Row(dataset, method, metric, mean, spread, values.size, published, floor))
    return Table1(tuple(rows), quick=quick)


def _shown(table: Table1) -> Table:
    rows: list[tuple[str, ...]] = []
    for dataset in dict.fromkeys(row.dataset for row in table.rows):
        inside = [row for row in table.rows if row.dataset == dataset]
        for method in dict.fromkeys(row.method for row in inside):
            cells = (_cell(row).replace("**", "") for row in inside if row.method == method)
            rows.append((dataset, method, *cells))
        floors = {row.metric: row.floor for row in inside}
        told = ("" if (floor := floors[metric]) is None else three_digits(floor) for metric in METRICS)
        rows.append((dataset, _FLOOR, *told))
    return Table(("data", "method", *METRICS), tuple(rows))


def _cell(row: Table1Row) -> str:
    told = three_digits(row.mean) + (f" ± {three_digits(row.spread)}" if row.n > 1 else "")
    told = f"**{told}**" if row.beyond else told
    return told if row.published is None else f"{told} ({three_digits(row.published)})"
