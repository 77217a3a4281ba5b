"""The examples of clusters run from end to end, as a user runs them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fairtransport as ft

pytestmark = pytest.mark.engines

ROOT = Path(__file__).parents[2]


def run(name, *arguments, **environment):
    path = os.pathsep.join([str(Path(ft.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, str(ROOT / "examples" / f"{name}.py"), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", ["audit_on_dask", "audit_on_spark"])
def test_it_audits_repairs_and_writes(name, tmp_path):
    done = run(name, tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Audit of 48,842 rows in 10 groups (race, sex)" in done.stdout
    assert "'rows': 48842, 'clamped': 0, 'no score': 0" in done.stdout
    printed = {words[0]: (float(words[1]), float(words[3])) for words in map(str.split, done.stdout.splitlines())
               if len(words) == 5 and words[2] == "before,"}  # fmt: skip
    before, after = printed["strong_pairwise_disparity"]
    assert after < 0.1 < 2 < before
    written = pl.read_parquet(tmp_path / "repaired" / "*.parquet").sort("person")
    assert written.height == 48842
    scores, groups = written["score"].to_numpy(), written.select("race", "sex")
    exact = ft.QuantileRepair().fit(scores, sensitive_features=groups).transform(scores, sensitive_features=groups)
    assert np.median(np.abs(written["repaired"].to_numpy() - exact)) < 1 / 16384
    found = ft.metrics.strong_pairwise_disparity(written["repaired"].to_numpy(), sensitive_features=groups)
    assert found == pytest.approx(after, abs=1e-3)


def test_without_java_one_line_says_what_is_needed(tmp_path):
    """Spark's own launcher needs these four commands; Java is none of them."""
    for command in ("bash", "dirname", "env", "uname"):
        (tmp_path / command).symlink_to(shutil.which(command))
    done = run("audit_on_spark", tmp_path / "out", PATH=str(tmp_path), JAVA_HOME="")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "Spark needs Java 17: install it, and set JAVA_HOME or put java on PATH."
    assert "Traceback" not in done.stderr
