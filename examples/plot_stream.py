"""A model in use: the world changes, and the model follows without labels.

Two groups; after forty batches the features of one of them shift. A model that stays as it was becomes unfair; one
that takes each batch with ``partial_fit`` becomes fair again: ``python examples/plot_stream.py out.png``.
"""

import copy
import sys
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import fairtransport as ft
from fairtransport.report import AdjustmentDisplay

BATCHES, SIZE, CHANGE = 120, 200, 40


def make_rows(rng: np.random.Generator, n: int, *, changed: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, labels and groups; which features of the second group lie higher differs before and after."""
    group = rng.integers(2, size=n)
    shift = np.array([0.5, 0.0, 0.8, 0.4] if changed else [0.8, 0.4, 0.0, 0.0])
    X = rng.normal(size=(n, 4)) + shift * group[:, None]
    y = (X.sum(axis=1) + rng.logistic(size=n) > 0.5).astype(int)
    return X, y, np.array(["first", "second"])[group]


def entry(model: Any, batch: int, rows: tuple[np.ndarray, np.ndarray, np.ndarray]) -> dict[str, float]:
    """Measure a model on rows kept aside."""
    X, _, groups = rows
    scores = model.predict_proba(X)[:, 1]
    metric = ft.metrics.strong_pairwise_disparity
    floor = ft.metrics.noise_floor(metric, scores, sensitive_features=groups, n_shuffles=20, random_state=0)
    return {"batch": batch, "disparity": metric(scores, sensitive_features=groups), "noise_floor": floor.mean}


def main(path: str) -> None:
    """Train, let the stream pass, draw."""
    rng = np.random.default_rng(0)
    X, y, groups = make_rows(rng, 5000)
    model = ft.ContinuousTransportClassifier().fit(X, y, sensitive_features=groups)
    still = copy.deepcopy(model)
    aside = {changed: make_rows(rng, 4000, changed=changed) for changed in (False, True)}
    history: dict[str, list[dict[str, float]]] = {"not adjusted": [], "adjusted": []}
    for batch in range(BATCHES):
        changed = batch >= CHANGE
        X_new, _, groups_new = make_rows(rng, SIZE, changed=changed)
        model.partial_fit(X_new, sensitive_features=groups_new)  # no labels
        for name, one in (("not adjusted", still), ("adjusted", model)):
            history[name].append(entry(one, batch, aside[changed]))

    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", sharey=True)
    for ax, (name, found) in zip(axes, history.items(), strict=True):
        AdjustmentDisplay.from_history(found, ax=ax)
        ax.set_xlabel(f"Batch (model {name})")
        print(f"{name}: {found[CHANGE]['disparity']:.3f} at the change, {found[-1]['disparity']:.3f} at the end")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "plot_stream.png")
