"""Training on Parquet files larger than memory: an evaluation against DuckDB's scan of the columns, and on Dask."""

from __future__ import annotations

import json
import os
import shutil
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
    "`fit_table` on 20 million rows of 60 columns in Parquet files: less than 4 GiB of memory, both passes of an "
    "evaluation at most three times DuckDB's sums of the same columns, in processor seconds, and linear growth from "
    "0.2 million rows; on Dask, two workers at least 1.6 times as fast as one."
)
SIZES, CHUNK, N_COLUMNS, MOST_GIB = (200_000, 2_000_000, 20_000_000), 1_000_000, 60, 4
ON_DASK = 6_000_000
NAMES = [f"x{number}" for number in range(N_COLUMNS)]


def make(folder, n_rows):
    """Write files of a million rows at most: four groups, of which one column knows, and ten indicators."""
    folder.mkdir(parents=True)
    for number in range(-(-n_rows // CHUNK)):
        rng, size = np.random.default_rng(number), min(CHUNK, n_rows)
        group, X = rng.integers(4, size=size), rng.standard_normal((size, N_COLUMNS), dtype=np.float32)
        X[:, 0] += 0.4 * group
        X[:, 50:] = X[:, 50:] > 1
        eta = X[:, :10] @ np.array([1, 0.3, 0.5, 0.2, 0.1, -0.3, 0.2, 0, 0.4, 0.1]) - 0.6
        columns = {name: X[:, j].astype(np.float64) for j, name in enumerate(NAMES)}
        columns["y"] = (eta + rng.logistic(size=size) > 0).astype(np.int8)
        columns["group"] = np.array(["a", "b", "c", "d"])[group]
        pq.write_table(pa.table(columns), folder / f"{number:03}.parquet")


def train_files(folder):
    """Train in this process; print processor seconds of passes and of DuckDB's sums, and the peak of memory."""
    import resource  # noqa: PLC0415 - not on every system

    import duckdb  # noqa: PLC0415

    import fairtransport as ft  # noqa: PLC0415
    from fairtransport.linear import _partitions, table_training  # noqa: PLC0415

    table_training.MOST_IN_MEMORY, total, passes = 0, _partitions.DiskCache.total, {}

    def timed(self, work, *shared):
        began = time.process_time()
        result = total(self, work, *shared)
        passes.setdefault(work.__name__, []).append(time.process_time() - began)
        return result

    _partitions.DiskCache.total = timed
    began = time.process_time(), time.perf_counter()
    model = ft.TransportClassifier(parity_weight=0.1).fit_table(
        f"{folder}/*.parquet", label="y", sensitive_features="group"
    )
    spent = time.process_time() - began[0], time.perf_counter() - began[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    scans, query = [], f"SELECT {', '.join(f'sum({name})' for name in NAMES)} FROM '{folder}/*.parquet'"  # noqa: S608
    for _ in range(2):
        scan = time.process_time()
        duckdb.connect().sql(query).fetchall()
        scans.append(time.process_time() - scan)
    found = {"passes": passes, "scans": scans, "processor": spent[0], "seconds": spent[1], "peak": peak}
    print(json.dumps(found | {"iterations": int(model.n_iter_)}))


def train_dask(folder, n_workers):
    """Train on workers of one thread; print the seconds of the passes over all rows."""
    import dask.dataframe as dd  # noqa: PLC0415
    from distributed import Client, LocalCluster  # noqa: PLC0415

    import fairtransport as ft  # noqa: PLC0415
    from fairtransport.linear import _dask_partitions  # noqa: PLC0415

    total, spent = _dask_partitions.DaskPartitions.total, []

    def timed(self, work, *shared):
        began = time.perf_counter()
        result = total(self, work, *shared)
        if work.__name__ == "gradient_sums":
            spent.append(time.perf_counter() - began)
        return result

    _dask_partitions.DaskPartitions.total = timed
    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster):
        table = dd.read_parquet(folder)
        ft.TransportClassifier(parity_weight=0.1).fit_table(table, label="y", sensitive_features="group")
    print(json.dumps({"passes": [seconds for seconds in spent if seconds > max(spent) / 3]}))  # the others are samples


def child(*arguments):
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.tables_training", *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def run(report):
    """Measure each size once, in a process of its own; sizes that the results have already are not repeated."""
    stored = report.folder / f"{report.name}.json"
    known = json.loads(stored.read_text(encoding="utf-8")).get("sizes", {}) if stored.exists() else {}
    report.data["sizes"] = known
    largest = int(os.environ.get("LARGEST_TABLE", SIZES[-1]))
    sizes = SIZES[:1] if report.quick else [size for size in SIZES if size <= largest]
    report.settings.update(columns=N_COLUMNS, groups=4, threads="all cores", timer="processor seconds")
    scratch = Path(tempfile.mkdtemp(prefix="tables-training-"))
    try:
        for size in sizes:
            if str(size) not in known:
                make(scratch / str(size), size)
                known[str(size)] = child("files", scratch / str(size))
                shutil.rmtree(scratch / str(size))
                report.save()
            describe(report, size, known[str(size)])
        make(scratch / "dask", SIZES[0] if report.quick else ON_DASK)
        one, two = (child("dask", scratch / "dask", n)["passes"] for n in (1, 2))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    bar = {} if report.quick else {"at_least": 1.6}
    report.add(_report.compare(f"a pass on Dask, {ON_DASK:,} rows, two workers", two, "one worker", one, **bar))


def describe(report, size, found):
    passes, scan = found["passes"], min(found["scans"])
    both = min(passes["score_sums"]) + min(passes["gradient_sums"])
    bar = {} if report.quick else {"at_most": 3.0}
    report.add(_report.compare(f"{size:,} rows, both passes", [both], "DuckDB's sums of the columns", [scan], **bar))
    report.note(
        f"{size:,} rows: {found['peak']:.2f} GiB ({_report.met(found['peak'] < MOST_GIB)}), both passes "
        f"{1e6 * both / size:.2f} microseconds a row, the whole training {found['processor']:.0f} processor seconds, "
        f"{found['seconds']:.0f} s on a machine that others used as well."
    )


if __name__ == "__main__":
    if sys.argv[1] == "files":
        train_files(sys.argv[2])
    else:
        train_dask(sys.argv[2], int(sys.argv[3]))
