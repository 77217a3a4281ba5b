"""An audit on a Dask cluster of one worker and of two: ``python -m benchmarks.dask_scaling [--rows N] [--rounds N]``.

Both clusters are alive all the time and audit in turn, so that a busy machine slows both alike. What each process
computed is told as well: other people's work changes it less than the time on the clock.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from functools import partial
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, LocalCluster

import fairtransport as ft
from benchmarks import _timing

CLAIM = (
    "ft.audit_table on a Dask cluster of two workers (processes of one thread) is at least 1.6 times as fast as on "
    "one, on work that takes one worker more than 20 s."
)
RACES, SEXES = ("Asian", "Black", "Other", "White"), ("Female", "Male")  # 8 groups
A_FILE = 2_000_000
COLUMNS = {"score": "score", "sensitive_features": ["race", "sex"], "label": "label"}


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
    before = clocks(client)
    with client.as_current():
        metrics = ft.audit_table(dd.read_parquet(paths), **COLUMNS, random_state=0).metrics
    found.append((metrics, clocks(client) - before))


def clocks(client):
    """Seconds that this process and each worker have computed."""
    workers = sorted(client.run(time.process_time).items())
    return np.array([time.process_time(), *(seconds for _, seconds in workers)])


def stand_alone():
    """Make the process what a worker on another machine is: one thread, and no share of time in common with others."""
    pa.set_cpu_count(1)  # Dask has one thread for its tasks; Arrow's readers would add some
    pa.set_io_thread_count(1)
    if os.getpid() != os.getsid(0):
        os.setsid()  # Linux gives each session of processes, not each process, its share of a busy machine


def start(n_workers):
    cluster = LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0")
    client = Client(cluster, set_as_default=False)
    client.run(stand_alone)
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
        found = {name: [] for name in clusters}
        for _, client in clusters.values():
            audit(client, paths[:1], [])  # imports and compiled loops
        calls = {name: partial(audit, client, paths, found[name]) for name, (_, client) in clusters.items()}
        times = _timing.race(calls, rounds, dict.fromkeys(calls, rounds))
        metrics = [one for each in found.values() for one, _ in each]
        assert all(one == metrics[0] for one in metrics)
        for cluster, client in clusters.values():
            client.close()
            cluster.close()
    case = f"{n_rows:,} rows, {n_files} partitions, 8 groups, labels; two workers"
    bar = 0.0 if report.quick else 1.6
    report.add(_timing.compare(case, times["two workers"], "one worker", times["one worker"], at_least=bar))
    report.note(f"Load average after: {os.getloadavg()[0]:.1f}. Single rounds, s: {told(times)}.")
    report.note(computed(found))
    if np.median(times["one worker"]) <= 20:
        report.note("One worker took no more than 20 s: not the work that the claim is about; give more --rows.")


def computed(found):
    """What each process computed, in words."""
    one, two = (np.median([seconds for _, seconds in each], axis=0) for each in found.values())
    ideal = one.sum() / (two[0] + two[1:].max())
    return (
        f"Computing time: client {one[0]:.1f} s and one worker {one[1]:.1f} s; client {two[0]:.1f} s and two workers "
        f"{two[1]:.1f} s and {two[2]:.1f} s. Were no one to wait for anyone, that would be {ideal:.2f} x."
    )


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
