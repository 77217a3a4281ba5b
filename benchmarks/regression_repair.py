"""Squared error against Kolmogorov-Smirnov disparity of repaired predictions: Communities and Crime, group known.

The groups are communities whose share of black people is above .06, which is the median, or not. Two parts:

- *responses*: the responses themselves are repaired, as the predictions of a perfect regressor would be. The published
  figures seem to be of this set-up: predictions of models have twice their error. 30 % of the rows are test rows.
  Responses come in steps of .01, and a repair gives equal ones equal values; EquiPy adds noise of 1e-4, which separates
  them at random. "Ties broken" is our repair of responses with such noise.
- *models*: predictions of a regressor, chosen among three by cross-validation on training rows. Maps are computed from
  out-of-fold predictions, and EquiPy is calibrated on the same ones.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.model_selection import KFold, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairtransport as ft
from benchmarks import _timing
from fairtransport.metrics import kolmogorov_smirnov_disparity, noise_floor

CLAIM = (
    "Repaired predictions of Communities and Crime, on test rows: no peer's squared error is below ours at its "
    "Kolmogorov-Smirnov disparity by more than two standard errors. Of responses in steps of .01 this holds only with "
    "ties broken at random, as EquiPy breaks them."
)
#: Mean squared error and Kolmogorov-Smirnov disparity of repaired responses, as published.
PUBLISHED = {"Chzhen et al. (2020)": (0.0182, 0.097), "Xian et al.": (0.0185, 0.064)}
AMOUNTS = (0.0, 0.25, 0.5, 0.7, 0.8, 0.9, 1.0)
TEST_SHARE = 0.3
BROKEN = "fairtransport, ties broken"
FOLDS = KFold(5, shuffle=True, random_state=0)  # those of QuantileRepairRegressor(cv=5)


def load():
    data = ft.datasets.load_communities()
    features = data.data.dropna(axis=1)
    group = np.where(features["racepctblack"] > 0.06, "above", "below")
    X = np.column_stack((features.to_numpy(), group == "above"))
    return X, np.asarray(data.rate, dtype=float), group


def bases():
    kernel = make_pipeline(StandardScaler(), KernelRidge(kernel="rbf", gamma=0.003))
    return {
        "ridge": make_pipeline(StandardScaler(), RidgeCV(np.logspace(-1, 4, 11))),
        "kernel ridge": TransformedTargetRegressor(kernel, transformer=StandardScaler()),
        "forest": RandomForestRegressor(50, min_samples_leaf=3, max_features=1 / 3, random_state=0),
    }


def equipy(fitted, group, new, new_group, epsilon=0.0):
    from equipy.fairness import FairWasserstein  # noqa: PLC0415 - a peer that need not be installed

    peer = FairWasserstein()
    peer.fit(fitted, group)
    return np.ravel(peer.transform(new, new_group, epsilon=epsilon))


def bounded_group_loss(X, y, group):
    """The models of fairlearn's grid of multipliers of the groups' squared losses."""
    from fairlearn.reductions import BoundedGroupLoss, GridSearch, SquareLoss  # noqa: PLC0415 - likewise

    alpha = RidgeCV(np.logspace(-1, 4, 11)).fit(X, y).alpha_
    search = GridSearch(Ridge(alpha), BoundedGroupLoss(SquareLoss(0, 1)), grid_size=20)
    search.fit(X, y, sensitive_features=group)
    return list(search.predictors_)


class Measures(dict):
    """For each method a list with the error and the disparity of each split."""

    def __init__(self):
        super().__init__()
        self.seconds = {}

    def add(self, name, predicted, y, group):
        disparity = kolmogorov_smirnov_disparity(predicted, sensitive_features=group)
        self.setdefault(name, []).append((float(np.mean((predicted - y) ** 2)), disparity))

    def timed(self, name, function, *args, **options):
        start = time.perf_counter()
        result = function(*args, **options)
        self.seconds.setdefault(name, []).append(time.perf_counter() - start)
        return result


def repaired(fitted, group, new, new_group):
    repair = ft.QuantileRepair(range="learned").fit(fitted, sensitive_features=group)
    return repair, repair.transform(new, sensitive_features=new_group)


def add_repairs(found, fitted, group, new, new_group, y):
    """Ours along the amount, and EquiPy along its share that is kept."""
    repair, _ = found.timed("fairtransport", repaired, fitted, group, new, new_group)
    found.timed("EquiPy", equipy, fitted, group, new, new_group)
    for amount in AMOUNTS:
        repair.amount = amount
        found.add(
            f"fairtransport, amount {amount:g}", repair.transform(new, sensitive_features=new_group), y, new_group
        )
        found.add(f"EquiPy, epsilon {1 - amount:.3g}", equipy(fitted, group, new, new_group, 1 - amount), y, new_group)


def run_responses(n_splits):
    _, y, group = load()
    found = Measures()
    noisy = y + np.random.default_rng(0).uniform(-1e-4, 1e-4, y.size)
    for seed in range(n_splits):
        a, b = train_test_split(np.arange(y.size), test_size=TEST_SHARE, random_state=seed)
        add_repairs(found, y[a], group[a], y[b], group[b], y[b])
        repair, _ = repaired(noisy[a], group[a], noisy[b], group[b])
        for amount in AMOUNTS:
            repair.amount = amount
            moved = repair.transform(noisy[b], sensitive_features=group[b])
            found.add(f"{BROKEN}, amount {amount:g}", moved, y[b], group[b])
    return found, {}


def run_models(n_splits):
    X, y, group = load()
    found, chosen = Measures(), {}
    for seed in range(n_splits):
        a, b = train_test_split(np.arange(y.size), test_size=TEST_SHARE, random_state=seed)
        held_out = {name: cross_val_predict(model, X[a], y[a], cv=FOLDS) for name, model in bases().items()}
        name = min(held_out, key=lambda one: np.mean((held_out[one] - y[a]) ** 2))
        chosen[name] = chosen.get(name, 0) + 1
        model = ft.QuantileRepairRegressor(bases()[name]).fit(X[a], y[a], sensitive_features=group[a])
        add_repairs(found, held_out[name], group[a], model.estimator_.predict(X[b]), group[b], y[b])
        predicted = model.predict(X[b], sensitive_features=group[b])
        found.add("QuantileRepairRegressor", predicted, y[b], group[b])
        floor = noise_floor(
            kolmogorov_smirnov_disparity, predicted, sensitive_features=group[b], n_shuffles=20, random_state=seed
        )
        found.setdefault("chance", []).append((float("nan"), floor.mean))
        in_sample = ft.QuantileRepairRegressor(bases()[name], cv=None).fit(X[a], y[a], sensitive_features=group[a])
        found.add("maps of training predictions", in_sample.predict(X[b], sensitive_features=group[b]), y[b], group[b])
        scaler = StandardScaler().fit(X[a])
        rows = scaler.transform(X[a]), y[a], group[a]
        linear = ft.QuantileRepairRegressor(RidgeCV(np.logspace(-1, 4, 11)))
        found.timed("fairtransport, ridge", partial(linear.fit, *rows[:2], sensitive_features=rows[2]))
        for amount in AMOUNTS:
            linear.amount = amount
            predicted = linear.predict(scaler.transform(X[b]), sensitive_features=group[b])
            found.add(f"fairtransport, ridge, amount {amount:g}", predicted, y[b], group[b])
        models = found.timed("fairlearn GridSearch", bounded_group_loss, *rows)
        least = min(
            models, key=lambda one: kolmogorov_smirnov_disparity(one.predict(rows[0]), sensitive_features=rows[2])
        )
        found.add("fairlearn GridSearch, least disparity", least.predict(scaler.transform(X[b])), y[b], group[b])
    return found, chosen


# ------------------------------------------------------------------------------------------------------ reporting


def gap(found, peer, ours):
    """Our error less the peer's at the peer's disparity, split by split on our line through the amounts, and its error.

    Between two amounts, errors and disparities of the means over splits are taken to be linear.
    """
    values = np.array([found[f"{ours}, amount {amount:g}"] for amount in AMOUNTS])  # amounts, splits, measures
    theirs = np.array(found[peer])

    def difference(rows):
        line, point = values[:, rows].mean(axis=1), theirs[rows].mean(axis=0)
        order = np.argsort(line[:, 1])
        return np.interp(point[1], line[order, 1], line[order, 0]) - point[0]

    rng, n_splits = np.random.default_rng(0), theirs.shape[0]
    draws = [difference(rng.integers(n_splits, size=n_splits)) for _ in range(500)]
    return float(difference(np.arange(n_splits))), float(np.std(draws, ddof=1))


def gaps(results):
    compared = []
    for part, (found, _) in results.items():
        for name in found:
            if name.startswith(("EquiPy", "fairlearn")) and name != "EquiPy, epsilon 1":  # which repairs nothing
                ours = ["fairtransport, ridge"] if name.startswith("fairlearn") else ["fairtransport"]
                ours += [BROKEN] if part == "responses" else []
                for one in ours:
                    value, error = gap(found, name, one)
                    compared.append({"part": part, "peer": name, "ours": one, "gap": value, "standard error": error})
    return compared


def ratios(results):
    """How many times as long as ours the peers take: medians."""
    rows = []
    for part, (found, _) in results.items():
        for ours, peer in (("fairtransport", "EquiPy"), ("fairtransport, ridge", "fairlearn GridSearch")):
            if peer in found.seconds:
                ratio = np.median(found.seconds[peer]) / np.median(found.seconds[ours])
                rows.append({"part": part, "ours": ours, "peer": peer, "ratio": float(ratio)})
    return rows


def figures(found):
    def mean_and_error(values):
        table = np.array(values)
        return table.mean(axis=0), table.std(axis=0, ddof=1) / np.sqrt(len(table))

    return {name: mean_and_error(values) for name, values in found.items()}


def summary(compared, times):
    lines = []
    for part, ours in dict.fromkeys((one["part"], one["ours"]) for one in compared):
        own = [one for one in compared if (one["part"], one["ours"]) == (part, ours)]
        above = [one for one in own if one["gap"] > 2 * one["standard error"] + 1e-12]
        line = f"{part}: {ours}: not above the peer at {len(own) - len(above)} of {len(own)} points"
        if above:
            worst = max(above, key=lambda one: one["gap"])
            line += f"; most above {worst['peer']}: {worst['gap']:+.5f} ± {worst['standard error']:.5f}"
        lines.append(line)
    lines += [f"{one['part']}: {one['peer']} takes {one['ratio']:.3g} times as long as {one['ours']}" for one in times]
    return lines


def markdown(results, compared, times, quick):
    lines = ["# Repaired predictions of a regression against peers", "", CLAIM, ""]
    lines += ["*A quick run: few splits. Not for quoting.*", ""] if quick else []
    lines += [f"- {line}" for line in summary(compared, times)]
    for part, (found, chosen) in results.items():
        n_splits = len(next(iter(found.values())))
        lines += ["", f"## {part}: {n_splits} splits, {TEST_SHARE:.0%} of 1,994 rows are test rows", ""]
        if part == "responses":
            lines += [f"- {name}, as published: {error:.4f} at {ks:.3f}" for name, (error, ks) in PUBLISHED.items()]
            lines.append("")
        if chosen:
            lines += ["Chosen on training rows: " + ", ".join(f"{name} {n}" for name, n in chosen.items()) + ".", ""]
        lines += ["| method | mean squared error | Kolmogorov-Smirnov |", "| --- | --- | --- |"]
        for name, (mean, error) in figures(found).items():
            first = "" if np.isnan(mean[0]) else f"{mean[0]:.4f} ± {error[0]:.4f}"
            lines.append(f"| {name} | {first} | {mean[1]:.3f} ± {error[1]:.3f} |")
    return "\n".join(lines) + "\n"


def save(folder, results, options):
    compared, times = gaps(results), ratios(results)
    report = {
        "name": "regression_repair",
        "claim": CLAIM,
        "quick": options.quick,
        "machine": _timing.machine(),
        "versions": _timing.versions(),
        "settings": {"splits": options.splits, "test share": TEST_SHARE, "published": PUBLISHED},
        "rows": [],  # the speed benchmarks' ratios; what was measured here is in "figures"
        "notes": summary(compared, times),
        "figures": {
            part: {
                name: {"mean": [float(x) for x in mean], "standard error": [float(x) for x in error]}
                for name, (mean, error) in figures(found).items()
                if name != "chance"
            }
            for part, (found, _) in results.items()
        },
        "chosen": {part: chosen for part, (_, chosen) in results.items() if chosen},
        "gaps": compared,
        "times": times,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "regression_repair.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    text = markdown(results, compared, times, options.quick)
    (folder / "regression_repair.md").write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=CLAIM)
    parser.add_argument("--quick", action="store_true", help="two splits")
    parser.add_argument("--splits", type=int, default=50, help="splits of the responses; of models, at most 20")
    parser.add_argument("--out", type=Path, default=_timing.RESULTS, help="where the results go")
    options = parser.parse_args()
    options.splits = 2 if options.quick else options.splits
    with _timing.threads(1):
        results = {"responses": run_responses(options.splits)}
        results["models"] = run_models(min(options.splits, 20))
    save(options.out, results, options)
    print("\n".join(summary(gaps(results), ratios(results))))


if __name__ == "__main__":
    main()
