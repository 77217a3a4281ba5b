"""Regressors in a stream that drifts, in units of y and beyond the range of the first rows."""

from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from tests.worlds import people

import fairtransport as ft
from fairtransport.linear import OnlineSettings
from fairtransport.metrics import kolmogorov_smirnov_disparity
from fairtransport.stream import ContinualAdjuster

DOT_REGRESSOR = partial(ft.TransportRegressor, distance="discrete")


@pytest.mark.parametrize("wrapped", [True, False])
def test_the_repair_follows_a_drift_without_labels(wrapped, tmp_path):
    X, y, group = people(3000, real=True)
    y = 1000 * y
    model = ft.QuantileRepairRegressor(Ridge(), repair=ft.QuantileRepair(online=OnlineSettings(500))).fit(
        X, y, sensitive_features=group
    )
    drifted = X + (group == "b")[:, None] * [0.0, 2.0, 0.0]
    given = drifted if wrapped else model.estimator_.predict(drifted)
    before = model.predict(drifted, sensitive_features=group)
    adjuster = ContinualAdjuster(model if wrapped else model.repair_, store=tmp_path / "store", checkpoint_every=4)
    for rows in np.array_split(np.arange(len(X)), 15):
        adjuster.adjust(given[rows], sensitive_features=group[rows])
    adjuster.close()
    resumed = ContinualAdjuster.resume(tmp_path / "store").model
    use = resumed.predict if wrapped else resumed.transform
    after = np.asarray(use(given, sensitive_features=group))
    distances = [kolmogorov_smirnov_disparity(x, sensitive_features=group) for x in (before, after)]
    assert distances[0] > 0.4
    assert distances[1] < 0.15


@pytest.mark.parametrize("options", [{}, {"group_specific": True}, {"target": "barycenter"}])
def test_a_linear_regressor_follows_a_drift_without_labels(options, tmp_path):
    X, y, group = people(3000, real=True)
    y = 1000 * y
    kind = ft.TransportRegressor if options else DOT_REGRESSOR
    aware = np.column_stack((X, group == "b"))
    model = kind(parity_weight=3.0, online=OnlineSettings(300), **options).fit(aware, y, sensitive_features=group)
    drifted = aware + (group == "b")[:, None] * [0.0, 2.0, 0.0, 0.0]
    before = model.predict(drifted, sensitive_features=group)
    adjuster = ContinualAdjuster(model, store=tmp_path / "store", checkpoint_every=4, trust_radius=5.0)
    for rows in np.array_split(np.arange(len(X)), 30):
        report = adjuster.adjust(drifted[rows], sensitive_features=group[rows])
        assert np.isfinite(report.scores).all()
    adjuster.close()
    resumed = ContinualAdjuster.resume(tmp_path / "store").model
    after = resumed.predict(drifted, sensitive_features=group)
    np.testing.assert_array_equal(after, adjuster.model.predict(drifted, sensitive_features=group))
    distances = [kolmogorov_smirnov_disparity(x, sensitive_features=group) for x in (before, after)]
    assert distances[0] > 0.4
    assert distances[1] < 0.5 * distances[0]
