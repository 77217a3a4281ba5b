"""Do blind boosted trees hold on small tables? Trees and linear models with defaults, at equal rank disparity.

``python -m benchmarks.small_tables [--folder tables] [--tables name ...] [--sizes n ...] [--seeds k] [--add]``. Five
data sets, sub-sampled to 500, 2,000 and 5,000 training rows; all other rows, at most 10,000, are test rows. Adult,
German and Communities come with the package. COMPAS and Bank are read from a folder with
``compas-scores-two-years_clean.csv`` and ``bank-full.csv``, the files of https://github.com/tailequy/fairness_dataset
(experiments/data). Defaults were chosen on other tables of that collection (Dutch census, credit cards, law school,
OULAD) and on a synthetic one. ``--add`` keeps what is stored and measures what is not.

Both models are fitted once with defaults and followed along ``amount``, from the plain model to the trained one.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks import _timing
from fairtransport import ContinuousTransportClassifier, datasets, metrics
from fairtransport.boosting import TransportBoostingClassifier

CLAIM = (
    "Five data sets, 500 to 5,000 training rows, blind, defaults: boosted trees are never above the linear model by "
    "more than one standard error at equal rank disparity, and SPDD is above its noise floor nowhere without a warning."
)
SEEDS = {500: 10, 2_000: 10, 5_000: 5}  # of each size
MAX_TEST, MIN_TEST = 10_000, 250
AMOUNTS = (0.0, 0.25, 0.5, 0.75, 1.0)
POSITIONS = {"trained": 0.0, "middle": 0.5, "plain": 1.0}  # within the rank disparities that both curves have
LEARNERS = {
    "linear": lambda seed: ContinuousTransportClassifier(),  # noqa: ARG005 - nothing is drawn
    "trees": lambda seed: TransportBoostingClassifier(random_state=seed),
}
ABOVE_FLOOR = 1.3  # times the mean under permuted groups, as for the hard tables
MATERIAL = 0.05  # mean difference of selection rates that fits without a warning exclude
N_SHUFFLES = 100
LEGEND = (
    "Test rows, mean over seeds, which draw training and test rows anew. Differences are trees less linear in error at "
    "equal rank disparity, along `amount`: at the lowest that both models reach, in the middle, and at the highest; "
    "with the standard error over seeds. Floor: SPDD over its mean under permuted groups, on as many test rows as "
    "there were training rows, of fits without a warning, with the standard error over seeds. A model whose groups are "
    "equal on its n training rows is expected near 1.41, the square root of 2: these are a sample as well. Groups "
    "differ: the largest mean difference of selection rates between groups on all test rows, of fits without a warning."
)


# ------------------------------------------------------------------------------------------------------------ tables


def encoded(table, target, groups, *, drop):
    """Numbers as they are and categories as columns of zeros and ones, the same for both learners."""
    features = table.drop(columns=list(drop))
    numeric = features.select_dtypes("number")
    texts = features.drop(columns=numeric.columns).astype(str)
    parts = [numeric.to_numpy(float)]
    if texts.shape[1]:
        parts.append(pd.get_dummies(texts, dtype=float).to_numpy())
    return np.column_stack(parts), np.asarray(target).astype(int), np.asarray(groups).astype(str)


def adult(folder):  # noqa: ARG001
    """Race x sex."""
    data = datasets.load_adult()
    kept = data.data["race"].isin(("Black", "White")).to_numpy()
    pairs = data.sensitive_features["race"].astype(str) + ", " + data.sensitive_features["sex"].astype(str)
    return encoded(data.data[kept], data.target[kept], pairs[kept], drop=("race", "sex"))


def german(folder):  # noqa: ARG001
    """Age group."""
    data = datasets.load_german()
    return encoded(data.data, data.target, data.sensitive_features["age_group"], drop=("age", "personal_status_sex"))


def communities(folder):  # noqa: ARG001
    """Share of black people."""
    data = datasets.load_communities()
    races = ("racepctblack", "racePctWhite", "racePctAsian", "racePctHisp")
    table = data.data.fillna(data.data.median(numeric_only=True))
    return encoded(table, data.target, data.sensitive_features["black"], drop=races)


def compas(folder):
    """Race, with races of few rows as one group."""
    table = pd.read_csv(folder / "compas-scores-two-years_clean.csv")
    race = table["race"].where(~table["race"].isin(("Asian", "Native American")), "Other")
    names = ["age", "priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count", "sex", "c_charge_degree"]
    return encoded(table[names], table["two_year_recid"], race, drop=())


def bank(folder):
    """Married or not; without the duration of the call, which is known only after it."""
    table = pd.read_csv(folder / "bank-full.csv")
    return encoded(table, table["y"] == "yes", table["marital"] == "married", drop=("y", "marital", "duration"))


TABLES = {"Adult": adult, "German": german, "Communities": communities, "COMPAS": compas, "Bank": bank}


def sampled(table, size, seed):
    """Training rows, and test rows; None where too few rows are left for a test."""
    X, y, groups = table
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:size], order[size : size + MAX_TEST]
    if len(test) < MIN_TEST:
        return None
    varied = np.ptp(X[train], axis=0) > 0.0
    return (X[train][:, varied], y[train], groups[train]), (X[test][:, varied], y[test], groups[test])


# --------------------------------------------------------------------------------------------------------- measuring


def measure(learner, train, test, seed):
    """The curve of one model on test rows, and what it says."""
    model = LEARNERS[learner](seed)
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(train[0], train[1], sensitive_features=train[2])
    seconds = time.perf_counter() - began
    curve = []
    for amount in AMOUNTS:
        scores = model.set_params(amount=amount).predict_proba(test[0])[:, 1]
        inside = np.clip(scores, 1e-9, 1.0 - 1e-9)
        curve.append(
            {
                "amount": amount,
                "rank_disparity": float(metrics.rank_disparity(scores, sensitive_features=test[2])),
                "error": float(np.mean((scores > 0.5) != test[1])),
                "log_loss": float(-np.mean(np.where(test[1] == 1, np.log(inside), np.log1p(-inside)))),
            }
        )
    rows = slice(0, min(len(train[1]), len(test[1])))  # the noise floor of a sample like the one that was seen
    floor = metrics.noise_floor(
        metrics.strong_pairwise_disparity, scores[rows], sensitive_features=test[2][rows], n_shuffles=N_SHUFFLES,
        random_state=0,
    )  # fmt: skip
    n_groups = len(np.unique(test[2]))
    return {
        "curve": curve,
        "rate_difference": 2.0 * curve[-1]["rank_disparity"] / (n_groups * (n_groups - 1)),
        "floor_ratio": float(floor.observed / floor.mean),
        "p_value": float(floor.p_value),
        "warnings": sorted({warning.category.__name__ for warning in caught}),
        "outcome": model.outcome_,
        "information_kept": float(model.information_kept_),
        "seconds": seconds,
    }


def interpolated(curve, x, name):
    """A figure of a curve at a rank disparity; beyond its ends, that of the end."""
    points = sorted((point["rank_disparity"], point[name]) for point in curve)
    return float(np.interp(x, *zip(*points, strict=True)))


def differences(linear, trees, name):
    """Trees less linear at equal rank disparity: where both are trained most, in the middle, and where least."""
    spans = [[point["rank_disparity"] for point in one["curve"]] for one in (linear, trees)]
    low, high = max(map(min, spans)), max(map(max, spans))
    places = {where: low + part * (high - low) for where, part in POSITIONS.items()}
    return {
        where: interpolated(trees["curve"], x, name) - interpolated(linear["curve"], x, name)
        for where, x in places.items()
    }


# --------------------------------------------------------------------------------------------------------- reporting


def summarized(results):
    """One row for each table and size."""
    rows, order = [], list(TABLES)
    for size, table in sorted(
        {(run["size"], run["table"]) for run in results}, key=lambda x: (x[0], order.index(x[1]))
    ):
        runs = [result for result in results if (result["table"], result["size"]) == (table, size)]
        row = {"table": table, "size": size, "seeds": len(runs)}
        for name in ("error", "log_loss"):
            found = [differences(run["linear"], run["trees"], name) for run in runs]
            for where in POSITIONS:
                row[f"{name}, {where}"] = mean_and_error([one[where] for one in found])
        for learner in LEARNERS:
            last = [run[learner]["curve"][-1] for run in runs]
            row[f"{learner}, error"] = float(np.mean([point["error"] for point in last]))
            row[f"{learner}, rank disparity"] = float(np.mean([point["rank_disparity"] for point in last]))
            silent = [run[learner] for run in runs if "FairnessWarning" not in run[learner]["warnings"]]
            row[f"{learner}, floor"] = mean_and_error([run["floor_ratio"] for run in silent]) if silent else None
            row[f"{learner}, rate difference"] = max((run["rate_difference"] for run in silent), default=None)
            row[f"{learner}, warned"] = len(runs) - len(silent)
            row[f"{learner}, seconds"] = float(np.median([run[learner]["seconds"] for run in runs]))
        rows.append(row)
    return rows


def mean_and_error(values):
    """Mean over seeds and its standard error."""
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
    return float(np.mean(values)), error


def judged(rows):
    """The claim, bar by bar."""
    lines = []
    for where in POSITIONS:
        above = [f"{row['table']} {row['size']}" for row in rows if above_by_more(row[f"error, {where}"])]
        verdict = f"MISSED by {', '.join(above)}" if above else "met"
        lines.append(f"error at most one standard error above the linear model's, {where} end: {verdict}")
    over = [
        f"{row['table']} {row['size']} ({row['trees, floor'][0]:.2f})"
        for row in rows
        if row["trees, floor"] is not None and row["trees, floor"][0] > ABOVE_FLOOR
    ]
    lines.append(
        f"SPDD without a warning at most {ABOVE_FLOOR} x its floor: {'MISSED by ' + ', '.join(over) if over else 'met'}"
    )
    unequal = [f"{row['table']} {row['size']}" for row in rows if (row["trees, rate difference"] or 0.0) > MATERIAL]
    lines.append(
        f"groups of each fit without a warning differ by at most {100 * MATERIAL:.0f} percentage points at equal "
        f"shares selected: {'MISSED by ' + ', '.join(unequal) if unequal else 'met'}"
    )
    return lines


def above_by_more(pair):
    mean, error = pair
    return bool(mean > error) if np.isfinite(error) else bool(mean > 0.0)


def markdown(rows):
    names = [f"difference, {where}" for where in POSITIONS]
    header = (
        "table", "rows", "seeds", "linear: error at rank disparity", "trees: error at rank disparity", *names,
        "floor (trees)", "groups differ (trees)", "warned (trees)", "seconds (trees)",
    )  # fmt: skip
    lines = ["# Small tables", "", CLAIM, "", *(f"- {line}" for line in judged(rows)), ""]
    lines += ["| " + " | ".join(header) + " |", "| " + " | ".join("---" for _ in header) + " |"]
    for row in rows:
        cells = [row["table"], f"{row['size']:,}", str(row["seeds"])]
        cells += [f"{row[f'{name}, error']:.4f} at {row[f'{name}, rank disparity']:.3f}" for name in LEARNERS]
        cells += ["{:+.4f} ± {:.4f}".format(*row[f"error, {where}"]) for where in POSITIONS]
        floor, difference = row["trees, floor"], row["trees, rate difference"]
        cells += ["", ""] if floor is None else ["{:.2f} ± {:.2f}".format(*floor), f"{difference:.3f}"]
        cells.append(f"{row['trees, warned']} of {row['seeds']}")
        lines.append("| " + " | ".join([*cells, f"{row['trees, seconds']:.1f}"]) + " |")
    return "\n".join([*lines, "", LEGEND]) + "\n"


def save(folder, results):
    folder.mkdir(parents=True, exist_ok=True)
    rows = summarized(results)
    report = {
        "name": "small_tables",
        "claim": CLAIM,
        "quick": False,
        "machine": _timing.machine(),
        "versions": _timing.versions(),
        "rows": [],
        "notes": judged(rows),
        "curves": {},
        "summary": rows,
        "results": results,
    }
    (folder / "small_tables.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    (folder / "small_tables.md").write_text(markdown(rows), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=CLAIM)
    parser.add_argument("--folder", type=Path, help="folder with the files of COMPAS and Bank")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--seeds", type=int, help="number of seeds of all sizes")
    parser.add_argument("--add", action="store_true", help="keep stored results, and measure what is missing")
    parser.add_argument("--out", type=Path, default=_timing.RESULTS)
    options = parser.parse_args()
    stored = options.out / "small_tables.json"
    results = json.loads(stored.read_text(encoding="utf-8"))["results"] if options.add and stored.exists() else []
    seeds = {size: options.seeds or SEEDS[size] for size in options.sizes}
    for seed in range(max(seeds.values())):
        for size in options.sizes:
            for name in options.tables if seed < seeds[size] else ():
                is_stored = any((one["table"], one["size"], one["seed"]) == (name, size, seed) for one in results)
                if is_stored or (options.folder is None and name in {"COMPAS", "Bank"}):
                    continue
                parts = sampled(TABLES[name](options.folder), size, seed)
                if parts is None:
                    continue
                result = {"table": name, "size": size, "seed": seed}
                with _timing.threads(1):
                    result |= {learner: measure(learner, *parts, seed) for learner in LEARNERS}
                results.append(result)
                found = differences(result["linear"], result["trees"], "error")
                told = " ".join(f"{where} {value:+.4f}" for where, value in found.items())
                print(f"{name} {size} seed {seed}: {told}; {result['trees']['outcome']}", flush=True)
                save(options.out, results)
    print("\n".join(judged(summarized(results))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
