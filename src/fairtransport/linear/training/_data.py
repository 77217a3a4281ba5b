"""First stage of ``fit``: the validated rows, with the groups that the sensitive columns define."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_weights
from fairtransport.criteria import resolve_criterion
from fairtransport.groups import Groups, make_groups
from fairtransport.linear.solvers.sgd_problem import as_copies
from fairtransport.strata import make_strata
from fairtransport.transport.line import Sample
from fairtransport.transport.targets import resolve_target

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.criteria import ComparedStrata
    from fairtransport.linear.responses import Response
    from fairtransport.linear.training._options import TrainingOptions
    from fairtransport.strata import Strata

__all__ = [
    "TrainingData",
    "check_target",
    "make_training_groups",
    "make_training_strata",
    "validate_training_data",
]


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Features, y, groups and weights of the rows that a model is trained on.

    Attributes
    ----------
    X : ndarray or csr_matrix
    y : ndarray
        As given.
    response : Response
    groups : Groups
    weights : ndarray or None
    feature_names : ndarray or None
    strata : Strata or None
        With equalized odds of a real y, its ranges are among them.
    """

    X: Any
    y: NDArray[Any]
    response: Response
    groups: Groups
    weights: NDArray[np.float64] | None = None
    feature_names: NDArray[Any] | None = None
    strata: Strata | None = None

    @cached_property
    def outcomes(self) -> NDArray[np.float64]:
        """What the loss compares predictions with: 1 for the second class and 0 for the first, or a standardised y."""
        return self.response.outcomes(self.y)

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Weights of the rows, which sum to 1."""
        n = self.X.shape[0]
        return np.full(n, 1.0 / n) if self.weights is None else self.weights / self.weights.sum()

    def select(self, rows: NDArray[np.int64]) -> TrainingData:
        """Return some rows, in the order of their indices, which may repeat."""
        return replace(
            self,
            X=self.X[rows],
            y=self.y[rows],
            groups=self.groups.select(rows),
            weights=None if self.weights is None else self.weights[rows],
            strata=None if self.strata is None else self.strata.select(rows),
        )

    def resolve(self, options: TrainingOptions) -> ComparedStrata:
        """Return where the criterion compares groups."""
        return resolve_criterion(
            self.response.criterion_within_strata(options.criterion),
            self.groups,
            labels=self.outcomes,
            strata=self.strata,
            row_weights=self.weights,
            stratum_weight=options.stratum_weight,
        )


def validate_training_data(
    X: Any,
    y: NDArray[Any],
    *,
    make_response: Callable[[NDArray[Any], NDArray[np.float64] | None], Response],
    sensitive_features: Any,
    strata: Any,
    sample_weight: ArrayLike | None,
    options: TrainingOptions,
    feature_names: NDArray[Any] | None = None,
) -> TrainingData:
    """Return the rows of one ``fit``, once groups, strata, weights and target are known to work.

    Parameters
    ----------
    X, y
        Features and y that scikit-learn has validated.
    make_response : callable
        Returns the response of y and row weights, which may be None; raises where it cannot be learned.
    sensitive_features, strata, sample_weight
        As for ``fit``.
    options : TrainingOptions
    feature_names : ndarray, optional

    Returns
    -------
    TrainingData
        Rows with small integer weights are repeated instead, so that weight k equals k copies exactly.
    """
    weights = check_weights(sample_weight, size=X.shape[0])
    response = make_response(y, weights)
    groups = make_training_groups(sensitive_features, X.shape[0], options, weights)
    check_target(groups, weights, options, response)
    groups.to_spec()  # raises for labels that a model file cannot store
    parts = response.compared_strata(y, make_training_strata(strata, groups), options.criterion, len(groups))
    data = TrainingData(X, y, response, groups, weights, feature_names, parts)
    data.resolve(options)  # raises where there is nothing to compare
    copies = as_copies(weights)
    return data if copies is None else replace(data.select(copies), weights=None)


def make_training_strata(strata: Any, groups: Groups) -> Strata | None:
    """Return the strata of the rows, or None without any."""
    if strata is None:
        return None
    made = make_strata(strata, n_groups=len(groups))
    if made.n_rows != groups.n_rows:
        raise ValueError(f"strata has {made.n_rows} rows, but X has {groups.n_rows}.")
    made.to_spec()  # raises for values that a model file cannot store
    return made


def make_training_groups(
    sensitive_features: Any, n_rows: int, options: TrainingOptions, weights: NDArray[np.float64] | None = None
) -> Groups:
    """Return the groups of the rows, with small groups kept, pooled or dropped."""
    if sensitive_features is None:
        raise ValueError("fit needs sensitive_features: the column or columns that define groups.")
    groups = make_groups(sensitive_features, grouping=options.grouping, missing=options.missing)
    if groups.n_rows != n_rows:
        raise ValueError(f"sensitive_features has {groups.n_rows} rows, but X has {n_rows}.")
    sizes = None if weights is None else [np.count_nonzero(weights[rows]) for rows in groups.rows]
    groups = groups.settle(options.small_groups, options.min_group_size, sizes)
    groups.require(min_size=1, at_least=2)
    if options.group_specific and groups.overlapping:
        raise ValueError("group_specific=True needs groups that do not overlap: use grouping='crossed'.")
    return groups


def check_target(
    groups: Groups, weights: NDArray[np.float64] | None, options: TrainingOptions, response: Response
) -> None:
    """Raise for a target or weights that cannot work, before anything is trained."""
    if weights is not None and not all(weights[rows].sum() > 0 for rows in groups.rows):
        raise ValueError("A group has total sample_weight 0; drop its rows or give them weight.")
    if not options.each_other:
        resolve_target(
            options.target,
            [Sample.from_values([0.5])] * len(groups),  # any scores
            groups.counts,
            labels=groups.labels,
            names=groups.names,
            score_range=response.loss.bounds,
        )
