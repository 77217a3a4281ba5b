"""Training of boosted trees: Adult, the checks of fair estimators, smoothed groups."""

import runpy
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from fairtransport import QuantileRepair, TransportClassifier
from fairtransport.boosting import TransportBoostingClassifier
from fairtransport.checks import check_fair_estimator
from fairtransport.datasets import load_adult
from fairtransport.metrics import error_rate, separation_disparity

pytestmark = [pytest.mark.models, pytest.mark.filterwarnings("ignore::fairtransport.FairnessWarning")]
EXAMPLE = Path(__file__).parents[2] / "examples" / "lightgbm_adult.py"


def test_lightgbm_on_adult(tmp_path):
    """Required errors on test rows: blind at most .154 at SPDD .11; aware at most .155 at .08 and .15 at .1."""
    example = runpy.run_path(str(EXAMPLE))
    settings = example["main"].__globals__
    settings["WEIGHTS"], settings["REPAIRS"] = (0.0, 1.0, 2.0), (0.0, 0.9, 1.0)
    curves = example["main"](str(tmp_path / "adult.png"), 1)
    (plain, before), (some, at_some), (most, at_most) = curves["blind, by parity_weight"].mean(axis=0)
    assert plain < 0.13
    assert before > 0.7
    assert some + (0.11 - at_some) * (most - some) / (at_most - at_some) <= 0.154
    assert at_most < 0.12
    (_, whole), (part, at_part), (error, disparity) = curves["aware, by repair"].mean(axis=0)
    assert whole > 0.7
    assert part <= 0.15
    assert at_part <= 0.1
    assert error <= 0.155
    assert disparity <= 0.08
    assert (tmp_path / "adult.png").stat().st_size > 10_000


def test_equalized_odds_on_adult():
    """Blind, by sex, test rows: a lower error than the linear model at the same distance within labels.

    Seen: the linear model .1539 at .024, .1620 at .009 and .1641 at .007, where its curve ends; boosted trees
    about .147 at .016 and .152 at .006.
    """
    adult = load_adult()
    rows, sex, y = (
        np.asarray(adult.split) == "train",
        adult.sensitive_features["sex"].to_numpy(),
        np.asarray(adult.target),
    )
    X = adult.data.drop(columns="sex")
    X = X.astype({name: "category" for name in X.columns if X[name].dtype.kind not in "iuf"})
    encoded = pd.get_dummies(X).to_numpy(float)
    encoded = StandardScaler().fit(encoded[rows]).transform(encoded)

    def figures(model, features):
        model.fit(features[rows], y[rows], sensitive_features=sex[rows])
        scores = model.predict_proba(features[~rows])[:, 1]
        return separation_disparity(y[~rows], scores, sensitive_features=sex[~rows]), error_rate(y[~rows], scores)

    odds = {"criterion": "equalized_odds"}
    linear = [figures(TransportClassifier(parity_weight=w, **odds), encoded) for w in (10.0, 1.0, 0.3)]
    assert linear[0][0] < linear[1][0] < 0.012 < linear[2][0]
    for weight, seed in ((2.0, 0), (8.0, 0), (8.0, 1)):
        trees = lightgbm.LGBMClassifier(colsample_bytree=0.5, n_estimators=200, random_state=seed, verbose=-1, n_jobs=1)
        model = TransportBoostingClassifier(trees, parity_weight=weight, random_state=seed, **odds)
        distance, error = figures(model, X)
        assert distance < 0.02
        assert error < np.interp(distance, *np.transpose(linear)) - 0.01


@pytest.mark.parametrize("options", [{}, {"repair": QuantileRepair(), "parity_weight": 0.1}], ids=["blind", "aware"])
def test_checks_of_fair_estimators(options):
    trees = lightgbm.LGBMClassifier(n_estimators=40, num_leaves=8, verbose=-1, n_jobs=1)
    # LightGBM counts rows, not weights, in leaves and bins: its own scores differ by .02 between weights and copies.
    results = check_fair_estimator(TransportBoostingClassifier(trees, **options), tolerance=0.1)
    assert len(results) > 4


@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds"])
def test_smoothed_groups_generalise_better(criterion):
    """Without smoothing, trees overfit to the groups of the training rows."""

    def gap(scores, group, labels):
        parts = [np.ones(len(labels), bool)] if criterion == "demographic_parity" else [labels == 0, labels == 1]
        return np.mean([abs(scores[part & (group == 1)].mean() - scores[part & (group == 0)].mean()) for part in parts])

    differences = {}
    for smooth in (True, False):
        runs = []
        for seed in range(2):
            rng = np.random.default_rng(seed)
            group = rng.integers(2, size=8000)
            X = rng.normal(size=(8000, 8)) + np.outer(group, [1.0, *np.zeros(7)])
            y = (X[:, 0] + 2 * X[:, 1] + rng.logistic(size=8000) > 0.5).astype(int)
            trees = lightgbm.LGBMClassifier(n_estimators=99, num_leaves=30, verbose=-1, n_jobs=1)
            fixed = {"parity_weight": 1.0, "random_state": 0}
            model = TransportBoostingClassifier(trees, criterion=criterion, smooth_groups=smooth, **fixed)
            model.fit(X[:2000], y[:2000], sensitive_features=group[:2000])
            parts = (slice(2000), slice(2000, None))
            seen, new = (gap(model.predict_proba(X[rows])[:, 1], group[rows], y[rows]) for rows in parts)
            runs.append(new - seen)
        differences[smooth] = np.mean(runs)
    assert differences[True] < differences[False]
