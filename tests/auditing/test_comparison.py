"""Two audits: what changed, and what is more than noise."""

import json
import math

import numpy as np
import pytest
from tests.worlds import scores

import fairtransport as ft
from fairtransport.auditing import AuditComparison, Inference

QUICK = {"inference": Inference(n_bootstrap=60, n_permutations=60, random_state=0)}


def rows(seed=0, n=2000):
    return scores(("a", "b", "c"), n, apart=0.6, seed=seed)


@pytest.fixture(scope="module")
def pair():
    scores, labels, groups = rows()
    repaired = ft.QuantileRepair("barycenter_w2").fit_transform(scores, sensitive_features=groups)
    return tuple(ft.audit(one, labels, sensitive_features=groups, **QUICK) for one in (scores, repaired))


def test_changes_are_the_differences_of_the_figures(pair):
    before, after = pair
    found = ft.compare(before, after)
    assert isinstance(found, ft.AuditComparison)
    assert list(found.changes) == list(before.readings)
    for name, change in found.changes.items():
        assert (change.before, change.after) == (before.readings[name].corrected, after.readings[name].corrected)
        assert change.value == change.after - change.before
        assert change.low <= change.value <= change.high
    for place, change in enumerate(found.thresholds[0].rates):
        expected = after.thresholds[0].rates[place].value - before.thresholds[0].rates[place].value
        assert change.value == pytest.approx(expected)
    assert found.auc.value == pytest.approx(after.auc.value - before.auc.value)
    assert found.thresholds[0].ratios == (before.thresholds[0].ratio.value, after.thresholds[0].ratio.value)


def test_interval_is_movers(pair):
    before, after = pair
    one, other = (audit.readings["strong_pairwise_disparity"] for audit in pair)
    change = ft.compare(before, after).changes["strong_pairwise_disparity"]
    middle = other.corrected - one.corrected
    assert change.low == pytest.approx(middle - math.hypot(other.corrected - other.low, one.high - one.corrected))
    assert change.high == pytest.approx(middle + math.hypot(other.high - other.corrected, one.corrected - one.low))
    assert change.beyond_noise == (change.high < 0 or change.low > 0)


@pytest.mark.trust
def test_samples_of_one_source_seldom_differ_beyond_noise():
    # Both audits are of new rows from the same source: 5 % of such differences should be called beyond noise.
    called = {"strong_pairwise_disparity": 0, "error_rate": 0}
    for seed in range(40):
        pair = []
        for draw in (2 * seed, 2 * seed + 1):
            scores, labels, groups = rows(draw, 600)
            pair.append(ft.audit(scores, labels, sensitive_features=groups, **QUICK))
        found = ft.compare(*pair)
        for name in called:
            called[name] += found.changes[name].beyond_noise
    assert max(called.values()) <= 6  # P(more than 6 of 40 at 5 %) = 0.3 %


def test_text_is_80_wide_and_marks_what_is_beyond_noise(pair):
    scores, labels, _ = rows()
    names = np.array([f"{'x' * 100}{k}\x1b[31m" for k in range(50)])[np.arange(scores.size) % 50]
    long = ft.audit(scores, labels, sensitive_features={"c" * 100: names}, **QUICK)
    for found in (ft.compare(*pair), ft.compare(long, long, names=("\x1b[31m" + "b" * 50, "after all"))):
        text = str(found)
        assert max(map(len, text.splitlines())) <= 82  # the mark stands in the margin
        assert "\x1b" not in text
    lines = str(ft.compare(*pair)).splitlines()
    (line,) = (line for line in lines if line.startswith("Between pairs, mean"))
    assert line.endswith("*")
    assert repr(ft.compare(*pair)).endswith("beyond noise)")
    assert repr(ft.compare(pair[0], pair[0])).endswith("within noise)")


def test_to_dict_is_json(pair):
    found = json.loads(json.dumps(ft.compare(*pair).to_dict(), allow_nan=False))
    assert found["names"] == ["Before", "After"]
    assert found["changes"]["error_rate"]["value"] == pytest.approx(
        pair[1].metrics["error_rate"] - pair[0].metrics["error_rate"]
    )
    assert found["before"]["rows"] == 2000
    assert found["groups"] == ["a", "b", "c"]


def test_refusals(pair):
    before, _ = pair
    scores, labels, groups = rows()
    kept = groups != "c"
    fewer = ft.audit(scores[kept], labels[kept], sensitive_features=groups[kept], **QUICK)
    with pytest.raises(ValueError, match="3 and 2 groups, 2 of them in both"):
        ft.compare(before, fewer)
    with pytest.raises(ValueError, match=r"different ranges of scores, \[0, 1\] and \[0, 2\]"):
        ft.compare(before, ft.audit(scores, sensitive_features=groups, range=(0, 2), **QUICK))
    with pytest.raises(ValueError, match=r"different confidence levels, 0\.95 and 0\.9"):
        ft.compare(before, ft.audit(scores, sensitive_features=groups, inference=Inference(confidence=0.9)))
    with pytest.raises(TypeError, match="after must be an Audit"):
        ft.compare(before, scores)
    with pytest.raises(TypeError, match="names must be two strings"):
        ft.compare(before, before, names=("one",))
    assert isinstance(ft.compare(before, before), AuditComparison)


def test_only_what_both_have_is_compared(pair):
    scores, _, groups = rows()
    bare = ft.audit(scores, sensitive_features=groups, thresholds=[0.3], target="pooled", **QUICK)
    found = ft.compare(pair[0], bare)
    assert "error_rate" not in found.changes
    assert "wasserstein_disparity" not in found.changes  # another target
    assert found.auc is None
    assert found.thresholds == ()
    assert "Between pairs, mean" in str(found)


def test_corrected_distances_are_labelled_so(pair):
    comparison = ft.compare(*pair)
    text = " ".join(str(comparison).split())
    assert "Distances are corrected for chance" in text
    page = comparison.to_html()
    before, after = (audit.mean_readings["strong_pairwise_disparity"] for audit in pair)
    assert f"Corrected for chance: observed {before.value:.3f} and {after.value:.3f}" in page
    assert f"corrected for chance (observed {100 * before.value:.1f} and {100 * after.value:.1f}" in page
