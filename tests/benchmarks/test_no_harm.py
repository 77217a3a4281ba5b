"""The benchmark of default calls counts what it says."""

import numpy as np
import pytest

from benchmarks import no_harm
from fairtransport.metrics import rank_disparity


@pytest.mark.parametrize("n_groups", [2, 3, 7])
@pytest.mark.parametrize("decimals", [1, 9])
def test_disparities_of_draws_are_those_of_the_rows(n_groups, decimals):
    rng = np.random.default_rng(n_groups)
    groups, shuffled = (rng.integers(n_groups, size=500) for _ in range(2))
    scores = np.round(rng.random(500) + 0.2 * groups, decimals)
    rows = rng.integers(500, size=500)
    counts = np.bincount(rows, minlength=500)
    found = no_harm.rank_disparities(scores, groups, [(counts, groups), (np.ones(500), shuffled)])
    drawn = rank_disparity(scores[rows], sensitive_features=groups[rows])
    np.testing.assert_allclose(found, [drawn, rank_disparity(scores, sensitive_features=shuffled)], rtol=1e-12)


def test_bars():
    good = {
        "losses": [0.2, 0.21], "loss error": 0.005, "disparities": [0.1, 0.03], "disparity error": 0.01,
        "floor": 0.02, "warned": 1, "limits": [0.05],
    }  # fmt: skip
    assert no_harm.totals("", [good])[1] == (True, True, True)
    assert no_harm.totals("", [good | {"disparities": [0.1, 0.12]}])[1] == (False, True, False)
    assert no_harm.totals("", [good | {"warned": 0, "limits": [], "disparities": [0.1, 0.031]}])[1] == (
        True, False, True,
    )  # fmt: skip
