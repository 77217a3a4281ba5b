"""Settings that all tests share, and the two clusters: started when the first test asks, stopped after the last."""

import os
import shutil
import signal
import sys

import pytest
from hypothesis import settings
from tests import worlds

settings.register_profile("steady", deadline=None)  # this machine may be busy; a slow example is no fault
settings.load_profile("steady")

# A shell starts background jobs with Ctrl-C ignored, and children inherit that: tests that press it would never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path, config):
    """Leave out files without the mark that ``-m`` asks for: to import all tests takes longer than to run some parts.

    Expressions that begin otherwise, such as ``-m "not trust"``, need all files.
    """
    wanted = config.option.markexpr.partition(" and ")[0]
    marks = {line.partition(":")[0] for line in config.getini("markers")}
    if wanted in marks and collection_path.name.startswith("test_") and collection_path.suffix == ".py":
        return f"mark.{wanted}" not in collection_path.read_text(encoding="utf-8") or None
    return None


@pytest.fixture(autouse=True)
def _close_figures():
    """Close the figures that earlier tests and examples opened; matplotlib warns when there are many."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session")
def raw_people():
    """Return what makes a raw table of people."""
    return worlds.raw_people


@pytest.fixture(scope="session")
def dask_client(tmp_path_factory):
    """Start a scheduler and two workers of one thread, each a process of its own."""
    from distributed import Client, LocalCluster  # noqa: PLC0415 - the other tests do not need it

    folder = tmp_path_factory.mktemp("dask")
    with (
        LocalCluster(
            n_workers=2,
            processes=True,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            local_directory=str(folder),
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """Start a session in local mode: one Java process, two threads."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.fail("Spark needs Java 17: no `java` on PATH and no JAVA_HOME.", pytrace=False)
    from pyspark.sql import SparkSession  # noqa: PLC0415 - likewise

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # otherwise the first python3 of PATH

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "OFF")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    yield session
    session.stop()
