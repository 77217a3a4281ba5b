"""Does the default work on any table? Twenty synthetic ones, the automatic weight and eight fixed weights.

``python -m benchmarks.hard_tables [--quick] [--tables name ...] [--learners continuous discrete]``. Every figure on
fresh rows is a mean over independent samples of the table, so that chance in one test sample decides no bar.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import _timing
from benchmarks._hard_tables import NAMES, HardTable, Rows, make_table
from fairtransport import ContinuousTransportClassifier, DiscreteTransportClassifier, metrics

__all__ = ["NAMES", "HardTable", "Rows", "make_table"]

CLAIM = (
    "Twenty synthetic tables: no divergence, disparity of training rows falls with the weight, the automatic weight "
    "reaches the noise floor of the rank disparity wherever a linear model can and says so where it cannot."
)
LEARNERS = {"continuous": ContinuousTransportClassifier, "discrete": DiscreteTransportClassifier}
WEIGHTS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
SMALL = ("single_blind", "single_aware", "few_blind", "unequal_spread", "no_difference", "two_rare_groups")
BARS = {"rise": 0.01, "floor": 1.3, "information": 0.5, "order": 1e-6}
N_FRESH, N_SHUFFLES = 20, 10
JUDGED_SIZE = 30  # rows of a group in a fresh sample, for the ratio that leaves tiny groups out
# Words by which an outcome says that parity was not reached; the noise floor may be mentioned beside them.
LIMITED = ("information", "no longer", "stopped", "not reached", "cannot", "family", "features")


# --------------------------------------------------------------------------------------------------------- fitting


def fit(kind, rows, weight):
    """Fit once; return the model, the seconds and the warnings as pairs of category and message."""
    model = kind(parity_weight=weight)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.perf_counter()
        model.fit(rows.X, rows.y, sensitive_features=rows.groups, sample_weight=rows.sample_weight)
        seconds = time.perf_counter() - began
    return model, seconds, [(warning.category.__name__, str(warning.message)) for warning in caught]


def positive_scores(model, X):
    return model.predict_proba(X)[:, 1]


def reordered(rows, seed=0):
    """The same rows in another order, with names of groups that sort in the opposite order."""
    order = np.random.default_rng(seed).permutation(len(rows.y))
    names = np.unique(rows.groups)
    renamed = np.array([f"renamed {code:02d}" for code in range(len(names))])[::-1]
    weight = None if rows.sample_weight is None else rows.sample_weight[order]
    return Rows(rows.X[order], rows.y[order], renamed[np.searchsorted(names, rows.groups)][order], weight)


# ------------------------------------------------------------------------------------------------------- measuring


def training_disparities(scores, rows):
    """Disparities of training rows: in units of the scores, of their standard deviation, and of ranks.

    The last two weigh each pair of groups by n_a n_b / (n_a + n_b), the inverse of the variance that chance gives it,
    as any reliable penalty does; the first is the strong pairwise demographic disparity (SPDD).
    """
    options = {"sensitive_features": rows.groups, "sample_weight": rows.sample_weight}
    _, sizes = np.unique(rows.groups, return_counts=True)
    pairs = np.triu(np.outer(sizes, sizes) / np.add.outer(sizes, sizes), 1)
    pairs /= pairs.sum()
    deviation = np.sqrt(np.cov(scores, aweights=rows.sample_weight))
    ranks = metrics.ranks.pooled_ranks(scores, rows.sample_weight)
    return {
        "SPDD": float(metrics.strong_pairwise_disparity(scores, **options)),
        "standardised": float((pairs * metrics.pairwise_distances(scores, **options)).sum() / max(deviation, 1e-12)),
        "rank": float((pairs * metrics.pairwise_distances(ranks, **options)).sum()),
    }


def largest_rise(values, initial):
    """Largest rise from one weight to the next, as a share of the value before it.

    Below a fiftieth of what the initial model has, of that: there is hardly anything left to compare.
    """
    values = np.asarray(values, dtype=np.float64)
    if len(values) < 2:
        return 0.0
    return float(max(0.0, np.max(np.diff(values) / np.maximum(values[:-1], max(0.02 * initial, 1e-12)))))


def floor_ratio(scores, samples, *, least=1):
    """Rank disparity over its noise floor, each a mean over the samples; groups of fewer rows are left out."""
    observed, floor = [], []
    for values, rows in zip(scores, samples, strict=True):
        names, sizes = np.unique(rows.groups, return_counts=True)
        kept = np.isin(rows.groups, names[sizes >= least])
        chance = metrics.noise_floor(
            metrics.rank_disparity, values[kept], sensitive_features=rows.groups[kept], n_shuffles=N_SHUFFLES,
            random_state=0,
        )  # fmt: skip
        observed.append(chance.observed)
        floor.append(chance.mean)
    return float(np.mean(observed) / np.mean(floor))


def family_reach(table):
    """What the construction promises: a logistic regression on the fair directions, against one on all columns."""
    if table.fair_basis is None:
        return {"floor_ratio": None, "information": None}

    def dense(X):
        return X.toarray() if sparse.issparse(X) else X

    def fresh_scores(basis):
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        model.fit(dense(table.train.X) @ basis, table.train.y)
        return [positive_scores(model, dense(rows.X) @ basis) for rows in table.fresh]

    def loss(scores):
        return np.mean([log_loss(rows.y, values) for rows, values in zip(table.fresh, scores, strict=True)])

    fair, full = fresh_scores(table.fair_basis), fresh_scores(np.eye(table.train.X.shape[1]))
    constant = loss([np.full(len(rows.y), table.train.y.mean()) for rows in table.fresh])
    information = (constant - loss(fair)) / (constant - loss(full))
    return {"floor_ratio": floor_ratio(fair, table.fresh), "information": float(information)}


def measure(table, learner, *, weights):
    """All figures of one table and one learner."""
    kind = LEARNERS[learner]
    sample = table.fresh[0]
    caught, finite = [], True

    def fitted(rows, weight):
        nonlocal finite
        model, seconds, found = fit(kind, rows, weight)
        caught.extend(found)
        scores = positive_scores(model, sample.X)
        finite = finite and bool(np.isfinite(scores).all())
        return model, seconds, scores, found

    disparities, at_one = [], None
    for weight in weights:
        model, _, scores, _ = fitted(table.train, weight)
        disparities.append(training_disparities(positive_scores(model, table.train.X), table.train))
        penalised = model.history_["disparity"]
        disparities[-1]["penalised"] = float(penalised[-1]) if len(penalised) else np.nan
        at_one = scores if weight == 1.0 else at_one
    initial = training_disparities(positive_scores(model.initial_estimator_, table.train.X), table.train)
    auto, seconds, auto_scores, told = fitted(table.train, "auto")
    finite = finite and all(np.isfinite(values).all() for values in auto.path_.values())
    changes = {"order": {}}
    for weight, reference in ((1.0, at_one), ("auto", auto_scores)):
        changes["order"][str(weight)] = float(abs(fitted(reordered(table.train), weight)[2] - reference).max())
    fresh = [positive_scores(auto, rows.X) for rows in table.fresh]
    return {
        "finite": finite,
        "warnings": sorted({f"{category}: {message}" for category, message in caught}),
        "convergence_warnings": sum(category == "ConvergenceWarning" for category, _ in caught),
        "weights": list(weights),
        "training_disparity": disparities,
        "rise": {name: rise_of(name, disparities, initial) for name in disparities[0]},
        "path": {name: values.tolist() for name, values in auto.path_.items() if values.ndim == 1},
        "outcome": auto.outcome_,
        "says_limit": says_limit(auto.outcome_),
        "fairness_warnings": sum(category == "FairnessWarning" for category, _ in told),
        "seconds": seconds,
        "information_kept": float(auto.information_kept_),
        "floor_ratio": floor_ratio(fresh, table.fresh),
        "floor_ratio_without_tiny": floor_ratio(fresh, table.fresh, least=JUDGED_SIZE),
        "change": changes,
    }


def rise_of(name, disparities, initial):
    """Largest rise of one disparity; of the penalised one between weights at which anything was moved."""
    values = [point[name] for point in disparities if np.isfinite(point[name])]
    return largest_rise(values, initial.get(name, max(values, default=0.0)))


def says_limit(outcome):
    """Whether an outcome says that something other than the noise floor ended the path."""
    return any(word in outcome.lower() for word in LIMITED)


# ------------------------------------------------------------------------------------------------------- reporting


def judge(row):
    """Which bars one table and learner meet; a bar that does not apply is left out."""
    if "error" in row:
        return {"no divergence": False}
    bars = {
        "no divergence": row["finite"] and row["convergence_warnings"] == 0,
        "penalised disparity rises by at most 1 %": row["rise"]["penalised"] <= BARS["rise"],
        "at least half of the information": row["information_kept"] >= BARS["information"],
        "order and names change no score by 1e-6": max(row["change"]["order"].values()) <= BARS["order"],
    }
    if row["family_allows"]:
        bars["at most 1.3 x the floor"] = row["floor_ratio"] <= BARS["floor"]
        bars["at most 1.3 x the floor without tiny groups"] = row["floor_ratio_without_tiny"] <= BARS["floor"]
    else:
        bars["says that the family does not allow it"] = row["says_limit"]
    return bars


def summary(rows):
    """One line for each bar: how many tables meet it, and which do not."""
    lines = []
    for learner in dict.fromkeys(row["learner"] for row in rows):
        judged = {row["table"]: row["bars"] for row in rows if row["learner"] == learner}
        for bar in dict.fromkeys(bar for bars in judged.values() for bar in bars):
            met = {name: bars[bar] for name, bars in judged.items() if bar in bars}
            missed = [name for name, value in met.items() if not value]
            verdict = f"MISSED by {', '.join(missed)}" if missed else "met"
            lines.append(f"{learner}: {bar}: {sum(met.values())} of {len(met)} tables, {verdict}")
    return lines


HEADER = (
    "table", "learner", "rows x columns", "groups", "allows", "ratio to floor", "without tiny", "information", "rise",
    "order", "seconds", "missed", "outcome",
)  # fmt: skip


LEGEND = (
    "Ratio to floor: rank disparity over its mean under shuffled groups, on fresh rows, automatic weight; without "
    f"tiny: groups of at least {JUDGED_SIZE} fresh rows. Information: `information_kept_`. Rise: the largest rise of "
    "the penalised disparity of training rows from one fixed weight to the next. Order: "
    "largest change of a fresh score, weight 1 and automatic."
)


def cells(row):
    missed = "; ".join(name for name, met in row["bars"].items() if not met)
    start = (row["table"], row["learner"], row["shape"], str(row["groups"]), "yes" if row["family_allows"] else "no")
    if "error" in row:
        return (*start, *[""] * 6, missed, row["error"].replace("|", "/"))
    return (
        *start, f"{row['floor_ratio']:.2f}", f"{row['floor_ratio_without_tiny']:.2f}", f"{row['information_kept']:.2f}",
        f"{100 * row['rise']['penalised']:.1f} %", f"{max(row['change']['order'].values()):.1e}",
        f"{row['seconds']:.2f}", missed, row["outcome"].replace("|", "/"),
    )  # fmt: skip


def markdown(rows, *, quick):
    lines = ["# Hard tables", "", CLAIM, ""]
    if quick:
        lines += ["*A quick run: few tables and weights. Not for quoting.*", ""]
    lines += [f"- {line}" for line in summary(rows)]
    lines += ["", "| " + " | ".join(HEADER) + " |", "| " + " | ".join("---" for _ in HEADER) + " |"]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    lines += ["", LEGEND]
    return "\n".join(lines) + "\n"


def save(folder, rows, options):
    """Write what there is so far: minutes of fits are not lost to an interrupt."""
    report = {
        "name": "hard_tables",
        "claim": CLAIM,
        "quick": options.quick,
        "machine": _timing.machine(),
        "versions": _timing.versions(),
        "settings": {"fresh samples": N_FRESH, "shuffles": N_SHUFFLES, "bars": BARS},
        "rows": [],  # the speed benchmarks' ratios; what was measured here is in "tables"
        "notes": summary(rows),
        "curves": {},
        "tables": rows,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hard_tables.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    (folder / "hard_tables.md").write_text(markdown(rows, quick=options.quick), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small tables, few weights, one learner")
    parser.add_argument("--tables", nargs="+", choices=NAMES, metavar="name", help=f"any of: {', '.join(NAMES)}")
    parser.add_argument("--learners", nargs="+", choices=LEARNERS)
    parser.add_argument("--out", type=Path, default=_timing.RESULTS, help="where the results go")
    options = parser.parse_args()
    learners = options.learners or (["continuous"] if options.quick else list(LEARNERS))
    weights = (0.1, 1.0, 10.0) if options.quick else WEIGHTS
    rows = []
    for name in options.tables or (SMALL if options.quick else NAMES):
        table = make_table(name, n_fresh=N_FRESH)
        reach = family_reach(table)
        for learner in learners:
            row = {
                "table": name, "learner": learner, "shape": "{} x {}".format(*table.train.X.shape),
                "groups": len(table.sizes), "smallest": min(table.sizes.values()), "aware": table.aware,
                "family_allows": table.family_allows, "why": table.why, "family_reaches": reach,
            }  # fmt: skip
            try:
                with _timing.threads(1):
                    row |= measure(table, learner, weights=weights)
            except Exception as error:  # noqa: BLE001 - a fit that fails is a result, and the other tables still run
                traceback.print_exc()
                row["error"] = f"{type(error).__name__}: {error}"
            row["bars"] = judge(row)
            rows.append(row)
            print(" | ".join(cells(row)), flush=True)
            save(options.out, rows, options)
    print("\n" + "\n".join(summary(rows)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
