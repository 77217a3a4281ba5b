"""Equalized odds, equal opportunity and conditional parity of the transport classifiers."""

import warnings

import numpy as np
import pytest
from scipy.stats import wasserstein_distance
from sklearn.linear_model import LogisticRegression
from tests.worlds import people_in_strata

import fairtransport as ft
from fairtransport.criteria import EqualizedOdds
from fairtransport.criteria.criterion import resolve_criterion
from fairtransport.criteria.penalty import ChanceTerm
from fairtransport.groups import make_groups
from fairtransport.linear import OnlineSettings
from fairtransport.linear._problem import build_problem
from fairtransport.linear._training_data import TrainingData
from fairtransport.strata import make_strata
from fairtransport.training.responses import BinaryResponse

from .tables import DOT, both

ODDS = {"criterion": "equalized_odds"}


X, Y, G, S = people_in_strata()


def distances(scores, labels, group):
    """W1 between the groups, within each label."""
    return [
        wasserstein_distance(scores[(labels == label) & (group == "a")], scores[(labels == label) & (group == "b")])
        for label in np.unique(labels)
    ]


@both
def test_equalized_odds_hold_on_new_rows(cls):
    model = cls(**ODDS).fit(X, Y, sensitive_features=G)
    new, labels, group, _ = people_in_strata(6000, seed=1)
    before = distances(model.initial_estimator_.predict_proba(new)[:, 1], labels, group)
    after = distances(model.predict_proba(new)[:, 1], labels, group)
    assert max(after) < 0.3 * min(before)
    assert model.information_kept_ > 0.5
    assert model.outcome_.startswith("equalized odds: ")
    assert model.strata_ is None
    expected = np.mean(distances(model.predict_proba(X)[:, 1], Y, G))  # labels count the same
    assert model.before_after_["disparity"][1] == pytest.approx(expected, abs=2e-3)


def test_equal_opportunity_compares_positive_rows_only():
    model = DOT(criterion="equal_opportunity").fit(X, Y, sensitive_features=G)
    odds = DOT(**ODDS).fit(X, Y, sensitive_features=G)
    negative, positive = distances(model.predict_proba(X)[:, 1], Y, G)
    assert positive < 0.02
    assert negative > distances(odds.predict_proba(X)[:, 1], Y, G)[0]
    assert model.information_kept_ >= odds.information_kept_ - 0.01
    assert model.outcome_.startswith("equal opportunity: ")


@pytest.mark.trust
@both
def test_conditional_parity_leaves_what_the_strata_explain(cls):
    model = cls().fit(X, Y, sensitive_features=G, strata=S)
    everywhere = cls().fit(X, Y, sensitive_features=G)
    new, _, group, stratum = people_in_strata(6000, seed=1)
    scores = model.predict_proba(new)[:, 1]
    pairs = resolve_criterion("demographic_parity", make_groups(group), strata=make_strata(stratum)).comparisons()
    within = [wasserstein_distance(scores[pairs.cells[a]], scores[pairs.cells[b]]) for a, b in pairs.pairs]
    assert np.average(within, weights=pairs.weights) < 0.04  # .19 without parity; chance alone has .015
    assert model.information_kept_ > everywhere.information_kept_
    assert ft.metrics.strong_pairwise_disparity(scores, sensitive_features=group) > 0.03
    assert model.outcome_.startswith("conditional parity (4 strata): ")
    assert len(model.strata_) == 4
    assert model.strata_.n_rows == 0


