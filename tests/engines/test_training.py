"""Training on real clusters: the model of rows in memory, whatever the partitions; a worker may die."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import dask.dataframe as dd
import numpy as np
import pytest
from distributed import Client
from sklearn.linear_model import LogisticRegression
from tests.linear.test_fit_table import COLUMNS, FEATURES, in_memory, rows
from tests.tabular.test_blind_tables import applicants, fitted

import fairtransport as ft
from fairtransport.linear import table_predictions, table_training

pytestmark = [
    pytest.mark.engines,
    pytest.mark.filterwarnings("ignore::fairtransport.FairnessWarning"),
    pytest.mark.filterwarnings("ignore:The inplace keyword:pandas.errors.Pandas4Warning"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]
OPTIONS = {"parity_weight": 0.5, "tol": 1e-6}


@pytest.fixture(scope="module")
def table():
    return rows()


@pytest.fixture(scope="module")
def expected(table):
    return in_memory(ft.TransportClassifier(**OPTIONS), table).predict_proba(table[FEATURES])[:, 1]


@pytest.fixture(autouse=True)
def on_workers(monkeypatch):
    """Make every table too large for memory."""
    monkeypatch.setattr(table_training, "MOST_IN_MEMORY", 0)


def weights(model):
    return np.append(model.coef_, model.intercept_)


@pytest.mark.usefixtures("dask_client")
def test_small_tables_have_the_model_of_rows_in_memory(spark, table, monkeypatch):
    monkeypatch.setattr(table_training, "MOST_IN_MEMORY", 50_000_000)
    expected = in_memory(ft.TransportClassifier(), table, strata="s").predict_proba(table[FEATURES])
    on_spark = spark.createDataFrame(table)
    for given in (dd.from_pandas(table, npartitions=3), dd.from_pandas(table, npartitions=1), on_spark.repartition(3)):
        model = ft.TransportClassifier().fit_table(given, **COLUMNS, strata="s")
        assert model.predict_proba(table[FEATURES]) == pytest.approx(expected, abs=1e-9)
    raw = ft.tabular.TableModel(ft.TransportClassifier(), label="y", sensitive_features=["g"], drop=["r", "w", "k"])
    expected = raw.fit(table).score_rows(table).scores
    for given in (dd.from_pandas(table, npartitions=3), on_spark):
        assert raw.fit_table(given).score_rows(table).scores == pytest.approx(expected, abs=1e-9)


@pytest.mark.usefixtures("dask_client")
def test_dask_gives_the_scores_of_rows_in_memory_on_any_number_of_partitions(table, expected):
    models = [
        ft.TransportClassifier(**OPTIONS).fit_table(dd.from_pandas(table, npartitions=n), **COLUMNS) for n in (1, 3, 10)
    ]
    assert np.abs(models[0].predict_proba(table[FEATURES])[:, 1] - expected).max() < 1e-3
    for other in models[1:]:
        scores = [one.predict_proba(table[FEATURES]) for one in (models[0], other)]
        assert scores[1] == pytest.approx(scores[0], abs=1e-9)


def test_a_dead_dask_worker_does_not_change_the_model(table, dask_client, tmp_path):
    """The worker of the first part is killed when this part is summed up for the tenth time."""
    for number, part in enumerate(np.array_split(np.arange(len(table)), 4)):
        table.iloc[part].to_parquet(tmp_path / f"{number}.parquet")
    before = ft.TransportClassifier(**OPTIONS).fit_table(dd.read_parquet(tmp_path), **COLUMNS)
    passes, submit = [], dask_client.submit

    def submit_and_kill(work, *args, **kwargs):
        passes.append(work)
        if len(passes) == 60:
            worker = next(iter(dask_client.has_what()))
            dask_client.run(lambda: os._exit(1), workers=[worker], wait=False, on_error="ignore")
        return submit(work, *args, **kwargs)

    dask_client.submit = submit_and_kill
    try:
        after = ft.TransportClassifier(**OPTIONS).fit_table(dd.read_parquet(tmp_path), **COLUMNS)
    finally:
        del dask_client.submit
    assert len(passes) > 60
    assert weights(after) == pytest.approx(weights(before), abs=1e-9)


@pytest.mark.usefixtures("dask_client")
def test_bad_partitions_are_named(table, tmp_path):
    """A column that is empty in one partition, of another type in another one, or without a label."""
    last = table.index >= 9_000
    bad = dd.from_pandas(table.assign(y=table["y"].where(~last)), npartitions=4)
    with pytest.raises(ValueError, match=r"'y' \(label\) is missing in 3,000 of 12,000"):
        ft.TransportClassifier(**OPTIONS).fit_table(bad, **COLUMNS)
    for number, part in enumerate((table[~last], table[last].drop(columns="x1"))):
        part.to_parquet(tmp_path / f"{number}.parquet")
    with pytest.raises(ValueError, match="Not all parts of the table have columns 'x0', 'x1'"):
        ft.TransportClassifier(**OPTIONS).fit_table(dd.read_parquet(tmp_path), **COLUMNS)
    model = ft.tabular.TableModel(ft.TransportClassifier(**OPTIONS), label="y", sensitive_features=["g"])
    with pytest.raises(ValueError, match="The table has no rows"):
        model.fit_table(dd.from_pandas(table[:0], npartitions=1))
    parts = [dd.from_pandas(part, npartitions=1) for part in (table[~last], table[last].assign(g="z"), table[:0])]
    model = ft.TransportClassifier(**OPTIONS).fit_table(dd.concat(parts), **COLUMNS)
    assert model.group_sizes_.tolist()[-1] == 3_000


def test_dask_without_a_cluster_says_so():
    """In a process of its own, where no other test has started a cluster."""
    program = """
