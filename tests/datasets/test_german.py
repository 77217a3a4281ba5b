"""German Credit against counts of the raw file."""

from __future__ import annotations

import pandas as pd
import pytest

from fairtransport.datasets import load_german

# Rows, and share of good risks to four digits, counted in the raw file.
GROUPS = {
    ("sex", "male"): (690, 0.7232),
    ("sex", "female"): (310, 0.6484),
    ("age_group", "up to 30"): (411, 0.6399),
    ("age_group", "over 30"): (589, 0.7419),
}


@pytest.fixture(scope="module")
def german():
    return load_german()


def test_labels(german):
    assert german.target.sum() == 700
    assert german.target_names == ["bad", "good"]
    assert german.split is None


@pytest.mark.parametrize(("column", "group"), GROUPS)
def test_groups(german, column, group):
    rows = german.sensitive_features[column] == group
    count, rate = GROUPS[column, group]
    assert rows.sum() == count
    assert german.target[rows].mean() == pytest.approx(rate, abs=5e-5)


def test_sensitive_features_follow_from_the_data(german):
    age, group = german.data["age"], german.sensitive_features["age_group"]
    assert age[group == "up to 30"].max() == 30
    assert age[group == "over 30"].min() == 31
    status, sex = german.data["personal_status_sex"], german.sensitive_features["sex"]
    assert set(status[sex == "female"]) == {"A92"}
    assert set(status[sex == "male"]) == {"A91", "A93", "A94"}


def test_first_row_is_that_of_the_raw_file():
    german = load_german(as_frame=False)
    assert german.data[0].tolist() == [
        "A11", 6, "A34", "A43", 1_169, "A65", "A75", 4, "A93", "A101",
        4, "A121", 67, "A143", "A152", 2, "A173", 1, "A192", "A201",
    ]  # fmt: skip
    assert german.target[:2].tolist() == [1, 0]


def test_every_code_is_explained(german):
    codes = [name for name in german.data if not pd.api.types.is_integer_dtype(german.data[name])]
    used = {code for name in codes for code in german.data[name]}
    assert {code for code in used if code not in german.DESCR} == set()
