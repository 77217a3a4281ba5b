"""What all benchmarks share: interleaved races, ratios with their spread, stored results, and the page of all results.

A race calls ours and its peers in turn, many times, in one process, so that a busy machine slows all of them alike. The
ratio of medians is reported, with the quartiles of the ratios of single rounds.
"""

from __future__ import annotations

import gc
import importlib.metadata
import json
import os
import platform
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from threadpoolctl import threadpool_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

RESULTS = Path(__file__).parent / "results"
PACKAGES = ["numpy", "scipy", "numba", "scikit-learn", "torch", "jax", "equipy", "fairlearn", "lightgbm", "pandas"]
PACKAGES += ["pyarrow", "duckdb"]

# JAX reads it when it first computes, which is after this module was imported.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")


@contextmanager
def our_threads(number: int):
    """Let only our own loops use so many threads; this costs no time."""
    before = numba.config.NUMBA_NUM_THREADS
    numba.config.NUMBA_NUM_THREADS = number
    try:
        yield
    finally:
        numba.config.NUMBA_NUM_THREADS = before


@contextmanager
def threads(number: int):
    """Let BLAS, OpenMP, torch and our own loops use so many threads."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(number)
    with threadpool_limits(number), our_threads(number):
        yield


def clock(call: Callable[[], Any], timer: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of one call, without the collector."""
    gc.collect()
    gc.disable()
    try:
        began = timer()
        call()
        return timer() - began
    finally:
        gc.enable()


def race(
    calls: Mapping[str, Callable[[], Any]],
    rounds: int,
    fewer: Mapping[str, int] | None = None,
    timer: Callable[[], float] = time.perf_counter,
):
    """Time each call once a round, starting with another one each time.

    ``fewer`` names calls that are too slow for all rounds, and how many they get. All are called once before, to
    compile and to fill caches, but for those.
    """
    fewer = fewer or {}
    for name, call in calls.items():
        if name not in fewer:
            call()
    names = list(calls)
    times: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            if number < fewer.get(name, rounds):
                times[name].append(clock(calls[name], timer))
    return times


@dataclass(frozen=True)
class Row:
    """Ours against one peer in one case. The ratio says how many times longer the peer takes."""

    case: str
    peer: str
    ours_s: float
    peer_s: float
    ratio: float
    low: float
    high: float
    bar: str = ""
    met: bool | None = None


def compare(
    case: str, ours: list[float], peer: str, theirs: list[float], *, at_least: float = 0.0, at_most: float = np.inf
) -> Row:
    """Ratio of medians and quartiles of the rounds' ratios.

    ``at_least``: the peer must take that many times as long as ours. ``at_most``: ours may take that many times
    as long as the peer.
    """
    ratio = float(np.median(theirs) / np.median(ours))
    low, high = np.percentile([b / a for a, b in zip(ours, theirs, strict=False)], (25, 75))
    bar, met = "", None
    if at_least > 0:
        bar, met = f"at least {at_least:g} x", ratio >= at_least
    elif at_most < np.inf:
        bar, met = f"ours at most {at_most:g} x peer's; is {1 / ratio:.3g} x", 1 / ratio <= at_most
    return Row(case, peer, float(np.median(ours)), float(np.median(theirs)), ratio, float(low), float(high), bar, met)


@dataclass
class Report:
    """Rows, notes and data of one benchmark; notes are what the page of all results shows."""

    name: str
    claim: str
    quick: bool = False
    folder: Path = RESULTS
    data_folder: Path | None = None
    minutes: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)

    def add(self, *rows: Row) -> None:
        for row in rows:
            self.rows.append(row)
            times = f"{seconds(row.ours_s)} against {seconds(row.peer_s)}, {row.ratio:.3g} x"
            verdict = {True: "met", False: "MISSED", None: ""}[row.met]
            print(
                f"  {row.case} | {row.peer} | {times} ({row.low:.3g} to {row.high:.3g}) | {row.bar} {verdict}",
                flush=True,
            )

    def note(self, text: str) -> None:
        self.notes.append(text)
        print(f"  {text}", flush=True)

    def save(self) -> None:
        """Write the results; may be called after each part, so that an interrupt loses little."""
        content = {
            "name": self.name, "claim": self.claim, "quick": self.quick, "machine": machine(), "versions": versions(),
            "settings": self.settings, "rows": [asdict(row) for row in self.rows], "notes": self.notes, **self.data,
        }  # fmt: skip
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self.folder / f"{self.name}.tmp"
        draft.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        draft.replace(draft.with_suffix(".json"))


def seconds(value: float) -> str:
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def met(value: bool) -> str:
    return "met" if value else "MISSED"


def mean_and_error(values) -> tuple[np.ndarray, np.ndarray]:
    """Mean over the first axis, and its standard error."""
    values = np.asarray(values, dtype=float)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.full(values.shape[1:], np.nan)
    return values.mean(axis=0), error


INTRODUCTION = """# Benchmarks

What the figures of this documentation rest on. `python -m benchmarks --list` lists them, `python -m benchmarks name`
measures one and writes this page again, and `--quick` shows that one runs. The page has the first result of each and
every one that was missed or lost to a peer; `benchmarks/results` has all figures, machines and versions.
"""
SHOWN = 1
LOST = ("MISSED", "not reached", "most above", "is below the best of ours by")


def page(folder: Path) -> str:
    """Return the page of all results: required speeds in one table, and the notes of each benchmark."""
    results = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    lines = [INTRODUCTION, "## Speed", ""]
    lines += [
        "Required ratios of medians of interleaved runs. A range is over cases, such as sizes or types of columns.",
        "",
    ]
    lines += ["| benchmark | cases | against | required | measured |  |", "| --- | --: | --- | --- | --- | --- |"]
    for result in results:
        lines += list(required(result))
    for result in results:
        if result["notes"] and not list(required(result)):  # those are in the table
            lines += ["", f"## {result['name']}", "", result["claim"], ""]
            notes = result["notes"]
            lines += [f"- {note}" for note in notes[:SHOWN]]
            lines += [f"- {note}" for note in notes[SHOWN:] if any(word in note for word in LOST)]
    return "\n".join(lines) + "\n"


def required(result: Mapping[str, Any]) -> Iterable[str]:
    """Yield a line for each peer and requirement, with the range over its cases."""
    judged = [row for row in result["rows"] if row["met"] is not None]
    for peer, bar in dict.fromkeys((row["peer"], row["bar"].split(";")[0]) for row in judged):
        rows = [row for row in judged if (row["peer"], row["bar"].split(";")[0]) == (peer, bar)]
        slower = bar.startswith("ours at most")
        values = sorted(1 / row["ratio"] if slower else row["ratio"] for row in rows)
        shown = f"{values[0]:.3g}" if len(values) == 1 else f"{values[0]:.3g} to {values[-1]:.3g}"
        verdict = met(all(row["met"] for row in rows))
        yield f"| {result['name']} | {len(rows)} | {peer} | {bar} | {shown} x | {verdict} |"


def machine() -> dict[str, Any]:
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        named = [line for line in cpuinfo.read_text(encoding="utf-8").splitlines() if line.startswith("model name")]
        model = named[0].split(":", 1)[1].strip() if named else model
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return {"cpu": model, "cores": os.cpu_count(), "system": platform.system(), "load at the end": round(load, 1)}


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
