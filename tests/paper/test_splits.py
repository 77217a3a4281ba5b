"""The problems have the sizes that were counted in the raw files, and nothing of the test rows leaks."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse

from fairtransport.metrics import wasserstein_disparity
from fairtransport.paper._methods import fit_method, measure, prepare
from fairtransport.paper.splits import adult_split, communities_splits, german_splits, rows_at_rates


@pytest.fixture(scope="module")
def adult():
    return adult_split()


def lr_figures(splits):
    """Err-.5, Wass1 to the test rows' own barycenter, SDD and SPDD of logistic regression, mean over splits."""
    figures = []
    for split in splits:
        problem = prepare(split)
        metrics = measure(fit_method("LR", problem), problem)
        metrics["wasserstein_disparity"] = wasserstein_disparity(
            problem.test_scores, sensitive_features=split.groups_test
        )
        figures.append(list(metrics.values()))
    return np.mean(figures, axis=0)


def test_adult_has_the_rows_of_black_and_white_people(adult):
    assert sparse.isspmatrix_csr(adult.X_train)
    assert adult.X_train.shape == (30_940, 104)
    assert adult.X_test.shape == (15_507, 104)
    assert adult.groups_train.names == ("Black, Female", "Black, Male", "White, Female", "White, Male")
    # Counted in the raw files.
    assert adult.groups_train.counts.tolist() == [1_555, 1_569, 8_642, 19_174]
    assert adult.groups_test.counts.tolist() == [753, 808, 4_385, 9_561]
    assert set(np.unique(adult.y_train)) == {0, 1}


def test_adult_is_standardised_and_one_hot(adult):
    numbers, words = adult.X_train[:, :6].toarray(), adult.X_train[:, 6:]
    np.testing.assert_allclose(numbers.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(numbers.std(axis=0), 1)
    assert set(np.unique(words.data)) == {1.0}
    # Every row has one value in each of the eight categorical columns; missing is one of them.
    assert set(np.asarray(words.sum(axis=1)).ravel()) == {8.0}


def test_lr_on_adult(adult):
    problem = prepare(adult)
    metrics = measure(fit_method("LR", problem), problem)
    # Measured once with an independent prototype; the paper has .142, .313, .426 and .806.
    assert metrics["error_rate"] == pytest.approx(0.1475, abs=0.003)
    assert metrics["wasserstein_disparity"] == pytest.approx(0.314, abs=0.005)
    assert metrics["strong_demographic_disparity"] == pytest.approx(0.428, abs=0.006)
    assert metrics["strong_pairwise_disparity"] == pytest.approx(0.807, abs=0.012)


def test_lr_on_binned_adult_beats_the_paper():
    split = adult_split("binned")
    assert split.X_train.shape == (30_940, 214)
    assert split.name == "Adult (binned)"
    problem = prepare(split)
    assert measure(fit_method("LR", problem), problem)["error_rate"] < 0.142  # the paper's


# Measured once with an independent prototype; the paper has .248, .103, .102 and .102 on German Credit, and .116,
# 1.435, 1.402 and 7.649 on Communities and Crime.
@pytest.mark.parametrize(
    ("splits", "figures", "tolerance"),
    [
        (partial(german_splits, 20), [0.249, 0.102, 0.102, 0.102], 0.003),
        (partial(communities_splits, 10), [0.144, 1.46, 1.51, 7.53], 0.01),
        (partial(communities_splits, 10, crossed=False), [0.144, 1.02, 1.02, 5.60], 0.01),
    ],
    ids=["german", "crossed", "each"],
)
def test_lr(splits, figures, tolerance):
    np.testing.assert_allclose(lr_figures(splits()), figures, atol=tolerance)


@pytest.mark.parametrize(
    ("splits", "sizes", "n_groups"),
    [
        (german_splits, ((750, 63), (250, 63)), 2),
        (communities_splits, ((1_495, 103), (499, 103)), 8),
        (partial(communities_splits, crossed=False), ((1_495, 103), (499, 103)), 8),
    ],
    ids=["german", "crossed", "each"],
)
def test_random_splits(splits, sizes, n_groups):
    first, second = splits(2, 0)
    assert (first.X_train.shape, first.X_test.shape) == sizes
    assert len(first.groups_train) == len(first.groups_test) == n_groups
    assert first.groups_train.labels == first.groups_test.labels
    assert first.groups_test.counts.min() > 10
    assert first.y_train.mean() == pytest.approx(first.y_test.mean(), abs=0.005)
    assert not np.array_equal(first.y_test, second.y_test)
    (again,) = splits(1, 1)  # each split has a seed of its own, so the second of 0 is the first of 1
    np.testing.assert_array_equal(again.X_test, second.X_test)


def test_rows_have_the_rates_asked_for(small_split):
    labels, sex = small_split.y_train, small_split.sensitive_train["sex"]
    rows = rows_at_rates(labels, sex, {"Female": 0.4}, np.random.default_rng(0))
    assert len(set(rows.tolist())) == len(rows)
    female = sex[rows] == "Female"
    assert labels[rows][female].mean() == pytest.approx(0.4, abs=0.01)
    assert (~female).sum() == (sex == "Male").sum()
