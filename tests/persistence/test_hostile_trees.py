"""Trees in files whose checksums are right: refused with our own error, or used; no native code gets what is invalid.

The files are loaded and used in a process of their own (`forged_trees`), which a fault in native code would end.
"""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from fairtransport.persistence import ModelFileError
from fairtransport.persistence._files import unpack_model
from fairtransport.persistence.trees._checks import InvalidTreesError, check_structure

from .forged_trees import MEMORY, MODELS, PARAMS, forge, use

ROOT = Path(__file__).parents[2]


def set_at(name, position, value):
    def change(_, arrays):
        arrays[name][position] = value

    return change


def set_value(name, value):
    return lambda part, _: part.update({name: value})


def add_param(name, value):
    def change(part, _):
        part["params"]["keys"].append(name)
        part["params"]["values"].append(value)

    return change


def cut(name):
    return lambda _, arrays: arrays.update({name: arrays[name][:-1]})


def rename(text):
    def change(_, arrays):
        arrays["feature_names"] = np.array([text, *arrays["feature_names"].tolist()[1:]])

    return change


def chain(_, arrays):
    """A tree of one path, which a recursion would follow to the end of the stack."""
    n = 20_000
    numbers = np.arange(n)
    arrays["trees.n_leaves"] = np.array([n + 1])
    arrays["trees.shrinkage"] = np.ones(1)
    arrays["trees.left"] = np.append(numbers[1:], -1)
    arrays["trees.right"] = -numbers - 2
    for name in ("feature", "decision", "count"):
        arrays[f"trees.{name}"] = np.zeros(n, dtype=np.int64)
    for name in ("threshold", "gain"):
        arrays[f"trees.{name}"] = np.zeros(n)
    arrays["trees.leaf_value"], arrays["trees.leaf_count"] = np.zeros(n + 1), np.zeros(n + 1, dtype=np.int64)
    arrays["trees.n_words"] = arrays["trees.words"] = np.zeros(0, dtype=np.int64)


BOTH = {
    "a column that is not there": set_at("trees.feature", 0, 5),
    "a negative column": set_at("trees.feature", 0, -1),
    "a child that is not there": set_at("trees.left", 0, 99),
    "a child beyond 32 bits": set_at("trees.left", 0, 1 << 32),
    "a node that is its own child": set_at("trees.left", 0, 0),
    "a child of two": set_at("trees.left", 1, 2),
    "too few thresholds": cut("trees.threshold"),
    "a threshold that is no number": set_at("trees.threshold", 0, np.nan),
    "numbers as text": lambda _, arrays: arrays.update({"trees.feature": arrays["trees.feature"].astype(str)}),
    "numbers of single precision": lambda _, arrays: arrays.update(
        {"trees.threshold": arrays["trees.threshold"].astype(np.float32)}
    ),
    "no columns": set_value("n_columns", 0),
    "more columns": set_value("n_columns", 6),
    "columns without end": set_value("n_columns", 1 << 31),
    "a name with a line end": rename("a\nnum_class=8"),
    "an empty name": rename(""),
    "a name twice": rename("b"),
    "no name": cut("feature_names"),
    "something else": set_value("num_tree_per_iteration", 8),
} | {f"the parameter {name}": add_param(name, value) for name, value in PARAMS.items()}
LIGHTGBM = {
    "too many leaves": set_at("trees.n_leaves", 0, 7),
    "no leaves": set_at("trees.n_leaves", 0, 0),
    "no leaves, and more": set_at("trees.n_leaves", slice(0, 2), [0, 12]),
    "a leaf of two": set_at("trees.right", slice(0, 2), -1),
    "a leaf that is no number": set_at("trees.leaf_value", 0, np.nan),
    "a leaf that is infinite": set_at("trees.leaf_value", 0, np.inf),
    "a kind of decision": set_at("trees.decision", 0, 12),
    "a set without end": set_at("trees.n_words", 0, 1 << 40),
    "an empty set": set_at("trees.n_words", 0, 0),
    "a set of 33 categories": set_at("trees.words", 0, 1 << 32),
    "sets of other splits": set_at("trees.decision", slice(None), 1),
    "a category twice": set_at("categories.0", 0, "s"),
    "one class": set_at("classes", 0, 1),
    "a name with a space": rename("a b"),
    "a path of 20,000 nodes": chain,
}
XGBOOST = {
    "one child": set_at("trees.left", 0, -1),
    "too many nodes": set_at("trees.n_nodes", 0, 99),
    "another base score": set_value("base_score", 1.5),
    "rounds without trees": set_value("trees_per_round", 0),
    "rounds of a negative size": set_value("trees_per_round", -1),
    "rounds that do not fit": set_value("trees_per_round", 3),
    "a category beyond 2^24": set_at("trees.categories", 0, 1 << 24),
    "a negative category": set_at("trees.categories", 0, -5),
    "an empty set": set_at("trees.set_size", 0, 0),
    "a set without end": set_at("trees.set_size", 0, 1 << 40),
    "a leaf with categories": set_at("trees.categorical", -1, 1),
    "a flag": set_at("trees.default_left", 0, 2),
    "a threshold of double precision": set_at("trees.threshold", 0, 0.1),
    "a leaf beyond 1e30": set_at("trees.threshold", -1, 2.0**120),
    "texts without end": set_at("categories.lengths", 0, 1 << 40),
    "a text of a negative length": set_at("categories.lengths", 0, -1),
    "no byte": set_at("categories.content", 0, 256),
    "categories of other columns": cut("categories.kind"),
    "categories of a type that is none": set_at("categories.kind", 0, 7),
    "numbers of a smaller type": lambda _, arrays: (
        set_at("categories.kind", 4, 9)(_, arrays),
        set_at("categories.numbers", 0, 128)(_, arrays),
    ),
    "a type of a column": set_at("feature_types", 0, "x"),
    "a best iteration that is not there": set_value("best_iteration", 4),
    "a best score that is no number": set_value("best_score", "nan"),
    "weights of other trees": lambda _, arrays: arrays.update({"trees.drop_weight": np.ones(3)}),
    "dropout without dart": lambda _, arrays: arrays.update({"trees.drop_weight": np.ones(4)}),
}
CASES = [("lightgbm", name, change) for name, change in (BOTH | LIGHTGBM).items()] + [
    ("xgboost", name, change) for name, change in (BOTH | XGBOOST).items()
]


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings(action="ignore"):
        yield


