"""Models and repairs say what held-out rows show, and do no harm."""

import dataclasses
import re
import warnings
from types import SimpleNamespace

import lightgbm
import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import r2_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler, TargetEncoder
from tests.worlds import people

import fairtransport as ft
from fairtransport._sklearn import deal_rows
from fairtransport.boosting import _search
from fairtransport.criteria.criterion import resolve_criterion
from fairtransport.groups import make_groups
from fairtransport.linear import _training
from fairtransport.metrics import rank_disparity
from fairtransport.repair import quantile_models
from fairtransport.repair.blind import _fitting
from fairtransport.training.evaluation import share_kept
from fairtransport.training.outcome import Notice, describe_change, describe_weight, evaluated_change, held_out_change

FOREST = RandomForestClassifier(40, random_state=0)
MEMORIES = {
    "forest": FOREST,
    "boosted": lightgbm.LGBMClassifier(n_estimators=60, verbose=-1, n_jobs=1),
    "neighbours": KNeighborsClassifier(5),
}


def world(n, seed, **options):
    return people(n, seed, groups=("a", "b", "c"), shift=(0.5, 0.5, 0.0, 0.0), coef=(1.0, 0.5, 0.5, 0.0), **options)


def measured(model, X, y, group):
    scores = model.predict_proba(X, sensitive_features=group)[:, 1]
    return np.mean((scores > 0.5) != y), rank_disparity(scores, sensitive_features=group)


@pytest.mark.parametrize("name", MEMORIES)
def test_a_model_that_memorises_is_repaired_by_scores_of_rows_it_has_not_seen(name):
    X, y, group = world(1500, 0)
    new = world(6000, 1)
    found = {}
    for cv in ("auto", None):
        model = ft.QuantileRepairClassifier(MEMORIES[name], cv=cv).fit(X, y, sensitive_features=group)
        found[cv] = measured(model, *new)
    plain = measured(model.set_params(amount=0.0), *new)
    assert found["auto"][1] < min(0.7 * plain[1], found[None][1] + 0.01)
    assert found["auto"][0] < found[None][0] + 0.01


@pytest.mark.parametrize(
    ("inner", "in_sample"),
    [
        (LogisticRegression(), True),
        (make_pipeline(StandardScaler(), LogisticRegression()), True),
        (
            make_pipeline(
                KBinsDiscretizer(5, encode="ordinal"), TargetEncoder(target_type="binary"), LogisticRegression()
            ),
            False,
        ),
        (FOREST, False),
    ],
)
def test_scores_of_the_rows_of_fit_are_used_only_where_the_model_cannot_memorise(inner, in_sample):
    X, y, group = world(600, 0)
    automatic, own = (
        ft.QuantileRepairClassifier(inner, cv=cv).fit(X, y, sensitive_features=group) for cv in ("auto", None)
    )
    same = np.array_equal(*(m.predict_proba(X, sensitive_features=group) for m in (automatic, own)))
    assert same is in_sample
    few = slice(150)  # fewer than 50 rows for each weight
    automatic, own = (
        ft.QuantileRepairClassifier(inner, cv=cv).fit(X[few], y[few], sensitive_features=group[few])
        for cv in ("auto", None)
    )
    assert not np.array_equal(*(m.predict_proba(X, sensitive_features=group) for m in (automatic, own)))


def test_what_was_kept_is_that_of_new_rows():
    X, y, group = world(4000, 0, real=True)
    new, y_new, group_new = world(20_000, 1, real=True)
    model = ft.QuantileRepairRegressor(LinearRegression()).fit(X, y, sensitive_features=group)
    after = r2_score(y_new, model.predict(new, sensitive_features=group_new))
    before = r2_score(y_new, model.estimator_.predict(new))
    assert model.information_kept_ == pytest.approx(after / before, abs=0.02)
    blind = ft.BlindRepairRegressor(LinearRegression()).fit(X, y, sensitive_features=group)
    assert blind.information_kept_ == pytest.approx(r2_score(y_new, blind.predict(new)) / before, abs=0.1)
    assert blind.information_kept_ < model.information_kept_ < 1.0


