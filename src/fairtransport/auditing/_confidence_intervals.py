r"""Intervals for disparities, which chance can only push up.

A disparity of samples is biased upward: two samples of one distribution never agree. The percentiles of a bootstrap
move the wrong way (they add the bias once more) and cover far too rarely, in the extreme never. So an interval here
holds the disparities under which a reading such as this one would not be unusual.

Let D be the groups' deviations from their common curve as they were read, h the noise of a bootstrap replicate and
:math:`\|\cdot\|` the disparity, which is a norm of such deviations. Truths are sought along the line
:math:`\lambda D`, from no difference (0) through what was read (1) and beyond. A truth :math:`\lambda` reads
:math:`\|\lambda D + h\|` when the noise is h. Each replicate is solved for the truth that would have read what was
read,

.. math:: \|\lambda_b D + h_b\| = \|D\|, \qquad \theta_b = \lambda_b \|D\|,

and the interval is made of the quantiles of these truths. Where noise alone reads as much, the truth is 0, so the
interval reaches down to 0 when the data do not show a difference; an audit makes sure of that with the permutation
test, which is exact.

D itself is rough: it carries noise. Its part that is not a plain shift of the scores is shrunk (James and Stein) by as
much as noise explains it. A reading below the median of what chance alone gives is luck; the upper end is then taken
as if it had been that median.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairtransport.auditing._coarse_histograms import Thinned
    from fairtransport.auditing._disparity_norms import Yardstick

__all__ = ["Block", "Truths", "find_truths"]

_MOST_NUMBERS = 1 << 21  # in the curves that are held at a time
_CACHED = 1 << 16  # in the curves that are solved at a time
_STEPS = 12
_CLOSE = 1e-3  # of the reading: far below what replicates tell apart


@dataclass(frozen=True, eq=False)
class Block:
    """Histograms whose disparities count with a weight: all rows (weight 1), or one stratum of several.

    Parameters
    ----------
    thinned : Thinned
    yardsticks : tuple of Yardstick
        What is measured; the same names in all blocks.
    weight : float
    """

    thinned: Thinned
    yardsticks: tuple[Yardstick, ...]
    weight: float = 1.0


@dataclass(frozen=True, eq=False)
class Truths:
    """The truths that replicates are solved for.

    Parameters
    ----------
    values : array of shape (n_replicates,)
        Given what was read.
    upper : array of shape (n_replicates,)
        The same, for a reading that is at least the median of noise alone.
    """

    values: NDArray[np.float64]
    upper: NDArray[np.float64]

    @property
    def middle(self) -> float:
        """The median: the reading without its bias."""
        return float(np.median(self.values))

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the central interval."""
        tail = (1 - confidence) / 2
        low = np.quantile(self.values, tail, method="weibull")
        return float(low), float(np.quantile(self.upper, 1 - tail, method="weibull"))


