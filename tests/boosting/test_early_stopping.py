import numpy as np
import pytest

from fairtransport.boosting._early_stopping import EarlyStopping
from fairtransport.boosting._losses import LogLoss
from fairtransport.criteria import demographic_parity, resolve_criterion
from fairtransport.groups import make_groups
from fairtransport.metrics import strong_pairwise_disparity

LABELS = np.array([0, 1, 0, 1, 1, 0])
GROUPS = make_groups(["a", "a", "b", "b", "b", "a"])
MARGINS = np.array([-1.0, 0.5, 0.2, 1.5, -0.3, 0.0])


def make_stopping(target=None, **options):
    return EarlyStopping(
        LogLoss(),
        LABELS,
        demographic_parity(GROUPS, target=target),
        **{"scale": 1.0, "penalty_weight": 2.0, "first_round": 1, "n_iter_no_change": 2, **options},
    )


def test_the_objective_is_loss_plus_distances():
    scores = 1 / (1 + np.exp(-MARGINS))
    loss = -np.log(np.where(LABELS == 1, scores, 1 - scores)).mean()
    stopping = make_stopping()
    disparity = strong_pairwise_disparity(scores, sensitive_features=GROUPS)
    assert stopping.record(MARGINS) == pytest.approx(loss + 2.0 * disparity)
    assert stopping.history()["disparity"][0] == pytest.approx(disparity)
    assert stopping.history()["loss"][0] == pytest.approx(loss)
    at_half = make_stopping(target=np.full(10, 0.5))
    expected = sum(np.abs(scores[rows] - 0.5).mean() for rows in GROUPS.rows)
    assert at_half.record(MARGINS) == pytest.approx(loss + 2.0 * expected)
    assert make_stopping(penalty_weight=0.0).record(MARGINS) == pytest.approx(loss)


@pytest.mark.parametrize("stratum_weight", [None, "share"])
def test_the_disparity_of_equalized_odds_is_within_labels(stratum_weight):
    scores = 1 / (1 + np.exp(-MARGINS))
    pairs = resolve_criterion("equalized_odds", GROUPS, labels=LABELS, stratum_weight=stratum_weight).comparisons()
    stopping = EarlyStopping(LogLoss(), LABELS, pairs, scale=1.0, penalty_weight=2.0, first_round=1, n_iter_no_change=2)
    stopping.record(MARGINS)
    rows = [np.flatnonzero(label == LABELS) for label in (0, 1)]
    within = [strong_pairwise_disparity(scores[of], sensitive_features=GROUPS.select(of)) for of in rows]
    shares = (1 - LABELS.mean(), LABELS.mean()) if stratum_weight == "share" else (0.5, 0.5)
    assert stopping.history()["disparity"][0] == pytest.approx(np.dot(shares, within))


def test_weights():
    weighted = EarlyStopping(
        LogLoss(),
        LABELS,
        demographic_parity(GROUPS, row_weights=np.array([1.0, 1, 1, 1, 1, 0])),
        scale=1.0,
        penalty_weight=0.0,
        first_round=1,
        n_iter_no_change=None,
    )
    expected = np.logaddexp(0, MARGINS) - LABELS * MARGINS
    assert weighted.record(MARGINS) == pytest.approx(expected[:5].mean())


def test_stops_after_rounds_without_improvement():
    stopping = make_stopping(n_iter_no_change=2, penalty_weight=0.0)
    direction = np.where(LABELS == 1, 1.0, -1.0)
    for scale in (1.0, 2.0, 1.5):
        stopping.record(scale * direction)
        assert stopping.stopped_at() is None
    stopping.record(0.5 * direction)
    assert stopping.stopped_at() == 2
    assert stopping.best == 2


def test_rounds_before_the_full_weight_do_not_count():
    stopping = make_stopping(first_round=3, n_iter_no_change=1, penalty_weight=0.0)
    direction = np.where(LABELS == 1, 1.0, -1.0)
    for scale in (9.0, 8.0, 1.0):
        stopping.record(scale * direction)
        assert stopping.stopped_at() is None
    stopping.record(0.5 * direction)
    assert stopping.stopped_at() == 3


def test_without_patience_it_never_stops():
    stopping = make_stopping(n_iter_no_change=None)
    for _ in range(20):
        stopping.record(MARGINS)
    assert stopping.stopped_at() is None
