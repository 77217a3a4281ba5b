"""Counterfactuals along a causal graph: training without unfair paths on Adult, and effects beside published ones.

*Training*: the graph of docs/causal.md. Two criteria, each with several weights: no effect of sex along any path, and
none along the paths that do not pass through marital status, where a difference is held to be fair. Full parity between
the sexes, and logistic regression, are measured in the same way.

*Published*: counterfactual demographic parity (women as men, mean score minus what it is) in the set-up of Fernandes
Machado, Charpentier and Gallic (AAAI 2025): 2,000 rows of Adult as cleaned for fairadapt, the graph of Plečko and
Meinshausen (2020), logistic regression on 70 % of the rows. The published rows, ``factuals_aware-adult.csv`` of the
authors' repository, are read from the folder ``--data``; without it, rows are random ones of the shipped data.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks import _ours
from benchmarks._report import mean_and_error
from fairtransport.causal import CounterfactuallyFairClassifier, CounterfactualTransport
from fairtransport.datasets import load_adult

CLAIM = (
    "Adult, without sex among the features: training along unfair paths reaches the noise floor of their effect on "
    "test rows at less error than full parity; effects of sex lie beside the published ones of other implementations."
)
GRAPH = """digraph {
    {sex age country} -> marital_status
    {sex age country marital_status} -> education_num
    {sex age country marital_status education_num} -> {hours_per_week occupation}
}"""
NUMBERS, TEXTS = ["age", "education_num", "hours_per_week"], ["marital_status", "occupation", "country"]
FEATURES = [*NUMBERS, *TEXTS]
CRITERIA = {"all paths": (), "paths but through marital status": ("marital_status",)}
METHODS = ("logistic regression", "full parity", *CRITERIA)
WEIGHTS, N_PERMUTATIONS = (0.1, 0.3, 1.0, 3.0), 5
IMAGE = Path(__file__).parents[1] / "docs" / "images" / "causal_frontier.png"
LATER = ["marital_status", "education_num", "workclass", "hours_per_week", "occupation"]
EDGES = [
    *((one, other) for one in ("sex", "age", "native_country") for other in LATER),
    *(("marital_status", other) for other in LATER[1:]),
    *(("education_num", other) for other in LATER[2:]),
]
PUBLISHED_TEXTS = ["native_country", "marital_status", "workclass", "occupation"]
PUBLISHED = {
    "unaware": {"optimal transport": 0.12, "fairadapt": 0.20, "sequential transport": 0.25},
    "aware": {"optimal transport": 0.17, "fairadapt": 0.24, "sequential transport": 0.29},
}


# --------------------------------------------------------------------------------------------------------- training


def adult():
    data = load_adult()
    names = ["sex", "marital_status", "occupation"]
    table = data.data[[*NUMBERS, *names]].astype(dict.fromkeys(names, str))
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
    estimator = encoded(_ours.classifier("discrete", parity_weight=weight))
    if method == "full parity":
        return estimator.fit(X, y, **{f"{estimator.steps[-1][0]}__sensitive_features": sex})
    return CounterfactuallyFairClassifier(estimator, transport(CRITERIA[method])).fit(X, y, sensitive_features=sex)


def pairs_of(train, test, resolving, n_permutations):
    """Women of the test rows as they are and as men; then the same in tables whose groups were shuffled."""
    rng = np.random.default_rng(0)
    women = (test["sex"] == "Female").to_numpy()
    pairs = [(test[FEATURES][women], transport(resolving).fit(train).transform(test, to="Male")[FEATURES][women])]
    for _ in range(n_permutations):
        shuffled = test.assign(sex=rng.permutation(test["sex"].to_numpy()))
        chosen = (shuffled["sex"] == "Female").to_numpy()
        moved = transport(resolving).fit(shuffled).transform(shuffled, to="Male")
        pairs.append((test[FEATURES][chosen], moved[FEATURES][chosen]))
    return pairs


def effect(model, pairs):
    """Wasserstein-1 distance and difference of means along the unfair paths, each with what chance shows."""
    scores = [[np.sort(model.predict_proba(part)[:, 1]) for part in pair] for pair in pairs]
    distances = [float(np.abs(after - before).mean()) for before, after in scores]
    means = [float(after.mean() - before.mean()) for before, after in scores]
    chance = {"floor": float(np.mean(distances[1:])), "mean_floor": float(np.mean(np.abs(means[1:])))}
    return {"distance": distances[0], "mean": means[0], **chance}


def training(report):
    table, labels, split = adult()
    rng, n_rows = np.random.default_rng(0), 2_000 if report.quick else None
    chosen, tested = (rng.permutation(np.flatnonzero(split == part))[:n_rows] for part in ("train", "test"))
    train, test = table.iloc[chosen], table.iloc[tested]
    n_permutations = 1 if report.quick else N_PERMUTATIONS
    pairs = {name: pairs_of(train, test, resolving, n_permutations) for name, resolving in CRITERIA.items()}
    rows = report.data.setdefault("official split", [])
    for method in METHODS:
        weights = (0.0,) if method == "logistic regression" else WEIGHTS[:: 3 if report.quick else 1]
        for weight in weights:
            model = trained(method, weight, train[FEATURES], labels[chosen], train["sex"].to_numpy())
            error = float(np.mean(model.predict(test[FEATURES]) != labels[tested]))
            found = {name: effect(model, own) for name, own in pairs.items()}
            rows.append({"method": method, "weight": weight, "error": error, **found})
        last = rows[-1]
        parts = (f"{last[name]['mean']:+.3f} along {name} (chance {last[name]['mean_floor']:.3f})" for name in CRITERIA)
        report.note(
            f"trained for {method}, weight {last['weight']:g}: error {last['error']:.3f}, effect {', '.join(parts)}"
        )
        report.save()
    if not report.quick:
        draw(rows, IMAGE)


def draw(rows, path):
    import matplotlib as mpl  # noqa: PLC0415 - the backend is chosen before pyplot is loaded

    mpl.use("agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained", sharey=True)
    styles = {"logistic regression": ("*", "k"), "full parity": ("s--", "tab:gray"), "all paths": ("o-", "tab:blue")}
    for axis, criterion in zip(axes, CRITERIA, strict=True):
        for method in METHODS:
            points = [(row[criterion]["distance"], row["error"]) for row in rows if row["method"] == method]
            mark, colour = styles.get(method, ("^-", "tab:orange"))
            label = f"trained: {method}" if method in CRITERIA else method
            axis.plot(*np.transpose(points), mark, color=colour, label=label)
        floor = np.mean([row[criterion]["floor"] for row in rows])
        axis.axvline(floor, color="0.5", linestyle=":", label="noise floor (mean)")
        axis.set(xlabel=f"unfair effect of sex on fresh rows\n({criterion})", xlim=(0, None))
        axis.grid(visible=True, alpha=0.3)
    axes[0].set_ylabel("error of fresh rows")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=130)
    plt.close(figure)


# -------------------------------------------------------------------------------------------------------- published


def rows_of_adult(folder, seed, n=2_000):
    """Return the published rows, or random ones of Adult with the levels that fairadapt's copy has; and labels."""
    columns = ["sex", *NUMBERS, *PUBLISHED_TEXTS]
    if folder is not None:
        import pandas as pd  # noqa: PLC0415

        table = pd.read_csv(folder / "factuals_aware-adult.csv", keep_default_na=False)
        return table[columns], (table["income"] == ">50K").to_numpy().astype(int)
    data = load_adult()
    frame = data.data[columns].astype(dict.fromkeys(["sex", *PUBLISHED_TEXTS], str))
    frame["native_country"] = np.where(frame["native_country"] == "United-States", "US", "other")
    frame["marital_status"] = np.where(frame["marital_status"].str.startswith("Married"), "Married", "Not-Married")
    work = frame["workclass"]
    frame["workclass"] = np.select(
        [work == "Private", work.str.startswith("Self"), work.str.contains("gov")],
        ["Private", "Self-Employed", "Government"],
        "Other/Unknown",
    )
    rows = np.random.default_rng(seed).choice(len(frame), n, replace=False)
    return frame.iloc[rows].reset_index(drop=True), np.asarray(data.target)[rows]


