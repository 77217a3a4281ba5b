"""Random Fourier features: a Gaussian kernel as a short vector of cosines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fairtransport._arrays import Floats
from fairtransport._validation import check_count, check_real
from fairtransport.transport._namespace import namespace

_EXACT = 1e-8  # of a cosine, on [0, 1]


class FeatureTable(NamedTuple):
    r"""Every feature and its slope on [0, 1] as a polynomial, for the compiled loops.

    Notes
    -----
    With z = w / 2 and the Bessel functions J (Jacobi and Anger),

    .. math:: \cos(\omega x + b) = \sum_{k \ge 0} (2 - \delta_{k0})\, J_k(z)
              \cos(b + z + k \pi / 2)\, T_k(2 x - 1).

    For k > z the terms decrease faster than any power: 20 degrees are exact to 1e-8 up to a frequency of 12. The
    error is at most the sum of the 2 J_k(z) that are left out.
    """

    basis: NDArray[Any]
    slopes: NDArray[Any]


class FeatureDirections(NamedTuple):
    """Linear combinations of features, by the cosines and the sines of each distinct frequency."""

    frequency: Floats
    values: Floats
    slopes: Floats

    def value_and_slope(self, points: Floats) -> tuple[Floats, Floats]:
        """Return the combinations and their derivatives at the points, on a last axis."""
        # With t = tan(x/2), cos x = (1 - t^2) / (1 + t^2) and sin x = 2 t / (1 + t^2). NumPy's tangent uses vector
        # instructions, and takes a tenth of the time of its sine and cosine.
        tangent = np.tan((0.5 * points)[..., None] * self.frequency)
        double = 2.0 / (1.0 + tangent**2)
        waves = np.concatenate((double - 1.0, double * tangent), axis=-1)
        return waves @ self.values, waves @ self.slopes


_REACH = 3.0  # of a table, to both sides: twelve standard deviations of standardized scores
_STEP = 0.125  # of a table, in radians of the highest frequency: errors are below 1e-6


class TabulatedDirections:
    """`FeatureDirections` by cubic polynomials between the nodes of a table; beyond these they are exact."""

    def __init__(self, exact: FeatureDirections) -> None:
        self.exact = exact
        self._per_unit = max(1.0, float(exact.frequency.max())) / _STEP
        values, slopes = exact.value_and_slope(np.arange(2.0 * _REACH * self._per_unit + 1.0) / self._per_unit - _REACH)
        (left, right), (rise, last) = ((table[:-1], table[1:]) for table in (values, slopes / self._per_unit))
        cubes = 2.0 * (left - right) + rise + last
        self._coefficients = left, rise, right - left - rise - cubes, cubes

    def value_and_slope(self, points: Floats) -> tuple[Floats, Floats]:
        """Return the combinations and their derivatives at the points, on a last axis."""
        at = (points + _REACH) * self._per_unit
        if not (at.min() >= 0.0 and at.max() < len(self._coefficients[0])):
            return self.exact.value_and_slope(points)
        piece = at.astype(np.int64)
        t = (at - piece)[..., None]
        value, one, slope, three = (table.take(piece, axis=0) for table in self._coefficients)
        # Horner's rule in place: new arrays cost more than the arithmetic.
        three *= t
        slope += three
        three += slope
        three *= t
        slope *= t
        slope += one
        value += slope * t
        slope += three
        slope *= self._per_unit
        return value, slope


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    r"""The map psi of the paper's dual variables.

    Notes
    -----
    .. math:: \psi_i(x) = \sqrt{2/D}\,\cos(\omega_i x + b_i), \quad
              \omega_i \sim N(0, 2/\sigma^2),\; b_i \sim U[0, 2\pi]

    so that :math:`\psi(x)^\top\psi(x') \approx \exp(-(x-x')^2/\sigma^2)` (section "Dual Variables
    Parametrization").
    """

    frequency: Any
    phase: Any

    def __len__(self) -> int:
        return len(self.frequency)

    @property
    def scale(self) -> float:
        """The factor sqrt(2 / D)."""
        return math.sqrt(2.0 / len(self))

    @cached_property
    def _is_paired(self) -> bool:
        """True if the second half of the features are those of the first half, shifted by a quarter of a period."""
        half, quarters = len(self) // 2, np.repeat([0.0, 0.5 * math.pi], len(self) // 2)
        return np.array_equal(self.phase, quarters) and np.array_equal(self.frequency[:half], self.frequency[half:])

    def _angle(self, points: Any) -> Any:
        return (points if hasattr(points, "shape") else np.asarray(points))[..., None] * self.frequency + self.phase

    def value(self, points: Any) -> Any:
        """Return psi(points), with the features on a last axis."""
        return self.scale * namespace(self.frequency).cos(self._angle(points))

    def __call__(self, points: Any) -> Any:
        """Return psi(points); compiled torch code, which cannot call an object with a length, uses `value`."""
        return self.value(points)

    def slope(self, points: Any) -> Any:
        """Return the derivatives of psi at the points, with the features on a last axis."""
        return -self.scale * self.frequency * namespace(self.frequency).sin(self._angle(points))

    def value_and_slope(self, points: Any) -> tuple[Any, Any]:
        """Return `value` and `slope`, which share their angles."""
        if isinstance(self.frequency, np.ndarray) and self._is_paired:  # not in compiled torch
            half = len(self) // 2
            angle = np.asarray(points)[..., None] * self.frequency[:half]
            cosine, sine = np.cos(angle), np.sin(angle)
            value, slope = np.concatenate((cosine, -sine), axis=-1), np.concatenate((sine, cosine), axis=-1)
            return self.scale * value, (-self.scale * self.frequency) * slope
        xp, angle = namespace(self.frequency), self._angle(points)
        return self.scale * xp.cos(angle), (-self.scale * self.frequency) * xp.sin(angle)

    def along(self, directions: Floats) -> FeatureDirections:
        """Return linear combinations of the features, each a column of coefficients."""
        angular, index = np.unique(self.frequency, return_inverse=True)
        waves = np.zeros((2, angular.size, directions.shape[1]))  # of cos(w x) and sin(w x)
        np.add.at(waves[0], index, (self.scale * np.cos(self.phase))[:, None] * directions)
        np.add.at(waves[1], index, (-self.scale * np.sin(self.phase))[:, None] * directions)
        slopes = np.stack((waves[1], -waves[0])) * angular[:, None]
        return FeatureDirections(angular, np.vstack(list(waves)), np.vstack(list(slopes)))

    def tabulate(self, dtype: DTypeLike = np.float64) -> FeatureTable:
        """Return the features on [0, 1] as polynomials, for the compiled loops."""
        half = 0.5 * self.frequency
        degree = np.arange(_n_degrees(float(np.abs(half).max())))[:, None]
        size = self.scale * np.where(degree == 0, 1.0, 2.0) * _bessel(degree, half)
        size[np.abs(size) < 1e-20] = 0.0  # subnormal numbers are slow
        angle = self.phase + half + 0.5 * math.pi * (degree % 4)
        padding = ((0, 0), (0, -len(self) % (64 // np.dtype(dtype).itemsize)))
        return FeatureTable(
            np.pad(size * np.cos(angle), padding).astype(dtype),
            np.pad(-self.frequency * size * np.sin(angle), padding).astype(dtype),
        )


def _bessel(order: Any, argument: Any) -> Floats:
    from scipy.special import jv  # noqa: PLC0415 - slow to import, and audits do not need it

    return jv(order, argument)


def _n_degrees(half_frequency: float) -> int:
    """Return the number of degrees, a multiple of 4, beyond which the terms of a cosine sum to less than 1e-8."""
    degrees = np.arange(math.ceil(1.1 * half_frequency) + 60)
    left = 2.0 * np.cumsum(np.abs(_bessel(degrees, half_frequency))[::-1])[::-1]
    return 4 * math.ceil(int(np.argmax(left < _EXACT)) / 4)


def quadrature_features(n_features: int, kernel_variance: float) -> FourierFeatures:
    """Return an even number of features whose frequencies are quantiles of those of `draw_features`, without a seed."""
    from scipy.special import ndtri  # noqa: PLC0415 - slow to import, and audits do not need it

    check_count(n_features, name="n_fourier_features")
    check_real(kernel_variance, name="kernel_variance", strict=True)
    n_frequencies = -(-n_features // 2)
    levels = 0.5 + 0.5 * (np.arange(n_frequencies) + 0.5) / n_frequencies
    frequency = np.tile(ndtri(levels) * math.sqrt(2.0 / kernel_variance), 2)
    return FourierFeatures(frequency, np.repeat([0.0, 0.5 * math.pi], n_frequencies))


def draw_features(n_features: int, kernel_variance: float, rng: np.random.Generator) -> FourierFeatures:
    """Return features with random frequencies and phases."""
    check_count(n_features, name="n_fourier_features")
    check_real(kernel_variance, name="kernel_variance", strict=True)
    frequency = rng.normal(0.0, math.sqrt(2.0 / kernel_variance), n_features)
    return FourierFeatures(frequency, rng.uniform(0.0, 2.0 * math.pi, n_features))
