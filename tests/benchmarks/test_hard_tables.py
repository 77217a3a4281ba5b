"""The tables of `benchmarks.hard_tables`: the same at every call, and as hard as they are meant to be."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_selection import f_classif

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def generator():
    before = list(sys.path)
    sys.path.insert(0, str(ROOT))
    try:
        return importlib.import_module("benchmarks._hard_tables")
    finally:
        sys.path[:] = before


@pytest.fixture(scope="module")
def tables(generator):
    return {name: generator.make_table(name, n_fresh=1) for name in generator.NAMES}


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def test_there_are_twenty(generator):
    assert len(generator.NAMES) == 20


def test_a_table_is_the_same_at_every_call(generator, tables):
    for index, (name, table) in enumerate(tables.items()):
        again = generator.make_table(index, n_fresh=1)
        assert again.name == name
        for first, second in ((table.train, again.train), (table.fresh[0], again.fresh[0])):
            np.testing.assert_array_equal(dense(first.X), dense(second.X))
            np.testing.assert_array_equal(first.y, second.y)
            np.testing.assert_array_equal(first.groups, second.groups)
            if first.sample_weight is not None:
                np.testing.assert_array_equal(first.sample_weight, second.sample_weight)


def test_more_fresh_samples_change_no_earlier_one(generator, tables):
    several = generator.make_table("single_blind", n_fresh=2)
    np.testing.assert_array_equal(several.fresh[0].X, tables["single_blind"].fresh[0].X)
    assert not np.isin(several.fresh[1].X, several.fresh[0].X).any()


def test_fresh_rows_are_not_training_rows(tables):
    for name, table in tables.items():
        train, fresh = ({row.tobytes() for row in dense(rows.X)} for rows in (table.train, table.fresh[0]))
        if name == "wide_sparse":  # counts: equal rows are possible, equal tables are not
            assert fresh - train
        else:
            assert not train & fresh, name


def test_sizes_are_those_of_the_rows(tables):
    for table in tables.values():
        for rows, expected in ((table.train, table.sizes), (table.fresh[0], None)):
            names, counts = np.unique(rows.groups, return_counts=True)
            assert list(names) == list(table.sizes)
            assert expected is None or dict(zip(names, counts, strict=True)) == expected
            assert len(rows.y) == len(rows.groups) == rows.X.shape[0]
            assert counts.min() >= 3
            assert set(rows.y) == {0, 1}


def test_the_ranges_that_the_issue_names_are_covered(tables):
    sizes = [size for table in tables.values() for size in table.sizes.values()]
    columns = {table.train.X.shape[1] for table in tables.values()}
    groups = {len(table.sizes) for table in tables.values()}
    rates = [table.train.y.mean() for table in tables.values()]
    assert (min(sizes), max(sizes)) == (3, 50_000)
    assert (min(columns), max(columns)) == (1, 500)
    assert (min(groups), max(groups)) == (2, 12)
    assert min(rates) == pytest.approx(0.01, abs=0.003)
    assert max(rates) == pytest.approx(0.9, abs=0.01)
    assert sum(min(table.sizes.values()) < 50 for table in tables.values()) >= 4
    assert sum(sparse.issparse(table.train.X) for table in tables.values()) >= 2
    assert sum(table.train.sample_weight is not None for table in tables.values()) == 1
    assert sum(not table.family_allows for table in tables.values()) >= 3
    assert {table.aware for table in tables.values()} == {True, False}


@pytest.mark.parametrize("name", ["collinear", "everything"])
def test_collinear_columns(tables, name):
    X = tables[name].train.X
    varying = X[:, X.std(axis=0) > 0]
    upper = np.triu(np.corrcoef(varying, rowvar=False), 1)
    assert np.count_nonzero(upper >= 0.95) >= 50


@pytest.mark.parametrize("name", ["collinear", "heavy_tails", "everything"])
def test_heavy_tails(tables, name):
    X = tables[name].train.X
    assert abs(X).max() == pytest.approx(1e6)
    reach = abs(X).max(axis=0) / np.maximum(np.median(abs(X), axis=0), 1e-300)
    assert np.count_nonzero(reach > 1e4) >= 3


def test_rare_binaries(tables):
    X = tables["rare_binaries"].train.X
    assert sparse.isspmatrix_csr(X)
    binary = X[:, 4:44].toarray()
    assert set(np.unique(binary)) == {0.0, 1.0}
    rates = binary.mean(axis=0)
    assert rates.max() < 0.013
    assert np.count_nonzero(rates < 0.004) >= 5


def test_separable_labels(tables):
    for name, (fair, unfair) in {"separable": (7, 3), "separable_blind": (0, 3)}.items():
        rows = tables[name].train
        weights = np.r_[
            np.full(fair, 1 / np.sqrt(max(fair, 1))), np.full(unfair, 0.25 if fair else 1) / np.sqrt(unfair)
        ]
        values = rows.X @ weights
        assert values[rows.y == 1].min() > values[rows.y == 0].max()


def test_constant_columns_and_units(tables):
    assert np.count_nonzero(np.ptp(tables["constant_columns"].train.X, axis=0) == 0) == 3
    deviations = tables["units"].train.X[:, :9].std(axis=0)
    assert deviations.max() / deviations.min() > 1e11


def test_two_rare_groups_among_two_that_are_far_apart(tables):
    table = tables["two_rare_groups"]
    assert sorted(table.sizes.values())[:2] == [15, 20]
    assert len(table.train.y) == 5000
    rows = table.train
    gap = rows.X[rows.groups == "b", 8:].mean() - rows.X[rows.groups == "a", 8:].mean()
    assert gap > 1.5


def test_fair_directions_do_not_depend_on_the_group(tables):
    """Analysis of variance on each direction: p-values of a true null are rarely below 1e-5."""
    for name, table in tables.items():
        assert table.family_allows == (table.fair_basis is not None)
        if table.fair_basis is None:
            continue
        directions = dense(table.train.X) @ table.fair_basis
        directions = np.sign(directions) * np.log1p(abs(directions)) if name != "units" else directions
        _, p_values = f_classif(directions[:, np.ptp(directions, axis=0) > 0], table.train.groups)
        assert p_values.min() > 1e-5, name


def test_groups_do_differ_elsewhere(tables):
    for name, table in tables.items():
        if name == "no_difference":
            continue
        X = dense(table.train.X)
        X = X[:, : -len(table.sizes)] if table.aware else X  # indicators come last
        _, p_values = f_classif(X[:, np.ptp(X, axis=0) > 0], table.train.groups)
        assert p_values.min() < 1e-6, name


@pytest.mark.parametrize("name", ["few", "", "single blind"])
def test_an_unknown_table_is_an_error_that_names_those_there_are(generator, name):
    with pytest.raises(ValueError, match="single_blind"):
        generator.make_table(name)


def test_tables_with_a_real_y_have_units_of_their_own(generator):
    deviations = [generator.make_table(name, n_fresh=0, task="regression").train.y.std() for name in generator.NAMES]
    assert min(deviations) < 1e-5
    assert max(deviations) > 1e8
    with pytest.raises(ValueError, match="classification"):
        generator.make_table("wide", task="ranking")


@pytest.mark.trust
@pytest.mark.filterwarnings("ignore::fairtransport.FairnessWarning")
@pytest.mark.parametrize("learner", ["continuous", "discrete"])
def test_regressors_on_some_of_the_tables(learner):
    """`benchmarks/results/regression_tables.json` has all twenty."""
    sys.path.insert(0, str(ROOT))
    try:
        tables = importlib.import_module("benchmarks.regression_tables")
    finally:
        sys.path.remove(str(ROOT))
    for name in ("single_aware", "few_blind", "heavy_tails", "no_difference", "two_rare_groups"):
        table = tables.make_table(name, n_fresh=3, task="regression")
        row = {"fair_information": tables.fair_information(table), **tables.measure(table, learner)}
        bars = tables.judge(row)
        assert all(bars.values()), (name, bars)
