"""The three data sets: what all loaders promise, and figures of UCI's descriptions and of the raw files."""

import dataclasses
import hashlib
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.utils import Bunch

from fairtransport.datasets import list_datasets, load_adult, load_communities, load_german

LOADERS = {"adult": load_adult, "german": load_german, "communities": load_communities}
FRAMES = {"pandas": (pd.DataFrame, pd.Series), "polars": (pl.DataFrame, pl.Series), None: (np.ndarray, np.ndarray)}
# Written by scripts/make_datasets.py, whose inputs carry UCI's sha256.
SHA256 = {
    "adult": "79cb39d8446b7c0ba606cf5b105fffff2ec0e3b60d2da90b774a6b936248a6d1",
    "german": "e51d964328b11bc9b5a64f985aaa2958f85811776377c0a228f335657ec7aa5e",
    "communities": "51d2ccbcbb38f9accd5c9af9557af06f86775d83d78b999b2949dd9430ec0336",
}
SHARES = {"black": "racepctblack", "white": "racePctWhite", "asian": "racePctAsian", "hispanic": "racePctHisp"}
# Rows, and positives among them or their rate to four digits, counted in the raw files; the totals of adult are also
# those of adult.names (23.93 %).
COUNTS = [
    ("adult", {"split": "train", "sex": "Female"}, 10_771, 1_179),
    ("adult", {"split": "train", "sex": "Male"}, 21_790, 6_662),
    ("adult", {"split": "test", "sex": "Female"}, 5_421, 590),
    ("adult", {"split": "test", "sex": "Male"}, 10_860, 3_256),
    ("adult", {"race": "White"}, 41_762, 0.2540),
    ("adult", {"race": "Black"}, 4_685, 0.1208),
    ("german", {"sex": "female"}, 310, 0.6484),
    ("german", {"age_group": "up to 30"}, 411, 0.6399),
    ("german", {"age_group": "over 30"}, 589, 0.7419),
    ("communities", {"black": "high"}, 970, 475),
    ("communities", {"white": "high"}, 962, 55),
    ("communities", {"asian": "low"}, 998, 300),
    ("communities", {"hispanic": "low"}, 1_041, 224),
]
loaded = cache(lambda name: LOADERS[name]())


def plain(cells):
    """Spell every missing value as None, so that columns of different kinds can be compared."""
    return [None if cell is None or (isinstance(cell, float) and np.isnan(cell)) else cell for cell in cells]


@pytest.fixture(params=list_datasets(), ids=lambda entry: entry.name)
def info(request):
    return request.param


def test_entries_have_the_kind_and_the_size_that_was_asked_for(info, kind, load):
    bunch = load(LOADERS[info.name])
    table, column = FRAMES[kind]
    entries = [bunch.data, bunch.target, bunch.sensitive_features]
    assert [*map(isinstance, [bunch, *entries], [Bunch, table, column, table])] == [True] * 4
    shapes = [(info.rows, info.columns), (info.rows,), (info.rows, len(info.sensitive))]
    assert [entry.shape for entry in entries] == shapes
    assert (len(bunch.feature_names), len(bunch.target_names)) == (info.columns, 2)
    assert tuple(bunch.sensitive_names) == info.sensitive
    assert np.asarray(bunch.target).dtype == np.int64
    assert set(np.unique(np.asarray(bunch.target))) == {0, 1}
    if info.name == "adult" and kind == "polars":
        assert bunch.data["workclass"].null_count() == 2_799
    elif info.name == "adult":
        cells = bunch.data[:, 1] if kind is None else bunch.data["workclass"].to_numpy(dtype=object)
        assert sum(isinstance(cell, float) and np.isnan(cell) for cell in cells) == 2_799


def test_the_three_kinds_hold_the_same_values(info, monkeypatch):
    loader = LOADERS[info.name]
    frames, arrays = loader(), loader(as_frame=False)
    monkeypatch.setitem(sys.modules, "pandas", None)
    polars = loader()
    np.testing.assert_array_equal(frames.target.to_numpy(), arrays.target)
    np.testing.assert_array_equal(polars.target.to_numpy(), arrays.target)
    for entry in ("data", "sensitive_features"):
        for position, name in enumerate(frames[entry].columns):
            expected = plain(arrays[entry][:, position].tolist())
            assert plain(frames[entry][name].tolist()) == expected, name
            assert plain(polars[entry][name].to_list()) == expected, name
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"fairtransport\[tables\].*as_frame=False"):
        loader()


def test_every_call_returns_new_objects_and_entries_are_independent(info):
    first = LOADERS[info.name]()
    before = first.frame.iloc[0, 0]
    first.data.iloc[0, 0] = first.data.iloc[1, 0]
    first.target.iloc[:] = 0
    first.feature_names.clear()
    assert first.frame.iloc[0, 0] == before != first.data.iloc[0, 0]
    assert first.frame[info.label].sum() > 0
    second = LOADERS[info.name]()
    assert (second.data.iloc[0, 0], len(second.feature_names)) == (before, info.columns)


