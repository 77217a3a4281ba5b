"""The code of docs/boosting.md runs."""

import re
from pathlib import Path

import pytest

import fairtransport as ft

pytestmark = [pytest.mark.models, pytest.mark.filterwarnings("ignore::fairtransport.FairnessWarning")]
PAGE = Path(__file__).parents[2] / "docs" / "boosting.md"


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    text = PAGE.read_text(encoding="utf-8")
    # With several threads, small trees are slow on a shared machine.
    text = text.replace("verbose=-1)", "verbose=-1, n_jobs=1)").replace(
        '"verbose": -1}', '"verbose": -1, "num_threads": 1}'
    )
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 - text of this repository
    output = capsys.readouterr().out
    assert "Audit of 16,281 rows in 2 groups" in output
    assert "Trade-off of TransportBoostingClassifier" in output
    table = names["curve"].table()
    assert table["pairwise_disparity"][-1] < 0.3 * table["pairwise_disparity"][0]
    assert 0 < names["fair"].parity_weight <= 2
    assert ((names["scores"] >= 0) & (names["scores"] <= 1)).all()
    assert names["margins"].min() < 0
    assert names["again"].predict_proba(names["X"]).shape == (48842, 2)
    assert isinstance(ft.load(tmp_path / "model.ft"), type(names["model"]))
