"""Table 1 of the paper: four metrics of every method on every data set, ours beside the published figures."""

from __future__ import annotations

import csv
import io
import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from fairtransport import __version__
from fairtransport._validation import check_choice, check_count
from fairtransport.paper.methods import Problem, fit_method, measure, prepare, shuffled_floor
from fairtransport.paper.published import METRICS, published_value
from fairtransport.paper.setups import adult_split, communities_splits, german_splits

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from fairtransport.paper.setups import Split

__all__ = ["DATASETS", "TABLE_METHODS", "Table1", "Table1Row", "run_table1"]

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
            told = ["" if (floor := floors[metric]) is None else _digits(floor) for metric in METRICS]
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
        written = []
        for ending, text in texts.items():
            path = folder / f"table1.{ending}"
            path.write_text(text, encoding="utf-8")
            written.append(path)
        return written


_NOTE = """\
Test rows; mean ± standard deviation over runs, with the paper's figure in parentheses. Lower is better. **Bold**:
below the paper's by more than the standard error. One figure alone says little, because error and disparity are
traded for each other.

- Variants of a method stand beside the paper's figure of that method. *Paper*: the published algorithm. *Anchor*:
  this package's defaults, which keep the logistic loss. *W2*: the Wasserstein-2 barycenter by group size.
- Wass1 is the distance to the target that a method aims at, fixed at logistic regression's training scores.
- Runs are splits into training and test rows; on Adult, whose split is given, seeds of the training.
- The noise floor is what perfect parity shows on so few test rows: the metric of DPP's scores after shuffling
  group membership, mean over the splits."""


def run_table1(
    *,
    quick: bool = False,
    n_seeds: int | None = None,
    n_jobs: int = 1,
    progress: Callable[[int, int, str], None] | None = None,
    datasets: Collection[str] | None = None,
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
    progress : callable, optional
        Called with the trainings done, those in all, and which one was last.
    datasets : collection of str, optional
        Some of `DATASETS`, or ``"Adult (binned)"``, where logistic regression errs less than in the paper (see
        `fairtransport.paper.setups.adult_split`); by default all of `DATASETS`.

    Returns
    -------
    Table1
    """
    check_count(n_jobs, name="n_jobs")
    chosen = DATASETS if datasets is None else tuple(datasets)
    for dataset in chosen:
        check_choice(dataset, _RUNS, name="datasets")
    runs = dict(_QUICK_RUNS if quick else _RUNS)
    if n_seeds is not None:
        runs = dict.fromkeys(runs, check_count(n_seeds, name="n_seeds"))
    problems = {dataset: [prepare(split) for split in _splits(dataset, runs[dataset])] for dataset in chosen}
    jobs = [job for dataset in chosen for job in _jobs(dataset, problems[dataset], runs[dataset], quick=quick)]
    measured: dict[tuple[str, str], list[dict[str, float]]] = {}
    for done, (job, metrics) in enumerate(zip(jobs, _run(jobs, n_jobs), strict=True), start=1):
        measured.setdefault((job.dataset, job.method), []).append(metrics)
        if progress is not None:
            progress(done, len(jobs), f"{job.dataset}, {job.method}")
    floors = {dataset: _floor(problems[dataset]) for dataset in chosen}
    return Table1(tuple(_rows(measured, floors)), quick=quick)


@dataclass(frozen=True, eq=False)
class _Job:
    """One method trained on one problem with one seed."""

    dataset: str
    method: str
    problem: Problem
    seed: int
    quick: bool

    def run(self) -> dict[str, float]:
        fit = fit_method(self.method, self.problem, random_state=self.seed, quick=self.quick)
        return measure(fit, self.problem)


def _splits(dataset: str, n_runs: int) -> tuple[Split, ...]:
    if dataset.startswith("Adult"):
        return (adult_split("binned" if "binned" in dataset else "standard"),)
    if dataset == "German":
        return german_splits(n_runs)
    return communities_splits(n_runs, grouping=dataset.partition("(")[2].rstrip(")"))


def _jobs(dataset: str, problems: list[Problem], n_runs: int, *, quick: bool) -> Iterator[_Job]:
    for method in TABLE_METHODS:
        for seed in range(n_runs):
            if seed < len(problems) or method not in _WITHOUT_CHANCE:
                yield _Job(dataset, method, problems[min(seed, len(problems) - 1)], seed, quick)


def _run(jobs: list[_Job], n_jobs: int) -> Iterator[dict[str, float]]:
    """Yield the jobs' results in their order."""
    if n_jobs == 1:
        yield from map(_Job.run, jobs)
        return
    with ThreadPoolExecutor(n_jobs) as pool:
        futures = [pool.submit(job.run) for job in jobs]
        try:
            for future in futures:
                yield future.result()
        finally:
            for future in futures:  # after Ctrl-C or an error: only what runs already is waited for
                future.cancel()


def _floor(problems: list[Problem]) -> dict[str, float]:
    floors = [shuffled_floor(fit_method("DPP", problem), problem) for problem in problems]
    return {metric: float(np.mean([floor[metric] for floor in floors])) for metric in floors[0]}


def _rows(
    measured: Mapping[tuple[str, str], list[dict[str, float]]], floors: Mapping[str, Mapping[str, float]]
) -> Iterator[Table1Row]:
    for (dataset, method), runs in measured.items():
        for metric, name in METRICS.items():
            values = np.array([run[name] for run in runs])
            spread = float(values.std(ddof=1)) if values.size > 1 else 0.0
            published = published_value(dataset, method, metric)
            floor = floors[dataset].get(name)
            yield Table1Row(dataset, method, metric, float(values.mean()), spread, values.size, published, floor)


def _cell(row: Table1Row) -> str:
    told = _digits(row.mean) + (f" ± {_digits(row.spread)}" if row.n > 1 else "")
    told = f"**{told}**" if row.beyond else told
    return told if row.published is None else f"{told} ({_digits(row.published)})"


def _digits(value: float) -> str:
    """Three digits as the paper prints them: ``.178``, ``1.435``."""
    return f"{value:.3f}".removeprefix("0")
