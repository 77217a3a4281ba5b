"""The default solver: deterministic, independent of order and names, right on tables that are hard to solve."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from fairtransport import ContinuousDistance, FairnessWarning, GroupPolicy, TransportClassifier
from fairtransport.criteria.comparisons import Comparisons
from fairtransport.criteria.penalty import DiscretePenalty
from fairtransport.linear._lbfgs_solver import LbfgsSolver, LinearProblem
from fairtransport.linear._problem import minimise_loss
from fairtransport.metrics import rank_disparity, strong_pairwise_disparity
from fairtransport.training.responses import LOSSES

from .tables import DOT, aware_table, blind_table, both, owned

X, Y, G = aware_table()


def scores_of(model, features=X, groups=G):
    return model.predict_proba(features, sensitive_features=groups)[:, 1]


def fitted(cls, features=X, labels=Y, group=G, *, sample_weight=None, **options):
    return cls(**{"parity_weight": 1.0, **options}).fit(
        features, labels, sensitive_features=group, sample_weight=sample_weight
    )


@both
@owned
def test_csr_equals_dense(cls, group_specific):
    thin = X * (np.abs(X) > 0.7)
    dense, csr = (fitted(cls, form(thin), group_specific=group_specific) for form in (np.asarray, sparse.csr_matrix))
    np.testing.assert_allclose(scores_of(csr, sparse.csr_matrix(thin)), scores_of(dense, thin), atol=1e-6)


def twice(matrix):
    """Return a sparse matrix that stores each cell as two halves, zeros as well, in any order."""
    rows, columns = np.indices(matrix.shape).reshape(2, -1)
    columns = np.concatenate((columns, columns[::-1]))
    halves = np.concatenate((matrix.ravel(), matrix.ravel()[::-1])) / 2
    rows = np.concatenate((rows, rows[::-1]))
    order = np.argsort(rows, kind="stable")
    starts = np.arange(0, halves.size + 1, 2 * matrix.shape[1])
    return sparse.csr_matrix((halves[order], columns[order], starts), matrix.shape)


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.coo_array, twice])
def test_what_is_made_later_is_that_of_the_rows_as_given(form):
    """Values at the mean of their column are zero while training."""
    features = np.column_stack((np.resize([1.0, 2.0, 2.0, 3.0], 1024), X[:1024]))
    labels, group = Y[:1024], G[:1024]
    dense, other = (fitted(TransportClassifier, make(features), labels, group) for make in (np.asarray, form))
    for name in ("theta", "spread", "log_loss"):
        np.testing.assert_allclose(other.path_[name], dense.path_[name], atol=1e-6)
    for model in (dense, other):
        model.partial_fit(features, sensitive_features=group)
    np.testing.assert_allclose(other.coef_, dense.coef_, atol=1e-6)


@both
@pytest.mark.parametrize("factor", [1e-6, 1e3])
def test_units_of_the_columns_do_not_matter(cls, factor):
    units = np.array([factor, 1.0, 1 / factor, 1.0, 1.0])
    np.testing.assert_allclose(scores_of(fitted(cls, X * units), X * units), scores_of(fitted(cls)), atol=1e-4)


def test_without_parity_it_is_logistic_regression_on_standardized_columns():
    wide = X[:, :4] * [1.0, 50.0, 1e-3, 1.0] + [0.0, 3.0, 0.0, -7.0]
    expected = LogisticRegression(tol=1e-8).fit(StandardScaler().fit_transform(wide), Y)
    model = fitted(TransportClassifier, wide, parity_weight=0.0)
    np.testing.assert_allclose(
        scores_of(model, wide), expected.predict_proba(StandardScaler().fit_transform(wide))[:, 1], atol=2e-4
    )
    np.testing.assert_allclose(model.initial_estimator_.coef_, model.coef_, atol=1e-6)


def test_the_ridge_of_a_fitted_estimator_is_kept():
    start = LogisticRegression(C=0.01, tol=1e-8).fit(X, Y)
    model = TransportClassifier(start, parity_weight=0.0).fit(X, Y, sensitive_features=G)
    np.testing.assert_allclose(model.coef_, start.coef_, atol=2e-3)
    assert model.initial_estimator_ is start


@both
@owned
def test_more_weight_is_less_disparity_and_more_loss(cls, group_specific):
    """Of the penalised distance itself, at eight ascending weights."""
    weights = [0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0]
    models = cls(group_specific=group_specific).fit_path(X, Y, weights, sensitive_features=G)
    penalty = [m.history_["disparity"][-1] for m in models[1:]]
    losses = [m.before_after_["log_loss"][1] for m in models]
    assert (np.diff(penalty) <= 0.01 * penalty[0]).all()
    assert (np.diff(losses) >= -1e-3).all()
    assert penalty[-1] < 0.1 * penalty[0]


@pytest.mark.parametrize("regularizer", ["l2", "entropy"])
@pytest.mark.parametrize("opposite_duals", [True, False])
@pytest.mark.parametrize("scale", ["standardized", "score"])
def test_every_distance_leads_to_parity(regularizer, opposite_duals, scale):
    model = fitted(
        TransportClassifier, distance=ContinuousDistance(regularizer, opposite_duals=opposite_duals), scale=scale
    )
    before, after = model.before_after_["rank_disparity"]
    assert after < before / 4
    assert model.information_kept_ > 0.8


@both
@pytest.mark.parametrize(
    "target", ["each_other", "barycenter", "barycenter_w2", "pooled", "a", np.linspace(0.1, 0.9, 50)], ids=str
)
def test_every_target_leads_to_parity(cls, target):
    model = fitted(cls, target=target)
    before, after = model.before_after_["rank_disparity"]
    assert after < before / 4
    if isinstance(target, str) and target == "a":
        start = model.initial_estimator_.predict_proba(X)[:, 1]
        assert np.mean(scores_of(model)) == pytest.approx(np.mean(start[G == "a"]), abs=0.02)
    if not isinstance(target, str):
        np.testing.assert_allclose(np.quantile(model.target_, [0.25, 0.75]), [0.3, 0.7], atol=0.02)


@both
def test_groups_may_overlap(cls):
    rng = np.random.default_rng(2)
    other = rng.integers(2, size=len(Y))
    features = np.column_stack((X, other, X[:, 1] + other))
    frame = pd.DataFrame({"g": G, "h": other})
    model = fitted(cls, features, group=frame, groups=GroupPolicy(crossed=False))
    assert model.groups_.names == ("g=a", "g=b", "h=0", "h=1")
    for column in ("g", "h"):
        before, after = (
            rank_disparity(s, sensitive_features=frame[column])
            for s in (model.initial_estimator_.predict_proba(features)[:, 1], scores_of(model, features, frame))
        )
        assert after < max(0.03, before / 4)
    with pytest.raises(ValueError, match="do not overlap"):
        fitted(cls, features, group=frame, groups=GroupPolicy(crossed=False), group_specific=True)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_the_gradient_of_the_whole_objective(loss):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 3))
    outcomes = rng.integers(2, size=60).astype(float) if loss.name == "logistic" else rng.normal(size=60)
    cells = [np.arange(20), np.arange(20, 50)]
    comparisons = Comparisons.of_cells(60, cells, [(0, 1)])
    own = {"n_groups": 2, "center": rng.normal(size=4)}
    for parts, how in (((rows,), {}), ((rows[:20], rows[20:50], rows[50:]), own)):
        problem = LinearProblem(parts, loss, outcomes, np.full(60, 1 / 60), np.full(3, 0.1), has_intercept=True, **how)
        theta = rng.normal(size=problem.shape)
        solver = LbfgsSolver(
            problem, DiscretePenalty(n_slices=20), comparisons, initial=theta, unit=0.7, tol=1e-4, max_iter=10
        )
        gradient = solver.value_and_gradient(theta, 2.0)[1]
        for index in np.ndindex(*problem.shape):
            step = np.zeros(problem.shape)
            step[index] = 1e-6
            up, down = (solver.value_and_gradient(theta + sign * step, 2.0)[0] for sign in (1, -1))
            assert gradient[index] == pytest.approx((up - down) / 2e-6, abs=1e-6)


def test_a_model_without_intercept_gets_none():
    model = TransportClassifier(LogisticRegression(fit_intercept=False), parity_weight=1.0)
    assert model.fit(X, Y, sensitive_features=G).intercept_[0] == 0.0


def test_group_weights_shift_and_stretch_the_initial_logits():
    """Of a small group, whose rows say little, the direction of the weights stays near that of the initial model."""
    small = np.where(np.arange(len(Y)) < 60, "c", G)
    model = fitted(DOT, group=small, group_specific=True)
    start = model.initial_estimator_.coef_[0]
    for own in model.coef_:
        assert own[:4] @ start[:4] > 0.9 * np.linalg.norm(own[:4]) * np.linalg.norm(start[:4])


@both
def test_collinear_and_heavy_tailed_columns(cls):
    rng = np.random.default_rng(0)
    n = 1500
    b = rng.integers(2, size=n)
    base = rng.normal(size=(n, 1)) + 0.6 * b[:, None]
    columns = base + 0.05 * rng.normal(size=(n, 8))  # correlated at .99 and more
    heavy = np.exp(2.0 * rng.normal(size=(n, 2))) * 1e3
    features = np.column_stack((columns, heavy, b))
    y = (base[:, 0] + 0.2 * np.log(heavy[:, 0] / 1e3) + rng.logistic(size=n) > 0.3).astype(int)
    models = cls().fit_path(features, y, [0.1, 1.0, 10.0], sensitive_features=b)
    ranks = [m.before_after_["rank_disparity"][1] for m in models]
    assert all(np.isfinite(m.coef_).all() for m in models)
    assert ranks[1] < ranks[0]
    assert ranks[2] < 1.5 * ranks[1]
    assert models[-1].information_kept_ > 0.6
    order = rng.permutation(n)
    again = fitted(cls, features[order], y[order], b[order])
    np.testing.assert_allclose(
        scores_of(again, features, b), scores_of(fitted(cls, features, y, b), features, b), atol=1e-6
    )


@both
@owned
def test_unusual_tables_work(cls, group_specific):
    options = {"group_specific": group_specific}
    constant = np.column_stack((X, np.ones(len(X)), np.zeros(len(X))))
    assert np.isfinite(fitted(cls, constant, **options).coef_).all()
    twice = fitted(cls, np.r_[X, X], np.r_[Y, Y], np.r_[G, G], **options)
    assert np.isfinite(twice.coef_).all()
    separated = np.column_stack((np.where(Y == 1, 3.0, -3.0), X[:, 1:]))
    assert np.isfinite(fitted(cls, separated, **options, parity_weight=0.1).coef_).all()


def test_more_columns_than_are_whitened():
    """Beyond a thousand columns only the diagonal of the Hessian is used."""
    rng = np.random.default_rng(0)
    wide = sparse.csr_matrix(np.column_stack((X, sparse.random(len(Y), 1100, 0.01, random_state=rng).toarray())))
    model = fitted(DOT, wide)
    before, after = model.before_after_["rank_disparity"]
    assert after < before / 3


@both
def test_rare_groups_do_not_prevent_parity_of_the_others(cls):
    """35 rows of two rare groups among 5,000: the main groups come as close as without them."""
    features, y, group = aware_table(5000)
    rare = group.astype("<U4")
    rare[:35] = np.where(np.arange(35) < 20, "rare", "few")
    main = np.arange(5000) >= 35
    with_them = fitted(cls, features, y, rare, parity_weight="auto")
    without = fitted(cls, features[main], y[main], group[main], parity_weight="auto")
    disparity, expected, before = (
        strong_pairwise_disparity(s[main], sensitive_features=group[main])
        for s in (
            scores_of(with_them, features, rare),
            scores_of(without, features, group),
            with_them.initial_estimator_.predict_proba(features)[:, 1],
        )
    )
    assert disparity < before / 5
    assert disparity < expected + 0.01


def rare_groups():
    groups = G.astype("<U4")
    groups[:30] = np.repeat(["c", "d", "e"], 10)
    return groups


@both
@owned
def test_small_groups_are_pooled(cls, group_specific):
    groups = rare_groups()
    model = fitted(cls, group=groups, groups=GroupPolicy(small="pool"), group_specific=group_specific)
    assert len(model.groups_) == 3
    assert model.group_sizes_.tolist().count(30) == 1
    if group_specific:  # each of them is scored by the weights of the pool
        number = model.group_sizes_.tolist().index(30)
        expected = X[:30] @ model.coef_[number] + model.intercept_[number]
        np.testing.assert_allclose(model.decision_function(X[:30], sensitive_features=groups[:30]), expected)


@both
def test_small_groups_that_are_dropped_are_scored_by_the_common_weights(cls):
    groups = rare_groups()
    shared = fitted(cls, group=groups, groups=GroupPolicy(small="drop"))
    assert shared.groups_.names == ("a", "b")
    own = fitted(cls, group=groups, groups=GroupPolicy(small="drop"), group_specific=True)
    assert own.coef_.shape == (2, 5)
    expected = X[:30] @ own.common_coef_ + own.common_intercept_
    np.testing.assert_allclose(own.decision_function(X[:30], sensitive_features=groups[:30]), expected)
    with pytest.raises(ValueError, match="none of the"):
        own.predict(X[:1], sensitive_features=["never seen"])


@both
def test_a_run_that_is_cut_short_says_so(cls):
    with pytest.warns(ConvergenceWarning, match="stopped after max_iter=1 iterations, before convergence"):
        model = fitted(cls, max_iter=1)
    assert "stopped after max_iter=1" in model.outcome_
    assert model.n_iter_ == 1
    assert np.isfinite(scores_of(model)).all()


def test_attributes_say_what_happened():
    model = fitted(TransportClassifier)
    assert model.coef_.shape == (1, 5)
    assert model.intercept_.shape == (1,)
    np.testing.assert_array_equal(model.common_coef_, model.coef_[0])
    assert model.outcome_ == f"converged after {model.n_iter_} iterations"
    assert model.parity_weight_ == 1.0
    assert model.history_["update"].tolist() == list(range(1, model.n_iter_ + 1))
    assert model.groups_.names == ("a", "b")
    assert model.groups_.n_rows == 0  # no list of people is kept
    assert model.target_.shape == (4096,)
    assert np.all(np.diff(model.target_) >= 0)
    points = np.linspace(0, 1, 11)
    np.testing.assert_allclose(model.duals_.of_group("a", points), -model.duals_.of_target("a", points))
    np.testing.assert_allclose(model.duals_(points)[0], model.duals_.of_group("a", points))


def test_a_potential_is_large_where_the_group_has_too_much_mass():
    """Group b scores higher in the beginning, so its potential rises with the score; group a's falls."""
    model = fitted(TransportClassifier, parity_weight=1e-6)
    low, high = np.quantile(model.target_, [0.2, 0.8])
    assert model.duals_.of_group("b", high) > model.duals_.of_group("b", low)
    assert model.duals_.of_group("a", high) < model.duals_.of_group("a", low)


