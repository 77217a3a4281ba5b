"""The paper's claims about Figure 4, checked against our runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairtransport.paper._figure4_runs import (
    END,
    GRID,
    LOW,
    METHODS,
    ORIGINAL,
    SETTLED,
    SHOWN,
    all_rates,
    jumps,
    segments_at,
)
from fairtransport.paper._published import three_digits
from fairtransport.paper.finding import Claim, verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fairtransport.paper._figure4_runs import Runs

__all__ = ["figure4_claims", "rate_text"]

_JUMP = 0.10
_SIMILAR = 0.01


def figure4_claims(runs: Mapping[str, Runs], duals: Mapping[str, NDArray[np.float64]]) -> tuple[Claim, ...]:
    """Check the paper's claims against the runs of both methods and COT's duals."""
    return (
        *(_low_ends(method, run) for method, run in runs.items()),
        _jump(runs),
        _alike(runs),
        _stable(runs),
        _faster(runs),
        _falling(runs),
        _small_duals(duals, int(runs["COT"].update[SHOWN, 0])),
        _extremes(duals),
    )


def rate_text(rate: float) -> str:
    """Return a rate as the paper prints it."""
    return f"{rate:.1f}".removeprefix("0")


def _low_ends(method: str, run: Runs) -> Claim:
    end, last = run.end[:, SETTLED:], run.wass1[:, SETTLED:, -1]
    return Claim(
        f"{method} adapts to every new level of unfairness.",
        "",
        f"from the third change on, segments end at Wass1 {three_digits(float(end.mean()))} on average and "
        f"{three_digits(float(end.max()))} at most; single last records at {three_digits(float(last.max()))} at most",
        verdict(holds=bool(end.max() <= LOW)),
        f"Decided by {three_digits(LOW)} or less at the end of every such segment with every seed, the mean of the "
        f"last {END} records.",
    )


def _jump(runs: Mapping[str, Runs]) -> Claim:
    starts = {method: run.start[:, jumps()] for method, run in runs.items()}
    least = min(float(start.min()) for start in starts.values())
    means = ", ".join(f"{method} {three_digits(float(start.mean()))}" for method, start in starts.items())
    return Claim(
        "The change from .1 to .4 makes a fair model unfair.",
        "",
        f"Wass1 just after it: {means}",
        verdict(holds=least > _JUMP),
        f"Decided by Wass1 above {three_digits(_JUMP)} each time with every seed; the least is {three_digits(least)}.",
    )


def _alike(runs: Mapping[str, Runs]) -> Claim:
    cot, dot = (runs[method].wass1.mean(axis=0)[SETTLED:] for method in METHODS)
    gap = float(np.abs(cot - dot).mean())
    return Claim(
        "COT and DOT behave very similarly.",
        "",
        f"from the third change on their Wass1 differ by {three_digits(gap)} on average",
        verdict(holds=gap <= _SIMILAR),
        f"Decided by {three_digits(_SIMILAR)} or less.",
    )


def _stable(runs: Mapping[str, Runs]) -> Claim:
    cot, dot = (float(runs[method].jitter[:, SETTLED:].mean()) for method in METHODS)
    return Claim(
        "DOT is more stable than COT.",
        "",
        f"standard deviation of Wass1 over the second half of a segment: DOT {dot:.4f}, COT {cot:.4f}".replace(
            "0.", "."
        ),
        verdict(holds=dot < cot),
        "Decided by the means over all segments from the third change on; both have the same step and batch size.",
    )


def _faster(runs: Mapping[str, Runs]) -> Claim:
    first, *later = segments_at(ORIGINAL)
    lines, holds = [], True
    for method, run in runs.items():
        mean, needed = run.wass1.mean(axis=(0, 2)), run.needed.mean(axis=0)
        holds &= bool(mean[first] > max(mean[later]) and needed[first] > max(needed[later]))
        updates = ", ".join(f"{needed[segment]:,.0f}" for segment in (first, *later))
        means = ", ".join(three_digits(float(mean[segment])) for segment in (first, *later))
        lines.append(f"{method} {updates} updates (mean Wass1 of the segment {means})")
    return Claim(
        "At rate .1 Wass1 is higher early in training than later, and needs more updates to become low.",
        "",
        f"until Wass1 is {three_digits(LOW)}, the first time and later: {'; '.join(lines)}",
        verdict(holds=holds),
        "Decided by both figures, the first segment against each later one, for both methods.",
    )


def _falling(runs: Mapping[str, Runs]) -> Claim:
    lines, holds, lower, count = [], True, 0, 0
    for method, run in runs.items():
        least = run.least.mean(axis=0)
        rates = sorted(set(all_rates()))
        first, last = (np.array([least[segments_at(rate)[end]] for rate in rates]) for end in (0, -1))
        holds &= bool(last.mean() < first.mean())
        lower, count = lower + int((last < first).sum()), count + len(rates)
        pairs = ", ".join(
            f"{rate_text(rate)}: {three_digits(float(a))} to {three_digits(float(b))}"
            for rate, a, b in zip(rates, first, last, strict=True)
        )
        lines.append(f"{method} {pairs}")
    return Claim(
        "The minimum of Wass1 decreases with progress.",
        "",
        f"the first and the last segment of each rate: {'; '.join(lines)}",
        verdict(holds=holds),
        f"Decided by the mean over the rates, for both methods; it is lower at {lower} of {count} single ones.",
    )


def _small_duals(duals: Mapping[str, NDArray[np.float64]], change: int) -> Claim:
    size = {when: np.abs(pairs).max(axis=(1, 2)) for when, pairs in duals.items()}
    gap = {when: np.abs(pairs[:, 0] - pairs[:, 1]).max(axis=1) for when, pairs in duals.items()}
    holds = all((two["after"] >= 2.0 * two["before"]).all() for two in (size, gap))
    return Claim(
        "Just before a change from .1 to .4 the two duals are small and close to each other, soon after it they are "
        "larger.",
        "shown at update 30,000",
        f"at update {change:,}: largest value {size['before'].mean():.2f} before, {size['after'].mean():.2f} after; "
        f"largest distance of the two {gap['before'].mean():.2f} before, {gap['after'].mean():.2f} after",
        verdict(holds=bool(holds)),
        "Decided by twice as much of both with every seed.",
    )


def _extremes(duals: Mapping[str, NDArray[np.float64]]) -> Claim:
    gap = np.abs(duals["after"][:, 0] - duals["after"][:, 1])
    outer = np.abs(GRID - 0.5) >= 0.3
    ends, middle = gap[:, outer].mean(axis=1), gap[:, ~outer].mean(axis=1)
    return Claim(
        "After the change the two duals differ mostly at the extremes of [0, 1].",
        "",
        f"mean distance of the two {ends.mean():.2f} below .2 and above .8, {middle.mean():.2f} in between",
        verdict(holds=bool((ends > middle).all())),
        "Decided with every seed.",
    )