@pytest.mark.parametrize("real", [False, True])
def test_what_was_kept_is_that_of_the_amount(real):
    X, y, group = world(2000, 0, real=real)
    weights = np.random.default_rng(5).integers(0, 3, size=2000)
    base = LinearRegression() if real else LogisticRegression()
    model = (ft.QuantileRepairRegressor if real else ft.QuantileRepairClassifier)(base)
    model.fit(X, y, sensitive_features=group, sample_weight=weights)
    kept = {amount: model.set_params(amount=amount).information_kept_ for amount in (0.0, 0.3, 0.7, 1.0)}
    assert kept[0.0] == 1.0 > kept[0.3] > kept[0.7] > kept[1.0]
    for amount, share in kept.items():
        model.set_params(amount=amount).fit(X, y, sensitive_features=group, sample_weight=weights)
        assert model.information_kept_ == pytest.approx(share, rel=1e-12)
    curve = ft.frontier(model, X, y, sensitive_features=group, cv=3, random_state=0)
    chosen = curve.choose(max_disparity=0.6 * curve.mean("criterion_disparity")[0])
    model.set_params(amount=chosen.amount).fit(X, y, sensitive_features=group)
    assert chosen.information_kept_ == model.information_kept_ < 1.0


def test_a_choice_on_a_curve_is_obeyed():
    """A full repair that is not asked for would be undone here; the curve measured it, and the user chose it."""
    X, y, group = people(1500, 7, groups=("a", "b", "c"), shift=(0.0, 0.0, 0.0, 0.0), coef=(1.0, 0.5, 0.5, 0.0))
    model = ft.QuantileRepairClassifier(LogisticRegression())
    curve = ft.frontier(model, X, y, sensitive_features=group, amounts=[0.0, 1.0], random_state=0)
    curve.folds["criterion_disparity"][:] = [0.1, 0.0]
    chosen = curve.choose(max_disparity=0.0)
    scores = chosen.predict_proba(X, sensitive_features=group)
    maps = ft.QuantileRepair().fit(chosen.estimator_.predict_proba(X)[:, 1], sensitive_features=group)
    repaired = maps.transform(chosen.estimator_.predict_proba(X)[:, 1], sensitive_features=group)
    np.testing.assert_array_equal(scores[:, 1], repaired)
    assert chosen.information_kept_ < 1.0
    with pytest.warns(ft.FairnessWarning, match="The plain model is kept"):
        assert model.fit(X, y, sensitive_features=group).information_kept_ == 1.0


@pytest.mark.parametrize(
    ("before", "after", "kept"), [(0.7, 0.7, 1.0), (0.7, 0.85, 0.5), (0.7, 1.3, -1.0), (1.2, 1.0, 1.0)]
)
def test_the_share_that_is_kept(before, after, kept):
    assert share_kept(before, after) == pytest.approx(kept)


def test_a_repair_is_silent_where_held_out_rows_show_parity():
    model, (X, y, group) = ft.QuantileRepairClassifier(LogisticRegression()), world(60_000, 0)
    with warnings.catch_warnings(action="error"):
        model.fit(X, y, sensitive_features=group)
    with pytest.warns(ft.FairnessWarning, match=r"Parity cannot be shown: .* of 1,500 rows .* up to 0\.\d+ with 95 %"):
        model.fit(X[:1500], y[:1500], sensitive_features=group[:1500])


@pytest.mark.parametrize("name", ["linear", "repair", "blind"])
def test_differences_that_chance_shows_are_left_alone(name):
    """Moving groups that do not differ sets them apart: new rows show the noise of the rows of fit, and their own."""
    model = {
        "linear": ft.TransportClassifier(),
        "repair": ft.QuantileRepairClassifier(LogisticRegression()),
        "blind": ft.BlindRepairClassifier(LogisticRegression()),
    }[name]
    X, y, group = people(1500, 7, groups=("a", "b", "c"), shift=(0.0, 0.0, 0.0, 0.0), coef=(1.0, 0.5, 0.5, 0.0))
    with warnings.catch_warnings(action="ignore"):
        model.fit(X, y, sensitive_features=group)
        options = {"sensitive_features": group} if model.needs_groups_ else {}
        fair, plain = model.predict_proba(X, **options), model.set_params(amount=0.0).predict_proba(X, **options)
    np.testing.assert_allclose(fair, plain, atol=1e-9)
    assert model.information_kept_ == 1.0


