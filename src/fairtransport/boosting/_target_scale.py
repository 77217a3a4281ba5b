"""What is learned of y: two classes, or the mean and standard deviation of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._sklearn.labels import real_targets, two_classes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.boosting._losses import Loss

__all__ = ["ClassLabels", "TargetScale"]


@dataclass(frozen=True, eq=False)
class ClassLabels:
    """Two classes, the larger of which is class 1."""

    classes: NDArray[Any]

    @classmethod
    def of(cls, y: Any, owner: str) -> ClassLabels:
        """Return the classes of y."""
        return cls(two_classes(y, owner)[1])

    def read(self, y: Any, owner: str) -> NDArray[np.int64]:
        """Return 0 and 1 for the rows of y."""
        labels, classes = two_classes(y, owner)
        if not np.array_equal(classes, self.classes):
            raise ValueError(f"{owner} has other class labels than y.")
        return (labels == self.classes[1]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class TargetScale:
    """The affine map of y to the numbers that trees are trained on.

    Attributes
    ----------
    center, scale : float
        Mean and standard deviation of y; 0 and the mean for losses with a logarithmic link.
    log_link : bool
        Whether the loss has a logarithmic link.
    """

    center: float
    scale: float
    log_link: bool

    @classmethod
    def of(cls, y: Any, weights: NDArray[np.float64] | None, loss: Loss, owner: str) -> TargetScale:
        """Return the scale of y."""
        numbers = _checked(y, owner, log_link=loss.link == "log")
        if weights is not None and len(weights) != len(numbers):
            weights = None  # the rows are counted later
        mean = float(np.average(numbers, weights=weights))
        if loss.link == "log":
            return cls(0.0, mean, log_link=True)
        deviation = float(np.sqrt(np.average((numbers - mean) ** 2, weights=weights)))
        if deviation == 0.0:
            raise ValueError("y has the same value in every row that has weight, so there is nothing to predict.")
        return cls(mean, deviation, log_link=False)

    def read(self, y: Any, owner: str) -> NDArray[np.float64]:
        """Return y in these units."""
        return np.asarray((_checked(y, owner, log_link=self.log_link) - self.center) / self.scale)

    def predictions(self, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return predictions in units of y."""
        return np.asarray(self.center + self.scale * scaled)


def _checked(y: Any, owner: str, *, log_link: bool) -> NDArray[np.float64]:
    if y is not None and np.asarray(y).size == 1:
        raise ValueError(f"{owner} needs at least 2 rows of y; got 1 sample.")
    numbers = real_targets(y, owner)
    n_negative = int(np.count_nonzero(numbers < 0)) if log_link else 0
    if n_negative:
        raise ValueError(
            f"y has {n_negative} negative values; the Poisson and the Tweedie loss are for numbers of 0 and more. Use "
            "the squared or the absolute error."
        )
    return numbers
