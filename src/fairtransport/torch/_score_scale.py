"""Outputs of a regression, mapped to scores that are spread as probabilities are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_real, check_scores, check_vector
from fairtransport.penalties.base import UNIT_DEVIATION

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

__all__ = ["ScoreScale"]

_REACH = 16.0  # standard deviations from the mean beyond which outputs count as if they were there


@dataclass(frozen=True)
class ScoreScale:
    """The map of outputs to scores.

    Attributes
    ----------
    center, unit : float
        Subtracted from the outputs, and their divisor: the mean and four standard deviations of y. Probabilities are
        used as they are.
    is_real : bool
        Whether outputs are real numbers.
    """

    center: float = 0.0
    unit: float = 1.0
    is_real: bool = False

    @classmethod
    def of(cls, scale: Any) -> ScoreScale:
        """Return the map of a mean and a standard deviation; None is that of probabilities."""
        if scale is None:
            return cls()
        if not isinstance(scale, (tuple, list)) or len(scale) != 2:
            raise TypeError(f"scale must be a mean and a standard deviation of y; got {type(scale).__name__}.")
        center = check_real(scale[0], name="scale[0]", least=-np.inf)
        deviation = check_real(scale[1], name="scale[1]", strict=True)
        return cls(center, deviation / UNIT_DEVIATION, is_real=True)

    def of_array(self, outputs: Any, name: str = "scores") -> NDArray[np.float64]:
        """Return the scores of checked outputs."""
        if not self.is_real:
            return check_scores(outputs, name=name)
        reach = _REACH * UNIT_DEVIATION
        return np.clip((check_vector(outputs, name=name) - self.center) / self.unit, -reach, reach)

    def of_tensor(self, outputs: Tensor) -> Tensor:
        """Return the scores of outputs."""
        if not self.is_real:
            return outputs
        reach = _REACH * UNIT_DEVIATION
        return ((outputs - self.center) / self.unit).clamp(-reach, reach)
