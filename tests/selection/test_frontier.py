"""The trade-off curve: held-out metrics, the choice of a point, every group in every fold."""

import os
import signal
import threading
import warnings
from dataclasses import replace
from functools import partial

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests.worlds import people

import fairtransport as ft
from fairtransport import QuantileRepair, QuantileRepairClassifier, TransportClassifier
from fairtransport._sklearn import describe_group_features, make_folds
from fairtransport.groups import make_groups
from fairtransport.linear import SgdSettings
from fairtransport.metrics import disparities, error_rate, noise_floor, pairwise_disparity, rank_disparity
from fairtransport.selection._frontier_search import _PermutedGroups
from fairtransport.selection.frontier_result import CURVE_METRICS, Frontier
from fairtransport.transport.line import Sample
from fairtransport.transport.targets import w1_barycenter

DOT = partial(TransportClassifier, distance="discrete")


def world(n=400, seed=0):
    return people(n, seed, groups=("secret_f", "secret_m"), p=[0.4, 0.6], shift=(1.5, 0.0, 0.0))


X, Y, G = world()
REPAIR = QuantileRepairClassifier(LogisticRegression(), repair=QuantileRepair(target="barycenter"))
COT = TransportClassifier()
SGD = TransportClassifier(solver=SgdSettings(n_updates=300, batch_size=20))
# What a linear model without the group loses on its way to parity is on the curve.
pytestmark = pytest.mark.filterwarnings("ignore:Parity cost most")


class Shrinking(ClassifierMixin, BaseEstimator):
    """Logistic regression whose scores are drawn to their mean: a blind stand-in for training with parity."""

    def __init__(self, parity_weight=1.0, *, fail_at=None, warn_at=None, random_state=None, criterion="gini"):
        self.parity_weight = parity_weight
        self.criterion = criterion  # of another library
        self.fail_at = fail_at
        self.warn_at = warn_at
        self.random_state = random_state

    def fit(self, X, y, *, sensitive_features, sample_weight=None):
        if self.fail_at == self.parity_weight:
            raise ValueError("no luck")
        if self.warn_at == self.parity_weight:
            warnings.warn("did not settle", ConvergenceWarning, stacklevel=1)
        self.classes_ = np.unique(y)
        self.model_ = LogisticRegression().fit(X, y, sample_weight=sample_weight)
        self.n_rows_ = len(y)
        return self

    def predict_proba(self, X):
        scores = self.model_.predict_proba(X)[:, 1]
        moved = 0.5 + (scores - 0.5) / (1.0 + self.parity_weight)
        return np.column_stack((1 - moved, moved))


class Untrainable(Shrinking):
    def fit(self, X, y, *, sensitive_features, sample_weight=None):
        raise AssertionError("nothing may be trained")


def frontier(estimator=REPAIR, features=X, y=Y, groups=G, **options):
    return ft.frontier(estimator, features, y, sensitive_features=groups, **{"random_state": 0, **options})


def made(error, apart, values=(0.0, 1.0, 10.0), parameter="parity_weight", **changes):
    """A frontier made by hand: two folds that agree."""
    floors = ("noise_floor", "rank_noise_floor", "criterion_noise_floor")
    folds = {metric: np.zeros((2, len(values))) for metric in (*CURVE_METRICS, *floors)}
    folds["error_rate"] = np.array([error, error], dtype=float)
    folds["pairwise_disparity"] = folds["criterion_disparity"] = np.array([apart, apart], dtype=float)
    entries = {
        "estimator": Shrinking(), "parameter": parameter, "values": np.array(values, dtype=float), "folds": folds,
        "situation": "blind", "reason": "by hand", "threshold": 0.5, "n_rows": 100, "n_groups": 2,
    }  # fmt: skip
    return Frontier(**{**entries, **changes})


