"""Errors of real-valued predictions, by group: against scikit-learn, scipy and simulation."""

import numpy as np
import pytest
from scipy.stats import ttest_ind
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

import fairtransport as ft
from fairtransport.auditing import Inference
from fairtransport.auditing._evidence import Rows
from fairtransport.auditing.errors.regression import REGRESSION_FIGURES, estimate_regression, moments_of_rows
from fairtransport.groups import make_groups

FEW = {"inference": Inference(n_bootstrap=20, n_permutations=20, random_state=0)}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b", "c"], [300, 200, 100])
    scores = rng.normal(50_000, 9_000, 600)
    y = scores + rng.normal(np.where(group == "b", 2_000, 0), np.where(group == "c", 6_000, 3_000))
    return scores, y, group


def test_figures_are_those_of_scikit_learn_by_group(table):
    scores, y, group = table
    errors = ft.audit(scores, y, sensitive_features=group, **FEW).regression
    for one in (*errors.groups, None):
        rows = np.ones(600, bool) if one is None else group == one.name
        figures = errors.overall if one is None else one.figures
        expected = {
            "rmse": root_mean_squared_error(y[rows], scores[rows]),
            "mae": mean_absolute_error(y[rows], scores[rows]),
            "r2": r2_score(y[rows], scores[rows]),
            "mean_residual": np.mean(y[rows] - scores[rows]),
        }
        for name, value in expected.items():
            assert figures[name].value == pytest.approx(value), name
            assert figures[name].low < value < figures[name].high
    assert errors.label_deviation == pytest.approx(y.std())
    assert errors.label_mean == pytest.approx(y.mean())


def test_differences_of_mean_residuals_are_welch_tests_with_holm(table):
    scores, y, group = table
    errors = ft.audit(scores, y, sensitive_features=group, **FEW).regression
    assert errors.reference == "a"
    residuals = {name: (y - scores)[group == name] for name in "abc"}
    tests = {name: ttest_ind(residuals[name], residuals["a"], equal_var=False) for name in "bc"}
    raw = sorted((test.pvalue, name) for name, test in tests.items())
    adjusted = {raw[0][1]: min(1, 2 * raw[0][0])}
    adjusted[raw[1][1]] = max(raw[1][0], adjusted[raw[0][1]])
    for one in errors.groups[1:]:
        assert one.p_values["mean_residual"] == pytest.approx(adjusted[one.name], rel=1e-6)
        interval = tests[one.name].confidence_interval(0.95)
        assert one.differences["mean_residual"].low == pytest.approx(interval.low, rel=1e-6)
    by_name = {one.name: one for one in errors.groups}
    assert by_name["b"].p_values["mean_residual"] < 1e-6
    assert by_name["c"].p_values["rmse"] < 1e-3


def test_weights_count_as_copies(table):
    scores, y, group = table
    weights = np.random.default_rng(1).integers(1, 4, 600)
    weighted = ft.audit(scores, y, sensitive_features=group, sample_weight=weights, **FEW).regression
    copies = ft.audit(
        *(np.repeat(values, weights) for values in (scores, y)), sensitive_features=np.repeat(group, weights), **FEW
    ).regression
    for one, other in zip(weighted.groups, copies.groups, strict=True):
        for name in REGRESSION_FIGURES:
            assert one.figures[name].value == pytest.approx(other.figures[name].value)
            assert one.figures[name].high - one.figures[name].low > other.figures[name].high - other.figures[name].low


def test_deciles_partition_the_predictions(table):
    scores, y, group = table
    errors = ft.audit(scores, y, sensitive_features=group, **FEW).regression
    assert len(errors.deciles) == 10
    for decile in errors.deciles[1:]:
        rows = (scores > decile.low) & (scores <= decile.high)
        assert rows.sum() == pytest.approx(60, abs=1)
        assert decile.overall.value == pytest.approx(np.mean((y - scores)[rows]))
        first = rows & (group == "a")
        assert decile.groups[0].value == pytest.approx(np.mean((y - scores)[first]))


def test_few_rows_have_no_certain_error_and_equal_labels_no_r2():
    scores, y = np.array([1.0, 2.0, 3.0, 4.0, 9.5]), np.array([1.5, 2.5, 3.0, 3.0, 3.0])
    audit = ft.audit(scores, y, sensitive_features=["a", "a", "b", "b", "c"], task="regression", **FEW)
    b, c = audit.regression.groups[1:]
    assert b.figures["r2"] is None
    assert c.figures["rmse"].value == pytest.approx(6.5)
    assert c.figures["rmse"].high == np.inf
    assert audit.verdict.status == "too_few_rows"
    assert ft.Audit.from_json(audit.to_json()).to_json() == audit.to_json()


def test_equalized_odds_compares_people_with_similar_labels(table):
    scores, y, group = table
    audit = ft.audit(scores, y, sensitive_features=group, criterion="equalized_odds", **FEW)
    assert len(audit.strata) >= 2
    assert "Among people with similar outcomes" in str(audit)
    assert "label" in audit.provenance.strata_cuts
    within = ft.audit(
        scores, y, sensitive_features=group, strata={"part": scores > 5e4}, criterion="equalized_odds", **FEW
    )
    assert within.settings.strata == ("part",)
    assert "Among people with similar outcomes and in the same stratum (part)" in within.verdict.sentence


@pytest.mark.trust
def test_intervals_cover_the_truth_as_often_as_promised():
    """Two groups of 60 and 300 rows, normal residuals with unequal spread, 400 samples: 95% intervals."""
    rng = np.random.default_rng(3)
    group = np.repeat([0, 1], [60, 300])
    groups = make_groups(group)
    spread = np.where(group == 0, 2.0, 1.0)
    truth = [
        {"rmse": s, "mae": s * np.sqrt(2 / np.pi), "r2": 1 - s**2 / (9 + s**2), "mean_residual": 0.0}
        for s in (2.0, 1.0)
    ]
    inside = {name: np.zeros(2) for name in REGRESSION_FIGURES}
    different = dict.fromkeys(REGRESSION_FIGURES, 0)
    n_samples = 400
    for _ in range(n_samples):
        scores = rng.normal(0, 3, 360)
        y = scores + rng.normal(0, spread)
        moments = moments_of_rows(Rows(scores, None, y, None, groups, None), np.array([0.0]))
        errors = estimate_regression(moments, ["0", "1"], np.ones(2, bool), 1, confidence=0.95, score_range=(-9.0, 9.0))
        for name in REGRESSION_FIGURES:
            for index, one in enumerate(errors.groups):
                inside[name][index] += one.figures[name].low <= truth[index][name] <= one.figures[name].high
            gap = errors.groups[0].differences[name]
            different[name] += gap.low <= truth[0][name] - truth[1][name] <= gap.high
    for name in REGRESSION_FIGURES:
        assert np.all(inside[name] / n_samples >= 0.91), (name, inside[name] / n_samples)
        assert np.all(inside[name] / n_samples <= 0.985), (name, inside[name] / n_samples)
        assert 0.91 <= different[name] / n_samples <= 0.985, (name, different[name] / n_samples)
