"""What all benchmarks share: interleaved races, ratios with their spread, one thread, tables and files.

A race calls ours and its peers in turn, many times, in one process, so that a busy machine slows all of them alike.
What is reported is the ratio of medians, with the quartiles of the ratios of single rounds beside it.
"""

from __future__ import annotations

import argparse
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
PACKAGES = (
    "numpy",
    "scipy",
    "numba",
    "scikit-learn",
    "torch",
    "jax",
    "jaxlib",
    "POT",
    "equipy",
    "statsmodels",
    "pandas",
    "pyarrow",
    "dask",
    "duckdb",
)

# JAX reads it when it first computes, which is after this module was imported.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")


# ------------------------------------------------------------------------------------------------------ measuring


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


def clock(call: Callable[[], Any]) -> float:
    """Seconds of one call, without the collector."""
    gc.collect()
    gc.disable()
    try:
        began = time.perf_counter()
        call()
        return time.perf_counter() - began
    finally:
        gc.enable()


def race(calls: Mapping[str, Callable[[], Any]], rounds: int, fewer: Mapping[str, int] | None = None):
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
                times[name].append(clock(calls[name]))
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


# ------------------------------------------------------------------------------------------------------ reporting


@dataclass
class Report:
    """The rows of one benchmark and what a reader must know about them."""

    name: str
    claim: str
    quick: bool
    folder: Path = RESULTS
    settings: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    curves: dict[str, dict[int, float]] = field(default_factory=dict)

    def add(self, *rows: Row) -> None:
        for row in rows:
            self.rows.append(row)
            print("  " + " | ".join(_cells(asdict(row))), flush=True)

    def note(self, text: str) -> None:
        self.notes.append(text)
        print(f"  {text}", flush=True)

    def save(self) -> dict[str, Any]:
        data = {
            "name": self.name,
            "claim": self.claim,
            "quick": self.quick,
            "machine": machine(),
            "versions": versions(),
            "settings": self.settings,
            "rows": [asdict(row) for row in self.rows],
            "notes": self.notes,
            "curves": self.curves,
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        target = self.folder / f"{self.name}.json"
        draft = target.with_suffix(".tmp")
        draft.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        draft.replace(target)
        return data


HEADER = ("case", "peer", "ours", "peer's", "ratio", "quartiles", "bar", "")


def seconds(value: float) -> str:
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    verdict = {True: "met", False: "MISSED", None: ""}[row["met"]]
    spread = f"{row['low']:.3g} - {row['high']:.3g}"
    return (
        row["case"], row["peer"], seconds(row["ours_s"]), seconds(row["peer_s"]), f"{row['ratio']:.3g} x", spread,
        row["bar"], verdict,
    )  # fmt: skip


def text_table(rows: Iterable[Mapping[str, Any]]) -> str:
    table = [HEADER, *map(_cells, rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(HEADER))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def markdown(data: Mapping[str, Any]) -> str:
    lines = [f"## {data['name']}", "", data["claim"], ""]
    if data["quick"]:
        lines += ["*A quick run: smaller cases, fewer rounds. Not for quoting.*", ""]
    if data["rows"]:
        lines += ["| " + " | ".join(HEADER) + " |", "| " + " | ".join("---" for _ in HEADER) + " |"]
        lines += ["| " + " | ".join(_cells(row)) + " |" for row in data["rows"]] + [""]
    lines += [f"- {note}" for note in data["notes"]]
    settings = "; ".join(f"{key}: {value}" for key, value in data.get("settings", {}).items())
    return "\n".join([*lines, *([f"- Settings: {settings}"] if settings else []), ""])


REPORT_FIELDS = ("name", "claim", "quick", "machine", "versions", "rows", "notes")


def summarize(folder: Path = RESULTS) -> str:
    """Write summary.md from the results in a folder, and return it.

    What `Report.save` has written is shown, unless the benchmark has written a page of its own. Results in another
    format are only named.
    """
    found = {path: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
    reports = {path: data for path, data in found.items() if data.keys() >= set(REPORT_FIELDS)}
    shown = [data for path, data in reports.items() if not path.with_suffix(".md").exists()]
    races = [(data["name"], row) for data in reports.values() for row in data["rows"]]
    missed = [(name, row) for name, row in races if row["met"] is False]
    judged = sum(row["met"] is not None for _, row in races)
    lines = ["# Results of the benchmarks", ""]
    lines += ["Ratios are of medians of interleaved runs; one thread unless a row says otherwise.", ""]
    lines += [f"{judged - len(missed)} of {judged} bars of speed met.", ""]
    lines += [f"- MISSED: {name}: {row['case']} against {row['peer']} ({row['bar']})" for name, row in missed]
    pages = [path.stem for path in reports if path.with_suffix(".md").exists()]
    others = [path.name for path in found if path not in reports]
    lines += ["On a page of its own: " + ", ".join(f"[{name}]({name}.md)" for name in pages) + "."] if pages else []
    lines += ["In another format: " + ", ".join(f"[{name}]({name})" for name in others) + "."] if others else []
    for data in shown:
        lines += ["", markdown(data).rstrip()]
    for what in ("machine", "versions"):
        texts = sorted({"; ".join(f"{key} {value}" for key, value in data[what].items()) for data in shown})
        lines += ["", f"{what.capitalize()}: {' / '.join(texts)}"]
    text = "\n".join(lines) + "\n"
    (folder / "summary.md").write_text(text, encoding="utf-8")
    return text


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


# -------------------------------------------------------------------------------------------------------- running


def main(name: str, claim: str, body: Callable[[Report], None]) -> None:
    """Run one benchmark from the command line."""
    parser = argparse.ArgumentParser(description=claim)
    parser.add_argument("--quick", action="store_true", help="smaller cases and fewer rounds, to see that it runs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the results go (default: benchmarks/results)")
    options = parser.parse_args()
    report = Report(name, claim, quick=options.quick, folder=options.out)
    print(f"{name}: {claim}", flush=True)
    with threads(1):
        body(report)
    data = report.save()
    if data["rows"]:
        print("\n" + text_table(data["rows"]), flush=True)
    print(f"\n{markdown(data)}", flush=True)
