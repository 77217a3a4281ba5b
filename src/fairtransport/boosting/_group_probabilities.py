"""Probabilities of the groups given the features, by cross-fitting: no model predicts rows that it was trained on.

Where groups are compared within labels or strata, the probabilities are given these, too.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from fairtransport._sklearn import take_rows
from fairtransport.boosting._constants import GROUP_FOLDS, LEAST_PROBABILITY, N_SCALINGS
from fairtransport.boosting._training_data import hard_probabilities

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.boosting._libraries import Library
    from fairtransport.boosting._training_data import ComparedRows, TrainingData


def estimate_group_probabilities(
    library: Library, estimator: Any, rows: TrainingData, compared: ComparedRows, seed: int
) -> NDArray[np.float32]:
    """Estimate the probability of each group given a row's features and, where they matter, its label and stratum."""
    parts = compared.resolved.compared
    labels = sorted({part.label for part in parts if part.label is not None})
    if not labels:
        probabilities = _cross_fitted(library, estimator, rows, seed)
    else:
        probabilities = np.zeros((rows.groups.n_rows, len(rows.groups)), dtype=np.float32)
        for label in labels:
            of_label = np.flatnonzero(rows.labels == label)
            probabilities[of_label] = _cross_fitted(library, estimator, rows.select(of_label), seed)
    if labels or parts[0].stratum is not None:
        _match_totals(probabilities, rows, compared)
    return probabilities


def _cross_fitted(library: Library, estimator: Any, rows: TrainingData, seed: int) -> NDArray[np.float32]:
    groups, weights = rows.groups, rows.weights
    if groups.counts.max() < GROUP_FOLDS:  # too few rows for the folds
        return hard_probabilities(groups)
    probabilities = np.zeros((groups.n_rows, len(groups) + 1), dtype=np.float32)  # the last column is "in no group"
    folds = StratifiedKFold(GROUP_FOLDS, shuffle=True, random_state=seed)
    for codes in groups.memberships:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
            splits = list(folds.split(np.zeros(len(codes)), codes))
        for training, held_out in splits:
            known, labels = np.unique(codes[training], return_inverse=True)
            if len(known) == 1:
                probabilities[held_out, known[0]] = 1.0
                continue
            model, sample_weight = library.group_model(estimator), None if weights is None else weights[training]
            model.fit(take_rows(rows.X, training), labels, sample_weight=sample_weight)
            probabilities[np.ix_(held_out, known)] = model.predict_proba(take_rows(rows.X, held_out))
    return probabilities[:, :-1]


def _match_totals(probabilities: NDArray[np.float32], rows: TrainingData, compared: ComparedRows) -> None:
    """Scale the probabilities of each group in each stratum, such that they sum to the group's rows there.

    The probabilities of a row sum to 1 for each sensitive column. Alternately scaling columns and rows is iterative
    proportional fitting.
    """
    groups = rows.groups
    weights = np.ones(groups.n_rows) if rows.weights is None else rows.weights
    of_columns = [set(np.unique(codes).tolist()) - {len(groups)} for codes in groups.memberships]
    for number, part in enumerate(compared.resolved.compared):
        inside = np.flatnonzero((compared.stratum == number) & (weights > 0.0))
        old, mass = probabilities[inside].astype(np.float64), weights[inside, None]
        probabilities[inside] = 0.0
        for of_column in of_columns:
            present = np.array([group for group in part.groups if group in of_column], dtype=np.int64)
            totals = [float(weights[part.rows[part.groups.index(group)]].sum()) for group in present.tolist()]
            in_no_group = float(mass.sum()) - sum(totals)
            table = np.column_stack((old[:, present], 1.0 - old[:, list(of_column)].sum(axis=1)))
            table = np.maximum(table, LEAST_PROBABILITY) * np.append(np.ones(len(present)), in_no_group > 0.0)
            for _ in range(N_SCALINGS):
                table *= np.append(totals, in_no_group) / np.maximum((mass * table).sum(axis=0), 1e-300)
                table /= table.sum(axis=1, keepdims=True)
            probabilities[np.ix_(inside, present)] = table[:, :-1]
