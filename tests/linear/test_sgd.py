"""`solver="sgd"`, the paper's algorithm: mini-batches, alternating steps of duals and parameters."""

import os
import signal
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from fairtransport import ContinuousDistance, TransportClassifier
from fairtransport.linear import SgdSettings
from fairtransport.metrics import error_rate, strong_pairwise_disparity, wasserstein_disparity
from fairtransport.transport import wasserstein

from .tables import DOT, aware_table, both, owned

# Without the loss in the objective, theta wanders along the set of fair models; what it loses there is said.
pytestmark = pytest.mark.filterwarnings("ignore:Parity cost most", "ignore:Parity was not reached")

SGD = SgdSettings(random_state=0)
SHORT = replace(SGD, n_updates=300, batch_size=20)
X, Y, G = aware_table(1500)


def disparity(model, features=X, groups=G):
    scores = model.predict_proba(features, sensitive_features=groups)[:, 1]
    return strong_pairwise_disparity(scores, sensitive_features=groups)


@both
@pytest.mark.parametrize("parity_weight", [3.0, np.inf, "auto"])
@owned
def test_parity_improves_on_new_rows(cls, parity_weight, group_specific):
    step = None if parity_weight == 3.0 else 0.05
    solver = replace(SGD, parameter_step=step, n_updates=3000)
    model = cls(parity_weight=parity_weight, group_specific=group_specific, solver=solver)
    model.fit(X, Y, sensitive_features=G)
    new, of_new_y, of_new = aware_table(3000, seed=1)
    plain = LogisticRegression().fit(X, Y).predict_proba(new)[:, 1]
    before = strong_pairwise_disparity(plain, sensitive_features=of_new)
    assert disparity(model, new, of_new) < before / 3
    scores = model.predict_proba(new, sensitive_features=of_new)[:, 1]
    assert error_rate(of_new_y, scores) < error_rate(of_new_y, plain) + (0.05 if parity_weight == 3.0 else 0.1)
    assert model.parity_weight_ == (3.0 if parity_weight == 3.0 else np.inf)


def test_defaults_are_the_papers():
    model = TransportClassifier(solver=replace(SGD, n_updates=10)).fit(X, Y, sensitive_features=G)
    assert model.parity_weight_ == np.inf  # the loss is left out
    assert model.target_.shape == (4096,)
    assert all(column.size == 0 for column in model.path_.values())
    with pytest.raises(ValueError, match="make_trainer is for solver='sgd'"):
        TransportClassifier().make_trainer(X, Y, sensitive_features=G)


@both
def test_weights_stand_for_copies(cls):
    weights = np.random.default_rng(0).integers(1, 4, len(Y)).astype(float)
    repeated = np.repeat(np.arange(len(Y)), weights.astype(int))
    weighted = cls(solver=SHORT).fit(X, Y, sensitive_features=G, sample_weight=weights)
    copied = cls(solver=SHORT).fit(X[repeated], Y[repeated], sensitive_features=G[repeated])
    np.testing.assert_allclose(weighted.target_, copied.target_, atol=2e-3)
    assert np.abs(weighted.predict_proba(X) - copied.predict_proba(X)).mean() < 0.02


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"batch_size": 2.5}, "batch_size"),
        ({"n_updates": 0}, "n_updates"),
        ({"dual_step": -1.0}, "dual_step"),
        ({"parameter_step": 0.0}, "parameter_step"),
        ({"pairs": "few"}, "pairs"),
        ({"average": "no"}, "average must be True or False"),
        ({"random_state": "x"}, "cannot be used to seed"),
    ],
)
def test_bad_parameters(change, words):
    with pytest.raises((TypeError, ValueError), match=words):
        SgdSettings(**change)


@pytest.mark.parametrize("change", [{"dual_step": 0.1}, {"pairs": "all"}])
def test_discrete_transport_has_no_dual_settings(change):
    with pytest.raises(ValueError, match="leave dual_step at None and pairs at 'matched'"):
        DOT(solver=SgdSettings(**change)).fit(X, Y, sensitive_features=G)


@both
def test_seeds_give_identical_results(cls):
    a, b, c = (cls(solver=replace(SHORT, random_state=seed)).fit(X, Y, sensitive_features=G) for seed in (3, 3, 4))
    np.testing.assert_array_equal(a.coef_, b.coef_)
    np.testing.assert_array_equal(a.history_["disparity"], b.history_["disparity"])
    assert not np.array_equal(a.coef_, c.coef_)


def test_average_of_iterates_equals_hand_computation():
    settings = replace(SGD, batch_size=5, parameter_step=0.1)
    fit = lambda k, average: TransportClassifier(  # noqa: E731
        solver=replace(settings, n_updates=k, average=average)
    ).fit(X, Y, sensitive_features=G)
    last = [fit(k, average=False).coef_ for k in range(1, 7)]
    np.testing.assert_allclose(fit(6, average=True).coef_, np.mean(last[3:], axis=0), atol=1e-12)


def test_history_is_the_disparity_to_the_target():
    model = TransportClassifier(target="barycenter", solver=replace(SHORT, average=False)).fit(
        X[:800], Y[:800], sensitive_features=G[:800]
    )
    scores = model.predict_proba(X[:800])[:, 1]
    expected = wasserstein_disparity(scores, sensitive_features=G[:800], target=model.target_)
    assert model.history_["disparity"][-1] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("strength", [1e-6, 1e-3, 1e3])
