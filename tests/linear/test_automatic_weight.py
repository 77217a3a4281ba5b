"""How much parity: the automatic weight, limits, the path, and plain words about what was lost."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import fairtransport as ft
from fairtransport import FairnessWarning, TransportClassifier
from fairtransport.linear import SgdSettings
from fairtransport.linear._lbfgs_solver import LbfgsResult
from fairtransport.metrics import noise_floor, rank_disparity, strong_pairwise_disparity
from fairtransport.training.evaluation import ScoreMetrics
from fairtransport.training.weight_path import MIN_INFORMATION, PATH_WEIGHTS, AutomaticWeight, PathPoint, WeightPath

from .tables import DOT, aware_table, blind_table, both, hopeless_table, owned

X, Y, G = aware_table()


def scores_of(model, features=X, groups=G):
    return model.predict_proba(features, sensitive_features=groups)[:, 1]


@both
@owned
def test_the_noise_floor_is_reached_where_the_features_allow_it(cls, group_specific):
    model = cls(group_specific=group_specific).fit(X, Y, sensitive_features=G)
    assert model.outcome_.startswith("the rank disparity is near its noise floor (parity_weight ")
    assert "converged" in model.outcome_
    assert 0.0 < model.parity_weight_ < 30.0
    assert model.information_kept_ > 0.7
    new, _, of_new = aware_table(4000, seed=1)
    after = rank_disparity(scores_of(model, new, of_new), sensitive_features=of_new)
    before = rank_disparity(model.initial_estimator_.predict_proba(new)[:, 1], sensitive_features=of_new)
    floor = noise_floor(rank_disparity, scores_of(model), sensitive_features=G, random_state=0)
    assert before > 5 * floor.mean
    assert after < floor.mean + 3 * floor.sd  # that of the training rows, which are fewer


@both
def test_the_smallest_weight_that_does_it_is_taken(cls):
    """A third of it does not: the path goes up by factors of about three, and is narrowed down once."""
    model = cls().fit(X, Y, sensitive_features=G)
    less = cls(parity_weight=model.parity_weight_ / 4).fit(X, Y, sensitive_features=G)
    floor = noise_floor(rank_disparity, scores_of(model), sensitive_features=G, random_state=0).mean
    assert model.before_after_["rank_disparity"][1] < 1.25 * floor < less.before_after_["rank_disparity"][1]


@both
def test_a_coarse_fit_that_promised_too_much_is_followed_by_the_next_weight(cls, monkeypatch):
    choose = AutomaticWeight.choose

    def choose_too_early(self, path, **options):
        best, *rest = choose(self, path, **options)
        early = PathPoint(0.1, best.result, best.metrics)  # a model of more weight is passed off as one of 0.1
        path.put(early)
        return early, *rest

    monkeypatch.setattr(AutomaticWeight, "choose", choose_too_early)
    model, light = cls().fit(X, Y, sensitive_features=G), cls(parity_weight=0.1).fit(X, Y, sensitive_features=G)
    assert model.parity_weight_ == model.path_["weight"][2] > 0.1 == model.path_["weight"][1]
    assert model.before_after_["rank_disparity"][1] < light.before_after_["rank_disparity"][1]


@both
def test_what_the_features_do_not_allow_is_said(cls):
    features, y, group = hopeless_table()
    with pytest.warns(FairnessWarning, match=r"groups still differ by more than chance: on [0-9,]+ rows|were squeezed"):
        model = cls().fit(features, y, sensitive_features=group)
    assert "information" in model.outcome_ or "these features allow no more" in model.outcome_
    assert model.information_kept_ >= MIN_INFORMATION  # never less unasked
    assert model.before_after_["auc"][1] > 0.75


@both
def test_groups_that_differ_by_chance_only_are_left_alone(cls):
    features, y, _ = blind_table()
    group = np.random.default_rng(7).integers(2, size=len(y))
    for parity_weight in ("auto", 1.0):
        model = cls(parity_weight=parity_weight).fit(features, y, sensitive_features=group)
        assert model.outcome_.startswith("the groups of the initial model differ no more than by chance; nothing was")
        np.testing.assert_allclose(
            scores_of(model, features, group), model.initial_estimator_.predict_proba(features)[:, 1], atol=1e-3
        )
        assert model.information_kept_ == 1.0


def test_flexible_models_are_judged_by_rows_they_have_not_seen():
    """Few rows for each column: training rows look fairer than new ones, and the path does not believe them."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(len(Y), 80))
    features = np.column_stack((X, noise))
    model = DOT().fit(features, Y, sensitive_features=G)
    at = int(np.flatnonzero(model.path_["weight"] == model.parity_weight_)[0])
    assert model.path_["rank_disparity"][at] >= 0.9 * model.before_after_["rank_disparity"][1]
    assert model.path_["log_loss"][at] > model.before_after_["log_loss"][1]


