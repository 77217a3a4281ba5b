"""Quantile repair: fit and transform, against one sort and against EquiPy."""

from __future__ import annotations

import os
import warnings

import numpy as np
from equipy.fairness import FairWasserstein

from benchmarks import _timing
from benchmarks.audit import scored
from fairtransport import QuantileRepair, make_groups

CLAIM = (
    "Transform of 10 million scores in 4 groups: at most 2 times np.sort of the same scores, and at least 10 times "
    "as fast as EquiPy's transform."
)


def check(scores, codes, repaired, theirs):
    """Both carry each group to the size-weighted W2 barycenter; EquiPy adds noise of up to 1e-4."""
    for code in np.unique(codes):
        own, other = np.sort(repaired[codes == code]), np.sort(theirs[codes == code])
        middle = slice(own.size // 100, -(own.size // 100))
        np.testing.assert_allclose(own[middle], other[middle], atol=2e-3)
    assert np.abs(repaired - scores).max() > 0.01


def run(report):
    cores = os.cpu_count() or 1
    sizes = {100_000: (5, 2)} if report.quick else {1_000_000: (15, 3), 10_000_000: (9, 1)}
    report.settings.update(groups=4, target="barycenter_w2 (EquiPy's)", cores=cores)
    for n, (rounds, few) in sizes.items():
        scores, codes, _ = scored(n, n_groups=4)
        groups = make_groups(codes)
        repair = QuantileRepair("barycenter_w2").fit(scores, sensitive_features=groups)
        peer = FairWasserstein(sigma=1e-4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # EquiPy's own
            peer.fit(scores, codes)

        def ours(number, repair=repair, scores=scores, groups=groups):
            with _timing.our_threads(number):
                return repair.transform(scores, sensitive_features=groups)

        def theirs(peer=peer, scores=scores, codes=codes):
            return peer.transform(scores, codes)

        if n <= 1_000_000:
            check(scores, codes, ours(1), theirs())
        calls = {
            "one": lambda call=ours: call(1),
            "all": lambda call=ours: call(cores),
            "np.sort": lambda s=scores: np.sort(s),
            "EquiPy": theirs,
        }
        times = _timing.race(calls, rounds, {"EquiPy": few})
        judged = n == 10_000_000
        for who, told in (("all", f"all {cores} cores"), ("one", "one thread")):
            case = f"transform, {n:,} scores, {told}"
            most, least = (2 if judged and who == "all" else np.inf), (10 if judged else 0)
            report.add(
                _timing.compare(case, times[who], "np.sort (one thread)", times["np.sort"], at_most=most),
                _timing.compare(case, times[who], "EquiPy transform", times["EquiPy"], at_least=least),
            )
        fits = _timing.race(
            {
                "ours": lambda s=scores, g=groups: QuantileRepair().fit(s, sensitive_features=g),
                "ours W2": lambda s=scores, g=groups: QuantileRepair("barycenter_w2").fit(s, sensitive_features=g),
                "np.sort": calls["np.sort"],
                "EquiPy": lambda s=scores, c=codes: FairWasserstein(sigma=1e-4).fit(s, c),
            },
            3,
            {"EquiPy": 1},
        )
        for who, told in (("ours", "W1 barycenter"), ("ours W2", "W2 barycenter")):
            report.add(
                _timing.compare(f"fit, {n:,} scores, {told}", fits[who], "np.sort", fits["np.sort"]),
                _timing.compare(f"fit, {n:,} scores, {told}", fits[who], "EquiPy fit", fits["EquiPy"]),
            )
    report.note("EquiPy has no barycenter of its own at fit: it averages quantile functions at each transform.")


if __name__ == "__main__":
    _timing.main("repair", CLAIM, run)
