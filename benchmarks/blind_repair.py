"""Error against disparity of blind repair: of LightGBM on Adult, and of a regressor on Communities and Crime.

Adult: official split, rows of Black and White people, race crossed with sex (four groups), neither of them a feature;
test rows, mean of several seeds. Communities: the rate of violent crime, communities with a share of Black people above
and below the median, without the columns of shares by race; mean of random splits into 80 % and 20 %.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from lightgbm import LGBMClassifier
from scipy.stats import ks_2samp
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import _timing
from benchmarks._fair_peers import dense
from benchmarks._odds_ours import ProbabilityReader
from benchmarks._odds_peers import ScoreReader
from benchmarks.frontier import Curve, spdd, tasks
from benchmarks.trees import trees
from fairtransport import BlindRepairClassifier, BlindRepairRegressor
from fairtransport.datasets import load_communities

CLAIM = (
    "Blind repair of a plain LightGBM on Adult, Err-.5 at SPDD: at most .1540 at .11, .1480 at .165, .1390 at .26. "
    "Blind repair of a regressor on Communities: mean squared error at most .0297 at a Kolmogorov-Smirnov distance of "
    ".220, .0374 at .111."
)
BARS = {"Adult": {0.11: 0.1540, 0.165: 0.1480, 0.26: 0.1390}, "Communities": {0.220: 0.0297, 0.111: 0.0374}}
ADULT_SLACKS = (0.0, 0.015, 0.03, 0.045, 0.07)
AMOUNTS = (0.0, 0.3, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
SLACKS = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2)
N_SPLITS = 20


def adult_points(report, *, quick, n_seeds):
    """Points along slack, and along amount from full repair; both models are cross-fitted once for each seed."""
    (task,) = tasks("Adult", "blind", quick=quick)
    X, new, codes = dense(task.X_train), dense(task.X_test), task.groups_train.codes
    found = {"slack": [], "amount": []}
    for seed in range(n_seeds):
        groups = LGBMClassifier(
            n_estimators=100, num_leaves=15, colsample_bytree=0.5, random_state=seed, n_jobs=1, verbose=-1
        )
        folds = list(StratifiedKFold(5, shuffle=True, random_state=seed).split(X, 2 * codes + task.y_train))
        tables = [[], []]
        for model, target in ((trees(seed), task.y_train), (groups, codes)):
            tables[0].append(cross_val_predict(model, X, target, cv=folds, method="predict_proba"))
            tables[1].append(model.fit(X, target).predict_proba(new))
        train, test = (np.column_stack((scores[:, 1], probabilities)) for scores, probabilities in tables)
        rows = {"slack": [], "amount": []}
        for slack in ("auto", *ADULT_SLACKS[:: 3 if quick else 1]):
            began = time.perf_counter()
            model = BlindRepairClassifier(
                ScoreReader(), ProbabilityReader(train.shape[1] - 1), slack=slack, random_state=seed
            ).fit(train, task.y_train, sensitive_features=task.groups_train)
            report.note(f"Adult, seed {seed}, slack {slack}: {time.perf_counter() - began:.0f} s. {model.report_}")
            for amount in AMOUNTS if slack == "auto" else (1.0,):
                scores = model.set_params(amount=amount).predict_proba(test)[:, 1]
                point = spdd(scores, task.groups_test), float(np.mean((scores > 0.5) != task.y_test))
                rows["amount" if slack == "auto" else "slack"].append(point)
            report.note(f"Adult, seed {seed}, slack {slack}: {point[1]:.4f} at {point[0]:.3f}")
        for name, points in rows.items():
            found[name].append(points)
        report.save()
    return {name: np.mean(runs, axis=0) for name, runs in found.items()}


def communities_points(*, quick):
    """Mean squared error and Kolmogorov-Smirnov distance along slack."""
    data = load_communities(as_frame=True)
    complete = data.data.loc[:, data.data.notna().all()]
    shares = [name for name in complete.columns if name.lower().startswith("racepct")]
    X, y = complete.drop(columns=shares).to_numpy(), np.asarray(data.rate)
    group = (data.sensitive_features["black"] == "high").to_numpy(dtype=int)
    runs = []
    for seed in range(2 if quick else N_SPLITS):
        train, test = train_test_split(np.arange(y.size), test_size=0.2, random_state=seed)
        runs.append([])
        for slack in SLACKS:
            model = BlindRepairRegressor(
                make_pipeline(StandardScaler(), RidgeCV(np.logspace(-1, 3, 9))),
                make_pipeline(StandardScaler(), LogisticRegression(C=0.1)),
                slack=slack, random_state=seed,
            )  # fmt: skip
            model.fit(X[train], y[train], sensitive_features=group[train])
            for amount in (0.0, 1.0) if slack == SLACKS[-1] else (1.0,):
                predicted = model.set_params(amount=amount).predict(X[test])
                distance = ks_2samp(predicted[group[test] == 0], predicted[group[test] == 1]).statistic
                runs[-1].append((distance, np.mean((predicted - y[test]) ** 2)))
    return np.mean(runs, axis=0), np.std(runs, axis=0) / np.sqrt(len(runs))


def judge(report, name, method, points):
    curve = Curve.through(points[:, 0], points[:, 1])
    for place, bar in BARS[name].items():
        value = float(curve.at(place))
        verdict = "not reached" if np.isnan(value) else "met" if value <= bar else "MISSED"
        report.note(f"{name}, {method}: {value:.4f} at {place:g}; asked {bar:g}: {verdict}")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=3, help="of the models on Adult")
    parser.add_argument("--data", choices=("Adult", "Communities"), nargs="*", default=("Communities", "Adult"))
    options = parser.parse_args(arguments)
    report = _timing.Report("blind_repair", CLAIM, quick=options.quick, folder=_timing.RESULTS / "quality")
    with _timing.threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "Communities" in options.data:
            points, errors = communities_points(quick=options.quick)
            told = "  ".join(f"{e:.4f} ± {s:.4f} at {d:.3f}" for (d, e), (_, s) in zip(points, errors, strict=True))
            report.note(f"Communities, slack: {told}")
            judge(report, "Communities", "slack", points)
        if "Adult" in options.data:
            for method, points in adult_points(
                report, quick=options.quick, n_seeds=1 if options.quick else options.seeds
            ).items():
                told = "  ".join(f"{error:.4f} at {disparity:.3f}" for disparity, error in points)
                report.note(f"Adult, {method}: {told}")
                judge(report, "Adult", method, points)
    report.save()


if __name__ == "__main__":
    main()
