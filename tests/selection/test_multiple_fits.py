"""Parallel fits: the same models as in sequence, errors, warnings and Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from dataclasses import replace

import joblib
import numpy as np
import pytest
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairtransport as ft
from fairtransport import QuantileRepairClassifier, TransportClassifier
from fairtransport.linear import SgdSettings

SHORT = SgdSettings(n_updates=150, batch_size=10)


def world(n=600, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.choice(["f", "m"], size=n)
    X = np.column_stack((rng.normal(size=(n, 3)), group == "m"))
    X[:, 0] += group == "m"
    y = (X @ [1.0, 1.0, 0.5, 0.0] + rng.logistic(size=n) > 0.5).astype(int)
    return X, y, group


X, Y, G = world()


class Fake(BaseEstimator):
    """Does what ``deed`` does when fitted."""

    def __init__(self, deed=None, seed=0, target=None, verbose=False):
        self.deed = deed
        self.seed = seed
        self.target = target
        self.verbose = verbose

    def fit(self, X, y, *, sensitive_features, sample_weight=None):
        self.seen_ = (X, y, sensitive_features, sample_weight, self.verbose, get_config()["working_memory"])
        if self.deed is not None:
            self.deed(self)
        return self


def fit_many(models, **options):
    return ft.fit_many(models, X, Y, sensitive_features=G, **options)


# ------------------------------------------------------------------------------------------- what it does


@pytest.mark.parametrize("n_jobs", [None, 1, 3, -1])
def test_models_are_those_of_one_fit_after_the_other(n_jobs):
    models = [
        TransportClassifier(parity_weight=0.1),
        TransportClassifier(parity_weight=0.3),
        TransportClassifier(parity_weight=1.0, solver=replace(SHORT, random_state=0)),
        TransportClassifier(parity_weight=1.0, solver=replace(SHORT, random_state=1)),
        TransportClassifier(
            distance="discrete", solver=SgdSettings(n_updates=100, random_state=np.random.RandomState(3))
        ),
        QuantileRepairClassifier(LogisticRegression()),
    ]
    alone = [clone(model).fit(X, Y, sensitive_features=G) for model in models]
    together = fit_many(models, n_jobs=n_jobs)
    assert all(one is other for one, other in zip(together, models, strict=True))
    for one, other in zip(alone, together, strict=True):
        expected = one.predict_proba(X, sensitive_features=G)
        assert np.array_equal(expected, other.predict_proba(X, sensitive_features=G))
    assert not np.array_equal(together[0].coef_, together[1].coef_)


def test_runs_share_the_rows_and_get_the_weights():
    weights = np.ones(Y.size)
    for model in fit_many([Fake(seed=k) for k in range(3)], sample_weight=weights, n_jobs=2):
        seen = model.seen_
        assert (seen[0] is X, seen[1] is Y, seen[2] is G, seen[3] is weights) == (True, True, True, True)


def test_a_fitted_initial_model_is_shared_and_stays_as_it_is():
    start = LogisticRegression().fit(X, Y)
    coef = start.coef_.copy()
    models = fit_many([TransportClassifier(start, solver=replace(SHORT, random_state=k)) for k in range(2)], n_jobs=2)
    assert all(model.initial_estimator_ is start for model in models)
    assert np.array_equal(start.coef_, coef)


def test_a_pipeline_passes_groups_and_weights_to_its_last_step():
    model = make_pipeline(StandardScaler(), TransportClassifier(distance="discrete", parity_weight=0.1))
    (fitted,) = fit_many([model], sample_weight=np.ones(Y.size))
    assert fitted[-1].groups_.labels == ("f", "m")


@pytest.mark.parametrize(("n_jobs", "context", "at_once"), [(1, None, 1), (None, None, 1), (3, None, 3), (None, 3, 3)])
def test_as_many_at_once_as_asked(n_jobs, context, at_once):
    lock, running, most = threading.Lock(), [0], [0]
    # A run waits for company, so that three together are seen whatever the machine does.
    company = threading.Barrier(at_once)

    def deed(_):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        company.wait(timeout=30)
        with lock:
            running[0] -= 1

    with joblib.parallel_config("threading", n_jobs=context):
        fit_many([Fake(deed, seed=k) for k in range(6)], n_jobs=n_jobs)
    assert most[0] == at_once


def test_runs_see_the_callers_settings_of_scikit_learn():
    with config_context(working_memory=77):
        models = fit_many([Fake(seed=k) for k in range(2)], n_jobs=2)
    assert [model.seen_[-1] for model in models] == [77, 77]


def test_one_bar_for_all(capfd):
    models = fit_many([Fake(seed=k, verbose=k == 1) for k in range(4)], verbose=True)
    output = capfd.readouterr().err
    assert "fitting 4 models: 100% 4/4" in output
    assert [model.seen_[4] for model in models] == [False] * 4
    assert [model.verbose for model in models] == [False, True, False, False]


# ------------------------------------------------------------------------------------------- when something happens


def fail(model):
    raise ValueError("no luck")


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_an_error_names_the_fit_and_contains_no_group_value(n_jobs):
    models = [Fake(fail if k == 2 else None, seed=k, target="f" if k else np.array([0.25])) for k in range(4)]
    with pytest.raises(ValueError, match=r"ValueError in .*message is left out") as caught:
        fit_many(models, n_jobs=n_jobs)
    (note,) = caught.value.__notes__
    assert "fit 3 of 4 (estimators[2]: " in note
    assert "seed=2" in note
    assert "target=<str>" in note
    assert "verbose" not in note  # the same in all


def test_fits_of_different_classes_are_named_by_class():
    models = [Fake(), LogisticRegression()]
    with pytest.raises(TypeError, match="takes no sensitive_features") as caught:
        fit_many(models)
    assert "fit 2 of 2 (estimators[1]: LogisticRegression" in caught.value.__notes__[0]


def linger(model):
    """Run until stopped."""
    try:
        model.started_ = True
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            time.sleep(0.005)
    except KeyboardInterrupt:
        model.stopped_ = True
        raise


def test_an_error_stops_the_other_runs():
    slow, last = Fake(linger), Fake(seed=2)

    def fail_later(_):
        while not hasattr(slow, "started_"):
            time.sleep(0.005)
        raise ValueError("no luck")

    with pytest.raises(ValueError, match=r"ValueError in .*message is left out"):
        fit_many([slow, Fake(fail_later, seed=1), last], n_jobs=2)
    assert slow.stopped_
    assert not hasattr(last, "seen_")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_stops_all(n_jobs):
    models = [Fake(linger, seed=k) for k in range(3)]

    def press():
        while sum(hasattr(model, "started_") for model in models) < n_jobs:
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGINT)

    finger = threading.Thread(target=press)
    finger.start()
    with pytest.raises(KeyboardInterrupt):
        fit_many(models, n_jobs=n_jobs)
    finger.join()
    assert sum(hasattr(model, "stopped_") for model in models) == n_jobs
    assert sum(hasattr(model, "seen_") for model in models) == n_jobs


def test_ctrl_c_reaches_the_compiled_loop():
    models = [TransportClassifier(solver=SgdSettings(n_updates=10**9, batch_size=10, random_state=k)) for k in range(2)]
    fit_many([TransportClassifier(solver=replace(SHORT, random_state=0))])  # compiled before the clock starts
    over = threading.Event()

    def press():
        while not over.wait(0.5):  # again and again, as people do: Python drops a signal that meets a destructor
            os.kill(os.getpid(), signal.SIGINT)

    def interrupted():
        try:
            fit_many(models, n_jobs=2)
        finally:
            over.set()

    finger = threading.Thread(target=press)
    finger.start()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    finger.join()


def test_warnings_come_once_with_their_number():
    def warn(model):
        warnings.warn(f"run {model.seed} did not settle", ConvergenceWarning, stacklevel=1)

    def warn_once(_):
        warnings.warn("only one", UserWarning, stacklevel=1)

    before = list(warnings.filters)
    with pytest.warns() as caught:
        fit_many([Fake(warn, seed=k) for k in range(5)] + [Fake(warn_once, seed=9)], n_jobs=3)
    categories = {str(warning.message): warning.category for warning in caught}
    assert len(caught) == 2
    assert categories["only one"] is UserWarning
    (many,) = (text for text in categories if "(One of 5 such warnings.)" in text)
    assert categories[many] is ConvergenceWarning
    assert warnings.filters == before


@pytest.mark.parametrize(
    ("models", "error", "match"),
    [
        ([], ValueError, "estimators is empty"),
        ([Fake()] * 2, ValueError, "occurs twice"),
        ([Fake(), "COT"], TypeError, r"estimators\[1\] is a str"),
    ],
)
def test_bad_lists(models, error, match):
    with pytest.raises(error, match=match):
        fit_many(models)


def test_a_shared_generator_would_make_runs_depend_on_their_order():
    shared = np.random.RandomState(0)
    with pytest.raises(ValueError, match="share one random number generator"):
        fit_many([TransportClassifier(solver=replace(SHORT, random_state=shared)) for _ in range(2)])


@pytest.mark.parametrize(("n_jobs", "error"), [(0, ValueError), (1.5, TypeError), (True, TypeError)])
def test_bad_n_jobs(n_jobs, error):
    with pytest.raises(error, match="n_jobs"):
        fit_many([Fake()], n_jobs=n_jobs)
