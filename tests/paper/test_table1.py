"""The table's machinery, on few splits with few updates; the figures themselves are in ``test_figures.py``."""

import csv
import io
import json

import numpy as np
import pytest

from fairtransport.paper import table1
from fairtransport.paper._methods import METRICS, fit_method, measure, prepare
from fairtransport.paper.finding import run_parts
from fairtransport.paper.splits import german_splits
from fairtransport.paper.table1 import DATASETS, TABLE_METHODS, Table1, Table1Row, run_table1


@pytest.fixture(scope="module")
def german():
    return run_table1(quick=True, n_seeds=2, datasets=["German"])


def test_has_a_row_for_every_method_and_metric(german):
    keys = [(row.method, row.metric) for row in german.rows]
    assert keys == [(method, metric) for method in TABLE_METHODS for metric in METRICS]
    assert {row.n for row in german.rows} == {2}
    assert all(np.isfinite(row.mean) and row.spread > 0 for row in german.rows)


def test_figures_are_those_of_the_methods(german):
    for method in ("LR", "DPP (W2)", "COT (anchor)"):
        runs = []
        for seed, split in enumerate(german_splits(2)):
            problem = prepare(split)
            runs.append(measure(fit_method(method, problem, random_state=seed, quick=True), problem))
        for metric, name in METRICS.items():
            values = [run[name] for run in runs]
            row = german.value("German", method, metric)
            assert row.mean == pytest.approx(np.mean(values))
            assert row.spread == pytest.approx(np.std(values, ddof=1))


def test_rows_have_the_published_figure_and_the_noise_floor(german):
    row = german.value("German", "COT (anchor)", "SPDD")
    assert row.published == 0.027
    assert 0.01 < row.floor < 0.06
    assert german.value("German", "LR", "SPDD").floor == row.floor
    assert german.value("German", "LR", "Err-.5").floor is None
    with pytest.raises(KeyError):
        german.value("German", "LR", "AUC")


def test_adult_has_seeds_only_where_chance_has_a_part(monkeypatch):
    monkeypatch.setattr(table1, "adult_split", lambda _: german_splits(1)[0])  # a small stand-in
    table = run_table1(quick=True, n_seeds=2, datasets=["Adult"])
    counts = {row.method: row.n for row in table.rows}
    assert counts == {"LR": 1, "DPP": 1, "DPP (W2)": 1, "DOT": 2, "COT (paper)": 2, "COT (anchor)": 2}
    assert table.value("Adult", "LR", "SPDD").spread == 0.0
    assert table.value("Adult", "COT (anchor)", "SPDD").spread > 0.0


def test_all_data_sets_by_default(monkeypatch):
    small, asked = german_splits(1), []
    monkeypatch.setattr(table1, "adult_split", lambda _: small[0])
    monkeypatch.setattr(table1, "german_splits", lambda n: asked.append(n) or small)
    monkeypatch.setattr(table1, "communities_splits", lambda n, crossed: asked.append((n, crossed)) or small)
    monkeypatch.setattr(table1, "TABLE_METHODS", ("LR", "DPP"))
    table = run_table1()
    assert tuple(dict.fromkeys(row.dataset for row in table.rows)) == DATASETS
    assert asked == [20, (10, True), (10, False)]


@pytest.fixture
def table():
    return Table1(
        (
            Table1Row("Adult", "LR", "Err-.5", 0.1475, 0.0, 1, 0.142, None),
            Table1Row("Adult", "LR", "Wass1", 0.3142, 0.0, 1, 0.313, 0.0281),
            Table1Row("Adult", "LR", "SDD", 0.4276, 0.0, 1, 0.426, 0.0252),
            Table1Row("Adult", "LR", "SPDD", 1.8074, 0.0, 1, 1.806, 0.0611),
            Table1Row("Adult", "COT (paper)", "Err-.5", 0.1702, 0.0021, 5, 0.175, None),
            Table1Row("Adult", "COT (paper)", "Wass1", 0.0292, 0.001, 5, 0.023, 0.0281),
            Table1Row("Adult", "COT (paper)", "SDD", 0.0195, 0.004, 5, 0.02, 0.0252),
            Table1Row("Adult", "COT (paper)", "SPDD", 0.0507, 0.0006, 5, None, 0.0611),
        )
    )


def test_markdown(table):
    lines = table.to_markdown().splitlines()
    assert "| | Err-.5 | Wass1 | SDD | SPDD | runs |" in lines
    assert "| LR | .147 (.142) | .314 (.313) | .428 (.426) | 1.807 (1.806) | 1 |" in lines
    assert (
        "| COT (paper) | **.170 ± .002** (.175) | .029 ± .001 (.023) | .019 ± .004 (.020) | .051 ± .001 | 5 |" in lines
    )
    assert "| noise floor |  | .028 | .025 | .061 | |" in lines
    assert "Quick run" not in table.to_markdown()
    assert "Quick run" in Table1(table.rows, quick=True).to_markdown()


@pytest.mark.parametrize(
    ("method", "mean", "spread", "n", "published", "beyond"),
    [
        ("COT (anchor)", 0.170, 0.0, 1, 0.175, True),
        ("COT (anchor)", 0.1748, 0.0, 1, 0.175, False),  # the paper prints three digits
        ("COT (anchor)", 0.170, 0.02, 4, 0.175, False),  # within the standard error
        ("COT (anchor)", 0.170, 0.02, 100, 0.175, True),
        ("COT (anchor)", 0.170, 0.0, 1, None, False),
        ("LR", 0.1, 0.0, 1, 0.175, False),
    ],
)
def test_beyond_the_paper(method, mean, spread, n, published, beyond):
    assert Table1Row("Adult", method, "Err-.5", mean, spread, n, published, None).beyond is beyond


def test_csv_and_json_have_every_digit(table):
    lines = list(csv.DictReader(io.StringIO(table.to_csv())))
    content = json.loads(table.to_json())
    assert content["quick"] is False
    for row, line, entry in zip(table.rows, lines, content["rows"], strict=True):
        assert (line["dataset"], line["method"], line["metric"]) == (row.dataset, row.method, row.metric)
        assert (float(line["mean"]), int(line["n"])) == (row.mean, row.n)
        assert line["floor"] == ("" if row.floor is None else str(row.floor))
        assert line["beyond"] == str(row.beyond)
        beyond = entry.pop("beyond")
        assert Table1Row(**entry) == row
        assert beyond == row.beyond


def test_the_page_has_the_table_and_its_claims(monkeypatch):
    small = german_splits(2)
    monkeypatch.setattr(table1, "adult_split", lambda _: small[0])
    monkeypatch.setattr(table1, "german_splits", lambda _: small)
    monkeypatch.setattr(table1, "communities_splits", lambda _, **__: small)
    monkeypatch.setattr(table1, "_QUICK_RUNS", dict.fromkeys(DATASETS, 2))
    finding = table1.assemble(run_parts(table1.parts(quick=True), n_jobs=2), quick=True)
    assert {claim.verdict for claim in finding.claims} <= {"agrees", "better", "differs"}
    assert finding.shown["table1"].rows[0][:2] == ("Adult", "LR")
    # The stand-in is not Adult, and the claim that it shows the paper's figures says so.
    assert finding.claims[0].verdict == "differs"
    assert finding.claims[1].verdict == "agrees"
