"""The parameters of a transport model, validated: what all later stages of ``fit`` read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._sklearn.streaming import check_stream_parameters
from fairtransport._validation import check_choice, check_count, check_flag, check_real
from fairtransport.criteria import CRITERIA, STRATUM_WEIGHTS, compares_each_other, pairs_of_groups
from fairtransport.linear.solvers.settings import SgdSettings, sgd_settings
from fairtransport.penalties.base import SCALES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairtransport.linear._distances import TransportDistance

__all__ = ["SPREADS", "TrainingOptions"]

#: Whose spread the scores have: that of the trained or that of the initial model.
SPREADS = ("trained", "initial")


@dataclass(frozen=True, eq=False)
class TrainingOptions:
    """Validated parameters of a transport classifier or regressor.

    Attributes
    ----------
    estimator : estimator or None
        The initial model, fitted or not; None: logistic or ridge regression on standardized columns.
    distance : TransportDistance
        The distance that is penalised.
    criterion : {"demographic_parity", "equalized_odds", "equal_opportunity"}
    stratum_weight : {"equal", "share"} or None
        How labels and strata are weighted.
    parity_weight : float or None
        Weight of the penalty; None where it is chosen automatically.
    max_disparity : float or None
        Limit of the disparity by which the weight is chosen.
    target : str, label or array
        What groups are compared with: ``"each_other"`` or a fixed distribution.
    scale : {"standardized", "score"}
        Unit in which scores are compared.
    group_specific : bool
        Whether each group has its own weights.
    sgd : SgdSettings or None
        Settings of the stochastic solver; None for L-BFGS.
    tol, max_iter : float, int
        Stopping criteria of L-BFGS.
    grouping, missing, small_groups, min_group_size
        How groups are made.
    half_life : float
        Memory of ``partial_fit``, in rows of a group.
    verbose : bool
        Whether to show a progress bar.
    """

    estimator: Any
    distance: TransportDistance
    criterion: str
    stratum_weight: str | None
    parity_weight: float | None
    max_disparity: float | None
    target: Any
    scale: str
    group_specific: bool
    sgd: SgdSettings | None
    tol: float
    max_iter: int
    grouping: str
    missing: str
    small_groups: str
    min_group_size: int
    half_life: float
    verbose: bool

    @classmethod
    def validated(cls, parameters: Mapping[str, Any], distance: TransportDistance) -> TrainingOptions:
        """Check the parameters of an estimator; each error names the parameter and what is allowed."""
        sgd = sgd_settings(parameters["solver"])
        if sgd is not None:
            distance.check_settings(sgd)
        weight, max_disparity = parameters["parity_weight"], parameters["max_disparity"]
        if isinstance(weight, str):
            check_choice(weight, ("auto",), name="parity_weight")
        else:
            check_real(weight, name="parity_weight", finite=sgd is None)
        if max_disparity is not None:
            check_real(max_disparity, name="max_disparity")
            if not isinstance(weight, str):
                raise ValueError("max_disparity chooses the weight: leave parity_weight at 'auto', or it at None.")
            if sgd is not None:
                raise ValueError("max_disparity needs the path of solver='lbfgs'.")
        stratum_weight = parameters["stratum_weight"]
        if stratum_weight is not None:
            check_choice(stratum_weight, STRATUM_WEIGHTS, name="stratum_weight")
        check_real(parameters["amount"], name="amount", most=1.0)
        check_choice(parameters["spread"], SPREADS, name="spread")
        check_stream_parameters(parameters["half_life"], parameters["new_groups"])
        scale, target = check_choice(parameters["scale"], SCALES, name="scale"), parameters["target"]
        if sgd is not None:  # the paper's algorithm moves scores as they are to one fixed distribution
            scale, target = "score", "barycenter" if compares_each_other(target) else target
        return cls(
            estimator=parameters["estimator"],
            distance=distance,
            criterion=check_choice(parameters["criterion"], CRITERIA, name="criterion"),
            stratum_weight=stratum_weight,
            parity_weight=None if isinstance(weight, str) else float(weight),
            max_disparity=None if max_disparity is None else float(max_disparity),
            target=target,
            scale=scale,
            group_specific=check_flag(parameters["group_specific"], name="group_specific"),
            sgd=sgd,
            tol=check_real(parameters["tol"], name="tol", strict=True),
            max_iter=check_count(parameters["max_iter"], name="max_iter"),
            grouping=parameters["grouping"],
            missing=parameters["missing"],
            small_groups=parameters["small_groups"],
            min_group_size=check_count(parameters["min_group_size"], name="min_group_size"),
            half_life=float(parameters["half_life"]),
            verbose=check_flag(parameters["verbose"], name="verbose"),
        )

    @property
    def each_other(self) -> bool:
        """Whether groups are compared with each other, not with a fixed target."""
        return compares_each_other(self.target)

    @property
    def target_word(self) -> Any:
        """The target; where groups are compared with each other, the barycenter that is shown beside them."""
        return "barycenter_w2" if self.each_other else self.target

    @property
    def sgd_weight(self) -> float:
        """Weight of the penalty for the stochastic solver, whose default leaves the loss out."""
        return np.inf if self.parity_weight is None else self.parity_weight

    def n_pairs(self, n_groups: int) -> int:
        """Return how many distances are summed."""
        return max(1, len(pairs_of_groups(n_groups)) if self.each_other else n_groups)