def test_every_metric_is_measured_on_held_out_rows():
    rows = np.random.default_rng(1).permutation(Y.size)
    splits = [(rows[100:], rows[:100]), (rows[:250], rows[250:])]
    curve = frontier(cv=splits, amounts=[0, 0.5, 1], threshold=0.4)
    for number, (train, test) in enumerate(splits):
        target = None
        for place, amount in enumerate((0.0, 0.5, 1.0)):
            model = clone(REPAIR).set_params(amount=amount).fit(X[train], Y[train], sensitive_features=G[train])
            scores = model.predict_proba(X[test], sensitive_features=G[test])[:, 1]
            if target is None:
                target = w1_barycenter([Sample.from_values(scores[G[test] == g]) for g in np.unique(G)])
            expected = {
                "error_rate": error_rate(Y[test], scores, 0.4),
                "log_loss": log_loss(Y[test], scores),
                "auc": roc_auc_score(Y[test], scores),
                **disparities(scores, sensitive_features=G[test], target=target),
                "pairwise_disparity": pairwise_disparity(scores, sensitive_features=G[test]),
                "rank_disparity": rank_disparity(scores, sensitive_features=G[test]),
            }
            del expected["strong_pairwise_disparity"]
            read = {metric: curve.folds[metric][number, place] for metric in expected}
            assert read == pytest.approx(expected, rel=1e-12)
            # The floor is a mean of 20 shuffles, ours of 400: as near as that allows.
            floor = noise_floor(pairwise_disparity, scores, sensitive_features=G[test], n_shuffles=400, random_state=0)
            near = 4 * floor.sd * np.sqrt(1 / 20 + 1 / 400)
            assert curve.folds["noise_floor"][number, place] == pytest.approx(floor.mean, abs=near)
            ranks = noise_floor(rank_disparity, scores, sensitive_features=G[test], n_shuffles=400, random_state=0)
            near = 4 * ranks.sd * np.sqrt(1 / 20 + 1 / 400)
            assert curve.folds["rank_noise_floor"][number, place] == pytest.approx(ranks.mean, abs=near)
    table = curve.table()
    values = curve.folds["error_rate"]
    assert table["error_rate"] == pytest.approx(values.mean(axis=0))
    assert table["error_rate_se"] == pytest.approx(np.abs(values[0] - values[1]) / 2)  # two folds: |a - b| / 2
    assert next(iter(table)) == "amount"
    assert pd.DataFrame(table).shape == pl.DataFrame(table).shape == (3, 1 + 2 * (len(CURVE_METRICS) + 3))


@pytest.mark.parametrize("crossed", [True, False], ids=["groups", "overlapping groups"])
@pytest.mark.parametrize("weighted", [False, True])
def test_noise_floors_are_means_over_permuted_groups(crossed, weighted):
    rng = np.random.default_rng(0)
    columns = pd.DataFrame({"a": rng.integers(3, size=150), "b": rng.integers(2, size=150)})
    groups = make_groups(columns, ft.GroupPolicy(crossed=crossed))
    scores, weights = rng.random(150).round(2), rng.random(150) if weighted else None  # some are tied
    seed = np.random.SeedSequence(1)
    floors = _PermutedGroups(groups, seed).floors(scores, weights)
    ranks, same = np.argsort(np.argsort(scores)), np.random.default_rng(seed)  # a permutation assigns sorted rows
    permuted = [groups.select(same.permutation(150)[ranks]) for _ in range(20)]
    for floor, metric in zip(floors, (pairwise_disparity, rank_disparity), strict=True):
        values = [metric(scores, sensitive_features=each, sample_weight=weights) for each in permuted]
        assert floor == pytest.approx(np.mean(values), rel=1e-12)


@pytest.mark.parametrize("estimator", [REPAIR, COT, SGD, Shrinking()], ids=["repair", "COT", "paper", "other"])
@pytest.mark.trust
def test_nothing_depends_on_n_jobs(estimator):
    grid = {"amounts": [0, 1]} if estimator is REPAIR else {"parity_weights": [0, 1]}
    curves = [frontier(estimator, cv=3, n_jobs=n_jobs, **grid) for n_jobs in (1, 3)]
    for metric, values in curves[0].folds.items():
        assert np.array_equal(values, curves[1].folds[metric])


def test_seeds():
    one, same, other = (frontier(SGD, cv=2, parity_weights=[1], random_state=seed) for seed in (0, 0, 1))
    assert one.table() == same.table()
    assert one.table() != other.table()
    # The estimator's own seed stays.
    seeded = clone(SGD).set_params(solver=replace(SGD.solver, random_state=5))
    assert "solver" not in frontier(seeded, cv=2, parity_weights=[1]).settings


def test_default_grids():
    assert frontier(Shrinking(), cv=2).table()["parity_weight"] == [0, 0.1, 0.2, 0.3, 0.4, 0.6, 1, 3, 10]
    assert frontier(cv=2).table()["amount"] == pytest.approx(np.linspace(0, 1, 11))
    assert frontier(Shrinking(), cv=2, parity_weights=[3, np.inf, 0, 3]).table()["parity_weight"] == [0, 3, np.inf]
    by_name = frontier(Shrinking(), cv=2, parameter="parity_weight", values=[0, 2, 1])
    assert by_name.table()["parity_weight"] == [0, 2, 1]


class CountingRegression(LogisticRegression):
    fits = 0
    lock = threading.Lock()

    def fit(self, X, y, sample_weight=None):
        with self.lock:
            CountingRegression.fits += 1
        return super().fit(X, y, sample_weight=sample_weight)