def published_effects(frame, labels, seed, quantiles):
    """Effect on women and observed difference, of the unaware and of the aware model."""
    women = (frame["sex"] == "Female").to_numpy()
    moved = CounterfactualTransport(EDGES, sensitive="sex", quantiles=quantiles, random_state=seed).fit(frame)
    moved = moved.transform(frame, to="Male")
    chosen = np.random.default_rng(seed).permutation(len(frame))[: int(0.7 * len(frame))]
    found = []
    for texts in (PUBLISHED_TEXTS, [*PUBLISHED_TEXTS, "sex"]):
        encode = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(handle_unknown="ignore"), texts))
        model = make_pipeline(encode, LogisticRegression(C=1e4, max_iter=5000)).fit(frame.iloc[chosen], labels[chosen])
        before, after = (model.predict_proba(one)[:, 1] for one in (frame, moved))
        found.append(((after - before)[women].mean(), before[~women].mean() - before[women].mean()))
    return found


def run(report):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        training(report)
        report.data["published"] = PUBLISHED
        for quantiles in ("forest", "linear"):
            seeds = range(1 if report.quick else 5)
            runs = [published_effects(*rows_of_adult(report.data_folder, seed), seed, quantiles) for seed in seeds]
            mean, _ = mean_and_error(runs)
            for (model, others), (own, gap), spread in zip(PUBLISHED.items(), mean, np.std(runs, axis=0), strict=True):
                text = ", ".join(f"{name} {value:.2f}" for name, value in others.items())
                report.note(
                    f"{model}, effect of sex: {own:.3f} (standard deviation {spread[0]:.3f}), {quantiles} quantiles, "
                    f"observed difference {gap:.3f}; published: {text}"
                )
