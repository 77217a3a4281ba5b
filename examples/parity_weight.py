"""One meaning of ``parity_weight`` on every data set.

Fits COT at several weights on Adult, German Credit and Communities, and draws what is left of the initial model's
disparity, and of what its features are worth, on test rows: ``python examples/parity_weight.py out.png``.
"""

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import log_loss

from fairtransport import ContinuousTransportClassifier
from fairtransport.metrics import strong_pairwise_disparity
from fairtransport.paper.setups import Split, adult_split, communities_splits, german_splits

WEIGHTS = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
COLOURS = ("#0072B2", "#D55E00", "#009E73")


def measure(split: Split, weight: float, seed: int) -> tuple[float, float]:
    """Disparity and log-loss of the test rows."""
    model = ContinuousTransportClassifier(parity_weight=weight, random_state=seed)
    model.fit(split.X_train, split.y_train, sensitive_features=split.groups_train)
    scores = model.predict_proba(split.X_test)[:, 1]
    disparity = strong_pairwise_disparity(scores, sensitive_features=split.groups_test)
    return disparity, log_loss(split.y_test, scores)


def main(path: str) -> None:
    """Fit, draw, write."""
    data = {"Adult": [adult_split()], "German Credit": german_splits(5), "Communities": communities_splits(3)}
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharex=True)
    for (name, splits), colour in zip(data.items(), COLOURS, strict=True):
        runs = np.array([[measure(split, w, seed) for w in WEIGHTS] for seed, split in enumerate(splits)])
        rates = [float(np.mean(split.y_train)) for split in splits]
        constant = np.array(
            [log_loss(split.y_test, np.full(len(split.y_test), r)) for split, r in zip(splits, rates, strict=True)]
        )
        disparity = runs[:, :, 0] / runs[:, :1, 0]
        worth = (constant[:, None] - runs[:, :, 1]) / (constant[:, None] - runs[:, :1, 1])
        for axis, values in zip(axes, (disparity, worth), strict=True):
            axis.plot(range(len(WEIGHTS)), values.mean(axis=0), color=colour, marker="o", label=name)
    for axis, title in zip(axes, ("disparity (SPDD) left", "worth of the features left (log-loss)"), strict=True):
        axis.set(title=title, xlabel="parity_weight", ylim=(-0.05, 1.05))
        axis.set_xticks(range(len(WEIGHTS)), [f"{w:g}" for w in WEIGHTS])
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "parity_weight.png")
