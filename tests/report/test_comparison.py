from __future__ import annotations

import numpy as np
import pytest

from fairtransport import make_groups
from fairtransport.report import METRICS, MethodOutcome


def outcome(**changes):
    entries = {"name": "LR", "title": "", "metrics": dict.fromkeys(METRICS, 0.1), "seconds": 1.0, "scores": [0.1, 0.2]}
    return MethodOutcome(**{**entries, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metrics": {"error_rate": 0.1}}, "lacks wasserstein_disparity"),
        ({"metrics": dict.fromkeys(METRICS, np.nan)}, "no finite number for error_rate"),
        ({"seconds": np.inf}, "no finite number for seconds"),
        ({"scores": [0.1, 1.2]}, r"outside \[0, 1\]"),
    ],
)
def test_outcome_rejects(changes, message):
    with pytest.raises(ValueError, match=message):
        outcome(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"outcomes": ()}, "outcomes is empty"),
        ({"outcomes": (outcome(),)}, "has 2 rows"),
        ({"y_true": np.zeros(3)}, "y_true has 3 rows"),
        ({"floor": {"SPDD": 0.1}}, "floor has SPDD; allowed are error_rate"),
        ({"floor": {"strong_pairwise_disparity": np.nan}}, "no finite number"),
        ({"groups": make_groups(["a"] * 240)}, "at least 2"),
        ({"target": [0.5, np.nan]}, "target has 1 NaN"),
    ],
)
def test_comparison_rejects(build, changes, message):
    with pytest.raises(ValueError, match=message):
        build(**changes)
