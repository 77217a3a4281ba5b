"""Files whose checksums are right and whose models are not: our own error, or a model, and nothing else."""

import contextlib
import copy
import functools
import json
import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport.persistence import ModelFileError, pack_model, unpack_model
from fairtransport.persistence._files import _model_of
from fairtransport.storage import Container, pack_container, unpack_container

from .models import fitted, forge, load_json, people

pytestmark = pytest.mark.trust

NAMES = [
    "COT",
    "COT of each group",
    "repair of a pipeline",
    "repair of a table",
    "logistic regression",
    "raw table to COT",
]


def held(name):
    return unpack_container(pack_model(fitted(name)[0])[0], kind="model")


def places(value, path=()):
    """Paths to everything in a piece of JSON."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def put(schema, path, value):
    changed = copy.deepcopy(schema)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return changed


def load_or_refuse(schema, arrays):
    """Load a file, which gives a model or our own error."""
    with contextlib.suppress(ModelFileError):
        assert hasattr(unpack_model(pack_container("model", schema, arrays)), "get_params")


def replaced(name, which, change):
    """Load the file of a model in which an array was replaced by a function of it."""
    return forge(fitted(name)[0], lambda _, arrays: arrays.update({which: change(arrays[which])}))


ODD = st.sampled_from(
    [
        None, True, -1, 0, 3, 2**70, 0.5, "", "model", "nan", "\x00", [], {}, [[]], {"$": "object"},
        {"$": "object", "class": "builtins.eval", "params": {}, "fitted": {}},
        {"$": "object", "class": "os.system", "params": {"command": "false"}, "fitted": {}},
        {"$": "object", "class": ["fairtransport.QuantileRepair"], "params": {}, "fitted": {}},
        {"$": "object", "class": "sklearn.pipeline.Pipeline", "params": {"steps": []}, "fitted": {"predict": 1}},
        {"$": "object", "class": "sklearn.linear_model.LogisticRegression", "params": {"x": 1}, "fitted": {}},
        {"$": "object", "class": "sklearn.linear_model.LogisticRegression", "params": 3, "fitted": {"__class__": 1}},
        {"$": "same", "as": "model"}, {"$": "same", "as": ["x"]}, {"$": "array", "name": "model.coef_"},
        {"$": "array", "name": ["x"]}, {"$": "float", "value": "many"}, {"$": "tuple", "items": 3},
        {"$": "dict", "keys": [[]], "values": [1]}, {"$": "dict", "keys": [1, 2], "values": [1]},
        {"$": "slice", "items": [1]}, {"$": "dtype", "name": "O,O"}, {"$": "type", "name": "numpy.ndarray"},
        {"$": "objects", "shape": [2], "items": [1]}, {"$": "objects", "shape": [-1], "items": []},
        {"$": "objects", "shape": [1], "items": [{"$": "tuple", "items": []}]},
        {"$": "groups", "spec": 3}, {"$": "groups"}, {"$": "grid", "low": 1, "high": 0, "n_bins": 2**62},
        {"$": "map", "knots": [0.5, 0.1], "images": [0.1, 0.2]}, {"$": "fourier", "frequency": 1, "phase": 2},
        {"$": "duals", "features": 1, "group_weights": 1, "target_weights": 1, "groups": 1}, {"$": ["tuple"]},
    ]
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=80)
@given(data=st.data())
def test_any_change_of_the_schema(name, data):
    container = held(name)
    path = data.draw(st.sampled_from(list(places(container.schema))[1:]), label="path")
    load_or_refuse(put(container.schema, path, data.draw(ODD, label="value")), container.arrays)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60)
@given(data=st.data())
def test_any_change_of_the_arrays(name, data):
    container = held(name)
    arrays = dict(container.arrays)
    which = data.draw(st.sampled_from(sorted(arrays)), label="array")
    array = arrays[which]
    change = data.draw(st.sampled_from(["shape", "nan", "text", "empty", "longer", "gone", "more"]), label="change")
    if change == "gone":
        del arrays[which]
    elif change == "more":
        arrays["unasked"] = array
    else:
        arrays[which] = {
            "shape": lambda: array[None],
            "nan": lambda: np.full(array.shape, np.nan),
            "text": lambda: np.full(array.shape, "x"),
            "empty": lambda: array[:0],
            "longer": lambda: np.concatenate([array, array]),
        }[change]()
    load_or_refuse(container.schema, arrays)


@pytest.mark.parametrize(
    ("which", "array"),
    [
        ("model.coef_", np.zeros((1, 4))),
        ("model.coef_", np.full((1, 3), np.inf)),
        ("model.coef_", np.array([["a", "b", "c"]])),
        ("model.intercept_", np.zeros(2)),
        ("model.classes_", np.array(["a", "b", "c"])),
        ("model.duals_.group_weights", np.zeros((3, 50))),
        ("model.duals_.features.phase", np.zeros(49)),
        ("model.common_coef_", np.zeros(4)),
        ("model.common_coef_", np.full(3, np.nan)),
        ("model.common_coef_", np.zeros((1, 3))),
    ],
)
def test_weights_that_do_not_fit_are_refused(which, array):
    assert forge(fitted("COT")[0], lambda *_: None).coef_.shape == (1, 3)
    with pytest.raises(ModelFileError):
        replaced("COT", which, lambda _: array)


@pytest.mark.parametrize("name", ["COT", "COT of each group"])
@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("weight", lambda c: c[:-1]),
        ("weight", lambda c: np.full_like(c, np.inf)),
        ("rank_disparity", lambda c: c[:, None]),
        ("log_loss", lambda c: np.full(c.shape, "x")),
        ("theta", lambda c: c[:-1]),
        ("theta", lambda c: c[:, :1]),
        ("theta", lambda c: np.concatenate((c, c), axis=1)),
        ("theta", lambda c: c[:, :, :-1]),
        ("theta", lambda c: np.full_like(c, np.nan)),
        ("theta", lambda c: c[:, 0]),
        ("spread", lambda c: c[:, :1]),
        ("spread", lambda c: c[:, :, ::-1]),
        ("spread", lambda c: c[:, :, :1]),
        ("spread", lambda c: c + 1.0),
    ],
)
def test_a_path_that_does_not_fit_is_refused(name, column, change):
    """A model of another point of the path must work as the model itself does."""
    path = held(name).schema["model"]["fitted"]["path_"]
    with pytest.raises(ModelFileError):
        replaced(name, path["values"][path["keys"].index(column)]["name"], change)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("path_", {"$": "dict", "keys": [], "values": []}),
        ("path_", {"$": "dict", "keys": ["weight"], "values": [3]}),
        ("path_", 3),
        ("before_after_", {"$": "dict", "keys": ["auc"], "values": [3]}),
        ("before_after_", {"$": "dict", "keys": ["auc"], "values": [{"$": "tuple", "items": [0.5]}]}),
        ("before_after_", {"$": "dict", "keys": ["auc"], "values": [{"$": "tuple", "items": [0.5, "x"]}]}),
        ("before_after_", {"$": "dict", "keys": [1], "values": [{"$": "tuple", "items": [0.5, 0.5]}]}),
        ("before_after_", []),
        ("common_intercept_", "x"),
        ("common_intercept_", {"$": "float", "value": "nan"}),
        ("information_kept_", {"$": "float", "value": "inf"}),
        ("information_kept_", None),
        ("parity_weight_", -1.0),
        ("parity_weight_", {"$": "float", "value": "nan"}),
    ],
)
def test_figures_that_are_none_are_refused(field, value):
    with pytest.raises(ModelFileError):
        forge(fitted("COT")[0], lambda model, _: model["fitted"].update({field: value}))


@functools.cache
def blind():
    X, y, group = people()
    return ft.BlindRepairClassifier(LogisticRegression(), cv=2).fit(X, y, sensitive_features=group)


@pytest.mark.parametrize("value", [1.7e308, -1.7e308, 5e-324])
def test_numbers_whose_products_are_not_finite_are_refused_or_score(value):
    """Every number of a blind repair in turn, and all of an array: what loads gives probabilities."""
    model, X = blind(), people()[0][:20]
    container = unpack_container(pack_model(model)[0], kind="model")
    names = [name for name, array in container.arrays.items() if array.dtype.kind == "f"]
    paths = [path for path in places(container.schema["model"]) if path and isinstance(at(container, path), float)]
    changes = [lambda _, arrays, n=name: arrays.update({n: np.full_like(arrays[n], value)}) for name in names]
    changes += [lambda model, _, p=path: model.update(put(model, p, value)) for path in paths]
    refused = 0
    for change in changes:
        try:
            scores = forge(model, change).predict_proba(X)
        except ModelFileError:
            refused += 1
        else:
            assert np.isfinite(scores).all()
    assert 0 < refused < len(changes)


def at(container, path):
    return functools.reduce(operator.getitem, path, container.schema["model"])


@pytest.mark.parametrize("change", [lambda images: images[::-1], lambda images: images - 1, lambda images: images + 0.5,
                                    lambda images: images.astype(np.float32)])  # fmt: skip
def test_maps_that_descend_or_leave_the_range_are_refused(change):
    with pytest.raises(ModelFileError):
        replaced("repair", "model.maps_.0.images", change)


def test_values_as_deep_as_json_allows_are_refused():
    deep = json.loads("[" * 90 + "]" * 90)
    container = Container("model", {"model": deep, "people_per_point": 5, "changes": {}}, {}, {}, "", 1)
    with pytest.raises(ModelFileError, match="levels deep"):
        _model_of(container)


def test_no_code_runs(tmp_path):
    """The class is looked up in a list; its name is never imported."""
    with pytest.raises(ModelFileError, match="class that is not allowed"):
        load_json({"$": "object", "class": "antigravity.x", "params": {}, "fitted": {}})


def test_what_is_left_out_of_a_path_is_missed():
    def without_theta(model, arrays):
        path = model["fitted"]["path_"]
        del arrays[path["values"].pop(path["keys"].index("theta"))["name"]]
        path["keys"].remove("theta")

    with pytest.raises(ModelFileError):
        forge(fitted("COT")[0], without_theta)
    with pytest.raises(ModelFileError):
        forge(fitted("COT of each group")[0], lambda model, _: model["fitted"].pop("common_intercept_"))