def test_parts_do_not_tell_equal_rows_apart():
    """A model without all rows of one kind with label 1 would have learned that the kind has label 0."""
    rng = np.random.default_rng(0)
    keys, labels, groups = rng.integers(400, size=3000).astype(float), rng.integers(2, size=3000), np.arange(3000) % 3
    part = deal_rows(keys, labels, groups, 5, np.random.default_rng(0))
    assert all(np.unique(part[keys == key]).size == 1 for key in range(400))
    keys[rng.random(3000) < 0.4] = 0.0  # the score of many, which maps of each half need
    half = deal_rows(keys, labels, groups, 2, np.random.default_rng(0))
    assert np.bincount(half[keys == 0.0]) == pytest.approx(np.count_nonzero(keys == 0.0) / 2, rel=0.05)


class Unstable(ClassifierMixin, BaseEstimator):
    """Gives the last column a weight that a single row more or less changes."""

    def fit(self, X, y):
        self.classes_, self.weight_ = np.unique(y), np.sin(1e4 * X.mean())
        return self

    def predict_proba(self, X):
        positive = expit(X[:, 0] + self.weight_ * X[:, -1])
        return np.column_stack((1.0 - positive, positive))


def test_limits_hold_for_maps_of_other_models():
    """Where each model parts the groups in its own way, halves with rows of all folds would look alike."""
    rng = np.random.default_rng(1)
    group = rng.integers(2, size=18_000)
    X = rng.normal(size=(18_000, 2)) + group[:, None]
    y = (X[:, 0] + rng.logistic(size=18_000) > 0.5).astype(int)
    model = ft.QuantileRepairClassifier(Unstable())
    with pytest.warns(ft.FairnessWarning, match="differ by more than chance") as caught:
        model.fit(X[:9000], y[:9000], sensitive_features=group[:9000])
    limit = float(re.search(r"at most (0\.\d+) with 95 %", str(caught[-1].message))[1])
    assert 0.04 < measured(model, X[9000:], y[9000:], group[9000:])[1] < limit


def test_repairs_at_their_noise_floor_are_seldom_said_to_differ(monkeypatch):
    """Maps of other rows add their own noise to that of the rows they are judged by: 1 of 20, not 1 of 2."""
    changes = []
    keep = lambda *rows, **rest: changes.append(held_out_change(*rows, **rest)) or changes[-1]  # noqa: E731
    monkeypatch.setattr(quantile_models, "held_out_change", keep)
    for seed in range(20):
        X, y, group = people(2000, seed, groups=list("abcd"), shift=(0.8, 0.8, 0.0))
        ft.QuantileRepairClassifier(LogisticRegression()).fit(X, y, sensitive_features=group)
    assert sum(each.evidence.shows_difference for each in changes) <= 3


def test_little_that_is_kept_is_said():
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=3000)
    X = group[:, None] + 0.3 * rng.normal(size=(3000, 1))
    y = X[:, 0] + 0.5 * rng.normal(size=3000)
    blind = ft.BlindRepairRegressor(LinearRegression(), slack=0.01)  # automatic, it would end where half is kept
    for model in (ft.QuantileRepairRegressor(LinearRegression()), blind):
        with pytest.warns(ft.FairnessWarning, match=r"keeps \d+% of what the plain model explains"):
            model.fit(X, y, sensitive_features=group)
        assert model.information_kept_ < 0.5
    assert ft.BlindRepairRegressor(LinearRegression()).fit(X, y, sensitive_features=group).information_kept_ > 0.5


