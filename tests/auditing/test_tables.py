"""Audits, comparisons and curves as data frames, Markdown and notebook cells; three readings of selection rates."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency

import fairtransport as ft
from fairtransport.auditing import Inference
from fairtransport.auditing.records import compare_rates
from fairtransport.auditing.text import AUDIT_TABLES


@pytest.fixture(scope="module")
def audit():
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b", "<c>|", "few"], 1500, p=[0.5, 0.3, 0.19, 0.01])
    scores = rng.beta(2 + (group == "b"), 3)
    return ft.audit(
        scores,
        (rng.random(1500) < scores).astype(int),
        sensitive_features={"g": group},
        strata={"s": rng.choice(["x", "y"], 1500)},
        thresholds=[0.3, 0.5],
        inference=Inference(n_bootstrap=99, n_permutations=99, random_state=0),
    )


@pytest.fixture(scope="module")
def regression():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=400)
    groups = rng.choice(["a", "b"], 400)
    y = scores + rng.normal(size=400)
    return ft.audit(
        scores, y, sensitive_features=groups, inference=Inference(n_bootstrap=20, n_permutations=20, random_state=0)
    )


@pytest.mark.parametrize("table", AUDIT_TABLES)
def test_every_table_is_a_frame_of_every_library(audit, regression, table):
    source = regression if table.startswith("residual") else audit
    frames = {library: source.to_frame(table, library=library) for library in ("pandas", "polars", "pyarrow")}
    columns = list(frames["pandas"].columns)
    assert len(frames["pandas"]) > 0
    assert list(frames["polars"].columns) == columns == frames["pyarrow"].column_names
    assert len(frames["polars"]) == len(frames["pandas"]) == frames["pyarrow"].num_rows


def test_frames_hold_the_figures_of_the_audit(audit):
    groups = audit.to_frame()
    assert isinstance(groups, pd.DataFrame)
    assert groups["group"].tolist() == [group.name for group in audit.groups]
    assert groups["mean"].tolist() == [group.mean for group in audit.groups]
    metrics = audit.to_frame("metrics").query("criterion == 'demographic parity'").set_index("metric")
    assert metrics["value"].to_dict() == audit.metrics
    pairs = audit.to_frame("pairs")
    assert pairs["p_value"].isna().sum() == 3  # those of the group with few rows
    with pytest.raises(ValueError, match="table must be one of"):
        audit.to_frame("people")
    with pytest.raises(ValueError, match="library must be"):
        audit.to_frame(library="dask")


def test_markdown_has_every_group_and_no_markup_of_its_own(audit, tmp_path):
    path = audit.with_provenance(title="March *2026*").to_markdown(tmp_path / "audit.md")
    text = path.read_text()
    assert text.startswith("# March \\*2026\\*\n")
    assert "\\<c\\>\\|" in text
    assert not re.search(r"(?<!\\)<c>", text)
    for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
    assert "lawful" in text.splitlines()[-1]
    assert "too few rows" in text
    assert audit.to_markdown(title="X").startswith("# X\n")


def test_the_three_readings_are_those_of_a_contingency_table(audit):
    rng = np.random.default_rng(1)
    n = {"a": 400, "b": 300}
    selected = {"a": 200, "b": 120}
    scores = np.concatenate([np.r_[np.full(selected[g], 0.9), np.full(n[g] - selected[g], 0.1)] for g in n])
    result = ft.audit(
        scores,
        sensitive_features=np.repeat(list(n), list(n.values())),
        inference=Inference(n_bootstrap=20, random_state=rng),
    )
    (row,) = compare_rates(result)
    table = [[selected[g], n[g] - selected[g]] for g in n]
    assert row.p_value == pytest.approx(chi2_contingency(table, correction=False).pvalue, rel=1e-9)
    assert (row.group, row.reference) == ("b", "a")
    assert row.ratio.value == pytest.approx((120 / 300) / (200 / 400))
    assert (row.four_fifths, row.significant, row.material) == (True, True, True)
    frame = result.to_frame("rates")
    assert frame["p_value"].tolist() == [row.p_value]


def test_a_risk_score_is_read_the_other_way_round():
    scores = np.r_[np.full(60, 0.9), np.full(40, 0.1), np.full(20, 0.9), np.full(80, 0.1)]
    result = ft.audit(
        scores, sensitive_features=np.repeat(["a", "b"], 100), favourable="low", inference=Inference(n_bootstrap=20)
    )
    (row,) = compare_rates(result)
    assert (row.group, row.reference, row.rate.value) == ("a", "b", pytest.approx(0.4))


def test_comparison_and_frontier_as_frames_and_in_notebooks(audit):
    comparison = ft.compare(audit, audit, names=("<old>", "new"))
    assert set(comparison.to_frame()["change"]) == {0.0}
    assert set(comparison.to_frame("thresholds", library="polars")["figure"]) == {"selection_rate", "error_rate"}
    html = comparison._repr_html_()
    assert "&lt;old&gt;" in html
    assert "<old>" not in html
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    y = (X[:, 0] + group + rng.normal(size=300) > 0).astype(int)
    curve = ft.frontier(
        ft.TransportClassifier(), X, y, sensitive_features=group, parity_weights=[0, 1], cv=2, random_state=0
    )
    assert curve.to_frame()["parity_weight"].tolist() == [0, 1]
    assert curve._repr_html_().count("<tr>") == 3
