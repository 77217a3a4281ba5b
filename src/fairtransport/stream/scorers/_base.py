"""Interface between the adjuster and its model."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairtransport.histograms import Grid
from fairtransport.persistence import pack_model, unpack_model

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["Scorer"]


class Scorer(ABC):
    """A model as the adjuster uses it.

    Parameters
    ----------
    model : estimator
        Fitted; `learn` changes it.
    """

    #: Default radius of the trust region, in the unit of `distance`.
    default_radius: float
    #: Whether the model learns from the stream.
    learns = True
    #: Whether a row without a known group cannot be scored.
    needs_groups = True

    def __init__(self, model: Any) -> None:
        self.model = model

    @property
    @abstractmethod
    def groups(self) -> Groups:
        """Groups that the model knows, without rows."""

    @property
    def grid(self) -> Grid:
        """Range of the scores."""
        return Grid()

    @property
    def group_sizes(self) -> NDArray[np.int64]:
        """Training rows of each group."""
        return np.asarray(self.model.group_sizes_)

    def encode(self, sensitive_features: Any, unknown_group: str = "error") -> Groups:
        """Return the groups of new rows.

        Unknown ones are appended with ``new_groups="adopt"``; otherwise they, and rows without a group in any case,
        are treated as ``unknown_group`` says. A model that does not need the group assigns them to none.
        """
        if sensitive_features is None:
            raise ValueError("sensitive_features is needed: the column or columns that define groups.")
        policy = "pooled" if unknown_group == "error" and not self.needs_groups else unknown_group
        find = self.groups.adopt if self.adopts_groups else self.groups.encode
        return find(sensitive_features, unknown_group=policy, sizes=self.group_sizes)

    @property
    def adopts_groups(self) -> bool:
        """Whether groups that the model does not know are added to it."""
        return str(getattr(self.model, "new_groups", "error")) == "adopt"

    def score(self, X: Any, groups: Groups) -> NDArray[np.float64]:
        """Return the scores of rows of known groups; raise ValueError if one of them is not a finite number."""
        scores = self._score(X, groups)
        n_invalid = scores.size - np.count_nonzero(np.isfinite(scores))
        if n_invalid:
            raise ValueError(f"{n_invalid} of {scores.size} scores are not finite numbers: features are too large.")
        return scores

    @abstractmethod
    def _score(self, X: Any, groups: Groups) -> NDArray[np.float64]:
        """Return the scores, without checking them."""

    @abstractmethod
    def learn(self, X: Any, groups: Groups, updates: int) -> None:
        """Learn from a batch by so many updates; 0 leaves the scores unchanged."""

    def learn_new_groups(self, X: Any, groups: Groups) -> None:
        """Learn from a batch with new groups, changing the scores as little as possible."""
        self.learn(X, groups, 0)

    def discount_past(self) -> None:  # noqa: B027 - not every model has to
        """Reduce the weight of rows before an alarm."""

    @abstractmethod
    def add_groups(self, groups: Groups) -> None:
        """Add the groups that the model does not know, without learning from rows."""

    @abstractmethod
    def distance(self, other: Self) -> float:
        """Return the distance to another state of the same model."""

    @abstractmethod
    def project(self, center: Self, radius: float) -> bool:
        """Move the model into the trust region; return whether it was outside."""

    def restore_projection(self, center: Self, radius: float) -> None:  # noqa: B027 - most files store its result
        """Repeat the last `project` after `unpack`, where the file does not store its result."""

    @abstractmethod
    def target(self) -> NDArray[np.float64] | None:
        """Return the fixed target as points of equal mass in [0, 1]; None without one."""

    def duals(self, points: NDArray[np.float64]) -> NDArray[np.float64] | None:  # noqa: ARG002 - subclasses use it
        """Return each group's dual potential at these points; None for a model without."""
        return None

    def save_point(self) -> Callable[[], None]:
        """Return a function that undoes all changes of the model since this call."""
        saved = [(part, dict(vars(part))) for part in self._parts()]

        def undo() -> None:
            for part, attributes in saved:
                vars(part).clear()
                vars(part).update(attributes)

        return undo

    def _parts(self) -> tuple[Any, ...]:
        """Return the objects whose attributes change; arrays are replaced, never changed in place."""
        return self, self.model

    def copy(self) -> Self:
        """Return a copy."""
        return type(self)(copy.deepcopy(self.model))

    @abstractmethod
    def frozen(self) -> Self:
        """Return a copy with the same scores that does not learn."""

    def pack(self) -> bytes:
        """Return the content of a model file."""
        return pack_model(self.model)[0]

    @classmethod
    def unpack(cls, content: bytes) -> Self:
        """Invert `pack`."""
        return cls(unpack_model(content))
