"""Model files with forged trees and correct checksums, each loaded and used; run by the tests in a process of its own.

    python -m tests.persistence.forged_trees FIRST LAST    random changes, one for each seed

A compiled loop follows the nodes without a check, so that a fault ends the process: the last seed printed is the
culprit.
"""
# ruff: noqa: T201

import copy
import functools
import json
import sys
import warnings
from collections import Counter

import lightgbm
import numpy as np
import pandas as pd
import xgboost
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from fairtransport.persistence import ModelFileError
from fairtransport.persistence._files import pack_model, unpack_model
from fairtransport.storage import pack_container, unpack_container

from .models import people

LIGHT = {"n_estimators": 4, "num_leaves": 6, "verbose": -1, "min_data_per_group": 5, "cat_smooth": 1.0}
XG = {"n_estimators": 4, "max_depth": 3, "enable_categorical": True, "max_cat_to_onehot": 1}
MODELS = {
    "lightgbm": lambda: lightgbm.LGBMClassifier(**LIGHT),
    "xgboost": lambda: xgboost.XGBClassifier(**XG),
    "histogram": lambda: HistGradientBoostingClassifier(max_iter=4, max_leaf_nodes=6),
    "forest": lambda: RandomForestClassifier(n_estimators=4, max_leaf_nodes=6, random_state=0),
}
INTEGERS = (-(2**63), -(2**31), -33, -2, -1, 0, 1, 2, 3, 31, 32, 255, 2**24 - 1, 2**24, 2**31 - 1, 2**31, 2**32, 2**62)
REALS = (np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -1.0, 0.3, 1e30, 1e31, 3e38, 1e39, -1e300, 1.7e308)
VALUES = (None, True, -1, 0, 1, 3, 100_000, 2**31, 2**70, 0.0, 0.5, "", "x", "mean", "exp", "forest", [])
PREFIX = "model."


@functools.cache
def example(name):
    """The container of a small model with numbers, missing values, and categories of text and numbers."""
    X, y, _ = people()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.loc[::6, "c"] = np.nan
    if name != "forest":
        chance = np.random.default_rng(0).integers(9, size=len(y))
        frame["kind"] = pd.Categorical(np.array(list("rstuvwxyz"))[np.where(y == "yes", chance, 4 * chance % 9 // 2)])
        frame["code"] = pd.Categorical(3 * np.where(y == "no", chance, 4 * chance % 9 // 2) + 20)
    container = unpack_container(pack_model(MODELS[name]().fit(frame, y == "yes"))[0], kind="model")
    assert name == "forest" or container.arrays[f"{PREFIX}trees.words"].any()
    return container, frame[:40]


def forge(name, change):
    """Return a file, with correct checksums, after ``change(schema of the trees, arrays by short name)``."""
    container, _ = example(name)
    schema = copy.deepcopy(container.schema)
    arrays = {path.removeprefix(PREFIX): array.copy() for path, array in container.arrays.items()}
    change(schema["model"], arrays)
    arrays = {PREFIX + path: array for path, array in arrays.items()}
    return pack_container("model", schema, arrays, reveals=container.reveals)


def use(name, content):
    """Load and predict; return what happened."""
    try:
        model = unpack_model(content)
    except ModelFileError:
        return "refused"
    rng = np.random.default_rng(0)
    values = [np.nan, -1.0, 0.0, 0.3, 1.0, 8.0, 31.0, 32.0, 900.0, -1e30, 1e30]
    rows = rng.choice(values, size=(30, min(model.n_features_in_, 10**5)))
    try:
        scores = [getattr(model, "predict_proba", model.predict)(one) for one in (rows, example(name)[1])]
    except (ValueError, TypeError):
        return "refused in use"  # the rows have other columns or categories than the model
    if not all(np.isfinite(one).all() for one in scores) and model.trees_.link != "exp":
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
        changed[where] = rng.choice(["", "a b", "a\n", "c", '"', "\u2028"], size=where.size)
    elif array.dtype.kind == "f":
        changed[where] = rng.choice(REALS, size=where.size) if kind <= 7 else rng.normal(size=where.size)
    elif kind <= 6:
        changed[where] = rng.choice(np.array(INTEGERS), size=where.size).astype(array.dtype)
    elif array.dtype.kind != "b":
        changed[where] += rng.integers(-2, 3, size=where.size).astype(array.dtype)
    return changed


def mutation(seed):
    """Return the name of a model and the bytes of a file with random changes."""
    rng = np.random.default_rng(seed)
    name = list(MODELS)[seed % len(MODELS)]

    def change(part, arrays):
        for _ in range(rng.integers(1, 3)):
            if rng.integers(10) == 0:
                scalars = [key for key, value in part.items() if not isinstance(value, dict)] + ["new"]
                part[str(rng.choice(scalars))] = VALUES[rng.integers(len(VALUES))]
            else:
                paths = sorted(arrays)
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


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run_mutations(int(sys.argv[1]), int(sys.argv[2]))
