"""How people use estimators: through pipelines and searches, copied, pickled, in threads, with wrong parameters."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from tests import worlds

import fairtransport as ft
from fairtransport.linear import SgdSettings

pytestmark = pytest.mark.trust

METHODS = ("fit", "predict", "predict_proba", "score")


def people(n=600, seed=0):
    return worlds.people(n, seed, aware=True)


def cot(**options):
    return ft.TransportClassifier(parity_weight=1.0, **options)


CLASSIFIERS = {
    "COT": cot,
    "COT of each group": lambda: cot(group_specific=True),
    "DOT": lambda: ft.TransportClassifier(distance="discrete", parity_weight=1.0),
    "the paper's COT": lambda: cot(solver=SgdSettings(n_updates=200, random_state=0)),
    "repair": lambda: ft.QuantileRepairClassifier(LogisticRegression()),
}
every = pytest.mark.parametrize("name", CLASSIFIERS)


def asking(name, alias=True):
    """The classifier, with sensitive_features requested wherever it takes them."""
    model = CLASSIFIERS[name]()
    for method in METHODS:
        getattr(model, f"set_{method}_request")(sensitive_features=alias)
    return model


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@every
@pytest.mark.parametrize("alias", [True, "who"])
def test_pipeline(routing, name, alias):
    X, y, group = people()
    told = {"sensitive_features" if alias is True else alias: group}
    pipe = make_pipeline(StandardScaler(), asking(name, alias)).fit(X, y, **told)
    scaled = StandardScaler().fit_transform(X)
    alone = CLASSIFIERS[name]().fit(scaled, y, sensitive_features=group)
    found, expected = pipe.predict_proba(X, **told), alone.predict_proba(scaled, sensitive_features=group)
    np.testing.assert_array_equal(found, expected)
    assert pipe.score(X, y, **told) == alone.score(scaled, y, sensitive_features=group)


@every
def test_without_a_request_nothing_is_passed_in_silence(routing, name):
    X, y, group = people()
    pipe = make_pipeline(StandardScaler(), CLASSIFIERS[name]())
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sensitive_features"):
        pipe.fit(X, y, sensitive_features=group)


@every
def test_grid_search(routing, name):
    X, y, group = people()
    grid = {"amount": [0.0, 1.0]} if name == "repair" else {"parity_weight": [0.0, 3.0]}
    search = GridSearchCV(asking(name), grid, cv=2, error_score="raise").fit(X, y, sensitive_features=group)
    assert len(search.cv_results_["params"]) == 2
    assert next(iter(search.best_params_)) in grid
    # A search does not hand metadata on to predict_proba (scikit-learn 1.9); the estimator that it found takes them.
    assert search.best_estimator_.predict_proba(X, sensitive_features=group).shape == (600, 2)


def test_repair_of_scores_in_a_pipeline(routing):
    """A transformer, behind a transformer that makes scores: groups go to both fit and transform."""
    X, _, group = people()
    squeeze = FunctionTransformer(lambda X: 1 / (1 + np.exp(-X[:, 0])))
    repair = ft.QuantileRepair().set_fit_request(sensitive_features=True).set_transform_request(sensitive_features=True)
    pipe = make_pipeline(squeeze, repair).fit(X, sensitive_features=group)
    scores = squeeze.transform(X)
    alone = ft.QuantileRepair().fit(scores, sensitive_features=group).transform(scores, sensitive_features=group)
    np.testing.assert_array_equal(pipe.transform(X, sensitive_features=group), alone)
    assert pipe[-1].get_feature_names_out().tolist() == ["repaired"]


@pytest.mark.parametrize("name", ["COT", "DOT"])
def test_calibration_of_blind_models(routing, name):
    X, y, group = people()
    model = CLASSIFIERS[name]().set_fit_request(sensitive_features=True)
    calibrated = CalibratedClassifierCV(model, cv=2).fit(X, y, sensitive_features=group)
    assert calibrated.predict_proba(X).shape == (600, 2)


@every
def test_ten_threads_fit_and_predict_at_once(name):
    sets = [people(200, seed=seed) for seed in range(10)]

    def work(data):
        X, y, group = data
        model = CLASSIFIERS[name]().fit(X, y, sensitive_features=group)
        return model, model.predict_proba(X, sensitive_features=group)

    alone = [work(data) for data in sets]
    with ThreadPoolExecutor(10) as pool:
        together = list(pool.map(work, sets))
        shared, (X, _, group) = alone[0][0], sets[0]
        calls = list(pool.map(lambda _: shared.predict_proba(X, sensitive_features=group), range(20)))
    for (_, one), (_, other) in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)
    for scores in calls:
        np.testing.assert_array_equal(scores, alone[0][1])


BAD = {
    "criterion": ["parity", None, 1],
    "randomize": ["yes", 1, None, True],  # the last without equalized odds
    "parity_weight": [-1.0, "3", None, np.nan],
    "max_disparity": [-0.1, "low", np.nan, 0.1],  # the last with a weight beside it
    "solver": ["adam", None, 1],
    "tol": [0.0, -1.0, "tight", None],
    "max_iter": [0, 1.5, None],
    "scale": ["ranks", 1],
    "target": ["nobody", 1.5, [2.0, 3.0]],
    "distance": ["exact", 2, None],
    "online": ["slow", 1000.0],
    "group_specific": ["yes", 0],
    "groups": ["each", 1],
    "repair": ["full", 1],
    "random_state": ["x", -1, 1.5],
    "verbose": ["no", 2],
    "amount": [-0.1, 1.1, None, "all"],
    "spread": ["wide", 1, None],
    "cv": ["five", -1],
    "range": ["unit", None, (1.0, 0.0), (0.0, np.inf), 3],
    "estimator": [3, "logistic", StandardScaler()],
}
WRONG = [
    (name, parameter, place)
    for name in CLASSIFIERS
    for parameter in CLASSIFIERS[name]().get_params(deep=False)
    for place in range(len(BAD[parameter]))
]


@pytest.mark.parametrize(("name", "parameter", "place"), WRONG)
def test_every_wrong_parameter_is_refused_in_fit(name, parameter, place):
    """Every parameter that there is, so that a new one needs an entry in BAD."""
    X, y, group = people(60)
    model = CLASSIFIERS[name]().set_params(**{parameter: BAD[parameter][place]})
    with pytest.raises((TypeError, ValueError)) as caught:
        model.fit(X, y, sensitive_features=group)
    if parameter not in {"estimator", "random_state", "cv"}:  # scikit-learn words the last two
        assert parameter in str(caught.value)


REPAIR = [(parameter, place) for parameter in ft.QuantileRepair().get_params() for place in range(len(BAD[parameter]))]


@pytest.mark.parametrize(("parameter", "place"), REPAIR)
@pytest.mark.parametrize("method", ["fit", "fit_transform", "partial_fit"])
def test_every_wrong_parameter_of_the_repair_of_scores_is_refused(method, parameter, place):
    scores, group = np.linspace(0, 1, 40), np.arange(40) % 2
    repair = ft.QuantileRepair().set_params(**{parameter: BAD[parameter][place]})
    with pytest.raises((TypeError, ValueError), match=parameter):
        getattr(repair, method)(scores, sensitive_features=group)


@every
def test_wrong_parameters_are_refused_in_partial_fit(name):
    """In the first call, which is a fit, and in a later one where a parameter of the stream was set in between."""
    X, y, group = people(60)
    for parameter in {"online", "groups", "repair"} & set(CLASSIFIERS[name]().get_params()):
        for wrong in BAD[parameter]:
            for fitted in (False, True):
                model = CLASSIFIERS[name]()
                if fitted:
                    model.fit(X, y, sensitive_features=group)
                with pytest.raises((TypeError, ValueError), match=parameter):
                    model.set_params(**{parameter: wrong}).partial_fit(X, y, sensitive_features=group)


@every
def test_classes_in_partial_fit_are_compared(name):
    """As scikit-learn's convention has it; the first call, a fit, needs both classes anyway."""
    X, y, group = people(60)
    model = CLASSIFIERS[name]()
    for classes in ([0, 1], None, np.array([1, 0])):
        model.partial_fit(X, y, classes, sensitive_features=group)
    for fitted in (model, CLASSIFIERS[name]()):
        with pytest.raises(ValueError, match="classes must be the two classes"):
            fitted.partial_fit(X, y, classes=[0, 2], sensitive_features=group)
