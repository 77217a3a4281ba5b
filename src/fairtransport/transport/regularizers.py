"""The two regularizers of the paper, by their convex conjugates, and the link functions of scores.

With v = (f(s) + h(t) - cost(s, t)) / strength the dual objective subtracts
``strength * conjugate(v)`` and its derivative with respect to f(s) + h(t) is ``1 - alpha(v)``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Floats
from fairtransport._validation import check_choice
from fairtransport.transport._namespace import namespace

#: Beyond this exponent exp(v) is continued by its tangent, which is convex and finite. At the optimum alpha is the
#: density of the coupling with respect to the product of the marginals, far below e^10 for scores.
EXPONENT_LIMIT = 10.0
_LIMIT_VALUE = math.exp(EXPONENT_LIMIT)


@dataclass(frozen=True)
class Regularizer(ABC):
    """A divergence phi, given by its convex conjugate phi* and the derivatives of that, for arrays and tensors."""

    name: str
    code: int

    @abstractmethod
    def alpha(self, v: Any) -> Any:
        """Return the first derivative of phi* at v: the paper's alpha."""

    @abstractmethod
    def alpha_and_conjugate(self, v: Any) -> tuple[Any, Any]:
        """Return both at once, which is cheaper."""

    @abstractmethod
    def curvature(self, v: Any, alpha: Any) -> Any:
        """Return the second derivative of phi* at v, where the first one is alpha."""


class _L2(Regularizer):
    """phi(x) = x^2 for x >= 0; phi*(v) = max(v, 0)^2 / 4, whose slope the paper prints without the positive part."""

    def alpha(self, v: Any) -> Any:
        return 0.5 * namespace(v).clip(v, 0.0, None)

    def alpha_and_conjugate(self, v: Any) -> tuple[Any, Any]:
        alpha = self.alpha(v)
        return alpha, alpha * alpha

    def curvature(self, v: Any, alpha: Any) -> Any:  # noqa: ARG002
        return 0.5 * (v > 0.0)


class _Entropy(Regularizer):
    """phi(x) = x log x - x; phi*(v) = exp(v), continued by its tangent above ``EXPONENT_LIMIT``."""

    def alpha(self, v: Any) -> Any:
        xp = namespace(v)
        return xp.exp(xp.clip(v, None, EXPONENT_LIMIT))

    def alpha_and_conjugate(self, v: Any) -> tuple[Any, Any]:
        xp = namespace(v)
        bounded = xp.clip(v, None, EXPONENT_LIMIT)
        alpha = xp.exp(bounded)
        return alpha, alpha + _LIMIT_VALUE * (v - bounded)

    def curvature(self, v: Any, alpha: Any) -> Any:
        return alpha * (v < EXPONENT_LIMIT)


L2: Regularizer = _L2("l2", 0)
ENTROPY: Regularizer = _Entropy("entropy", 1)
_BY_NAME = {r.name: r for r in (L2, ENTROPY)}


def get_regularizer(name: str) -> Regularizer:
    """Return the regularizer called ``name``."""
    return _BY_NAME[check_choice(name, _BY_NAME, name="regularizer")]


# The logistic function as a formula; the compiled twin is in `transport.kernels.functions`.


def sigmoid(logits: NDArray[Any]) -> NDArray[Any]:
    """Compute the logistic function without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * logits))


def mixed_logits(initial: Floats, trained: Floats, amount: float) -> Floats:
    """Return the logit of the mean of two probabilities, exact also where both are near 0 or 1."""
    with np.errstate(divide="ignore"):  # log of 0: the other one has all the weight
        less, more = np.log1p(-amount), np.log(amount)
    yes = np.logaddexp(less - np.logaddexp(0.0, -initial), more - np.logaddexp(0.0, -trained))
    no = np.logaddexp(less - np.logaddexp(0.0, initial), more - np.logaddexp(0.0, trained))
    return np.asarray(yes - no)


# Maps of a linear predictor to the score that transport compares; compiled twins in `transport.kernels.sgd`.

#: Codes of the maps for the compiled loop.
LOGISTIC, AFFINE = 0, 1

#: Slope of the affine map of real-valued predictions: three units to both sides of 0 have the scores [0, 1].
AFFINE_SLOPE = 1.0 / 6.0


def affine_score(predictors: NDArray[Any]) -> NDArray[Any]:
    """Return the scores of real-valued predictions."""
    return 0.5 + AFFINE_SLOPE * predictors


def score_and_slope(link: int, predictors: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return scores within [0, 1], and what their gradients, which reach beyond that range, are multiplied with."""
    if link == AFFINE:
        return np.clip(affine_score(predictors), 0.0, 1.0), np.full_like(predictors, AFFINE_SLOPE)
    scores = sigmoid(predictors)
    return scores, scores * (1.0 - scores)
