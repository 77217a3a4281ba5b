"""The tables of `benchmarks.hard_tables`: the same at every call, and as hard as they are meant to be."""

import importlib

import numpy as np
import pytest
from scipy import sparse


@pytest.fixture(scope="module")
def generator():
    return importlib.import_module("benchmarks._hard_tables")


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


@pytest.mark.trust
@pytest.mark.filterwarnings("ignore::fairtransport.FairnessWarning")
@pytest.mark.parametrize("learner", ["continuous", "discrete"])
def test_regressors_on_some_of_the_tables(learner):
    """`benchmarks/results/hard_tables.json` has all twenty."""
    tables = importlib.import_module("benchmarks.hard_tables")
    for name in ("single_aware", "few_blind", "heavy_tails", "no_difference", "two_rare_groups"):
        table = tables.make_table(name, n_fresh=3, task="regression")
        bars = tables.judge(tables.measure_regressor(table, learner))
        assert all(bars.values()), (name, bars)