def test_blind_repair_that_would_harm_is_not_done(monkeypatch):
    def harmful(before, after, *rest, **options):
        change = held_out_change(before, after, *rest, **options)
        return dataclasses.replace(change, rank_disparity=(0.05, 0.3), error=(0.2, 0.4))

    monkeypatch.setattr(_fitting, "held_out_change", harmful)
    X, y, group = world(600, 0)
    with pytest.warns(ft.FairnessWarning, match="Blind repair does not help: .*The plain model is kept"):
        model = ft.BlindRepairClassifier(LogisticRegression(), LogisticRegression()).fit(X, y, sensitive_features=group)
    np.testing.assert_allclose(model.predict_proba(X), model.estimator_.predict_proba(X), atol=1e-9)
    assert model.information_kept_ == 1.0
    with pytest.warns(ft.FairnessWarning, match="Blind repair does not help: (?!.*The plain model is kept)"):  # obeyed
        model.set_params(slack=0.02).fit(X, y, sensitive_features=group)
    assert np.abs(model.predict_proba(X) - model.estimator_.predict_proba(X)).max() > 0.01


def test_a_group_of_three_rows_is_not_judged():
    X, y, group = world(1500, 0)
    few = np.where(np.arange(1500) < 3, "few", group)
    shown = {}
    for name, groups in (("all", group), ("few", few)):
        said = "does not help: on 1,500 rows that it was not fitted to, the mean rank"
        with pytest.warns(ft.FairnessWarning, match=said) as caught:
            ft.QuantileRepairClassifier(KNeighborsClassifier(1)).fit(X, y, sensitive_features=groups)
        shown[name] = [float(x) for x in re.findall(r"\d\.\d{3}", str(caught[-1].message))[:4]]
    np.testing.assert_allclose(shown["few"], shown["all"], atol=0.02)


def sparse_groups(n, seed, n_groups=2, n_columns=8):
    """Groups that do not differ, unless each has weights of its own: what predicts y is not the same in each."""
    rng = np.random.default_rng(seed)
    group = rng.integers(n_groups, size=n)
    X = rng.normal(size=(n, n_columns))
    return X, (X[:, 0] + 0.4 * (group == 0) + rng.logistic(size=n) > 0.0).astype(int), group


def fitted(model, X, y, group):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sensitive_features=group)
    return model, [str(each.message) for each in caught if each.category is ft.FairnessWarning]


@pytest.mark.parametrize("parity_weight", ["auto", 1.0])
def test_own_weights_do_not_part_groups_that_the_plain_model_treats_alike(parity_weight):
    X, y, group = sparse_groups(3000, 0)
    new, y_new, group_new = sparse_groups(10_000, 1)
    model, _ = fitted(ft.TransportClassifier(group_specific=True, parity_weight=parity_weight), X, y, group)
    assert measured(model, new, y_new, group_new)[1] < 0.03
    free, said = fitted(ft.TransportClassifier(group_specific=True, parity_weight=0.0), X, y, group)  # obeyed
    assert measured(free, new, y_new, group_new)[1] > 0.05
    assert said[-1].startswith("Training for parity does not help: on 3,000 rows that it was not fitted to")
    assert said[-1].endswith("Shared weights or repair (QuantileRepairClassifier) may do better.")


@pytest.mark.parametrize("group_specific", [False, True])
def test_an_automatic_weight_that_would_harm_is_not_used(group_specific, monkeypatch):
    def harmful(*arguments, **options):
        change = evaluated_change(*arguments, **options)
        return dataclasses.replace(change, rank_disparity=(0.05, 0.3), error=(0.2, 0.4))

    monkeypatch.setattr(_training, "evaluated_change", harmful)
    X, y, group = world(1500, 0)
    model, said = fitted(ft.TransportClassifier(group_specific=group_specific), X, y, group)
    scores = model.predict_proba(X, sensitive_features=group)
    np.testing.assert_allclose(scores, model.initial_estimator_.predict_proba(X), atol=1e-9)
    assert (model.parity_weight_, model.information_kept_) == (0.0, 1.0)
    assert model.outcome_.startswith("training for parity does not help: the plain model is kept")
    assert "Training for parity does not help: on 1,500 rows that" in said[-1]
    assert "The plain model is kept (at most" in said[-1]
    model, said = fitted(model.set_params(parity_weight=1.0), X, y, group)
    assert "Training for parity does not help" in said[-1]
    assert "The plain model is kept" not in said[-1]
    assert np.abs(model.predict_proba(X, sensitive_features=group) - scores).max() > 0.01