@pytest.mark.parametrize("cls", [TransportClassifier, DOT, QuantileRepairClassifier])
def test_the_initial_model_is_trained_once_in_each_fold_and_on_its_rows_only(cls):
    CountingRegression.fits = 0
    fitted = CountingRegression().fit(X, Y)  # it has seen every row, so it may not be used
    frontier(cls(fitted), cv=3)
    assert CountingRegression.fits == 1 + 3


@pytest.mark.parametrize("target", ["barycenter", "barycenter_w2", "pooled", "secret_m", np.linspace(0.1, 0.9, 50)])
def test_the_wasserstein_disparity_uses_the_target_of_the_estimator(target):
    # Full repair carries every group to the target, so what is left is the noise of 200 held-out rows.
    curve = frontier(clone(REPAIR).set_params(repair__target=target), cv=2, amounts=[0, 1])
    assert curve.mean("wasserstein_disparity")[1] < 0.15
    assert curve.mean("wasserstein_disparity")[1] < curve.mean("wasserstein_disparity")[0] / 2


def test_one_fold_has_no_standard_error():
    curve = frontier(cv=ShuffleSplit(1, random_state=0), amounts=[0, 1])
    assert np.isnan(curve.standard_error("error_rate")).all()
    assert "nan" not in str(curve)


FALLING = {"error": [0.1, 0.2, 0.3], "apart": [0.8, 0.4, 0.2]}  # at parity_weight 0, 1 and 10


@pytest.mark.parametrize(
    ("curve", "limit", "value"),
    [
        *((FALLING, {"max_disparity": most}, value) for most, value in ((0.8, 0), (0.4, 1), (0.2, 10), (5.0, 0))),
        (FALLING, {"max_disparity": 0.3}, np.sqrt(10)),  # half way between 1 and 10, on the logarithm
        (FALLING, {"max_disparity": 0.5}, 0.75),  # from 0, straight
        *((FALLING, {"max_error": most}, value) for most, value in ((0.25, np.sqrt(10)), (0.9, 10), (0.1, 0))),
        # More weight than needed brings no more parity here, only error.
        ({**FALLING, "apart": [0.8, 0.2, 0.25]}, {"max_error": 0.9}, 1),
        ({**FALLING, "apart": [0.8, 0.2, 0.2]}, {"max_error": 0.9}, 1),
        # Amounts are straight, and infinity is taken whole.
        (
            {"error": [0.1, 0.3], "apart": [0.8, 0.4], "values": (0.2, 1.0), "parameter": "amount"},
            {"max_disparity": 0.5},
            0.8,
        ),
        (
            {"error": [0.1, 0.3], "apart": [0.8, 0.4], "values": (0.2, 1.0), "parameter": "step__amount"},
            {"max_error": 0.2},
            0.6,
        ),
        ({"error": [0.1, 0.2], "apart": [0.8, 0.4], "values": (1.0, np.inf)}, {"max_disparity": 0.5}, np.inf),
        ({"error": [0.1, 0.2], "apart": [0.8, 0.4], "values": (1.0, np.inf)}, {"max_error": 0.15}, 1.0),
        # A wavy curve is met at its first crossing.
        (
            {"error": [0.1, 0.2, 0.3, 0.4], "apart": [0.8, 0.4, 0.6, 0.2], "values": (0, 1, 2, 4)},
            {"max_disparity": 0.5},
            0.75,
        ),
    ],
)
def test_the_least_parity_that_keeps_a_limit(curve, limit, value):
    found = made(**curve).find(**limit)
    assert found.value == pytest.approx(value)
    ((name, most),) = limit.items()
    assert found.metrics["error_rate" if name == "max_error" else "pairwise_disparity"] <= most + 1e-12


def test_another_disparity():
    curve = made([0.1, 0.2, 0.3], [0.8, 0.4, 0.2])
    curve.folds["wasserstein_disparity"][:] = [0.6, 0.5, 0.4]
    assert curve.find(max_disparity=0.5, metric="wasserstein_disparity").value == 1.0
    with pytest.raises(ValueError, match="metric must be one of"):
        curve.find(max_disparity=0.5, metric="error_rate")


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 3)), min_size=1, max_size=6), st.floats(0, 3))
def test_the_chosen_point_satisfies_the_limit(points, limit):
    error, apart = zip(*points, strict=True)
    curve = made(error, apart, range(len(points)))
    for limits, metric in (({"max_disparity": limit}, "pairwise_disparity"), ({"max_error": limit / 3}, "error_rate")):
        (most,) = limits.values()
        if min(curve.mean(metric)) > most:
            with pytest.raises(ValueError, match="cannot be reached"):
                curve.find(**limits)
        else:
            found = curve.find(**limits)
            assert found.metrics[metric] <= most + 1e-9
            assert 0 <= found.value <= len(points) - 1
            if metric == "error_rate":
                allowed = curve.mean("error_rate") <= most
                lowest = curve.mean("pairwise_disparity")[allowed].min(initial=np.inf)
                assert found.metrics["pairwise_disparity"] <= lowest + 1e-9


