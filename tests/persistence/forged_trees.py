"""Model files with forged trees and correct checksums, each loaded and used; also for ``scripts/fuzz``."""

import copy
import functools

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