@both
@pytest.mark.parametrize("limit", [0.1, 0.03])
def test_a_limit_is_kept_on_training_rows(cls, limit):
    model = cls(max_disparity=limit).fit(X, Y, sensitive_features=G)
    assert model.outcome_.startswith(f"the disparity is at most {limit:g}")
    assert strong_pairwise_disparity(scores_of(model), sensitive_features=G) <= limit + 0.002
    assert model.before_after_["disparity"][1] == pytest.approx(
        strong_pairwise_disparity(scores_of(model), sensitive_features=G), abs=0.002
    )


@both
def test_a_limit_above_the_disparity_changes_nothing(cls):
    model = cls(max_disparity=0.9).fit(X, Y, sensitive_features=G)
    assert model.parity_weight_ == 0.0
    assert "without any weight" in model.outcome_
    np.testing.assert_allclose(scores_of(model), model.initial_estimator_.predict_proba(X)[:, 1], atol=1e-9)


@both
def test_a_limit_that_cannot_be_kept_is_said(cls):
    with pytest.warns(FairnessWarning, match="max_disparity=1e-06 was not reached on training rows"):
        model = cls(max_disparity=1e-6).fit(X, Y, sensitive_features=G)
    assert "no longer lowers the disparity" in model.outcome_


def test_a_limit_may_cost_more_than_half_and_says_so():
    features, y, group = blind_table(gap=2.0)
    with pytest.warns(FairnessWarning, match="Parity cost most of the model"):
        model = DOT(max_disparity=0.03).fit(features, y, sensitive_features=group)
    assert model.information_kept_ < MIN_INFORMATION
    assert "of the initial model's information is left" in model.outcome_
    assert strong_pairwise_disparity(scores_of(model, features, group), sensitive_features=group) < 0.033


@both
def test_the_path_stays_on_the_model(cls):
    model = cls().fit(X, Y, sensitive_features=G)
    path = model.path_
    n = path["weight"].size
    assert n >= 3
    assert (np.diff(path["weight"]) > 0).all()
    assert path["weight"][0] == 0.0
    assert model.parity_weight_ in path["weight"]
    assert path["theta"].shape == (n, 2, 6)  # the shared weights and the common ones, intercept last
    assert path["spread"].shape[:2] == (n, 2)
    for name in ("disparity", "rank_disparity", "log_loss", "information_kept"):
        assert path[name].shape == (n,)
    assert path["disparity"][0] == pytest.approx(model.before_after_["disparity"][0], abs=1e-6)
    assert path["disparity"][-1] < path["disparity"][0] / 4


