"""The adjuster on Adult: a shift raises an alarm and is corrected, and a constant stream raises few alarms."""

from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport.linear import SgdSettings
from fairtransport.paper.splits import adult_by_sex, rows_at_rates
from fairtransport.transport.line import Sample, wasserstein

DOT = partial(ft.TransportClassifier, distance="discrete")


pytestmark = pytest.mark.paper

BATCH, QUIET, AFTER, KEPT = 100, 100, 60, 10_000


def fitted(initial_model, kind, seed, rng, **options):
    split = adult_by_sex()
    sex = split.sensitive_train["sex"]
    rows = rows_at_rates(split.y_train, sex, {"Female": 0.1}, rng)
    if "solver" in options:
        options = {**options, "solver": SgdSettings(random_state=seed)}
    model = kind(initial_model, target="Male", **options)
    return model.fit(split.X_train[rows], split.y_train[rows], sensitive_features={"sex": sex[rows]}), rows


@pytest.fixture(scope="module")
def initial_model():
    """Logistic regression on Adult with two groups, women and men."""
    split = adult_by_sex()
    return LogisticRegression(max_iter=1000).fit(split.X_train, split.y_train)


def wass1(model, X, sex):
    """The sum of the distances of both sexes to the target, as in the paper."""
    scores, target = model.predict_proba(X)[:, 1], Sample.from_values(model.target_)
    return sum(wasserstein(Sample.from_values(scores[sex == one]), target) for one in ("Female", "Male"))


def adjust(adjuster, rows):
    split = adult_by_sex()
    return adjuster.adjust(split.X_train[rows], sensitive_features={"sex": split.sensitive_train["sex"][rows]})


@pytest.mark.filterwarnings("ignore:Parity cost most of the model:fairtransport.FairnessWarning")  # without the loss
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (ft.TransportClassifier, {}),
        (ft.TransportClassifier, {"solver": "sgd", "parity_weight": np.inf}),
        (DOT, {"parity_weight": 10.0}),
    ],
    ids=["COT", "COT, the paper's", "DOT"],
)
def test_a_shift_raises_an_alarm_and_is_corrected_within_60_batches(initial_model, kind, options, seed):
    split, rng = adult_by_sex(), np.random.default_rng(seed)
    sex, sex_kept = split.sensitive_train["sex"], split.sensitive_test["sex"]
    model, before = fitted(initial_model, kind, seed, rng, **options)
    adjuster = ft.stream.ContinualAdjuster(model)
    quiet = rng.permutation(before)[: BATCH * QUIET].reshape(QUIET, BATCH)
    assert not any(adjust(adjuster, rows).alarm for rows in quiet)
    pool = rows_at_rates(split.y_train, sex, {"Female": 0.4}, rng)
    kept = rng.choice(rows_at_rates(split.y_test, sex_kept, {"Female": 0.4}, rng), KEPT, replace=False)
    at_once = wass1(adjuster.model, split.X_test[kept], sex_kept[kept])
    accuracy = adjuster.model.score(split.X_test[kept], split.y_test[kept])
    reports = [adjust(adjuster, rows) for rows in rng.permutation(pool)[: BATCH * AFTER].reshape(AFTER, BATCH)]
    assert 0.10 < at_once < 0.20
    assert wass1(adjuster.model, split.X_test[kept], sex_kept[kept]) <= 0.04
    assert adjuster.model.score(split.X_test[kept], split.y_test[kept]) > accuracy - 0.015
    assert [report.alarm for report in reports].index(True) < 25  # about 11 women a batch
    assert reports[-1].disparity_after < 0.35 * reports[-1].disparity_before
    assert reports[-1].moved < 0.5


def test_constant_rates_raise_no_more_alarms_than_stated(initial_model):
    """10,000 batches at the stated rate of .001: at most ten alarms are expected."""
    rng = np.random.default_rng(0)
    model, rows = fitted(initial_model, DOT, 0, rng)
    adjuster = ft.stream.ContinualAdjuster(model, alarm_rate=0.001, checkpoint_every=None)
    for _ in range(10_000):
        report = adjust(adjuster, rng.choice(rows, BATCH))
    assert adjuster.alarms <= 10
    assert report.moved < 0.25  # a constant stream does not change the model
    assert report.agreement > 0.95
