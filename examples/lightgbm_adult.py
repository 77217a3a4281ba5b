"""LightGBM on Adult, with and without the transport penalty: the whole trade-off, blind and aware.

Four groups (race x sex), official split, categories and missing values as LightGBM accepts them. *Blind*: race and sex
are not among the features, and not known at prediction. *Aware*: they are, and the scores of a model with a small
penalty are repaired group by group, by increasing amounts.

``python examples/lightgbm_adult.py out.png [number of seeds]``: prints test metrics and plots them; about a minute per
seed.
"""

import sys
from typing import NamedTuple

import matplotlib as mpl

from fairtransport import QuantileRepair

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier

from fairtransport.boosting import TransportBoostingClassifier
from fairtransport.datasets import load_adult
from fairtransport.groups import Groups, make_groups
from fairtransport.metrics import error_rate, strong_pairwise_disparity
from fairtransport.report.style.figures import group_styles

WEIGHTS = (0.0, 0.5, 1.0, 2.0, 4.0)
SHOWN = 2.0  # the weight whose scores are plotted
AWARE_WEIGHT, REPAIRS = 0.02, (0.0, 0.5, 0.8, 0.9, 0.95, 1.0)
SENSITIVE = ["race", "sex"]


class Rows(NamedTuple):
    """Features, labels and groups."""

    X: pd.DataFrame
    y: np.ndarray
    groups: Groups

    def without(self, columns: list[str]) -> "Rows":
        """Return the same rows without some columns."""
        return Rows(self.X.drop(columns=columns), self.y, self.groups)


def load() -> tuple[Rows, Rows]:
    """Return training and test rows of Black and White people."""
    adult = load_adult()
    table = adult.data.copy()
    for name in table.columns:
        if not pd.api.types.is_numeric_dtype(table[name]):
            table[name] = table[name].astype("category")
    kept = table["race"].isin(["Black", "White"]).to_numpy()
    sides = [kept & (np.asarray(adult.split) == side) for side in ("train", "test")]
    training = make_groups(adult.sensitive_features.loc[sides[0], SENSITIVE])
    groups = (training, training.encode(adult.sensitive_features.loc[sides[1], SENSITIVE]))
    return tuple(
        Rows(table[rows], np.asarray(adult.target)[rows], side_groups)
        for rows, side_groups in zip(sides, groups, strict=True)
    )


def fitted(rows: Rows, seed: int, **options) -> TransportBoostingClassifier:
    """Fit LightGBM with 200 rounds, each on a random half of the columns."""
    trees = LGBMClassifier(n_estimators=200, colsample_bytree=0.5, random_state=seed, n_jobs=1, verbose=-1)
    model = TransportBoostingClassifier(trees, random_state=seed, **options)
    return model.fit(rows.X, rows.y, sensitive_features=rows.groups)


def blind(training: Rows, test: Rows, seed: int) -> dict[float, np.ndarray]:
    """Return the test rows' scores at each weight."""
    training, test = training.without(SENSITIVE), test.without(SENSITIVE)
    return {w: fitted(training, seed, parity_weight=w).predict_proba(test.X)[:, 1] for w in WEIGHTS}


def aware(training: Rows, test: Rows, seed: int) -> dict[float, np.ndarray]:
    """Return the test rows' scores at each amount of repair, which does not change the fitted maps."""
    model = fitted(training, seed, parity_weight=AWARE_WEIGHT, repair=QuantileRepair())
    scores = {}
    for amount in REPAIRS:
        model.set_params(repair__amount=amount)
        scores[amount] = model.predict_proba(test.X, sensitive_features=test.groups)[:, 1]
    return scores


def measure(test: Rows, scores: np.ndarray) -> tuple[float, float]:
    """Return the error rate and the strong pairwise demographic disparity (SPDD)."""
    return error_rate(test.y, scores), strong_pairwise_disparity(scores, sensitive_features=test.groups)


def draw_scores(axis: plt.Axes, test: Rows, scores: np.ndarray, title: str) -> None:
    """Plot the share of each group above each score."""
    grid = np.linspace(0, 1, 201)
    for rows, name, style in zip(test.groups.rows, test.groups.names, group_styles(test.groups), strict=True):
        above = 1.0 - np.searchsorted(np.sort(scores[rows]), grid) / len(rows)
        axis.plot(grid, above, color=style.colour, dashes=style.dashes, label=name)
    axis.set(title=title, xlabel="score", ylabel="share of the group above it", xlim=(0, 1), ylim=(0, 1))


def draw(test: Rows, shown: dict[float, np.ndarray], curves: dict[str, np.ndarray], path: str) -> None:
    """Plot the groups' scores without and with the penalty, and both trade-off curves."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained", width_ratios=(1, 1, 1.25))
    draw_scores(axes[0], test, shown[0.0], "blind, without the penalty")
    draw_scores(axes[1], test, shown[SHOWN], f"blind, parity weight {SHOWN:g}")
    axes[0].legend(frameon=False, fontsize=8)
    for (name, figures), values, colour, marker in zip(
        curves.items(), (WEIGHTS, REPAIRS), ("#0072b2", "#d55e00"), "os", strict=True
    ):
        error, disparity = figures.mean(axis=0).T
        axes[2].plot(disparity, error, color=colour, marker=marker, label=name)
        for value, x, y in zip(values, disparity, error, strict=True):
            axes[2].annotate(f"{value:g}", (x, y), textcoords="offset points", xytext=(6, 4), fontsize=8, color=colour)
    n_seeds = len(next(iter(curves.values())))
    axes[2].set(title=f"test rows, seeds: {n_seeds}", xlabel="disparity (SPDD)", ylabel="error rate")
    axes[2].margins(0.1)
    axes[2].legend(frameon=False, fontsize=8)
    for axis in axes:
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


def main(path: str, n_seeds: int) -> dict[str, np.ndarray]:
    """Train, print and plot; return error and disparity of each seed and value, by situation."""
    training, test = load()
    curves, shown = {}, {}
    for name, run in (("blind, by parity_weight", blind), ("aware, by repair", aware)):
        runs = [run(training, test, seed) for seed in range(n_seeds)]
        shown[name] = runs[0]
        curves[name] = np.array([[measure(test, scores) for scores in run_scores.values()] for run_scores in runs])
        print(f"{name}\n value   Err-.5   SPDD")
        for value, (error, disparity) in zip(runs[0], curves[name].mean(axis=0), strict=True):
            print(f"{value:6g}   {error:.4f}   {disparity:.3f}")
    draw(test, shown["blind, by parity_weight"], curves, path)
    return curves


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "lightgbm_adult.png", int(sys.argv[2]) if len(sys.argv) > 2 else 1)
