"""Files from Python: read, split, scored and repaired; what cannot be meant is refused, and nothing is overwritten."""

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from tests.workbench import people

import fairtransport as ft
from fairtransport.tabular import collect_file, describe_columns, find_proxies, make_estimator, score_file, split_table

COLUMNS = ft.tables.Columns.named(score="score", sensitive_features="sex")


@pytest.fixture
def path(tmp_path):
    people(400).write_csv(tmp_path / "people.csv")
    return tmp_path / "people.csv"


def test_a_repair_that_is_not_fitted_is_fitted_to_the_file(path):
    with ft.tables.open_files(path) as file:
        done = ft.repair.repair_file(ft.QuantileRepair(), file, COLUMNS, path.with_name("r.parquet"), output="fair")
    table = people(400)
    expected = ft.repair.TableRepair(score="score", sensitive_features="sex").fit(table).transform(table)
    np.testing.assert_allclose(pl.read_parquet(path.with_name("r.parquet"))["fair"], expected["repaired"], atol=1e-12)
    assert done.counts["rows"] == 400


def test_what_cannot_be_meant_is_refused(path):
    fitted = ft.QuantileRepair()
    with ft.tables.open_files(path) as file:
        ft.repair.repair_file(fitted, file, COLUMNS, path.with_name("r.csv"), output="fair")
    two = ft.tables.Columns.named(score="score", sensitive_features=["sex", "region"])
    before = path.read_bytes()

    def repair(one, columns, out, output="fair"):
        with ft.tables.open_files(path) as file:
            ft.repair.repair_file(one, file, columns, out, output=output)

    out, table = path.with_name("out.csv"), collect_file(path)
    model = ft.tabular.TableModel(
        LogisticRegression(), label="hired", sensitive_features=["sex"], drop=["person", "salary"]
    )
    model.fit(table)
    with ft.tables.open_files(path) as file, pytest.raises(ValueError, match="is read, and cannot be written"):
        score_file(model, file, path, output="fair")
    with ft.tables.open_files(path) as file, pytest.raises(ValueError, match="output= is empty"):
        score_file(model, file, out, output="")
    for call, error, words in (
        (lambda: repair(fitted, two, out), ValueError, "fitted to 1 columns of strata and groups, and 2 are named"),
        (lambda: repair(fitted, COLUMNS, path), ValueError, "is read, and cannot be written at once"),
        (lambda: repair(LogisticRegression(), COLUMNS, out), TypeError, "must be a QuantileRepair"),
        (lambda: score_file(model, 5, out), TypeError, "must be open files"),
        (lambda: score_file(model, path, out), ValueError, "has a column 'score' already"),
        (lambda: split_table(table, 0.2, label="hird", sensitive_features="sex"), ValueError, "no column 'hird'"),
        (lambda: find_proxies(table, ["sexx"], ["region"]), ValueError, "no column 'sexx'; close to it: 'sex'"),
        (lambda: make_estimator("zz", "classification"), ValueError, "method must be one of"),
        (lambda: make_estimator("cot", "ranking"), ValueError, "task must be one of"),
    ):
        with pytest.raises(error, match=words):
            call()
    assert path.read_bytes() == before
    assert not out.exists()


def test_columns_of_tables_of_any_library_are_described(path):
    table = people(400)
    expected = describe_columns(table.to_arrow())
    for same in (table, table.to_pandas()):
        assert [(one["name"], one["distinct"]) for one in describe_columns(same)] == [
            (one["name"], one["distinct"]) for one in expected
        ]
