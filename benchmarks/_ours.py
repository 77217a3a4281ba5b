"""Our estimators, constructed here for all benchmarks."""

from __future__ import annotations

from fairtransport import ContinuousDistance, TransportClassifier, TransportRegressor
from fairtransport.linear import SgdSettings

DISTANCES = ("continuous", "discrete")


def classifier(distance="continuous", **options):
    return TransportClassifier(distance=distance, **options)


def regressor(distance="continuous", **options):
    return TransportRegressor(distance=distance, **options)


def boosting(estimator=None, **options):
    from fairtransport.boosting import TransportBoostingClassifier  # noqa: PLC0415 - needs LightGBM

    return TransportBoostingClassifier(estimator, **options)


def sgd_classifier(*, n_fourier_features=50, strength=0.1, **settings):
    """Return the paper's set-up: L2, opposite duals, matched pairs, its algorithm box."""
    distance = ContinuousDistance("l2", strength, n_fourier_features=n_fourier_features, kernel_variance=0.1)
    return TransportClassifier(distance=distance, solver=SgdSettings(random_state=0, **settings))
