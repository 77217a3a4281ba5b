"""Small stand-ins for Adult, requests to stop, and what the tests of updates on Adult share."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairtransport.paper.finding import Stop, Stopped
from fairtransport.paper.splits import Split, adult_by_sex
from fairtransport.transport.line import Sample, wasserstein


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


class StopAtCheck(Stop):
    """A request to stop that arrives just before a given check."""

    def __init__(self, number):
        super().__init__()
        self.number, self.checks = number, 0

    def check(self):
        self.checks += 1
        if self.checks == self.number:
            raise Stopped


@pytest.fixture
def assert_stops():
    """Assert that a part stops at a check, and does not go on after it."""

    def check(part, number):
        stop = StopAtCheck(number)
        with pytest.raises(Stopped):
            part.compute(stop)
        assert stop.checks == number

    return check


@pytest.fixture(scope="session")
def initial_model():
    """Logistic regression on Adult with two groups, women and men."""
    split = adult_by_sex()
    return LogisticRegression(max_iter=1000).fit(split.X_train, split.y_train)


@pytest.fixture(scope="session")
def wass1():
    """The sum of the distances of both sexes to the target, as in the paper."""

    def measure(model, X, sex):
        scores, target = model.predict_proba(X)[:, 1], Sample.from_values(model.target_)
        return sum(wasserstein(Sample.from_values(scores[sex == one]), target) for one in ("Female", "Male"))

    return measure
