"""Scores of rows by models that were not trained on them, for metrics of flexible models."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fairtransport.linear.training._initial_model import minimise_loss

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.linear.training._data import TrainingData
    from fairtransport.linear.training._problem import ParityProblem

__all__ = ["CrossFit"]

_FOLDS = 3


class CrossFit:
    """Models of three folds, trained along the same weights as the model of all rows."""

    def __init__(self, problem: ParityProblem) -> None:
        fold_of_row = _fold_positions(problem.rows) % _FOLDS
        self._n_rows = len(problem.loss.outcomes)
        self._folds = [_Fold(problem, fold_of_row == fold) for fold in range(_FOLDS)]

    @cached_property
    def initial_scores(self) -> NDArray[np.float64]:
        """Scores of the rows by initial models that were not trained on them."""
        scores = np.empty(self._n_rows)
        for fold in self._folds:
            scores[fold.held_out] = fold.initial_scores
        return scores

    def scores(self, weight: float) -> NDArray[np.float64]:
        """Return scores of the rows by models of this weight that were not trained on them."""
        scores = np.empty(self._n_rows)
        for fold in self._folds:
            scores[fold.held_out] = fold.scores(weight)
        return scores


class _Fold:
    """A model trained without some rows."""

    def __init__(self, problem: ParityProblem, is_held_out: NDArray[np.bool_]) -> None:
        self.held_out, kept = np.flatnonzero(is_held_out), np.flatnonzero(~is_held_out)
        picked, shares = problem.subsample(kept)
        loss = problem.loss_of(picked, shares, kept.size)
        self._held_out_loss = problem.loss_of(self.held_out, problem.loss.shares[self.held_out])
        shared = replace(loss, parts=(problem.rows.X[picked],), n_groups=0, center=None)
        theta = minimise_loss(shared, problem.start[:1])
        if problem.loss.center is not None:
            loss, self._held_out_loss = (replace(one, center=theta[0]) for one in (loss, self._held_out_loss))
        self._start = np.tile(theta, (problem.loss.shape[0], 1))
        self.initial_scores = self._held_out_loss.scores(self._start)
        comparisons = problem.comparisons.penalised.restricted(picked, shares * picked.size)
        self._solver = problem.coarse_solver(loss, comparisons, self._start)
        self._parameters: dict[float, NDArray[np.float64]] = {}

    def scores(self, weight: float) -> NDArray[np.float64]:
        """Return scores of the held-out rows."""
        smaller = [known for known in self._parameters if known <= weight]
        start = self._parameters[max(smaller)] if smaller else self._start
        self._parameters[weight] = self._solver.run(weight, start).parameters
        return self._held_out_loss.scores(self._parameters[weight])


def _fold_positions(rows: TrainingData) -> NDArray[np.int64]:
    """Return the position of each row within its group, label and stratum, whose remainders make stratified folds."""
    columns = [
        *rows.groups.memberships,
        *(rows.response.fold_columns(rows.outcomes)),
        *(() if rows.strata is None else (rows.strata.codes,)),
    ]
    strata = np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(strata, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(strata))))[:-1]
    positions = np.empty(len(order), np.int64)
    positions[order] = np.arange(len(order)) - starts[strata[order]]
    return positions
