"""Scores without known bounds: ranks, units, thresholds as shares of the rows, and no dependence on the scale."""

import numpy as np
import pytest
from scipy.stats import ks_2samp, wasserstein_distance

import fairtransport as ft
from fairtransport.auditing import Inference, audit_histograms
from fairtransport.histograms import display_range
from fairtransport.metrics import rank_disparity

FEW = {"inference": Inference(n_bootstrap=99, n_permutations=99, random_state=0)}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b", "c"], [300, 250, 200])
    scores = rng.normal(np.select([group == "a", group == "b"], [0.0, 0.6], 0.1), 1.0)
    return scores, scores + rng.normal(size=group.size), group


@pytest.fixture(scope="module")
def audit(table):
    scores, _, group = table
    return ft.audit(scores, sensitive_features=group, **FEW)


def test_distances_are_those_of_scipy_in_units_of_the_score(table, audit):
    scores, _, group = table
    parts = [scores[group == name] for name in "abc"]
    for i, one in enumerate(parts):
        for j, other in enumerate(parts):
            assert audit.distances[i, j] == pytest.approx(wasserstein_distance(one, other), abs=1e-12)
    total = sum(audit.distances[i, j] for i in range(3) for j in range(i))
    assert audit.metrics["strong_pairwise_disparity"] == pytest.approx(total)
    largest = max(ks_2samp(parts[i], parts[j]).statistic for i in range(3) for j in range(i))
    assert audit.metrics["kolmogorov_smirnov_disparity"] == pytest.approx(largest)
    assert audit.metrics["rank_disparity"] == pytest.approx(rank_disparity(scores, sensitive_features=group))
    assert not audit.settings.bounded


@pytest.mark.parametrize("scale", [1000.0, 1e-6, 1e9])
def test_the_audit_of_scaled_scores_is_the_same_up_to_the_unit(table, audit, scale):
    scores, _, group = table
    moved = ft.audit(scale * scores - 5 * scale, sensitive_features=group, **FEW)
    for name, reading in audit.readings.items():
        unit = 1.0 if name in {"rank_disparity", "kolmogorov_smirnov_disparity"} else scale
        other = moved.readings[name]
        for part in ("value", "low", "high", "corrected", "floor"):
            assert getattr(other, part) == pytest.approx(unit * getattr(reading, part), rel=1e-6), (name, part)
        assert other.p_value == reading.p_value
    assert moved.verdict.status == audit.verdict.status
    assert moved.verdict.sentence == audit.verdict.sentence
    for one, other in zip(audit.thresholds, moved.thresholds, strict=True):
        assert [rate.value for rate in one.rates] == [rate.value for rate in other.rates]


def test_one_outlier_changes_hardly_anything_but_the_mean(table, audit):
    scores, _, group = table
    far = scores.copy()
    far[0] = 1e9
    moved = ft.audit(far, sensitive_features=group, **FEW)
    assert moved.verdict.status == audit.verdict.status
    rank = "rank_disparity"
    assert moved.metrics[rank] == pytest.approx(audit.metrics[rank], abs=0.01)
    assert moved.readings[rank].high == pytest.approx(audit.readings[rank].high, abs=0.02)
    assert moved.groups[1].quantiles == pytest.approx(audit.groups[1].quantiles)
    assert display_range(moved.histograms)[1] < 10
    assert ft.Audit.from_json(moved.to_json()).to_json() == moved.to_json()


def test_a_table_with_an_outlier_is_counted_in_many_bins():
    rng = np.random.default_rng(1)
    scores = np.append(rng.standard_t(2, 40_000), 1e9)
    group = np.arange(scores.size) % 2
    audit = ft.audit(scores, sensitive_features=group, **FEW)
    assert audit.histograms.grid.n_bins <= 1 << 14
    assert (audit.histograms.everyone / scores.size).max() < 0.01
    one, other = (scores[group == value] for value in (0, 1))
    assert audit.metrics["kolmogorov_smirnov_disparity"] == pytest.approx(ks_2samp(one, other).statistic)
    # The histograms are coarser than the rows, and say so.
    coarse = audit_histograms(audit.histograms, **FEW)
    assert coarse.metrics["rank_disparity"] == pytest.approx(audit.metrics["rank_disparity"], abs=2e-3)
    distances = abs(coarse.metrics["strong_pairwise_disparity"] - audit.metrics["strong_pairwise_disparity"])
    assert distances <= coarse.readings["strong_pairwise_disparity"].resolution


