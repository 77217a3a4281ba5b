"""Generated audits: verdict, intervals, p-values and limits never contradict each other, and seldom the truth.

``python -m benchmarks generated_audits`` runs ten thousand.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest


def run(module, n_audits, seed, **options):
    statuses, made, wrong = Counter(), Counter(), Counter()
    for number in range(n_audits):
        case = module.draw_case(np.random.default_rng([seed, number]), **options)
        assert module.contradictions(case) == [], number
        statuses[case.audit.verdict.status] += 1
        for claim, is_wrong in module.claims(case).items():
            made[claim] += 1
            wrong[claim] += is_wrong
    return statuses, made, wrong


def test_no_contradiction(benchmark_module):
    statuses, _, _ = run(benchmark_module("generated_audits"), 40, 1, max_rows=3000, n_replicates=40)
    assert len(statuses) >= 4


@pytest.mark.trust
def test_no_contradiction_in_more_of_them_and_few_false_claims(benchmark_module):
    statuses, made, wrong = run(benchmark_module("generated_audits"), 120, 2)
    assert len(statuses) >= 5
    for claim, count in made.items():
        # Levels of confidence are .9 to .99; "different" is counted where there is no difference.
        assert wrong[claim] <= 0.1 * count + 4 * np.sqrt(0.09 * count), claim