def test_blind_models_use_groups_in_training_only():
    features, y, group = blind_table(gap=0.4)
    model = fitted(DOT, features, y, group)
    np.testing.assert_array_equal(
        model.predict_proba(features), model.predict_proba(features, sensitive_features=group)
    )
    before, after = model.before_after_["rank_disparity"]
    assert after < before / 3


def test_a_group_of_three_rows_does_not_stop_a_fit_in_folds():
    """Some folds have none of its rows; the disparity is measured out of fold, as there are many columns."""
    rng = np.random.default_rng(0)
    groups = np.where(rng.random(300) < 0.5, "a", "b").astype(object)
    features = rng.normal(size=(300, 20))
    y = (features[:, 0] + rng.logistic(size=300) > 0).astype(int)
    features[groups == "b", 1] += 2.0
    y[(groups == "b") & (rng.random(300) < 0.5)] = 1
    groups[np.flatnonzero(y == 1)[:3]] = "tiny"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        model = TransportClassifier().fit(features, y, sensitive_features=groups)
    assert np.isfinite(model.predict_proba(features)).all()


# What makes heavy weights quick: the penalty's curvature in the metric, and a second start.


def heavy_solver(seed=1, n=6000, n_columns=30):
    rng = np.random.default_rng(seed)
    groups = rng.integers(3, size=n)
    X = rng.normal(size=(n, n_columns)) + 0.6 * groups[:, None] * rng.normal(size=n_columns)
    y = (X @ rng.normal(scale=1.5 / np.sqrt(n_columns), size=n_columns) + rng.logistic(size=n) > 0.0).astype(np.float64)
    ridge = np.full(n_columns, 1.0 / n)
    problem = LinearProblem((X,), LOSSES["logistic"], y, np.full(n, 1.0 / n), ridge, has_intercept=True)
    pairs = Comparisons.of_cells(n, [np.flatnonzero(groups == g) for g in range(3)], [(0, 1), (0, 2), (1, 2)])
    start = minimise_loss(problem, np.zeros(problem.shape))
    penalty = ContinuousDistance().penalty("standardized")
    return LbfgsSolver(problem, penalty, pairs, initial=start, unit=0.1, tol=1e-5, max_iter=500), start