@dataclass(frozen=True, eq=False)
class _Piece:
    """One yardstick on one block: the line of truths, and what a replicate needs to be measured."""

    yardstick: Yardstick
    block: Block
    widths: NDArray[np.float64]
    read: NDArray[np.float64]
    shape: NDArray[np.float64]

    def total(self, curves: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.block.weight * self.yardstick.total(curves, self.widths)

    def noise(self, drawn: NDArray[np.float64], source: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how far replicates are off what they were drawn from, for small groups a little farther.

        Rows vary by n / (n - 1) more around the truth than around themselves, and how much they vary is itself read
        from n rows, for which Student's t has the variance (n - 1) / (n - 3): together n / (n - 3).
        """
        prepare, thinned = self.yardstick.prepare, self.block.thinned
        noise = prepare(drawn, thinned) - prepare(source, thinned)
        sizes = np.maximum(thinned.effective_sizes, 4.0)
        noise[:-1] *= np.sqrt(sizes / (sizes - 3))[:, None, None]
        return noise


def find_truths(blocks: Sequence[Block], n_replicates: int, rng: np.random.Generator) -> dict[str, Truths]:
    """Solve every replicate for the truth behind the reading, for each disparity.

    Parameters
    ----------
    blocks : sequence of Block
    n_replicates : int
    rng : numpy.random.Generator

    Returns
    -------
    dict of str to Truths
        Under the names of the yardsticks.
    """
    size = sum(block.thinned.masses.size for block in blocks)
    most = max(1, min(n_replicates, _MOST_NUMBERS // size))
    chunks = [most] * (n_replicates // most) + [n_replicates % most] * (n_replicates % most > 0)
    lines: dict[str, list[_Piece]] = {}
    floors: dict[str, float] = {}
    found: defaultdict[str, list[Truths]] = defaultdict(list)
    for chunk in chunks:
        draws = [block.thinned.bootstrap(rng, chunk) for block in blocks]
        for column in zip(*(block.yardsticks for block in blocks), strict=True):
            name = column[0].name
            if name not in lines:
                lines[name] = [_make_piece(*each) for each in zip(column, blocks, draws, strict=True)]
            pieces = lines[name]
            noise = [piece.noise(*draw) for piece, draw in zip(pieces, draws, strict=True)]
            reading = sum(float(piece.total(piece.read)[0]) for piece in pieces)
            if name not in floors:
                floors[name] = float(np.median(_measure(pieces, noise)))
            truths = _solve(pieces, noise, reading)
            upper = truths if reading >= floors[name] else _solve(pieces, noise, floors[name])
            found[name].append(Truths(truths, upper))
    return {
        name: Truths(np.concatenate([part.values for part in parts]), np.concatenate([part.upper for part in parts]))
        for name, parts in found.items()
    }


def _make_piece(yardstick: Yardstick, block: Block, draw: tuple[NDArray[np.float64], NDArray[np.float64]]) -> _Piece:
    thinned = block.thinned
    curves = yardstick.prepare(thinned.curves(), thinned)
    deviations = curves - yardstick.centre(curves, thinned)
    widths = yardstick.widths(thinned)
    piece = _Piece(yardstick, block, widths, deviations, deviations)
    noise = piece.noise(*draw)
    if yardstick.target is None:
        noise = noise - noise[-1]
    middle = thinned.curves()[-1, 0]
    # How a small shift moves a curve: most where most scores are. For quantile functions, everywhere alike.
    mode = np.ones(widths.size) if yardstick.kind == "mean" else middle * (1 - middle)
    shape = _smooth(deviations, noise, mode, widths)
    if float(piece.total(shape)[0]) <= 1e-9:
        shape = _any_shift(len(shape), thinned.group_shares, mode)
    return _Piece(yardstick, block, widths, deviations, shape)


def _smooth(
    deviations: NDArray[np.float64], noise: NDArray[np.float64], mode: NDArray[np.float64], widths: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Shrink what is not a shift by as much as noise explains it."""
    if not mode @ widths > 0:
        return deviations
    own, rough = _split(deviations, mode, widths)
    _, noisy = _split(noise, mode, widths)
    energy = float(np.sum((rough[:-1] ** 2) @ widths))
    expected = float(np.sum(((noisy[:-1] ** 2) @ widths).mean(axis=1)))
    kept = max(0.0, 1.0 - expected / energy) if energy > 0 else 0.0
    return own + kept * rough


def _split(
    curves: NDArray[np.float64], mode: NDArray[np.float64], widths: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Part of each curve that a shift explains (it has the same area), and the rest."""
    shift = (curves @ widths / (mode @ widths))[..., None] * mode
    return shift, curves - shift


def _any_shift(n_curves: int, shares: NDArray[np.float64], mode: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shift every other group: the truths that are tried where groups were read as equal."""
    signs = np.where(np.arange(n_curves - 1) % 2, 1.0, -1.0)
    signs -= shares @ signs
    shape = np.zeros((n_curves, 1, mode.size))
    shape[:-1, 0] = 1e-3 * signs[:, None] * mode
    return shape


def _measure(
    pieces: Sequence[_Piece], noise: Sequence[NDArray[np.float64]], truth: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Read each replicate at its truth (none: noise alone)."""
    if truth is None:
        parts = [piece.total(one) for piece, one in zip(pieces, noise, strict=True)]
    else:
        times = truth[None, :, None]
        parts = [piece.total(times * piece.shape + one) for piece, one in zip(pieces, noise, strict=True)]
    total: NDArray[np.float64] = np.sum(parts, axis=0)
    return total


def _solve(pieces: Sequence[_Piece], noise: Sequence[NDArray[np.float64]], reading: float) -> NDArray[np.float64]:
    r"""Find the largest :math:`\lambda \ge 0` that reads as was read, for each replicate; 0 where none does.

    What is read is a convex function of lambda with slopes of at most the norm of the shape. A secant through two
    points to the right of a convex function's last root meets 0 between that root and them. So the steps come down
    from the right and never pass the root.
    """
    scale = sum(float(piece.total(piece.shape)[0]) for piece in pieces)
    size = noise[0].shape[1]
    if not scale > 0:
        return np.zeros(size)
    # A few replicates at a time: what the processor's cache holds is measured several times faster.
    few = max(1, _CACHED // sum(one.shape[0] * one.shape[2] for one in noise))
    slices = [slice(start, start + few) for start in range(0, size, few)]
    return np.concatenate([_solve_few(pieces, [one[:, at] for one in noise], reading, scale) for at in slices])


def _solve_few(
    pieces: Sequence[_Piece], noise: Sequence[NDArray[np.float64]], reading: float, scale: float
) -> NDArray[np.float64]:
    at = (reading + _measure(pieces, noise)) / scale  # by the triangle inequality this reads too much
    above = _measure(pieces, noise, at) - reading
    slope = np.full_like(at, scale)
    for _ in range(_STEPS):
        new = np.maximum(at - above / slope, 0.0)
        new_above = _measure(pieces, noise, new) - reading
        moved = at - new
        risen = np.divide(above - new_above, moved, out=np.zeros_like(at), where=moved > 1e-12 * (1 + at))
        slope = np.where(risen > 0, np.minimum(risen, slope), np.where(moved > 1e-12 * (1 + at), 1e-6 * scale, slope))
        at, above = new, new_above
        if not np.any((at > 0) & (np.abs(above) > _CLOSE * reading)):
            break
    return at * scale
