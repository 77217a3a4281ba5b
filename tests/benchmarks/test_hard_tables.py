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


def test_fresh_rows_are_not_training_rows(tables):
    for name, table in tables.items():
        train, fresh = ({row.tobytes() for row in dense(rows.X)} for rows in (table.train, table.fresh[0]))
        if name == "wide_sparse":  # counts: equal rows are possible, equal tables are not
            assert fresh - train
        else:
            assert not train & fresh, name


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
    """`benchmarks/results/hard_tables.json` has all twenty."""
    sys.path.insert(0, str(ROOT))
    try:
        tables = importlib.import_module("benchmarks.hard_tables")
    finally:
        sys.path.remove(str(ROOT))
    for name in ("single_aware", "few_blind", "heavy_tails", "no_difference", "two_rare_groups"):
        table = tables.make_table(name, n_fresh=3, task="regression")
        bars = tables.judge(tables.measure_regressor(table, learner))
        assert all(bars.values()), (name, bars)
