"""The two transport distances: what continuous and discrete transport classifiers differ in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fairtransport._validation import check_count, check_flag, check_real
from fairtransport.linear.duals import Duals, duals_by_group
from fairtransport.penalties import ContinuousPenalty, DiscretePenalty
from fairtransport.transport.dual import DualProblem
from fairtransport.transport.fourier import draw_features, quadrature_features
from fairtransport.transport.regularizers import get_regularizer

if TYPE_CHECKING:
    import numpy as np

    from fairtransport.groups import Groups
    from fairtransport.linear.solvers._sgd import Result
    from fairtransport.linear.solvers.settings import SgdSettings
    from fairtransport.penalties import Comparisons, TransportPenalty

__all__ = ["ContinuousDistance", "DiscreteDistance", "TransportDistance"]


class TransportDistance(ABC):
    """A distance between distributions of scores, for both solvers.

    Attributes
    ----------
    name : str
        Its abbreviation, for the progress bar.
    batch_size : int
        Rows of each group that an update of the stochastic solver draws by default.
    """

    name: ClassVar[str]
    batch_size: ClassVar[int]

    @abstractmethod
    def penalty(self, scale: str, *, n_slices: int | None = None) -> TransportPenalty:
        """Return a new penalty, without a warm start."""

    @abstractmethod
    def dual_problem(self, settings: SgdSettings, rng: np.random.Generator) -> DualProblem | None:
        """Return the dual problem with random features, or None where there are no dual potentials."""

    @abstractmethod
    def duals(self, penalty: TransportPenalty, comparisons: Comparisons, groups: Groups) -> Duals | None:
        """Return the dual potentials that a penalty of this distance found last."""

    @abstractmethod
    def sgd_duals(self, result: Result, groups: Groups) -> Duals | None:
        """Return the dual potentials of a run of the stochastic solver."""

    @abstractmethod
    def check_settings(self, settings: SgdSettings) -> None:
        """Raise for settings of the stochastic solver that this distance does not have."""


@dataclass(frozen=True)
class ContinuousDistance(TransportDistance):
    """The regularized distance of continuous optimal transport (COT); its parameters are those of the classifier."""

    name: ClassVar[str] = "COT"
    batch_size: ClassVar[int] = 100

    regularizer: str
    strength: float
    opposite_duals: bool
    n_fourier_features: int
    kernel_variance: float
    n_slices: ClassVar[int] = 32

    def __post_init__(self) -> None:
        get_regularizer(self.regularizer)
        check_real(self.strength, name="strength", strict=True)
        check_flag(self.opposite_duals, name="opposite_duals")
        check_count(self.n_fourier_features, name="n_fourier_features")
        check_real(self.kernel_variance, name="kernel_variance", strict=True)

    def penalty(self, scale: str, *, n_slices: int | None = None) -> ContinuousPenalty:
        """Return the penalty with deterministic Fourier features and exact duals."""
        features = quadrature_features(self.n_fourier_features, self.kernel_variance)
        regularizer = get_regularizer(self.regularizer)
        problem = DualProblem(features, regularizer, float(self.strength), bool(self.opposite_duals), "all")
        return ContinuousPenalty(problem, n_slices=n_slices or self.n_slices, scale=scale)

    def dual_problem(self, settings: SgdSettings, rng: np.random.Generator) -> DualProblem:
        """Return the dual problem of the paper, with random Fourier features."""
        features = draw_features(self.n_fourier_features, self.kernel_variance, rng)
        regularizer = get_regularizer(self.regularizer)
        return DualProblem(features, regularizer, float(self.strength), bool(self.opposite_duals), settings.pairs)

    def duals(self, penalty: TransportPenalty, comparisons: Comparisons, groups: Groups) -> Duals | None:
        """Return the dual potentials of every group."""
        return duals_by_group(penalty, comparisons, groups) if isinstance(penalty, ContinuousPenalty) else None

    def sgd_duals(self, result: Result, groups: Groups) -> Duals:
        """Return the dual potentials of every group."""
        return Duals(result.features, result.duals, result.target_duals, groups)

    def check_settings(self, settings: SgdSettings) -> None:
        """Accept all settings."""


@dataclass(frozen=True)
class DiscreteDistance(TransportDistance):
    """The exact Wasserstein-1 distance of discrete optimal transport (DOT)."""

    name: ClassVar[str] = "DOT"
    batch_size: ClassVar[int] = 200
    n_slices: ClassVar[int] = 200

    def penalty(self, scale: str, *, n_slices: int | None = None) -> DiscretePenalty:
        """Return the penalty of exact distances."""
        return DiscretePenalty(n_slices=n_slices or self.n_slices, scale=scale)

    def dual_problem(self, settings: SgdSettings, rng: np.random.Generator) -> None:
        """Return None: sorting couples a batch, without dual potentials."""

    def duals(self, penalty: TransportPenalty, comparisons: Comparisons, groups: Groups) -> None:
        """Return None."""

    def sgd_duals(self, result: Result, groups: Groups) -> None:
        """Return None."""

    def check_settings(self, settings: SgdSettings) -> None:
        """Raise for settings of dual potentials."""
        if settings.dual_step is not None or settings.pairs != "matched":
            raise ValueError(
                "Discrete transport has no dual potentials: leave dual_step at None and pairs at 'matched' in its "
                "SgdSettings."
            )
