import numpy as np
import pytest

from fairtransport.boosting._objective import LogLoss
from fairtransport.boosting._search import BestRound, HeldOutObjective
from fairtransport.criteria import demographic_parity, resolve_criterion
from fairtransport.groups import make_groups
from fairtransport.metrics import strong_pairwise_disparity

RNG = np.random.default_rng(0)
LABELS = RNG.integers(2, size=512)
GROUPS = make_groups(np.repeat(["a", "b"], 256))
MARGINS = RNG.normal(size=512) + 0.5 * (np.arange(512) < 256)
SCORES = 1 / (1 + np.exp(-MARGINS))


def make_objective(pairs, scale="score"):
    return HeldOutObjective(LogLoss(), LABELS, pairs, divisor=1.0, scale=scale)


def test_the_objective_is_loss_and_distances():
    objective = make_objective(demographic_parity(GROUPS))
    assert objective.mean_loss(MARGINS) == pytest.approx(-np.log(np.where(LABELS == 1, SCORES, 1 - SCORES)).mean())
    disparity = strong_pairwise_disparity(SCORES, sensitive_features=GROUPS)
    assert objective.disparity(MARGINS) == pytest.approx(disparity)
    standardized = make_objective(demographic_parity(GROUPS), scale="standardized")
    assert standardized.disparity(MARGINS) == pytest.approx(disparity * 0.25 / SCORES.std())
    at_half = make_objective(demographic_parity(GROUPS, target=np.full(10, 0.5)))
    assert at_half.disparity(MARGINS) == pytest.approx(sum(np.abs(SCORES[rows] - 0.5).mean() for rows in GROUPS.rows))


@pytest.mark.parametrize("stratum_weight", [None, "share"])
def test_the_disparity_of_equalized_odds_is_within_labels(stratum_weight):
    pairs = resolve_criterion("equalized_odds", GROUPS, labels=LABELS, stratum_weight=stratum_weight).comparisons()
    rows = [np.flatnonzero(label == LABELS) for label in (0, 1)]
    within = [strong_pairwise_disparity(SCORES[of], sensitive_features=GROUPS.select(of)) for of in rows]
    shares = (1 - LABELS.mean(), LABELS.mean()) if stratum_weight == "share" else (0.5, 0.5)
    assert make_objective(pairs).disparity(MARGINS) == pytest.approx(np.dot(shares, within), rel=0.01)  # 256 slices


def test_weights():
    weights = (np.arange(512) % 2).astype(float)
    objective = make_objective(demographic_parity(GROUPS, row_weights=weights))
    losses = np.logaddexp(0, MARGINS) - LABELS * MARGINS
    assert objective.mean_loss(MARGINS) == pytest.approx(losses[1::2].mean())


def test_rounds_before_the_full_weight_do_not_count():
    best = BestRound(first_round=3, patience=1)
    for value in (0.1, 0.2, 1.0):
        best.record(value)
        assert not best.has_passed
    best.record(2.0)
    assert (best.number, best.has_passed) == (3, True)


def test_without_patience_the_last_round_is_best():
    best = BestRound(first_round=3, patience=None)
    assert all(best.record(value) for value in (1.0, 2.0, 3.0, 4.0))
    assert (best.number, best.has_passed) == (4, False)