def test_the_impossible_names_the_closest():
    curve = made([0.1, 0.2, 0.3], [0.8, 0.25, 0.375])
    with pytest.raises(ValueError, match=r"max_disparity=0.1 cannot be reached: .* is 0.25 .*at parity_weight=1\."):
        curve.choose(max_disparity=0.1)
    with pytest.raises(ValueError, match=r"max_error=0.05 cannot be reached: .* is 0.1 .*at parity_weight=0\."):
        curve.choose(max_error=0.05)
    with pytest.raises(ValueError, match="Try larger values of parity_weight"):
        made([0.1, 0.2], [0.8, 0.4], (0, 1)).choose(max_disparity=0.1)
    with pytest.raises(ValueError, match="Try smaller values of parity_weight"):
        made([0.1, 0.2], [0.8, 0.4], (1, 2)).choose(max_error=0.01)
    noisy = made([0.1, 0.2], [0.8, 0.4], (0, 1))
    noisy.folds["criterion_noise_floor"][:] = 0.3
    with pytest.raises(ValueError, match=r"The noise floor of so many held-out rows is 0.3; more rows"):
        noisy.choose(max_disparity=0.1)
    for limits in ({}, {"max_disparity": 0.1, "max_error": 0.1}, {"max_error": np.nan}, {"max_disparity": -0.1}):
        with pytest.raises(ValueError, match=r"max_disparity|max_error"):
            curve.choose(**limits)
    for values, name in (((0, np.inf), "parity_weight"), ((0, 1), "amount")):
        with pytest.raises(ValueError, match="cannot be reached") as caught:
            made([0.1, 0.2], [0.8, 0.4], values, name).choose(max_disparity=0.1)
        assert "Try" not in str(caught.value)


@pytest.mark.parametrize("estimator", [COT, SGD], ids=["COT", "paper"])
def test_the_model_chosen_is_fitted_on_all_rows_with_the_seed_and_the_weights(estimator):
    weights = np.random.default_rng(0).integers(1, 3, size=Y.size)
    curve = frontier(estimator, cv=3, parity_weights=[0, 1, 3], sample_weight=weights)
    model = curve.choose(max_error=1.0)
    assert model.parity_weight == curve.find(max_error=1.0).value
    again = clone(estimator).set_params(**curve.settings)
    if estimator is COT:
        path = [value for value in (0.0, 1.0, 3.0) if value <= model.parity_weight]
        again = again.fit_path(X, Y, path, sensitive_features=G, sample_weight=weights)[-1]
    else:
        again.set_params(parity_weight=model.parity_weight).fit(X, Y, sensitive_features=G, sample_weight=weights)
    assert np.array_equal(model.coef_, again.coef_)
    assert curve.settings.get("solver", "lbfgs") == model.solver


def test_a_chosen_model_goes_along_the_path_that_was_measured(monkeypatch):
    paths, fit_path = [], TransportClassifier.fit_path

    def spy(self, features, y, weights, **options):
        paths.append(list(weights))
        return fit_path(self, features, y, weights, **options)

    monkeypatch.setattr(TransportClassifier, "fit_path", spy)
    curve = frontier(COT, cv=2, parity_weights=[0, 0.3, 3])
    assert paths == [[0, 0.3, 3]] * 2  # one for each fold
    apart = curve.mean("pairwise_disparity")
    model = curve.choose(max_disparity=(apart[1] + apart[2]) / 2)
    assert paths[-1] == pytest.approx([0, 0.3, np.sqrt(0.9)])
    assert model.parity_weight_ == pytest.approx(np.sqrt(0.9))
    curve.choose(max_disparity=apart[1] + 1e-12)
    assert paths[-1] == pytest.approx([0, 0.3])


def test_the_model_chosen_keeps_the_limit_on_new_rows():
    features, y, groups = world(4000)
    model = frontier(REPAIR, features, y, groups).choose(max_disparity=0.1)
    features, y, groups = world(8000, seed=1)
    scores = model.predict_proba(features, sensitive_features=groups)[:, 1]
    # 0.1 is the mean of folds with 800 rows, where chance alone adds a little; 0.03 is the noise of that.
    assert pairwise_disparity(scores, sensitive_features=groups) == pytest.approx(0.1, abs=0.03)


