"""Communities and Crime with its continuous target: linear regression under demographic parity, blind and aware.

``python -m benchmarks.communities_linear [--splits 20]``. Test rows of random splits (70 % training); the published
curves are those of the papers, which split differently. Kolmogorov-Smirnov (KS) distances are those of each group to
everyone, the larger one.

References
----------
A. Agarwal, M. Dudík and Z. S. Wu, Fair Regression, ICML 2019. F. Taturyan, E. Chzhen and M. Hebiri, Regression under
demographic parity constraints via unlabeled post-processing, NeurIPS 2024.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import _timing
from fairtransport import ContinuousTransportRegressor, DiscreteTransportRegressor, QuantileRepairRegressor
from fairtransport.datasets import load_communities

CLAIM = "Communities and Crime: mean squared error at Kolmogorov-Smirnov distance to everyone, on held-out rows."
PUBLISHED = {
    "Taturyan et al. (blind)": [(0.0297, 0.220), (0.0374, 0.111)],
    "Agarwal et al. (blind)": [(0.0280, 0.280), (0.0399, 0.120)],
}
RACE = ("racepctblack", "racePctWhite", "racePctAsian", "racePctHisp")
WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0, 4.0, 10.0, 30.0)
LEARNERS = {"continuous": ContinuousTransportRegressor, "discrete": DiscreteTransportRegressor}


def load():
    """Features with the columns that are mostly missing left out and other gaps filled, the target, and the groups."""
    data = load_communities(task="regression")
    frame = data.data.loc[:, data.data.isna().mean() < 0.5]
    frame = frame.fillna(frame.mean())
    share = frame["racepctblack"].to_numpy()
    groups = {"racepctblack above its median, .06": share > np.median(share)}
    return frame, np.asarray(data.target, dtype=np.float64), groups


def ks_to_everyone(scores, group):
    """Largest distance of a group's distribution function to that of everyone."""
    points = np.sort(scores)
    everyone = np.searchsorted(points, points, side="right") / len(points)
    return max(
        float(np.abs(np.searchsorted(np.sort(scores[part]), points, side="right") / part.sum() - everyone).max())
        for part in (group, ~group)
    )


def measure(model, X, y, group, train, test, *, path=None):
    """MSE and KS on the test rows of a model, or of each model of a path of weights, and the seconds of training."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if path is None:
            fitted = [model.fit(X[train], y[train], sensitive_features=group[train])]
        else:
            fitted = model.fit_path(X[train], y[train], path, sensitive_features=group[train])
    seconds = time.perf_counter() - began
    scores = [one.predict(X[test], sensitive_features=group[test]) for one in fitted]
    return [(float(np.mean((y[test] - s) ** 2)), ks_to_everyone(s, group[test]), seconds) for s in scores]


def error_at(curve, ks):
    """MSE of a mean curve at a KS distance, interpolated linearly; None where the curve does not reach it."""
    errors, distances = (np.array(column) for column in zip(*curve, strict=True))
    order = np.argsort(distances)
    if not distances.min() <= ks <= distances.max():
        return None
    return float(np.interp(ks, distances[order], errors[order]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--out", type=Path, default=_timing.RESULTS, help="where the results go")
    options = parser.parse_args()
    frame, y, groups = load()
    everything, blind = frame.to_numpy(), frame.drop(columns=list(RACE)).to_numpy()
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-1, 4, 11)))
    notes, curves = [], {}
    for name, group in groups.items():
        runs: dict[str, list] = {}
        for split in range(options.splits):
            order = np.random.default_rng(split).permutation(len(y))
            train, test = order[: int(0.7 * len(y))], order[int(0.7 * len(y)) :]
            rows = train, test
            for learner, kind in LEARNERS.items():
                runs.setdefault(f"{learner}, blind", []).append(
                    measure(kind(), blind, y, group, *rows, path=list(WEIGHTS))
                )
                runs.setdefault(f"{learner}, blind, automatic", []).append(measure(kind(), blind, y, group, *rows))
                runs.setdefault(f"{learner}, aware, weights for each group", []).append(
                    measure(kind(group_specific=True), everything, y, group, *rows)
                )
            runs.setdefault("ridge, blind", []).append(measure(kind(parity_weight=0.0), blind, y, group, *rows))
            runs.setdefault("quantile repair of ridge, aware", []).append(
                measure(QuantileRepairRegressor(ridge), everything, y, group, *rows)
            )
        for method, results in runs.items():
            means, errors = np.mean(results, axis=0), np.std(results, axis=0, ddof=1) / np.sqrt(options.splits)
            curves[f"{name}: {method}"] = [
                {"mse": m[0], "mse_se": e[0], "ks": m[1], "ks_se": e[1], "seconds": m[2]}
                for m, e in zip(means.tolist(), errors.tolist(), strict=True)
            ]
            if len(means) == 1:
                notes.append(
                    f"{name}: {method}: MSE {means[0, 0]:.4f} at KS {means[0, 1]:.3f} ({means[0, 2]:.1f} s, standard "
                    f"errors {errors[0, 0]:.4f} and {errors[0, 1]:.3f})"
                )
                continue
            curve = [(point[0], point[1]) for point in means.tolist()]
            for paper, points in PUBLISHED.items():
                for error, ks in points:
                    ours = error_at(curve, ks)
                    text = "not reached" if ours is None else f"{ours:.4f}"
                    notes.append(f"{name}: {method} at KS {ks:.3f}: MSE {text}; {paper} {error:.4f}")
            notes.append(f"{name}: {method}: " + ", ".join(f"{m:.4f} at {ks:.3f}" for m, ks in curve))
    report = {
        "name": "communities_linear",
        "claim": CLAIM,
        "quick": options.splits < 20,
        "machine": _timing.machine(),
        "versions": _timing.versions(),
        "settings": {"splits": options.splits, "weights": list(WEIGHTS), "published": PUBLISHED},
        "rows": [],
        "notes": notes,
        "curves": curves,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "communities_linear.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print("\n".join(notes))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
