"""How often do 95% intervals of audits cover, and are p-values uniform? Worlds whose truth is known."""

from __future__ import annotations

import zlib
from collections import defaultdict

import numpy as np

from benchmarks._audit_worlds import THRESHOLD, worlds
from fairtransport.auditing import Inference, audit_histograms

CLAIM = "95% intervals of an audit cover the truth, and p-values are uniform where groups do not differ."
METRICS = ("wasserstein_disparity", "strong_demographic_disparity", "strong_pairwise_disparity")
SLACK = 2e-3  # of the truth, which is computed on a grid, and of the bins
N_AUDITS, N_REPLICATES = 400, 199


def simulate(world, n_audits, *, n_replicates=N_REPLICATES, seed=0):
    """Audit samples of a world; return for each figure where the truth lies: below, within or above the interval."""
    rng = np.random.default_rng([seed, zlib.crc32(world.name.encode())])
    truths = {}
    positions = defaultdict(list)
    p_values, pair_errors, false_claims = [], [], []
    options = {"thresholds": THRESHOLD, "inference": Inference(0.95, n_replicates, n_replicates, rng)}
    for _ in range(n_audits):
        audit = audit_histograms(world.count(rng), **options)
        compared = [i for i, group in enumerate(audit.groups) if group.judged]
        if len(compared) < 2:
            compared = list(range(len(audit.groups)))
        truth = truths.setdefault(tuple(compared), world.truth(compared))
        for name in METRICS:
            positions[name].append(_position(truth[name], audit.readings[name]))
        names = [audit.groups[i].name for i in compared]
        low, high = names.index(audit.clearest.lower), names.index(audit.clearest.higher)
        positions["pair"].append(_position(truth["distances"][low, high], audit.clearest.estimate))
        means = truth["means"]
        positions["mean_difference"].append(_position(means[high] - means[low], audit.clearest.mean_difference))
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
    p = np.array(p_values)
    return {
        **{name: [float(np.mean(np.array(each) == where)) for where in (-1, 0, 1)] for name, each in positions.items()},
        "p_value": {f"at most {level}": float(np.mean(p <= float(level))) for level in (".01", ".05", ".1", ".5")},
        "a pair falsely called different": float(np.mean(pair_errors)),
        "a false claim in the verdict": float(np.mean(false_claims)),
    }


def _position(truth, estimate):
    """Return -1, 0 or 1: the truth lies below, within or above the interval. A truth of 0 is exact."""
    slack = SLACK * abs(truth) + 1e-6 if truth else 0.0
    return -1 if truth < estimate.low - slack else 1 if truth > estimate.high + slack else 0


def run(report):
    n_audits, n_replicates = (4, 49) if report.quick else (N_AUDITS, N_REPLICATES)
    results = {}
    report.data.update(audits=n_audits, replicates=n_replicates, worlds=results)
    for world in worlds()[:: 10 if report.quick else 1]:
        result = simulate(world, n_audits, n_replicates=n_replicates)
        results[world.name] = {"null": world.is_null, "sizes": world.sizes, "weights": world.weights, **result}
        print(f"  {world.name}: {result}", flush=True)
        report.save()
    covered = [result["strong_pairwise_disparity"][1] for result in results.values()]
    small = [result["p_value"]["at most .05"] for result in results.values() if result["null"]]
    report.note(
        f"{len(results)} worlds, {n_audits} audits each: intervals of SPDD cover the truth in {min(covered):.1%} to "
        f"{max(covered):.1%} of audits; in {len(small)} worlds without a difference {np.mean(small):.1%} of p-values "
        "are at most .05."
    )
