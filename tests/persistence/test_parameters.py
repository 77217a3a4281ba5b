"""Parameters in model files: each is listed with its type and range; none names a file, a module or a function."""

import inspect
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fairtransport as ft
from fairtransport.persistence import ModelFileError, pack_model, unpack_model
from fairtransport.persistence.recipes import _registry

from .models import EXACT, SUMMED_UP, fitted, forge, load_json, people, preprocessing, scores_of, table

#: Parameters that take a function, or text that is formatted by one: only their defaults are allowed.
ONLY_DEFAULT = {"func", "inverse_func", "kw_args", "inv_kw_args"}
RECIPES = [recipe for recipe in _registry._recipes.values() if recipe.class_name.startswith(("fair", "sklearn"))]


def parameters_of(recipe):
    return set(inspect.signature(recipe.load_class()).parameters)


def load_object(class_name, **params):
    """Load a file with an unfitted object of a class, with any parameters."""
    return load_json({"$": "object", "class": class_name, "params": params, "fitted": {}})


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.short_name)
def test_every_parameter_is_listed(recipe):
    """A new parameter of ours or of scikit-learn is noticed here, not by someone whose model cannot be saved."""
    listed = {*recipe.params, *recipe.not_stored}
    of_other_versions = {"multi_class", "force_int_remainder_cols"}
    assert parameters_of(recipe) - listed <= ONLY_DEFAULT
    assert listed - parameters_of(recipe) <= of_other_versions
    assert not set(recipe.params) & set(recipe.not_stored)
    assert {"memory", "n_jobs", "verbose"} & parameters_of(recipe) <= set(recipe.not_stored)


NOTHING_ALLOWED = [
    {"$": "type", "name": "object"},
    {"$": "slice", "items": [0, 1, None]},
    {"$": "dict", "keys": ["x"], "values": ["/tmp/x"]},  # noqa: S108
    {"$": "grid", "low": 0.0, "high": 1.0, "n_bins": 4},
    [["x"]],
    "x" * 100_000,
    10**30,
    -(10**30),
    {"$": "float", "value": "nan"},
]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.short_name)
def test_values_of_other_types_and_sizes_are_refused(recipe, record_property):
    n_accepted = 0
    names = sorted({*parameters_of(recipe), "memory", "n_jobs", "verbose", "device", "__class__"})
    record_property("cases", len(names) * len(NOTHING_ALLOWED))
    for name in names:
        for value in NOTHING_ALLOWED:
            try:
                load_object(recipe.class_name, **{name: value})
            except ModelFileError:
                continue
            n_accepted += 1
    #: Targets, labels and fill values may be any text or number, counts and amounts a large number.
    assert n_accepted <= 24


@pytest.mark.parametrize("name", ["memory", "n_jobs", "verbose"])
@pytest.mark.parametrize("value", ["folder", "~/folder", 10**6, -1, 1, True, "loky", {"$": "type", "name": "str"}])
def test_parameters_of_the_machine_are_refused_in_files(name, value, record_property):
    record_property("cases", len(RECIPES))
    for recipe in RECIPES:
        with pytest.raises(ModelFileError):
            load_object(recipe.class_name, **{name: value})


def test_parameters_of_the_machine_are_not_stored(tmp_path):
    frame, y, _ = table()
    steps = [("table", preprocessing().set_params(n_jobs=1)), ("model", LogisticRegression())]
    pipe = Pipeline(steps, memory=str(tmp_path / "cache")).fit(frame, y)
    assert (tmp_path / "cache").exists()  # where rows of training went
    again = ft.load(ft.save(pipe, tmp_path / "model.ft")).estimator_
    assert again.memory is None
    assert again.get_params()["table__n_jobs"] is None
    np.testing.assert_array_equal(again.predict_proba(frame), pipe.predict_proba(frame))
    assert b"cache" not in (tmp_path / "model.ft").read_bytes()


