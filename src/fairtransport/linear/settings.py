"""Settings of the linear transport models that are set rarely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sklearn.utils import check_random_state

from fairtransport._validation import check_choice, check_count, check_flag, check_real
from fairtransport.transport.dual import PAIRS

if TYPE_CHECKING:
    import numpy as np

#: The deterministic solver, which uses all rows in each iteration.
LBFGS = "lbfgs"

#: The stochastic solver with its default settings.
SGD = "sgd"

#: Rows of its group after which ``partial_fit`` counts a row half, by default.
HALF_LIFE = 1000.0


@dataclass(frozen=True)
class SgdSettings:
    """Settings of the stochastic solver of the linear transport models.

    Pass an instance as ``solver``; ``solver="sgd"`` is the same as ``solver=SgdSettings()``.

    Parameters
    ----------
    n_updates : int, default=20_000
        Number of updates.
    batch_size : int, optional
        Rows of each group that an update draws; by default 100 for continuous and 200 for discrete transport, whose
        coupling is biased by small batches.
    parameter_step : float, optional
        Step size of the model's weights, eps_theta in the paper, for every weight and update. By default it is chosen
        from the scale of the features, the batch size and the weight of the objective, and decreases linearly.
    dual_step : float, optional
        Step size of the dual potentials, eps_lambda in the paper; by default it follows from the regularization
        strength. Continuous transport only.
    pairs : {"matched", "all"}, default="matched"
        Pair the i-th row of a batch with the i-th draw from the target, or every row with every draw. Continuous
        transport only.
    average : bool, default=True
        Return the mean of the second half of the iterates instead of the last one.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws; pass an int for reproducible models.

    References
    ----------
    S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021: the algorithm boxes.

    See Also
    --------
    TransportClassifier : Takes it as ``solver``.

    Examples
    --------
    >>> from fairtransport import TransportClassifier
    >>> from fairtransport.linear import SgdSettings
    >>> model = TransportClassifier(solver=SgdSettings(n_updates=5_000, random_state=0))
    >>> model.solver.n_updates
    5000
    """

    n_updates: int = 20_000
    batch_size: int | None = None
    parameter_step: float | None = None
    dual_step: float | None = None
    pairs: str = "matched"
    average: bool = True
    random_state: int | np.random.RandomState | None = None

    def __post_init__(self) -> None:
        check_count(self.n_updates, name="n_updates")
        if self.batch_size is not None:
            check_count(self.batch_size, name="batch_size")
        for name in ("parameter_step", "dual_step"):
            if getattr(self, name) is not None:
                check_real(getattr(self, name), name=name, strict=True)
        check_choice(self.pairs, PAIRS, name="pairs")
        check_flag(self.average, name="average")
        check_random_state(self.random_state)


def sgd_settings(solver: Any) -> SgdSettings | None:
    """Return the settings of the stochastic solver, or None where ``solver`` is "lbfgs"."""
    if isinstance(solver, SgdSettings):
        return solver
    if isinstance(solver, str) and solver in (LBFGS, SGD):
        return SgdSettings() if solver == SGD else None
    shown = repr(solver) if isinstance(solver, str) else f"a {type(solver).__name__}"
    raise ValueError(f"solver must be 'lbfgs', 'sgd' or an instance of SgdSettings; got {shown}.")