@pytest.mark.parametrize("name", MODELS)
def test_the_examples_can_be_used(name):
    assert use(name, forge(name, lambda *_: None)) == "used"


@pytest.mark.parametrize(
    ("library", "change"), [pytest.param(lib, change, id=f"{lib}: {name}") for lib, name, change in CASES]
)
def test_forged_trees_are_refused_before_the_library_sees_them(library, change, monkeypatch):
    content = forge(library, change)
    monkeypatch.setattr("lightgbm.Booster.model_from_string", lambda *_: pytest.fail("it was read"))
    monkeypatch.setattr("xgboost.XGBClassifier.load_model", lambda *_: pytest.fail("it was read"))
    with pytest.raises(ModelFileError):
        unpack_model(content)


def test_names_reach_lightgbm_as_names_only():
    """Each name is one word of one line, and LightGBM reads it back."""
    for text in ("=num_tree_per_iteration=0", "Tree=0", "end", "a=b=c", "é\u0301", "\\u005f", "%n%s", "0_6", "\uff16"):
        assert use("lightgbm", forge("lightgbm", rename(text))) == "used"
        assert unpack_model(forge("lightgbm", rename(text))).estimator_.feature_name_[0] == text


def test_structures_of_all_trees_of_up_to_five_nodes():
    """Every assignment of children is accepted if and only if a walk from the root reaches each node once."""
    accepted = []
    for n in (1, 3, 5):
        pairs = [(-1, -1), *((a, b) for a in range(-1, n + 1) for b in range(-1, n + 1) if (a, b) != (-1, -1))]
        for nodes in np.ndindex(*[len(pairs)] * n) if n < 5 else _random_nodes(len(pairs), n):
            left, right = (np.array([pairs[node][side] for node in nodes]) for side in (0, 1))
            try:
                check_structure(np.array([n]), left, right)
            except InvalidTreesError:
                assert not _is_ordered_tree(left.tolist(), right.tolist())
            else:
                assert _is_ordered_tree(left.tolist(), right.tolist())
                accepted.append((left.tolist(), right.tolist()))
    assert {len(left) for left, _ in accepted} == {1, 3, 5}


def _random_nodes(n_pairs, n):
    rng = np.random.default_rng(0)
    yield from rng.integers(n_pairs, size=(3000, n)).tolist()
    leaf = 0
    for first in range(n_pairs):
        for second in range(n_pairs):
            yield [first, second, leaf, leaf, leaf]
            yield [first, leaf, second, leaf, leaf]


def _is_ordered_tree(left, right):
    seen, todo = [], [0]
    while todo and len(seen) <= len(left):
        node = todo.pop()
        seen.append(node)
        children = [left[node], right[node]]
        if children == [-1, -1]:
            continue
        if not all(node < child < len(left) for child in children):
            return False
        todo += children
    return sorted(seen) == list(range(len(left)))


def run(*arguments):
    command = [sys.executable, "-m", "tests.persistence.forged_trees", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.trust
def test_thousands_of_changed_arrays_are_refused_or_used():
    results = run("mutations", 0, 1200)
    assert sum(results.values()) > 1150
    assert results["used"] > 200
    assert results["refused"] > 700


@pytest.mark.trust
def test_memory_is_at_most_three_times_the_file_and_100_mib(tmp_path):
    results = run("memory", tmp_path)
    assert {name: answer for name, (answer, _, _) in results.items()} == {
        name: answer for name, (_, _, answer) in MEMORY.items()
    }
    assert all(grown <= allowed for _, grown, allowed in results.values()), results


def test_the_reason_is_named_without_values():
    with pytest.raises(ModelFileError, match=r"its sets of categories would take \d+ bytes"):
        unpack_model(forge("xgboost", MEMORY["categories of 2^24 - 1"][1]))
    with pytest.raises(ModelFileError, match="deeper than 1024 levels"):
        unpack_model(forge("lightgbm", chain))
    with pytest.raises(ModelFileError, match="parameters of a LGBMClassifier"):
        unpack_model(forge("lightgbm", add_param("n_jobs", 10**6)))