def test_the_metric_of_the_penalty_saves_iterations_and_finds_the_same_minimum(monkeypatch):
    iterations = []
    for seed in range(1, 4):
        solver, start = heavy_solver(seed)
        start = solver.run(4.0, solver.run(1.0, start).parameters).parameters
        quick = solver.run(15.0, start)
        with monkeypatch.context() as patch:
            patch.setattr(LbfgsSolver, "_metric", lambda *_: lambda coordinates: coordinates)
            slow = solver.run(15.0, start)
        np.testing.assert_allclose(quick.value, slow.value, atol=3e-5)
        iterations.append((quick.n_iter, slow.n_iter))
    assert np.sum(iterations, axis=0) @ [1.0, -0.75] < 0.0


def test_a_start_of_equal_means_is_the_nearest_one():
    solver, start = heavy_solver()
    other = solver.equal_means(start)
    means = [np.append(solver.problem.parts[0][rows].mean(axis=0), 1.0) @ other[0] for rows in solver.comparisons.cells]
    np.testing.assert_allclose(means, means[0], atol=1e-9)
    # Any other weights with these means are farther away in the metric of the loss.
    inverse = np.linalg.inv(solver.factors[0])
    gaps = np.array([solver.problem.parts[0][rows].mean(axis=0) for rows in solver.comparisons.cells])
    free = np.linalg.svd(np.column_stack((gaps[1:] - gaps[0], np.zeros(2))))[2][2:]
    for direction in free:
        assert abs((inverse @ (other - start)[0]) @ (inverse @ direction)) < 1e-8