def test_the_file_is_the_one_that_was_checked_and_the_description_cites_it(info):
    bunch = LOADERS[info.name](as_frame=False)
    assert hashlib.sha256(Path(bunch.filename).read_bytes()).hexdigest() == SHA256[info.name]
    flat = " ".join(bunch.DESCR.split())
    for text in (info.title, info.citation, info.licence, f"{info.rows:,}", info.label):
        assert text in flat
    assert all(f"``{name}``" in flat for name in info.sensitive)


def test_catalogue_lists_the_three_and_cannot_be_changed():
    entries = list_datasets()
    assert [entry.name for entry in entries] == list(LOADERS)
    with pytest.raises(dataclasses.FrozenInstanceError):
        entries[0].rows = 0


@pytest.mark.parametrize(("name", "group", "rows", "positives"), COUNTS)
def test_rows_and_positives_of_groups(name, group, rows, positives):
    data = loaded(name)
    columns = data.sensitive_features.assign(split=data.split)
    labels = data.target[np.logical_and.reduce([columns[column] == value for column, value in group.items()])]
    assert labels.size == rows
    assert (labels.sum() if positives > 1 else labels.mean()) == pytest.approx(positives, abs=5e-5)


@pytest.mark.parametrize(
    ("loader", "row", "expected"),
    [
        (load_adult, -1, [35, "Self-emp-inc", 182_148, "Bachelors", 13, "Married-civ-spouse", "Exec-managerial",
                          "Husband", "White", "Male", 0, 0, 60, "United-States", 1]),
        (load_german, 0, ["A11", 6, "A34", "A43", 1_169, "A65", "A75", 4, "A93", "A101", 4, "A121", 67, "A143", "A152",
                          2, "A173", 1, "A192", "A201", 1]),
    ],
)  # fmt: skip
def test_rows_are_those_of_the_raw_files(loader, row, expected):
    data = loader(as_frame=False)
    assert [*data.data[row].tolist(), data.target[row]] == expected


def test_missing_values_of_adult():
    adult = loaded("adult")
    missing = adult.data.isna()
    counts = missing.sum()
    # Counted in the raw files.
    assert counts[counts > 0].to_dict() == {"workclass": 2_799, "occupation": 2_809, "native_country": 857}
    # adult.names: 45,222 complete rows, of which 24.78 % are above 50K.
    complete = ~missing.any(axis=1)
    assert complete.sum() == 45_222
    assert adult.target[complete].mean() == pytest.approx(0.2478, abs=5e-5)
    assert not (adult.data == "?").any(axis=None)
    assert (adult.split == np.repeat(["train", "test"], [32_561, 16_281])).all()


def test_groups_of_german_follow_from_the_data():
    german = loaded("german")
    age, group = german.data["age"], german.sensitive_features["age_group"]
    assert (age[group == "up to 30"].max(), age[group == "over 30"].min()) == (30, 31)
    status, sex = german.data["personal_status_sex"], german.sensitive_features["sex"]
    assert set(status[sex == "female"]) == {"A92"}
    assert set(status[sex == "male"]) == {"A91", "A93", "A94"}
    assert (german.target_names, german.split) == (["bad", "good"], None)
    codes = [name for name in german.data if not pd.api.types.is_integer_dtype(german.data[name])]
    assert all(code in german.DESCR for name in codes for code in set(german.data[name]))


def test_rate_of_communities_and_what_is_cut_from_it():
    communities, regression = loaded("communities"), load_communities(task="regression")
    rate, target = communities.rate, communities.target
    assert (rate.median(), rate.min(), rate.max()) == (0.15, 0.0, 1.0)  # as in communities.names, and so are these
    figures = (rate.mean(), rate.std(), np.corrcoef(rate, communities.data["racepctblack"])[0, 1])
    assert figures == pytest.approx((0.2380, 0.2330, 0.6313), abs=5e-5)
    # Counted in the raw file: 583 above 0.28 and 25 at it.
    assert (rate[target == 1].min(), rate[target == 0].max()) == pytest.approx((0.29, 0.28))
    for name, column in SHARES.items():
        high, share = communities.sensitive_features[name] == "high", communities.data[column]
        assert share[high].min() > share.median() >= share[~high].max()
    np.testing.assert_array_equal(regression.target, rate)
    assert (regression.target.name, regression.target_names) == ("ViolentCrimesPerPop", ["ViolentCrimesPerPop"])
    assert "ViolentCrimesPerPop" in regression.frame
    with pytest.raises(ValueError, match="task must be"):
        load_communities(task="ranking")


def test_missing_values_and_names_of_communities():
    communities = loaded("communities")
    missing = communities.data.isna().sum()
    # Counted in the raw file: the police survey reached 319 communities.
    assert missing.value_counts().to_dict() == {0: 99, 1_675: 22, 1: 1}
    assert (missing["OtherPerCap"], missing[[*SHARES.values()]].sum()) == (1, 0)
    identifiers = {"state": 0, "county": 1_174, "community": 1_177, "communityname": 0, "fold": 0}
    assert communities.identifiers.isna().sum().to_dict() == identifiers
    assert set(communities.feature_names).isdisjoint({*identifiers, "ViolentCrimesPerPop"})
