"""Every check that scikit-learn generates, on the public classes, with metadata routing; none is expected to fail."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone, is_regressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import fairtransport as ft
from fairtransport.linear import SgdSettings

from .grouped import MatrixRepair, groups_from_rows

# The checks train on a handful of random rows, whose groups are read from their digits: parity is not to be had.
pytestmark = [pytest.mark.trust, pytest.mark.filterwarnings("ignore::fairtransport.FairnessWarning")]

CLASSES = (
    ft.TransportClassifier,
    ft.TransportRegressor,
    ft.QuantileRepairClassifier,
    ft.QuantileRepairRegressor,
    ft.BlindRepairClassifier,
    ft.BlindRepairRegressor,
)
ESTIMATORS = [
    ft.TransportClassifier(parity_weight=1.0),
    ft.TransportClassifier(),
    ft.TransportClassifier(group_specific=True),
    ft.TransportClassifier(distance="discrete", parity_weight=1.0),
    ft.TransportClassifier(distance="discrete", solver=SgdSettings(n_updates=60, random_state=0)),
    ft.TransportRegressor(parity_weight=0.1),
    ft.TransportRegressor(distance="discrete"),
    ft.QuantileRepairClassifier(LogisticRegression(), repair=ft.QuantileRepair(groups=ft.GroupPolicy(min_size=1))),
    ft.QuantileRepairRegressor(Ridge(), cv=None, repair=ft.QuantileRepair(groups=ft.GroupPolicy(min_size=1))),
    ft.BlindRepairClassifier(LogisticRegression(), LogisticRegression(), cv=2),
    ft.BlindRepairRegressor(LinearRegression(), LogisticRegression(), cv=2),
    MatrixRepair(groups=ft.GroupPolicy(min_size=1)),
]
ELSEWHERE = "check_array_api_input"  # needs a setting from before SciPy is loaded; see below


@pytest.fixture(autouse=True)
def grouped():
    with groups_from_rows(*CLASSES), config_context(enable_metadata_routing=True):
        yield


def name_of(check):
    return getattr(check, "func", check).__name__


@parametrize_with_checks(ESTIMATORS)
def test_generated_checks(estimator, check):
    left_out = [ELSEWHERE]
    if isinstance(getattr(estimator, "solver", ""), SgdSettings):  # draws rows by their positions; copies have others
        left_out = [ELSEWHERE, "check_sample_weight_equivalence"]
    if isinstance(estimator, CLASSES[-2:]):  # of ten rows, where copies share a fold with others
        left_out = [ELSEWHERE, "check_sample_weight_equivalence", "check_estimators_nan_inf"]
    if not name_of(check).startswith(tuple(left_out)):
        check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_no_check_is_missed(estimator):
    """So many there are; a version of scikit-learn that yields none would be noticed."""
    names = [name_of(check) for _, check in estimator_checks_generator(estimator)]
    assert len(names) > 40
    wanted = "check_transformer_general" if hasattr(estimator, "transform") else "check_classifiers_train"
    wanted = "check_regressors_train" if is_regressor(estimator) else wanted
    assert {"check_sample_weight_equivalence_on_dense_data", wanted} <= set(names)


def test_checks_of_array_api_input():
    """In a process of its own, in which SciPy knows of other kinds of arrays."""
    code = (
        "import json\n"
        "from tests.contract.test_sklearn_checks import CLASSES, ESTIMATORS, ELSEWHERE, groups_from_rows, name_of\n"
        "from sklearn.utils.estimator_checks import estimator_checks_generator\n"
        "ran = []\n"
        "for estimator in ESTIMATORS:\n"
        "    for one, check in estimator_checks_generator(estimator):\n"
        "        if name_of(check) == ELSEWHERE:\n"
        "            with groups_from_rows(*CLASSES):\n"
        "                check(one)\n"
        "            ran.append(type(one).__name__)\n"
        "print(json.dumps(ran))\n"
    )
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    yielded = [
        type(e).__name__ for e in ESTIMATORS for _, c in estimator_checks_generator(e) if name_of(c) == ELSEWHERE
    ]
    assert json.loads(done.stdout) == yielded


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_column_names_are_kept_and_compared(estimator):
    estimator_checks.check_dataframe_column_names_consistency(type(estimator).__name__, estimator)


def test_pipelines_inside_a_repair_pass_the_same_names():
    nested = ft.QuantileRepairClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()),
        repair=ft.QuantileRepair(groups=ft.GroupPolicy(min_size=1)),
    )
    estimator_checks.check_dataframe_column_names_consistency("QuantileRepairClassifier", nested)


# What scikit-learn runs on its own estimators and does not yield: tables coming out of a transformer.
OF_TRANSFORMERS = [
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_global_output_transform_pandas",
    "check_set_output_transform_polars",
    "check_global_set_output_transform_polars",
]


@pytest.mark.parametrize("check", OF_TRANSFORMERS)
def test_checks_of_tables_that_come_out(check):
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # it fits tables and transforms arrays
        getattr(estimator_checks, check)("MatrixRepair", MatrixRepair(groups=ft.GroupPolicy(min_size=1)))


class Unheard:
    """Of a type that no parameter takes."""


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_no_parameter_takes_a_type_of_its_own(estimator):
    """As scikit-learn's check_param_validation does for those that list their constraints: every parameter, at fit.

    The text names the parameter, and what it was given is still there afterwards.
    """
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(40, 3))
    y = (X[:, 0] > 0.5).astype(int)
    for name in estimator.get_params(deep=False):
        wrong = Unheard()
        model = clone(estimator).set_params(**{name: wrong})
        with pytest.raises((TypeError, ValueError)) as caught:
            model.fit(X, y)
        assert name in str(caught.value) or name == "random_state"  # scikit-learn words that one
        assert model.get_params(deep=False)[name] is wrong
