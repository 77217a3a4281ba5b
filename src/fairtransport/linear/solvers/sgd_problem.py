"""The training problem of the stochastic solver: features, outcomes, cells and targets for its compiled loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from fairtransport.linear.losses import LOSSES
from fairtransport.linear.solvers._packed_rows import PackedRows
from fairtransport.transport.kernels.random_numbers import Population, fill_alias
from fairtransport.transport.kernels.updates import Batches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.criteria import ComparedStrata
    from fairtransport.groups import Groups
    from fairtransport.linear.losses import Loss

__all__ = ["Cells", "TrainingProblem", "as_copies"]

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
class Cells:
    """The samples that the stochastic solver draws from, and what each is compared with.

    Attributes
    ----------
    rows : tuple of ndarray
        Row indices: of a group or, with labels or strata, of its rows with one label or in one stratum. Rows that are
        compared with nothing have cells of their own, which come first: the loss has all rows.
    groups : ndarray of shape (n_cells,)
        The group of each cell.
    targets : ndarray of shape (n_cells,)
        Index of the target; -1 for none.
    weights : ndarray of shape (n_cells,)
        Weight of the distance to the target.
    """

    rows: tuple[NDArray[np.int64], ...]
    groups: NDArray[np.int64]
    targets: NDArray[np.int64]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, groups: Groups, strata: ComparedStrata | None) -> Cells:
        """Return the groups or, with strata, the groups' rows in each, which have the target of their stratum."""
        n = len(groups)
        if strata is None or strata.is_everywhere:
            return cls(groups.rows, np.arange(n), np.zeros(n, dtype=np.int64), np.ones(n))
        rest = [np.ones(members.size, dtype=bool) for members in groups.rows]
        compared = []
        for number, stratum in enumerate(strata.compared):
            for group, members in zip(stratum.groups, stratum.rows, strict=True):
                rest[group][np.searchsorted(groups.rows[group], members)] = False
                compared.append((members, group, number, stratum.weight))
        others = [
            (members[left], group, -1, 0.0)
            for group, (members, left) in enumerate(zip(groups.rows, rest, strict=True))
            if left.any()
        ]
        rows, owners, targets, weights = zip(*others, *compared, strict=True)
        return cls(tuple(rows), np.array(owners), np.array(targets), np.array(weights, dtype=np.float64))

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class TrainingProblem:
    """Rows, outcomes and groups, laid out for the compiled loop.

    Attributes
    ----------
    X : ndarray or csr_matrix
        The features as validated.
    rows : PackedRows
        The same, packed, in the order of ``numbers``.
    loss : Loss
    outcomes : ndarray
        What the loss compares each row's linear predictor with: 0 or 1, or a standardised y.
    groups : Groups
        Groups may overlap.
    cells : Cells
        For demographic parity the groups.
    share : ndarray
        Each cell's share of the total weight, by which the loss weighs the cells' batches.
    weights : ndarray or None
        Row weights; rows are drawn in proportion to them.
    targets : ndarray of shape (n_targets, n_scores)
        Scores of equal mass that represent the target distributions; for demographic parity one.
    accept, alias : ndarray
        Alias tables for drawing rows in proportion to their weights.
    numbers : ndarray or None
        Row numbers of the packed rows; None: as in ``X``.
    """

    X: Any
    rows: PackedRows
    loss: Loss
    outcomes: NDArray[Any]
    groups: Groups
    cells: Cells
    share: NDArray[np.float64]
    weights: NDArray[np.float64] | None
    targets: NDArray[Any]
    accept: NDArray[np.uint64]
    alias: NDArray[np.int64]
    numbers: NDArray[np.int64] | None

    @classmethod
    def build(
        cls,
        X: Any,
        outcomes: NDArray[Any],
        groups: Groups,
        target: NDArray[np.float64],
        weights: NDArray[np.float64] | None,
        *,
        strata: ComparedStrata | None = None,
        loss: Loss = LOSSES["logistic"],
    ) -> TrainingProblem:
        """Pack the rows and, where they have weights, make the tables for drawing them.

        ``target`` has one row for each of the strata, if any.
        """
        cells = Cells.of(groups, strata)
        mass = np.array([rows.size if weights is None else weights[rows].sum() for rows in cells.rows], dtype=float)
        accept, alias = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        if weights is not None:
            starts = _cell_starts(cells)
            accept, alias = np.zeros(starts[-1], np.uint64), np.zeros(starts[-1], np.int64)
            for rows, a, b in zip(cells.rows, starts[:-1], starts[1:], strict=True):
                fill_alias(weights[rows], a, accept[a:b], alias[a:b])
        # Rows that lie cell by cell need no list of their numbers, but it would cost a copy of a dense matrix.
        disjoint = groups.counts.sum() <= X.shape[0]
        numbers = np.concatenate(cells.rows) if sparse.issparse(X) and disjoint else None
        return cls(
            X=X,
            rows=PackedRows.pack(X, numbers),
            loss=loss,
            outcomes=outcomes.astype(X.dtype),
            groups=groups,
            cells=cells,
            share=mass / mass.sum(),
            weights=weights,
            # Dual potentials are defined on [0, 1], and the loop takes scores beyond it as at its ends.
            targets=np.clip(np.atleast_2d(target), 0.0, 1.0).astype(X.dtype),
            accept=accept,
            alias=alias,
            numbers=numbers,
        )

    @property
    def target(self) -> NDArray[Any]:
        """The first target: for demographic parity the only one."""
        return np.asarray(self.targets[0])

    @property
    def n_columns(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    def batches(self, seed: int, size: int) -> Batches:
        """Return what the compiled loop draws its batches from."""
        outcomes, cells = self.outcomes, self.cells
        if self.numbers is None:
            rows = np.concatenate(cells.rows).astype(np.int64)
        else:
            outcomes, rows = outcomes[self.numbers], np.zeros(0, np.int64)  # packed cell by cell
        population = Population(_cell_starts(cells), rows, self.accept, self.alias)
        return Batches(seed, size, self.rows.arrays(), outcomes, population, cells.groups, self.targets, cells.targets)


def _cell_starts(cells: Cells) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum([rows.size for rows in cells.rows]))).astype(np.int64)
