"""Communities and Crime against the summary of UCI's ``communities.names`` and counts of the raw file."""

from __future__ import annotations

import numpy as np
import pytest

from fairtransport.datasets import load_communities

# Counted in the raw file: rows above the median share, positives among them, positives among the others.
GROUPS = {
    "black": ("racepctblack", 970, 475, 108),
    "white": ("racePctWhite", 962, 55, 528),
    "asian": ("racePctAsian", 996, 283, 300),
    "hispanic": ("racePctHisp", 953, 359, 224),
}


@pytest.fixture(scope="module")
def communities():
    return load_communities()


def test_rate_agrees_with_the_summary_of_uci(communities):
    rate = communities.rate
    assert rate.name == "ViolentCrimesPerPop"
    assert rate.mean() == pytest.approx(0.2380, abs=5e-5)
    assert rate.std() == pytest.approx(0.2330, abs=5e-5)
    assert (rate.median(), rate.min(), rate.max()) == (0.15, 0.0, 1.0)
    assert np.corrcoef(rate, communities.data["racepctblack"])[0, 1] == pytest.approx(0.6313, abs=5e-5)


def test_rate_as_the_target_of_a_regression(communities):
    regression = load_communities(task="regression")
    np.testing.assert_array_equal(regression.target, communities.rate)
    assert (regression.target.name, regression.target_names) == ("ViolentCrimesPerPop", ["ViolentCrimesPerPop"])
    assert "ViolentCrimesPerPop" in regression.frame
    with pytest.raises(ValueError, match="task must be"):
        load_communities(task="ranking")


def test_target_is_the_rate_above_its_70th_percentile(communities):
    # Counted in the raw file: 583 above 0.28 and 25 at it.
    assert communities.target.sum() == 583
    assert communities.rate[communities.target == 1].min() == pytest.approx(0.29)
    assert communities.rate[communities.target == 0].max() == pytest.approx(0.28)
    assert communities.split is None


@pytest.mark.parametrize("name", GROUPS)
def test_groups_are_split_at_the_median(communities, name):
    column, rows, positives, others = GROUPS[name]
    high = communities.sensitive_features[name] == "high"
    assert set(communities.sensitive_features[name]) == {"high", "low"}
    assert high.sum() == rows
    assert communities.target[high].sum() == positives
    assert communities.target[~high].sum() == others
    median = communities.data[column].median()
    assert communities.data[column][high].min() > median >= communities.data[column][~high].max()


def test_missing_values(communities):
    missing = communities.data.isna().sum()
    # Counted in the raw file: the police survey reached 319 communities.
    assert missing.value_counts().to_dict() == {0: 99, 1_675: 22, 1: 1}
    assert missing["OtherPerCap"] == 1
    assert missing[[column for column, *_ in GROUPS.values()]].sum() == 0
    assert communities.identifiers.isna().sum().to_dict() == {
        "state": 0, "county": 1_174, "community": 1_177, "communityname": 0, "fold": 0,
    }  # fmt: skip


def test_neither_identifiers_nor_the_target_are_among_the_features(communities):
    names = set(communities.feature_names)
    assert names.isdisjoint({*communities.identifiers.columns, "ViolentCrimesPerPop"})
