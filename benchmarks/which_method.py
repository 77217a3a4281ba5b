"""Blind methods on small tables, with their defaults: error at equal rank disparity, by the number of training rows.

Adult by sex and COMPAS by race (African-American, Caucasian), the group no feature; random splits, all other rows are
test rows. Each method is fitted once for a split, and followed along ``amount``. Disparities are fractions of that of
plain logistic regression.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from benchmarks import _timing
from benchmarks._odds_tasks import compas_tasks
from benchmarks.frontier import Curve
from fairtransport import BlindRepairClassifier, ContinuousTransportClassifier
from fairtransport.datasets import load_adult
from fairtransport.metrics import rank_disparity
from fairtransport.repair.blind.group_model import DenseBoostingClassifier
from fairtransport.tabular import TableEncoder

CLAIM = "Blind repair of gradient boosting from 2,000 rows on, and of logistic regression below, is the first to try."
SIZES = {"Adult, sex": (500, 2000, 4000), "COMPAS, two races": (500, 2000)}
AMOUNTS = (0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0)
FRACTIONS = (0.25, 0.4, 0.5, 0.75)
N_SPLITS = 6


def trees(seed):
    """The base model of ``fairtransport train --method blind-repair``."""
    return DenseBoostingClassifier(
        max_iter=300, max_leaf_nodes=15, max_features=0.5, early_stopping=True, n_iter_no_change=20, random_state=seed
    )


def methods(seed):
    return {
        "blind repair, logistic regression": BlindRepairClassifier(LogisticRegression(max_iter=500), random_state=seed),
        "blind repair, gradient boosting": BlindRepairClassifier(trees(seed), random_state=seed),
        "COT": ContinuousTransportClassifier(),
    }


def tables():
    adult = load_adult(as_frame=True)
    rows = np.random.default_rng(0).choice(len(adult.data), 16_000, replace=False)
    features = adult.data.drop(columns=["sex", "race"]).iloc[rows]
    sex = np.unique(adult.data["sex"].astype(str), return_inverse=True)[1][rows]
    encoded = TableEncoder(sparse_output=False).fit(features).transform(features)
    yield "Adult, sex", encoded, np.asarray(adult.target)[rows], sex
    (task,) = compas_tasks(aware=False, base="trees", n_tasks=1, races="two")
    groups = np.concatenate((task.groups_train, task.groups_test))
    y = np.concatenate((task.y_train, task.y_test))
    yield "COMPAS, two races", np.vstack((task.X_train, task.X_test)), y, np.unique(groups, return_inverse=True)[1]


def points(model, X, y, group, n_rows, seed):
    """Rank disparity and error along amount."""
    train, test = train_test_split(np.arange(y.size), train_size=n_rows, random_state=seed, stratify=2 * group + y)
    model.fit(X[train], y[train], sensitive_features=group[train])
    found = []
    for amount in AMOUNTS:
        scores = model.set_params(amount=amount).predict_proba(X[test])[:, 1]
        disparity = rank_disparity(scores, sensitive_features=group[test])
        found.append((disparity, np.mean((scores > 0.5) != y[test])))
    return found


def main():
    parser = argparse.ArgumentParser(description=CLAIM)
    parser.add_argument("--quick", action="store_true", help="the smallest tables, one split")
    options = parser.parse_args()
    report = _timing.Report("which_method", CLAIM, quick=options.quick, folder=_timing.RESULTS / "quality")
    with _timing.threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, X, y, group in tables():
            for n_rows in SIZES[name][: 1 if options.quick else None]:
                runs = {}
                for seed in range(1 if options.quick else N_SPLITS):
                    for method, model in methods(seed).items():
                        runs.setdefault(method, []).append(points(model, X, y, group, n_rows, seed))
                plain = np.mean(runs["blind repair, logistic regression"], axis=0)[0, 0]
                for method, found in runs.items():
                    mean = np.mean(found, axis=0)
                    curve = Curve.through(mean[:, 0], mean[:, 1])
                    told = "  ".join(f"{float(curve.at(part * plain)):.4f} at {part:g}" for part in FRACTIONS)
                    spread = np.std([run[5][1] for run in found]) / np.sqrt(len(found))
                    report.note(
                        f"{name}, {n_rows} rows, {method}: plain {mean[0, 1]:.4f} at rank disparity {mean[0, 0]:.3f}; "
                        f"{told}; standard error {spread:.4f}; ends with {mean[-1, 1]:.4f} at {mean[-1, 0]:.3f}"
                    )
                    report.save()


if __name__ == "__main__":
    main()
