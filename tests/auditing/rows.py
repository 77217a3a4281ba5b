"""The rows that audits are tested on."""

import numpy as np

from fairtransport.auditing import Inference


def quick(n=50):
    """Return the options of an audit with few replicates."""
    return {"inference": Inference(n_bootstrap=n, n_permutations=n, random_state=0)}


def rows_at_random(seed=0, n=600, n_groups=3, *, shift=0.15, decimals=None, shares=None):
    """Return scores, which are lower in group b, labels that follow them, groups and weights."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(list("abcdefgh"[:n_groups]), n, p=shares)
    scores = rng.beta(2, 3, n)
    scores = (scores if decimals is None else scores.round(decimals)) * (1 - shift * (groups == "b"))
    return scores, (rng.random(n) < scores).astype(int), groups, rng.random(n) + 0.1
