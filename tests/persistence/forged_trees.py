"""Model files with forged trees and correct checksums, each loaded and used; run by the tests in a process of its own.

    python -m tests.persistence.forged_trees mutations FIRST LAST    random changes, one for each seed
    python -m tests.persistence.forged_trees memory FOLDER           small files that ask for much, and large ones

A fault in native code ends the process, and the last seed printed is the culprit.
"""
# ruff: noqa: T201

import copy
import functools
import json
import os
import resource
import sys
import warnings
from collections import Counter
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import xgboost

import fairtransport as ft
from fairtransport.boosting import TransportBoostingClassifier
from fairtransport.persistence import ModelFileError
from fairtransport.persistence._files import pack_model, unpack_model
from fairtransport.storage import pack_container, unpack_container

from .models import people

LIGHT = {"n_estimators": 4, "num_leaves": 6, "verbose": -1, "min_data_per_group": 5, "cat_smooth": 1.0}
XG = {"n_estimators": 4, "max_depth": 3, "enable_categorical": True, "max_cat_to_onehot": 1}
MODELS = {
    "lightgbm": lambda: lightgbm.LGBMClassifier(**LIGHT),
    "xgboost": lambda: xgboost.XGBClassifier(**XG),
    "xgboost dart": lambda: xgboost.XGBClassifier(booster="dart", rate_drop=0.3, **XG),
}
INTEGERS = (-(2**63), -(2**31), -33, -2, -1, 0, 1, 2, 3, 31, 32, 255, 2**24 - 1, 2**24, 2**31 - 1, 2**31, 2**32, 2**62)
REALS = (np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -1.0, 0.3, 1e30, 1e31, 3e38, 1e39, -1e300, 1.7e308)
VALUES = (
    None,
    True,
    -1,
    0,
    1,
    3,
    100_000,
    2**31,
    2**70,
    0.0,
    0.5,
    1.0,
    1e308,
    "",
    "x",
    [],
    {"$": "float", "value": "nan"},
)
PARAMS = {
    "n_jobs": 1_000_000, "num_threads": 1_000_000, "device": "cuda", "device_type": "gpu", "verbose": "1 num_threads=9",
    "forcedsplits_filename": "/etc/passwd", "machines": "localhost:1", "num_leaves": 2**31, "objective": "poisson",
    "booster": "gblinear", "base_score": 2.0, "missing": "nan", "boosting_type": "rf", "linear_tree": True,
    "num_parallel_tree": -1, "tree_method": "gpu_hist", "max_bin": 2**31 - 1, "eval_metric": "error@1e999", "x=y": 1,
}  # fmt: skip


