"""Do transport regressors work on any table and in any unit? Twenty synthetic ones, y in units from 1e-6 to 1e9.

``python -m benchmarks.regression_tables [--tables name ...] [--learners continuous discrete]``. The tables of
`benchmarks.hard_tables` with a real y, in every second table with errors of heavy tails (Student's t, 3 degrees of
freedom). Figures on fresh rows are means over independent samples.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import _timing
from benchmarks._hard_tables import NAMES, make_table
from benchmarks.hard_tables import floor_ratio, says_limit
from fairtransport import ContinuousTransportRegressor, DiscreteTransportRegressor

CLAIM = (
    "Twenty synthetic regression tables, y in units from 1e-6 to 1e9: no divergence, the automatic weight reaches the "
    "noise floor of the rank disparity wherever a linear model can, and 1000 y + 5 units gives the same model."
)
LEARNERS = {"continuous": ContinuousTransportRegressor, "discrete": DiscreteTransportRegressor}
BARS = {"floor": 1.3, "information": 0.5, "equivariance": 1e-6}
N_FRESH = 10


def fit(learner, rows, *, scale=1.0, shift=0.0, **options):
    """Fit once; return the model, the seconds and the categories of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.perf_counter()
        model = LEARNERS[learner](**options).fit(
            rows.X, scale * rows.y + shift, sensitive_features=rows.groups, sample_weight=rows.sample_weight
        )
        return model, time.perf_counter() - began, [warning.category.__name__ for warning in caught]


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


def measure(table, learner):
    """All figures of one table and one learner."""
    model, seconds, told = fit(learner, table.train)
    unit = float(np.std(table.train.y))
    other, _, more = fit(learner, table.train, scale=1000.0, shift=5.0 * unit)
    sample = table.fresh[0].X
    expected = model.predict(sample)
    change = np.abs((other.predict(sample) - 5.0 * unit) / 1000.0 - expected).max() / unit
    fresh = [model.predict(rows.X) for rows in table.fresh]
    figures = model.before_after_
    return {
        "finite": bool(np.isfinite(expected).all()),
        "convergence_warnings": [*told, *more].count("ConvergenceWarning"),
        "fairness_warnings": told.count("FairnessWarning"),
        "outcome": model.outcome_,
        "says_limit": says_limit(model.outcome_),
        "seconds": seconds,
        "unit": unit,
        "equivariance": float(change),
        "information_kept": float(model.information_kept_),
        "r2": list(figures["r2"]),
        "standardized_disparity": list(figures["standardized_disparity"]),
        "floor_ratio": floor_ratio(fresh, table.fresh),
        "initial_floor_ratio": floor_ratio([model.initial_estimator_.predict(r.X) for r in table.fresh], table.fresh),
    }


def judge(row):
    """Which bars one table and learner meet; a bar that does not apply is left out."""
    allows = row["fair_information"] is not None and row["fair_information"] >= BARS["information"]
    bars = {
        "no divergence": row["finite"] and row["convergence_warnings"] == 0,
        "at least half of the information": row["information_kept"] >= BARS["information"],
        "1000 y + 5 units gives the same model": row["equivariance"] <= BARS["equivariance"],
    }
    if allows:
        bars["at most 1.3 x the noise floor"] = row["floor_ratio"] <= BARS["floor"]
    elif row["floor_ratio"] > BARS["floor"]:
        bars["says that these features do not allow it"] = row["says_limit"]
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


def save(folder, rows):
    """Write what there is so far."""
    report = {
        "name": "regression_tables",
        "claim": CLAIM,
        "quick": False,
        "machine": _timing.machine(),
        "versions": _timing.versions(),
        "settings": {"fresh samples": N_FRESH, "bars": BARS},
        "rows": [],
        "notes": summary(rows),
        "curves": {},
        "tables": rows,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "regression_tables.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", choices=NAMES, metavar="name", help=f"any of: {', '.join(NAMES)}")
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS))
    parser.add_argument("--out", type=Path, default=_timing.RESULTS, help="where the results go")
    options = parser.parse_args()
    rows = []
    for name in options.tables or NAMES:
        table = make_table(name, n_fresh=N_FRESH, task="regression")
        reach = fair_information(table)
        for learner in options.learners:
            row = {"table": name, "learner": learner, "shape": list(table.train.X.shape), "fair_information": reach}
            with _timing.threads(1):
                row |= measure(table, learner)
            row["bars"] = judge(row)
            rows.append(row)
            missed = "; ".join(bar for bar, met in row["bars"].items() if not met)
            fair = "-" if reach is None else f"{reach:.2f}"
            print(
                f"{name:22} {learner:10} unit {row['unit']:8.2g} floor x {row['floor_ratio']:5.2f} (initial "
                f"{row['initial_floor_ratio']:5.1f}) kept {row['information_kept']:.2f} fair {fair} "
                f"change {row['equivariance']:.0e} {row['seconds']:.2f} s  {missed}",
                flush=True,
            )
            save(options.out, rows)
    print("\n" + "\n".join(summary(rows)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
