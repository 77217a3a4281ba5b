"""The command ``fairtransport audit`` on a large Parquet file, against the bare group-by that counts the same rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import _report

CLAIM = (
    "`fairtransport audit` of 100 million rows of Parquet in 8 groups, a process from start to end, with intervals, "
    "noise floor and p-values: at most twice the time of the bare DuckDB group-by that counts rows for each (group, "
    "bin), its query alone; less than 4 GiB of memory."
)
N_GROUPS = 8
N_BINS = 1 << 14
CHUNK = 1_000_000
MOST_GIB = 4

# Nothing but DuckDB: the time is that of the query, not of the process.
BARE = f"""
import sys, time, duckdb
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
path = "'" + sys.argv[1].replace("'", "''") + "'"
began = time.perf_counter()
query = f"SELECT race, CAST(ceil(s * {N_BINS}) AS INTEGER) AS bin, count(*) FROM read_parquet({{path}}) GROUP BY ALL"
rows = connection.sql(query).to_arrow_table().num_rows
print(time.perf_counter() - began, rows)
"""  # noqa: S608 - our own path


def make(path, n_rows, seed=0):
    """Write scores of eight groups, a million rows at a time."""
    rng = np.random.default_rng(seed)
    names = pa.array([f"group {number}" for number in range(N_GROUPS)])
    schema = pa.schema([("s", pa.float64()), ("race", pa.string()), ("y", pa.int8())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n_rows, CHUNK):
            size = min(CHUNK, n_rows - start)
            codes = rng.integers(0, N_GROUPS, size)
            scores = 1 / (1 + np.exp(1 - 0.2 * codes - 1.5 * rng.standard_normal(size)))
            race = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), names).cast(pa.string())
            labels = pa.array((rng.random(size) < scores).astype(np.int8))
            writer.write_table(pa.table([pa.array(scores), race, labels], schema=schema))


def measure(command):
    """Seconds, peak memory in GiB and processor time of a process, and what it printed."""
    with tempfile.TemporaryFile("w+") as out:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"exit status {process.returncode}: {' '.join(command)}")
        out.seek(0)
        return seconds, usage.ru_maxrss / 2**20, usage.ru_utime + usage.ru_stime, out.read()  # Linux counts in KiB


def audit(path, *options):
    command = [sys.executable, "-m", "fairtransport.cli", "audit", str(path), "--score", "s", "--sensitive", "race"]
    return measure([*command, "--json", "-", *options])


def run(report):
    n_rows, rounds = (500_000, 1) if report.quick else (100_000_000, 5)
    report.settings.update(rows=n_rows, groups=N_GROUPS, bins=N_BINS, threads="all cores")
    found = {"ours": [], "bare": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.parquet"
        make(path, n_rows)
        audit(path)  # once before, to compile what is not compiled yet
        for number in range(rounds):
            for turn in (("ours", "bare"), ("bare", "ours"))[number % 2]:
                found[turn].append(audit(path) if turn == "ours" else measure([sys.executable, "-c", BARE, str(path)]))
        seconds, peak, _, _ = audit(path, "--label", "y")
    printed = json.loads(found["ours"][-1][3])
    assert printed["rows"] == n_rows
    assert all(reading["p_value"] < 0.01 for reading in printed["readings"].values())
    ours, query = [one[0] for one in found["ours"]], [float(one[3].split()[0]) for one in found["bare"]]
    bar = {} if report.quick else {"at_most": 2.0}
    case = f"{n_rows:,} rows, the whole command"
    report.add(_report.compare(case, ours, "bare DuckDB group-by, the query", query, **bar))
    most = max(one[1] for one in found["ours"])
    processor = [np.median([one[2] for one in each]) for each in found.values()]
    report.note(
        f"Memory of the command: {most:.2f} GiB at most; required, {MOST_GIB} GiB: {_report.met(most < MOST_GIB)}."
    )
    report.note(f"With labels, so with errors and areas under the curve: {_report.seconds(seconds)}, {peak:.2f} GiB.")
    report.note(
        f"Processor time of all cores, median: {processor[0]:.1f} s for the command, {processor[1]:.1f} s for the "
        "process of the bare group-by."
    )
