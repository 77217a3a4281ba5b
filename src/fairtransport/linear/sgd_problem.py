"""The training problem of the stochastic solver: rows, outcomes, cells and targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fairtransport._arrays import Floats, Ints
from fairtransport.criteria.criterion import ComparedStrata
from fairtransport.groups import Groups
from fairtransport.training.responses import LOSSES, Loss
from fairtransport.transport.kernels.rows import Population, Rows, fill_alias
from fairtransport.transport.kernels.sgd import Batches


@dataclass(frozen=True, eq=False)
class Cells:
    """The samples that the stochastic solver draws from, and what each is compared with."""

    rows: tuple[Ints, ...]
    groups: Ints
    targets: Ints
    weights: Floats

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
    """Rows, outcomes and groups, laid out for the compiled loop."""

    X: Any
    loss: Loss
    outcomes: NDArray[Any]
    groups: Groups
    cells: Cells
    share: Floats
    weights: Floats | None
    targets: NDArray[Any]
    accept: NDArray[np.uint64]
    alias: Ints

    @classmethod
    def build(
        cls,
        X: Any,
        outcomes: NDArray[Any],
        groups: Groups,
        target: Floats,
        weights: Floats | None,
        *,
        strata: ComparedStrata | None = None,
        loss: Loss = LOSSES["logistic"],
    ) -> TrainingProblem:
        """Make the tables for drawing weighted rows; ``target`` has one row for each of the strata, if any."""
        cells = Cells.of(groups, strata)
        mass = np.array([rows.size if weights is None else weights[rows].sum() for rows in cells.rows], dtype=float)
        accept, alias = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        if weights is not None:
            starts = _cell_starts(cells)
            accept, alias = np.zeros(starts[-1], np.uint64), np.zeros(starts[-1], np.int64)
            for rows, a, b in zip(cells.rows, starts[:-1], starts[1:], strict=True):
                fill_alias(weights[rows], a, accept[a:b], alias[a:b])
        return cls(
            X=X,
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
        cells = self.cells
        order = np.concatenate(cells.rows)  # cell by cell, so that a draw is the number of a row
        population = Population(_cell_starts(cells), self.accept, self.alias)
        rows, outcomes = flat_rows(self.X[order]), self.outcomes[order]
        return Batches(seed, size, rows, outcomes, population, cells.groups, self.targets, cells.targets)


def flat_rows(X: Any) -> Rows:
    """Return a matrix as the compiled loop reads it."""
    if not sparse.issparse(X):
        return Rows(np.ascontiguousarray(X), np.zeros(0, X.dtype), np.zeros(0, np.uint32), np.zeros(1, np.uint64))
    X = sparse.csr_matrix(X)
    return Rows(np.zeros((0, 0), X.dtype), X.data, X.indices.astype(np.uint32), X.indptr.astype(np.uint64))


def _cell_starts(cells: Cells) -> Ints:
    return np.concatenate(([0], np.cumsum([rows.size for rows in cells.rows]))).astype(np.int64)