@both
@owned
def test_another_point_of_the_path_needs_no_new_fit(cls, group_specific, monkeypatch):
    model = cls(group_specific=group_specific).fit(X, Y, sensitive_features=G)
    before = scores_of(model)
    monkeypatch.setattr(TransportClassifier, "fit", None)
    limit = 0.6 * model.path_["disparity"][0]
    point = model.at(max_disparity=limit)
    at = int(np.flatnonzero(model.path_["disparity"] <= limit)[0])
    assert point.parity_weight_ == model.path_["weight"][at]
    assert point.information_kept_ == model.path_["information_kept"][at]
    assert str(f"{point.parity_weight_:g}") in point.outcome_
    measured = strong_pairwise_disparity(scores_of(point), sensitive_features=G)
    assert measured < model.before_after_["disparity"][0]
    if not group_specific:  # otherwise the path is measured out of fold
        assert measured == pytest.approx(model.path_["disparity"][at], abs=0.002)
    np.testing.assert_array_equal(scores_of(model), before)  # the model itself stays as it is
    unmoved = model.at(weight=0.0)
    if not group_specific:
        np.testing.assert_allclose(scores_of(unmoved), model.initial_estimator_.predict_proba(X)[:, 1], atol=1e-9)
    ranks = model.at(max_rank_disparity=float(model.path_["rank_disparity"].min()))
    assert ranks.parity_weight_ == model.path_["weight"][model.path_["rank_disparity"].argmin()]
    assert np.isfinite(scores_of(ranks.set_params(spread="initial"))).all()


def test_points_that_there_are_not():
    model = DOT().fit(X, Y, sensitive_features=G)
    with pytest.raises(ValueError, match="exactly one of max_disparity, max_rank_disparity and weight"):
        model.at()
    with pytest.raises(ValueError, match="exactly one"):
        model.at(max_disparity=0.1, weight=1.0)
    with pytest.raises(ValueError, match=r"No point of the path has a disparity of 0 or less; the lowest is 0\.\d+"):
        model.at(max_disparity=0.0)
    for wrong in (-0.1, np.nan):
        with pytest.raises(ValueError, match="max_disparity"):
            model.at(max_disparity=wrong)
    paper = DOT(solver=SgdSettings(n_updates=100, random_state=0)).fit(X, Y, sensitive_features=G)
    with pytest.raises(ValueError, match="has no path"):
        paper.at(weight=1.0)


@both
@owned
def test_a_path_of_fits_is_as_good_as_single_fits(cls, group_specific):
    weights = [0.0, 0.3, 1.0, 3.0]
    models = cls(group_specific=group_specific).fit_path(X, Y, weights, sensitive_features=G)
    assert [m.parity_weight_ for m in models] == [m.parity_weight for m in models] == weights
    for weight, model in zip(weights, models, strict=True):
        alone = cls(group_specific=group_specific, parity_weight=weight).fit(X, Y, sensitive_features=G)
        # The penalty is not convex, and runs end within their tolerance of a minimum.
        assert np.abs(scores_of(model) - scores_of(alone)).mean() < 0.02
        assert model.before_after_["log_loss"][1] == pytest.approx(alone.before_after_["log_loss"][1], abs=0.005)
        assert model.before_after_["disparity"][1] == pytest.approx(alone.before_after_["disparity"][1], abs=0.01)


def test_a_path_ascends_and_is_one_of_the_default_solver():
    model = DOT()
    with pytest.raises(ValueError, match="parity_weights must ascend"):
        model.fit_path(X, Y, [1.0, 0.5], sensitive_features=G)
    with pytest.raises(ValueError, match="parity_weights"):
        model.fit_path(X, Y, [0.0, np.nan], sensitive_features=G)
    with pytest.raises(ValueError, match="needs solver='lbfgs'"):
        DOT(solver="sgd").fit_path(X, Y, [0.0, 1.0], sensitive_features=G)
    with pytest.raises(ValueError, match="tol"):
        DOT(tol=0.0).fit_path(X, Y, [0.0, 1.0], sensitive_features=G)
    assert not hasattr(model, "coef_")  # the estimator itself is not fitted


def made_path(excess, kept):
    """A path whose metrics are functions of the weight."""

    class Stub:
        def evaluate(self, scores):
            weight = float(scores[0])
            metrics = dict.fromkeys(ScoreMetrics.__annotations__, 0.0)
            return ScoreMetrics(**metrics | {"excess": excess(weight), "information_kept": kept(weight)})

    def fit(weight, start):
        return LbfgsResult(np.zeros((1, 2)), True, 1, []), np.array([weight])

    return WeightPath(fit, Stub())


