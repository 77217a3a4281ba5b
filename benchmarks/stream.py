"""A million rows through ``fairtransport stream`` on one core, with adjustment on; is memory flat?"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.serving import COLUMNS, make_model, processor, resident, world

CLAIM = "Rows a second through the command (batch 500, adjusting, checkpoints), and resident memory over the run."
CHUNK = 50_000


def make_rows(path, n_rows):
    """Half of the rows in the world of the training, half in another."""
    rng = np.random.default_rng(1)
    with path.open("w") as file:
        for begin in range(0, n_rows, CHUNK):
            X, sex = world(rng, min(CHUNK, n_rows - begin), 0.0 if begin < n_rows // 2 else 1.0)
            frame = X.assign(sex=sex)
            if path.suffix == ".csv":
                frame.to_csv(file, index=False, header=begin == 0)
            else:
                frame.to_json(file, orient="records", lines=True)


def one_core():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def stream(folder, rows):
    """Return seconds, seconds of the processor, and the resident memory (MiB) by time."""
    names = ["--model", "m.ft", "--sensitive", "sex", "--features", ",".join(COLUMNS)]
    files = ["--store", f"store-{rows.suffix[1:]}", "--out", f"out{rows.suffix}", rows.name]
    command = [sys.executable, "-m", "fairtransport.cli", "stream", *names, *files]
    began, memory, used = time.perf_counter(), [], np.nan
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, preexec_fn=one_core) as process:  # noqa: PLW1509
        while process.poll() is None:
            try:
                memory.append(resident(process.pid))
                used = processor(process.pid)
            except (OSError, IndexError):  # it has just ended
                break
            time.sleep(0.25)
        text = process.stderr.read()
    if process.returncode:
        raise RuntimeError(text)
    return time.perf_counter() - began, used, [held for held in memory if held]


def run(report):
    n_rows = 50_000 if report.quick else 1_000_000
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        make_model(folder / "m.ft")
        for suffix in (".jsonl", ".csv"):
            rows = folder / f"rows{suffix}"
            make_rows(rows, n_rows)
            seconds, used, memory = stream(folder, rows)
            held = ", ".join(f"{max(part):.0f}" for part in np.array_split(memory, 4))
            report.note(
                f"{suffix[1:]}, {n_rows:,} rows of {len(COLUMNS)} features: {n_rows / seconds:,.0f} rows a second "
                f"by the clock, {n_rows / used:,.0f} by the processor's time, start of Python included. Memory "
                f"by quarters of the run, MiB: {held}."
            )
            rows.unlink()
