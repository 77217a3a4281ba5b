"""Seeds 0 to 99 all pass what one seed passes: the checks of a fair estimator, on other people each time.

Of the estimators that draw rows by chance, those checks whose verdict depends on chance; tests/test_checks.py has all.
"""

import pytest
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport.checks import FAIR_CHECKS

pytestmark = pytest.mark.trust

# Mean change of scores under other names of groups, or weights for copies, that chance may make. DOT and the repair are
# held to what one seed is held to. COT scatters more: of a hundred seeds some differ by up to .05, with 1,500 updates
# as with 5,000. That is a figure to bring down, not one to be proud of.
TOLERANCE = {"COT": 0.08, "DOT": 0.02, "repair": 0.02}
BY_CHANCE = ("names of groups", "weights", "parity")
ESTIMATORS = {
    "COT": (ft.ContinuousTransportClassifier(n_updates=1500), BY_CHANCE),
    "DOT": (ft.DiscreteTransportClassifier(n_updates=1500), BY_CHANCE),
    "repair": (ft.QuantileRepairClassifier(LogisticRegression()), tuple(FAIR_CHECKS)),
}


@pytest.mark.parametrize("first", range(0, 100, 10))
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_check_passes(name, first):
    failed = []
    estimator, checks = ESTIMATORS[name]
    for seed in range(first, first + 10):
        for check in checks:
            try:
                FAIR_CHECKS[check](estimator, TOLERANCE[name], seed)
            except AssertionError as error:
                failed.append((seed, check, str(error)))
    assert failed == []
