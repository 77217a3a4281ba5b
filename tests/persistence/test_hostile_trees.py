"""Trees in files whose checksums are right: refused with our own error, or used; no compiled loop gets what is invalid.

`tests/security/test_fuzz_targets.py` has random changes of these files.
"""

import tracemalloc
import warnings

import numpy as np
import pytest

from fairtransport.persistence import ModelFileError
from fairtransport.persistence._files import unpack_model

from .forged_trees import MODELS, forge, use


def set_at(name, position, value):
    def change(_, arrays):
        arrays[name][position] = value

    return change


def set_value(name, value):
    return lambda part, _: part.update({name: value})


def replace(name, array):
    return lambda _, arrays: arrays.update({name: np.asarray(array)})


def cut(name):
    return lambda _, arrays: arrays.update({name: arrays[name][:-1]})


def cast(name, dtype):
    return lambda _, arrays: arrays.update({name: arrays[name].astype(dtype)})


ALL = {
    "a column that is not there": set_at("trees.feature", 0, 5),
    "a negative column": set_at("trees.feature", 0, -1),
    "a child that is not there": set_at("trees.left", 0, 99),
    "a child of another tree": lambda _, arrays: set_at("trees.right", 0, arrays["trees.starts"][1])(_, arrays),
    "a node that is its own child": set_at("trees.left", 0, 0),
    "a node whose child is before it": set_at("trees.left", 1, 0),
    "a child below -1": set_at("trees.left", 0, -2),
    "a leaf without a value": lambda _, arrays: set_at("trees.right", -1, len(arrays["trees.values"]))(_, arrays),
    "a leaf with a negative value row": set_at("trees.right", -1, -1),
    "too few thresholds": cut("trees.threshold"),
    "too few values": cut("trees.values"),
    "a threshold that is no number": set_at("trees.threshold", 0, np.nan),
    "a value that is no number": set_at("trees.values", 0, np.nan),
    "a value that is infinite": set_at("trees.values", 0, np.inf),
    "a value beyond 1e30": set_at("trees.values", 0, 1e31),
    "a base that is no number": set_at("trees.base", 0, np.nan),
    "a flag": set_at("trees.flags", 0, 8),
    "a set that is not there": lambda _, arrays: (
        set_at("trees.flags", 0, 4)(_, arrays),
        set_at("trees.threshold", 0, 10**9)(_, arrays),
    ),
    "half a set": lambda _, arrays: (
        set_at("trees.flags", 0, 4)(_, arrays),
        set_at("trees.threshold", 0, 0.5)(_, arrays),
    ),
    "sets of other words": set_at("trees.set_starts", -1, 1 << 40),
    "no trees": replace("trees.starts", np.zeros(1, dtype=np.int64)),
    "trees without end": set_at("trees.starts", -1, 1 << 40),
    "trees that overlap": set_at("trees.starts", 1, 1 << 40),
    "an empty tree": set_at("trees.starts", 1, 0),
    "numbers as text": cast("trees.feature", str),
    "numbers of another precision": cast("trees.threshold", np.float32),
    "two axes": lambda _, arrays: arrays.update({"trees.left": arrays["trees.left"][None]}),
    "no columns": set_value("n_columns", 0),
    "columns without end": set_value("n_columns", 1 << 31),
    "more columns than names": set_value("n_columns", 6),
    "another library": set_value("library", "catboost"),
    "another link": set_value("link", "identity"),
    "one class": replace("classes", [1]),
    "a class twice": replace("classes", [1, 1]),
    "something else": set_value("num_tree_per_iteration", 8),
}
CATEGORIES = {
    "a category twice": replace("categories.0", ["s"] * 9),
    "categories of a column that is not there": set_at("category_columns", 1, 5),
    "categories of one column": set_at("category_columns", 1, 3),
    "categories of fewer columns": cut("category_columns"),
}
CASES = [(name, title, change) for name in MODELS for title, change in ALL.items()]
CASES += [(name, title, change) for name in MODELS if name != "forest" for title, change in CATEGORIES.items()]


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings(action="ignore"):
        yield


@pytest.mark.parametrize("name", MODELS)
def test_the_examples_can_be_used(name):
    assert use(name, forge(name, lambda *_: None)) == "used"


@pytest.mark.parametrize(
    ("name", "change"), [pytest.param(name, change, id=f"{name}: {title}") for name, title, change in CASES]
)
def test_forged_trees_are_refused(name, change):
    with pytest.raises(ModelFileError):
        unpack_model(forge(name, change))


def test_a_path_of_many_nodes_is_followed_without_recursion():
    """A tree of one path: each walk ends, because children come after their parent."""
    n = 20_000
    nodes = np.arange(2 * n + 1)
    inner = nodes % 2 == 0
    inner[-1] = False
    arrays = {
        "starts": np.array([0, nodes.size]),
        "feature": np.zeros(nodes.size, dtype=np.int32),
        "threshold": np.full(nodes.size, -1e31),
        "left": np.where(inner, nodes + 1, -1).astype(np.int32),
        "right": np.where(inner, nodes + 2, 0).astype(np.int32),
        "flags": np.zeros(nodes.size, dtype=np.uint8),
        "values": np.ones((1, 1)),
        "set_starts": np.zeros(1, dtype=np.int64),
        "words": np.zeros(0, dtype=np.uint32),
    }
    content = forge("lightgbm", lambda _, own: own.update({f"trees.{path}": array for path, array in arrays.items()}))
    assert use("lightgbm", content) == "used"


def test_memory_is_at_most_three_times_the_file():
    """A million nodes: what the checks need is freed before the model is used."""
    n_trees, size = 50_000, 21
    number = np.arange(size)
    left = np.where(number < size // 2, 2 * number + 1, -1)
    arrays = {
        "starts": np.arange(0, n_trees * size + 1, size),
        "feature": np.zeros(n_trees * size, dtype=np.int32),
        "threshold": np.zeros(n_trees * size),
        "left": np.tile(left, n_trees).astype(np.int32),
        "right": np.tile(np.where(left < 0, 0, left + 1), n_trees).astype(np.int32),
        "flags": np.zeros(n_trees * size, dtype=np.uint8),
    }
    content = forge("lightgbm", lambda _, own: own.update({f"trees.{path}": one for path, one in arrays.items()}))
    tracemalloc.start()
    unpack_model(content)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= 3 * len(content) + (100 << 20)


def test_the_reason_is_named_without_values():
    with pytest.raises(ModelFileError, match="a child is out of range"):
        unpack_model(forge("forest", ALL["a node that is its own child"]))
