"""Last stage of ``fit``: everything that a fitted estimator stores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.linear.duals import Duals
    from fairtransport.linear.online.memory import OnlineMemory
    from fairtransport.linear.responses import Response
    from fairtransport.linear.training._initial_model import InitialModel
    from fairtransport.linear.training.outcome import Notice
    from fairtransport.strata import Strata

__all__ = ["FitResult", "group_predictors"]


@dataclass(frozen=True, eq=False)
class FitResult:
    """A trained model, with what the fitted attributes of the estimators show of its training.

    Attributes
    ----------
    response : Response
    initial : InitialModel
    groups : Groups
        Without rows.
    group_sizes : ndarray of shape (n_groups,)
    strata : Strata or None
        Without rows.
    theta : ndarray of shape (n_models, n_columns + 1)
        Weights for the columns as given, the intercept last: shared ones, or those of each group.
    common : ndarray of shape (n_columns + 1,)
        Weights of rows that are in no group.
    parity_weight : float
    target : ndarray of shape (4096,)
    n_iter : int
    information_kept : float
    before_after : dict of str to (float, float)
    history : dict of ndarray
    spread : ndarray of shape (2, n_points)
    path : dict of ndarray
    duals : Duals or None
    memory : OnlineMemory
        What ``partial_fit`` starts from.
    outcome : Notice
    """

    response: Response
    initial: InitialModel
    groups: Groups
    group_sizes: NDArray[np.int64]
    strata: Strata | None
    theta: NDArray[np.float64]
    common: NDArray[np.float64]
    parity_weight: float
    target: NDArray[np.float64]
    n_iter: int
    information_kept: float
    before_after: dict[str, tuple[float, float]]
    history: dict[str, NDArray[np.float64]]
    spread: NDArray[np.float64]
    path: dict[str, NDArray[np.float64]]
    duals: Duals | None
    memory: OnlineMemory
    outcome: Notice

    def in_units_of_y(self) -> FitResult:
        """Return the result with weights, target, maps and potentials in units of y; the memory stays standardised."""
        response, path = self.response, dict(self.path)
        if len(path["weight"]):
            path["theta"] = response.to_given(path["theta"])
            path["spread"] = response.scores_as_given(path["spread"])
        return replace(
            self,
            theta=response.to_given(self.theta),
            common=response.to_given(self.common),
            target=response.scores_as_given(self.target),
            spread=response.scores_as_given(self.spread),
            path=path,
            duals=None if self.duals is None else response.duals_as_given(self.duals),
        )


def group_predictors(
    X: Any, theta: NDArray[np.float64], common: NDArray[np.float64], groups: Groups
) -> NDArray[np.float64]:
    """Return the linear predictor of each row by the weights of its group, or by the common ones."""
    if len(theta) == 1:
        return np.asarray(X @ theta[0, :-1] + theta[0, -1], dtype=np.float64)
    predictors = np.asarray(X @ common[:-1] + common[-1], dtype=np.float64)
    for weights, rows in zip(theta, groups.rows, strict=True):
        predictors[rows] = X[rows] @ weights[:-1] + weights[-1]
    return predictors
