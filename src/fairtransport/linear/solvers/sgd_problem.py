"""The training problem of the stochastic solver: features, labels, groups and target for its compiled loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from fairtransport.linear.solvers._packed_rows import PackedRows
from fairtransport.transport.kernels.random_numbers import Population, fill_alias
from fairtransport.transport.kernels.updates import Batches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["TrainingProblem", "as_copies"]

_FEW_COPIES = 10_000


def as_copies(weights: NDArray[np.float64] | None) -> NDArray[np.int64] | None:
    """Return each row's index as often as its weight says, or None where weights are no integers or too large.

    Drawing rows in proportion to their weights is equivalent to copies only in expectation; copies are exact.

    Examples
    --------
    >>> as_copies(np.array([2.0, 0.0, 1.0]))
    array([0, 0, 2])
    """
    if weights is None or np.any(weights != np.rint(weights)) or weights.sum() > max(_FEW_COPIES, 2 * weights.size):
        return None
    return np.repeat(np.arange(weights.size), weights.astype(np.int64))


@dataclass(frozen=True, eq=False)
class TrainingProblem:
    """Rows, labels and groups, laid out for the compiled loop.

    Attributes
    ----------
    X : ndarray or csr_matrix
        The features as validated.
    rows : PackedRows
        The same, packed, in the order of ``numbers``.
    labels : ndarray
        0 or 1 for each row.
    groups : Groups
        The rows of each group; groups may overlap.
    share : ndarray
        Each group's share of the total weight, by which the loss weighs the groups' batches.
    weights : ndarray or None
        Row weights; rows are drawn in proportion to them.
    target : ndarray
        Scores of equal mass that represent the target distribution.
    accept, alias : ndarray
        Alias tables for drawing rows in proportion to their weights.
    numbers : ndarray or None
        Row numbers of the packed rows; None: as in ``X``.
    """

    X: Any
    rows: PackedRows
    labels: NDArray[Any]
    groups: Groups
    share: NDArray[np.float64]
    weights: NDArray[np.float64] | None
    target: NDArray[Any]
    accept: NDArray[np.uint64]
    alias: NDArray[np.int64]
    numbers: NDArray[np.int64] | None

    @classmethod
    def build(
        cls,
        X: Any,
        labels: NDArray[Any],
        groups: Groups,
        target: NDArray[np.float64],
        weights: NDArray[np.float64] | None,
    ) -> TrainingProblem:
        """Pack the rows and, where they have weights, make the tables for drawing them."""
        mass = groups.counts.astype(float) if weights is None else np.array([weights[r].sum() for r in groups.rows])
        accept, alias = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        if weights is not None:
            starts = _group_starts(groups)
            accept, alias = np.zeros(starts[-1], np.uint64), np.zeros(starts[-1], np.int64)
            for rows, a, b in zip(groups.rows, starts[:-1], starts[1:], strict=True):
                fill_alias(weights[rows], a, accept[a:b], alias[a:b])
        # Rows that lie group by group need no list of their numbers, but it would cost a copy of a dense matrix.
        disjoint = groups.counts.sum() <= X.shape[0]
        numbers = np.concatenate(groups.rows) if sparse.issparse(X) and disjoint else None
        return cls(
            X=X,
            rows=PackedRows.pack(X, numbers),
            labels=labels.astype(X.dtype),
            groups=groups,
            share=mass / mass.sum(),
            weights=weights,
            target=target.astype(X.dtype),
            accept=accept,
            alias=alias,
            numbers=numbers,
        )

    @property
    def n_columns(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    def batches(self, seed: int, size: int) -> Batches:
        """Return what the compiled loop draws its batches from."""
        labels, starts = self.labels.astype(np.uint8), _group_starts(self.groups)
        if self.numbers is None:
            rows = np.concatenate(self.groups.rows).astype(np.int64)
        else:
            labels, rows = labels[self.numbers], np.zeros(0, np.int64)  # packed group by group
        population = Population(starts, rows, self.accept, self.alias)
        return Batches(seed, size, self.rows.arrays(), labels, population, self.target)


def _group_starts(groups: Groups) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(groups.counts))).astype(np.int64)
