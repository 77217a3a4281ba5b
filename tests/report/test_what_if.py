"""Results at any threshold and amount of repair, compared with computations on the rows."""

import numpy as np
import pytest
from tests.report.conftest import QUICK, audit_of, scored

import fairtransport as ft
from fairtransport.auditing import Inference, audit_histograms
from fairtransport.auditing.proportions import Estimate, ratio
from fairtransport.histograms import count_scores
from fairtransport.metrics import pairwise_disparity
from fairtransport.report import WhatIf


@pytest.mark.parametrize("threshold", [0.0, 0.07, 0.35, 0.5, 0.99, 1.0])
def test_scores_with_two_decimals_are_counted_exactly_at_such_thresholds(threshold):
    scores, labels, groups = scored(decimals=2)
    outcome = WhatIf.of(audit_of(decimals=2)).at(threshold)
    for index, name in enumerate("abcd"):
        rows = groups == name
        assert outcome.rates[index].value == pytest.approx(np.mean(scores[rows] > threshold), abs=1e-12)
        assert outcome.errors[index] == pytest.approx(np.mean((scores[rows] > threshold) != labels[rows]), abs=1e-12)
    assert outcome.overall == pytest.approx(np.mean(scores > threshold), abs=1e-12)
    assert outcome.error == pytest.approx(np.mean((scores > threshold) != labels), abs=1e-12)


def test_results_at_the_thresholds_of_the_audit_are_those_of_the_audit():
    scores, labels, groups = scored()
    scores = np.where(scores < 0.6, scores, 0.60001 + 1e-5 * (scores > 0.7))  # in the bin of 0.6 and 0.60001
    weights = np.random.default_rng(0).random(scores.size)
    cuts = [0.60001, 0.6, 0.25]
    audit = ft.audit(scores, labels, sensitive_features=groups, sample_weight=weights, thresholds=cuts, **QUICK)
    what_if = WhatIf.of(audit)
    for cut, first, errors in zip(cuts, audit.thresholds, audit.error_rates, strict=True):
        outcome = what_if.at(cut)
        assert (outcome.lowest, outcome.highest) == (first.lowest, first.highest)
        assert (outcome.rates, outcome.overall, outcome.ratio) == (first.rates, first.overall, first.ratio)
        assert outcome.errors == tuple(error.value for error in first.errors)
        assert outcome.error == errors.overall["error_rate"].value
        assert [rates["accuracy"] for rates in outcome.error_rates] == [one.rates["accuracy"] for one in errors.groups]
        assert outcome.disparity == audit.mean_readings["strong_pairwise_disparity"].value
        nearby = what_if.at(cut + 1e-7).rates[-1].value  # other thresholds are rounded to bins
        assert (abs(nearby - first.rates[-1].value) > 0.1) == (cut > 0.5)


@pytest.mark.parametrize("amount", [0.25, 1.0])
@pytest.mark.parametrize("target", ["barycenter_w2", "barycenter", "a"])
def test_repair_agrees_with_quantile_repair_of_the_rows(amount, target):
    scores, labels, groups = scored(decimals=2)
    counted = count_scores(scores, labels, sensitive_features=groups, n_bins=100)
    audit = audit_histograms(counted, inference=Inference(n_bootstrap=30, n_permutations=30))
    repair = ft.QuantileRepair(target, amount=amount)
    moved = repair.fit_transform(scores, sensitive_features=groups)
    what_if = WhatIf.of(audit, repair_target=target)
    outcome = what_if.at(0.4, amount)
    for index, name in enumerate("abcd"):
        rows = groups == name
        assert outcome.rates[index].value == pytest.approx(np.mean(moved[rows] > 0.4 + 1e-8), abs=1e-12)
    assert outcome.error == pytest.approx(np.mean((moved > 0.4 + 1e-8) != labels), abs=1e-12)
    counted = count_scores(np.round(moved, 7), sensitive_features=groups, n_bins=100)
    assert outcome.disparity == pytest.approx(counted.disparities()["strong_pairwise_disparity"] / 6, abs=1e-9)
    exact = pairwise_disparity(moved, sensitive_features=groups)
    assert outcome.disparity == pytest.approx(exact, abs=1 / 100)


def test_chosen_groups_are_compared(audit):
    outcome = WhatIf.of(audit).at(0.5, chosen=[1, 2])
    assert {outcome.lowest, outcome.highest} == {1, 2}
    assert outcome.disparity == pytest.approx(audit.distances[1, 2], abs=1 / 16384)
    low, high = (outcome.rates[index] for index in (outcome.lowest, outcome.highest))
    assert outcome.ratio == ratio(low, high)


def test_weights_ranges_and_no_labels():
    scores, _, groups = scored(decimals=2)
    weights = np.random.default_rng(1).integers(1, 5, size=scores.size).astype(float)
    options = {"sensitive_features": groups, "sample_weight": weights, "range": (300, 850), "n_bins": 550}
    counted = count_scores(300 + 550 * scores, **options)
    audit = audit_histograms(counted, inference=Inference(n_bootstrap=30, n_permutations=30))
    outcome = WhatIf.of(audit).at(520)
    assert outcome.error is None
    assert outcome.errors is None
    for index, name in enumerate("abcd"):
        rows = groups == name
        expected = np.average(300 + 550 * scores[rows] > 520 + 1e-9, weights=weights[rows])
        assert outcome.rates[index].value == pytest.approx(expected, abs=1e-12)
        assert isinstance(outcome.rates[index], Estimate)
        assert outcome.rates[index].low < expected < outcome.rates[index].high


def test_invalid_input(audit):
    what_if = WhatIf.of(audit)
    with pytest.raises(ValueError, match=r"outside \[0, 1\]"):
        what_if.at(1.5)
    with pytest.raises(ValueError, match="amount"):
        what_if.at(0.5, 1.5)
    with pytest.raises(ValueError, match="cannot be repaired: there is no repair target"):
        WhatIf.of(audit, repair_target=None).at(0.5, 0.5)