import dask.dataframe as dd, pandas as pd, fairtransport as ft
table = pd.DataFrame({"x": [0.0, 1.0], "y": [0, 1], "g": ["a", "b"]})
ft.TransportClassifier().fit_table(dd.from_pandas(table, npartitions=2), label="y", sensitive_features="g")
"""
    environment = {name: value for name, value in os.environ.items() if name != "DASK_SCHEDULER_ADDRESS"}
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False
    )
    assert "make a distributed.Client first" in ended.stderr


def test_spark_gives_the_scores_of_rows_in_memory(spark, table, expected, tmp_path):
    for number, part in enumerate(np.array_split(np.arange(len(table)), 3)):
        table.iloc[part].to_parquet(tmp_path / f"{number}.parquet")
    frame = spark.read.parquet(str(tmp_path))
    model = ft.TransportClassifier(**OPTIONS).fit_table(frame, **COLUMNS)
    assert np.abs(model.predict_proba(table[FEATURES])[:, 1] - expected).max() < 1e-3


def test_spark_names_the_column_without_labels(spark, table):
    bad = spark.createDataFrame(table.assign(y=table["y"].astype(object).where(table.index > 2)))
    with pytest.raises(ValueError, match=r"'y' \(label\) is missing in 3 of 12,000"):
        ft.TransportClassifier(**OPTIONS).fit_table(bad, **COLUMNS)


def test_spark_partitions_do_not_change_the_model(spark, table):
    """Rows are in another order after a shuffle, too."""
    frame = spark.createDataFrame(table)
    models = [ft.TransportClassifier(**OPTIONS).fit_table(frame.repartition(n), **COLUMNS) for n in (1, 3)]
    scores = [one.predict_proba(table[FEATURES]) for one in models]
    assert scores[1] == pytest.approx(scores[0], abs=1e-9)


def test_adult_on_both_clusters(spark, dask_client, tmp_path):
    """Texts, gaps and numbers of raw rows: the scores of the table in memory, at a weight with one minimum."""
    table = ft.datasets.load_adult().frame
    table.to_parquet(tmp_path / "adult.parquet")
    model = ft.tabular.TableModel(
        ft.TransportClassifier(parity_weight=0.02, tol=1e-6),
        label="income_over_50k",
        sensitive_features=["race", "sex"],
    )
    expected = model.fit(table).score_rows(table).scores
    for given in (dd.from_pandas(table, npartitions=3), spark.read.parquet(str(tmp_path)).repartition(2)):
        assert np.abs(model.fit_table(given).score_rows(table).scores - expected).max() < 1e-3


def test_blind_repair_on_both_clusters(spark, dask_client, tmp_path, monkeypatch):
    """The model of files, whatever the partitions; its scores are added lazily, also to a part without rows."""
    table = applicants(1_200)
    monkeypatch.setattr(table_predictions, "_MOST_BOXES", 300)
    estimator = ft.BlindRepairClassifier(LogisticRegression(), slack=0.02)
    expected = fitted(table, tmp_path / "rows", estimator).score_rows(table).scores
    model = ft.tabular.TableModel(estimator, label="y", sensitive_features=["g"], drop=["pay"])
    on_dask = dd.from_pandas(table, npartitions=3)
    on_spark = spark.read.parquet(str(tmp_path / "rows")).repartition(2)
    for given in (on_dask, on_spark):
        model.fit_table(given)
        assert model.score_rows(table).scores == pytest.approx(expected, abs=1e-9)
    scored = model.score_table(dd.concat([on_dask, on_dask.partitions[[0]].query("a > 1e9")]), output="repaired")
    assert scored.compute()["repaired"].to_numpy() == pytest.approx(expected, abs=1e-9)
    scored = model.score_table(on_spark, output="repaired").toArrow().to_pandas()
    again = model.score_rows(scored[list(table.columns)]).scores
    assert scored["repaired"].to_numpy() == pytest.approx(again, abs=1e-12)
    assert len(scored) == len(table)
    with pytest.raises(ValueError, match="no column 'b', which the model needs"):
        model.score_table(on_spark.drop("b"))


def test_an_interrupted_reading_leaves_nothing_unread(table, dask_client, caplog):
    """Ctrl-C while workers read; tasks whose exceptions nobody has read report it when they are collected."""

    def slowly(part):
        time.sleep(1.0)
        return part

    slow = dd.from_pandas(table, npartitions=4).map_partitions(slowly, meta=table)
    with Client(dask_client.scheduler.address):
        threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            ft.TransportClassifier(**OPTIONS).fit_table(slow, **COLUMNS)
    gc.collect()
    time.sleep(0.1)
    assert [record.name for record in caplog.records if record.name == "asyncio"] == []


@pytest.mark.parametrize("engine", ["dask", "spark"])
def test_a_stopped_command_says_so_in_one_line(engine, table, dask_client, tmp_path):
    """All its processes get the signal, Java too; the checkpoint stays."""
    table.drop(columns=["r", "w", "k"]).to_parquet(tmp_path / "rows.parquet")
    program = """
