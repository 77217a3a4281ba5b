"""Effects along the paths of a causal graph.

Scores of two groups differ. Under a graph, the difference is split into what flows through hours, through a test, and
directly; the rest is no effect of the group:
``python examples/plot_causal_effects.py out.png``.
"""

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import fairtransport as ft
from fairtransport.auditing import Inference
from fairtransport.causal import CounterfactualTransport
from fairtransport.report import CausalEffectsDisplay


def main(path: str) -> None:
    """Make a table, measure effects and plot."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["F", "M"], 2000)
    age = rng.normal(40, 10, 2000) + 2 * (sex == "M")
    hours = 30 + 0.1 * age + 5 * (sex == "M") + rng.normal(0, 3, 2000)
    test = 50 + 0.2 * hours + 2 * (sex == "F") + rng.normal(0, 5, 2000)
    table = pd.DataFrame({"sex": sex, "age": age, "hours": hours, "test": test})

    def score(rows: pd.DataFrame) -> np.ndarray:
        """Return the scores of a given model."""
        logits = (rows["hours"] - 37) / 5 + (rows["test"] - 58) / 8 + 0.3 * (rows["sex"] == "M")
        return 1 / (1 + np.exp(-logits.to_numpy()))

    graph = "digraph { {sex age} -> hours; {sex hours} -> test }"
    transport = CounterfactualTransport(graph, sensitive="sex", quantiles="linear")
    few = Inference(n_bootstrap=10, n_permutations=5)
    effects = ft.causal.audit_counterfactual(score, table, transport, to="M", inference=few, n_orders=1)
    figure, ax = plt.subplots(figsize=(9, 4.5), layout="constrained")
    CausalEffectsDisplay.from_effects(effects, ax=ax)
    print(effects)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "plot_causal_effects.png")