@pytest.mark.parametrize("regularizer", ["l2", "entropy"])
@pytest.mark.parametrize("opposite", [True, False])
@pytest.mark.filterwarnings("ignore:Training ended worse than it began")  # as some of these do, and say so
def test_every_strength_stays_finite(strength, regularizer, opposite):
    model = TransportClassifier(
        distance=ContinuousDistance(strength=strength, regularizer=regularizer, opposite_duals=opposite), solver=SHORT
    ).fit(X, Y, sensitive_features=G)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.duals_.group_weights).all()


@both
def test_ctrl_c_keeps_the_best_model_so_far(cls):
    cls(solver=SHORT).fit(X, Y, sensitive_features=G)  # compiled before the clock starts
    timer = threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.warns(ConvergenceWarning, match="interrupted after"):
        model = cls(solver=replace(SGD, n_updates=100_000_000, batch_size=20)).fit(X, Y, sensitive_features=G)
    timer.join()
    assert model.outcome_.startswith("interrupted after")
    assert model.n_iter_ < 100_000_000
    assert np.isfinite(model.predict_proba(X)).all()


def test_divergence_warns_and_keeps_the_best_model():
    with pytest.warns(ConvergenceWarning, match="diverged"):
        model = TransportClassifier(solver=replace(SGD, dual_step=1e300, parameter_step=1e300, n_updates=500)).fit(
            X, Y, sensitive_features=G
        )
    assert model.outcome_.startswith("diverged")
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_run_that_ends_worse_warns_and_keeps_the_best_model():
    model = TransportClassifier(solver=replace(SGD, parameter_step=100.0, n_updates=500))
    with pytest.warns(ConvergenceWarning, match="ended worse than it began"):
        model.fit(X, Y, sensitive_features=G)
    assert model.outcome_.startswith("ended worse")
    scores, target = model.predict_proba(X)[:, 1], model.target_
    distances = sum(wasserstein(scores[group == G], target) for group in np.unique(G))
    assert distances == pytest.approx(model.history_["disparity"].min())


def test_verbose_shows_progress_with_the_disparity(capsys):
    TransportClassifier(verbose=True, solver=SHORT).fit(X, Y, sensitive_features=G)
    err = capsys.readouterr().err
    assert "COT training: 100%" in err
    assert "disparity 0." in err
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TransportClassifier(solver=SHORT).fit(X, Y, sensitive_features=G)
    assert capsys.readouterr().err == ""


def test_trainer_steps_are_those_of_fit():
    settings = replace(SHORT, average=False)
    model = TransportClassifier(solver=settings).fit(X, Y, sensitive_features=G)
    trainer = TransportClassifier(solver=settings).make_trainer(X, Y, sensitive_features=G)
    trainer.advance(100, average_from=300)
    trainer.advance(200, average_from=300)
    np.testing.assert_array_equal(trainer.theta[:, :-1], model.coef_)
    np.testing.assert_array_equal(trainer.duals, model.duals_.group_weights)


def test_a_tiny_group_with_its_own_column_is_stable():
    rng = np.random.default_rng(0)
    group = rng.choice(3, p=[0.6, 0.395, 0.005], size=4000)
    features = np.column_stack((rng.normal(size=(4000, 2)) + 0.8 * group[:, None], np.eye(3)[group]))
    labels = (features[:, 0] + 0.5 * group + rng.logistic(size=4000) > 0.8).astype(int)
    model = TransportClassifier(parity_weight=np.inf, solver=replace(SGD, n_updates=5000))
    history = model.fit(features, labels, sensitive_features=group).history_["disparity"]
    assert history[-1] < history[0] / 3
    late = history[len(history) // 4 : len(history) // 2]  # single iterates, before the averaging begins
    assert late.mean() < 0.6 * history[0]


@both
def test_csr_equals_dense(cls):
    thin = X * (np.abs(X) > 0.7)
    dense = cls(solver=SHORT).fit(thin, Y, sensitive_features=G)
    csr = cls(solver=SHORT).fit(sparse.csr_matrix(thin), Y, sensitive_features=G)
    np.testing.assert_allclose(csr.coef_, dense.coef_, atol=1e-5)
    np.testing.assert_allclose(csr.predict_proba(sparse.csr_matrix(thin)), dense.predict_proba(thin), atol=1e-5)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3])
@both
def test_one_column_of_another_scale_does_no_harm(cls, scale):
    # The ridge of the default start does not shrink with the column, and steps must know it.
    factor = np.array([1.0, scale, 1.0, 1.0, 1.0])
    model = cls(solver=replace(SGD, n_updates=3000)).fit(X * factor, Y, sensitive_features=G)
    assert model.outcome_.startswith(("converged after", "ran all 3000 updates"))
    assert disparity(model, X * factor) < 0.1


@both
def test_the_word_stands_for_the_default_settings(cls):
    one = cls(solver="sgd").make_trainer(X[:300], Y[:300], sensitive_features=G[:300])
    other = cls(solver=SgdSettings()).make_trainer(X[:300], Y[:300], sensitive_features=G[:300])
    assert (one.budget, one.batch_size) == (other.budget, other.batch_size)
    assert one.budget == 20_000
    assert one.batch_size == (100 if cls is TransportClassifier else 200)
