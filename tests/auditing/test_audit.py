"""The audit against the metrics, scikit-learn and hand computation; small groups, text, JSON and errors."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from tests.auditing.rows import quick, rows_at_random

import fairtransport as ft
from fairtransport import metrics
from fairtransport.auditing import Inference

CANARY = 0.123454321
QUICK = quick()
SPDD = "strong_pairwise_disparity"


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("target", ["barycenter", "barycenter_w2", "pooled", "b", [0.2, 0.4, 0.6]])
def test_metrics_are_the_metrics(weighted, target):
    scores, labels, groups, weights = rows_at_random()
    options = {"sensitive_features": groups, "sample_weight": weights if weighted else None}
    result = ft.audit(scores, labels, target=target, **options, **QUICK)
    exact = metrics.disparities(scores, target=target, **options)
    error = metrics.error_rate(labels, scores, sample_weight=options["sample_weight"])
    assert result.metrics == pytest.approx({"error_rate": error, **exact}, abs=1e-14)
    assert list(result.metrics) == ["error_rate", *exact]
    assert np.array_equal(result.distances, metrics.pairwise_distances(scores, **options))
    for reading in result.readings.values():
        assert 0 <= reading.low <= reading.high
        assert reading.margin > 0
        assert reading.resolution == 0
    assert "error_rate" not in ft.audit(scores, target=target, **options, **QUICK).metrics


@pytest.mark.parametrize("weighted", [False, True])
def test_groups_by_numpy_and_sklearn(weighted):
    scores, labels, groups, weights = rows_at_random()
    used = weights if weighted else np.ones(scores.size)
    result = ft.audit(
        scores, labels, sensitive_features=groups, sample_weight=weights if weighted else None, thresholds=0.4, **QUICK
    )
    assert result.rows == 600
    for i, summary in enumerate(result.groups):
        members = groups == summary.name
        values, mass = scores[members], used[members]
        assert summary.rows == members.sum()
        assert summary.weight == pytest.approx(mass.sum())
        assert summary.effective_rows == pytest.approx(mass.sum() ** 2 / np.sum(mass**2))
        assert summary.mean == pytest.approx(np.average(values, weights=mass))
        order = np.argsort(values)
        levels = np.cumsum(mass[order]) / mass.sum()
        assert summary.quantiles[2] == values[order][np.searchsorted(levels, 0.5)]
        wrong = (values > 0.4) != labels[members]
        assert summary.error.value == pytest.approx(np.average(wrong, weights=mass))
        assert summary.auc.value == pytest.approx(roc_auc_score(labels[members], values, sample_weight=mass))
        assert result.thresholds[0].rates[i].value == pytest.approx(np.average(values > 0.4, weights=mass))
        assert result.thresholds[0].errors[i] == summary.error
    assert result.auc.value == pytest.approx(roc_auc_score(labels, scores, sample_weight=used))
    assert result.thresholds[0].overall == pytest.approx(np.average(scores > 0.4, weights=used))


def test_thresholds_by_hand():
    scores = [0.9] * 30 + [0.1] * 70 + [0.9] * 60 + [0.1] * 40
    result = ft.audit(scores, sensitive_features=["a"] * 100 + ["b"] * 100, thresholds=[0.5, 0.95, 0.0], **QUICK)
    at, nobody, everybody = result.thresholds
    assert (at.rates[0].value, at.rates[1].value) == (0.3, 0.6)
    assert (at.lowest, at.highest) == (0, 1)
    assert at.ratio.value == pytest.approx(0.5)
    assert at.difference.value == pytest.approx(0.3)
    assert at.ratios == (0.5, 1.0)
    assert (at.four_fifths, at.conclusive) == (False, True)
    assert at.difference.low > 0.15
    assert nobody.four_fifths is None
    assert nobody.ratios == (None, None)
    assert (everybody.four_fifths, everybody.conclusive) == (True, True)
    assert (at.rates[0].low, at.rates[0].high) == pytest.approx((0.219, 0.396), abs=1e-3)  # Wilson's, from tables


def test_where_the_farthest_pair_differs():
    rng = np.random.default_rng(0)
    low = rng.uniform(0.0, 0.2, 300)
    other = np.where(np.arange(300) < 150, low, rng.uniform(0.6, 0.8, 300))
    scores = np.concatenate([low, rng.permutation(low), other])
    result = ft.audit(scores, sensitive_features=np.repeat(["a", "b", "c"], 300), **QUICK)
    pair = result.farthest
    assert (pair.lower, pair.higher) in {("a", "c"), ("b", "c")}
    assert pair.distance == result.distances.max()
    start, end = pair.most_between
    assert 0.15 < start < end < 0.65
    assert end - start == pytest.approx(pair.distance / 2 / 0.5, rel=0.05)  # half of the area, under a gap of one half
    assert pair.threshold == pytest.approx(0.2, abs=0.02)
    assert pair.shares_above == pytest.approx((0, 0.5), abs=0.02)
    assert result.pair("a", "b").distance < 1e-9
    assert result.pair("c", "a") == result.pair("a", "c")


def test_weights_equal_repetition_in_every_value():
    scores, labels, groups, _ = rows_at_random(n=80)
    times = np.random.default_rng(1).integers(1, 4, 80)
    weighted = ft.audit(scores, labels, sensitive_features=groups, sample_weight=times, **QUICK)
    repeated = ft.audit(
        np.repeat(scores, times), np.repeat(labels, times), sensitive_features=np.repeat(groups, times), **QUICK
    )
    assert weighted.metrics == pytest.approx(repeated.metrics, abs=1e-12)
    for one, other in zip(weighted.groups, repeated.groups, strict=True):
        assert (one.mean, *one.quantiles) == pytest.approx((other.mean, *other.quantiles))
        assert one.effective_rows < other.effective_rows  # a weight is not several people
        assert one.error.value == pytest.approx(other.error.value)
        assert one.error.high - one.error.low > other.error.high - other.error.low


def test_strata_explain_a_difference():
    # Groups differ only because they live in different regions; within a region they are alike.
    rng = np.random.default_rng(0)
    region = rng.choice(["north", "south"], 4000)
    groups = np.where(rng.random(4000) < np.where(region == "north", 0.8, 0.2), "a", "b")
    scores = np.where(region == "north", rng.beta(2, 5, 4000), rng.beta(5, 2, 4000))
    result = ft.audit(scores, sensitive_features=groups, strata=region, inference=Inference(random_state=0))
    assert result.readings[SPDD].p_value < 0.01
    assert result.readings[SPDD].low > 0.1
    assert result.conditional[SPDD].p_value > 0.05
    assert result.conditional[SPDD].low == 0
    assert result.conditional[SPDD].value < 0.1
    by_hand = [
        metrics.strong_pairwise_disparity(scores[region == name], sensitive_features=groups[region == name])
        for name in ("north", "south")
    ]
    assert [stratum.metrics[SPDD] for stratum in result.strata] == pytest.approx(by_hand)
    shares = [np.mean(region == name) for name in ("north", "south")]
    assert result.conditional[SPDD].value == pytest.approx(np.dot(shares, by_hand))
    assert "The metrics for conditional parity, mean over 2" in " ".join(str(result).split())
    verdict = result.verdict
    assert (verdict.criterion, verdict.different, verdict.status) == ("conditional parity", False, "alike")
    assert verdict.sentence.startswith("Among people in the same stratum (stratum_0), no difference between the two")
    assert any(point.startswith("Among all people (demographic parity), ") for point in verdict.points)


def test_strata_with_tiny_cells_and_without_a_second_group():
    rng = np.random.default_rng(0)
    strata = np.array(["x"] * 100 + ["y"] * 3 + ["z"] * 20)
    groups = np.array(["a", "b"] * 50 + ["a", "a", "b"] + ["a"] * 20)
    scores = rng.random(123)
    result = ft.audit(scores, sensitive_features=groups, strata=strata, target="b", **QUICK)
    x, y, z = result.strata
    assert (x.n_groups, x.n_judged, y.n_judged, z.n_groups) == (2, 2, 0, 1)
    assert (z.weight, z.metrics) == (0.0, {})
    assert (x.weight, y.weight, y.metrics) == (1.0, 0.0, {})  # three rows do not decide
    assert "set aside" in str(result)
    assert result.conditional[SPDD].value == pytest.approx(x.metrics[SPDD])
    tiny = ft.audit(scores[97:103], sensitive_features=groups[97:103], strata=strata[97:103], **QUICK)
    assert [one.weight for one in tiny.strata] == pytest.approx([0.5, 0.5])  # where no stratum is judged, all count
    assert any("set aside" in point for point in result.verdict.points)
    with pytest.raises(ValueError, match="nothing to compare: no stratum has rows of two groups"):
        ft.audit(scores[:2], sensitive_features=["a", "b"], strata=["x", "y"], **QUICK)


def test_equal_samples_have_an_interval_above_zero():
    scores = np.tile([0.0, 1.0], 100)
    result = ft.audit(scores, sensitive_features=np.repeat(["a", "b"], 100), inference=Inference(random_state=0))
    reading = result.readings[SPDD]
    assert reading.value == 0
    assert reading.low == 0
    assert 0.05 < reading.high < 0.3  # 100 rows a group: the rates may differ by about 2 * sqrt(2 * 0.25 / 100)
    constant = ft.audit([0.5] * 100, sensitive_features=["a", "b"] * 50, **QUICK)
    assert constant.readings[SPDD].high == 0
    assert constant.farthest.distance == 0


def test_zero_and_one_scores_have_the_interval_of_a_difference_of_shares():
    scores = np.repeat([1.0, 0.0, 1.0, 0.0], [300, 700, 500, 500])
    reading = ft.audit(
        scores, sensitive_features=np.repeat(["a", "b"], 1000), inference=Inference(random_state=0)
    ).readings[SPDD]
    half = 1.96 * np.sqrt(0.21 / 1000 + 0.25 / 1000)
    assert (reading.value, reading.low, reading.high) == pytest.approx((0.2, 0.2 - half, 0.2 + half), abs=0.005)


def test_to_dict_is_plain_and_complete():
    scores, labels, groups, _ = rows_at_random()
    result = ft.audit(scores, labels, sensitive_features=groups, thresholds=[0.5, 1.0], strata=labels, **QUICK)
    plain = json.loads(result.to_json(indent=1))
    assert {name: plain[name] for name in result.to_dict()} == result.to_dict()
    assert plain["metrics"] == result.metrics
    assert plain["rows"] == 600
    assert len(plain["cdf"]["points"]) == len(plain["cdf"]["groups"][0]) == 101
    assert plain["cdf"]["groups"][0][-1] == 1.0
    assert plain["thresholds"][1]["ratio"]["value"] is None  # nobody above 1
    assert plain["settings"]["null"] == "permuted"
    assert "0.00" not in repr(result.histograms)


def test_text_fits_80_columns_whatever_the_names():
    names = ["x" * 300, "\x1b[31mred", "new\nline", "\u202eright to left", "=cmd()", "\U0001f600", *map(str, range(60))]
    groups = np.repeat(names, 4)
    scores = np.random.default_rng(0).random(groups.size)
    result = ft.audit(
        scores,
        (scores > 0.6).astype(int),
        sensitive_features={"a" * 200: groups},
        strata={"b" * 100: np.tile([*names[:6], *map(str, range(27))], 8)},
        **QUICK,
    )
    text = str(result)
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "... and 36 more" in text
    assert repr(result).startswith("Audit(264 rows in 66 groups, conditional parity: pairwise disparity ")


def test_figures_and_pages_are_loaded_when_first_asked_for():
    code = (
        "import sys, fairtransport as ft\n"
        "result = ft.audit([0.2, 0.7], sensitive_features=['a', 'b'], inference=ft.auditing.Inference(0.95, 20, 20))\n"
        "assert 'fairtransport.report' not in sys.modules\n"
        "assert result.to_html().startswith('<!DOCTYPE html>')\n"
        "assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"scores": [CANARY]}, ValueError, "scores has 1 rows, but sensitive_features has 4"),
        ({"scores": [CANARY, np.nan, 0.1, 0.2]}, ValueError, "scores has 1 NaN or infinite"),
        (
            {"scores": [CANARY, 3, 0.1, 0.2], "range": (0, 1)},
            ValueError,
            "1 of 4 values outside [0, 1]. Give the range",
        ),
        ({"scores": ["x"] * 4}, TypeError, "scores must contain numbers"),
        ({"scores": []}, ValueError, "scores is empty"),
        ({"scores": [CANARY, 3, 0.1, 0.2], "range": (0, 2)}, ValueError, "1 of 4 values outside [0, 2]"),
        ({"sensitive_features": ["secret"] * 4}, ValueError, "1 group(s)"),
        ({"sensitive_features": ["secret", None, "a", "b"]}, ValueError, "missing values in 1 row"),
        ({"sensitive_features": ["secret", "b"]}, ValueError, "sensitive_features has 2"),
        ({"y_true": [0, 1, 2, 1]}, ValueError, "y_true has 3 different whole numbers"),
        ({"y_true": [0, 1, 2, 1], "task": "classification"}, ValueError, "y_true has 3 different labels"),
        ({"y_true": [0, 1, 2, 1], "task": "ranking"}, ValueError, "task must be one of"),
        (
            {"y_true": [0.5, CANARY, 2, 1], "criterion": "equal_opportunity"},
            ValueError,
            "real-valued labels have none; criterion='equalized_odds'",
        ),
        ({"y_true": [0.5, np.inf, 2, CANARY]}, ValueError, "y_true has 1 NaN or infinite values"),
        ({"thresholds": ["top 0%"]}, ValueError, 'a share of the rows such as "top 10%"'),
        ({"y_true": ["secret", "n", "y", "y"]}, ValueError, "y_true has 3 different labels"),
        ({"y_true": ["secret", "n", "y", "y"], "pos_label": "y"}, ValueError, "y_true has 3 different labels"),
        ({"y_true": [0, 1]}, ValueError, "y_true has 2 rows"),
        ({"y_true": [0, np.nan, 1, 1]}, ValueError, "y_true has 1 missing labels"),
        ({"sample_weight": [1, -1, 1, 1]}, ValueError, "1 negative values"),
        ({"sample_weight": [1, 0, 1, 0]}, ValueError, "sample_weight is zero in all rows of 1 of 2 groups"),
        ({"sample_weight": [1]}, ValueError, "sample_weight has 1 rows"),
        ({"thresholds": [1.5]}, ValueError, "thresholds has 1 of 1 values outside"),
        ({"thresholds": [np.nan]}, ValueError, "thresholds has 1 NaN"),
        ({"inference": Inference(confidence=95)}, ValueError, "confidence must be below 1; got 95"),
        ({"inference": Inference(n_bootstrap=3)}, ValueError, "n_bootstrap must be at least 20"),
        ({"inference": Inference(n_permutations=0)}, ValueError, "n_permutations must be at least 20"),
        ({"target": "nobody"}, ValueError, "has that label"),
        ({"target": [CANARY, 5.0]}, ValueError, "target has 1 of 2 values outside [0, 1]"),
        ({"strata": ["x", "y"]}, ValueError, "strata has 2 rows, but scores has 4"),
        ({"strata": ["x", "y", "secret", "z"]}, ValueError, "nothing to compare: no stratum has rows of two groups"),
        ({"criterion": "equalized_odds"}, ValueError, "compares people with the same label, so it needs labels"),
        ({"criterion": "parity"}, ValueError, "criterion must be one of 'demographic_parity', 'equalized_odds'"),
        ({"groups": "each"}, TypeError, "groups must be a GroupPolicy"),
    ],
)
def test_errors_say_what_is_wrong_and_show_no_value(arguments, error, message):
    options = {"scores": [CANARY, 0.2, 0.3, 0.4], "sensitive_features": ["a", "b"] * 2, **arguments}
    with pytest.raises(error, match=re.escape(message)) as caught:
        ft.audit(options.pop("scores"), **options)
    assert str(CANARY) not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_an_id_column_is_stopped_with_the_count():
    scores = np.full(100_000, CANARY)
    with pytest.raises(ValueError, match=r"100000 groups .* max_groups is 1000.* identifier"):
        ft.audit(scores, sensitive_features=np.arange(100_000))
    with pytest.raises(ValueError, match=r"strata has 100000 strata .* max_strata is 1000"):
        ft.audit(scores, sensitive_features=np.arange(100_000) % 2, strata=np.arange(100_000).astype(str))


def test_another_range_changes_units_and_no_share():
    scores, labels, groups, _ = rows_at_random()
    unit = ft.audit(scores, labels, sensitive_features=groups, thresholds=[0.5, 0.25], **QUICK)
    wide = ft.audit(-1 + 4 * scores, labels, sensitive_features=groups, thresholds=[1.0, 0.0], range=(-1, 3), **QUICK)
    assert wide.metrics == pytest.approx(unit.metrics, abs=1e-12)
    assert wide.groups[0].mean == pytest.approx(-1 + 4 * unit.groups[0].mean)
    assert wide.thresholds[0].ratio.value == pytest.approx(unit.thresholds[0].ratio.value)
    assert wide.readings[SPDD].high == pytest.approx(unit.readings[SPDD].high, abs=1e-3)
    assert ft.audit(4 * scores, sensitive_features=groups, range=(0, 4), **QUICK).thresholds[0].threshold == 2.0


def test_a_seed_fixes_it():
    scores, labels, groups, _ = rows_at_random()

    def audited(seed):
        return ft.audit(
            scores, labels, sensitive_features=groups, inference=Inference(n_bootstrap=50, random_state=seed)
        ).to_json()

    assert audited(1) == audited(1)
    assert audited(1) != audited(2)
