"""Strata of any table library; numbers are cut at quantiles."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fairtransport.strata import MIN_STRATUM_ROWS, Strata, make_strata


def people(n=1200):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"education": rng.choice(["a", "b", "c"], n), "hours": rng.normal(40, 8, n)})


def test_numbers_are_cut_at_quantiles_into_the_cube_root_of_rows():
    strata = make_strata(np.arange(1000.0))
    assert len(strata) == 10
    assert set(strata.cells.counts.tolist()) == {100}
    assert strata.names[0].startswith("below")
    assert strata.names[-1].endswith("or more")


def test_ranges_keep_thirty_rows_for_each_group_on_average():
    strata = make_strata(people(), n_groups=4)
    assert 1200 / len(strata) / 4 >= MIN_STRATUM_ROWS
    assert len(make_strata(people(100), n_groups=2)) <= 6  # never fewer than two ranges of each column


def test_few_different_numbers_are_values():
    assert make_strata([3, 1, 3, 2]).names == ("1", "2", "3")
    assert make_strata(np.ones(50)).names == ("1",)


def test_missing_values_are_a_stratum():
    table = people()
    table.loc[:9, "hours"] = np.nan
    assert sum("missing" in name for name in make_strata(table).names) >= 1
    assert make_strata([None, "a"]).names == ("a", "missing")


@pytest.mark.parametrize("library", [pl.from_pandas, lambda table: {name: table[name].to_numpy() for name in table}])
def test_every_table_library_gives_the_same_strata(library):
    table = people()
    assert np.array_equal(make_strata(table).codes, make_strata(library(table)).codes)


def test_new_rows_have_the_same_strata_and_unseen_ones_a_code_of_their_own():
    table = people()
    strata = make_strata(table)
    again = Strata.from_spec(json.loads(json.dumps(strata.to_spec())))
    assert np.array_equal(again.encode(table).codes, strata.codes)
    other = table.head(3).assign(education=["a", "z", "b"])
    assert (again.encode(other).codes == len(strata)).tolist() == [False, True, False]
    assert np.array_equal(again.encode(table[["hours", "education"]]).codes, strata.codes)  # by name


def test_errors_name_strata_and_columns_but_no_value():
    with pytest.raises(ValueError, match=r"strata has 2000 strata.*max_strata"):
        make_strata([f"canary{number}" for number in range(2000)])
    with pytest.raises(ValueError, match="strata must have columns 'education', 'hours'"):
        make_strata(people()).encode(people()[["hours"]])
    with pytest.raises(TypeError, match="'hours' of strata must contain numbers"):
        make_strata(people()).encode(people().assign(hours="x"))
    with pytest.raises(ValueError, match="cut points"):
        Strata.from_spec({**make_strata(people()).to_spec(), "cuts": [None]})


@pytest.mark.parametrize(
    "change",
    [
        {"cuts": [None, [3.0, 1.0]]},
        {"cuts": [None, [[30.0, 40.0]]]},
        {"cuts": [None, [float("nan")]]},
        {"cuts": [None, [40.0]]},  # there are more ranges among the strata
        {"cells": None},
        {"cells": {}},
    ],
)
def test_forged_specs_are_refused(change):
    with pytest.raises(ValueError, match=r"[Ss]trata|spec of groups"):
        Strata.from_spec({**make_strata(people()).to_spec(), **change})
