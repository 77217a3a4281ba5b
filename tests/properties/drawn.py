"""What the properties are tried on: scores with ties, of two to four groups, with whole weights."""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

#: `make trust` tries ten times as many as `make test`.
brief = settings(max_examples=int(os.environ.get("PROPERTY_EXAMPLES", "25")))

UNIT = st.floats(0, 1, allow_subnormal=False)
SCORE = UNIT | st.sampled_from([0.0, 0.25, 0.5, 0.5, 1.0])  # ties are common
GRID = st.integers(0, 64).map(lambda n: n / 64)  # sums of these are exact


class Scored(NamedTuple):
    """Scores, and each row's group; every group has so many rows or more."""

    scores: np.ndarray
    group: np.ndarray


@st.composite
def scored(draw, elements=SCORE, n_groups=4, max_size=40, n_rows=2):
    many = draw(st.integers(2, n_groups))
    size = draw(st.integers(n_rows * many, max_size))
    scores = draw(arrays(np.float64, size, elements=elements).filter(lambda s: np.ptp(s) > 1e-6))
    group = draw(arrays(np.int64, size, elements=st.integers(0, many - 1)))
    group[: n_rows * many] = np.tile(np.arange(many), n_rows)
    return Scored(scores, group)


NUMBER = st.floats(-5, 5, allow_subnormal=False)


def samples(elements=NUMBER, max_size=12):
    return arrays(np.float64, st.integers(1, max_size), elements=elements)


def by_group(scores, group):
    return [scores[group == label] for label in np.unique(group)]
