"""An audit on a Dask cluster of one worker and of two: ``python -m benchmarks.dask_scaling [--rows N] [--rounds N]``.

Both clusters are alive all the time and audit in turn, so that a busy machine slows both alike. Besides, the same count
is made without Dask, by one process and by two at once: two workers cannot gain more than two processes do.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, LocalCluster

import fairtransport as ft
from benchmarks import _timing
from fairtransport.tables import count_table

CLAIM = (
    "ft.audit_table on a Dask cluster of two workers (processes of one thread) is at least 1.6 times as fast as on "
    "one, on work that takes one worker more than 20 s."
)
RACES, SEXES = ("Asian", "Black", "Other", "White"), ("Female", "Male")  # 8 groups
A_FILE = 2_000_000
COLUMNS = {"score": "score", "sensitive": ["race", "sex"], "label": "label"}


# ------------------------------------------------------------------------------------------------------------- data


def write_file(folder, n_rows, number):
    """Rows of one Parquet file; groups are dictionaries, as most writers make them."""
    rng = np.random.default_rng(number)
    race, sex = rng.integers(0, len(RACES), n_rows), rng.integers(0, len(SEXES), n_rows)
    scores = 1 / (1 + np.exp(1 - 0.2 * race - 0.3 * sex - 1.5 * rng.normal(size=n_rows)))
    table = pa.table(
        {
            "score": scores,
            "race": pa.DictionaryArray.from_arrays(race.astype(np.int8), RACES).cast(pa.string()),
            "sex": pa.DictionaryArray.from_arrays(sex.astype(np.int8), SEXES).cast(pa.string()),
            "label": (rng.random(n_rows) < scores).astype(np.int8),
        }
    )
    pq.write_table(table, Path(folder) / f"{number:04}.parquet")


def write_table(folder, n_rows):
    sizes = [A_FILE] * (n_rows // A_FILE) or [n_rows]
    for number, size in enumerate(sizes):
        write_file(folder, size, number)
    return len(sizes), sum(sizes)


# -------------------------------------------------------------------------------------------------------- measuring


def audit(client, paths, found):
    """Read, count, add up, and all that an audit does with the counts, on the cluster of one client."""
    with client.as_current():
        found.append(ft.audit_table(dd.read_parquet(paths), **COLUMNS, random_state=0).metrics)


def one_thread():
    """Dask gives a worker one thread for its tasks; Arrow's readers must not add others."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def count_files(paths):
    one_thread()
    for path in paths:
        count_table(pd.read_parquet(path), **COLUMNS)


def processes_alone(paths, n_processes):
    """Seconds that so many processes need to count all files, without Dask."""
    with ProcessPoolExecutor(n_processes, mp_context=get_context("spawn")) as pool:
        list(pool.map(count_files, [paths[:1]] * n_processes))  # imports, and warm caches
        return _timing.clock(lambda: list(pool.map(count_files, [paths[at::n_processes] for at in range(n_processes)])))


def start(n_workers):
    cluster = LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0")
    client = Client(cluster, set_as_default=False)
    client.run(one_thread)
    return cluster, client


def run(report, n_rows, rounds):
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        n_files, n_rows = write_table(folder, n_rows)
        paths = sorted(map(str, Path(folder).glob("*.parquet")))
        print(f"  {n_rows:,} rows in {n_files} files, written in {time.perf_counter() - began:.0f} s", flush=True)
        clusters = {name: start(number) for name, number in (("one worker", 1), ("two workers", 2))}
        report.settings.update(rows=n_rows, files=n_files, groups=len(RACES) * len(SEXES), bins=1 << 14, rounds=rounds)
        report.note(f"Load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.")
        found = []
        for _, client in clusters.values():
            audit(client, paths[:1], [])  # imports and compiled loops
        calls = {name: partial(audit, client, paths, found) for name, (_, client) in clusters.items()}
        times = _timing.race(calls, rounds, dict.fromkeys(calls, rounds))
        assert all(metrics == found[0] for metrics in found)
        for cluster, client in clusters.values():
            client.close()
            cluster.close()
        alone = {number: processes_alone(paths, number) for number in (1, 2)}
    case = f"{n_rows:,} rows, {n_files} partitions, 8 groups, labels; two workers"
    bar = 0.0 if report.quick else 1.6
    report.add(_timing.compare(case, times["two workers"], "one worker", times["one worker"], at_least=bar))
    report.add(
        _timing.compare("the same counts without Dask; two processes", [alone[2]], "one process", [alone[1]]),
    )
    report.note(f"Load average after: {os.getloadavg()[0]:.1f}. Single rounds, s: {told(times)}.")
    if np.median(times["one worker"]) <= 20:
        report.note("One worker took no more than 20 s: not the work that the claim is about; give more --rows.")


def told(times):
    return "; ".join(f"{name} {', '.join(f'{one:.1f}' for one in each)}" for name, each in times.items())


def main():
    parser = argparse.ArgumentParser(description=CLAIM)
    parser.add_argument("--quick", action="store_true", help="few rows, to see that it runs; nothing is judged")
    parser.add_argument("--rows", type=int, default=100_000_000, help="rows of the table (default: 100 million)")
    parser.add_argument("--rounds", type=int, default=3, help="audits of each cluster (default: 3)")
    parser.add_argument("--out", type=Path, default=_timing.RESULTS, help="where the results go")
    options = parser.parse_args()
    report = _timing.Report("dask_scaling", CLAIM, quick=options.quick, folder=options.out)
    print(f"dask_scaling: {CLAIM}", flush=True)
    n_rows, rounds = (2 * A_FILE, 1) if options.quick else (options.rows, options.rounds)
    with _timing.threads(1):
        run(report, n_rows, rounds)
    data = report.save()
    print("\n" + _timing.text_table(data["rows"]) + f"\n\n{_timing.markdown(data)}", flush=True)


if __name__ == "__main__":  # workers are new processes, and import this file
    main()
