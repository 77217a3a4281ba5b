"""What the adjuster asks of a model, whichever it is: score, learn, how far has it moved, go back."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from fairtransport._sklearn.streaming import encode_batch_groups
from fairtransport.histograms import Grid
from fairtransport.persistence import pack_model, unpack_model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["Scorer"]


class Scorer(ABC):
    """A model with ``partial_fit``, as the adjuster sees it.

    Parameters
    ----------
    model : estimator
        Fitted. It is changed by `learn`.
    """

    #: The trust region's radius unless one is given, in the unit of `distance`.
    radius: float

    def __init__(self, model: Any) -> None:
        self.model = model

    @property
    @abstractmethod
    def groups(self) -> Groups:
        """The groups that the model knows, without rows."""

    @property
    def grid(self) -> Grid:
        """The range of the scores."""
        return Grid()

    def encode(self, sensitive_features: Any) -> Groups:
        """Find the groups of new rows; new ones raise, or come behind the others, as ``new_groups`` says."""
        return encode_batch_groups(self.groups, sensitive_features, self.model.new_groups)

    @abstractmethod
    def score(self, X: Any, groups: Groups) -> NDArray[np.float64]:
        """Return the scores of rows whose groups the model knows."""

    @abstractmethod
    def learn(self, X: Any, groups: Groups, updates: int) -> None:
        """Take a batch up, and move by so many updates; 0 leaves the scores as they are."""

    def take_up(self, X: Any, groups: Groups) -> None:
        """Learn a batch that brings new groups, and move as little as can be."""
        self.learn(X, groups, 0)

    @abstractmethod
    def hurry(self) -> None:
        """Let what was learned before an alarm count less."""

    @abstractmethod
    def widen(self, groups: Groups) -> None:
        """Know these groups, too: a copy that does not learn goes along with one that does."""

    @abstractmethod
    def distance(self, other: Any) -> float:
        """How far the model is from another state of it."""

    @abstractmethod
    def hold(self, centre: Any, radius: float) -> bool:
        """Go back to no more than ``radius`` from the centre; return whether that was needed."""

    @abstractmethod
    def target(self) -> NDArray[np.float64] | None:
        """Return the fixed target as points of equal mass, shares of the range; None where there is none."""

    def duals(self, points: NDArray[np.float64]) -> NDArray[np.float64] | None:  # noqa: ARG002 - others use it
        """Return each group's dual variable at these points; None for a model without."""
        return None

    def settle(self, centre: Any, radius: float) -> None:  # noqa: B027 - most have nothing to do
        """Do what `hold` did, after a model was read that `hold` has seen."""

    def copy(self) -> Any:
        """Return the same model, to be kept and gone back to."""
        return type(self)(copy.deepcopy(self.model))

    @abstractmethod
    def frozen(self) -> Any:
        """Return a copy that scores the same and will not learn."""

    def pack(self) -> bytes:
        """Return the bytes of a model file."""
        return pack_model(self.model)[0]

    @classmethod
    def unpack(cls, content: bytes) -> Any:
        """Undo `pack`."""
        return cls(unpack_model(content))
