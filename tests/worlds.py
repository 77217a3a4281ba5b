"""Generated tables that tests in any folder share, and models fitted to them once."""

import copy

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy.special import expit

from fairtransport.criteria.criterion import resolve_criterion

_FITTED = {}


def people(
    n=600,
    seed=0,
    *,
    groups=("a", "b"),
    p=None,
    shift=(1.0, 0.0, 0.0),
    first=0.0,
    spread=0.0,
    coef=(1.0, 1.0, 0.5),
    aware=False,
    real=False,
    labels=(0, 1),
    names=None,
):
    """Return features, labels and groups: features move by ``shift`` from group to group, labels follow features.

    ``first`` moves the first group towards the second, ``spread`` widens later groups, ``aware`` adds a column that
    tells the first group, ``real`` makes outcomes real numbers, ``names`` makes the features a frame.
    """
    rng = np.random.default_rng(seed)
    group = rng.choice(groups, n, p=p)
    code = (group[:, None] == np.asarray(groups)).argmax(axis=1)
    X = rng.normal(size=(n, len(shift))) * (1 + spread * code[:, None])
    X += np.outer(np.where(code == 0, first, code), shift)
    y = X @ np.asarray(coef)
    y = y + rng.normal(size=n) if real else np.array(labels)[(y + rng.logistic(size=n) > 0.5).astype(int)]
    if aware:
        X = np.column_stack((X, code == 0))
    return X if names is None else pd.DataFrame(X, columns=list(names)), y, group


def fitted(estimator, **world):
    """Return a copy of the estimator fitted to ``people(**world)``; equal ones are fitted once."""
    key = repr((estimator, world))
    if key not in _FITTED:
        X, y, group = people(**world)
        _FITTED[key] = copy.deepcopy(estimator).fit(X, y, sensitive_features=group)
    return copy.deepcopy(_FITTED[key])


def people_in_strata(n=3000, seed=0, *, drift=0.0):
    """Return features, labels, groups and a stratum that explains half of the difference between groups."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b"], n, p=[0.6, 0.4])
    stratum = (rng.random(n) < np.where(group == "a", 0.3, 0.6)).astype(int) + 2 * rng.integers(2, size=n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += group == "b"
    X[:, 2] += drift * (group == "b")
    X[:, 1] += 1.5 * (stratum % 2)
    return X, (X @ [0.6, 1.0, 1.5, 1.0] + rng.logistic(size=n) > 1.0).astype(int), group, stratum


def many_groups(n_groups, n=2000, *, seed=0, n_tiny=0):
    """Return features, labels and groups whose scores differ; the last ``n_tiny`` groups have three rows each."""
    rng = np.random.default_rng(seed)
    group = rng.integers(n_groups - n_tiny, size=n)
    group[: 3 * n_tiny] = np.repeat(np.arange(n_groups - n_tiny, n_groups), 3)
    X = rng.normal(size=(n, 6))
    X[:, 0] += 0.8 * np.sin(group)
    X[:, 1] += 0.5 * (group % 3)
    return X, (X @ [1.0, 0.8, 0.3, 0.0, 0.0, -0.4] + rng.normal(size=n) > 0.5).astype(int), group


def scores(groups=("a", "b", "c", "d"), n=1200, *, apart=0.5, decimals=None, seed=0):
    """Return calibrated scores whose groups differ, labels that follow the scores, and the groups."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(len(groups), size=n)
    scores = expit(rng.normal(size=n) + np.linspace(-apart, apart, len(groups))[codes] - 0.5)
    if decimals is not None:
        scores = scores.round(decimals)
    return scores, (rng.random(n) < scores).astype(int), np.array(groups, dtype=object)[codes]


def scores_by_label(n, seed=0, *, n_groups=2, decimals=None):
    """Return scores, labels and groups that differ in level, in how well scores predict, in how common a label is."""
    rng = np.random.default_rng(seed)
    group = rng.integers(n_groups, size=n)
    y = (rng.random(n) < 0.25 + 0.1 * group).astype(int)
    scores = expit(rng.normal(size=n) * (1 + 0.2 * group) + y * (1.5 - 0.4 * group) + 0.5 * group - 1)
    return scores if decimals is None else scores.round(decimals), y, np.array(list("abcdefgh"))[group]