@functools.cache
def example(name):
    """The container of a small model with numbers, missing values, and categories of text and numbers."""
    X, y, group = people()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.loc[::6, "c"] = np.nan
    chance = np.random.default_rng(0).integers(9, size=len(y))
    frame["kind"] = pd.Categorical(np.array(list("rstuvwxyz"))[np.where(y == "yes", chance, 4 * chance % 9 // 2)])
    frame["code"] = pd.Categorical(3 * np.where(y == "no", chance, 4 * chance % 9 // 2) + 20)
    model = TransportBoostingClassifier(MODELS[name](), random_state=0, parity_weight=0.05, smooth_groups=False)
    container = unpack_container(pack_model(model.fit(frame, y, sensitive_features=group))[0], kind="model")
    assert any(
        array.any() for path, array in container.arrays.items() if path.endswith(("trees.words", "trees.categories"))
    )
    return container, frame[:40]


def stored_trees(schema):
    """The part of a schema with the fitted trees."""
    return schema["model"]["fitted"]["estimator_"]


def forge(name, change):
    """Return the bytes of a file after ``change(part of the schema, arrays by short name)``, with correct checksums."""
    container, _ = example(name)
    schema, prefix = copy.deepcopy(container.schema), "model.estimator_."
    arrays = {path.removeprefix(prefix): array.copy() for path, array in container.arrays.items()}
    change(stored_trees(schema), arrays)
    arrays = {(path if path in container.arrays else prefix + path): array for path, array in arrays.items()}
    return pack_container("model", schema, arrays, reveals=container.reveals)


def use(name, content):
    """Load and predict; return what happened."""
    try:
        model = unpack_model(content)
    except ModelFileError:
        return "refused"
    trees = model.estimator_
    rng = np.random.default_rng(0)
    n_columns = trees.n_features_in_
    rows = rng.choice(
        [np.nan, -1.0, 0.0, 0.3, 1.0, 8.0, 31.0, 32.0, 900.0, -1e30, 1e30], size=(30, min(n_columns, 10**5))
    )
    try:
        scores = [trees.predict_proba(rows), trees.predict_proba(example(name)[1])]
        trees.get_params(), trees.feature_importances_
    except (ValueError, TypeError, lightgbm.basic.LightGBMError, xgboost.core.XGBoostError):
        return "refused in use"  # the rows have other columns or categories than the model
    if not all(np.isfinite(one).all() and one.min() >= 0 and one.max() <= 1 for one in scores):
        raise SystemExit("Scores are not finite.")
    return "used"


def change_array(array, rng):
    """Return an array with some elements, its size, its type or its shape changed."""
    kind = rng.integers(10)
    if kind == 0 or array.ndim != 1:
        return [array[:-1], array[:0], np.concatenate((array, array[:1])), array[None]][rng.integers(4)]
    if kind == 1:
        return array.astype(rng.choice(["float32", "int32", "uint64", "bool", "U8"]))
    changed = array.copy()
    if not array.size:
        return np.zeros(1, dtype=array.dtype)
    where = rng.integers(array.size, size=rng.integers(1, 4))
    if kind <= 3:
        changed[where] = rng.permutation(array)[: where.size] if array.size >= where.size else array[0]
    elif kind == 4:
        return rng.permutation(array)
    elif array.dtype.kind == "U":
        changed[where] = rng.choice(
            ["", "a b", "a\n", "=num_class=8", "c", '"', "\u2028", "[", "Tree=1"], size=where.size
        )
    elif array.dtype.kind == "f":
        changed[where] = rng.choice(REALS, size=where.size) if kind <= 7 else rng.normal(size=where.size)
    elif kind <= 6:
        changed[where] = rng.choice(np.array(INTEGERS), size=where.size)
    else:
        changed[where] += rng.integers(-2, 3, size=where.size)
    return changed


def mutation(seed):
    """Return the name of a model and the bytes of a file with random changes."""
    rng = np.random.default_rng(seed)
    name = list(MODELS)[seed % len(MODELS)]

    def change(part, arrays):
        for _ in range(rng.integers(1, 3)):
            kind = rng.integers(12)
            if kind == 0:
                scalars = [key for key, value in part.items() if not isinstance(value, dict)] + ["new"]
                part[str(rng.choice(scalars))] = VALUES[rng.integers(len(VALUES))]
            elif kind == 1:
                key = list(PARAMS)[rng.integers(len(PARAMS))]
                part["params"]["keys"].append(key)
                part["params"]["values"].append(PARAMS[key])
            else:
                paths = sorted(
                    path for path in arrays if path.startswith(("trees.", "categories", "feature_", "classes"))
                )
                path = paths[rng.integers(len(paths))]
                arrays[path] = change_array(arrays[path], rng)

    return name, forge(name, change)


def run_mutations(first, last):
    """Use one file for each seed, and print how many were refused."""
    results = Counter()
    for seed in range(first, last):
        print(seed, file=sys.stderr, flush=True)
        try:
            name, content = mutation(seed)
        except (TypeError, ValueError):  # there is no such array, or the container cannot store it
            continue
        results[use(name, content)] += 1
    print(json.dumps(results))


# ------------------------------------------------------------------------------------------------------------ memory


def full_trees(library, n_trees, n_leaves):
    """Arrays of complete binary trees with numbers that are long as text."""
    n_splits = n_leaves - 1
    children = np.arange(n_splits) * 2 + 1
    rng = np.random.default_rng(0)
    if library == "lightgbm":
        total = n_trees * n_splits
        left, right = (np.where(child < n_splits, child, n_splits - 1 - child) for child in (children, children + 1))
        return {
            "trees.n_leaves": np.full(n_trees, n_leaves),
            "trees.shrinkage": np.full(n_trees, 0.1),
            "trees.feature": np.zeros(total, dtype=np.int64),
            "trees.threshold": -rng.random(total) * 1e-7,
            "trees.decision": np.full(total, 2),
            "trees.left": np.tile(left, n_trees),
            "trees.right": np.tile(right, n_trees),
            "trees.gain": -rng.random(total) * 1e-7,
            "trees.count": np.full(total, 2**31 - 1),
            "trees.leaf_value": -rng.random(n_trees * n_leaves) * 1e-7,
            "trees.leaf_count": np.full(n_trees * n_leaves, 2**31 - 1),
            "trees.n_words": np.zeros(0, dtype=np.int64),
            "trees.words": np.zeros(0, dtype=np.int64),
        }
    leaves = np.full(n_leaves, -1)
    total = n_trees * (n_splits + n_leaves)
    return {
        "trees.n_nodes": np.full(n_trees, n_splits + n_leaves),
        "trees.left": np.tile(np.concatenate((children, leaves)), n_trees),
        "trees.right": np.tile(np.concatenate((children + 1, leaves)), n_trees),
        **{f"trees.{key}": np.zeros(total, dtype=np.int64) for key in ("feature", "categorical", "default_left")},
        **{f"trees.{key}": np.full(total, 0.5) for key in ("threshold", "gain", "cover")},
        "trees.set_size": np.zeros(0, dtype=np.int64),
        "trees.categories": np.zeros(0, dtype=np.int64),
    }


def large_categories(part, arrays):
    """In each split of categories, the largest category that XGBoost knows."""
    arrays["trees.categories"][:] = 2**24 - 1
    for path in [path for path in arrays if path.startswith("trees.") and path != "trees.drop_weight"]:
        arrays[path] = np.tile(arrays[path], 300)


def wide(part, arrays):
    """As many columns as the reader allows, without names."""
    part["n_columns"], part["feature_names"] = 100_000, None
    del arrays["feature_names"]
    if "feature_types" in part:
        part["feature_types"] = None
        del arrays["feature_types"]
        arrays |= {path: array[:0] for path, array in arrays.items() if path.startswith("categories.")}


def many_categories(part, arrays):
    """As many categories as the reader allows, each of a few bytes."""
    arrays["categories.0"] = np.arange(499_000).astype("U6")


def trees_of_size(library, n_trees, n_leaves):
    return library, lambda _, arrays: arrays.update(full_trees(library, n_trees, n_leaves))


MEMORY = {
    "categories of 2^24 - 1": ("xgboost", large_categories, "refused"),
    "100,000 columns, LightGBM": ("lightgbm", wide, "refused"),
    "100,000 columns, XGBoost": ("xgboost", wide, "refused"),
    "50,000 stumps, LightGBM": (*trees_of_size("lightgbm", 50_000, 1), "accepted"),
    "50,001 stumps, LightGBM": (*trees_of_size("lightgbm", 50_001, 1), "refused"),
    "10,000 stumps, XGBoost": (*trees_of_size("xgboost", 10_000, 1), "accepted"),
    "10,001 stumps, XGBoost": (*trees_of_size("xgboost", 10_001, 1), "refused"),
    "300,000 splits, LightGBM": (*trees_of_size("lightgbm", 3000, 101), "accepted"),
    "900,000 nodes, XGBoost": (*trees_of_size("xgboost", 3000, 151), "accepted"),
    "499,000 categories, LightGBM": ("lightgbm", many_categories, "accepted"),
}


def run_memory(folder):
    """Load each file in this process, and print by how much memory grew at most, in MiB, and how much is allowed."""
    paths = {}
    for index, (name, (library, change, _)) in enumerate(MEMORY.items()):
        paths[name] = folder / f"{index}.ft"
        paths[name].write_bytes(forge(library, change))
    for library in ("lightgbm", "xgboost"):
        use(library, forge(library, lambda *_: None))
    results = {}
    for name, path in paths.items():
        grown, answer = _in_child(path)
        results[name] = [answer, grown, 3 * path.stat().st_size / 2**20 + 100]
    print(json.dumps(results))


def _in_child(path):
    """Load the file in a fork, so that memory freed by one file does not hide that of the next."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            ft.load(path)
            answer = "accepted"
        except ModelFileError:
            answer = "refused"
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        os.write(write, json.dumps([grown, answer]).encode())
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit(f"{path.name}: status {status}")
    return json.loads(os.read(read, 1000))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "mutations":
        run_mutations(int(sys.argv[2]), int(sys.argv[3]))
    else:
        run_memory(Path(sys.argv[2]))
