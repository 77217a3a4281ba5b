from __future__ import annotations

import pytest

from fairtransport.paper._methods import METRICS, PUBLISHED, published_value


def test_sums_of_the_printed_columns():
    # Added up by hand from Table 1, so that one mistyped digit shows.
    sums = {
        dataset: [round(sum(m[metric] for m in methods.values()), 3) for metric in METRICS]
        for dataset, methods in PUBLISHED.items()
    }
    assert sums == {
        "Adult": [0.662, 0.388, 0.486, 0.947],
        "German": [1.020, 0.212, 0.173, 0.173],
        "Communities": [1.094, 2.221, 1.941, 10.246],
    }


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (("Adult", "COT (paper)", "SPDD"), 0.044),
        (("Communities (each)", "DPP (W2)", "Wass1"), 0.356),
        (("German", "DOT", "Err-.5"), 0.282),
        (("German", "EquiPy", "Err-.5"), None),
        (("Compas", "DOT", "Err-.5"), None),
        (("Adult", "DOT", "AUC"), None),
    ],
)
def test_value_of_a_variant(asked, expected):
    assert published_value(*asked) == expected