def test_decile_scores_are_audited_as_they_are():
    rng = np.random.default_rng(3)
    group = np.repeat(["a", "b"], 400)
    scores = np.clip(np.round(rng.normal(5 + (group == "b"), 2)), 1, 10)
    labels = rng.random(800) < scores / 11
    audit = ft.audit(scores, labels, sensitive_features=group, **FEW)
    assert not audit.settings.bounded
    assert audit.histograms.grid.nodes.tolist() == sorted(set(scores))
    shares = [at.overall for at in audit.thresholds]
    assert [at.top_share for at in audit.thresholds] == [0.5, 0.25, 0.1]
    for at, share in zip(audit.thresholds, shares, strict=True):
        assert share == np.mean(scores > at.threshold)
        assert abs(share - at.top_share) == min(abs(np.mean(scores > cut) - at.top_share) for cut in range(1, 10))
    assert audit.calibration is not None
    assert not audit.calibration.probabilities
    one, other = scores[(group == "a") & labels], scores[(group == "b") & labels]
    positives = audit.separation.positives
    assert positives.differences.maximum.value == pytest.approx(ks_2samp(one, other).statistic)
    assert positives.differences.threshold in set(scores)
    assert "In the top" in str(audit)
    given = ft.audit(scores, sensitive_features=group, range=(1, 10), **FEW)
    assert given.settings.bounded
    assert given.metrics["strong_pairwise_disparity"] == pytest.approx(audit.distances[0, 1] / 9)


def test_thresholds_are_scores_or_shares_of_rows(table):
    scores, _, group = table
    audit = ft.audit(scores, sensitive_features=group, thresholds=[0.25, "top 5%", "0.5"], **FEW)
    assert [at.threshold for at in audit.thresholds][::2] == [0.25, 0.5]
    assert audit.thresholds[0].overall == np.mean(scores > 0.25)
    assert audit.thresholds[1].overall == pytest.approx(0.05, abs=1 / scores.size)
    probabilities = ft.audit(1 / (1 + np.exp(-scores)), sensitive_features=group, thresholds="top 10%", **FEW)
    assert probabilities.settings.bounded
    assert probabilities.thresholds[0].overall == pytest.approx(0.1, abs=0.005)


def test_strata_are_compared_by_ranks_among_all_people(table):
    scores, y, group = table
    audit = ft.audit(scores, sensitive_features=group, strata={"half": y > 0}, **FEW)
    assert {"rank_disparity", "kolmogorov_smirnov_disparity", "strong_pairwise_disparity"} <= {*audit.conditional}
    expected = ft.metrics.conditional_disparity(scores, sensitive_features=group, strata=y > 0, scale="ranks")
    assert audit.conditional["rank_disparity"].value == pytest.approx(expected)
    moved = ft.audit(7 * scores - 3, sensitive_features=group, strata={"half": y > 0}, **FEW)
    assert moved.verdict.sentence == audit.verdict.sentence
    assert moved.conditional["strong_pairwise_disparity"].value == pytest.approx(
        7 * audit.conditional["strong_pairwise_disparity"].value
    )


def test_a_target_may_be_a_group_that_is_not_judged():
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b", "few"], [200, 200, 9])
    scores = rng.normal(size=409) + (group == "b")
    audit = ft.audit(scores, sensitive_features=group, target="few", **FEW)
    samples = [scores[group == name] for name in ("a", "b", "few")]
    expected = sum(wasserstein_distance(one, samples[2]) for one in samples)
    assert audit.metrics["wasserstein_disparity"] == pytest.approx(expected)


def test_an_increasing_map_changes_no_verdict(table, audit):
    scores, _, group = table
    moved = ft.audit(np.sinh(2 * scores), sensitive_features=group, **FEW)
    assert moved.readings["rank_disparity"] == audit.readings["rank_disparity"]
    assert moved.verdict.sentence == audit.verdict.sentence
