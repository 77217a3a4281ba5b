"""One linear model under five criteria.

Continuous optimal transport (COT) on Adult without sex as a feature: no criterion, demographic parity, equalized odds,
equal opportunity, and parity given education and hours. Lines are the shares of men and women above each score on test
rows, among everyone, by label, and with the education and hours of women and men made alike by weights. The shaded area
is the Wasserstein-1 distance; frames mark what each criterion equalizes: ``python examples/criteria_adult.py out.png``.
"""

import sys
import warnings

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fairtransport as ft
from fairtransport.datasets import load_adult
from fairtransport.strata import make_strata

EXPLAINING = ["education_num", "hours_per_week"]
CRITERIA = {
    "no criterion": {"parity_weight": 0.0},
    "demographic parity": {"criterion": "demographic_parity"},
    "equalized odds": {"criterion": "equalized_odds"},
    "equal opportunity": {"criterion": "equal_opportunity"},
    "parity given education, hours": {"criterion": "demographic_parity"},
}
EQUALIZED = {(0, 1), (1, 2), (2, 2), (2, 3), (3, 4)}  # row and column
ROWS = ("everyone", "income up to $50,000", "income above $50,000", "everyone, same education\nand hours")
COLOURS = {"Female": "#e08a00", "Male": "#0072b2"}
GRID = np.linspace(0.0, 1.0, 501)


def standardising_weights(sex: np.ndarray, strata: np.ndarray) -> np.ndarray:
    """Return weights under which both sexes have everyone's strata; strata with one sex count nothing."""
    weights = np.zeros(len(sex))
    for stratum in np.unique(strata):
        inside = strata == stratum
        cells = [inside & (sex == value) for value in COLOURS]
        if all(cell.any() for cell in cells):
            for cell in cells:
                weights[cell] = inside.sum() / cell.sum()
    return weights


def shares_above(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted share of scores above each point of the grid."""
    order = np.argsort(scores)
    below = np.append(0.0, np.cumsum(weights[order]))
    return 1.0 - below[np.searchsorted(scores[order], GRID, side="right")] / below[-1]


def main(path: str) -> None:
    """Train, measure and plot."""
    warnings.simplefilter("ignore", ft.FairnessWarning)  # of what so many rows cannot show; the plot has it
    adult = load_adult(as_frame=True)
    features = adult.data.drop(columns="sex")
    numeric = features.select_dtypes("number").columns
    encoder = make_column_transformer(
        (StandardScaler(), list(numeric)),
        (OneHotEncoder(handle_unknown="ignore"), list(features.columns.difference(numeric))),
        sparse_threshold=1.0,
    )
    train, test = adult.split == "train", adult.split == "test"
    X_train, X_test = encoder.fit_transform(features[train]), encoder.transform(features[test])
    y_train, y_test = adult.target[train].to_numpy(), adult.target[test].to_numpy()
    sex_train, sex_test = adult.data["sex"][train].to_numpy(str), adult.data["sex"][test].to_numpy(str)
    strata = make_strata(adult.data[EXPLAINING][train])
    ones = np.ones(len(y_test))
    alike = standardising_weights(sex_test, strata.encode(adult.data[EXPLAINING][test]).codes)
    row_weights = (ones, ones * (y_test == 0), ones * (y_test == 1), alike)

    figure, axes = plt.subplots(4, 5, figsize=(12, 8.6), sharex=True, sharey=True, layout="constrained")
    for column, (title, options) in enumerate(CRITERIA.items()):
        model = ft.TransportClassifier(**options)
        given = {"strata": strata} if "given" in title else {}
        model.fit(X_train, y_train, sensitive_features=sex_train, **given)
        scores = model.predict_proba(X_test)[:, 1]
        error = np.mean((scores > 0.5) != y_test)
        rates = [
            [np.mean(scores[(sex_test == value) & (y_test == label)] > 0.5) for value in COLOURS] for label in (0, 1)
        ]
        distances = []
        for row, weights in enumerate(row_weights):
            ax = axes[row, column]
            lines = {value: shares_above(scores[sex_test == value], weights[sex_test == value]) for value in COLOURS}
            distances.append(np.trapezoid(np.abs(lines["Male"] - lines["Female"]), GRID))
            ax.fill_between(GRID, lines["Male"], lines["Female"], color="0.85", linewidth=0)
            for (value, line), dash in zip(lines.items(), ("--", "-"), strict=True):
                ax.plot(
                    GRID,
                    line,
                    dash,
                    color=COLOURS[value],
                    linewidth=1.5,
                    label={"Female": "women", "Male": "men"}[value],
                )
            ax.text(0.95, 0.9, f"{distances[-1]:.3f}", transform=ax.transAxes, ha="right", va="top")
            if (row, column) in EQUALIZED:
                for spine in ax.spines.values():
                    spine.set(color="#009e73", linewidth=2.5)
        axes[0, column].set_title(f"{title}\ntest error {error:.3f}", fontsize=10)
        print(
            f"{title}: error {error:.4f}, odds difference {np.max(np.ptp(rates, axis=1)):.3f}, distances "
            + ", ".join(f"{distance:.3f}" for distance in distances)
        )
    for ax, label in zip(axes[:, 0], ROWS, strict=True):
        ax.set_ylabel(label)
    for ax in axes[-1]:
        ax.set_xlabel("score")
    axes[0, 0].set(xlim=(0, 1), ylim=(0, 1), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    axes[0, 0].legend(loc="center right", frameon=False, fontsize=9)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "criteria_adult.png")
