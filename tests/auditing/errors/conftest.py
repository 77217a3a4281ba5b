from __future__ import annotations

import numpy as np
import pytest

from fairtransport.auditing._evidence import HistogramEvidence
from fairtransport.auditing.options import check_options
from fairtransport.histograms import count_scores


def estimate(estimator, scores, labels, groups, *arguments, seed=0, n_draws=200):
    """Return what one estimator of errors returns, without the rest of an audit."""
    evidence = HistogramEvidence(count_scores(scores, labels, sensitive_features=groups, n_bins=1024))
    options = check_options(
        evidence.histograms.grid,
        target="barycenter",
        thresholds=None,
        confidence=0.95,
        n_bootstrap=n_draws,
        n_permutations=20,
    )
    return estimator(evidence, options, *arguments, np.random.default_rng(seed))


@pytest.fixture(name="estimate")
def _estimate():
    return estimate