class Watch:
    """Counts what Python reports of files that are opened to be written, processes, sockets and new modules."""

    def __init__(self):
        self.events, self._on = [], False
        sys.addaudithook(self._see)  # it cannot be removed

    def _see(self, event, args):
        if not self._on:
            return
        to_write = event == "open" and (
            (isinstance(args[1], str) and set(args[1]) & set("wax+")) or (isinstance(args[2], int) and args[2] & 3)
        )
        started = event in {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect", "exec"}
        changed = event in {"os.mkdir", "os.rename", "os.remove", "os.symlink", "os.link", "os.chmod", "shutil.rmtree"}
        unpickled = event == "pickle.find_class"
        if to_write or started or changed or unpickled:
            self.events.append(event)

    def __enter__(self):
        self.events, self._on = [], True
        return self

    def __exit__(self, *_):
        self._on = False


watch = Watch()


@pytest.mark.parametrize("name", [*EXACT, *SUMMED_UP])
def test_loading_and_predicting_writes_starts_and_unpickles_nothing(name):
    model, X, group = fitted(name)
    content = pack_model(model)[0]
    scores_of(unpack_model(content), X, group)  # what is compiled or imported at the first use
    with watch:
        scores_of(unpack_model(content), X, group)
    assert watch.events == []


def encoder(**options):
    values = np.repeat([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]], [40, 30, 2, 1], axis=0)
    return OneHotEncoder(**options).fit(values), values


ENCODERS = {
    "all": {},
    "dense": {"sparse_output": False},
    "drop": {"drop": "first"},
    "rare": {"min_frequency": 5, "handle_unknown": "infrequent_if_exist"},
    "rare and drop": {"min_frequency": 5, "drop": [1.0, 10.0]},
}


def _set(name, value):
    def change(model, _):
        assert name in model["fitted"]
        model["fitted"][name] = value

    return change


def _take(indices):
    def change(model, arrays):
        name = model["fitted"]["categories_"][0]["name"]
        arrays[name] = arrays[name][[*indices]]

    return change


@pytest.mark.parametrize("options", ENCODERS)
@pytest.mark.parametrize(
    "change",
    [
        _set("_n_features_outs", [1, 1]),  # the encoder would write outside of its matrix
        _set("_n_features_outs", [0, 0]),
        _set("_n_features_outs", [4]),
        _set("_n_features_outs", [10**6, 10**6]),
        _set("_drop_idx_after_grouping", {"$": "objects", "shape": [2], "items": [-1, -1]}),
        _set("_drop_idx_after_grouping", {"$": "objects", "shape": [2], "items": [100, 100]}),
        _set("drop_idx_", {"$": "objects", "shape": [2], "items": [3, 3]}),
        _set("_infrequent_enabled", "x"),
        _take([1, 0, 2, 3]),
        _take([0, 0, 0, 0]),
    ],
)
def test_an_encoder_whose_attributes_disagree_is_refused(options, change):
    model, values = encoder(**ENCODERS[options])
    assert (forge(model, lambda *_: None).transform(values) != model.transform(values)).sum() == 0
    with pytest.raises(ModelFileError):
        forge(model, change)


def test_columns_out_of_range_are_refused():
    frame, _, _ = table()
    model = ColumnTransformer([("a", StandardScaler(), ["hours"]), ("b", "passthrough", ["count"])]).fit(frame)
    for name, value in (
        ("_transformer_to_input_indices", {"$": "dict", "keys": ["a"], "values": [[10**6]]}),
        ("_transformer_to_input_indices", {"$": "dict", "keys": ["z", "b", "remainder"], "values": [[0], [1], []]}),
        ("_transformer_to_input_indices", {"$": "dict", "keys": ["a", "b", "remainder"], "values": [[0], [0], []]}),
        ("output_indices_", {"$": "dict", "keys": ["a"], "values": [{"$": "slice", "items": [0, 1, None]}]}),
        ("transformers_", [{"$": "tuple", "items": ["a", {"$": "type", "name": "str"}, ["hours"]]}]),
        ("transformers_", [{"$": "tuple", "items": ["a", "passthrough", ["hours"]]}]),  # a fitted one is an object
        ("_columns", [{"$": "type", "name": "str"}]),
        ("n_features_in_", 10**9),
    ):
        with pytest.raises(ModelFileError):
            forge(model, _set(name, value))


