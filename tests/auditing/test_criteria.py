"""Audits of equalized odds, equal opportunity and conditional parity: against the metrics, scipy and known worlds."""

import json

import numpy as np
import pytest
from scipy.stats import kstest

import fairtransport as ft
from fairtransport import metrics
from fairtransport._text import plain
from fairtransport.auditing import Audit, Inference
from fairtransport.auditing._confidence_intervals import PAIRS_TEST, DisparityNorm, Stratum, joint_noise_floors
from fairtransport.auditing._disparity_readings import disparity_readings
from fairtransport.auditing._evidence import coarsen, with_label
from fairtransport.auditing.options import check_options
from fairtransport.histograms import count_scores

SPDD = "strong_pairwise_disparity"
QUICK = {"inference": Inference(n_bootstrap=99, n_permutations=99, random_state=0)}


def rows_at_random(n=1500, seed=0, shift=0.12, names="abc"):
    rng = np.random.default_rng(seed)
    groups, region = rng.choice(list(names), n), rng.choice(["x", "y"], n)
    y = (rng.random(n) < np.where(groups == "a", 0.3, 0.6)).astype(int)
    scores = np.clip(rng.beta(2 + 2 * y, 4 - 2 * y + 0.5, n) + shift * (groups == "b") * y, 0, 1)
    return scores, y, groups, region, rng.random(n) + 0.2


def test_the_headline_figures_are_the_metrics():
    scores, y, groups, region, weights = rows_at_random()
    common = {"sensitive_features": groups, "sample_weight": weights}
    for criterion, strata, expected in (
        ("equalized_odds", None, metrics.separation_disparity(y, scores, **common)),
        ("equal_opportunity", None, metrics.opportunity_disparity(y, scores, **common)),
        ("demographic_parity", region, metrics.conditional_disparity(scores, strata=region, **common)),
        ("equalized_odds", region, metrics.separation_disparity(y, scores, strata=region, **common)),
    ):
        result = ft.audit(scores, y, criterion=criterion, strata=strata, **common, **QUICK)
        assert result.within.mean_readings[SPDD].value == pytest.approx(expected, abs=1e-12)
        assert sum(stratum.weight for stratum in result.strata) == pytest.approx(1)
        assert result.metrics[SPDD] == pytest.approx(metrics.strong_pairwise_disparity(scores, **common), abs=1e-12)
        if strata is None:
            separation = result.separation
            same = separation.disparity if criterion == "equalized_odds" else separation.positives.disparity
            assert same == result.within.mean_readings[SPDD]  # one figure has one interval


def test_the_verdict_is_about_the_criterion():
    """Only positive rows of b are scored higher, and outcomes are rarer in a: parity and equalized odds differ."""
    scores, y, groups, _, _ = rows_at_random(4000)
    audits = {name: ft.audit(scores, y, sensitive_features=groups, criterion=name, **QUICK) for name in ft_criteria()}
    odds, opportunity = (audits[name].verdict for name in ("equalized_odds", "equal_opportunity"))
    assert plain(odds.sentence).startswith(
        "Among people with the same outcome, the three groups are scored differently, by enough to matter: b is scored "
        "higher than "
    )
    assert "averaged over all thresholds and both outcomes" in odds.sentence
    assert plain(opportunity.sentence).startswith("Among people with the positive outcome, the three groups")
    assert "Among" not in audits["demographic_parity"].verdict.sentence
    assert [audit.verdict.criterion for audit in audits.values()] == [
        "demographic parity",
        "equalized odds",
        "equal opportunity",
    ]
    for audit in audits.values():
        assert "conflict in general" in " ".join(str(audit).split())
    # The difference is in the positive rows alone, so over both outcomes it is half as large.
    assert opportunity.difference.value == pytest.approx(2 * odds.difference.value, abs=0.03)
    page = json.loads(audits["equalized_odds"].to_json())
    assert page["verdict"]["criterion"] == "equalized odds"
    assert page["settings"]["criterion"] == "equalized_odds"
    restored = Audit.from_json(audits["equalized_odds"].to_json())
    assert restored.verdict == odds
    assert "## The metrics for equalized odds" in restored.to_markdown()


def ft_criteria():
    return ("demographic_parity", "equalized_odds", "equal_opportunity")


