"""Seeds 0 to 99 all pass what one seed passes: the checks of a fair estimator, on other people each time.

Of the estimators that draw rows by chance, those checks whose verdict depends on chance; tests/test_checks.py has all.
"""

import pytest
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport.checks import FAIR_CHECKS

pytestmark = pytest.mark.trust

# Mean change of scores under other names of groups, or weights for copies: what one seed is held to. Of ten seeds of
# COT two may differ by more, none by more than .1: once its groups differ by no more than chance, the objective of 800
# people is flat, and other draws of rows end elsewhere in the valley (96 of 100 seeds are within .02, the worst .083).
TOLERANCE, WORST, ALLOWED = 0.02, 0.1, {"COT": 2, "DOT": 0, "repair": 0}
BY_CHANCE = ("names of groups", "weights", "parity")
ESTIMATORS = {
    "COT": (ft.ContinuousTransportClassifier(), BY_CHANCE),
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
                FAIR_CHECKS[check](estimator, TOLERANCE, seed)
            except AssertionError as error:
                FAIR_CHECKS[check](estimator, WORST, seed)
                failed.append((seed, check, str(error)))
    assert len(failed) <= ALLOWED[name], failed
