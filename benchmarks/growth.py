"""How time grows with the number of scores and groups, and of rows, batch, columns and features."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from benchmarks import _timing
from benchmarks._peers import make_trainer
from benchmarks.audit import scored
from fairtransport import QuantileRepair, make_groups, metrics

CLAIM = "Time against size: audit and repair grow like a sort, an update with batch, non-zeros and features only."
N_UPDATES = 200


def trained(n=20_000, filled=20, n_columns=200, n_groups=4, seed=0):
    """Sparse rows with the given number of non-zeros, and groups."""
    rng = np.random.default_rng(seed)
    columns = np.concatenate([rng.choice(n_columns, filled, replace=False) for _ in range(n)])
    X = sparse.csr_matrix((rng.normal(size=n * filled), columns, np.arange(n + 1) * filled), (n, n_columns))
    y = (X @ rng.normal(size=n_columns) + rng.logistic(size=n) > 0).astype(int)
    return X, y, rng.integers(0, n_groups, n)


def updates(batch=100, n_features=50, **data):
    trainer = make_trainer(batch, n_features=n_features, data=trained(**data))
    return lambda: trainer.advance(N_UPDATES, average_from=10**12)


def audit(n, n_groups=8):
    scores, codes, _ = scored(n, n_groups)
    groups = make_groups(codes)
    return lambda: metrics.disparities(scores, sensitive_features=groups)


def transform(n):
    scores, codes, _ = scored(n, 4)
    groups = make_groups(codes)
    repair = QuantileRepair().fit(scores, sensitive_features=groups)
    return lambda: repair.transform(scores, sensitive_features=groups)


def sort(n):
    scores = scored(n)[0]
    return lambda: np.sort(scores)


def curves(quick):
    sizes = [10**k for k in range(3, 6 if quick else 8)]
    short = slice(None, 3 if quick else None)
    return {
        "np.sort, by scores": (sizes, sort),
        "audit, 8 groups, by scores": (sizes, audit),
        "audit, by groups": ([2, 4, 8, 16, 32, 64, 128][short], lambda g: audit(sizes[-1] // 10, g)),
        "repair, 4 groups, by scores": (sizes, transform),
        "update, by rows of the data": ([1_000, 10_000, 100_000][short], lambda n: updates(n=n)),
        "update, by batch": ([10, 30, 100, 300, 1_000][short], lambda n: updates(batch=n)),
        "update, by non-zeros of a row": ([2, 5, 20, 60, 150][short], lambda n: updates(filled=n)),
        "update, by Fourier features": ([10, 50, 200, 800][short], lambda n: updates(n_features=n)),
        "update, by groups": ([2, 4, 8, 16, 32][short], lambda n: updates(n_groups=n)),
    }  # fmt: skip


def run(report):
    for name, (sizes, make) in curves(report.quick).items():
        calls = {str(size): make(size) for size in sizes}
        rounds = 3 if report.quick or max(sizes) >= 10_000_000 else 7
        times = {int(size): values for size, values in _timing.race(calls, rounds).items()}
        per_call = N_UPDATES if name.startswith("update") else 1
        medians = {size: float(np.median(values)) / per_call for size, values in times.items()}
        report.curves[name] = medians
        last, first = max(sizes), sorted(sizes)[-2]
        exponent = np.log(medians[last] / medians[first]) / np.log(last / first)
        told = ", ".join(f"{size:,}: {_timing.seconds(value)}" for size, value in medians.items())
        report.note(f"{name}: {told}; grows like size^{exponent:.2f} at the end")
    report.note(f"n log n is size^{1 + np.log10(7 / 6):.2f} from a million to ten million.")
    report.folder.mkdir(parents=True, exist_ok=True)
    draw(report.curves, report.folder / "growth.png")
    report.settings["plot"] = "growth.png, beside this file"


def draw(found, path):
    import matplotlib as mpl  # noqa: PLC0415 - the backend is chosen before pyplot is loaded

    mpl.use("agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415
    from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator  # noqa: PLC0415

    figure, axes = plt.subplots(3, 3, figsize=(12, 10), layout="constrained")
    for axis, (name, medians) in zip(axes.flat, found.items(), strict=True):
        sizes, times = np.array(list(medians)), np.array(list(medians.values()))
        axis.loglog(sizes, times, "o-", label="measured")
        axis.loglog(sizes, times[-1] * sizes / sizes[-1], ":", color="gray", label="proportional")
        axis.set_title(name)
        axis.set_xlabel(name.rsplit("by ", 1)[1])
        axis.set_ylabel("seconds")
        # Ticks at the sizes measured; numbers stand at powers of ten where there are some, at the sizes where not.
        decades = np.log10(sizes[-1] / sizes[0])
        axis.xaxis.set_major_locator(LogLocator() if decades > 2.5 else FixedLocator(sizes))
        axis.xaxis.set_minor_locator(NullLocator())
        if decades <= 2.5:
            axis.xaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_major_locator(LogLocator())
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.grid(visible=True, alpha=0.3)
    axes.flat[0].legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    _timing.main("growth", CLAIM, run)
