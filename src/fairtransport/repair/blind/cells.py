"""Cells of blind repair: what each row adds to the difference between a group and everyone, by its probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Cells", "make_cells"]

_MEAN_BRIDGE = 0.313  # mean over all levels of the absolute value of a Brownian bridge
_SHARE_OF_CHANCE = 0.5  # of the mean difference that chance shows


@dataclass(frozen=True, eq=False)
class Cells:
    r"""Groups that are compared with everyone: all people, those with a label, those of a stratum, or both.

    Parameters
    ----------
    groups, labels, strata : ndarray of int, of shape (n_cells,)
        Group, label and stratum of each cell. A label is an index into the second axis of the probabilities; the
        stratum is -1 for a cell of all strata.
    shares : ndarray of shape (n_cells,)
        Mean probability of the cell among the rows of its stratum.
    totals : ndarray of shape (n_cells,)
        Mean probability of its label there.
    priors : ndarray of shape (n_strata, n_labels, n_groups)
        By how much group probabilities are multiplied within each stratum, before they are divided by their sum.
    stratum_shares : ndarray of shape (n_strata, n_labels, n_groups)
        Mean probability of each group and label among the rows of a stratum; 0 where a stratum has one group.

    Notes
    -----
    A function f has the same distribution in a cell and among everyone with its label if and only if for all s

    .. math:: E\Big[\Big(\frac{P(a, y \mid x)}{P(a, y)} - \frac{P(y \mid x)}{P(y)}\Big) 1(f(x) > s)\Big] = 0,

    and the bracket is the cell's contrast. A cell of all
    strata has the contrast of each row's own stratum, so that it compares people of the same stratum, as well: groups
    that differ in their strata may differ in their scores.
    """

    groups: NDArray[np.int64]
    labels: NDArray[np.int64]
    strata: NDArray[np.int64]
    shares: NDArray[np.float64]
    totals: NDArray[np.float64]
    priors: NDArray[np.float64]
    stratum_shares: NDArray[np.float64]

    def __len__(self) -> int:
        return self.groups.size

    @property
    def centering(self) -> NDArray[np.float64]:
        """The matrix that subtracts from each cell the mean of the cells that are compared with it."""
        compared = (self.labels[:, None] == self.labels) & (self.strata[:, None] == self.strata)
        return np.eye(len(self)) - compared / compared.sum(axis=1)

    def contrasts(
        self, probabilities: NDArray[np.float64], codes: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Return the contrasts of rows.

        Parameters
        ----------
        probabilities : ndarray of shape (n, n_labels, n_groups)
            P(label, group | x).
        codes : ndarray of shape (n,), optional
            Stratum of each row; needed if there are strata.

        Returns
        -------
        ndarray of shape (n, n_cells)
        """
        within = probabilities if codes is None else _apply_priors(probabilities, self.priors, codes)
        table = within[:, self.labels, self.groups] / self.shares
        table -= within.sum(axis=2)[:, self.labels] / self.totals
        if codes is not None:
            table *= self.strata == codes[:, None]
            for cell in np.flatnonzero(self.strata < 0):
                label, group = self.labels[cell], self.groups[cell]
                share = self.stratum_shares[codes, label, group]
                total = self.stratum_shares[codes, label].sum(axis=1)
                compared = (share > 0.0) & (share < total)
                ratio = within[:, label, group] / np.where(compared, share, 1.0)
                table[:, cell] = compared * (ratio - within[:, label].sum(axis=1) / np.where(compared, total, 1.0))
        return table


