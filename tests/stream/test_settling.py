"""After a jump theta comes to rest: each update lowers the penalty on the sketches, so nothing swings around parity."""

from functools import partial

import numpy as np
import pytest
from tests.worlds import people

import fairtransport as ft
from fairtransport.linear import SgdSettings
from fairtransport.metrics import strong_pairwise_disparity

SGD = {"solver": SgdSettings(n_updates=400, random_state=0)}
VARIANTS = {
    "COT": (ft.TransportClassifier, {}),
    "COT, much parity": (ft.TransportClassifier, {"parity_weight": 10.0}),
    "COT to a group": (ft.TransportClassifier, {"parity_weight": 10.0, "target": "b"}),
    "COT of each group": (ft.TransportClassifier, {"group_specific": True}),
    "the paper's COT": (ft.TransportClassifier, SGD),
    "DOT": (partial(ft.TransportClassifier, distance="discrete"), {}),
    "DOT, much parity": (partial(ft.TransportClassifier, distance="discrete"), {"parity_weight": 10.0}),
    "the paper's DOT": (partial(ft.TransportClassifier, distance="discrete"), SGD),
}


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.filterwarnings("ignore::fairtransport.FairnessWarning")
def test_it_settles_at_parity_after_a_jump(name):
    kind, options = VARIANTS[name]
    X, y, group = people(600, 0, first=0.0, aware=True)
    model = kind(**options).fit(X, y, sensitive_features=group)
    kept, _, of_kept = people(2000, 2, first=1.5, aware=True)
    stream, _, of_stream = people(2400, 1, first=1.5, aware=True)
    needs = {"sensitive_features": of_kept} if model.group_specific else {}

    def disparity():
        return strong_pairwise_disparity(model.predict_proba(kept, **needs)[:, 1], sensitive_features=of_kept)

    found = [disparity()]
    for start in range(0, 2400, 60):
        rows = slice(start, start + 60)
        found.append(disparity())
        model.partial_fit(stream[rows], sensitive_features=of_stream[rows])
    assert found[0] > 0.1
    # Two samples of 1,000 rows of one distribution are about .01 apart. Steps of a fixed size swung by .03 from batch
    # to batch.
    assert max(found[-10:]) < 0.025
    assert np.abs(np.diff(found[-10:])).max() < 0.012
