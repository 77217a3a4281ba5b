"""Columns of numbers are cut where `make_strata` cuts them, on the engine that holds the table."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import fairtransport as ft
from fairtransport.strata import make_strata
from fairtransport.tables import count_table

QUICK = {"n_bootstrap": 60, "n_permutations": 60, "random_state": 0}


def table(n=3000):
    rng = np.random.default_rng(0)
    sex, age = rng.choice(["F", "M"], n), rng.integers(17, 80, n).astype(float)
    age[:20] = np.nan
    income = rng.lognormal(3, 2, n)
    income[-1] = 1e12  # one value far from all others
    return pd.DataFrame(
        {
            "s": rng.random(n).round(3),
            "sex": sex,
            "y": rng.integers(0, 2, n),
            "age": age,
            "income": income,
            "few": age > 40,
        }
    )


def on_duckdb(frame):
    return duckdb.from_df(frame)


@pytest.mark.parametrize("engine", [lambda frame: frame, pl.from_pandas, on_duckdb], ids=["pandas", "polars", "duckdb"])
def test_the_cuts_are_those_of_make_strata(engine):
    frame = table()
    for column, tolerance in (("age", 0.0), ("income", 0.02)):
        counts = count_table(
            engine(frame), score="s", sensitive_features="sex", strata=[column, "few"], cut_strata=True
        )
        expected = make_strata(frame[[column, "few"]], n_groups=2)
        points = counts.cuts[column]
        assert points == pytest.approx(expected.cuts[0].tolist(), rel=tolerance, abs=1e-12)
        if column == "age":
            found = {name: int(part.rows.sum()) for name, part in counts.strata.items()}
            assert found == {name: rows.size for name, rows in zip(expected.names, expected.rows, strict=True)}


def test_the_audit_of_a_table_is_that_of_its_rows():
    frame = table()
    options = {"criterion": "equalized_odds", "n_bins": 1000, **QUICK}
    found = ft.audit_table(frame, score="s", sensitive_features="sex", label="y", strata="age", **options)
    rows = ft.audit(frame["s"], frame["y"], sensitive_features=frame["sex"], strata=frame[["age"]], **options)
    assert found.provenance.strata_cuts["age"] == pytest.approx(rows.provenance.strata_cuts["age"])
    assert {one.name for one in found.strata} == {one.name for one in rows.strata}
    for name, reading in rows.conditional.items():
        assert found.conditional[name].value == pytest.approx(reading.value, abs=1e-9)
    assert found.settings.strata == ("age",)
    with pytest.raises(ValueError, match=r"compares people with the same label, so it needs label="):
        ft.audit_table(frame, score="s", sensitive_features="sex", criterion="equalized_odds")
    with pytest.raises(ValueError, match="by compares all people"):
        ft.audit_by(frame, by="few", score="s", sensitive_features="sex", label="y", criterion="equalized_odds")
