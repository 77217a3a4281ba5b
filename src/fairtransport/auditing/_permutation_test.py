"""What the disparities would read if groups were drawn by lot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairtransport.metrics import NoiseFloor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.auditing._confidence_intervals import Block
    from fairtransport.auditing._disparity_norms import Yardstick

__all__ = ["noise_floors"]

_MOST_NUMBERS = 1 << 21  # in the curves that are held at a time


def noise_floors(blocks: Sequence[Block], n_shuffles: int, rng: np.random.Generator) -> dict[str, NoiseFloor]:
    """Measure every disparity again after each shuffle of group membership, within each block.

    Parameters
    ----------
    blocks : sequence of Block
        All rows, or the strata.
    n_shuffles : int
    rng : numpy.random.Generator

    Returns
    -------
    dict of str to NoiseFloor
        Under the names of the yardsticks. ``observed`` is read on the same few nodes as the shuffles.

    Notes
    -----
    Rows keep their scores and groups their sizes: counts at nodes are drawn without replacement, which is what
    shuffling the rows would give, whatever their number. With weights (or 10**9 rows and more) each group is instead
    drawn anew from everyone's distribution, with its effective number of rows.
    """
    names = [yardstick.name for yardstick in blocks[0].yardsticks]
    observed, values = dict.fromkeys(names, 0.0), {name: np.zeros(n_shuffles) for name in names}
    for block in blocks:
        thinned = block.thinned
        most = max(1, _MOST_NUMBERS // thinned.masses.size)
        for start in range(0, n_shuffles, most):
            stop = min(start + most, n_shuffles)
            drawn = thinned.shuffle(rng, stop - start)
            for yardstick in block.yardsticks:
                values[yardstick.name][start:stop] += _read(yardstick, block, drawn)
        for yardstick in block.yardsticks:
            observed[yardstick.name] += float(_read(yardstick, block, thinned.curves())[0])
    return {name: NoiseFloor(observed[name], values[name]) for name in observed}


def _read(yardstick: Yardstick, block: Block, curves: NDArray[np.float64]) -> NDArray[np.float64]:
    thinned = block.thinned
    prepared = yardstick.prepare(curves, thinned)
    if yardstick.target is not None:
        prepared = prepared - thinned.average_cdf(yardstick.target)
    return block.weight * yardstick.total(prepared, yardstick.widths(thinned))
