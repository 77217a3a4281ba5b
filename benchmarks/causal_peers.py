"""Counterfactual demographic parity on Adult beside published figures: women as men, mean score minus what it is.

Set-up of Fernandes Machado, Charpentier and Gallic (AAAI 2025, table of their supplement): 2,000 rows of the Adult data
as cleaned for fairadapt (two marital states, two origins, four classes of work), the graph of Plečko and Meinshausen
(2020), logistic regression on 70 % of the rows, scores of all 662 women. The rows are random ones of the shipped data
here; ``--table`` takes the published ones, ``data/factuals_aware-adult.csv`` of the authors' repository.
"""

from __future__ import annotations

import argparse
import json
import warnings

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fairtransport as ft
from benchmarks import _timing
from fairtransport.causal import CounterfactualTransport

ROOTS = ["sex", "age", "native_country"]
LATER = ["marital_status", "education_num", "workclass", "hours_per_week", "occupation"]
EDGES = [
    *((one, other) for one in ROOTS for other in LATER),
    *(("marital_status", other) for other in LATER[1:]),
    *(("education_num", other) for other in LATER[2:]),
]
NUMBERS = ["age", "education_num", "hours_per_week"]
TEXTS = ["native_country", "marital_status", "workclass", "occupation"]
PUBLISHED = {
    "unaware": {"optimal transport": 0.12, "fairadapt": 0.20, "sequential transport": 0.25},
    "aware": {"optimal transport": 0.17, "fairadapt": 0.24, "sequential transport": 0.29},
}
N_SPLITS = 5


def shipped_rows(seed, n):
    """Return random rows of Adult with the levels that fairadapt's copy has, and their labels."""
    adult = ft.datasets.load_adult()
    frame = adult.data[["sex", *NUMBERS, *TEXTS]].astype(dict.fromkeys(["sex", *TEXTS], str))
    frame["native_country"] = np.where(frame["native_country"] == "United-States", "US", "other")
    frame["marital_status"] = np.where(frame["marital_status"].str.startswith("Married"), "Married", "Not-Married")
    work = frame["workclass"]
    frame["workclass"] = np.select(
        [work == "Private", work.str.startswith("Self"), work.str.contains("gov")],
        ["Private", "Self-Employed", "Government"],
        "Other/Unknown",
    )
    rows = np.random.default_rng(seed).choice(len(frame), n, replace=False)
    return frame.iloc[rows].reset_index(drop=True), np.asarray(adult.target)[rows]


def published_rows(path):
    import pandas as pd  # noqa: PLC0415

    table = pd.read_csv(path, keep_default_na=False)
    return table[["sex", *NUMBERS, *TEXTS]], (table["income"] == ">50K").to_numpy().astype(int)


def measure(frame, labels, seed, quantiles):
    """Return the counterfactual demographic parity of both models, and the observed difference."""
    women = (frame["sex"] == "Female").to_numpy()
    moved = CounterfactualTransport(EDGES, sensitive="sex", quantiles=quantiles, random_state=seed).fit(frame)
    moved = moved.transform(frame, to="Male")
    chosen = np.random.default_rng(seed).permutation(len(frame))[: int(0.7 * len(frame))]
    found = {}
    for name, texts in (("unaware", TEXTS), ("aware", [*TEXTS, "sex"])):
        encode = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(handle_unknown="ignore"), texts))
        model = make_pipeline(encode, LogisticRegression(C=1e4, max_iter=5000)).fit(frame.iloc[chosen], labels[chosen])
        before, after = (model.predict_proba(one)[:, 1] for one in (frame, moved))
        gap = float(before[~women].mean() - before[women].mean())
        found[name] = {"effect": float((after - before)[women].mean()), "gap": gap}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", help="CSV file of the published rows")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    splits = 1 if options.quick else N_SPLITS
    tables = {"2,000 random rows": lambda seed: shipped_rows(seed, 2000)}
    if options.table:
        tables["published rows"] = lambda seed: published_rows(options.table)  # noqa: ARG005 - the same each time
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, read in tables.items():
            for quantiles in ("forest", "linear"):
                found = [measure(*read(seed), seed, quantiles) for seed in range(splits)]
                for model in PUBLISHED:
                    figures = {
                        f"{figure}_{kind}": round(float(of([one[model][figure] for one in found])), 4)
                        for figure in ("effect", "gap")
                        for kind, of in (("mean", np.mean), ("std", np.std))
                    }
                    rows.append({"rows": name, "quantiles": quantiles, "model": model, "runs": splits, **figures})
                    print(json.dumps(rows[-1]), flush=True)
    content = {"published": PUBLISHED, "rows": rows, "versions": _timing.versions()}
    target = _timing.RESULTS / "causal_peers.json"
    target.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
