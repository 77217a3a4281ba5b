"""Which rows are held out, so that rounds and weights are chosen on rows that no model was trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairtransport._sklearn.folds import group_cells

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.boosting._training_data import TrainingData

__all__ = ["HeldOutRows", "Part"]

_FOLDS, _PARTS_OF_LARGE = 3, 5
_LARGE_TABLE = 10_000  # rows from which a fifth of the rows is held out once, instead of each row
_FEWEST_ROWS = 30  # below, nothing is held out


@dataclass(frozen=True, eq=False)
class Part:
    """Rows that a model is trained on, and those that it is evaluated on."""

    training: TrainingData
    held_out: TrainingData


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """The parts of a table, and all rows that are held out in one of them, in the order of the parts.

    Attributes
    ----------
    parts : tuple of Part
    rows : TrainingData
    n_rows : int
        Of the whole table.
    name : str
        The held-out rows in words: ``"held-out rows"``, or ``"training rows"`` where there are too few to hold out any.
    """

    parts: tuple[Part, ...]
    rows: TrainingData
    n_rows: int
    name: str = "held-out rows"

    @classmethod
    def of(cls, rows: TrainingData, share: float | None, rng: np.random.Generator) -> HeldOutRows:
        """Split the rows, stratified by group and label, or by group and whether y is above its mean.

        Parameters
        ----------
        rows : TrainingData
        share : float or None
            Share of the rows that are held out; by default each row once, in three folds, and a fifth of the rows of
            a large table.
        rng : Generator

        Returns
        -------
        HeldOutRows
            Groups with fewer rows than there are folds are always trained on. Where the rest is too small to have
            rows of all groups and labels in all parts, models are evaluated on the rows that they were trained on.
        """
        n_rows = rows.groups.n_rows
        n_folds = (_PARTS_OF_LARGE if n_rows > _LARGE_TABLE else _FOLDS) if share is None else max(2, round(1 / share))
        once = share is not None or n_rows > _LARGE_TABLE
        folds = _folds(rows, n_folds, rng)
        numbers = (0,) if once else range(n_folds)
        splits = [(np.flatnonzero(folds != number), np.flatnonzero(folds == number)) for number in numbers]
        enough = all(
            _has_all(rows, training, len(rows.groups)) and _has_all(rows, held_out, 2) for training, held_out in splits
        )
        if n_rows < _FEWEST_ROWS or not enough:
            return cls((Part(rows, rows),), rows, n_rows, "training rows")
        parts = tuple(Part(rows.select(training), rows.select(held_out)) for training, held_out in splits)
        return cls(parts, rows.select(np.concatenate([held_out for _, held_out in splits])), n_rows)

    @classmethod
    def given(cls, rows: TrainingData, held_out: TrainingData) -> HeldOutRows:
        """Return one part, with validation rows of the user."""
        return cls((Part(rows, held_out),), held_out, rows.groups.n_rows)


def _folds(rows: TrainingData, n_folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the fold of each row; -1 for rows of groups that are too small to be split."""
    high = rows.labels > np.mean(rows.labels)
    order = np.lexsort((rng.random(len(high)), high, group_cells(rows.groups)))
    folds = np.empty(len(high), dtype=np.int64)
    folds[order] = np.arange(len(high)) % n_folds
    for members in rows.groups.rows:
        if members.size < n_folds:
            folds[members] = -1
    return folds


def _has_all(rows: TrainingData, part: NDArray[np.int64], n_groups: int) -> bool:
    """Whether rows with weight are of this many groups, and have y on both sides of its mean."""
    if rows.weights is not None:
        part = part[rows.weights[part] > 0.0]
    high = rows.labels[part] > np.mean(rows.labels)
    n_present = np.count_nonzero(rows.groups.select(part).counts)
    return bool(high.any() and not high.all() and n_present >= n_groups)
