"""Training without unfair paths on Adult: error of fresh rows against the unfair effect that remains, drawn.

The graph is that of docs/causal.md. Two criteria are trained, each with several weights: no effect of sex along any
path, and none along the paths that do not pass through marital status, where a difference is held to be fair. Full
parity between the sexes, and logistic regression, are measured in the same way: by the Wasserstein-1 distance between
the scores of women as they are and as they would be, along the unfair paths, on test rows. The noise floor is the same
distance in tables whose groups were shuffled.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fairtransport as ft
from benchmarks import _timing
from fairtransport.causal import CounterfactuallyFairClassifier, CounterfactualTransport

GRAPH = """digraph {
    {sex age country} -> marital_status
    {sex age country marital_status} -> education_num
    {sex age country marital_status education_num} -> {hours_per_week occupation}
}"""
NUMBERS = ["age", "education_num", "hours_per_week"]
TEXTS = ["marital_status", "occupation", "country"]
FEATURES = [*NUMBERS, *TEXTS]
CRITERIA = {"all paths": (), "paths but through marital status": ("marital_status",)}
WEIGHTS = (0.1, 0.3, 1.0, 3.0)
METHODS = ("logistic regression", "full parity", *CRITERIA)
N_ROWS = 10_000
IMAGE = Path(__file__).parents[1] / "docs" / "images" / "causal_frontier.png"


def adult():
    data = ft.datasets.load_adult()
    table = data.data[[*NUMBERS, "sex", "marital_status", "occupation"]].astype(
        dict.fromkeys(["sex", "marital_status", "occupation"], str)
    )
    table["country"] = np.where(data.data["native_country"] == "United-States", "US", "other")
    return table, np.asarray(data.target), np.asarray(data.split)


def encoded(estimator):
    encode = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(sparse_output=False), TEXTS))
    return make_pipeline(encode, estimator)


def transport(resolving=()):
    return CounterfactualTransport(GRAPH, sensitive="sex", resolving=list(resolving), quantiles="linear", cv=2)


def trained(method, weight, X, y, sex):
    if method == "logistic regression":
        return encoded(LogisticRegression(max_iter=1000)).fit(X, y)
    estimator = encoded(ft.DiscreteTransportClassifier(parity_weight=weight))
    if method == "full parity":
        return estimator.fit(X, y, discretetransportclassifier__sensitive_features=sex)
    return CounterfactuallyFairClassifier(estimator, transport(CRITERIA[method])).fit(X, y, sensitive_features=sex)


class FreshRows:
    """Test rows, as they are and as women would be as men along the paths of each criterion; also by chance."""

    def __init__(self, train, test, labels, n_permutations, rng):
        self.test, self.labels = test[FEATURES], labels
        women = (test["sex"] == "Female").to_numpy()
        self.pairs = {}
        for name, resolving in CRITERIA.items():
            moved = transport(resolving).fit(train).transform(test, to="Male")
            pairs = [(test[FEATURES][women], moved[FEATURES][women])]
            for _ in range(n_permutations):
                shuffled = test.assign(sex=rng.permutation(test["sex"].to_numpy()))
                chosen = (shuffled["sex"] == "Female").to_numpy()
                other = transport(resolving).fit(shuffled).transform(shuffled, to="Male")
                pairs.append((test[FEATURES][chosen], other[FEATURES][chosen]))
            self.pairs[name] = pairs

    def measure(self, model):
        """Return the error, and for each criterion the distance along its unfair paths and its noise floor."""
        row = {"error": float(np.mean(model.predict(self.test) != self.labels))}
        for name, pairs in self.pairs.items():
            scores = [[np.sort(model.predict_proba(part)[:, 1]) for part in pair] for pair in pairs]
            distances = [float(np.abs(after - before).mean()) for before, after in scores]
            means = [float(after.mean() - before.mean()) for before, after in scores]
            floors = {"floor": float(np.mean(distances[1:])), "mean_floor": float(np.mean(np.abs(means[1:])))}
            row[name] = {"distance": distances[0], "mean": means[0], **floors}
        return row


def run(seeds, n_permutations, n_rows):
    table, labels, split = adult()
    rows = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        parts = [np.flatnonzero(split == part) for part in ("train", "test")]
        chosen, tested = (rng.permutation(part)[:n_rows] for part in parts)
        train = table.iloc[chosen]
        judge = FreshRows(train, table.iloc[tested], labels[tested], n_permutations, rng)
        for method in METHODS:
            for weight in WEIGHTS if method != "logistic regression" else (0.0,):
                model = trained(method, weight, train[FEATURES], labels[chosen], train["sex"].to_numpy())
                rows.append({"seed": seed, "method": method, "weight": weight, **judge.measure(model)})
                print(json.dumps(rows[-1]), flush=True)
    return rows


def draw(rows, path):
    import matplotlib as mpl  # noqa: PLC0415 - the backend is chosen before pyplot is loaded

    mpl.use("agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained", sharey=True)
    styles = {"full parity": ("s--", "tab:gray"), "all paths": ("o-", "tab:blue")}
    for axis, criterion in zip(axes, CRITERIA, strict=True):
        for method in METHODS:
            own = [row for row in rows if row["method"] == method]
            weights = sorted({row["weight"] for row in own})
            means = [
                np.mean([(row[criterion]["distance"], row["error"]) for row in own if row["weight"] == weight], axis=0)
                for weight in weights
            ]
            x, y = np.transpose(means)
            if method == "logistic regression":
                axis.plot(x, y, "k*", markersize=12, label=method)
            else:
                mark, colour = styles.get(method, ("^-", "tab:orange"))
                axis.plot(x, y, mark, color=colour, label=f"trained: {method}" if method in CRITERIA else method)
        floor = np.mean([row[criterion]["floor"] for row in rows])
        axis.axvline(floor, color="0.5", linestyle=":", label="noise floor (mean)")
        axis.set(xlabel=f"unfair effect of sex on fresh rows\n({criterion})", xlim=(0, None))
        axis.grid(visible=True, alpha=0.3)
    axes[0].set_ylabel("error of fresh rows")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=3, help="random samples of rows; 0 for none")
    parser.add_argument("--draw", action="store_true", help="only draw what was measured before")
    options = parser.parse_args()
    target = _timing.RESULTS / "causal_frontier.json"
    if not options.draw:
        content = {"machine": _timing.machine(), "versions": _timing.versions()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seeds, permutations = (1, 2) if options.quick else (options.seeds, 5)
            samples = run(seeds, permutations, N_ROWS)
            official = [] if options.quick else run(1, permutations, None)
        content |= {f"samples of {N_ROWS} rows": samples, "official split": official}
        target.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    content = json.loads(target.read_text(encoding="utf-8"))
    draw(content["official split"] or content[f"samples of {N_ROWS} rows"], IMAGE)


if __name__ == "__main__":
    main()
