"""Which scores are to a person's advantage: the four-fifths rule compares the rates of the favourable outcome."""

from __future__ import annotations

import numpy as np
import pytest

import fairtransport as ft

QUICK = {"n_bootstrap": 50, "n_permutations": 50, "random_state": 0}
SCORES = np.repeat([0.9, 0.1, 0.9, 0.1], [30, 70, 60, 40])
GROUPS = np.repeat(["a", "b"], 100)


def test_where_low_scores_are_favourable_the_shares_not_flagged_are_compared():
    high, low = (ft.audit(SCORES, sensitive_features=GROUPS, favourable=way, **QUICK) for way in ("high", "low"))
    assert high.thresholds[0].rates == low.thresholds[0].rates
    assert high.thresholds[0].ratio.value == pytest.approx(0.3 / 0.6)
    assert low.thresholds[0].ratio.value == pytest.approx(0.4 / 0.7)
    assert low.thresholds[0].ratios == pytest.approx((1.0, 0.4 / 0.7))
    assert (high.thresholds[0].worse_off, high.thresholds[0].better_off) == (0, 1)
    assert (low.thresholds[0].worse_off, low.thresholds[0].better_off) == (1, 0)
    assert low.thresholds[0].difference == high.thresholds[0].difference
    assert (low.settings.favourable, low.to_dict()["settings"]["favourable"]) == ("low", "low")


def test_turning_the_scores_around_turns_the_direction_around():
    low = ft.audit(SCORES, sensitive_features=GROUPS, favourable="low", thresholds=0.5, **QUICK).thresholds[0]
    high = ft.audit(1 - SCORES, sensitive_features=GROUPS, thresholds=0.5, **QUICK).thresholds[0]
    for name in ("value", "low", "high"):
        assert getattr(low.ratio, name) == pytest.approx(getattr(high.ratio, name))
    assert (low.worse_off, low.better_off) == (high.worse_off, high.better_off)
    assert (low.four_fifths, low.conclusive) == (high.four_fifths, high.conclusive)


def test_everyone_flagged_has_no_ratio():
    at = ft.audit(SCORES, sensitive_features=GROUPS, favourable="low", thresholds=0.0, **QUICK)
    assert at.thresholds[0].four_fifths is None
    assert "everyone is flagged" in str(at)


def test_the_text_names_the_favourable_outcome():
    audit = ft.audit(SCORES, sensitive_features=GROUPS, favourable="low", thresholds=[0.5, 0.25], **QUICK)
    text = " ".join(str(audit).split())
    assert "30.0% of a and 60.0% of b are flagged: the shares not flagged have a ratio of 0.57" in text
    assert "Above 0.25: 60.0% of b, 30.0% of a flagged; ratio of the shares not flagged 0.57" in text
