"""The unit of a parity weight, measured on the scores of a whole table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fairtransport.criteria import weigh_by_reliability
from fairtransport.penalties import Comparisons, DiscretePenalty
from fairtransport.torch._score_tables import group_samples
from fairtransport.transport.targets import TARGET_SIZE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.torch._layers import Layers
    from fairtransport.torch._pairs import Pairing
    from fairtransport.torch._target import Target

__all__ = ["compare_cells", "count_cells", "parity_factor", "squared_error_information"]

Table: TypeAlias = "tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]"
"""Scores, group codes and layers of the rows of a table."""


def squared_error_information(y: NDArray[Any], predictions: NDArray[np.float64]) -> float:
    """Return the mean squared error of the mean minus that of the predictions, at least 1 % of the former."""
    constant, own = float(np.var(y)), float(np.mean((y - predictions) ** 2))
    return max(constant - own, 0.01 * constant)


def count_cells(codes: NDArray[np.int64], layer: NDArray[np.int64], layers: Layers) -> NDArray[np.int64]:
    """Return the number of rows of each cell; raise where a group has none."""
    cell = layers.n_groups * layer + codes
    counts = np.bincount(cell[layer < layers.n_layers], minlength=layers.n_cells)
    empty = int(np.count_nonzero(counts.reshape(-1, layers.n_groups).sum(axis=0) == 0))
    if empty:
        raise ValueError(f"{empty} of {layers.n_groups} groups have no rows; rows of each are needed here.")
    return counts


def parity_factor(scores: NDArray[np.float64], pairs: Comparisons, information: float) -> float:
    """Return what makes the reliable part of the disparity count as much as the information of the features."""
    distances = DiscretePenalty(huber_width=0.0, scale="score").value_and_gradient(scores, pairs).distances
    disparity, reliable = pairs.weights @ distances, weigh_by_reliability(pairs, scores).weights @ distances
    return float(information * reliable / disparity**2) if disparity > 0.0 else 0.0


def compare_cells(
    table: Table,
    counts: NDArray[np.int64],
    weights: list[float],
    pairing: Pairing,
    *,
    layers: Layers,
    target: Target | None,
) -> Comparisons:
    """Return the pairs of groups within each layer, or of each group and its target.

    ``counts`` are the rows of each cell, and ``weights`` the weights of its label and stratum.
    """
    scores, codes, layer = table
    n, cell = layers.n_groups, layers.n_groups * layer + codes
    targets: list[NDArray[np.float64]] = []
    if target is not None:
        samples = group_samples(scores, codes, layer, layers)
        targets = [target.resolve(*stratum).equal_mass(TARGET_SIZE) for stratum in enumerate(samples)]
    used = np.flatnonzero(counts)
    position = {int(number): index for index, number in enumerate(used)}
    compared = [
        (one, other)
        for one, other in pairing.ends.T.tolist()
        if one in position and (targets or other in position) and weights[one]
    ]
    same = [(one // n // layers.n_strata, one % n, 0 if targets else other % n) for one, other in compared]
    return Comparisons.of_cells(
        len(scores),
        [np.flatnonzero(cell == number) for number in used],
        [(position[one], len(used) + other if targets else position[other]) for one, other in compared],
        weights=[weights[one] for one, _ in compared],
        targets=targets,
        names=(used % n).tolist(),
        strata=(used // n).tolist(),
        families=np.unique(same, axis=0, return_inverse=True)[1].ravel(),
    )