from fairtransport.cli import main
from fairtransport.linear import table_training
table_training.MOST_IN_MEMORY = 0
main()
"""
    address = dask_client.scheduler.address.replace("tcp", "dask") if engine == "dask" else "spark"
    options = f"--label y --sensitive g --method cot --out model.ft --engine {address} --checkpoint steps".split()
    command = subprocess.Popen(
        [sys.executable, "-c", program, "train", "rows.parquet", *options],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    steps = tmp_path / "steps"
    while command.poll() is None and not (steps.exists() and steps.stat().st_size > 1_000):
        time.sleep(0.05)
    os.killpg(command.pid, signal.SIGTERM)
    _, said = command.communicate(timeout=60)
    assert command.returncode == 128 + signal.SIGTERM, said
    assert said.splitlines()[-1] == "stopped"
    assert not [line for line in said.splitlines() if "Traceback" in line or "Error" in line]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["rows.parquet", "steps"]


def test_a_worker_without_the_package_is_reported(table, dask_client, monkeypatch):
    monkeypatch.setattr(
        dask_client, "run", lambda *_, **__: {"one": ModuleNotFoundError("No module named 'fairtransport'"), "two": ft}
    )
    with pytest.raises(ValueError, match="1 of 2 Dask workers cannot import fairtransport: install it"):
        ft.TransportClassifier(**OPTIONS).fit_table(dd.from_pandas(table, npartitions=2), **COLUMNS)


def test_spark_executors_without_the_package_are_reported(spark, table, monkeypatch):
    from fairtransport.linear import _spark_partitions  # noqa: PLC0415

    def absent(_):
        raise ModuleNotFoundError("No module named 'fairtransport'")

    monkeypatch.setattr(_spark_partitions, "_on_rows", lambda batches, work: absent(batches))  # noqa: ARG005
    with pytest.raises(ValueError, match="executors cannot import fairtransport"):
        ft.TransportClassifier(**OPTIONS).fit_table(spark.createDataFrame(table[:100]), **COLUMNS)
