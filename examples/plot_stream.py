"""A model that is adjusted without labels after a shift of the population.

After forty batches the features of one of two groups shift. A model that is not adjusted becomes unfair; one that is
updated with ``partial_fit`` on each batch becomes fair again: ``python examples/plot_stream.py out.png``.
"""

import copy
import sys
import warnings
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import fairtransport as ft
from fairtransport.report import AdjustmentDisplay

BATCHES, SIZE, CHANGE = 120, 200, 40


def make_rows(rng: np.random.Generator, n: int, *, changed: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, labels and groups; the shift of the second group changes."""
    group = rng.integers(2, size=n)
    shift = np.array([0.5, 0.0, 0.8, 0.4] if changed else [0.8, 0.4, 0.0, 0.0])
    X = rng.normal(size=(n, 4)) + shift * group[:, None]
    y = (X.sum(axis=1) + rng.logistic(size=n) > 0.5).astype(int)
    return X, y, np.array(["first", "second"])[group]


def entry(model: Any, batch: int, rows: tuple[np.ndarray, np.ndarray, np.ndarray]) -> dict[str, float]:
    """Measure a model on held-out rows."""
    X, _, groups = rows
    scores = model.predict_proba(X)[:, 1]
    metric = ft.metrics.strong_pairwise_disparity
    floor = ft.metrics.noise_floor(metric, scores, sensitive_features=groups, n_shuffles=20, random_state=0)
    return {"batch": batch, "disparity": metric(scores, sensitive_features=groups), "noise_floor": floor.mean}


def main(path: str) -> None:
    """Train, update on the stream, and plot."""
    warnings.simplefilter("ignore", ft.FairnessWarning)  # of what so many rows cannot show; the plot has it
    rng = np.random.default_rng(0)
    X, y, groups = make_rows(rng, 5000)
    model = ft.TransportClassifier().fit(X, y, sensitive_features=groups)
    original = copy.deepcopy(model)
    held_out = {changed: make_rows(rng, 4000, changed=changed) for changed in (False, True)}
    history: dict[str, list[dict[str, float]]] = {"not adjusted": [], "adjusted": []}
    for batch in range(BATCHES):
        changed = batch >= CHANGE
        X_new, _, groups_new = make_rows(rng, SIZE, changed=changed)
        model.partial_fit(X_new, sensitive_features=groups_new)  # no labels
        for name, candidate in (("not adjusted", original), ("adjusted", model)):
            history[name].append(entry(candidate, batch, held_out[changed]))

    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", sharey=True)
    for ax, (name, entries) in zip(axes, history.items(), strict=True):
        AdjustmentDisplay.from_history(entries, ax=ax)
        ax.set_xlabel(f"Batch (model {name})")
        print(f"{name}: {entries[CHANGE]['disparity']:.3f} at the change, {entries[-1]['disparity']:.3f} at the end")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "plot_stream.png")