def test_without_its_data_a_frontier_still_says_where():
    curve = frontier(cv=2)
    assert curve.data.X is X
    light = curve.drop_data()
    assert light.data is None
    assert light.find(max_error=1.0) == curve.find(max_error=1.0)
    with pytest.raises(ValueError, match=r"keeps no data.*amount="):
        light.choose(max_error=1.0)


def test_situations():
    assert frontier(cv=2).situation == "aware"
    blind = frontier(COT, cv=2, parity_weights=[0, 1])
    assert (blind.situation, blind.reason) == ("blind", "groups are used in training only")
    each = frontier(clone(COT).set_params(group_specific=True), cv=2, parity_weights=[0, 1])
    assert (each.situation, each.reason) == ("aware", "the group is needed at prediction")
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(sex=(G == "secret_m").astype(int))
    curve = frontier(COT, frame, Y, frame["sex"], cv=2, parity_weights=[0, 1])
    assert (curve.situation, curve.reason) == ("aware", "the features include sensitive column 'sex'")


def test_features_that_tell_the_group():
    is_m = (G == "secret_m").astype(float)
    groups = make_groups({"sex": G})
    assert describe_group_features(X, groups) is None
    assert "exactly" in describe_group_features(np.column_stack((X, is_m)), groups)
    assert "exactly" in describe_group_features(sparse.csr_matrix(np.column_stack((X, 3 - is_m))), groups)
    assert describe_group_features(sparse.csr_matrix(X * (X > 1)), groups) is None
    nearly = is_m.copy()
    nearly[0] = 1 - nearly[0]
    assert describe_group_features(np.column_stack((X, nearly, np.ones(Y.size))), groups) is None
    age = np.random.default_rng(0).uniform(18, 80, size=Y.size)
    assert "exactly" in describe_group_features(age[:, None], make_groups(age > 30))
    text = np.column_stack((X.astype(object), np.where(is_m > 0, "he", "she")))
    assert "exactly" in describe_group_features(text, groups)
    for frame in (pd.DataFrame, pl.DataFrame):
        assert describe_group_features(frame({"a": X[:, 0], "sex": X[:, 1]}), groups) == (
            "the features include sensitive column 'sex'"
        )
        assert "exactly" in describe_group_features(frame({"a": X[:, 0], "b": np.where(is_m > 0, "he", "she")}), groups)
        assert describe_group_features(frame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "x", "y")}), groups) is None
    gaps = np.where(is_m > 0, np.nan, X[:, 0])
    assert "exactly" in describe_group_features(gaps[:, None], groups)


@given(st.data())
def test_rows_are_dealt_evenly(data):
    n = data.draw(st.integers(12, 80))
    n_folds = data.draw(st.integers(2, 4))
    codes = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    codes[: 3 * n_folds] = np.repeat([0, 1, 2], n_folds)
    positive = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    positive[: 3 * n_folds] = np.tile(np.arange(n_folds) % 2 == 0, 3)
    groups = make_groups(codes)
    try:
        folds = make_folds(n_folds, None, positive, groups, rng=np.random.default_rng(0))
    except ValueError as error:
        assert "one of the two classes" in str(error)  # noqa: PT017 - few positives may all fall into one fold
        return
    held_out = np.concatenate([fold.held_out for fold in folds])
    assert np.array_equal(np.sort(held_out), np.arange(n))
    for fold in folds:
        assert np.array_equal(np.sort(np.concatenate((fold.training, fold.held_out))), np.arange(n))
    for cell in (
        *((codes == g) & (positive == p) for g in range(3) for p in (False, True)),
        *(codes == g for g in range(3)),
    ):
        counts = [np.count_nonzero(cell[fold.held_out]) for fold in folds]
        assert max(counts) - min(counts) <= 1


def test_a_group_smaller_than_the_folds_raises_with_its_size():
    """Of two groups; of more, those with few rows are set aside."""
    groups = np.where(np.arange(Y.size) < 3, "secret_few", "others")
    with pytest.raises(
        ValueError, match=r"has 3 rows, fewer than the 5 folds; 1 of 2 groups.*Use cv=3 or fewer"
    ) as caught:
        frontier(Untrainable(), groups=groups)
    assert "secret" not in str(caught.value)
    groups = np.where(np.arange(Y.size) < 1, "secret_few", "others")
    with pytest.raises(ValueError, match=r"has 1 rows, .*Merge such groups"):
        frontier(Untrainable(), groups=groups)