@pytest.mark.parametrize("names", ["ab", "abcd"])
def test_no_sentence_contradicts_its_figures(names):
    for seed in range(4):
        scores, y, groups, region, _ = rows_at_random(500, seed, shift=0.03 * seed, names=names)
        result = ft.audit(
            scores,
            y,
            sensitive_features=groups,
            criterion="equalized_odds",
            strata=region if seed % 2 else None,
            **QUICK,
        )
        verdict, reading = result.verdict, result.conditional[SPDD]
        assert verdict.different == (reading.p_value <= 0.05) == (reading.low > 0)
        assert (verdict.difference.low > 0) == verdict.different
        largest = result.within.largest_distance
        assert largest.low == verdict.difference.low
        assert largest.high >= verdict.difference.high - 1e-12
        off = result.within.distances[~np.eye(len(names), dtype=bool)]
        assert np.nanmax(off) == pytest.approx(result.within.farthest.distance, abs=1e-9)
        clearest = [result.histograms.groups.index_of(name) for name in (verdict.lower, verdict.higher)]
        assert result.within.distances[tuple(clearest)] == pytest.approx(result.within.clearest.distance, abs=1e-9)


def test_numbers_are_cut_and_one_value_is_one_stratum():
    scores, _, groups, _, _ = rows_at_random()
    age = np.random.default_rng(1).normal(40, 10, scores.size)
    result = ft.audit(scores, sensitive_features=groups, strata={"age": age}, **QUICK)
    points = result.provenance.strata_cuts["age"]
    assert len(result.strata) == len(points) + 1
    assert result.strata[0].name == f"below {points[0]:.6g}"
    assert ("Strata of age", f"cut at the quantiles {', '.join(f'{p:.6g}' for p in points)}") in list(
        result.provenance.lines()
    )
    one = ft.audit(scores, sensitive_features=groups, strata=np.full(scores.size, 7.0), **QUICK)
    assert one.conditional[SPDD].value == pytest.approx(one.readings[SPDD].value, abs=1e-12)


def test_a_label_with_one_group_is_set_aside_and_named():
    scores, y, groups, _, _ = rows_at_random()
    y[groups != "a"] = 0
    result = ft.audit(scores, y, sensitive_features=groups, criterion="equalized_odds", **QUICK)
    negative, positive = result.strata
    assert (negative.weight, positive.weight, positive.metrics) == (1.0, 0.0, {})
    assert any(point.startswith("One outcome with ") and "set aside" in point for point in result.verdict.points)
    with pytest.raises(ValueError, match="nothing to compare: no label has rows of two groups"):
        ft.audit(scores, y, sensitive_features=groups, criterion="equal_opportunity", **QUICK)


def separation_audit(rng, sizes, params, n_replicates=60):
    """Return the disparity within labels of rows with beta distributed scores, one pair of parameters for each cell."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    y = (rng.random(groups.size) < 0.3 + 0.3 * (groups == 0)).astype(int)
    shapes = np.array(params, dtype=float)[y, groups]
    histograms = count_scores(rng.beta(shapes[:, 0], shapes[:, 1]), y, sensitive_features=groups, n_bins=512)
    norm = DisparityNorm(SPDD, "pairs")
    strata, values = [], []
    for label in (0, 1):
        rows = with_label(histograms, label)
        strata.append(Stratum(coarsen(rows, 32), (norm,), weight=0.5, groups=tuple(range(len(sizes)))))
        values.append({SPDD: float(np.triu(rows.distances(), 1).sum())})
    inference = Inference(n_bootstrap=n_replicates, n_permutations=99)
    options = check_options(histograms.grid, inference=inference)
    floors, _ = joint_noise_floors(strata, 99, rng)
    p_value = floors[PAIRS_TEST].p_value
    return disparity_readings(strata, values, floors, options, rng, p_value=p_value)[SPDD]


def test_p_values_are_uniform_without_a_difference_within_labels():
    """Groups have different shares of positive rows, so that among all people their scores differ."""
    rng = np.random.default_rng(0)
    params = [[(2, 4)] * 3, [(4, 2)] * 3]
    found = [separation_audit(rng, (200, 150, 100), params, 20).p_value for _ in range(150)]
    assert kstest(np.array(found) - 0.01 * rng.random(150), "uniform").pvalue > 0.001


@pytest.mark.trust
def test_intervals_of_the_separation_cover_the_truth():
    rng = np.random.default_rng(1)
    params = [[(2, 4), (2.6, 4)], [(4, 2), (4, 1.6)]]
    # Means of beta distributions that are ordered differ by the distance.
    truth = np.mean([abs(a / (a + b) - c / (c + d)) for (a, b), (c, d) in params])
    covered = 0
    for _ in range(120):
        reading = separation_audit(rng, (300, 200), params)
        covered += reading.low <= truth <= reading.high
    assert covered >= 0.93 * 120 - 3 * np.sqrt(0.93 * 0.07 * 120)
