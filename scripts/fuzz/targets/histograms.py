"""Histograms from the untrusted arrays of a checkpoint."""

from __future__ import annotations

import json

import numpy as np

from fairtransport import GroupPolicy
from fairtransport.histograms import GroupHistograms, count_scores
from fairtransport.storage.schema import from_json

SHARE = 1
REFUSALS = (ValueError,)


def seeds() -> list[bytes]:
    """Return the arrays of small histograms as JSON, and inconsistent ones."""
    kinds = [
        count_scores([0.1, 0.5, 0.9], sensitive_features=["a", "b", "CANARY7"], n_bins=8),
        count_scores([0.1, 0.9], [0, 1], sensitive_features=[1, 2], sample_weight=[1.0, 2.5], n_bins=4),
        count_scores(
            [0.1, 0.9],
            sensitive_features={"r": ["a", "b"], "s": ["c", "d"]},
            groups=GroupPolicy(crossed=False),
            n_bins=4,
        ),
    ]
    made = [{name: array.tolist() for name, array in counted.to_arrays().items()} for counted in kinds]
    spec = json.loads(made[0]["spec"])
    inconsistent = [
        {**made[0], "spec": json.dumps({**spec, **change})} for change in ({"n_bins": 1 << 20}, {"n_classes": 1 << 40})
    ]
    return [json.dumps(one).encode() for one in (*made, *inconsistent, {**made[0], "at": [-1, 2, 3]})]


def case(data: bytes) -> None:
    """Read the case as JSON: names of arrays, and lists."""
    content = from_json(data, name="case")
    if not isinstance(content, dict):
        return
    try:
        arrays = {name: np.array(value) for name, value in content.items()}
    except (ValueError, OverflowError):  # ragged lists, large numbers: no arrays
        return
    counted = GroupHistograms.from_arrays(arrays)
    again = GroupHistograms.from_arrays(counted.to_arrays())
    if not np.array_equal(again.masses, counted.masses) or not np.isfinite(counted.masses).all():
        raise RuntimeError("Histograms differ after storing.")
