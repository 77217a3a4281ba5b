"""A real cluster of two worker processes: what travels, what does not, and what a dead worker costs."""

import os
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from dask.sizeof import sizeof
from distributed import Client
from tests.tables.conftest import table_repair
from tests.worlds import score_table

import fairtransport as ft
from fairtransport.auditing import Inference

pytestmark = [
    pytest.mark.engines,
    pytest.mark.usefixtures("dask_client"),
    # Dask reads Parquet with an argument that pandas 3.1 is going to drop.
    pytest.mark.filterwarnings("ignore:The inplace keyword:pandas.errors.Pandas4Warning"),
]

N_ROWS, N_FILES = 240_000, 6
COLUMNS = {"score": "s", "sensitive_features": ["race", "sex"]}
ASIDE = ft.GroupPolicy(missing="set_aside")
QUICK = {"inference": Inference(n_bootstrap=20, n_permutations=20, random_state=0)}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Six Parquet files of 40,000 rows; some rows have no score, some no group."""
    folder = tmp_path_factory.mktemp("rows")
    unscored, unknown = pl.col("id") % 2400 == 0, pl.col("id") % 100 == 1
    table = score_table(N_ROWS, races=("B", "W", "X")).with_columns(
        s=pl.when(unscored).then(np.nan).otherwise("s"), race=pl.when(~unknown).then("race")
    )
    size = N_ROWS // N_FILES
    for number in range(N_FILES):
        table[number * size : (number + 1) * size].write_parquet(folder / f"{number}.parquet")
    return folder


def moved(client):
    """Bytes that the workers have sent to each other."""
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


def test_counts_travel_and_rows_do_not(files, dask_client, monkeypatch):
    """240,000 rows are 8 MB in the columns that are read; 6 groups of 129 nodes and 2 labels are 1,548 counts."""
    received = []
    gather = Client.gather

    def weigh(self, futures, *args, **kwargs):
        result = gather(self, futures, *args, **kwargs)
        received.append(sizeof(result))
        return result

    monkeypatch.setattr(Client, "gather", weigh)
    before = moved(dask_client)
    options = {**COLUMNS, **QUICK, "label": "y", "weight": "w", "n_bins": 128, "groups": ASIDE}
    found = ft.audit_table(dd.read_parquet(files), **options)
    assert len(received) >= 2
    assert max(received) < 300_000
    assert moved(dask_client) - before < 1_000_000
    beside = ft.audit_table(pl.scan_parquet(files), **options)
    assert found.metrics == pytest.approx(beside.metrics, abs=1e-12)
    assert found.settings.set_aside == beside.settings.set_aside
    assert set(found.settings.set_aside) == {"no score", "no group"}


def test_the_graph_has_two_tasks_a_partition_and_a_small_lookup(files):
    """Ten groups of 16,385 nodes: a graph above 10 MB would make the client warn."""
    many = pd.DataFrame(
        {"s": np.tile(np.linspace(0, 1, 40), 10), "g": np.repeat([f"group {n}" * 4 for n in range(10)], 40)}
    )
    repair = table_repair(score="s", sensitive_features="g").fit(many)
    table = dd.from_pandas(many, npartitions=8)
    repaired = repair.transform(table)
    assert len(repaired.optimize().dask) <= 2 * table.npartitions + 2
    assert len(repaired.compute()) == 400  # warnings are errors


def test_a_worker_that_dies_costs_its_partitions_and_no_more(files, tmp_path):
    """The first task to get there ends its process, as the system does when memory is short."""
    mark = str(tmp_path / "died")
    table = dd.read_parquet(files)

    def die_once(part):
        if len(part) and not Path(mark).exists():
            Path(mark).touch()
            os._exit(1)
        return part

    options = {**COLUMNS, **QUICK, "n_bins": 128, "groups": ASIDE}
    found = ft.audit_table(table.map_partitions(die_once, meta=table._meta), **options)
    assert Path(mark).exists()
    beside = ft.audit_table(pl.scan_parquet(files), **options)
    assert found.metrics == pytest.approx(beside.metrics, abs=1e-12)
