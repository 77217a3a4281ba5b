"""What docs/clusters.md shows works, on the cluster and in the session."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

pytestmark = [
    pytest.mark.engines,
    # Dask reads Parquet with an argument that pandas 3.1 is going to drop.
    pytest.mark.filterwarnings("ignore:The inplace keyword:pandas.errors.Pandas4Warning"),
]

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "clusters.md"


@pytest.fixture
def blocks(tmp_path):
    """The page's code, with the scores of Adult in the folder that its paths are moved to: Java keeps its own."""
    spec = importlib.util.spec_from_file_location("adult_scores", ROOT / "examples" / "_adult_scores.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.write_scores(tmp_path / "scores")
    text = PAGE.read_text(encoding="utf-8")
    for name in ("scores", "repaired", "repair.parquet"):
        text = re.sub(rf'(parquet\()"{name}"', rf'\1"{tmp_path / name}"', text)
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def run(block, names):
    exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 - our own text
    return names


def test_dask(blocks, dask_client, capsys, tmp_path):
    run(blocks[0].replace('Client("tcp://scheduler:8786")', "own"), {"own": dask_client})
    assert "Audit of 48,842 rows in 10 groups" in capsys.readouterr().out
    assert pl.read_parquet(tmp_path / "repaired" / "*.parquet")["repaired"].null_count() == 0


def test_spark(blocks, spark, capsys, tmp_path):
    names = run(blocks[1], {})
    assert "Audit of 48,842 rows in 10 groups" in capsys.readouterr().out
    written = pl.read_parquet(tmp_path / "repaired" / "*.parquet").sort("person")["repaired"].to_numpy()
    assert written.size == 48842
    fair = run(blocks[2], names)["fair"]
    assert fair.columns == ["race", "sex", "person", "score", "income", "repaired"]
    by_hand = pl.DataFrame(fair.toArrow()).sort("person")["repaired"].to_numpy()
    np.testing.assert_allclose(by_hand, written, rtol=0, atol=1e-12)
