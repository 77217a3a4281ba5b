"""How much of each row belongs to each group: its probability given the features, from models without the row."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from fairtransport._sklearn.estimator_calls import take_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.boosting._backends import Library
    from fairtransport.boosting._training_data import Given

__all__ = ["group_shares"]

_FOLDS = 2
_ROUNDS, _STEP = 30, 0.15  # of a small model; more rounds gained nothing on Adult


def group_shares(library: Library, estimator: Any, rows: Given, seed: int) -> NDArray[np.float32]:
    """Estimate the probability of each group given a row's features.

    Parameters
    ----------
    library : Library
    estimator : classifier
        Its settings are used, with fewer rounds and smaller trees.
    rows : Given
        Each column of overlapping groups has models of its own.
    seed : int
        Of the two halves of the rows: each is told by a model of the other.

    Returns
    -------
    ndarray of shape (n_rows, n_groups)
    """
    groups, weights = rows.groups, rows.weights
    shares = np.zeros((groups.n_rows, len(groups) + 1), dtype=np.float32)  # the last column is no group
    halves = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    for codes in groups.memberships:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
            splits = list(halves.split(np.zeros(len(codes)), codes))
        for seen, unseen in splits:
            known, labels = np.unique(codes[seen], return_inverse=True)
            if len(known) == 1:
                shares[unseen, known[0]] = 1.0
                continue
            model = library.quick(estimator, _ROUNDS, learning_rate=_STEP, **library.small)
            model.fit(take_rows(rows.X, seen), labels, sample_weight=None if weights is None else weights[seen])
            shares[np.ix_(unseen, known)] = model.predict_proba(take_rows(rows.X, unseen))
    return shares[:, :-1]