@pytest.mark.parametrize("model", [ft.TransportClassifier(), ft.TransportClassifier(group_specific=True)])
def test_the_model_of_a_path_at_its_own_weight_is_the_model(model):
    X, y, group = world(1200, 0)
    model, _ = fitted(model, X, y, group)
    same = model.at(weight=model.parity_weight_)
    for one in (model, same):
        one.set_params(spread="initial")
    np.testing.assert_array_equal(*(m.predict_proba(X, sensitive_features=group) for m in (model, same)))
    assert (same.outcome_, same.information_kept_) == (model.outcome_, model.information_kept_)
    index = model.path_["weight"].tolist().index(model.parity_weight_)
    assert model.path_["information_kept"][index] == model.information_kept_


def test_the_noise_floor_is_claimed_only_where_rows_can_show_it():
    shown = {}
    for n in (1_000, 40_000):
        shown[n] = fitted(ft.TransportClassifier(), *people(n, 0, shift=(0.5, 0.0, 0.0), aware=True))
    model, said = shown[1_000]
    assert "at its noise floor" not in model.outcome_
    assert float(re.search(r"cannot exclude a difference of (\d+\.\d) percentage points", model.outcome_)[1]) > 5.0
    assert said[-1].startswith("Parity cannot be shown: the mean rank disparity of 1,000 rows that it was fitted to")
    model, said = shown[40_000]
    assert model.outcome_.startswith("the rank disparity is at its noise floor")
    assert not said


def test_an_outcome_of_training_rows_and_held_out_rows_says_which_it_speaks_of():
    """It was "near its noise floor; differ by more than chance"."""
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=4000)
    before, after = rng.normal(size=4000) + group, rng.normal(size=4000) + 0.5 * group
    pairs = resolve_criterion("demographic_parity", make_groups(group)).comparisons()
    change = held_out_change(before, after, rng.integers(2, size=4000), pairs, classifies=True)
    assert change.helps
    assert change.is_above_chance
    metrics = SimpleNamespace(information_kept=0.9, excess=1.0, rank_distance=0.0)
    choice = {"reason": "the rank disparity is at its noise floor", "reached": True, "parity_weight": 1.0}
    rest = {"metrics": metrics, "max_disparity": None, "remedy": "Repair", "change": change}
    outcome = describe_weight(Notice("converged"), Notice(), **choice, **rest)
    assert describe_change(outcome, change, "Training for parity", "").text == (
        "the rank disparity is near its noise floor on training rows (parity_weight 1); converged; after training for "
        "parity, the groups still differ by more than chance on held-out rows"
    )


def test_a_bound_advises_to_pool_small_groups_only_where_there_are_more_than_two():
    rng = np.random.default_rng(0)
    for n_groups, pooling in ((2, False), (3, True)):
        group = rng.integers(n_groups, size=300)
        pairs = resolve_criterion("demographic_parity", make_groups(group)).comparisons()
        change = held_out_change(*rng.normal(size=(2, 300)), rng.integers(2, size=300), pairs, classifies=True)
        ((message, _),) = describe_change(Notice("converged"), change, "Training for parity", "").warnings
        assert "A larger sample narrows this bound" in message
        assert ("; so does pooling small groups with groups=GroupPolicy(small='pool')." in message) == pooling


def test_a_regression_is_reported_by_r_squared():
    rng = np.random.default_rng(0)
    group, y = rng.integers(2, size=3000), rng.normal(size=3000)
    pairs = resolve_criterion("demographic_parity", make_groups(group)).comparisons()
    change = held_out_change(y + group, 0.0 * y + group, y, pairs, classifies=False)
    ((message, _),) = change.notice("Training for parity", "").warnings
    before, after = (f"{r2_score(y, scores):.3f}" for scores in (y + group, 0.0 * y + group))
    assert f"and R squared from {before} to {after}" in message


