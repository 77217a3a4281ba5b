import numpy as np
import pytest

from fairtransport.auditing._evidence import Evidence
from fairtransport.auditing.options import Inference, check_options
from fairtransport.histograms import count_scores


def estimate(estimator, scores, labels, groups, *arguments, seed=0, n_draws=200):
    """Return what one estimator of errors returns, without the rest of an audit."""
    evidence = Evidence(count_scores(scores, labels, sensitive_features=groups, n_bins=1024))
    inference = Inference(n_bootstrap=n_draws, n_permutations=20)
    options = check_options(evidence.histograms.grid, inference=inference)
    return estimator(evidence, options, *arguments, np.random.default_rng(seed))


@pytest.fixture(name="estimate")
def _estimate():
    return estimate
