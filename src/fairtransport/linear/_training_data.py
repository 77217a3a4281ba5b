"""First stage of ``fit``: the validated rows, with the groups that the sensitive columns define."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtransport._arrays import Floats, Ints
from fairtransport._validation import check_count, check_flag, check_real, check_weights
from fairtransport.criteria import Criterion
from fairtransport.criteria.comparisons import Represented
from fairtransport.criteria.criterion import (
    ComparedStrata,
    as_criterion,
    compares_each_other,
    pairs_of_groups,
    resolve_criterion,
)
from fairtransport.criteria.distance import ContinuousDistance, Distance, as_distance
from fairtransport.groups import GroupPolicy, Groups, check_policy, read_groups
from fairtransport.linear.settings import HALF_LIFE, SgdSettings, sgd_settings
from fairtransport.strata import Strata, make_strata
from fairtransport.training.online import half_life_of
from fairtransport.training.responses import Response
from fairtransport.training.weight_path import check_budget
from fairtransport.transport.line import Sample
from fairtransport.transport.targets import resolve_target


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Features, y, groups and weights of the rows that a model is trained on."""

    X: Any
    y: NDArray[Any]
    response: Response
    groups: Groups
    weights: Floats | None = None
    feature_names: NDArray[Any] | None = None
    strata: Strata | None = None
    represented: Represented | None = None

    @cached_property
    def outcomes(self) -> Floats:
        """The values that predictions are compared with: 1 and 0 (second and first class), or a standardised y."""
        return self.response.outcomes(self.y)

    @cached_property
    def shares(self) -> Floats:
        """Weights of the rows, which sum to 1."""
        n = len(self.y)
        return np.full(n, 1.0 / n) if self.weights is None else self.weights / self.weights.sum()

    def select(self, rows: Ints) -> TrainingData:
        """Return some rows, in the order of their indices, which may repeat."""
        return replace(
            self,
            X=self.X[rows],
            y=self.y[rows],
            groups=self.groups.select(rows),
            weights=None if self.weights is None else self.weights[rows],
            strata=None if self.strata is None else self.strata.select(rows),
        )

    def copy(self) -> TrainingData:
        """Return rows that a change of the arrays as given does not reach."""
        return self.select(np.arange(len(self.y)))

    def resolve(self, options: TrainingOptions) -> ComparedStrata:
        """Return where the criterion compares groups."""
        return resolve_criterion(
            self.response.criterion_within_strata(options.criterion),
            self.groups,
            labels=self.outcomes,
            strata=self.strata,
            row_weights=self.weights,
        )


def validate_training_data(
    X: Any,
    y: NDArray[Any],
    *,
    response: type[Response],
    owner: str,
    sensitive_features: Any,
    strata: Any,
    sample_weight: ArrayLike | None,
    options: TrainingOptions,
    feature_names: NDArray[Any] | None = None,
) -> TrainingData:
    """Return the rows of one ``fit``, once groups, strata, weights and target are known to work."""
    weights = check_weights(sample_weight, size=X.shape[0])
    made = response.of(y, weights, owner)
    groups = make_training_groups(sensitive_features, X.shape[0], options, weights)
    check_target(groups, weights, options, made)
    groups.to_spec()  # raises for labels that a model file cannot store
    parts = made.compared_strata(y, make_training_strata(strata, groups), options.criterion, len(groups))
    data = TrainingData(X, y, made, groups, weights, feature_names, parts)
    replace(data, groups=replace(groups)).resolve(options)  # raises where there is nothing to compare; keeps no arrays
    copies = _as_copies(weights)
    return data if copies is None else replace(data.select(copies), weights=None)


_FEW_COPIES = 10_000


