"""One audit for each month.

A control chart: the disparity of each month with its interval and noise floor. From the seventh month on one group is
scored lower:
``python examples/plot_audit_by_month.py out.png``.
"""

import sys

import matplotlib as mpl

mpl.use("Agg")
import numpy as np
import pandas as pd

import fairtransport as ft
from fairtransport.auditing import Inference
from fairtransport.report import AuditSeriesDisplay


def main(path: str) -> None:
    """Make a table, audit it by month and plot."""
    rng = np.random.default_rng(0)
    month = np.repeat(np.arange(1, 13), 400)
    group = rng.choice(["a", "b"], month.size)
    score = rng.beta(4, 4, month.size) - 0.08 * ((month > 6) & (group == "b"))
    table = pd.DataFrame({"month": month, "group": group, "score": score.clip(0, 1)})
    few = Inference(n_bootstrap=100, n_permutations=100)
    series = ft.audit_table(table, score="score", sensitive_features="group", by="month", inference=few)
    figure = AuditSeriesDisplay.from_series(series).figure_
    print(series)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "plot_audit_by_month.png")
