"""Does an audit ever contradict itself or the truth? Thousands of generated audits.

``python -m benchmarks.generated_audits [--audits 10000]``: groups of 1 to 50,000 rows, with and without differences,
weights, ties, atoms and strata. Verdict, intervals, p-values, ``--surely`` and ``--fail-above`` are checked against
each other (no contradiction) and against the truth (false claims, of those made). Fixed seeds; the result is stored in
``benchmarks/results/generated_audits.json``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks._generated_audits import claims, contradictions, draw_case


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generated_audits", description=__doc__)
    parser.add_argument("--audits", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "generated_audits.json")
    options = parser.parse_args()
    found, made, wrong, statuses = Counter(), Counter(), Counter(), Counter()
    started = time.perf_counter()
    for number in range(options.audits):
        case = draw_case(np.random.default_rng([options.seed, number]))
        statuses[case.audit.verdict.status] += 1
        for text in contradictions(case):
            found[text] += 1
            print(f"audit {number}: {text}", flush=True)
        for claim, is_wrong in claims(case).items():
            made[claim] += 1
            wrong[claim] += bool(is_wrong)
        if (number + 1) % 500 == 0 or number + 1 == options.audits:
            result = {
                "audits": number + 1,
                "contradictions": dict(found),
                "statuses": dict(statuses),
                "claims": {claim: {"made": made[claim], "false": wrong[claim]} for claim in sorted(made)},
            }
            options.out.write_text(json.dumps(result, indent=1))
            print(f"{number + 1} audits, {time.perf_counter() - started:.0f} s: {result}", flush=True)


if __name__ == "__main__":
    main()
