"""The two regularizers of the paper, by their convex conjugates.

With v = (f(s) + h(t) - cost(s, t)) / strength the dual objective subtracts
``strength * conjugate(v)`` and its derivative with respect to f(s) + h(t) is ``1 - alpha(v)``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from fairtransport._validation import check_choice
from fairtransport.transport._namespace import namespace

__all__ = ["ENTROPY", "EXPONENT_LIMIT", "L2", "Regularizer", "get_regularizer"]

#: Beyond this exponent exp(v) is continued by its tangent, which is convex and finite. At the optimum alpha is the
#: density of the coupling with respect to the product of the marginals, far below e^10 for scores.
EXPONENT_LIMIT = 10.0
_LIMIT_VALUE = math.exp(EXPONENT_LIMIT)


@dataclass(frozen=True)
class Regularizer(ABC):
    """A divergence phi, given by its convex conjugate phi* and the derivatives of that, for arrays and tensors.

    Attributes
    ----------
    name : str
        The value of the ``regularizer`` parameter.
    code : int
        Its number in compiled loops.
    """

    name: str
    code: int

    @abstractmethod
    def conjugate(self, v: Any) -> Any:
        """Return phi*(v)."""

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
    """phi(x) = x^2 for x >= 0; phi*(v) = max(v, 0)^2 / 4.

    Notes
    -----
    The paper prints the derivative v / 2 without the positive part; the conjugate has it, so alpha has it too.
    """

    def conjugate(self, v: Any) -> Any:
        return self.alpha_and_conjugate(v)[1]

    def alpha(self, v: Any) -> Any:
        return 0.5 * namespace(v).clip(v, 0.0, None)

    def alpha_and_conjugate(self, v: Any) -> tuple[Any, Any]:
        alpha = self.alpha(v)
        return alpha, alpha * alpha

    def curvature(self, v: Any, alpha: Any) -> Any:  # noqa: ARG002
        return 0.5 * (v > 0.0)


class _Entropy(Regularizer):
    """phi(x) = x log x - x; phi*(v) = exp(v), continued by its tangent above ``EXPONENT_LIMIT``."""

    def conjugate(self, v: Any) -> Any:
        return self.alpha_and_conjugate(v)[1]

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
    """Return the regularizer called ``name``.

    Examples
    --------
    >>> get_regularizer("l2").name
    'l2'
    """
    return _BY_NAME[check_choice(name, _BY_NAME, name="regularizer")]
