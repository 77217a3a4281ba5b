"""Audit and repair scores in a Spark session: ``python examples/audit_on_spark.py out/spark``. Needs Java 17.

The session is local, with two threads; on a cluster, only the builder's master differs.
"""

import sys
from pathlib import Path

from _adult_scores import write_scores
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

import fairtransport as ft

GROUPS = ["race", "sex"]


def main(spark: SparkSession, folder: Path) -> None:
    """Audit and repair the scores of Adult, write the repaired scores, and audit those."""
    table = spark.read.parquet(write_scores(folder / "scores"))
    before = ft.audit_table(table, score="score", sensitive_features=GROUPS, label="income")
    print(before)

    repair = ft.repair.TableRepair(score="score", sensitive_features=GROUPS).fit(table)
    print("Rows by the outcome of the repair:", repair.check(table))
    repaired = repair.transform(table)  # nothing is computed yet
    repaired.write.mode("overwrite").parquet(str(folder / "repaired"))  # the executors write

    again = spark.read.parquet(str(folder / "repaired"))
    after = ft.audit_table(again, score="repaired", sensitive_features=GROUPS, label="income")
    for name, value in before.metrics.items():
        print(f"{name:30} {value:.3f} before, {after.metrics[name]:.3f} after")


def start() -> SparkSession:
    """Start Spark on this machine, without its web interface; exit with a message if Java is missing."""
    builder = SparkSession.builder.master("local[2]").appName("audit")
    for name, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() == "JAVA_GATEWAY_EXITED":
            sys.exit("Spark needs Java 17: install it, and set JAVA_HOME or put java on PATH.")
        raise


if __name__ == "__main__":
    session = start()
    main(session, Path(sys.argv[1] if len(sys.argv) > 1 else "out/spark"))
    session.stop()