def make_cells(
    probabilities: NDArray[np.float64],
    *,
    groups: NDArray[np.int64],
    labels: NDArray[np.int64] | None,
    compared: tuple[int, ...],
    codes: NDArray[np.int64] | None = None,
    n_strata: int = 0,
    weights: NDArray[np.float64] | None = None,
) -> tuple[Cells, NDArray[np.float64]]:
    """Return the cells of a criterion, and the difference that chance leaves to each.

    Parameters
    ----------
    probabilities : ndarray of shape (n, n_labels, n_groups)
        Out of fold.
    groups, labels : ndarray of shape (n,)
        Group and label of each row; labels None where there is one.
    compared : tuple of int
        Labels within which groups are compared.
    codes, n_strata
        Stratum of each row.
    weights : ndarray of shape (n,), optional

    Returns
    -------
    cells : Cells
        With strata, the cells of all strata come first, so that a small stratum can do with their potentials.
    chance : ndarray of shape (n_cells,)
        Half of the mean difference between the shares above a score of two samples of one distribution, of the sizes
        of the cell and of everyone it is compared with; for cells of a stratum times the share of its rows.
    """
    masses = np.ones(groups.size) if weights is None else weights
    n_groups = probabilities.shape[2]
    given = np.zeros(groups.size, dtype=np.int64) if labels is None else labels
    priors = np.ones((max(n_strata, 1), *probabilities.shape[1:]))
    if codes is not None:
        priors = _stratum_priors(
            probabilities, groups=groups, labels=given, codes=codes, n_strata=n_strata, masses=masses
        )
        probabilities = _apply_priors(probabilities, priors, codes)
    found: list[tuple[int, int, int, float, float, float]] = []
    stratum_shares = np.zeros_like(priors)
    for stratum in range(-1, n_strata):
        inside = np.ones(groups.size, dtype=bool) if stratum < 0 or codes is None else codes == stratum
        part = masses * inside
        share_of_stratum = part.sum() / masses.sum()
        for label in compared:
            sizes = np.bincount(groups, weights=part * (given == label), minlength=n_groups)
            present = np.flatnonzero(sizes > 0)
            if present.size < 2:
                continue
            mean = part @ probabilities[:, label] / part.sum()
            if stratum >= 0 or codes is None:
                stratum_shares[max(stratum, 0), label, present] = mean[present]
            for group in present:
                others = sizes.sum() - sizes[group]
                noise = (
                    _SHARE_OF_CHANCE * _MEAN_BRIDGE * np.sqrt(1.0 / sizes[group] + 1.0 / others) * others / sizes.sum()
                )
                found.append((int(group), label, stratum, mean[group], mean.sum(), noise * share_of_stratum))
    if not found:
        raise ValueError("There is nothing to compare: no stratum, or no label, has rows of two groups.")
    columns = list(zip(*found, strict=True))
    indices = [np.array(column, dtype=np.int64) for column in columns[:3]]
    shares, totals, chance = (np.maximum(np.array(column), 1e-12) for column in columns[3:])
    return Cells(indices[0], indices[1], indices[2], shares, totals, priors, stratum_shares), chance


def _stratum_priors(
    probabilities: NDArray[np.float64],
    *,
    groups: NDArray[np.int64],
    labels: NDArray[np.int64],
    codes: NDArray[np.int64],
    n_strata: int,
    masses: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the ratio of what a stratum has of a group, given the label, to what the features say; shrunk to 1.

    Strata need not be features: who is in a stratum is then likelier of a group that is frequent there.
    """
    priors = np.ones((n_strata, *probabilities.shape[1:]))
    for stratum in range(n_strata):
        for label in range(probabilities.shape[1]):
            inside = masses * (codes == stratum) * (labels == label)
            counted = np.bincount(groups, weights=inside, minlength=probabilities.shape[2])
            given = probabilities[:, label] / np.maximum(probabilities[:, label].sum(axis=1, keepdims=True), 1e-12)
            expected = inside @ given
            priors[stratum, label] = (counted + 10.0) / (expected + 10.0)
    return priors


def _apply_priors(
    probabilities: NDArray[np.float64], priors: NDArray[np.float64], codes: NDArray[np.int64]
) -> NDArray[np.float64]:
    tilted = probabilities * priors[codes]
    sums = tilted.sum(axis=2, keepdims=True)
    return tilted / np.maximum(sums, 1e-12) * probabilities.sum(axis=2, keepdims=True)
