"""Audit and repair scores on a Dask cluster: ``python examples/audit_on_dask.py out/dask``.

The cluster consists of two processes on this machine; for another one, use ``Client("tcp://scheduler:8786")``.
"""

import sys
from pathlib import Path

import dask.dataframe as dd
from _adult_scores import write_scores
from distributed import Client, LocalCluster

import fairtransport as ft

GROUPS = ["race", "sex"]


def main(folder: Path) -> None:
    """Audit and repair the scores of Adult, write the repaired scores, and audit those."""
    table = dd.read_parquet(write_scores(folder / "scores"))
    before = ft.audit_table(table, score="score", sensitive_features=GROUPS, label="income")
    print(before)

    repair = ft.repair.TableRepair(score="score", sensitive_features=GROUPS).fit(table)
    print("Rows by the outcome of the repair:", repair.check(table))
    repaired = repair.transform(table)  # nothing is computed yet
    repaired.to_parquet(folder / "repaired", write_index=False)  # each worker writes its own files

    again = dd.read_parquet(folder / "repaired")
    after = ft.audit_table(again, score="repaired", sensitive_features=GROUPS, label="income")
    for name, value in before.metrics.items():
        print(f"{name:30} {value:.3f} before, {after.metrics[name]:.3f} after")


if __name__ == "__main__":  # the workers are new processes, and import this file
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True)
    with cluster, Client(cluster):
        main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/dask"))
