"""A real Spark session in local mode: what its tables have and others have not, and what is sent around."""

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everyone writes it
from tests.tables.conftest import columns_of_scores, table_repair

import fairtransport as ft
from fairtransport.auditing import Inference

pytestmark = pytest.mark.engines

COLUMNS = {"score": "s", "sensitive_features": ["race", "sex"]}
QUICK = {"inference": Inference(n_bootstrap=20, n_permutations=20, random_state=0)}


@pytest.fixture(scope="module")
def columns():
    return columns_of_scores(60_000)


@pytest.fixture(scope="module")
def table(spark, columns, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    for number in range(4):
        pl.DataFrame(columns)[number::4].write_parquet(folder / f"{number}.parquet")
    return spark.read.parquet(str(folder))


class Jobs:
    """What Spark ran since it was made."""

    def __init__(self, spark):
        context = spark.sparkContext
        self._store = context._jsc.sc().statusStore()
        self._none = context._gateway.new_array(context._jvm.double, 0)
        self._before = set(self._stages())

    def _stages(self):
        stages = self._store.stageList(None, False, False, self._none, None)
        found = (stages.apply(place) for place in range(stages.size()))
        return {stage.stageId(): stage for stage in found}

    def records_sent(self):
        """Rows that each stage handed to the next."""
        return [stage.shuffleWriteRecords() for number, stage in self._stages().items() if number not in self._before]


def plan(frame):
    return frame._jdf.queryExecution().executedPlan().toString()


def by_id(native):
    return nw.from_native(native).lazy().collect().sort("id")


def test_counts_are_sent_and_rows_are_not(spark, table, columns, monkeypatch):
    """To the driver: 6 groups of 65 nodes at most. From stage to stage: that many for each of the tasks."""
    received = []
    collect = nw.LazyFrame.collect

    def weigh(self, *args, **kwargs):
        result = collect(self, *args, **kwargs)
        received.append(len(result))
        return result

    monkeypatch.setattr(nw.LazyFrame, "collect", weigh)
    monkeypatch.setattr("fairtransport.tables.column_roles.PROBED", 100)
    jobs = Jobs(spark)
    found = ft.audit_table(table, **COLUMNS, n_bins=64, **QUICK)
    assert 1 < max(received) <= 6 * 65
    assert sum(jobs.records_sent()) < 5000  # of 60,000 rows
    beside = ft.audit_table(pl.DataFrame(columns), **COLUMNS, n_bins=64, **QUICK)
    assert found.metrics == pytest.approx(beside.metrics, abs=1e-12)


def test_a_repair_is_one_broadcast_join_without_python(spark, table, columns):
    repair = table_repair(**COLUMNS, n_bins=1024).fit(pl.DataFrame(columns))
    jobs = Jobs(spark)
    repaired = repair.transform(table)
    assert jobs.records_sent() == []  # nothing ran
    assert "BroadcastHashJoin" in plan(repaired)
    assert "Python" not in plan(repaired)
    beside = repair.transform(pl.DataFrame(columns))
    found = by_id(repaired)
    assert sum(jobs.records_sent()) == 0
    np.testing.assert_allclose(found["repaired"].to_numpy(), beside["repaired"].to_numpy(), rtol=0, atol=1e-12)


def test_a_lookup_that_spark_finds_large_is_still_sent_to_all(spark, table, columns, monkeypatch):
    """Spark sends tables of up to 10 MB; of larger ones it would sort and send around all rows."""
    repair = table_repair(**COLUMNS, n_bins=256).fit(pl.DataFrame(columns))
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "1")
    try:
        told = plan(repair.transform(table))
        assert "BroadcastHashJoin" in told
        monkeypatch.setattr("pyspark.sql.classic.dataframe.DataFrame.hint", lambda self, *_: self)
        assert "BroadcastHashJoin" not in plan(repair.transform(table))
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", before)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_spark_quotes_values_and_we_do_not(spark, ansi):
    """A text that is no number: with ANSI rules the query fails, and Spark's text says which value; else it is null."""
    frame = spark.createDataFrame(pa.table({"s": ["0.25", "0.5", "canary-value"], "g": ["a", "b", "b"]}))
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        numbers = frame.withColumn("s", F.col("s").cast("double"))
        if ansi == "true":
            with pytest.raises(RuntimeError, match=r"Spark could not compute .*: CAST_INVALID_INPUT") as caught:
                ft.audit_table(numbers, score="s", sensitive_features="g", **QUICK)
            assert "canary" not in str(caught.value)
            assert caught.value.__suppress_context__
        else:
            found = ft.audit_table(numbers, score="s", sensitive_features="g", **QUICK)
            assert found.settings.set_aside == {"no score": 1}
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
