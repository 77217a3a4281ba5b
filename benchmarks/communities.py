"""Regression on Communities and Crime: squared error at Kolmogorov-Smirnov distance, trained and repaired."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import _ours
from benchmarks._report import mean_and_error
from benchmarks.field.analysis import Curve
from fairtransport import BlindRepairRegressor, QuantileRepair, QuantileRepairRegressor
from fairtransport.datasets import load_communities
from fairtransport.metrics import kolmogorov_smirnov_disparity

CLAIM = (
    "The rate of violent crime, communities whose share of Black people is above its median or not, test rows of "
    "random splits: mean squared error at the larger Kolmogorov-Smirnov (KS) distance of a group to everyone."
)
#: Blind curves of the papers, which split differently: Taturyan et al. (NeurIPS 2024), Agarwal et al. (ICML 2019).
PUBLISHED = {("Taturyan et al.", 0.220): 0.0297, ("Taturyan et al.", 0.111): 0.0374, ("Agarwal et al.", 0.120): 0.0399}
RACE = ("racepctblack", "racePctWhite", "racePctAsian", "racePctHisp")
WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0, 4.0, 10.0, 30.0)
SLACKS = (0.2, 0.15, 0.12, 0.1, 0.08, 0.06, 0.04, 0.02, 0.0)
NOISE = 1e-4  # separates equal responses at random; they come in steps of .01
N_SPLITS, TEST_SHARE = 20, 0.3


def load():
    """All features and those without shares by race, gaps filled, the target, and the groups."""
    data = load_communities(task="regression")
    frame = data.data.loc[:, data.data.isna().mean() < 0.5]
    frame = frame.fillna(frame.mean())
    share = frame["racepctblack"].to_numpy()
    aware, blind = frame.to_numpy(), frame.drop(columns=list(RACE)).to_numpy()
    return aware, blind, np.asarray(data.target, dtype=np.float64), (share > np.median(share)).astype(int)


def ridge():
    return make_pipeline(StandardScaler(), RidgeCV(np.logspace(-1, 4, 11)))


# ---------------------------------------------- methods: rows of a split -> a prediction of test rows for each setting


def path(aware, blind, y, group, train, test, *, distance):  # noqa: ARG001
    models = _ours.regressor(distance).fit_path(blind[train], y[train], WEIGHTS, sensitive_features=group[train])
    return [model.predict(blind[test]) for model in models]


def automatic(aware, blind, y, group, train, test, *, distance, group_specific=False):
    X = aware if group_specific else blind
    model = _ours.regressor(distance, group_specific=group_specific)
    model.fit(X[train], y[train], sensitive_features=group[train])
    return [model.predict(X[test], **({"sensitive_features": group[test]} if group_specific else {}))]


def repaired_ridge(aware, blind, y, group, train, test):  # noqa: ARG001
    model = QuantileRepairRegressor(ridge()).fit(aware[train], y[train], sensitive_features=group[train])
    return [model.predict(aware[test], sensitive_features=group[test])]


def blind_repair(aware, blind, y, group, train, test):  # noqa: ARG001
    model = BlindRepairRegressor(ridge(), make_pipeline(StandardScaler(), LogisticRegression(C=0.1)))
    fitted = model.fit_path(blind[train], y[train], SLACKS, sensitive_features=group[train])
    return [one.predict(blind[test]) for one in fitted]


def responses(aware, blind, y, group, train, test, *, noise=0.0):  # noqa: ARG001
    """The responses themselves, repaired as the predictions of a perfect regressor would be."""
    given = y + noise * np.random.default_rng(0).uniform(-1.0, 1.0, y.size)
    repair = QuantileRepair(range="learned").fit(given[train], sensitive_features=group[train])
    return [repair.transform(given[test], sensitive_features=group[test])]


METHODS = {
    **{f"{name}, blind, weights": partial(path, distance=name) for name in _ours.DISTANCES},
    **{f"{name}, blind, automatic": partial(automatic, distance=name) for name in _ours.DISTANCES},
    **{f"{name}, group-specific": partial(automatic, distance=name, group_specific=True) for name in _ours.DISTANCES},
    "quantile repair of ridge, aware": repaired_ridge,
    "blind repair of ridge, slack": blind_repair,
    "repaired responses": responses,
    "repaired responses, ties broken": partial(responses, noise=NOISE),
}


def figures(predicted, y, group):
    """Squared error, KS distance to everyone, and between the two groups."""
    points = np.sort(predicted)
    everyone = np.searchsorted(points, points, side="right") / len(points)
    own = [np.searchsorted(np.sort(predicted[group == g]), points, side="right") / np.sum(group == g) for g in (0, 1)]
    between = kolmogorov_smirnov_disparity(predicted, sensitive_features=group)
    return np.mean((predicted - y) ** 2), max(np.abs(one - everyone).max() for one in own), between


def run(report):
    aware, blind, y, group = load()
    for name, method in METHODS.items():
        runs = []
        for seed in range(2 if report.quick else N_SPLITS):
            train, test = train_test_split(np.arange(y.size), test_size=TEST_SHARE, random_state=seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                predictions = method(aware, blind, y, group, train, test)
            runs.append([figures(one, y[test], group[test]) for one in predictions])
        mean, error = mean_and_error(runs)
        report.data.setdefault("curves", {})[name] = {"mean": mean.tolist(), "standard error": error.tolist()}
        shown = mean if len(mean) == 1 else mean[:: max(1, len(mean) // 4)]
        text = ", ".join(f"{mse:.4f} at {ks:.3f} ({between:.3f} between groups)" for mse, ks, between in shown)
        if name.endswith("weights"):
            curve = Curve.through(mean[:, 1], mean[:, 0])
            points = [f"{curve.at(ks):.4f} at {ks:.3f} ({paper} {mse:.4f})" for (paper, ks), mse in PUBLISHED.items()]
            text += f"; at published distances {'; '.join(points)}"
        report.note(f"{name}: {text}")
        report.save()
