"""Error rates by group against scikit-learn, by hand, and from histograms."""

import json
import math

import numpy as np
import polars as pl
import pytest
from sklearn import metrics as sk
from tests.auditing.rows import quick, rows_at_random

import fairtransport as ft
from fairtransport.auditing import audit_histograms
from fairtransport.auditing.errors.separation import interval_of_norm, rate_noise
from fairtransport.auditing.proportions import difference, ratio
from fairtransport.auditing.records import RATES
from fairtransport.histograms import count_scores

QUICK = quick()
THRESHOLDS = (0.25, 0.5, 0.75)


def rows():
    return rows_at_random(n=900, n_groups=4, shares=[0.1, 0.2, 0.3, 0.4])


def by_sklearn(labels, selected, weights):
    """Every rate by scikit-learn; None where its denominator has no rows."""
    (tn, fp), (fn, tp) = sk.confusion_matrix(labels, selected, sample_weight=weights, labels=[0, 1])
    options = {"sample_weight": weights, "zero_division": np.nan}
    recall, specificity = (sk.recall_score(labels, selected, pos_label=label, **options) for label in (1, 0))
    return {
        "selection_rate": np.average(selected, weights=weights),
        "true_positive_rate": recall,
        "false_positive_rate": 1 - specificity,
        "false_negative_rate": 1 - recall,
        "positive_predictive_value": sk.precision_score(labels, selected, pos_label=1, **options),
        "negative_predictive_value": sk.precision_score(labels, selected, pos_label=0, **options),
        "accuracy": sk.accuracy_score(labels, selected, sample_weight=weights),
        "error_rate": (fp + fn) / (tn + fp + fn + tp),
    }


@pytest.mark.parametrize("weighted", [False, True])
def test_every_rate_by_sklearn(weighted):
    scores, labels, groups, weights = rows()
    result = ft.audit(
        scores,
        labels,
        sensitive_features=groups,
        sample_weight=weights if weighted else None,
        thresholds=THRESHOLDS,
        **QUICK,
    )
    for threshold, rates in zip(THRESHOLDS, result.error_rates, strict=True):
        assert rates.threshold == threshold
        cases = [(one.name, one.rates) for one in rates.groups] + [(None, rates.overall)]
        for name, found in cases:
            members = slice(None) if name is None else groups == name
            mass = weights[members] if weighted else np.ones(scores[members].size)
            expected = by_sklearn(labels[members], scores[members] > threshold, mass)
            assert tuple(found) == RATES
            for rate, estimate in found.items():
                if estimate is None:
                    assert math.isnan(expected[rate])
                    continue
                assert estimate.value == pytest.approx(expected[rate], abs=1e-12)
                assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


@pytest.mark.parametrize("crossed", [True, False])
def test_histograms_are_exact_for_thresholds_on_nodes(crossed):
    scores, labels, groups, weights = rows()
    columns = {"one": groups, "two": np.where(weights > 0.6, "x", "y")}
    options = {"thresholds": THRESHOLDS, "groups": ft.GroupPolicy(crossed=crossed), **QUICK}
    by_rows = ft.audit(scores, labels, sensitive_features=columns, sample_weight=weights, **options)
    table = pl.DataFrame({"s": scores, "y": labels, "w": weights, **columns})
    by_table = ft.audit_table(table, score="s", label="y", weight="w", sensitive_features=["one", "two"], **options)
    for one, other in zip(by_rows.error_rates, by_table.error_rates, strict=True):
        assert one.reference == other.reference
        for group, another in zip(one.groups, other.groups, strict=True):
            assert group.name == another.name
            for name in ("rates", "differences", "ratios"):
                for rate, estimate in getattr(group, name).items():
                    twin = getattr(another, name)[rate]
                    assert (estimate is None) == (twin is None)
                    if estimate is not None:
                        found = (estimate.value, estimate.low, estimate.high)
                        assert found == pytest.approx((twin.value, twin.low, twin.high), abs=1e-12)


def test_differences_and_ratios_to_the_reference_group():
    scores, labels, groups, _ = rows()
    result = ft.audit(scores, labels, sensitive_features=groups, reference="b", **QUICK).error_rates[0]
    assert result.reference == "b"
    reference = next(one for one in result.groups if one.name == "b")
    assert set(reference.differences.values()) == set(reference.ratios.values()) == {None}
    for one in result.groups:
        if one.name == "b":
            continue
        for rate in RATES:
            assert one.differences[rate] == difference(one.rates[rate], reference.rates[rate])
            assert one.ratios[rate] == ratio(one.rates[rate], reference.rates[rate])


@pytest.mark.parametrize("labels", [True, False])
def test_a_reference_that_does_not_exist(labels):
    scores, y, groups, _ = rows()
    with pytest.raises(ValueError, match=r"reference must be the label or name of one of the 4 groups"):
        ft.audit(scores, y if labels else None, sensitive_features=groups, reference="nowhere", **QUICK)