def _as_copies(weights: Floats | None) -> Ints | None:
    """Return each row's index as often as its weight says, or None where weights are no integers or too large.

    Drawing rows in proportion to their weights is equivalent to copies only in expectation; copies are exact.
    """
    if weights is None or np.any(weights != np.rint(weights)) or weights.sum() > max(_FEW_COPIES, 2 * weights.size):
        return None
    return np.repeat(np.arange(weights.size), weights.astype(np.int64))


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
    sensitive_features: Any, n_rows: int, options: TrainingOptions, weights: Floats | None = None
) -> Groups:
    """Return the groups of the rows, with small groups kept, pooled or dropped."""
    if sensitive_features is None:
        raise ValueError("fit needs sensitive_features: the column or columns that define groups.")
    groups = read_groups(sensitive_features, options.groups)
    if groups.n_rows != n_rows:
        raise ValueError(f"sensitive_features has {groups.n_rows} rows, but X has {n_rows}.")
    sizes = None if weights is None else [np.count_nonzero(weights[rows]) for rows in groups.rows]
    groups = groups.settle(options.groups.small, options.groups.min_size, sizes)
    groups.require()
    if options.group_specific and groups.overlapping:
        raise ValueError("group_specific=True needs groups that do not overlap: use crossed=True.")
    return groups


def check_target(groups: Groups, weights: Floats | None, options: TrainingOptions, response: Response) -> None:
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


# The parameters of a transport model, validated: what all later stages of ``fit`` read.


@dataclass(frozen=True, eq=False)
class TrainingOptions:
    """Validated parameters of a transport classifier or regressor."""

    estimator: Any
    distance: Distance
    criterion: Criterion
    parity_weight: float | None
    max_disparity: float | None
    target: Any
    scale: str
    group_specific: bool
    sgd: SgdSettings | None
    tol: float
    max_iter: int
    groups: GroupPolicy
    half_life: float
    verbose: bool

    @classmethod
    def validated(cls, parameters: Mapping[str, Any]) -> TrainingOptions:
        """Check the parameters of an estimator; each error names the parameter and what is allowed."""
        sgd, distance = sgd_settings(parameters["solver"]), as_distance(parameters["distance"])
        has_duals = isinstance(distance, ContinuousDistance)
        if sgd is not None and not has_duals and (sgd.dual_step is not None or sgd.pairs != "matched"):
            raise ValueError(
                "Discrete transport has no dual potentials: leave dual_step at None and pairs at 'matched' in its "
                "SgdSettings."
            )
        weight, max_disparity = check_budget(parameters, finite=sgd is None)
        if max_disparity is not None and sgd is not None:
            raise ValueError("max_disparity needs the path of solver='lbfgs'.")
        scale, target = parameters["scale"], parameters["target"]
        if sgd is not None:  # the paper's algorithm moves scores as they are to one fixed distribution
            scale, target = "score", "barycenter" if compares_each_other(target) else target
        return cls(
            estimator=parameters["estimator"],
            distance=distance,
            criterion=as_criterion(parameters["criterion"]),
            parity_weight=weight,
            max_disparity=max_disparity,
            target=target,
            scale=scale,
            group_specific=check_flag(parameters["group_specific"], name="group_specific"),
            sgd=sgd,
            tol=check_real(parameters["tol"], name="tol", strict=True),
            max_iter=check_count(parameters["max_iter"], name="max_iter"),
            groups=check_policy(parameters["groups"]),
            half_life=half_life_of(parameters["online"], default=HALF_LIFE),
            verbose=check_flag(parameters["verbose"], name="verbose"),
        )

    @property
    def each_other(self) -> bool:
        """True if groups are compared with each other, not with a fixed target."""
        return compares_each_other(self.target)

    @property
    def sgd_weight(self) -> float:
        """Weight of the penalty for the stochastic solver, whose default leaves the loss out."""
        return np.inf if self.parity_weight is None else self.parity_weight

    def n_pairs(self, n_groups: int) -> int:
        """Return how many distances are summed."""
        return max(1, len(pairs_of_groups(n_groups)) if self.each_other else n_groups)