@pytest.mark.parametrize("few", [1, 3, 29])
def test_a_small_group_is_trained_on_and_not_measured(few):
    """Its rows are in no held-out part, where a few of them would count as much as all others."""
    small = np.arange(Y.size) < few
    groups = np.where(small, "few", G)
    curve = frontier(REPAIR, groups=groups, amounts=[0, 1], cv=[(np.arange(Y.size)[::-1], np.arange(Y.size))])
    assert (curve.n_groups, curve.n_small_groups) == (2, 1)
    assert "2 groups (and 1 small, not measured);" in str(curve)
    scores = LogisticRegression().fit(X, Y).predict_proba(X)[~small, 1]
    options = {"sensitive_features": G[~small]}
    assert curve.mean("criterion_disparity")[0] == pytest.approx(pairwise_disparity(scores, **options), rel=1e-6)
    assert curve.mean("error_rate")[0] == pytest.approx(np.mean((scores > 0.5) != (Y[~small] == 1)))
    folds = frontier(REPAIR, groups=groups, amounts=[0, 1])
    assert folds.choose(max_error=1.0).predict_proba(X, sensitive_features=groups).shape == (Y.size, 2)
    alone = frontier(REPAIR, groups=np.where(small, "few", "others"), amounts=[0, 1], cv=2) if few == 29 else None
    assert alone is None or (alone.n_groups, alone.n_small_groups) == (2, 0)


def test_custom_splits_need_every_group_and_both_labels():
    with pytest.raises(ValueError, match=r"Fold 1 of 1 has no held-out rows of 1 of 2 groups of column") as caught:
        frontier(Untrainable(), cv=[(np.arange(Y.size), np.flatnonzero(G == "secret_f"))])
    assert "secret" not in str(caught.value)
    with pytest.raises(ValueError, match=r"Fold 1 of 1 has no training rows of 1 of 2 groups"):
        frontier(Untrainable(), cv=[(np.flatnonzero(G == "secret_f"), np.arange(Y.size))])
    with pytest.raises(ValueError, match=r"Fold 1 of 1 has no held-out rows of one of the two classes"):
        frontier(Untrainable(), cv=[(np.arange(Y.size), np.flatnonzero(Y == 1))])
    weights = np.where(G == "secret_f", 0.0, 1.0)
    with pytest.raises(ValueError, match="Rows of weight 0 do not count"):
        frontier(Untrainable(), sample_weight=weights)


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        *(("cv", value, ValueError) for value in (1, 0, [], [([0.5], [1.5])], [(np.arange(400), np.arange(500))])),
        *(("cv", value, TypeError) for value in (True, 2.5, "five", None)),
        ("n_jobs", 0, ValueError),
        *(("n_jobs", value, TypeError) for value in (1.5, True)),
    ],
)
def test_bad_cv_and_n_jobs(option, value, error):
    with pytest.raises(error, match=option):
        frontier(Untrainable(), **{option: value})


@pytest.mark.parametrize("kind", ["numpy", "list", "pandas", "polars", "pyarrow", "sparse", "sparse array", "Groups"])
def test_tables_of_every_kind_give_the_same_curve(kind):
    expected = frontier(cv=3, amounts=[0, 1]).table()
    names = ["a", "b", "c"]
    upside_down = pd.DataFrame(X, columns=names, index=np.arange(Y.size)[::-1])
    features, y, groups = {
        "numpy": lambda: (X, Y, {"sex": G.tolist()}),
        "list": lambda: (X.tolist(), Y.tolist(), G.tolist()),
        "pandas": lambda: (upside_down, pd.Series(Y), pd.DataFrame({"sex": G})),
        "polars": lambda: (pl.DataFrame(X, schema=names), pl.Series(Y), pl.Series("sex", G)),
        "pyarrow": lambda: (X, Y, nw.from_native(pl.DataFrame({"sex": G})).to_arrow()),
        "sparse": lambda: (sparse.csc_matrix(X), Y, G),
        "sparse array": lambda: (sparse.coo_array(X), Y, pd.Categorical(G)),
        "Groups": lambda: (X, Y, make_groups(G)),
    }[kind]()  # fmt: skip
    read = frontier(REPAIR, features, y, groups, cv=3, amounts=[0, 1]).table()
    # Sparse and dense regressions add up in another order, so a score near a threshold may change sides.
    for name, values in expected.items():
        assert read[name] == pytest.approx(values, abs=0.01 if name.startswith(("error", "noise")) else 1e-4)


def test_a_pipeline_from_text_to_parity():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "word": np.where(X[:, 2] > 0, "yes", "no")})
    prepare = make_column_transformer((StandardScaler(), ["a", "b"]), (OneHotEncoder(), ["word"]))
    for group_specific, situation in ((False, "blind"), (True, "aware")):
        model = make_pipeline(prepare, clone(COT).set_params(group_specific=group_specific))
        curve = frontier(model, frame, cv=2, parity_weights=[0, 3])
        assert curve.parameter == "transportclassifier__parity_weight"
        assert curve.situation == situation
        options = {"sensitive_features": G} if group_specific else {}
        assert curve.choose(max_error=0.9).predict_proba(frame, **options).shape == (Y.size, 2)
        assert max(map(len, str(curve).splitlines())) <= 100