def test_largest_differences_by_hand():
    scores, labels, groups, _ = rows()
    result = ft.audit(
        scores, labels, sensitive_features=groups, groups=ft.GroupPolicy(min_size=10), **QUICK
    ).error_rates[0]
    for rate, gap in result.gaps.items():
        values = [one.rates[rate].value for one in result.groups]
        assert (gap.lowest, gap.highest) == (np.argmin(values), np.argmax(values))
        assert gap.difference.value == pytest.approx(max(values) - min(values), abs=1e-15)
        assert gap.ratio.value == pytest.approx(min(values) / max(values))
        assert (len(gap.groups), gap.judged) == (4, True)
        assert 0 <= gap.difference.low <= gap.difference.corrected <= gap.difference.high
    gaps = [result.gaps[name].difference.value for name in ("true_positive_rate", "false_positive_rate")]
    assert result.equalized_odds.value == max(gaps)
    assert result.equal_opportunity.value == gaps[0]


def test_a_rate_of_few_rows_does_not_decide():
    """A group of 200 rows with 3 positive ones is judged by its false positive rate, not by its true positive rate."""
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b", "c"], [500, 500, 200])
    labels = np.r_[rng.integers(0, 2, 1000), np.ones(3, int), np.zeros(197, int)]
    scores = np.r_[rng.random(1000), [0.9, 0.9, 0.9], rng.random(197)]
    result = ft.audit(scores, labels, sensitive_features=groups, **QUICK).error_rates[0]
    assert len(result.gaps["true_positive_rate"].groups) == 2
    assert len(result.gaps["false_positive_rate"].groups) == 3
    assert result.groups[2].rates["true_positive_rate"].value == 1
    assert result.gaps["true_positive_rate"].highest < 2


def test_rates_without_rows_are_none_and_named():
    scores = [0.9, 0.1, 0.8, 0.2, 0.1, 0.3]
    result = ft.audit(scores, [1, 0, 0, 0, 0, 0], sensitive_features=list("aabbcc"), **QUICK)
    rates = result.error_rates[0]
    assert rates.undefined == {
        "true_positive_rate": ("b", "c"),
        "false_negative_rate": ("b", "c"),
        "positive_predictive_value": ("c",),
    }
    assert rates.groups[1].rates["true_positive_rate"] is None
    assert rates.groups[1].rates["positive_predictive_value"].value == 0
    assert rates.groups[1].differences["true_positive_rate"] is None
    assert rates.gaps["true_positive_rate"] is None
    assert rates.equalized_odds is None
    assert rates.equal_opportunity is None
    assert not rates.gaps["false_positive_rate"].judged
    assert result.separation.positives is None
    content = json.loads(result.to_json())
    assert content["error_rates"][0]["groups"][1]["rates"]["true_positive_rate"] is None
    assert "NaN" not in result.to_json()


def test_curves_are_the_rates_at_each_threshold():
    scores, labels, groups, weights = rows()
    options = {"sensitive_features": groups, "sample_weight": weights, "thresholds": THRESHOLDS}
    result = ft.audit(scores, labels, **options, **QUICK)
    for name, curves in result.error_curves(THRESHOLDS).items():
        assert curves.shape == (4, 3)
        expected = [[one.rates[name].value for one in at.groups] for at in result.error_rates]
        assert np.allclose(curves.T, expected, rtol=0, atol=1e-12)
    unlabelled = audit_histograms(count_scores([0.2, 0.8], [0, 1], sensitive_features=["a", "b"]), **QUICK)
    assert math.isnan(unlabelled.error_curves([0.5])["true_positive_rate"][0, 0])


@pytest.mark.trust
@pytest.mark.parametrize(
    ("n_groups", "n", "spread"), [(2, 60, 0.0), (2, 400, 0.2), (6, 60, 0.0), (6, 400, 0.1), (12, 400, 0.2)]
)
def test_intervals_of_the_largest_difference_cover_the_truth(n_groups, n, spread):
    """95% intervals cover in 93% to 100% of 400 tables, and never exclude no difference in more than 7%.

    Below the truth they are nearly exact; the upper limit is conservative where several groups lie close together.
    """
    rng = np.random.default_rng(n_groups + n)
    rates = 0.3 + spread * np.linspace(-0.5, 0.5, n_groups)
    covered = missed = 0
    for _ in range(400):
        observed = rng.binomial(n, rates) / n
        noise = rate_noise(observed, np.full(n_groups, float(n)), rng, 400)
        estimate = interval_of_norm(observed, noise, lambda array: np.ptp(array, axis=-1), 0.95)
        covered += estimate.low <= np.ptp(rates) + 1e-12 <= estimate.high + 1e-9
        missed += estimate.low > np.ptp(rates) + 1e-12
    assert covered / 400 >= 0.93
    assert missed / 400 <= 0.07


def test_results_do_not_depend_on_the_order_of_rows():
    scores, labels, groups, _ = rows()
    order = np.random.default_rng(1).permutation(scores.size)
    one = ft.audit(scores, labels, sensitive_features=groups, **QUICK)
    other = ft.audit(scores[order], labels[order], sensitive_features=groups[order], **QUICK)
    assert one.error_rates == other.error_rates
    assert one.separation == other.separation
