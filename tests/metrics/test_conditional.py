"""Disparities within labels and strata: against scipy pair by pair, against the criterion's penalty, as scorers."""

import warnings
from functools import partial
from itertools import combinations
from math import comb

import numpy as np
import pytest
import sklearn
from scipy.stats import rankdata, wasserstein_distance
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer, max_error
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.worlds import people

import fairtransport as ft
from fairtransport.criteria.criterion import as_criterion, resolve_criterion
from fairtransport.criteria.penalty import DiscretePenalty
from fairtransport.groups import make_groups
from fairtransport.metrics import (
    conditional_disparity,
    group_scorer,
    noise_floor,
    opportunity_disparity,
    separation_disparity,
    strong_pairwise_disparity,
)
from fairtransport.strata import make_strata

CANARY = "canary-2718"


def table(n=500, seed=0, n_groups=3):
    rng = np.random.default_rng(seed)
    groups, y, region = rng.choice(list("abcd"[:n_groups]), n), rng.integers(0, 2, n), rng.choice(["x", "y", "z"], n)
    return rng.beta(2 + y, 3, n).round(3), y, groups, region, rng.integers(0, 4, n).astype(float)


def by_scipy(scores, groups, weights):
    return sum(
        wasserstein_distance(*(scores[groups == one] for one in pair), *(weights[groups == one] for one in pair))
        for pair in combinations(np.unique(groups), 2)
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ranks", [False, True])
def test_within_labels_and_strata_the_distances_are_those_of_scipy(weighted, ranks):
    scores, y, groups, region, weights = table()
    masses = weights if weighted else np.ones(scores.size)
    values = scores
    if ranks:
        copies = np.repeat(np.arange(scores.size), masses.astype(int))
        ranked = (rankdata(scores[copies]) - 0.5) / copies.size
        values = np.array([ranked[copies == row][0] if masses[row] else 0.0 for row in range(scores.size)])
    kept = masses > 0

    def within(mask):
        mask = mask & kept
        return by_scipy(values[mask], groups[mask], masses[mask])

    options = {"sensitive_features": groups, "sample_weight": weights if weighted else None}
    options |= {"scale": "ranks" if ranks else "probability", "reduce": "sum"}
    labels = [within(y == label) for label in (0, 1)]
    assert separation_disparity(y, scores, **options) == pytest.approx(np.mean(labels), abs=1e-12)
    mean = separation_disparity(y, scores, **{**options, "reduce": "mean"})
    assert mean == pytest.approx(np.mean(labels) / 3, abs=1e-12)
    assert opportunity_disparity(y, scores, **options) == pytest.approx(labels[1], abs=1e-12)
    regions = [within(region == name) for name in "xyz"]
    shares = [masses[region == name].sum() / masses.sum() for name in "xyz"]
    assert conditional_disparity(scores, strata=region, **options) == pytest.approx(np.dot(shares, regions), abs=1e-12)
    both = [
        masses[(y == label) & (region == name)].sum()
        / masses[y == label].sum()
        * within((y == label) & (region == name))
        for label in (0, 1)
        for name in "xyz"
    ]
    assert separation_disparity(y, scores, strata=region, **options) == pytest.approx(np.sum(both) / 2, abs=1e-12)


@pytest.mark.parametrize("weight", [None, "equal", "share"])
def test_the_metrics_weigh_as_the_criteria_do(weight):
    """The exact penalty of a criterion's comparisons is the metric."""
    scores, y, groups, region, _ = table(300)
    region[groups == "c"] = "only c"  # a stratum to set aside
    known, strata = make_groups(groups), make_strata(region)
    exact = DiscretePenalty(huber_width=0.0, n_slices=None, scale="score")
    for criterion, metric in (
        ("equalized_odds", partial(separation_disparity, y, label_weight=weight)),
        ("equal_opportunity", partial(opportunity_disparity, y, stratum_weight=weight)),
        ("demographic_parity", partial(conditional_disparity, stratum_weight=weight)),
    ):
        for layers in (None, strata):
            if layers is None and criterion == "demographic_parity":
                continue
            rule = type(as_criterion(criterion))(weight)
            compared = resolve_criterion(rule, known, labels=y, strata=layers)
            expected = exact.value_and_gradient(scores, compared.comparisons()).value
            n_pairs = sum(part.weight * comb(len(part.rows), 2) for part in compared.compared)
            options = {"sensitive_features": groups, "strata": layers}
            assert metric(scores, reduce="sum", **options) == pytest.approx(expected, abs=1e-9)
            assert metric(scores, **options) == pytest.approx(expected / n_pairs, abs=1e-9)


def test_groups_are_permuted_within_labels():
    """Scores depend on the label and labels on the group: only within labels is there no difference."""
    rng = np.random.default_rng(0)
    groups = rng.choice(["a", "b"], 400)
    y = (rng.random(400) < np.where(groups == "a", 0.2, 0.8)).astype(int)
    scores = np.clip(0.25 + 0.5 * y + 0.1 * rng.normal(size=400), 0, 1)
    metric = partial(separation_disparity, y)
    within = noise_floor(metric, scores, sensitive_features=groups, within=y, random_state=0)
    across = noise_floor(metric, scores, sensitive_features=groups, random_state=0)
    assert within.p_value > 0.05
    assert within.mean < across.mean * 1.5
    assert noise_floor(strong_pairwise_disparity, scores, sensitive_features=groups, random_state=0).p_value < 0.02


@pytest.mark.parametrize("n_strata_columns", [0, 1])
def test_cross_validation_routes_groups_and_strata(n_strata_columns):
    scores, y, groups, region, _ = table(240, n_groups=2)
    X = np.column_stack([scores, np.random.default_rng(1).normal(size=scores.size)])
    params = {"sensitive_features": groups, **({"strata": region} if n_strata_columns else {})}
    request = dict.fromkeys(params, True)
    with sklearn.config_context(enable_metadata_routing=True):
        plain = make_scorer(separation_disparity, response_method="predict_proba", greater_is_better=False)
        ours = group_scorer(separation_disparity)
        found = [
            cross_val_score(LogisticRegression(), X, y, scoring=scorer.set_score_request(**request), params=params)
            for scorer in (plain, ours)
        ]
        assert found[0] == pytest.approx(found[1])
        assert np.all(found[0] < 0)
        if n_strata_columns:
            scorer = group_scorer(conditional_disparity, reduce="mean")
            search = GridSearchCV(LogisticRegression(), {"C": [1e-4, 1.0]}, scoring=scorer.set_score_request(**request))
            assert "conditional_disparity" in repr(scorer)
            search.fit(X, y, **params)
            assert search.best_params_ == {"C": 1e-4}  # scores that hardly vary hardly differ


@pytest.mark.parametrize("in_pipeline", [False, True])
def test_models_that_need_the_group_at_prediction_get_it_from_the_scorers(in_pipeline):
    """Scorers of scikit-learn pass nothing on: every score was NaN, and a search took the first candidate."""
    X, y, groups = people(600, seed=3)
    with sklearn.config_context(enable_metadata_routing=True):
        repair = ft.QuantileRepairClassifier(LogisticRegression())
        given = {"sensitive_features": True}
        repair.set_fit_request(**given).set_predict_proba_request(**given).set_predict_request(**given)
        scoring = {
            "accuracy": group_scorer(accuracy_score, response_method="predict", greater_is_better=True),
            "parity": group_scorer(ft.metrics.rank_disparity),
        }
        scoring = {name: scorer.set_score_request(sensitive_features=True) for name, scorer in scoring.items()}
        model, prefix = repair, ""
        if in_pipeline:
            model, prefix = make_pipeline(StandardScaler(), repair), "quantilerepairclassifier__"
        search = GridSearchCV(model, {f"{prefix}amount": [0.0, 1.0]}, scoring=scoring, refit="parity", cv=3)
        with warnings.catch_warnings(action="ignore", category=ft.FairnessWarning):
            search.fit(X, y, sensitive_features=groups)
            best = ft.QuantileRepairClassifier(LogisticRegression()).fit(X, y, sensitive_features=groups)
    assert search.best_params_ == {f"{prefix}amount": 1.0}
    less, more = search.cv_results_["mean_test_parity"]
    assert less < 2 * more < 0.0
    assert (search.cv_results_["mean_test_accuracy"] > 0.6).all()
    scores = best.predict_proba(X, sensitive_features=groups)[:, 1]
    value = group_scorer(ft.metrics.rank_disparity)(best, X, y, sensitive_features=groups)
    assert value == -ft.metrics.rank_disparity(scores, sensitive_features=groups)
    with pytest.raises(TypeError, match="sample_weight"):  # which the metric does not take: not ignored in silence
        group_scorer(max_error)(best, X, y, sensitive_features=groups, sample_weight=np.ones(len(y)))
    with pytest.raises(AttributeError, match="LinearRegression has none of the methods predict_proba"):
        group_scorer(ft.metrics.rank_disparity)(LinearRegression(), X, y, sensitive_features=groups)


def test_labels_other_than_zero_and_one():
    scores, y, groups, _, _ = table()
    named = np.where(y == 1, "good", "bad")
    options = {"sensitive_features": groups}
    good = opportunity_disparity(named, scores, pos_label="good", **options)
    assert good == opportunity_disparity(y, scores, **options)
    other = opportunity_disparity(named, scores, pos_label="bad", **options)
    assert other == opportunity_disparity(1 - y, scores, **options)


SEPARATION, CONDITIONAL = partial(separation_disparity, [0, 1]), partial(conditional_disparity, strata=[1, 1])


@pytest.mark.parametrize(
    ("metric", "options", "message"),
    [
        (conditional_disparity, {"strata": ["x"]}, "strata has 1 rows"),
        (conditional_disparity, {"strata": ["x", CANARY]}, "no stratum has rows of two groups"),
        (CONDITIONAL, {"stratum_weight": "x"}, "stratum_weight must be one of"),
        (SEPARATION, {}, "nothing to compare: no label has rows of two groups"),
        (SEPARATION, {"reduce": "max"}, "reduce must be one of 'sum', 'mean'"),
        (SEPARATION, {"label_weight": "x"}, "label_weight must be one of"),
        (partial(separation_disparity, [0, 1, 1]), {}, "y_true has 3 rows"),
    ],
)
def test_bad_input(metric, options, message):
    with pytest.raises(ValueError, match=message) as caught:
        metric([0.1, 0.2], sensitive_features=["a", CANARY], **options)
    assert CANARY not in str(caught.value)
