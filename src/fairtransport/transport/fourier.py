"""Random Fourier features: a Gaussian kernel as a short vector of cosines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairtransport._validation import check_count, check_real

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["FeatureTable", "FourierFeatures", "draw_features"]


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Every feature around the middles of even cells over [0, 1], for the compiled loops.

    Attributes
    ----------
    steps : int
        Cells have width 1 / steps, and middles at 0, 1 / steps, ..., 1. No feature turns by more than 1/8
        within half a cell, so a Taylor polynomial of order 5 is exact to 1e-8.
    cosines, sines : ndarray of shape (steps + 1, width)
        Scaled cosine and sine of each feature at the middles. The width is the number of features rounded
        up to a multiple of 8 for SIMD; the padding is zero.
    powers : ndarray of shape (6, width)
        (frequency / steps)^m / m!.
    """

    steps: int
    cosines: NDArray[np.float64]
    sines: NDArray[np.float64]
    powers: NDArray[np.float64]

    @property
    def width(self) -> int:
        """Number of features with the padding."""
        return self.cosines.shape[1]


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    r"""The map psi of the paper's dual variables.

    Attributes
    ----------
    frequency, phase : ndarray of shape (n_features,)

    Notes
    -----
    .. math:: \psi_i(x) = \sqrt{2/D}\,\cos(\omega_i x + b_i), \quad
              \omega_i \sim N(0, 2/\sigma^2),\; b_i \sim U[0, 2\pi]

    so that :math:`\psi(x)^\top\psi(x') \approx \exp(-(x-x')^2/\sigma^2)` (section "Dual Variables
    Parametrization").
    """

    frequency: NDArray[np.float64]
    phase: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.frequency)

    @property
    def scale(self) -> float:
        """The factor sqrt(2 / D)."""
        return math.sqrt(2.0 / len(self))

    def __call__(self, points: ArrayLike) -> NDArray[np.float64]:
        """psi(points), one row a point."""
        return self.scale * np.cos(np.multiply.outer(np.asarray(points), self.frequency) + self.phase)

    def slope(self, points: ArrayLike) -> NDArray[np.float64]:
        """Differentiate psi at the points, one row a point."""
        angle = np.multiply.outer(np.asarray(points), self.frequency) + self.phase
        return -self.scale * self.frequency * np.sin(angle)

    def tabulate(self) -> FeatureTable:
        """Lay the features out over [0, 1] for the compiled loops."""
        steps = max(1, math.ceil(4.0 * float(np.abs(self.frequency).max())))
        padding = ((0, 0), (0, -len(self) % 8))
        angle = np.multiply.outer(np.arange(steps + 1) / steps, self.frequency) + self.phase
        powers = np.array([(self.frequency / steps) ** m / math.factorial(m) for m in range(6)])
        return FeatureTable(
            steps,
            np.pad(self.scale * np.cos(angle), padding),
            np.pad(self.scale * np.sin(angle), padding),
            np.pad(powers, padding),
        )


def draw_features(n_features: int, kernel_variance: float, rng: np.random.Generator) -> FourierFeatures:
    """Draw the random frequencies and phases.

    Examples
    --------
    >>> import numpy as np
    >>> psi = draw_features(4000, 0.5, np.random.default_rng(0))
    >>> kernel = psi(0.2) @ psi(0.9)
    >>> bool(abs(kernel - np.exp(-0.7**2 / 0.5)) < 0.05)
    True
    """
    check_count(n_features, name="n_fourier_features")
    check_real(kernel_variance, name="kernel_variance", strict=True)
    frequency = rng.normal(0.0, math.sqrt(2.0 / kernel_variance), n_features)
    return FourierFeatures(frequency, rng.uniform(0.0, 2.0 * math.pi, n_features))