def test_odds_within_strata_and_several_columns():
    table = {"one": S % 2, "other": S // 2}
    model = DOT(**ODDS, parity_weight=1.0).fit(X, Y, sensitive_features=G, strata=table)
    before, after = model.before_after_["disparity"]
    assert after < 0.7 * before  # chance alone has .02 in strata of these sizes
    assert "equalized odds within strata (" in model.outcome_
    assert model.strata_.columns == ("one", "other")


@pytest.mark.parametrize("label_weight", ["equal", "share"])
def test_the_weight_of_labels_is_that_of_the_disparity(label_weight):
    model = DOT(criterion=EqualizedOdds(label_weight), parity_weight=0.3)
    model.fit(X, Y, sensitive_features=G)
    shares = [0.5, 0.5] if label_weight == "equal" else [np.mean(Y == 0), np.mean(Y == 1)]
    expected = np.dot(shares, distances(model.predict_proba(X)[:, 1], Y, G))
    assert model.before_after_["disparity"][1] == pytest.approx(expected, abs=2e-3)


@pytest.mark.trust
def test_max_disparity_is_the_criterions():
    model = DOT(**ODDS, max_disparity=0.05).fit(X, Y, sensitive_features=G)
    assert 0.03 < model.before_after_["disparity"][1] <= 0.05
    weights = [0.0, 0.3, 1.0]
    path = DOT(**ODDS).fit_path(X, Y, weights, sensitive_features=G)
    figures = [model.before_after_["disparity"][1] for model in path]
    assert figures == sorted(figures, reverse=True)


@pytest.mark.parametrize("scale", ["standardized", "score"])
@pytest.mark.parametrize("target", ["each_other", "barycenter"])
@pytest.mark.parametrize("criterion", ["equalized_odds", "demographic_parity"])
@both
def test_the_gradient_is_that_of_finite_differences(cls, criterion, target, scale):
    """With equalized odds, and with sixty strata, of which what chance adds is left out."""
    strata = None if criterion == "equalized_odds" else make_strata(np.arange(600) % 60)
    model = cls(criterion=criterion, target=target, scale=scale)
    data = TrainingData(X[:600], Y[:600], BinaryResponse(np.array([0, 1])), make_groups(G[:600]), strata=strata)
    problem = build_problem(data, model._options())
    solver = problem.solver()
    assert (solver.chance is None) == (criterion == "equalized_odds")
    parameters = problem.start + 0.1
    rng, step = np.random.default_rng(0), 1e-5
    _, gradient = solver.value_and_gradient(parameters, 2.0)
    for _ in range(3):
        direction = rng.normal(size=parameters.shape)
        ends = [solver.value_and_gradient(parameters + sign * step * direction, 2.0)[0] for sign in (1.0, -1.0)]
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(
            float((gradient * direction).sum()), rel=2e-3, abs=2e-5
        )


def many_strata(n=8000, n_strata=80, shift=0.8, seed=0):
    rng = np.random.default_rng(seed)
    group, stratum = rng.integers(2, size=n), rng.integers(n_strata, size=n)  # as text, so that it is not cut
    X = rng.normal(size=(n, 3)) + group[:, None] * [shift, 0.0, 0.0]
    X = np.column_stack((X, 0.02 * stratum))
    return X, (X @ [0.6, 1.6, 0.8, 1.0] + rng.logistic(size=n) > 1.2).astype(int), group, stratum.astype(str)


def test_differences_that_each_stratum_hides_are_seen_together():
    """A hundred rows of a stratum do not show the shift of one of three columns; eighty strata do."""
    table, labels, group, stratum = many_strata()
    model = DOT(parity_weight=1.0).fit(table, labels, sensitive_features=group, strata=stratum)
    assert abs(model.coef_[0, 0]) < 0.5 * abs(model.initial_estimator_.coef_[0, 0])


def test_without_a_difference_nothing_is_moved():
    table, labels, group, stratum = many_strata(shift=0.0)
    model = DOT().fit(table, labels, sensitive_features=group, strata=stratum)
    assert model.parity_weight_ == 0.0
    assert "no more than by chance" in model.outcome_ or "without any weight" in model.outcome_


@pytest.mark.trust
@both
def test_scores_are_not_made_equal_within_strata(cls):
    """The sum of what chance shows falls with the spread within strata; that must not win."""
    table, labels, group, stratum = many_strata()
    model = cls().fit(table, labels, sensitive_features=group, strata=stratum)
    before, after = model.before_after_["spread"]
    assert after > 0.6 * before
    weights = np.abs(model.coef_[0])
    assert weights[0] < 0.3 * weights[1]  # the column that tells the groups apart
    assert weights[1] > 1.2 * weights[2]  # the others keep their proportions
    assert model.information_kept_ > 0.5


def test_the_chance_term_is_the_mean_distance_of_random_parts():
    scores = np.random.default_rng(0).beta(2, 3, 3000)
    groups, strata = make_groups(np.arange(3000) % 2), make_strata(np.arange(3000) // 2 % 50)
    pairs = resolve_criterion("demographic_parity", groups, strata=strata).comparisons()
    term = ChanceTerm.of(pairs, np.sqrt(2.0 / np.pi) * pairs.sampling_errors(), "score")
    shuffled = [pairs.shuffled(np.random.default_rng(seed)) for seed in range(20)]
    means = [
        np.dot(one.weights, [wasserstein_distance(scores[one.cells[a]], scores[one.cells[b]]) for a, b in one.pairs])
        for one in shuffled
    ]
    assert term.value_and_gradient(scores)[0] == pytest.approx(np.mean(means), rel=0.08)


# ------------------------------------------------------------------------------------------------------- partial_fit


@pytest.mark.trust
@both
def test_late_labels_keep_equalized_odds(cls):
    """The world changes: the groups' features differ more. Batches whose labels have arrived restore the odds."""
    model = cls(**ODDS, online=OnlineSettings(half_life=500)).fit(X, Y, sensitive_features=G)
    new, labels, group, _ = people_in_strata(8000, seed=5, drift=0.7)
    still = np.mean(distances(model.predict_proba(new)[:, 1], labels, group))
    for start in range(0, 8000, 200):
        some = slice(start, start + 200)
        model.partial_fit(new[some], labels[some], sensitive_features=group[some])
    assert np.mean(distances(model.predict_proba(new)[:, 1], labels, group)) < 0.5 * still
    assert len(model.adjusting_.sketches) == 4


@pytest.mark.parametrize("criterion", ["equalized_odds", "equal_opportunity"])
def test_a_stream_without_labels_is_refused(criterion):
    model = DOT(criterion=criterion, parity_weight=1.0).fit(X, Y, sensitive_features=G)
    with pytest.raises(ValueError, match="partial_fit without labels cannot hold equal"):
        model.partial_fit(X[:9], sensitive_features=G[:9])
    with pytest.raises(ValueError, match="stream without labels cannot maintain equal"):
        ft.stream.ContinualAdjuster(model)
    fitted = LogisticRegression().fit(X, Y)
    with pytest.raises(ValueError, match="partial_fit without labels"):
        DOT(fitted, criterion=criterion).partial_fit(X, sensitive_features=G)


def test_strata_are_needed_where_fit_had_them():
    model = DOT(parity_weight=1.0).fit(X, Y, sensitive_features=G, strata=S)
    with pytest.raises(ValueError, match="strata must be given to partial_fit exactly where"):
        model.partial_fit(X[:9], sensitive_features=G[:9])
    with pytest.raises(ValueError, match="strata"):
        model.partial_fit(X[:9], sensitive_features=G[:9], strata=S[:8])
    with pytest.raises(ValueError, match="stream without strata cannot maintain conditional parity"):
        ft.stream.ContinualAdjuster(model)


def test_a_stream_starts_with_labels_or_a_fitted_model():
    model = DOT(**ODDS, parity_weight=1.0).partial_fit(X, Y, sensitive_features=G)
    assert model.outcome_.startswith("equalized odds")
    model = model.at(weight=0.0)
    model.partial_fit(X[:500], Y[:500], sensitive_features=G[:500])  # from a batch, without memory
    assert len(model.adjusting_.blocks) == 2
    fitted = LogisticRegression().fit(X, Y)
    model = DOT(fitted).partial_fit(X, sensitive_features=G, strata=S)
    assert len(model.adjusting_.blocks) == 4
    model.partial_fit(X[:50], sensitive_features=G[:50], strata=S[:50])


@pytest.mark.trust
@both
def test_model_files_hold_criterion_and_strata(cls, tmp_path):
    model = cls(criterion=EqualizedOdds(label_weight="share"), parity_weight=1.0)
    model.fit(X, Y, sensitive_features=G, strata={"one": S, "two": X[:, 3]})
    ft.save(model, tmp_path / "model.ft")
    again = ft.load(tmp_path / "model.ft")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.criterion == EqualizedOdds(label_weight="share")
    assert again.strata_.to_spec() == model.strata_.to_spec()
    batch = {"sensitive_features": G[:40], "strata": {"one": S[:40], "two": X[:40, 3]}}
    for one in (model, again):
        one.partial_fit(X[:40], Y[:40], **batch)
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_bad_input_is_named():
    model = DOT(parity_weight=1.0)
    only_a = np.where(Y == 1, "a", G)
    with pytest.raises(ValueError, match="nothing to compare: no label has rows of two groups"):
        DOT(criterion="equal_opportunity").fit(X, Y, sensitive_features=only_a)
    with pytest.raises(ValueError, match="has no rows in some of them; use 'barycenter'"):
        model.set_params(target="b").fit(X, Y, sensitive_features=np.where((G == "b") & (S == 0), "c", G), strata=S)


def test_many_rows_set_aside_are_warned_of():
    strata = np.where(G == "b", 7, S)
    strata[:300] = 8
    with pytest.warns(ft.FairnessWarning, match="of the rows have only one group in their stratum"):
        model = DOT(parity_weight=1.0).fit(X, Y, sensitive_features=G, strata=strata)
    assert "(1 stratum, 5 set aside)" in model.outcome_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DOT(parity_weight=1.0).fit(X, Y, sensitive_features=G, strata=S)
