"""Tables of scores without known bounds and of real-valued labels: the same figures on every engine as from rows."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import fairtransport as ft
from fairtransport.auditing.errors.regression import REGRESSION_FIGURES

QUICK = {"n_bootstrap": 20, "n_permutations": 20, "random_state": 0}


def table_of_predictions(n=3000):
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b", "c"], n)
    scores = np.round(rng.standard_t(3, n) + 0.5 * (group == "b"), 4)
    y = scores + rng.normal(size=n)
    scores[0] = 1e9
    return {"s": scores, "y": y, "g": group, "w": rng.integers(1, 4, n) / 2.0}


def both(to_table, columns, *, weighted=False, **options):
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    exact = ft.audit(
        arrays["s"],
        arrays["y"],
        sensitive_features=arrays["g"],
        sample_weight=arrays["w"] if weighted else None,
        **options,
        **QUICK,
    )
    found = ft.audit_table(
        to_table(columns),
        score="s",
        sensitive_features="g",
        label="y",
        weight="w" if weighted else None,
        **options,
        **QUICK,
    )
    return exact, found


@pytest.mark.parametrize("weighted", [False, True])
def test_every_engine_has_the_figures_of_the_rows(to_table, weighted):
    exact, found = both(to_table, table_of_predictions(), weighted=weighted, thresholds=[0.3, "top 10%"])
    assert not found.settings.bounded
    assert found.settings.task == "regression"
    for name in ("rank_disparity", "kolmogorov_smirnov_disparity"):
        assert found.metrics[name] == pytest.approx(exact.metrics[name], abs=1e-3)
    pairs = "strong_pairwise_disparity"
    assert found.metrics[pairs] == pytest.approx(exact.metrics[pairs], rel=1e-5)
    assert [rate.value for rate in found.thresholds[0].rates] == pytest.approx(
        [rate.value for rate in exact.thresholds[0].rates]
    )
    for one, other in zip(found.regression.groups, exact.regression.groups, strict=True):
        for figure in REGRESSION_FIGURES:
            assert one.figures[figure].value == pytest.approx(other.figures[figure].value, rel=1e-6)
            assert one.figures[figure].high == pytest.approx(other.figures[figure].high, rel=1e-4)
            if other.p_values[figure] is not None:  # of all groups but the reference
                assert one.p_values[figure] == pytest.approx(other.p_values[figure], rel=1e-3)
    assert len(found.regression.deciles) == len(exact.regression.deciles)
    for one, other in zip(found.regression.deciles, exact.regression.deciles, strict=True):
        assert one.overall.value == pytest.approx(other.overall.value, rel=1e-3, abs=0.05)


def test_decile_scores_are_counted_exactly(to_table):
    rng = np.random.default_rng(1)
    group = rng.choice(["a", "b"], 800)
    scores = np.clip(np.round(rng.normal(5 + (group == "b"), 2)), 1, 10)
    columns = {"s": scores, "g": group, "y": (rng.random(800) < scores / 11).astype(int)}
    exact, found = both(to_table, columns)
    assert found.settings.task == "classification"
    assert found.histograms.grid == exact.histograms.grid
    assert found.metrics == pytest.approx(exact.metrics)
    assert found.verdict.sentence == exact.verdict.sentence


def test_rows_without_label_are_set_aside_and_infinite_ones_refused(to_table):
    columns = table_of_predictions(400)
    columns["y"] = [None if index < 3 else value for index, value in enumerate(columns["y"].tolist())]
    audit = ft.audit_table(to_table(columns), score="s", sensitive_features="g", label="y", **QUICK)
    assert audit.settings.set_aside == {"no label": 3}
    assert audit.rows == 397
    columns["y"][5] = float("inf")
    with pytest.raises(ValueError, match="'y' has 1 of 400 infinite labels"):
        ft.audit_table(to_table(columns), score="s", sensitive_features="g", label="y", **QUICK)


def test_a_few_whole_numbers_need_a_task(to_table):
    rng = np.random.default_rng(2)
    columns = {"s": rng.normal(size=200), "g": rng.choice(["a", "b"], 200), "y": rng.integers(0, 5, 200)}
    options = {"score": "s", "sensitive_features": "g", "label": "y", **QUICK}
    with pytest.raises(ValueError, match=r'\'y\' has 5 different whole numbers.* task="regression"'):
        ft.audit_table(to_table(columns), **options)
    assert ft.audit_table(to_table(columns), task="regression", **options).regression is not None


def test_equalized_odds_and_pooled_groups():
    columns = table_of_predictions(2000)
    columns["g"] = np.where(np.arange(2000) % 200 == 0, "d", columns["g"])
    exact, found = both(pl.DataFrame, columns, criterion="equalized_odds", small_groups="pool")
    assert found.settings.strata == exact.settings.strata == ()
    rank = "rank_disparity"
    assert found.conditional[rank].value == pytest.approx(exact.conditional[rank].value, abs=0.01)
    assert [group.name for group in found.regression.groups] == [group.name for group in found.groups]
    names = [one.name for one in exact.regression.groups]
    for one in found.regression.groups:
        other = exact.regression.groups[names.index(one.name)]
        assert one.figures["mae"].value == pytest.approx(other.figures["mae"].value)