def test_a_small_error_of_the_disparity_moves_the_weight_little():
    """Solvers stop at a tolerance: two runs that agree to a percent must not choose weights that differ by four."""

    def chosen(error):
        curve = {0.0: 9.0, 0.1: 8.0, 0.3: 6.0, 1.0: 4.4, 4.0: 4.1, 15.0: 2.2 * (1.0 + error), 60.0: 2.0}
        known = np.array(list(curve)), np.array(list(curve.values()))
        path = made_path(lambda weight: float(np.interp(weight, *known)), kept=lambda w: 1.0 - w / 150.0)
        return AutomaticWeight().choose(path)[0].weight

    assert 0.9 <= chosen(0.01) / chosen(-0.01) <= 1.25


def test_no_weight_is_taken_where_a_smaller_one_is_better_in_both():
    """Training for much parity may end in a poor optimum, with less information and more disparity."""
    curve = {0.0: 9.0, 0.1: 8.0, 0.3: 6.0, 1.0: 4.0, 4.0: 2.0, 15.0: 3.0, 60.0: 4.0}
    known = np.array(list(curve)), np.array(list(curve.values()))
    path = made_path(lambda weight: float(np.interp(weight, *known)), kept=lambda w: 1.0 - w / 50.0)
    chosen, reason, is_reached = AutomaticWeight().choose(path)
    assert 1.0 < chosen.weight <= 4.0
    assert chosen.metrics.excess < 2.5  # at the largest weight that keeps half of the information it is above 3
    assert "more weight no longer lowers the disparity" in reason
    assert not is_reached


@both
def test_figures_of_before_and_after(cls):
    model = cls(parity_weight=1.0).fit(X, Y, sensitive_features=G)
    figures = model.before_after_
    assert set(figures) == {"log_loss", "auc", "spread", "disparity", "rank_disparity"}
    initial, trained = model.initial_estimator_.predict_proba(X)[:, 1], scores_of(model)
    for at, scores in enumerate((initial, trained)):
        assert figures["spread"][at] == pytest.approx(scores.std(), abs=1e-6)
        assert figures["rank_disparity"][at] == pytest.approx(rank_disparity(scores, sensitive_features=G), abs=0.002)
        assert figures["auc"][at] == pytest.approx(roc_auc_score(Y, scores), abs=1e-6)
        losses = -np.where(Y == 1, np.log(scores), np.log1p(-scores))
        assert figures["log_loss"][at] == pytest.approx(losses.mean(), abs=1e-6)
    before, after = (1.0 - np.mean((scores - Y) ** 2) / np.var(Y) for scores in (initial, trained))
    assert model.information_kept_ == pytest.approx(after / before, abs=1e-6)


@both
@pytest.mark.parametrize("parity_weight", [10.0, 30.0])
def test_a_model_without_information_is_never_called_converged_only(cls, parity_weight):
    features, y, group = hopeless_table()
    with pytest.warns(FairnessWarning, match=r"Parity cost most of the model.*the AUC fell from 0\.\d+ to") as caught:
        model = cls(parity_weight=parity_weight).fit(features, y, sensitive_features=group)
    assert model.information_kept_ < 0.1
    assert "information is left" in model.outcome_ or "nearly constant" in model.outcome_
    advice = str(caught[0].message)
    for word in ("parity_weight='auto'", "QuantileRepairClassifier", "group_specific=True", "amount"):
        assert word in advice


@both
def test_squeezed_scores_are_called_so(cls):
    """In score units a penalty is won by moving all scores together; the order of people stays as it was."""
    features, y, group = hopeless_table()
    with pytest.warns(FairnessWarning, match="Scores were squeezed: the disparity fell by"):
        model = cls(parity_weight=1.0, scale="score").fit(features, y, sensitive_features=group)
    assert "scores were squeezed" in model.outcome_
    figures = model.before_after_
    assert figures["disparity"][1] < 0.75 * figures["disparity"][0]
    assert figures["rank_disparity"][1] > 0.9 * figures["rank_disparity"][0]


