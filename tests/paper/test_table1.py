"""The table's machinery, on few splits with few updates; the figures themselves are in ``test_figures.py``."""

import numpy as np
import pytest

from fairtransport.paper import table1
from fairtransport.paper._methods import METRICS, fit_method, measure, prepare
from fairtransport.paper.finding import run_parts
from fairtransport.paper.splits import german_splits
from fairtransport.paper.table1 import DATASETS, TABLE_METHODS, Table1, Table1Row


@pytest.fixture(scope="module")
def german(run_table1):
    return run_table1("German", quick=True, n_seeds=2)


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


def test_adult_has_seeds_only_where_chance_has_a_part(run_table1, monkeypatch):
    monkeypatch.setattr(table1, "adult_split", lambda _: german_splits(1)[0])  # a small stand-in
    table = run_table1("Adult", quick=True, n_seeds=2)
    counts = {row.method: row.n for row in table.rows}
    assert counts == {"LR": 1, "DPP": 1, "DPP (W2)": 1, "DOT": 2, "COT (paper)": 2, "COT (anchor)": 2}
    assert table.value("Adult", "LR", "SPDD").spread == 0.0
    assert table.value("Adult", "COT (anchor)", "SPDD").spread > 0.0


def test_all_data_sets_by_default(run_table1, monkeypatch):
    small, asked = german_splits(1), []
    monkeypatch.setattr(table1, "adult_split", lambda _: small[0])
    monkeypatch.setattr(table1, "german_splits", lambda n: asked.append(n) or small)
    monkeypatch.setattr(table1, "communities_splits", lambda n, crossed: asked.append((n, crossed)) or small)
    monkeypatch.setattr(table1, "TABLE_METHODS", ("LR", "DPP"))
    table = run_table1(*DATASETS)
    assert tuple(dict.fromkeys(row.dataset for row in table.rows)) == DATASETS
    assert asked == [20, (10, True), (10, False)]


def test_lines_show_ours_and_the_published_figure():
    table = Table1(
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
    assert list(table.lines()) == [
        ("Adult", "LR", ".147 (.142)", ".314 (.313)", ".428 (.426)", "1.807 (1.806)"),
        ("Adult", "COT (paper)", ".170 ± .002 (.175)", ".029 ± .001 (.023)", ".019 ± .004 (.020)", ".051 ± .001"),
        ("Adult", "noise floor", "", ".028", ".025", ".061"),
    ]


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
