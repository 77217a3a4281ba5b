"""The shift of Figure 4 in batches of 100 rows without labels."""

import numpy as np
import pytest

import fairtransport as ft
from fairtransport.linear import SgdSettings
from fairtransport.paper._shifted_adult import adult_by_sex, rows_at_rates

pytestmark = pytest.mark.paper

BATCH, BATCHES, KEPT = 100, 60, 10_000


@pytest.mark.filterwarnings("ignore:Parity cost most of the model:fairtransport.FairnessWarning")  # without the loss
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (ft.ContinuousTransportClassifier, {"parity_weight": 10.0}),
        (ft.ContinuousTransportClassifier, {"solver": "sgd", "parity_weight": np.inf}),
        (ft.DiscreteTransportClassifier, {"parity_weight": 10.0}),
        (ft.DiscreteTransportClassifier, {"solver": "sgd", "parity_weight": np.inf}),
    ],
    ids=["COT", "COT, the paper's", "DOT", "DOT, the paper's"],
)
def test_a_shift_is_corrected_within_60_batches(initial_model, wass1, kind, options, seed):
    split, rng = adult_by_sex(), np.random.default_rng(seed)
    sex, sex_kept = split.sensitive_train["sex"], split.sensitive_test["sex"]
    if "solver" in options:
        options = {**options, "solver": SgdSettings(random_state=seed)}
    model = kind(initial_model, target="Male", **options)
    before = rows_at_rates(split.y_train, sex, {"Female": 0.1}, rng)
    model.fit(split.X_train[before], split.y_train[before], sensitive_features={"sex": sex[before]})
    pool = rows_at_rates(split.y_train, sex, {"Female": 0.4}, rng)
    kept = rng.choice(rows_at_rates(split.y_test, sex_kept, {"Female": 0.4}, rng), KEPT, replace=False)
    at_once = wass1(model, split.X_test[kept], sex_kept[kept])
    accuracy = model.score(split.X_test[kept], split.y_test[kept])
    for rows in rng.permutation(pool)[: BATCH * BATCHES].reshape(BATCHES, BATCH):
        model.partial_fit(split.X_train[rows], sensitive_features={"sex": sex[rows]})
    after = wass1(model, split.X_test[kept], sex_kept[kept])
    assert 0.10 < at_once < 0.20
    assert after <= 0.04
    assert model.score(split.X_test[kept], split.y_test[kept]) > accuracy - 0.015