def test_standardized_scores_are_not_squeezed():
    features, y, group = blind_table(gap=0.5)
    model = DOT(parity_weight=0.5).fit(features, y, sensitive_features=group)
    figures = model.before_after_
    shares = [figures[name][1] / figures[name][0] for name in ("disparity", "rank_disparity")]
    assert shares[0] == pytest.approx(shares[1], abs=0.1)


@both
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_disparity": 0.1, "solver": "sgd"}, "max_disparity needs"),
        ({"solver": {"n_updates": 5}}, "an instance of SgdSettings; got a dict"),
    ],
)
def test_bad_parameters(cls, change, words):
    with pytest.raises((TypeError, ValueError), match=words):
        cls(**change).fit(X, Y, sensitive_features=G)


@both
def test_every_model_of_a_path_has_the_whole_path(cls, tmp_path):
    models = cls().fit_path(X, Y, [0.0, 0.3, 1.0], sensitive_features=G)
    for model in models:
        assert {len(column) for column in model.path_.values()} == {3}
        np.testing.assert_array_equal(model.at(weight=1.0).coef_, models[-1].coef_)
    ft.save(models[0], tmp_path / "model.ft")
    assert len(ft.load(tmp_path / "model.ft").path_["theta"]) == 3


@pytest.mark.parametrize("power", [0.4, 0.8, 1.5, 3.0])
@pytest.mark.parametrize("half", [0.2, 0.7, 1.3, 5.0, 11.0, 40.0])
def test_few_fits_find_a_weight_that_keeps_little_more_information_than_required(half, power):
    path = made_path(
        lambda weight: 1.3 + 20.0 / (1.0 + weight), kept=lambda weight: 1.0 / (1.0 + (weight / half) ** power)
    )
    chosen, reason, is_reached = AutomaticWeight().choose(path)
    assert "would leave less than half" in reason
    assert not is_reached
    assert MIN_INFORMATION <= chosen.metrics.information_kept < MIN_INFORMATION + 0.1
    fits_of_the_path = 1 + sum(weight < chosen.weight for weight in PATH_WEIGHTS)
    assert len(path.points) - fits_of_the_path <= 3


def test_on_a_cliff_of_the_information_a_weight_at_its_edge_is_found():
    """As boosted trees lost it on Communities, where interpolation alone ended with 90 %, at twice the disparity."""
    curve = {0.3: 1.0, 1.075: 0.895, 1.255: 0.576, 1.323: 0.483, 1.477: 0.368, 1.774: 0.351, 3.0: 0.188}
    weights, kept = (np.array(list(one)) for one in (curve, curve.values()))
    path = made_path(
        lambda weight: 1.3 + 20.0 / (1.0 + weight),
        kept=lambda weight: float(np.interp(np.log(max(weight, 1e-9)), np.log(weights), kept)),
    )
    chosen, _, _ = AutomaticWeight(weights=(3.0, 10.0)).choose(path)
    assert MIN_INFORMATION <= chosen.metrics.information_kept < MIN_INFORMATION + 0.1


def test_a_weight_is_tried_where_little_disparity_is_left_to_cost_information():
    """On a cliff a line in the weight says that too little would be left, but the cliff ends at parity."""
    curve = {0.0: 30.0, 0.1: 28.0, 0.3: 22.0, 1.0: 1.5, 4.0: 0.8}
    kept = {0.0: 1.0, 0.1: 0.99, 0.3: 0.95, 1.0: 0.57, 4.0: 0.54}
    of_curve, of_kept = ((np.array(list(one)), np.array(list(one.values()))) for one in (curve, kept))
    path = made_path(
        lambda weight: float(np.interp(weight, *of_curve)), kept=lambda weight: float(np.interp(weight, *of_kept))
    )
    chosen, reason, is_reached = AutomaticWeight().choose(path)
    assert (chosen.weight > 1.0, reason, is_reached) == (True, "the rank disparity is at its noise floor", True)