def test_nothing_is_advised_that_is_set_already():
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=2000)
    X = 3.0 * group[:, None] + rng.normal(size=(2000, 2))
    y = (X[:, 0] + rng.logistic(size=2000) > 1.5).astype(int)
    for options in ({}, {"parity_weight": 30.0}, {"group_specific": True}, {"scale": "score", "parity_weight": 1.0}):
        model, said = fitted(ft.TransportClassifier(**options), X, y, group)
        assert said
        for name in ("parity_weight", "scale", "group_specific"):
            assert not any(f"{name}={getattr(model, name)!r}" in message for message in said), (name, said)


def test_a_group_whose_rows_others_have_too_is_spread():
    keys = np.append(np.arange(400.0), np.arange(30.0))
    groups = np.repeat([0, 1], [400, 30])
    for seed in range(20):
        part = deal_rows(keys, np.zeros(430), groups, 5, np.random.default_rng(seed))
        assert np.bincount(part[groups == 1]).tolist() == [6] * 5
        assert (part[:30] == part[400:]).all()


@pytest.mark.parametrize("few", [1, 2, 3])
def test_a_tiny_group_may_be_in_one_half_only(few):
    X, y, _ = people(1000)
    group = np.where(np.arange(1000) < few, "c", np.where(np.arange(1000) % 2, "a", "b"))
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(1000)
        model = ft.QuantileRepairClassifier(RandomForestClassifier(20, max_depth=3, random_state=0))
        model.fit(X[order], y[order], sensitive_features=group[order], sample_weight=np.ones(1000))
        assert 0 <= model.information_kept_ <= 1


@pytest.mark.parametrize(("shift", "said"), [(0.0, "cannot exclude a difference"), (1.0, "differ by more than chance")])
def test_fits_within_strata_say_what_their_rows_show(shift, said):
    X, y, group = people(4000, 7, groups=("a", "b"), shift=(shift, 0.0, 0.0, 0.0), coef=(1.0, 0.5, 0.5, 0.0))
    strata = np.random.default_rng(0).integers(5, size=4000)
    with pytest.warns(ft.FairnessWarning, match=r"\(.*chance alone shows 0\.0\d\d\)"):
        model = ft.TransportClassifier().fit(X, y, sensitive_features=group, strata=strata)
    assert said in model.outcome_
    assert (model.parity_weight_ > 0.0) == (shift > 0.0)


@pytest.mark.parametrize("kind", ["strata", "draws"])
def test_repairs_within_strata_or_by_draws_are_undone_where_they_do_not_help(kind, tmp_path):
    rng = np.random.default_rng(3)
    y, group, strata = (rng.integers(k, size=1200) for k in (2, 3, 4))
    X, strata = rng.normal(size=(1200, 2)) + y[:, None], strata if kind == "strata" else None
    repair = ft.QuantileRepair() if kind == "strata" else ft.QuantileRepair(criterion="equalized_odds", randomize=True)
    model = ft.QuantileRepairClassifier(LogisticRegression(), repair)
    said = r"The repair does not help: on 1,200 rows .*The plain model is kept \(at most 0\.\d+ with"
    with pytest.warns(ft.FairnessWarning, match=said):
        model.fit(X, y, sensitive_features=group, strata=strata)
    plain = model.estimator_.predict_proba(X)
    columns = {"sensitive_features": group, "strata": strata}
    np.testing.assert_allclose(model.predict_proba(X, **columns), plain, atol=1e-12)
    assert model.information_kept_ == 1.0
    ft.save(model, tmp_path / "model.ft")
    np.testing.assert_allclose(ft.load(tmp_path / "model.ft").predict_proba(X, **columns), plain, atol=1e-12)
    if strata is None:  # rows may still be named
        np.testing.assert_allclose(model.predict_proba(X, keys=np.arange(1200), **columns), plain, atol=1e-12)


