"""Weights for each group are held near the shared ones where rows are few."""

import numpy as np
import pytest
from scipy import sparse

import fairtransport as ft
from fairtransport.estimators.holding import hold_own_weights
from fairtransport.metrics import strong_pairwise_disparity

RNG = np.random.default_rng(8)
X = RNG.normal(size=(300, 4)) @ RNG.normal(size=(4, 4))
THETA = np.array([0.8, -0.3, 0.5, 0.1, -0.4])
SCORES = 1 / (1 + np.exp(-(X @ THETA[:-1] + THETA[-1])))


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_matrix])
def test_shift_and_stretch_are_free_and_other_changes_are_not(store):
    hold = hold_own_weights(store(X), SCORES, THETA, RNG)
    np.testing.assert_allclose(hold, hold.T)
    size = np.abs(hold).max()
    for free in (np.append(np.zeros(4), 1.0), THETA, 2 * THETA - np.append(np.zeros(4), 3.0)):
        np.testing.assert_allclose(hold @ free / size, 0.0, atol=1e-12)
    assert np.sort(np.linalg.eigvalsh(hold))[2] > 1e-3 * size  # the three directions that are left


def test_a_change_of_logits_that_nothing_frees_counts_as_many_rows_say():
    # A change d whose logits are, by the weights s (1 - s), orthogonal to ones and to the logits costs
    # 100 rows for each column: 100 * 4 * mean of s (1 - s) (x'd)^2 / n.
    wide, curvature = np.column_stack((X, np.ones(300))), SCORES * (1 - SCORES)
    metric = (wide * curvature[:, None]).T @ wide / 300
    free = np.column_stack((np.append(np.zeros(4), 1.0), THETA))
    change = RNG.normal(size=5)
    change -= free @ np.linalg.solve(free.T @ metric @ free, free.T @ metric @ change)
    hold = hold_own_weights(X, SCORES, THETA, RNG)
    np.testing.assert_allclose(change @ hold @ change, 400 / 300 * change @ metric @ change, rtol=1e-9)


def test_small_groups_do_not_learn_their_rows_by_heart():
    n, d = 400, 60
    group = np.arange(n) % 4
    make = np.random.default_rng(0)

    def draw(rows):
        features = make.normal(size=(rows, d))
        features[:, 0] += 0.8 * (np.arange(rows) % 4 > 1)
        return features, (features[:, 0] + features[:, 1] + make.logistic(size=rows) > 0.4).astype(int)

    train, labels = draw(n)
    fresh, _ = draw(8000)
    model = ft.DiscreteTransportClassifier(group_specific=True, n_updates=3000, random_state=0)
    model.fit(train, labels, sensitive_features=group)
    others = np.arange(8000) % 4
    before = strong_pairwise_disparity(model.initial_estimator_.predict_proba(fresh)[:, 1], sensitive_features=others)
    after = strong_pairwise_disparity(
        model.predict_proba(fresh, sensitive_features=others)[:, 1], sensitive_features=others
    )
    assert after < 0.6 * before
    spread = model.coef_ - model.coef_ @ (model.initial_estimator_.coef_.T @ model.initial_estimator_.coef_) / np.sum(
        model.initial_estimator_.coef_**2
    )
    assert np.linalg.norm(spread, axis=1).max() < 0.5 * np.linalg.norm(model.initial_estimator_.coef_)
