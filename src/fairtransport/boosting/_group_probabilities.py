"""Probabilities of the groups given the features, by cross-fitting: no model predicts rows that it was trained on."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from fairtransport._sklearn.estimator_calls import take_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.boosting._backends import Library
    from fairtransport.boosting._training_data import TrainingData

__all__ = ["estimate_group_probabilities"]

_FOLDS = 2
_ROUNDS, _LEARNING_RATE = 30, 0.15


def estimate_group_probabilities(
    library: Library, estimator: Any, rows: TrainingData, seed: int
) -> NDArray[np.float32]:
    """Estimate the probability of each group given a row's features.

    Parameters
    ----------
    library : Library
    estimator : classifier
        Its settings are used, with fewer rounds and smaller trees.
    rows : TrainingData
        If groups overlap, each sensitive column has its own models.
    seed : int
        Of the split into two halves; a model trained on one predicts the other.

    Returns
    -------
    ndarray of shape (n_rows, n_groups)
    """
    groups, weights = rows.groups, rows.weights
    probabilities = np.zeros((groups.n_rows, len(groups) + 1), dtype=np.float32)  # the last column is "in no group"
    halves = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    for codes in groups.memberships:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
            splits = list(halves.split(np.zeros(len(codes)), codes))
        for training, held_out in splits:
            known, labels = np.unique(codes[training], return_inverse=True)
            if len(known) == 1:
                probabilities[held_out, known[0]] = 1.0
                continue
            model = library.auxiliary_model(
                estimator, _ROUNDS, learning_rate=_LEARNING_RATE, **library.small_tree_params
            )
            sample_weight = None if weights is None else weights[training]
            model.fit(take_rows(rows.X, training), labels, sample_weight=sample_weight)
            probabilities[np.ix_(held_out, known)] = model.predict_proba(take_rows(rows.X, held_out))
    return probabilities[:, :-1]
