"""Adult against the figures of UCI's ``adult.names`` and counts of the raw files."""

from __future__ import annotations

import numpy as np
import pytest

from fairtransport.datasets import load_adult

# Counts of the raw files (rows, rows above 50K); the totals are also those of adult.names (23.93 %).
COUNTS = {
    ("train", None): (32_561, 7_841),
    ("test", None): (16_281, 3_846),
    ("train", "Female"): (10_771, 1_179),
    ("train", "Male"): (21_790, 6_662),
    ("test", "Female"): (5_421, 590),
    ("test", "Male"): (10_860, 3_256),
}
# Rates to four digits, counted in the raw files.
RATES_BY_RACE = {
    "White": (41_762, 0.2540),
    "Black": (4_685, 0.1208),
    "Asian-Pac-Islander": (1_519, 0.2693),
    "Amer-Indian-Eskimo": (470, 0.1170),
    "Other": (406, 0.1232),
}


@pytest.fixture(scope="module")
def adult():
    return load_adult()


@pytest.mark.parametrize(("split", "sex"), COUNTS)
def test_rows_and_labels_of_the_official_split(adult, split, sex):
    rows = adult.split == split
    if sex is not None:
        rows &= (adult.sensitive_features["sex"] == sex).to_numpy()
    assert (rows.sum(), adult.target[rows].sum()) == COUNTS[split, sex]


def test_train_rows_come_first(adult):
    assert isinstance(adult.split, np.ndarray)
    assert set(adult.split[:32_561]) == {"train"}
    assert set(adult.split[32_561:]) == {"test"}


@pytest.mark.parametrize("race", RATES_BY_RACE)
def test_rates_by_race(adult, race):
    rows = (adult.sensitive_features["race"] == race).to_numpy()
    count, rate = RATES_BY_RACE[race]
    assert rows.sum() == count
    assert adult.target[rows].mean() == pytest.approx(rate, abs=5e-5)


def test_missing_values(adult):
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


def test_first_and_last_rows_are_those_of_the_raw_files():
    adult = load_adult(as_frame=False)
    assert adult.data[0].tolist() == [
        39, "State-gov", 77_516, "Bachelors", 13, "Never-married", "Adm-clerical",
        "Not-in-family", "White", "Male", 2_174, 0, 40, "United-States",
    ]  # fmt: skip
    assert adult.data[-1].tolist() == [
        35, "Self-emp-inc", 182_148, "Bachelors", 13, "Married-civ-spouse", "Exec-managerial",
        "Husband", "White", "Male", 0, 0, 60, "United-States",
    ]  # fmt: skip
    assert adult.target[[0, -1]].tolist() == [0, 1]
