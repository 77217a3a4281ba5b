"""Do the defaults work on any table? Twenty synthetic ones, classification and regression, both distances.

Figures on fresh rows are means over independent samples of a table, so that chance in one test sample decides nothing.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import _ours
from benchmarks._hard_tables import NAMES, Rows, make_table
from fairtransport import metrics

CLAIM = (
    "Twenty synthetic tables: no divergence, the penalised disparity falls with the weight, order and names of rows "
    "and units of y change nothing, and the automatic weight reaches 1.3 times the noise floor of the rank disparity "
    "of fresh rows wherever a linear model can, and says so where it cannot."
)
WEIGHTS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
QUICK = ("single_aware", "few_blind", "no_difference")
RISE, FLOOR, INFORMATION, CHANGE = 0.01, 1.3, 0.5, 1e-6
N_FRESH, N_SHUFFLES = 20, 10
# Words by which an outcome says that parity was not reached; the noise floor may be mentioned beside them.
LIMITED = ("information", "no longer", "stopped", "not reached", "cannot", "family", "features", "does not help")


def fit(model, rows, *, scale=1.0, shift=0.0):
    """Fit once; return the model, the seconds and the categories of its warnings."""
    y = rows.y if (scale, shift) == (1.0, 0.0) else scale * rows.y + shift
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.perf_counter()
        model.fit(rows.X, y, sensitive_features=rows.groups, sample_weight=rows.sample_weight)
        return model, time.perf_counter() - began, [warning.category.__name__ for warning in caught]


def reordered(rows, seed=0):
    """The same rows in another order, with names of groups that sort in the opposite order."""
    order = np.random.default_rng(seed).permutation(len(rows.y))
    names = np.unique(rows.groups)
    renamed = np.array([f"renamed {code:02d}" for code in range(len(names))])[::-1]
    weight = None if rows.sample_weight is None else rows.sample_weight[order]
    return Rows(rows.X[order], rows.y[order], renamed[np.searchsorted(names, rows.groups)][order], weight)


def largest_rise(values):
    """Largest rise from one weight to the next, as a share of the value before it, or of a fiftieth of the largest."""
    values = np.array([value for value in values if np.isfinite(value)])
    if len(values) < 2:
        return 0.0
    return float(max(0.0, np.max(np.diff(values) / np.maximum(values[:-1], max(0.02 * values.max(), 1e-12)))))


def floor_ratio(scores, samples):
    """Rank disparity over its noise floor, each a mean over the samples."""
    found = [
        metrics.noise_floor(
            metrics.rank_disparity, values, sensitive_features=rows.groups, n_shuffles=N_SHUFFLES, random_state=0
        )
        for values, rows in zip(scores, samples, strict=True)
    ]
    return float(np.mean([one.observed for one in found]) / np.mean([one.mean for one in found]))


def fair_information(table):
    """Share of the gain in squared error that a regression on the fair directions keeps, on fresh rows."""
    if table.fair_basis is None:
        return None

    def dense(X):
        return X.toarray() if sparse.issparse(X) else X

    def error(basis):
        model = make_pipeline(StandardScaler(), Ridge()).fit(dense(table.train.X) @ basis, table.train.y)
        return np.mean([np.mean((rows.y - model.predict(dense(rows.X) @ basis)) ** 2) for rows in table.fresh])

    constant = np.mean([np.mean((rows.y - table.train.y.mean()) ** 2) for rows in table.fresh])
    return float((constant - error(table.fair_basis)) / (constant - error(np.eye(table.train.X.shape[1]))))


def _common(model, seconds, scores, table):
    return {
        "finite": all(bool(np.isfinite(values).all()) for values in scores),
        "outcome": model.outcome_,
        "says_limit": any(word in model.outcome_.lower() for word in LIMITED),
        "seconds": seconds,
        "information_kept": float(model.information_kept_),
        "floor_ratio": floor_ratio(scores, table.fresh),
    }


def measure_classifier(table, distance, weights=WEIGHTS):
    """All figures of a table of labels and one distance."""
    told, penalised, models = [], [], {}
    for weight in (*weights, "auto"):
        models[weight], seconds, caught = fit(_ours.classifier(distance, parity_weight=weight), table.train)
        told += caught
        if weight != "auto":
            values = models[weight].history_["disparity"]
            penalised.append(float(values[-1]) if len(values) else np.nan)
    sample, changes = table.fresh[0].X, []
    for weight in (1.0, "auto"):
        again, _, caught = fit(_ours.classifier(distance, parity_weight=weight), reordered(table.train))
        told += caught
        changes.append(abs(again.predict_proba(sample) - models[weight].predict_proba(sample)).max())
    model = models["auto"]
    return {
        **_common(model, seconds, [model.predict_proba(rows.X)[:, 1] for rows in table.fresh], table),
        "allows": table.family_allows,
        "convergence_warnings": told.count("ConvergenceWarning"),
        "rise": largest_rise(penalised),
        "change": float(max(changes)),
    }


def measure_regressor(table, distance):
    """All figures of a table of real numbers and one distance."""
    model, seconds, told = fit(_ours.regressor(distance), table.train)
    unit = float(np.std(table.train.y))
    other, _, more = fit(_ours.regressor(distance), table.train, scale=1000.0, shift=5.0 * unit)
    sample = table.fresh[0].X
    change = np.abs((other.predict(sample) - 5.0 * unit) / 1000.0 - model.predict(sample)).max() / unit
    reach = fair_information(table)
    return {
        **_common(model, seconds, [model.predict(rows.X) for rows in table.fresh], table),
        "allows": reach is not None and reach >= INFORMATION,
        "convergence_warnings": [*told, *more].count("ConvergenceWarning"),
        "change": float(change),
    }


def judge(row):
    """Return which requirements a table meets; those that do not apply are left out."""
    found = {
        "no divergence": row["finite"] and row["convergence_warnings"] == 0,
        "at least half of the information": row["information_kept"] >= INFORMATION,
        "order and names, or 1000 y + 5 units, give the same model": row["change"] <= CHANGE,
    }
    if "rise" in row:
        found["penalised disparity rises by at most 1 %"] = row["rise"] <= RISE
    if row["allows"]:
        found["at most 1.3 x the noise floor"] = row["floor_ratio"] <= FLOOR
    elif row["floor_ratio"] > FLOOR:
        found["says that these features do not allow it"] = row["says_limit"]
    return found


def summarize(learner, rows):
    judged = {name: judge(row) for name, row in rows.items()}
    parts = []
    for bar in dict.fromkeys(bar for bars in judged.values() for bar in bars):
        met = {name: bars[bar] for name, bars in judged.items() if bar in bars}
        missed = [name for name, value in met.items() if not value]
        parts.append(f"{bar} {sum(met.values())} of {len(met)}" + (f" (not {', '.join(missed)})" if missed else ""))
    return f"{learner}: {'; '.join(parts)}"


def run(report):
    names, n_fresh = (QUICK, 2) if report.quick else (NAMES, N_FRESH)
    tables = report.data.setdefault("tables", {})
    for task, measure in (("classification", measure_classifier), ("regression", measure_regressor)):
        for distance in _ours.DISTANCES:
            rows = tables.setdefault(f"{task}, {distance}", {})
            for name in names:
                rows[name] = measure(make_table(name, n_fresh=n_fresh, task=task), distance)
                print(f"  {task}, {distance}, {name}: {rows[name]}", flush=True)
            report.note(summarize(f"{task}, {distance}", rows))
            report.save()
