"""A small stand-in for Adult, and parts of Table 1."""

import numpy as np
import pytest

from fairtransport.paper.finding import run_parts
from fairtransport.paper.splits import Split
from fairtransport.paper.table1 import make_table, parts


@pytest.fixture
def small_split():
    """3,000 women and men, of whom 10 and 30 per cent are in class 1, as in Adult, with four features."""
    n, rng = 3000, np.random.default_rng(0)
    halves = []
    for _ in range(2):
        sex = np.where(rng.random(n) < 0.4, "Female", "Male").astype(object)
        y = (rng.random(n) < np.where(sex == "Female", 0.1, 0.3)).astype(int)
        X = rng.normal(size=(n, 4)) + np.outer(y, [1.5, 0.5, 0.0, 0.0])
        X[:, 3] = sex == "Male"
        halves += [X, y, {"sex": sex}]
    return Split("small", *halves)


@pytest.fixture(scope="session")
def run_table1():
    """Return a function that computes Table 1 on some of its data sets."""

    def run(*datasets, quick=False, n_seeds=None):
        trainings = parts(quick=quick, n_seeds=n_seeds, datasets=datasets)
        return make_table(trainings, run_parts(trainings, n_jobs=2))

    return run