@pytest.mark.parametrize("kind", ["strata", "draws", "similar y"])
def test_limits_of_repairs_within_strata_or_by_draws_hold_on_new_rows(kind):
    """The stated limit of the mean rank disparity within labels or strata is that of new rows."""
    n, rng = 6000, np.random.default_rng(9)
    X, y, group = world(2 * n, 0, real=kind == "similar y")
    strata = rng.integers(3, size=2 * n) if kind == "strata" else None
    odds = {} if kind == "strata" else {"criterion": "equalized_odds"}
    repair = ft.QuantileRepair(randomize=kind == "draws", **odds)
    model = ft.QuantileRepairClassifier(LogisticRegression(), repair)
    if kind == "similar y":
        model = ft.QuantileRepairRegressor(LinearRegression(), repair)
    with pytest.warns(ft.FairnessWarning, match=r"(cannot be shown|differ by more than chance)") as caught:
        model.fit(X[:n], y[:n], sensitive_features=group[:n], strata=None if strata is None else strata[:n])
    limit = float(re.search(r"(?:at most|up to) (0\.\d+) with 95 %", str(caught[-1].message))[1])
    columns = {"sensitive_features": group[n:], "strata": None if strata is None else strata[n:]}
    predict = model.predict if kind == "similar y" else lambda *a, **k: model.predict_proba(*a, **k)[:, 1]
    scores, shown = predict(X[n:], **columns), []
    cells = strata[n:] if strata is not None else y[n:]
    if kind == "similar y":
        cells = np.digitize(cells, np.quantile(cells, [0.2, 0.4, 0.6, 0.8]))
    plain = model.set_params(amount=0.0)
    before = predict(X[n:], **columns)
    for values in (before, scores):
        parts = [rank_disparity(values[cells == c], sensitive_features=group[n:][cells == c]) for c in np.unique(cells)]
        shown.append(np.mean(parts))
    assert shown[1] < min(limit, 0.7 * shown[0])
    assert plain.information_kept_ == 1.0 > model.set_params(amount=1.0).information_kept_ > 0.5


def test_boosting_with_given_rounds_and_weight_is_compared_with_the_plain_model(monkeypatch):
    X, y, group = world(1500, 0)
    trees = lightgbm.LGBMClassifier(n_estimators=40, num_leaves=15, min_child_samples=5, verbose=-1, n_jobs=1)
    model = ft.TransportBoostingClassifier(trees, parity_weight=3.0, random_state=0)
    shown = []
    keep = lambda *rows, **rest: shown.append(held_out_change(*rows, **rest)) or shown[-1]  # noqa: E731
    monkeypatch.setattr(_search, "held_out_change", keep)
    _, said = fitted(model, X, y, group)
    (change,) = shown
    assert change.evidence.n_rows == pytest.approx(500, abs=3)
    assert (model.n_iter_, model.parity_weight_) == (40, 3.0)
    assert any("Training for parity does not help: on 500 rows that" in text for text in said) == change.is_harm
    scores = model.predict_proba(X)
    monkeypatch.setattr(type(model), "_held_out_rows", lambda *_: None)
    unchecked, _ = fitted(model, X, y, group)
    np.testing.assert_array_equal(unchecked.predict_proba(X), scores)  # obeyed, and not changed by the check


def test_boosting_with_given_rounds_and_weight_warns_of_harm(monkeypatch):
    def harmful(*rows, **options):
        change = held_out_change(*rows, **options)
        return dataclasses.replace(change, rank_disparity=(0.05, 0.3), error=(0.2, 0.4))

    monkeypatch.setattr(_search, "held_out_change", harmful)
    trees = lightgbm.LGBMClassifier(n_estimators=40, verbose=-1, n_jobs=1)
    X, y, group = world(1500, 0)
    model, said = fitted(ft.TransportBoostingClassifier(trees, parity_weight=1.0, random_state=0), X, y, group)
    assert model.parity_weight_ == 1.0
    assert "Training for parity does not help: on 500 rows that it was not fitted to" in said[-1]
    assert "The plain model is kept" not in said[-1]
