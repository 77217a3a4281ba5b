"""The state of a linear model in a stream, which a batch turns into the next one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairtransport.groups import Groups
from fairtransport.linear.online._update import UpdateStep, update_weights
from fairtransport.linear.online.memory import Batch, OnlineMemory, widened_weights
from fairtransport.linear.online.sketches import POINTS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairtransport.linear._distances import TransportDistance
    from fairtransport.linear.duals import Duals

__all__ = ["OnlineState", "UpdateRule"]


@dataclass(frozen=True, eq=False)
class UpdateRule:
    """How a state is updated, as the parameters of the estimator say.

    Attributes
    ----------
    distance : TransportDistance
    scale : {"standardized", "score"}
        Unit in which scores are compared.
    each_other : bool
        Compare groups with each other, not with the target.
    half_life : float
        After so many rows of its group a row counts half.
    n_updates : int
        Updates of the weights for each batch; 0 only observes.
    """

    distance: TransportDistance
    scale: str
    each_other: bool
    half_life: float
    n_updates: int


@dataclass(frozen=True, eq=False)
class OnlineState:
    """A linear model and its memory between two batches of a stream.

    Attributes
    ----------
    rule : UpdateRule
    theta : ndarray of shape (1 or n_groups, n_features + 1)
        Weights, the intercept last.
    common : ndarray of shape (n_features + 1,)
        Weights of rows that are in no group.
    groups : Groups
        The groups seen so far, without rows.
    memory : OnlineMemory or None
        None for a model that does not learn.
    duals : Duals or None
        Dual potentials of the last update.
    """

    rule: UpdateRule
    theta: NDArray[np.float64]
    common: NDArray[np.float64]
    groups: Groups
    memory: OnlineMemory | None
    duals: Duals | None = None

    def update(self, batch: Batch) -> OnlineState:
        """Return the state after a batch, whose groups are those of this state, followed by new ones."""
        state = self.widened(batch.groups)
        if state.memory is None:
            raise ValueError("A state without memory cannot be updated; start one with the rows of a batch.")
        rule = self.rule
        penalty = rule.distance.penalty(rule.scale, n_slices=POINTS)
        step = UpdateStep(penalty, rule.each_other, rule.half_life, rule.n_updates)
        memory, theta = update_weights(state.memory, state.theta, batch, step)
        duals = state.duals
        if rule.n_updates:
            duals = rule.distance.duals(penalty, step.comparisons(memory), state.groups)
        return replace(state, theta=theta, common=theta.mean(axis=0), memory=memory, duals=duals)

    def widened(self, groups: Groups) -> OnlineState:
        """Return the state of more groups; these are the known ones, followed by new ones."""
        if len(groups) == len(self.groups):
            return self
        theta = widened_weights(self.theta, len(groups))
        wider = replace(self, theta=theta, groups=Groups.from_spec(groups.to_spec()))
        if self.memory is None:
            return wider
        memory = self.memory.widened(len(groups), each_other=self.rule.each_other)
        return replace(wider, memory=memory, common=theta.mean(axis=0))

    def moved(self, change: NDArray[np.float64]) -> OnlineState:
        """Return the state after a change of the weights, which the memory follows."""
        theta, memory = self.theta + change, self.memory
        if memory is not None:
            memory = memory.moved(change)
        return replace(self, theta=theta, common=theta.mean(axis=0), memory=memory)

    def without_memory(self) -> OnlineState:
        """Return a state that scores the same and cannot be updated."""
        return replace(self, memory=None)
