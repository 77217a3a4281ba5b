import numpy as np
import pytest

from fairtransport.boosting._early_stopping import Stopping
from fairtransport.groups import make_groups
from fairtransport.metrics import strong_pairwise_disparity

LABELS = np.array([0, 1, 0, 1, 1, 0])
GROUPS = make_groups(["a", "a", "b", "b", "b", "a"])
MARGINS = np.array([-1.0, 0.5, 0.2, 1.5, -0.3, 0.0])


def stopping(**options):
    return Stopping(LABELS, GROUPS, None, **{"target": None, "parity": 2.0, "first": 1, "patience": 2, **options})


def test_it_measures_loss_plus_distances():
    scores = 1 / (1 + np.exp(-MARGINS))
    loss = -np.log(np.where(LABELS == 1, scores, 1 - scores)).mean()
    own = stopping()
    apart = strong_pairwise_disparity(scores, sensitive_features=GROUPS)
    assert own.measure(MARGINS) == pytest.approx(loss + 2.0 * apart)
    assert own.history()["disparity"][0] == pytest.approx(apart)
    assert own.history()["loss"][0] == pytest.approx(loss)
    at_half = stopping(target=np.full(10, 0.5))
    expected = sum(np.abs(scores[rows] - 0.5).mean() for rows in GROUPS.rows)
    assert at_half.measure(MARGINS) == pytest.approx(loss + 2.0 * expected)
    assert stopping(parity=0.0).measure(MARGINS) == pytest.approx(loss)


def test_weights_count():
    heavy = Stopping(LABELS, GROUPS, np.array([1.0, 1, 1, 1, 1, 0]), target=None, parity=0.0, first=1, patience=None)
    expected = np.logaddexp(0, MARGINS) - LABELS * MARGINS
    assert heavy.measure(MARGINS) == pytest.approx(expected[:5].mean())


def test_it_is_done_when_nothing_was_gained_for_long_enough():
    own = stopping(patience=2, parity=0.0)
    right = np.where(LABELS == 1, 1.0, -1.0)
    for scale in (1.0, 2.0, 1.5):
        own.measure(scale * right)
        assert own.done() is None
    own.measure(0.5 * right)
    assert own.done() == 2
    assert own.best == 2


def test_rounds_before_the_full_weight_do_not_count():
    own = stopping(first=3, patience=1, parity=0.0)
    right = np.where(LABELS == 1, 1.0, -1.0)
    for scale in (9.0, 8.0, 1.0):
        own.measure(scale * right)
        assert own.done() is None
    own.measure(0.5 * right)
    assert own.done() == 3


def test_without_patience_it_never_is():
    own = stopping(patience=None)
    for _ in range(20):
        own.measure(MARGINS)
    assert own.done() is None
