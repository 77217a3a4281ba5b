"""How often do 95% intervals cover, and are p-values uniform? Worlds whose truth is known.

``python -m benchmarks.coverage [--audits 400] [--worlds NAME ...]``: for each world, the share of intervals that
contain the truth, for each figure, and the distribution of the p-value where there is no difference. Fixed seeds; the
result is stored in ``benchmarks/results/coverage.json``.
"""

from __future__ import annotations

import argparse
import json
import time
import zlib
from collections import defaultdict
from pathlib import Path

import numpy as np

from benchmarks._audit_worlds import THRESHOLD, worlds
from fairtransport.auditing import audit_histograms

METRICS = ("wasserstein_disparity", "strong_demographic_disparity", "strong_pairwise_disparity")
SLACK = 2e-3  # of the truth, which is computed on a grid, and of the bins


def simulate(world, n_audits, *, n_replicates=199, seed=0):
    """Audit samples of a world; return for each figure where the truth lies: below, within or above the interval."""
    rng = np.random.default_rng([seed, zlib.crc32(world.name.encode())])
    truths = {}
    positions = defaultdict(list)
    p_values, pair_errors, false_claims = [], [], []
    for _ in range(n_audits):
        audit = audit_histograms(
            world.count(rng),
            thresholds=THRESHOLD,
            n_bootstrap=n_replicates,
            n_permutations=n_replicates,
            random_state=rng,
        )
        compared = [i for i, group in enumerate(audit.groups) if group.judged]
        if len(compared) < 2:
            compared = list(range(len(audit.groups)))
        truth = truths.setdefault(tuple(compared), world.truth(compared))
        for name in METRICS:
            reading = audit.readings[name]
            positions[name].append(_position(truth[name], reading))
        names = [audit.groups[i].name for i in compared]
        low, high = names.index(audit.farthest.lower), names.index(audit.farthest.higher)
        positions["pair"].append(_position(truth["distances"][low, high], audit.farthest.estimate))
        means = truth["means"]
        positions["mean_difference"].append(_position(means[high] - means[low], audit.farthest.mean_difference))
        at = audit.thresholds[0]
        one, other = compared.index(at.lowest), compared.index(at.highest)
        rates = truth["rates"]
        positions["rate_difference"].append(_position(rates[other] - rates[one], at.difference))
        if rates[other] > 0:
            positions["rate_ratio"].append(_position(rates[one] / rates[other], at.ratio))
        for index, group in enumerate(compared):
            positions["rate"].append(_position(rates[index], at.rates[group]))
        p_values.append(audit.readings[METRICS[2]].p_value)
        claimed = audit.pair_p_values[np.ix_(compared, compared)] <= 0.05
        pair_errors.append(bool(np.any(claimed & (truth["distances"] < 1e-9))))
        verdict = audit.verdict
        wrong = (verdict.different and world.is_null) or (
            verdict.ordered and verdict.different and means[high] < means[low]
        )
        wrong |= verdict.matters is True and truth["distances"].max() < verdict.materiality - 1e-4
        wrong |= verdict.matters is False and truth["distances"].max() > verdict.materiality + 1e-4
        false_claims.append(bool(wrong))
    result = {
        name: [float(np.mean(np.array(each) == where)) for where in (-1, 0, 1)] for name, each in positions.items()
    }
    p = np.array(p_values)
    result["p_value"] = {
        "at most .01": float(np.mean(p <= 0.01)),
        "at most .05": float(np.mean(p <= 0.05)),
        "at most .1": float(np.mean(p <= 0.1)),
        "at most .5": float(np.mean(p <= 0.5)),
    }
    result["a pair falsely called different"] = float(np.mean(pair_errors))
    result["a false claim in the verdict"] = float(np.mean(false_claims))
    return result


def _position(truth, estimate):
    """Return -1, 0 or 1: the truth lies below, within or above the interval. A truth of 0 is exact."""
    slack = SLACK * abs(truth) + 1e-6 if truth else 0.0
    return -1 if truth < estimate.low - slack else 1 if truth > estimate.high + slack else 0


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--audits", type=int, default=400, help="audits of each world")
    parser.add_argument("--replicates", type=int, default=199, help="bootstrap replicates and permutations")
    parser.add_argument("--worlds", nargs="*", default=None, help="parts of the names of worlds; all when omitted")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "coverage.json")
    parser.add_argument("--resume", action="store_true", help="keep the worlds that the stored result has")
    options = parser.parse_args()
    chosen = [w for w in worlds() if options.worlds is None or any(part in w.name for part in options.worlds)]
    results = json.loads(options.out.read_text())["worlds"] if options.resume and options.out.exists() else {}
    chosen = [world for world in chosen if world.name not in results]
    for world in chosen:
        started = time.perf_counter()
        result = simulate(world, options.audits, n_replicates=options.replicates)
        results[world.name] = {"null": world.is_null, "sizes": world.sizes, "weights": world.weights, **result}
        figures = " ".join(
            f"{name.split('_')[0][:6] if name in METRICS else name[:9]} {result[name][1]:.3f}({result[name][0]:.2f})"
            for name in result
            if isinstance(result[name], list)
        )
        p = result["p_value"]
        claims = (
            f"pair {result['a pair falsely called different']:.3f} verdict {result['a false claim in the verdict']:.3f}"
        )
        print(
            f"{world.name:<42} p<=.05 {p['at most .05']:.3f} .01 {p['at most .01']:.3f} | {figures} | {claims} "
            f"| {time.perf_counter() - started:.0f} s",
            flush=True,
        )
        if options.worlds is None:
            options.out.write_text(
                json.dumps({"audits": options.audits, "replicates": options.replicates, "worlds": results}, indent=1)
            )


if __name__ == "__main__":
    main()
