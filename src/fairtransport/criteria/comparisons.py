"""Comparisons: cells of rows, the pairs of cells that are compared, and a weight for each pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairtransport._arrays import Floats, Ints

_MOST_DRAWN = 200_000


@dataclass(frozen=True, eq=False)
class Represented:
    """The people that rows stand for, where a row is a slice of many: their number, and sums of squared weights."""

    n_rows: int
    squares: Floats


@dataclass(frozen=True, eq=False)
class Comparisons:
    """The pairs of samples that a criterion compares, for the rows of one table.

    Learners and penalties depend on comparisons only, not on the criterion that made them.
    """

    n_rows: int
    cells: tuple[Ints, ...]
    pairs: Ints
    weights: Floats
    targets: tuple[Floats, ...] = ()
    row_weights: Floats | None = None
    names: tuple[int | None, ...] = ()
    strata: tuple[int, ...] = ()
    families: Ints | None = None
    represented: Represented | None = None

    @classmethod
    def of_cells(
        cls,
        n_rows: int,
        cells: Sequence[Ints],
        pairs: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        targets: Sequence[Floats] = (),
        row_weights: Floats | None = None,
        names: Sequence[int | None] = (),
        strata: Sequence[int] = (),
        families: ArrayLike | None = None,
    ) -> Comparisons:
        """Return validated comparisons; pairs have weight 1 unless ``weights`` says otherwise."""
        ends = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        pair_weights = np.ones(len(ends)) if weights is None else np.asarray(weights, dtype=np.float64)
        n_samples = len(cells) + len(targets)
        if ends.size and not (ends.min() >= 0 and ends.max() < n_samples):
            raise ValueError(
                f"pairs must be indices from 0 to {n_samples - 1}: {len(cells)} cells, then {len(targets)} targets."
            )
        if pair_weights.shape != (len(ends),) or not np.isfinite(pair_weights).all() or (pair_weights < 0).any():
            raise ValueError(f"weights must be {len(ends)} numbers, zero or more: one for each pair.")
        rows = tuple(np.asarray(cell, dtype=np.int64) for cell in cells)
        n_empty = sum(cell.size == 0 for cell in rows)
        if n_empty:
            raise ValueError(f"{n_empty} of {len(rows)} cells have no rows to compare.")
        return cls(
            n_rows,
            rows,
            ends,
            pair_weights,
            tuple(np.sort(t) for t in targets),
            row_weights,
            tuple(names),
            tuple(strata),
            None if families is None else np.asarray(families, dtype=np.int64),
        )

    @cached_property
    def sizes(self) -> Floats:
        """Number of rows of each cell; with weights, (sum of weights)^2 / sum of squared weights.

        Integer weights are counts of copies, and summed.
        """
        if self.row_weights is None:
            return np.array([rows.size for rows in self.cells], dtype=np.float64)
        weights = [self.row_weights[rows] for rows in self.cells]
        if self.represented is not None:
            squares = [float(self.represented.squares[rows].sum()) for rows in self.cells]
            return np.array([w.sum() ** 2 / max(s, 1e-300) for w, s in zip(weights, squares, strict=True)])
        if np.array_equal(self.row_weights, np.rint(self.row_weights)):
            return np.array([w.sum() for w in weights])
        return np.array([w.sum() ** 2 / max(float((w**2).sum()), 1e-300) for w in weights])

    @property
    def n_people(self) -> int:
        """Number of rows, or of the people that they stand for."""
        return self.n_rows if self.represented is None else self.represented.n_rows

    @cached_property
    def active(self) -> Ints:
        """Indices of the pairs with positive weight."""
        return np.flatnonzero(self.weights > 0.0)

    def family_means(self, values: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return the weighted mean of a value over the pairs of each family, and the norm of its terms.

        Of independent errors with these standard deviations, the norm is the standard deviation of the mean.
        """
        if self.families is None:
            return values, np.abs(values)
        totals = np.bincount(self.families, weights)
        terms = weights / np.maximum(totals, 1e-300)[self.families] * values
        means, squares = (np.bincount(self.families, one).astype(np.float64) for one in (terms, terms**2))
        return means, np.sqrt(squares)

    def sampling_errors(self) -> Floats:
        """Return sqrt(1/n + 1/m) of each pair.

        The mean distance of two samples of one distribution is proportional to it. A target is a distribution, not a
        sample.
        """
        inverse = np.concatenate((1.0 / np.maximum(self.sizes, 1e-300), np.zeros(len(self.targets))))
        return np.asarray(np.sqrt(inverse[self.pairs].sum(axis=1)))

    def smallest_errors(self) -> Floats:
        """Return for each pair the smallest of the sampling errors of its family."""
        errors = self.sampling_errors()
        if self.families is None:
            return errors
        smallest = np.full(int(self.families.max(initial=0)) + 1, np.inf)
        np.minimum.at(smallest, self.families, errors)
        return np.asarray(smallest[self.families])

    def restricted(self, rows: Ints, row_weights: Floats | None) -> Comparisons:
        """Return the same comparisons for some of the rows, in ascending order, with other row weights."""
        cells = []
        for cell in self.cells:
            index = np.minimum(np.searchsorted(rows, cell), len(rows) - 1)
            cells.append(index[rows[index] == cell])
        # Cells without any of these rows are not compared.
        empty = np.array([cell.size == 0 for cell in cells] + [False] * len(self.targets))
        weights = np.where(empty[self.pairs].any(axis=1), 0.0, self.weights)
        people = self.represented
        if people is not None:
            share = len(rows) / self.n_rows
            people = Represented(round(share * people.n_rows), people.squares[rows])
        return replace(
            self, n_rows=len(rows), cells=tuple(cells), weights=weights, row_weights=row_weights, represented=people
        )

    def within(self, parts: Ints) -> Comparisons:
        """Return the same pairs within each part of the rows, for scores that each have a model of their own."""
        numbers, n_cells = range(int(parts.max()) + 1), len(self.cells)
        cells = tuple(cell[parts[cell] == number] for number in numbers for cell in self.cells)
        pairs = np.concatenate([self.pairs + number * n_cells for number in numbers])
        filled = np.array([cell.size > 0 for cell in cells])[pairs].all(axis=1)
        weights = np.tile(self.weights, len(numbers)) * filled
        return replace(self, cells=cells, pairs=pairs, weights=weights, names=(), strata=(), families=None)

    def reweighted(self, weights: Floats) -> Comparisons:
        """Return the same pairs with other weights."""
        return replace(self, weights=np.asarray(weights, dtype=np.float64))

    def people(self, scores: Floats) -> tuple[list[Floats], Comparisons]:
        """Return evenly spaced scores of each stratum, one for each person of its cells, and what people compare.

        Their order depends on sizes and spreads only: rows, and slices that stand for them, have the same people.
        """
        strata, weights = np.array(self.strata or (0,) * len(self.cells)), self.row_weights
        weights = np.ones(self.n_rows) if weights is None else weights
        squares = weights if np.array_equal(weights, np.rint(weights)) else weights**2
        squares = squares if self.represented is None else self.represented.squares
        marks, share = np.zeros(self.n_rows), min(1.0, _MOST_DRAWN / float(self.sizes.sum()))
        for mark, cell in zip(np.random.default_rng(0).random(len(self.cells)), self.cells, strict=True):
            marks[cell] += mark  # rows with equal marks are in the same cells
        drawn = []
        for stratum in np.unique(strata):
            numbers = np.flatnonzero(strata == stratum)
            rows = np.unique(np.concatenate([self.cells[number] for number in numbers]))
            rows = rows[np.argsort(scores[rows], kind="stable")]
            _, first, kinds = np.unique(marks[rows], return_index=True, return_inverse=True)
            below = np.cumsum(weights[rows])
            gaps = (scores[rows] - weights[rows] @ scores[rows] / max(below[-1], 1e-300)) ** 2
            spread, mass, square = (
                np.bincount(kinds, each) for each in (weights[rows] * gaps, weights[rows], squares[rows])
            )
            counts = np.maximum(1, np.rint(share * mass**2 / np.maximum(square, 1e-300))).astype(np.int64)
            n, order = int(counts.sum()), np.lexsort((spread, counts))
            people = scores[rows[np.searchsorted(below, below[-1] * (np.arange(n) + 0.5) / n)]]
            drawn.append((n, people.std(), people, numbers, rows[first][np.repeat(order, counts[order])]))
        drawn.sort(key=lambda one: one[:2])
        cells, start = list(self.cells), 0
        for n, _, _, numbers, like in drawn:
            for number in numbers:
                cells[number] = start + np.flatnonzero(np.isin(like, self.cells[number]))
            start += n
        people_compare = replace(self, n_rows=start, cells=tuple(cells), row_weights=None, represented=None)
        return [people for _, _, people, *_ in drawn], people_compare

    def shuffled(self, rng: np.random.Generator) -> Comparisons:
        """Return the same comparisons with the rows of each stratum shuffled among its cells."""
        strata = np.array(self.strata or (0,) * len(self.cells))
        moved = np.arange(self.n_rows)
        for stratum in dict.fromkeys(strata.tolist()):  # in an order that does not depend on names
            rows = np.unique(np.concatenate([self.cells[cell] for cell in np.flatnonzero(strata == stratum)]))
            moved[rows] = rng.permutation(rows)
        return replace(self, cells=tuple(np.sort(moved[cell]) for cell in self.cells))


def sums_over_pairs(pairs: Ints, coefficients: tuple[Floats, Floats], n_samples: int) -> Any:
    """Return the sparse matrix by which values of pairs are summed for their first and their second samples.

    A product with it takes a tenth of the time of `numpy.add.at`.
    """
    from scipy.sparse import csc_array  # noqa: PLC0415 - audits do not need it

    ends = np.arange(0, 2 * len(pairs) + 1, 2)
    return csc_array((np.column_stack(coefficients).ravel(), pairs.ravel(), ends), shape=(n_samples, len(pairs)))