@pytest.mark.parametrize(
    "columns",
    [
        ["hours", "count"],
        [1, 0],
        [-1],
        slice(0, 2),
        slice("hours", "count"),
        slice(None, "hours"),
        np.array([True, False, True]),
        make_column_selector(dtype_include=float),
    ],
    ids=lambda columns: "selector" if callable(columns) else str(columns),
)
@pytest.mark.parametrize("remainder", ["drop", "passthrough"])
def test_columns_of_every_kind_come_back(columns, remainder):
    frame = pd.DataFrame({"hours": [1.0, 2.0, 4.0], "count": [3, 1, 2], "age": [20.0, 30.0, 50.0]})
    step = StandardScaler()
    model = ColumnTransformer([("a", step, columns)], remainder=remainder).fit(frame)
    model.transformers = [("a", step, [])] if callable(columns) else model.transformers  # functions are not stored
    again = unpack_model(pack_model(model)[0])
    assert np.array_equal(again.transform(frame), model.transform(frame))


def test_a_repaired_pipeline_that_selects_columns_by_a_function_comes_back():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"hours": rng.normal(size=200), "job": rng.choice(["office", "field"], 200)})
    y, groups = rng.integers(2, size=200), np.repeat(["a", "b"], 100)
    encode = ColumnTransformer(
        [
            ("words", OneHotEncoder(sparse_output=False), ["job"]),
            ("numbers", StandardScaler(), make_column_selector(dtype_include=float)),
        ]
    )
    steps = make_pipeline(make_pipeline(encode), LogisticRegression())
    model = ft.QuantileRepairClassifier(steps).fit(frame, y, sensitive_features=groups)
    again = unpack_model(pack_model(model)[0])
    expected = model.predict_proba(frame, sensitive_features=groups)
    assert np.array_equal(again.estimator_.predict_proba(frame), model.estimator_.predict_proba(frame))
    assert np.abs(again.predict_proba(frame, sensitive_features=groups) - expected).max() < 0.05
    assert callable(model.estimator.steps[0][1].steps[0][1].transformers[1][2])  # the model itself keeps it
    again.set_params(amount=0.5).fit(frame, y, sensitive_features=groups)


def pipeline_of(*steps):
    items = [{"$": "tuple", "items": [f"s{number}", step]} for number, step in enumerate(steps)]
    return {"$": "object", "class": "sklearn.pipeline.Pipeline", "params": {"steps": items}, "fitted": {}}


SCALER = {"$": "object", "class": "sklearn.preprocessing.StandardScaler", "params": {}, "fitted": {}}


def test_an_object_that_contains_itself_is_refused():
    assert len(load_json(pipeline_of(SCALER, {"$": "same", "as": "model.steps.0.1"})).steps) == 2
    for path in ("model", "model.steps", "model.steps.1.1"):
        with pytest.raises(ModelFileError):
            load_json(pipeline_of(SCALER, {"$": "same", "as": path}))


def test_references_that_double_the_work_at_each_step_are_refused():
    """Each step would run the one before it twice: a thousand bytes for a billion steps."""
    steps = [SCALER]
    for number in range(30):
        again = {"$": "same", "as": f"model.steps.{number}.1"}
        steps.append(pipeline_of(again, again))
    with pytest.raises(ModelFileError):
        load_json(pipeline_of(*steps))


def test_the_watch_sees_a_cache_of_a_pipeline(tmp_path):
    X, y, _ = people()
    with watch:
        make_pipeline(StandardScaler(), LogisticRegression(), memory=str(tmp_path)).fit(X, y)
    assert {"open", "os.mkdir"} <= set(watch.events)


@pytest.mark.parametrize("what", ["_infrequent_indices", "_default_to_infrequent_mappings"])
@pytest.mark.parametrize("values", [[0], [3], [-1, 9], [2, 2], [10**6], [0, 1, 2, 3], [3, 2]])
def test_groups_of_rare_categories_that_disagree_are_refused(what, values):
    model, _ = encoder(**ENCODERS["rare"])

    with pytest.raises(ModelFileError):
        forge(model, lambda made, arrays: arrays.update({made["fitted"][what][0]["name"]: np.array(values)}))


def test_an_output_of_another_library_is_refused():
    for output in ({"transform": "os"}, {"transform": "pandas", "x": 1}, "pandas", None, []):
        written = {"$": "dict", "keys": [*output], "values": [*output.values()]} if isinstance(output, dict) else output
        with pytest.raises(ModelFileError):
            load_json({**SCALER, "output": written})
    load_json({**SCALER, "output": {"$": "dict", "keys": ["transform"], "values": ["pandas"]}})
