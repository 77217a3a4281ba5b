"""What training on pictures promises: no tuning, no divergence, the same result for every batch size."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from fairtransport import ContinuousTransportClassifier, DiscreteTransportClassifier, frontier
from fairtransport.metrics import error_rate, strong_pairwise_disparity

BOTH = [ContinuousTransportClassifier, DiscreteTransportClassifier]


def make_data(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.choice(3, p=[0.6, 0.3, 0.1], size=n)
    X = rng.normal(size=(n, 5))
    X[:, 0] += 0.8 * group
    X[:, 1] -= 0.4 * group
    X[:, 4] = group == 0
    y = (X @ [1.0, 0.7, 0.5, 0.0, -0.3] + rng.logistic(size=n) > 0.4).astype(int)
    return X, y, group


X, Y, G = make_data()
X_NEW, Y_NEW, G_NEW = make_data(seed=1, n=8000)


def measured(model, features=X_NEW):
    scores = model.predict_proba(features)[:, 1]
    return error_rate(Y_NEW, scores), strong_pairwise_disparity(scores, sensitive_features=G_NEW)


@pytest.fixture(scope="module")
def usual():
    return measured(ContinuousTransportClassifier(random_state=0).fit(X, Y, sensitive_features=G))


BEFORE = measured(LogisticRegression().fit(X, Y))


def test_parity_improves(usual):
    assert usual[1] < BEFORE[1] / 5


@pytest.mark.parametrize("batch_size", [5, 1000])
@pytest.mark.parametrize("regularizer", ["l2", "entropy"])
def test_batches_of_any_size_end_alike(usual, batch_size, regularizer):
    model = ContinuousTransportClassifier(batch_size=batch_size, regularizer=regularizer, random_state=1)
    error, disparity = measured(model.fit(X, Y, sensitive_features=G))
    assert error == pytest.approx(usual[0], abs=0.012)
    assert disparity == pytest.approx(usual[1], abs=0.03)
    assert model.outcome_.startswith(("converged", "ran all"))


def test_discrete_and_continuous_transport_agree(usual):
    model = DiscreteTransportClassifier(random_state=0).fit(X, Y, sensitive_features=G)
    error, disparity = measured(model)
    assert error == pytest.approx(usual[0], abs=0.012)
    assert disparity == pytest.approx(usual[1], abs=0.03)


@pytest.mark.parametrize("factor", [1e-3, 1e3])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("cls", BOTH)
def test_the_units_of_the_features_make_no_difference(cls, form, factor):
    settings = {"n_updates": 2000, "random_state": 0}
    plain = cls(**settings).fit(X, Y, sensitive_features=G)
    scaled = cls(**settings).fit(form(X * factor), Y, sensitive_features=G)
    np.testing.assert_allclose(scaled.predict_proba(X_NEW * factor), plain.predict_proba(X_NEW), atol=1e-3)


def test_features_far_from_zero_make_no_difference():
    far = np.array([1e4, 0, 0, 0, 0])
    settings = {"n_updates": 2000, "random_state": 0}
    plain = ContinuousTransportClassifier(**settings).fit(X, Y, sensitive_features=G)
    moved = ContinuousTransportClassifier(**settings).fit(X + far, Y, sensitive_features=G)
    np.testing.assert_allclose(moved.predict_proba(X_NEW + far), plain.predict_proba(X_NEW), atol=1e-3)


def test_useless_features_do_little_harm(usual):
    rng = np.random.default_rng(2)
    more = lambda features: np.column_stack((features, rng.normal(size=(len(features), 100))))  # noqa: E731
    model = ContinuousTransportClassifier(random_state=0).fit(more(X), Y, sensitive_features=G)
    error, disparity = measured(model, more(X_NEW))
    assert error < usual[0] + 0.03
    assert disparity < usual[1] + 0.05


def test_parity_weight_runs_from_the_initial_model_to_parity():
    weights = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
    curve = np.array(
        [
            measured(ContinuousTransportClassifier(parity_weight=w, random_state=0).fit(X, Y, sensitive_features=G))
            for w in weights
        ]
    )
    assert curve[0] == pytest.approx(BEFORE, abs=0.01)
    assert np.all(np.diff(curve[:, 1]) < 0.01)
    assert curve[-1, 1] < 0.2 * curve[0, 1]


def test_parity_weight_does_not_depend_on_the_number_of_rows_or_their_order():
    few = ContinuousTransportClassifier(parity_weight=0.3, random_state=0).fit(
        X[:2000], Y[:2000], sensitive_features=G[:2000]
    )
    many = ContinuousTransportClassifier(parity_weight=0.3, random_state=0).fit(X, Y, sensitive_features=G)
    assert measured(few)[1] == pytest.approx(measured(many)[1], abs=0.06)


@pytest.mark.parametrize("cls", BOTH)
def test_a_run_that_diverges_goes_back_and_on(cls):
    model = cls(parameter_step=30.0, n_updates=3000, random_state=0)
    with pytest.warns(ConvergenceWarning, match="Training diverged; it went back"):
        model.fit(X, Y, sensitive_features=G)
    assert model.outcome_.startswith("diverged near update")
    assert measured(model)[1] < BEFORE[1]


def test_a_run_ends_when_nothing_is_gained():
    model = ContinuousTransportClassifier(random_state=0).fit(X, Y, sensitive_features=G)
    assert model.outcome_ == f"converged after {model.n_iter_} updates"
    assert model.history_["update"][-1] == model.n_iter_ < 20_000


@pytest.mark.parametrize("cls", BOTH)
def test_pieces_make_no_difference(cls):
    whole = cls(random_state=0).make_trainer(X, Y, sensitive_features=G)
    parts = cls(random_state=0).make_trainer(X, Y, sensitive_features=G)
    whole.advance(100, average_from=30)
    for n in (1, 6, 40, 53):
        parts.advance(n, average_from=30)
    np.testing.assert_allclose(parts.averaged(), whole.averaged(), rtol=1e-9)


@pytest.mark.parametrize("cls", BOTH)
def test_how_long_pieces_are_makes_no_difference_to_the_last_bit(cls, monkeypatch):
    # Pieces are as long as the machine is fast, so they are not the same twice.
    found = []
    for seconds in (1e-9, 1e9):
        monkeypatch.setattr("fairtransport.estimators.course._ANSWER_WITHIN", seconds)
        found.append(cls(n_updates=900, random_state=0).fit(X, Y, sensitive_features=G))
    np.testing.assert_array_equal(found[0].coef_, found[1].coef_)
    np.testing.assert_array_equal(found[0].history_["loss"], found[1].history_["loss"])


def test_the_papers_algorithm_has_no_memory():
    settings = {"parity_weight": np.inf, "parameter_step": 0.05, "n_updates": 200, "random_state": 0}
    with_memory = ContinuousTransportClassifier(memory=True, **settings).fit(X, Y, sensitive_features=G)
    without = ContinuousTransportClassifier(memory=False, target="barycenter", **settings)
    np.testing.assert_array_equal(with_memory.coef_, without.fit(X, Y, sensitive_features=G).coef_)


def test_a_warm_start_goes_on_from_the_last_fit():
    model = ContinuousTransportClassifier(parity_weight=1.0, random_state=0).fit(X, Y, sensitive_features=G)
    first, started = measured(model)[1], model.initial_estimator_
    model.set_params(warm_start=True, n_updates=1).fit(X, Y, sensitive_features=G)
    assert measured(model)[1] == pytest.approx(first, abs=0.05)
    assert model.initial_estimator_ is started
    cold = ContinuousTransportClassifier(parity_weight=1.0, n_updates=1, random_state=0).fit(X, Y, sensitive_features=G)
    assert measured(cold)[1] > 3 * first
    with pytest.raises(ValueError, match="warm_start cannot change group_specific"):
        model.set_params(group_specific=True).fit(X, Y, sensitive_features=G)


def test_a_warm_start_needs_what_the_last_fit_had():
    model = ContinuousTransportClassifier(n_updates=50, group_specific=True, warm_start=True, random_state=0)
    model.fit(X, Y, sensitive_features=G)
    for others in (G % 2, np.where(np.arange(len(G)) < 200, 7, G), G + 10):  # fewer, more, and as many others
        with pytest.raises(ValueError, match="needs the groups of the last fit"):
            model.fit(X, Y, sensitive_features=others)
    with pytest.raises(ValueError, match="expecting 5 features"):
        model.fit(X[:, :3], Y, sensitive_features=G)
    with pytest.raises(ValueError, match="other class labels"):
        model.fit(X, np.where(Y == 1, "yes", "no"), sensitive_features=G)
    assert set(model.predict(X, sensitive_features=G)) == {0, 1}  # what failed has changed nothing


@pytest.mark.parametrize("n_updates", [1000, 4000])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_step_too_far_does_not_lame_the_run(usual, n_updates, seed):
    # With so few updates the first steps are too long for the duals to follow, and the run takes some back.
    model = ContinuousTransportClassifier(n_updates=n_updates, random_state=seed).fit(X, Y, sensitive_features=G)
    error, disparity = measured(model)
    assert error == pytest.approx(usual[0], abs=0.012)
    assert disparity == pytest.approx(usual[1], abs=0.02)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("batch_size", [5, 100])
def test_labels_that_no_feature_tells_are_no_divergence(cls, batch_size):
    labels = np.random.default_rng(1).integers(2, size=len(Y))
    model = cls(batch_size=batch_size, random_state=0).fit(X, labels, sensitive_features=G)  # warnings are errors
    assert "diverged" not in model.outcome_


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.filterwarnings("ignore:Training diverged")  # as DOT does at first with such a weight
def test_going_on_at_the_end_is_no_divergence(cls):
    model = cls(parity_weight=1e6, random_state=0).fit(X, Y, sensitive_features=G)
    before = measured(model)
    model.set_params(warm_start=True).fit(X, Y, sensitive_features=G)
    assert model.outcome_.startswith(("converged", "ran all"))
    assert measured(model) == pytest.approx(before, abs=0.02)


def test_a_class_needs_weight():
    with pytest.raises(ValueError, match="One of the two classes has total sample_weight 0"):
        ContinuousTransportClassifier().fit(X, Y, sensitive_features=G, sample_weight=(Y == 1).astype(float))


def test_a_start_that_was_fitted_on_a_frame():
    frame = pd.DataFrame(X, columns=list("abcde"))
    settings = {"n_updates": 50, "random_state": 0}
    named = ContinuousTransportClassifier(LogisticRegression().fit(frame, Y), **settings)  # and it does not warn
    plain = ContinuousTransportClassifier(LogisticRegression().fit(X, Y), **settings).fit(X, Y, sensitive_features=G)
    np.testing.assert_allclose(named.fit(frame, Y, sensitive_features=G).coef_, plain.coef_, atol=1e-6)
    assert list(named.estimator.feature_names_in_) == list("abcde")
    with pytest.raises(ValueError, match="in another order"):
        named.fit(frame[list("edcba")], Y, sensitive_features=G)


def test_many_columns_of_uneven_units_are_stable():
    # Above 800 columns; the ridge of a start that the user names is uneven in units of the columns' own.
    rng = np.random.default_rng(4)
    factor = np.where(np.arange(805) < 5, 1e-3, 1.0)
    wide = np.column_stack((X, rng.normal(size=(len(X), 800))))[:800] * factor
    start = LogisticRegression(C=1e-3).fit(wide, Y[:800])
    model = ContinuousTransportClassifier(start, n_updates=400, random_state=0)
    model.fit(wide, Y[:800], sensitive_features=G[:800])
    assert model.outcome_ == "ran all 400 updates"


@pytest.mark.parametrize("n_groups", [2, 12])
def test_what_chance_shows_is_told_from_what_many_groups_show(n_groups):
    rng = np.random.default_rng(6)
    groups = rng.integers(n_groups, size=20_000)
    features = rng.normal(size=(20_000, 2))
    features[:, 0] += 0.3 * groups / n_groups
    labels = (features.sum(axis=1) + rng.logistic(size=20_000) > 0.2).astype(int)

    def weight(sensitive):
        model = DiscreteTransportClassifier(n_updates=1, random_state=0)
        return model.make_trainer(features, labels, sensitive_features=sensitive).objective.parity

    assert weight(groups) > 0.0
    assert sum(weight(rng.permutation(groups)) > 0.0 for _ in range(10)) <= 2  # one in twenty, by two deviations


def test_equal_groups_stay_as_they_are():
    rng = np.random.default_rng(3)
    nobody = rng.integers(3, size=len(Y))
    for regularizer in ("l2", "entropy"):
        model = ContinuousTransportClassifier(regularizer=regularizer, random_state=0)
        error, _ = measured(model.fit(X, Y, sensitive_features=nobody))
        assert error < BEFORE[0] + 0.01


def test_groups_cannot_be_moved_to_each_other_without_memory():
    for settings in ({"memory": False}, {"parity_weight": np.inf}):
        model = ContinuousTransportClassifier(target="each_other", **settings)
        with pytest.raises(ValueError, match="needs memory=True and a finite parity_weight"):
            model.fit(X, Y, sensitive_features=G)


def test_a_frontier_without_a_fixed_target_measures_to_the_barycenter():
    curves = [
        frontier(
            ContinuousTransportClassifier(target=target, n_updates=50), X[:600], Y[:600],
            sensitive_features=G[:600], parity_weights=[0.0, 1.0], cv=2, random_state=0,
        )
        for target in (None, "each_other", "barycenter")
    ]  # fmt: skip
    np.testing.assert_array_equal(curves[0].mean("wasserstein_disparity"), curves[1].mean("wasserstein_disparity"))
    # Without parity nothing is moved, so the third is measured at nearly the same scores.
    expected = curves[2].mean("wasserstein_disparity")[0]
    assert curves[0].mean("wasserstein_disparity")[0] == pytest.approx(expected, abs=0.02)
