"""A million rows through ``fairtransport stream`` on one core, with adjustment on; is memory flat?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import fairtransport as ft
from benchmarks import _timing

CLAIM = "Rows a second through the command (batch 500, adjusting, checkpoints), and resident memory over the run."
COLUMNS = [f"x{place}" for place in range(12)]
_CHUNK = 50_000


def world(rng, n, gap):
    group = (rng.random(n) < 0.4).astype(int)
    X = rng.normal(size=(n, len(COLUMNS)))
    X[:, 0] += 0.5 * group
    X[:, 1] += gap * group
    return X.round(4), np.array(["F", "M"])[group]


def make_model(path):
    rng = np.random.default_rng(0)
    X, sex = world(rng, 10_000, 0.0)
    y = (X[:, :4].sum(axis=1) + rng.logistic(size=len(X)) > 0.5).astype(int)
    model = ft.ContinuousTransportClassifier(parity_weight=1.0)
    ft.save(model.fit(X, y, sensitive_features={"sex": sex}), path)


def make_rows(path, n_rows):
    """Half of the rows in the world of the training, half in another."""
    rng = np.random.default_rng(1)
    with path.open("w") as file:
        if path.suffix == ".csv":
            file.write(",".join((*COLUMNS, "sex")) + "\n")
        for begin in range(0, n_rows, _CHUNK):
            X, sex = world(rng, min(_CHUNK, n_rows - begin), 0.0 if begin < n_rows // 2 else 1.0)
            for row, own in zip(X.tolist(), sex, strict=True):
                if path.suffix == ".csv":
                    file.write(",".join(map(repr, row)) + f",{own}\n")
                else:
                    file.write(json.dumps({**dict(zip(COLUMNS, row, strict=True)), "sex": str(own)}) + "\n")


def stream(folder, rows):
    """Return seconds, seconds of the processor, and the resident memory (MiB) by time."""
    names = ["--model", "m.ft", "--sensitive", "sex", "--features", ",".join(COLUMNS)]
    files = ["--store", f"store-{rows.suffix[1:]}", "--out", f"out{rows.suffix}", rows.name]
    command = [sys.executable, "-m", "fairtransport.cli", "stream", *names, *files]
    one_core = (
        (lambda: os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})) if hasattr(os, "sched_setaffinity") else None
    )
    began = time.perf_counter()
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, preexec_fn=one_core) as run:  # noqa: PLW1509
        memory = []
        while run.poll() is None:
            memory.append(resident(run.pid))
            used = processor(run.pid)
            time.sleep(0.25)
        told = run.stderr.read()
    if run.returncode:
        raise RuntimeError(told)
    return time.perf_counter() - began, used, [held for held in memory if held]


def resident(pid):
    try:
        text = Path(f"/proc/{pid}/statm").read_text()
        return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (OSError, IndexError):
        return 0.0


def processor(pid):
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError):
        return float("nan")


def run(report):
    n_rows = 50_000 if report.quick else 1_000_000
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        make_model(folder / "m.ft")
        for suffix in (".jsonl", ".csv"):
            rows = folder / f"rows{suffix}"
            make_rows(rows, n_rows)
            seconds, used, memory = stream(folder, rows)
            parts = [max(part) for part in np.array_split(memory, 4)]
            rates = f"{n_rows / seconds:,.0f} rows a second by the clock, {n_rows / used:,.0f} by the processor's time"
            held = ", ".join(f"{part:.0f}" for part in parts)
            report.note(
                f"{suffix[1:]}, {n_rows:,} rows of {len(COLUMNS)} features: {rates}, start of Python included. "
                f"Resident memory by quarters of the run, MiB: {held}."
            )
            rows.unlink()


if __name__ == "__main__":
    _timing.main("stream", CLAIM, run)