def scores_in_strata(n, seed=0, *, n_strata=3):
    """Return scores, labels, groups and strata; groups differ within each stratum, and in which strata they are."""
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n)
    stratum = rng.binomial(n_strata - 1, 0.3 + 0.4 * group)
    scores = rng.beta(2 + stratum, 5 - group, size=n)
    y = (rng.random(n) < scores).astype(int)
    return scores, y, np.array(["a", "b"])[group], np.array(list("rstuvw"))[stratum]


def sized_groups(sizes, seed=0):
    """Return scores, labels and groups of these sizes (a dictionary); groups other than a and b differ most."""
    rng = np.random.default_rng(seed)
    group = np.repeat(list(sizes), list(sizes.values()))
    shift = {"a": 0.0, "b": 0.8, "c": 2.0, "d": -2.0, "e": 1.0}
    scores = expit(rng.normal(size=group.size) + np.vectorize(shift.get)(group))
    return scores, (rng.random(group.size) < scores).astype(int), group


def real_scores(n=1500, seed=0, *, n_groups=3):
    """Return predictions, outcomes and groups; heavy-tailed and of different spread."""
    rng = np.random.default_rng(seed)
    group = rng.integers(n_groups, size=n)
    y = rng.standard_t(3, size=n) * (1 + 0.5 * group) + group
    return 0.7 * y + 0.4 * group + rng.normal(size=n), y, np.array(list("abc"))[group]


def score_table(n=600, seed=0, *, races=("B", "W")):
    """Return a table with an id, scores of which the first race has lower ones, labels, weights and regions."""
    rng = np.random.default_rng(seed)
    race = rng.choice(races, n)
    scores = np.round(rng.beta(2, 3, n) * (1 - 0.3 * (race == races[0])), 5)
    return pl.DataFrame(
        {
            "id": np.arange(n),
            "s": scores,
            "race": race,
            "sex": rng.choice(["F", "M"], n),
            "y": (rng.random(n) < scores).astype(int),
            "w": rng.integers(1, 4, n),
            "region": rng.choice(["n", "o"], n),
        }
    )


def write_table(path, columns, **csv_options):
    """Write columns with the usual library for the format of the name, not with ours; return the path."""
    frame, (kind, *packing) = pl.DataFrame(columns), path.suffixes
    if kind == ".parquet":
        frame.write_parquet(path)
    elif kind == ".feather":
        frame.write_ipc(path, compat_level=pl.CompatLevel.oldest())
    else:
        options = {"separator": "\t" if kind == ".tsv" else ",", **csv_options}
        content = frame.write_ndjson() if kind == ".jsonl" else frame.write_csv(**options)
        compression = {".gz": "gzip", ".zst": "zstd"}[packing[0]] if packing else None
        with pa.output_stream(path, compression=compression) as out:
            out.write(content.encode())
    return path


def raw_people(n=600, seed=0):
    """Numbers as text, words, dates, gaps, an identifier; men work longer hours, and hours decide who is hired."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    hours = rng.normal(35, 5, n) + 4.0 * (sex == "M")
    skill = rng.normal(size=n)
    hired = hours / 5 + skill + rng.logistic(size=n) * 0.7 > 8
    return pl.DataFrame(
        {
            "person": [f"P{seed}-{k:06d}" for k in range(n)],
            "sex": sex,
            "region": rng.choice(["north", "south"], n),
            "hours": [f"{value:.2f}" for value in hours],
            "skill": [None if k % 13 == 0 else float(value) for k, value in enumerate(skill)],
            "job": rng.choice(["cook", "smith", "judge", "?"], n),
            "joined": [str(day) for day in np.datetime64("2020-01-01") + rng.integers(0, 900, n)],
            "hired": np.where(hired, "yes", "no"),
        }
    )


def demographic_parity(groups, *, target=None, row_weights=None):
    """Return the comparisons of groups with each other, or with a fixed target."""
    resolved = resolve_criterion("demographic_parity", groups, row_weights=row_weights)
    return resolved.comparisons(None if target is None else (target,))