def test_weights_are_copies():
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 4, size=Y.size)
    copies = np.repeat(np.arange(Y.size), weights)
    test = rng.random(Y.size) < 0.4
    splits = [(np.flatnonzero(~test), np.flatnonzero(test))]
    of_copies = [(np.flatnonzero(~test[copies]), np.flatnonzero(test[copies]))]
    weighted = frontier(cv=splits, sample_weight=weights, amounts=[0, 1]).table()
    copied = frontier(REPAIR, X[copies], Y[copies], G[copies], cv=of_copies, amounts=[0, 1]).table()
    for metric in CURVE_METRICS:
        assert weighted[metric] == pytest.approx(copied[metric], abs=1e-3)
    plain = frontier(cv=splits, amounts=[0, 1]).table()
    assert weighted["log_loss"] != pytest.approx(plain["log_loss"], abs=1e-3)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"parity_weights": [0, -1]}, r"parity_weights must be at least 0; got -1\."),
        ({"parity_weights": [0, np.nan]}, r"parity_weights must be at least 0; got nan\."),
        ({"parity_weights": []}, "at least one number"),
        ({"parity_weights": 3.0}, "at least one number"),
        ({"parity_weights": ["much"]}, "at least one number"),
        ({"parity_weights": [True]}, "at least one number"),
        ({"amounts": [0.5]}, "no parameter 'amount'"),
        ({"parity_weights": [1], "amounts": [1]}, "Give one of"),
        ({"parameter": "parity_weight"}, "parameter and values together"),
        ({"values": [1]}, "parameter and values together"),
        ({"parameter": "zeal", "values": [1]}, "no parameter 'zeal'"),
        ({"parameter": "parity_weight", "values": [np.inf]}, "values must be a finite number"),
        ({"threshold": 1.5}, "threshold"),
        ({"y": np.zeros(Y.size)}, "exactly two classes"),
        ({"y": Y[:-1]}, "y has 399 rows"),
        ({"groups": G[:-1]}, "sensitive_features has 399 rows"),
        ({"groups": None}, "frontier needs sensitive_features"),
        ({"groups": ["x"] * 400}, "at least 2 needed"),
        ({"sample_weight": -np.ones(400)}, "negative"),
        *(
            ({"estimator": QuantileRepairClassifier(Untrainable()), "amounts": [amount]}, "amounts must be")
            for amount in (1.5, -0.1, np.nan, np.inf)
        ),
        *(({"estimator": wrong}, "must be a classifier") for wrong in (LogisticRegression, "COT", OneHotEncoder())),
    ],
)
def test_bad_input_raises_before_any_training(options, match):
    with pytest.raises((TypeError, ValueError), match=match):
        frontier(**{"estimator": Untrainable(), **options})


def test_an_error_says_in_which_fold_and_at_which_value():
    with pytest.raises(ValueError, match="no luck") as caught:
        frontier(Shrinking(fail_at=3.0), cv=2)
    assert caught.value.__notes__ == ["With parity_weight=3.", "Raised in fold 1 of 2."]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_stops_the_compiled_loops(n_jobs):
    endless = TransportClassifier(solver=SgdSettings(n_updates=10**9, batch_size=10))
    frontier(SGD, cv=2, parity_weights=[0.1])  # compiled before the clock starts
    over, before = threading.Event(), threading.active_count()

    def press():
        while not over.wait(0.5):  # again and again, as people do: Python drops a signal that meets a destructor
            os.kill(os.getpid(), signal.SIGINT)

    finger = threading.Thread(target=press)
    finger.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            frontier(endless, cv=2, parity_weights=[0.1], n_jobs=n_jobs)
    finally:
        over.set()
        finger.join()
    assert threading.active_count() == before


def test_warnings_of_the_package_name_the_line_of_the_caller():
    groups = np.where(np.arange(len(G)) < 12, "few", G)
    with pytest.warns(ft.FairnessWarning) as caught:
        ft.frontier(REPAIR, X, Y, sensitive_features=groups, amounts=[1], cv=2, random_state=0)
    assert {warning.filename for warning in caught} == {__file__}


def test_convergence_warnings_are_issued_once():
    with pytest.warns(ConvergenceWarning, match=r"did not settle \(One of 4 such warnings.\)") as caught:
        curve = frontier(Shrinking(warn_at=3.0), cv=4, parity_weights=[0, 3])
    assert len(caught) == 1
    assert np.isfinite(curve.mean("error_rate")).all()


