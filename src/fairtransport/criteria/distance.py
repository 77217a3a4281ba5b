"""The two transport distances that a penalty can sum: regularized (continuous) and exact (discrete)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from fairtransport._validation import check_count, check_flag, check_real
from fairtransport.criteria.penalty import EXACT, ContinuousPenalty, DiscretePenalty
from fairtransport.transport.dual import DualProblem
from fairtransport.transport.fourier import draw_features, quadrature_features
from fairtransport.transport.regularizers import get_regularizer

if TYPE_CHECKING:
    import numpy as np

_USUAL = 0.1  # strength and kernel variance: they suit scores between 0 and 1


@dataclass(frozen=True)
class ContinuousDistance:
    """The regularized distance of continuous optimal transport (COT), through dual potentials.

    Pass an instance as ``distance``; ``distance="continuous"`` is the same as ``distance=ContinuousDistance()``.

    Parameters
    ----------
    regularizer : {"l2", "entropy"}, default="l2"
        Regularization of the transport problem.
    strength : float, optional
        Strength of the regularization, lambda in the paper. By default 0.1, and 3.2 for probabilities of boosted trees,
        with which they reach a lower error at equal disparity.
    opposite_duals : bool, default=True
        Constrain the two dual potentials of a pair to be opposite at every score.
    n_fourier_features : int, default=50
        Number of Fourier features in which dual potentials are expanded.
    kernel_variance : float, optional
        Variance of the Gaussian kernel that the features approximate. By default 0.1, and 0.02 for probabilities of
        boosted trees.

    See Also
    --------
    DiscreteDistance : The exact distance.

    References
    ----------
    S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021: Equations 4, 6 and 7.

    Examples
    --------
    >>> from fairtransport import ContinuousDistance, TransportClassifier
    >>> model = TransportClassifier(distance=ContinuousDistance(regularizer="entropy"))
    >>> model.distance.n_fourier_features
    50
    """

    name: ClassVar[str] = "COT"

    regularizer: str = "l2"
    strength: float | None = None
    opposite_duals: bool = True
    n_fourier_features: int = 50
    kernel_variance: float | None = None

    def __post_init__(self) -> None:
        get_regularizer(self.regularizer)
        check_flag(self.opposite_duals, name="opposite_duals")
        check_count(self.n_fourier_features, name="n_fourier_features")
        for name in ("strength", "kernel_variance"):
            if getattr(self, name) is not None:
                check_real(getattr(self, name), name=name, strict=True)

    def with_defaults(self, strength: float, kernel_variance: float) -> ContinuousDistance:
        """Return the distance with these values where it has none."""
        return replace(
            self,
            strength=strength if self.strength is None else self.strength,
            kernel_variance=kernel_variance if self.kernel_variance is None else self.kernel_variance,
        )

    def dual_problem(self, pairs: str = "all", rng: np.random.Generator | None = None) -> DualProblem:
        """Return the dual problem with deterministic Fourier features or, with a generator, random ones."""
        strength, variance = (
            _USUAL if value is None else float(value) for value in (self.strength, self.kernel_variance)
        )
        size = self.n_fourier_features
        features = quadrature_features(size, variance) if rng is None else draw_features(size, variance, rng)
        return DualProblem(features, get_regularizer(self.regularizer), strength, self.opposite_duals, pairs)

    def penalty(self, scale: str, *, n_slices: int = 32, tolerance: float = EXACT) -> ContinuousPenalty:
        """Return a new penalty, without a warm start; the gradient of its duals is within a tolerance."""
        return ContinuousPenalty(self.dual_problem(), n_slices=n_slices, scale=scale, tolerance=tolerance)


@dataclass(frozen=True)
class DiscreteDistance:
    """The exact Wasserstein-1 distance of discrete optimal transport (DOT), by the coupling of sorted scores.

    ``distance="discrete"`` is the same as ``distance=DiscreteDistance()``.

    See Also
    --------
    ContinuousDistance : The regularized distance.

    References
    ----------
    S. Chiappa and A. Pacchiano, Fairness with Continuous Optimal Transport, AAAI 2021: Equations 8 and 9.
    """

    name: ClassVar[str] = "DOT"

    def penalty(self, scale: str, *, n_slices: int = 200) -> DiscretePenalty:
        """Return the penalty of exact distances."""
        return DiscretePenalty(n_slices=n_slices, scale=scale)


Distance = ContinuousDistance | DiscreteDistance
_BY_NAME = {"continuous": ContinuousDistance, "discrete": DiscreteDistance}


def as_distance(value: Any) -> Distance:
    """Return the distance of a parameter ``distance``: a name or an instance."""
    if isinstance(value, (ContinuousDistance, DiscreteDistance)):
        return value
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]()
    shown = repr(value) if isinstance(value, str) else f"a {type(value).__name__}"
    raise ValueError(
        f"distance must be 'continuous', 'discrete', a ContinuousDistance or a DiscreteDistance; got {shown}."
    )
