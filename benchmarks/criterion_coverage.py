"""How often do 95% intervals of disparities within labels and strata cover, and are their p-values uniform?

``python -m benchmarks.criterion_coverage [--audits 500]``: worlds with known distributions of scores for each label (or
stratum) and group. For each, the share of audits whose interval contains the true disparity, and the share of p-values
of at most .05 where groups do not differ. The result is stored in ``benchmarks/results/criterion_coverage.json``.
"""

from __future__ import annotations

import argparse
import json
import zlib
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.stats import beta

import fairtransport as ft

RESULT = Path(__file__).parent / "results" / "criterion_coverage.json"
NODES = np.linspace(0, 1, 4001)


@dataclass(frozen=True)
class World:
    """Beta distributed scores: ``shapes[cell][group]``, where cells are labels or strata."""

    name: str
    criterion: str  # "equalized_odds", "equal_opportunity" or "strata"
    sizes: tuple[int, ...]
    rates: tuple[tuple[float, ...], ...]  # for each group, the shares of its rows in the cells
    shapes: tuple[tuple[tuple[float, float], ...], ...]

    def draw(self, rng):
        """Return scores, cells and groups."""
        groups = np.repeat(np.arange(len(self.sizes)), self.sizes)
        cells = np.array([rng.choice(len(self.shapes), p=self.rates[group]) for group in groups])
        shape = np.array(self.shapes, dtype=float)[cells, groups]
        return rng.beta(shape[:, 0], shape[:, 1]), cells, groups

    def distance(self, cell):
        """Return the sum over pairs of groups of the Wasserstein-1 distances within a cell."""
        curves = [beta(*shape).cdf(NODES) for shape in self.shapes[cell]]
        return sum(float(np.trapezoid(np.abs(one - other), NODES)) for one, other in combinations(curves, 2))

    def truth(self):
        """Return the true disparity of the criterion."""
        if self.criterion == "equal_opportunity":
            return self.distance(1)
        if self.criterion == "equalized_odds":
            return (self.distance(0) + self.distance(1)) / 2
        shares = np.average(np.array(self.rates), axis=0, weights=self.sizes)
        return sum(share * self.distance(cell) for cell, share in enumerate(shares))

    def reading(self, rng):
        """Audit one sample, and return the disparity of the criterion with its interval and p-value."""
        scores, cells, groups = self.draw(rng)
        options = {"sensitive_features": groups, "n_bootstrap": 199, "n_permutations": 199, "random_state": rng}
        if self.criterion == "strata":
            audit = ft.audit(scores, strata=np.array(["u", "v", "w"])[cells], **options)
            return audit.within.readings["strong_pairwise_disparity"]
        audit = ft.audit(scores, cells, criterion=self.criterion, **options)
        return audit.within.readings["strong_pairwise_disparity"]


def worlds():
    """Return the worlds: without a difference, with one in one label, in both, and with crossing distributions."""
    two, three = ((0.7, 0.3), (0.4, 0.6)), ((0.7, 0.3), (0.5, 0.5), (0.6, 0.4))
    null2 = (((2, 4), (2, 4)), ((4, 2), (4, 2)))
    null3 = (((2, 4),) * 3, ((4, 2),) * 3)
    shift = (((2, 4), (2.6, 4)), ((4, 2), (4, 1.6)))
    one = (((2, 4), (2, 4)), ((4, 2), (2.5, 2)))
    cross = (((2, 4), (1, 2)), ((4, 2), (2, 1)))
    many = (((2, 4), (2.4, 4), (2.8, 4)), ((4, 2), (4, 1.8), (4, 1.5)))
    return [
        World("no difference, 400 and 300 rows", "equalized_odds", (400, 300), two, null2),
        World("no difference, three groups", "equalized_odds", (500, 200, 150), three, null3),
        World("no difference among the positive", "equal_opportunity", (400, 300), two, null2),
        World("no difference within strata", "strata", (400, 300), two, null2),
        World("shifts in both labels", "equalized_odds", (400, 300), two, shift),
        World("a difference in one label", "equalized_odds", (400, 300), two, one),
        World("distributions that cross", "equalized_odds", (400, 300), two, cross),
        World("three groups", "equalized_odds", (500, 200, 150), three, many),
        World("large groups", "equalized_odds", (4000, 3000), two, shift),
        World("a small group", "equalized_odds", (2000, 120), two, shift),
        World("positive rows differ", "equal_opportunity", (400, 300), two, one),
        World("positive rows cross", "equal_opportunity", (400, 300), two, cross),
        World("strata differ", "strata", (400, 300), two, shift),
        World("one stratum differs", "strata", (400, 300), two, one),
    ]


def simulate(world, n_audits, seed=0):
    """Return where the truth lies, below, within or above the interval, and the p-values."""
    rng = np.random.default_rng([seed, zlib.crc32(world.name.encode())])
    truth, counts, p_values = world.truth(), [0, 0, 0], []
    for _ in range(n_audits):
        reading = world.reading(rng)
        counts[0 if truth < reading.low - 1e-3 else 2 if truth > reading.high + 1e-3 else 1] += 1
        p_values.append(reading.p_value)
    return truth, counts, np.array(p_values)


def main():
    """Run all worlds and store the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--audits", type=int, default=500)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    result = {}
    for world in worlds():
        truth, counts, p_values = simulate(world, options.audits)
        total = sum(counts)
        result[world.name] = {
            "criterion": world.criterion, "truth": round(float(truth), 5), "audits": total,
            "below": counts[0] / total, "covered": counts[1] / total, "above": counts[2] / total,
            "p_at_most_0.05": float((p_values <= 0.05).mean()), "p_at_most_0.5": float((p_values <= 0.5).mean()),
        }  # fmt: skip
        print(world.name, result[world.name], flush=True)
        options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
