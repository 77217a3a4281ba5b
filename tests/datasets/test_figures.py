"""The three data sets against UCI's ``adult.names`` and ``communities.names``, and counts of the raw files."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from fairtransport.datasets import load_adult, load_communities, load_german

LOADERS = {"adult": cache(load_adult), "german": cache(load_german), "communities": cache(load_communities)}
SHARES = {"black": "racepctblack", "white": "racePctWhite", "asian": "racePctAsian", "hispanic": "racePctHisp"}
# Rows, and positives among them or their rate to four digits, counted in the raw files; the totals of adult are also
# those of adult.names (23.93 %).
COUNTS = [
    ("adult", {"split": "train"}, 32_561, 7_841),
    ("adult", {"split": "test"}, 16_281, 3_846),
    ("adult", {"split": "train", "sex": "Female"}, 10_771, 1_179),
    ("adult", {"split": "train", "sex": "Male"}, 21_790, 6_662),
    ("adult", {"split": "test", "sex": "Female"}, 5_421, 590),
    ("adult", {"split": "test", "sex": "Male"}, 10_860, 3_256),
    ("adult", {"race": "White"}, 41_762, 0.2540),
    ("adult", {"race": "Black"}, 4_685, 0.1208),
    ("adult", {"race": "Asian-Pac-Islander"}, 1_519, 0.2693),
    ("adult", {"race": "Amer-Indian-Eskimo"}, 470, 0.1170),
    ("adult", {"race": "Other"}, 406, 0.1232),
    ("german", {}, 1_000, 700),
    ("german", {"sex": "male"}, 690, 0.7232),
    ("german", {"sex": "female"}, 310, 0.6484),
    ("german", {"age_group": "up to 30"}, 411, 0.6399),
    ("german", {"age_group": "over 30"}, 589, 0.7419),
    ("communities", {}, 1_994, 583),
    *(
        ("communities", {name: level}, rows, positives)
        for name, level, rows, positives in (
            ("black", "high", 970, 475),
            ("black", "low", 1_024, 108),
            ("white", "high", 962, 55),
            ("white", "low", 1_032, 528),
            ("asian", "high", 996, 283),
            ("asian", "low", 998, 300),
            ("hispanic", "high", 953, 359),
            ("hispanic", "low", 1_041, 224),
        )
    ),
]


@pytest.fixture
def adult():
    return LOADERS["adult"]()


@pytest.fixture
def communities():
    return LOADERS["communities"]()


@pytest.mark.parametrize(("name", "group", "rows", "positives"), COUNTS)
def test_rows_and_positives_of_groups(name, group, rows, positives):
    data = LOADERS[name]()
    columns = data.sensitive_features.assign(split=data.split)
    members = np.logical_and.reduce([columns[column] == value for column, value in group.items()], axis=0)
    labels = data.target[members] if group else data.target
    assert labels.size == rows
    assert (labels.sum() if positives > 1 else labels.mean()) == pytest.approx(positives, abs=5e-5)


@pytest.mark.parametrize(
    ("loader", "row", "expected"),
    [
        (load_adult, 0, [39, "State-gov", 77_516, "Bachelors", 13, "Never-married", "Adm-clerical", "Not-in-family",
                         "White", "Male", 2_174, 0, 40, "United-States", 0]),
        (load_adult, -1, [35, "Self-emp-inc", 182_148, "Bachelors", 13, "Married-civ-spouse", "Exec-managerial",
                          "Husband", "White", "Male", 0, 0, 60, "United-States", 1]),
        (load_german, 0, ["A11", 6, "A34", "A43", 1_169, "A65", "A75", 4, "A93", "A101", 4, "A121", 67, "A143", "A152",
                          2, "A173", 1, "A192", "A201", 1]),
    ],
)  # fmt: skip
def test_rows_are_those_of_the_raw_files(loader, row, expected):
    data = loader(as_frame=False)
    assert [*data.data[row].tolist(), data.target[row]] == expected


def test_train_rows_of_adult_come_first(adult):
    assert isinstance(adult.split, np.ndarray)
    assert set(adult.split[:32_561]) == {"train"}
    assert set(adult.split[32_561:]) == {"test"}


def test_missing_values_of_adult(adult):
    missing = adult.data.isna()
    counts = missing.sum()
    # Counted in the raw files.
    assert counts[counts > 0].to_dict() == {"workclass": 2_799, "occupation": 2_809, "native_country": 857}
    assert missing.any(axis=1).sum() == 3_620
    # adult.names: 45,222 complete rows, of which 24.78 % are above 50K.
    complete = ~missing.any(axis=1)
    assert complete.sum() == 45_222
    assert adult.target[complete].mean() == pytest.approx(0.2478, abs=5e-5)
    assert not (adult.data == "?").any(axis=None)


def test_missing_words_are_nan_in_arrays_and_null_in_polars(kind, load):
    adult = load(load_adult)
    if kind == "polars":
        assert adult.data["workclass"].null_count() == 2_799
    else:
        column = adult.data[:, 1] if kind is None else adult.data["workclass"].to_numpy(dtype=object)
        assert sum(isinstance(cell, float) and np.isnan(cell) for cell in column) == 2_799
        assert all(isinstance(cell, (str, float)) for cell in column)


def test_groups_of_german_follow_from_the_data():
    german = LOADERS["german"]()
    age, group = german.data["age"], german.sensitive_features["age_group"]
    assert (age[group == "up to 30"].max(), age[group == "over 30"].min()) == (30, 31)
    status, sex = german.data["personal_status_sex"], german.sensitive_features["sex"]
    assert set(status[sex == "female"]) == {"A92"}
    assert set(status[sex == "male"]) == {"A91", "A93", "A94"}
    assert (german.target_names, german.split) == (["bad", "good"], None)
    codes = [name for name in german.data if not pd.api.types.is_integer_dtype(german.data[name])]
    used = {code for name in codes for code in german.data[name]}
    assert {code for code in used if code not in german.DESCR} == set()


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


def test_target_and_groups_are_cut_at_the_70th_percentile_and_the_medians(communities):
    # Counted in the raw file: 583 above 0.28 and 25 at it.
    assert communities.rate[communities.target == 1].min() == pytest.approx(0.29)
    assert communities.rate[communities.target == 0].max() == pytest.approx(0.28)
    assert communities.split is None
    for name, column in SHARES.items():
        high, share = communities.sensitive_features[name] == "high", communities.data[column]
        assert set(communities.sensitive_features[name]) == {"high", "low"}
        assert share[high].min() > share.median() >= share[~high].max()


def test_missing_values_and_names_of_communities(communities):
    missing = communities.data.isna().sum()
    # Counted in the raw file: the police survey reached 319 communities.
    assert missing.value_counts().to_dict() == {0: 99, 1_675: 22, 1: 1}
    assert missing["OtherPerCap"] == 1
    assert missing[[*SHARES.values()]].sum() == 0
    identifiers = {"state": 0, "county": 1_174, "community": 1_177, "communityname": 0, "fold": 0}
    assert communities.identifiers.isna().sum().to_dict() == identifiers
    assert set(communities.feature_names).isdisjoint({*identifiers, "ViolentCrimesPerPop"})
