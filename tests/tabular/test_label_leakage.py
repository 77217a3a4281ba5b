"""A column that gives the label away is named; an informative one, and many rare categories, are not."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairtransport._warnings import FairnessWarning
from fairtransport.tabular import TableModel


def people(n=600, seed=0, **columns):
    rng = np.random.default_rng(seed)
    hours = rng.normal(35, 5, n)
    hired = hours + rng.normal(0, 4, n) > 36
    table = {"sex": rng.choice(["F", "M"], n), "hours": hours, "hired": np.where(hired, "yes", "no")}
    return table | {name: make(hired, rng) for name, make in columns.items()}


def fit(table):
    return TableModel(LogisticRegression(), label="hired", sensitive_features=["sex"]).fit(table)


@pytest.mark.parametrize(
    "leak",
    [
        pytest.param(lambda hired, rng: 3.0 * hired + rng.random(hired.size), id="number"),
        pytest.param(lambda hired, rng: -3.0 * hired + rng.random(hired.size), id="number of the other direction"),
        pytest.param(lambda hired, _: np.where(hired, "contract", "letter"), id="words"),
        pytest.param(lambda hired, rng: np.where(hired, rng.choice(["a", "b"], hired.size), "c"), id="three words"),
        pytest.param(lambda hired, _: np.where(hired, 1.0, np.nan), id="present or missing"),
        pytest.param(
            lambda hired, rng: np.where(
                hired, np.datetime64("2024-01-01"), np.datetime64("2020-01-01")
            ) + rng.integers(0, 300, hired.size).astype("timedelta64[D]"),
            id="date",
        ),
    ],
)  # fmt: skip
def test_a_column_that_tells_the_label_is_named_and_nothing_else_of_it(leak):
    with pytest.warns(FairnessWarning, match="told almost without error from column 'payroll' alone") as found:
        model = fit(people(payroll=leak))
    assert model.leaking_columns_ == ["payroll"]
    assert "contract" not in str(found[0].message)


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(lambda hired, rng: hired + rng.normal(0, 0.5, hired.size), id="informative"),
        pytest.param(lambda hired, _: np.arange(hired.size) % 97, id="many numbers"),
        pytest.param(lambda hired, rng: rng.integers(0, 90, hired.size).astype(str), id="many categories"),
    ],
)
def test_other_columns_are_not_named(column):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit(people(other=column)).leaking_columns_ == []


def test_a_few_rows_are_no_evidence():
    with warnings.catch_warnings():
        warnings.simplefilter("error", FairnessWarning)
        assert fit(people(30, payroll=lambda hired, _: hired.astype(float))).leaking_columns_ == []
