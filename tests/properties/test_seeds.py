"""Seeds 0 to 99 all pass what one seed passes: the checks of a fair estimator, on other people each time.

Of the transport classifiers, those checks whose verdict depends on the people; tests/test_checks.py has all.
"""

import pytest
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport.checks import FAIR_CHECKS

pytestmark = pytest.mark.trust

# Mean change of scores under other names of groups, or weights for copies. The default solver draws nothing.
TOLERANCE = {"COT": 1e-6, "DOT": 1e-6, "repair": 0.02}
OF_PEOPLE = ("names of groups", "weights", "parity")
ESTIMATORS = {
    "COT": (ft.TransportClassifier(group_specific=True), OF_PEOPLE),
    "DOT": (ft.TransportClassifier(distance="discrete", parity_weight=1.0), OF_PEOPLE),
    "repair": (ft.QuantileRepairClassifier(LogisticRegression()), tuple(FAIR_CHECKS)),
}


@pytest.mark.filterwarnings("ignore:Parity cost most")
@pytest.mark.parametrize("first", range(0, 100, 10))
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_check_passes(name, first):
    estimator, checks = ESTIMATORS[name]
    for seed in range(first, first + 10):
        for check in checks:
            FAIR_CHECKS[check](estimator, TOLERANCE[name], seed)