def test_a_frontier_reads_well():
    curve = made([0.1, 0.2, 0.3], [0.8, 0.4, 0.2])
    assert repr(curve) == ("Frontier(parity_weight 0 to 10, blind, error 0.100 to 0.300, disparity 0.800 to 0.200)")
    lines = str(curve).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1] == "blind at prediction: by hand"
    assert lines[4].split() == [
        "weight", "error", "log-loss", "AUC", "kept", "pairs", "floor", "rank", "floor",
    ]  # fmt: skip
    assert lines[-1].split()[:3] == ["10", "0.300", "±0.000"]
    assert [line.index("0.") for line in lines[5:]] == [lines[4].index("error")] * 3


@pytest.mark.parametrize("criterion", ["gini", LogisticRegression])
def test_a_parameter_of_another_library_with_the_same_name_is_no_criterion(criterion):
    frame = frontier(Shrinking(criterion=criterion), parity_weights=[0.0, 1.0], cv=2).to_frame()
    assert (frame["criterion_disparity"] == frame["pairwise_disparity"]).all()


@pytest.mark.parametrize(("criterion", "strata"), [("equalized_odds", False), ("demographic_parity", True)])
def test_the_disparity_is_that_of_the_criterion(criterion, strata):
    rng = np.random.default_rng(0)
    group, stratum = rng.integers(2, size=1500), rng.integers(3, size=1500)
    table = rng.normal(size=(1500, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    labels = (table @ [0.5, 1.0, 1.0] + rng.logistic(size=1500) > 0.5).astype(int)
    options = {"sensitive_features": group, "strata": stratum} if strata else {"sensitive_features": group}
    model = ft.TransportClassifier(distance="discrete", criterion=criterion)
    curve = ft.frontier(model, table, labels, **options, parity_weights=[0.0, 1.0], cv=3, random_state=0)
    before, after = curve.mean("criterion_disparity")
    assert after < 0.7 * before
    assert before != curve.mean("pairwise_disparity")[0]
    assert 0.0 < curve.mean("criterion_noise_floor")[1] < after * 1.2
    chosen = curve.choose(max_disparity=0.9 * before)
    assert chosen.outcome_.startswith("conditional parity (3 strata)" if strata else "equalized odds")
    assert ("conditional" if strata else "odds") in str(curve)


@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds"])
def test_limits_are_in_the_unit_that_audits_judge(criterion):
    features, y, groups = world(1200)
    training, test = np.split(np.arange(1200), [600])
    estimator = QuantileRepairClassifier(LogisticRegression(), QuantileRepair(criterion=criterion))
    curve = ft.frontier(estimator, features, y, sensitive_features=groups, amounts=[0, 1], cv=[(training, test)])
    scores = LogisticRegression().fit(features[training], y[training]).predict_proba(features[test])[:, 1]
    quick = ft.auditing.Inference(n_bootstrap=20, n_permutations=20)
    audit = ft.audit(scores, y[test], sensitive_features=groups[test], criterion=criterion, inference=quick)
    judged = (audit.within or audit).mean_readings[audit.settings.pairs_metric].value
    assert curve.mean("criterion_disparity")[0] == pytest.approx(judged)


def test_the_best_of_several_curves_is_chosen():
    options = {"sensitive_features": G, "cv": 3, "random_state": 0}
    curves = ft.selection.Frontiers(
        {"repair": ft.frontier(REPAIR, X, Y, **options), "shrunk": ft.frontier(Shrinking(), X, Y, **options)}
    )
    assert list(curves) == ["repair", "shrunk"]
    for limit in (0.06, 0.1, 0.15, 0.2):
        errors = {name: curve.find(max_disparity=limit).metrics["error_rate"] for name, curve in curves.items()}
        assert curves.best(max_disparity=limit) == min(errors, key=errors.get)
    least = {name: curve.find(max_error=0.4).metrics["rank_disparity"] for name, curve in curves.items()}
    assert curves.best(max_error=0.4, metric="rank_disparity") == min(least, key=least.get)
    model = curves.choose(max_disparity=0.06)
    assert type(model) is type(curves[curves.best(max_disparity=0.06)].estimator)
    assert "repair\nTrade-off of" in str(curves)
    assert len(curves.plot().lines_) == 2
    with pytest.raises(ValueError, match=r"repair: max_disparity=1e-09 .* shrunk: max_disparity=1e-09 cannot be"):
        curves.best(max_disparity=1e-9)
    with pytest.raises(ValueError, match=r"^Give exactly one of max_disparity and max_error\.$"):
        curves.best()
    with pytest.raises(ValueError, match="same rows"):
        ft.selection.Frontiers({"one": curves["repair"], "other": replace(curves["shrunk"], n_rows=3)})
