"""Model files: the objects in them as JSON and arrays, for an explicit list of types, and saving and loading.

JSON has no tuples, arrays, infinite numbers or estimators; these become a dict with the key ``"$"``, the type's tag.
"""

from __future__ import annotations

import inspect
import math
import os
import re
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import check_is_fitted

from fairtransport._validation import check_count
from fairtransport._warnings import warn_caller
from fairtransport.persistence._summaries import Change
from fairtransport.persistence.recipes._registry import (
    known_classes,
    recipe_for,
    recipe_named,
    types_by_kind,
    types_by_tag,
)
from fairtransport.persistence.recipes._sklearn import name_selected_columns
from fairtransport.persistence.trees import THRESHOLDS
from fairtransport.storage import (
    MAX_BYTES,
    Container,
    ModelFileError,
    pack_container,
    read_container,
    read_file,
    sign_container,
    unpack_container,
    write_atomically,
)
from fairtransport.tabular import RowScorer

if TYPE_CHECKING:
    from fairtransport.persistence.recipes import Recipe

_PLAIN = (bool, int, float, str, type(None))
_FLOATS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_NUMPY = (
    *("bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64"),
    *("object", "uint8", "uint16", "uint32", "uint64"),
)
_TYPES = {
    **{kind.__name__: kind for kind in (bool, float, int, object, str)},
    **{f"numpy.{name}": np.dtype(name).type for name in _NUMPY},
}
_TEXT_DTYPE = re.compile(r"<U([1-9][0-9]{0,2})")  # a use of the type allocates its characters for each cell
_MAX_DEPTH = 60  # of nested values

# Attribute of a loaded estimator: its summaries, so that saving it again does not summarize them again.
_SUMMARIES = "_summaries_of_file"
_OUTPUT = "_sklearn_output_config"
_OUTPUTS = (None, "default", "pandas", "polars")
_REQUESTS = "_metadata_request"


class Writer:
    """Converter of a model and everything that it contains to JSON, which collects arrays by path."""

    def __init__(self, people: int) -> None:
        self.people = people
        self.arrays: dict[str, NDArray[Any]] = {}
        self.changes: dict[str, Change] = {}
        self.uses_sklearn = False
        self._root: Any = None
        self._seen: dict[int, tuple[str, Any]] = {}  # objects that the same object contains

    def write(self, value: Any, path: str = "model") -> Any:
        """Return the JSON of a value; ``path`` is its position in the model, for array names and errors."""
        if path == "model":
            self._root = value
        plain = value.item() if isinstance(value, np.generic) else value
        if isinstance(plain, float) and not math.isfinite(plain):
            return {"$": "float", "value": "nan" if math.isnan(plain) else "inf" if plain > 0 else "-inf"}
        if isinstance(plain, _PLAIN):
            return plain
        for kind, write in _WRITERS:
            if isinstance(value, kind):
                return write(self, value, path)
        return self._write_special(value, path)

    def _write_array(self, array: NDArray[Any], path: str) -> dict[str, Any]:
        if array.dtype.kind == "O":
            return {"$": "objects", "shape": list(array.shape), "items": self.write(array.ravel().tolist(), path)}
        self.arrays[path] = array
        return {"$": "array", "name": path}

    def _write_special(self, value: Any, path: str) -> Any:
        kind = type(value)
        known = types_by_kind.get(kind, types_by_kind.get(f"{kind.__module__}.{kind.__qualname__}"))
        if known is not None:
            parts = known.to_parts(value)
            return {"$": known.tag, **{key: self.write(part, f"{path}.{key}") for key, part in parts.items()}}
        if kind.__name__ == "Index" and kind.__module__.partition(".")[0] == "pandas":
            return self.write(value.tolist(), path)  # a selection of columns
        recipe = recipe_for(value)
        if recipe is None:
            raise TypeError(_refusal(value, _name_steps(self._root, path)))
        if id(value) in self._seen:
            return {"$": "same", "as": self._seen[id(value)][0]}
        siblings, self._seen = self._seen, {}
        try:
            return self._write_object(value, recipe, path)
        finally:
            self._seen = siblings
            self._seen[id(value)] = (path, value)

    def _write_object(self, value: Any, recipe: Recipe, path: str) -> dict[str, Any]:
        self.uses_sklearn |= recipe.class_name.startswith("sklearn.")
        attributes = dict(vars(copy(value)))  # copies have what a model makes only when it is asked for
        kept = attributes.pop(_SUMMARIES, None) or {"values": {}, "people": 1, "changes": {}}
        requests, output = attributes.pop(_REQUESTS, None), attributes.pop(_OUTPUT, None)
        defaults = _defaults(type(value))
        if recipe.stored is not None:
            attributes |= recipe.stored(value)
        params = {name: attributes.pop(name) for name in defaults if name in attributes}
        unknown = sorted(set(attributes) - {*recipe.fitted, *recipe.optional})
        if unknown:
            raise TypeError(
                f"{_name_steps(self._root, path)} ({type(value).__name__}) has attributes that a model file cannot "
                f"store: {', '.join(unknown)}. Delete them if you have set them; if they come from a newer library, "
                "upgrade fairtransport."
            )
        both = {**params, **attributes}
        if "estimator" in params and "estimator_" in attributes:
            both["estimator"] = name_selected_columns(both["estimator"], both["estimator_"])
        summaries = {} if recipe.summarize is None else recipe.summarize(value, self.people)
        for name, (summary, change) in summaries.items():
            is_summary = kept["people"] >= self.people and both[name] is kept["values"].get(name)  # from a file
            both[name] = both[name] if is_summary else summary
            self.changes[f"{path}.{name}"] = kept["changes"][name] if is_summary else change
        parts: dict[str, Any] = {
            "$": "object",
            "class": recipe.class_name,
            "params": {
                name: self._write_param(recipe, name, both[name], path)
                for name in params
                if name not in recipe.not_stored and not _is_default(both[name], defaults[name])
            },
            "fitted": {name: self.write(both[name], f"{path}.{name}") for name in sorted(set(both) - set(params))},
        }
        if output is not None:
            parts["output"] = self.write(output, path)
        if requests is not None:
            parts["requests"] = _write_requests(requests)
        return parts

    def _write_param(self, recipe: Recipe, name: str, value: Any, path: str) -> Any:
        written = self.write(value, f"{path}.{name}")  # raises for types that no file contains
        if name not in recipe.params or not recipe.params[name](value):
            raise TypeError(
                f"{_name_steps(self._root, path)}.{name} has a value that a model file cannot store: it is of another "
                f"type or outside the allowed range, or {recipe.short_name}({name}=...) cannot be stored at all. Set "
                "another value first."
            )
        return written


class Reader:
    """Converter of the JSON of a `Writer` back to the model; each array is used once."""

    def __init__(self, arrays: dict[str, NDArray[Any]], *, people: int, changes: dict[str, Change]) -> None:
        self._arrays = dict(arrays)
        self._people, self._changes = people, changes
        self._objects: dict[str, Any] = {}  # complete ones that the same object contains; so there are no cycles
        self._depth = 0

    def read_model(self, value: Any) -> Any:
        """Return the model of its JSON."""
        model = self._read(value, "model")
        if self._arrays:
            raise ModelFileError(f"The file has {len(self._arrays)} arrays that its model does not use.")
        return model

    def _read(self, value: Any, path: str) -> Any:
        """Return the value of JSON at this path."""
        if not isinstance(value, (dict, list)):
            return value
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ModelFileError(
                f"The file nests values more than {_MAX_DEPTH} levels deep, which fairtransport never writes."
            )
        try:
            if isinstance(value, list):
                return [self._read(item, f"{path}.{index}") for index, item in enumerate(value)]
            return self._read_tagged(value, path)
        finally:
            self._depth -= 1

    def _read_tagged(self, value: dict[str, Any], path: str) -> Any:
        tag = value.get("$")
        if tag in types_by_tag:
            parts = {key: self._read(part, f"{path}.{key}") for key, part in value.items() if key != "$"}
            return types_by_tag[tag].from_parts(parts)
        readers: dict[Any, Callable[[], Any]] = {
            "float": lambda: _FLOATS[value["value"]],
            "tuple": lambda: tuple(self._list(value["items"], path)),
            "dict": lambda: self._read_dict(value, path),
            "slice": lambda: slice(*self._list(value["items"], path, size=3)),
            "dtype": lambda: self._dtype(value["name"]),
            "type": lambda: _TYPES[value["name"]],
            "array": lambda: self._arrays.pop(value["name"]),
            "objects": lambda: self._read_objects(value, path),
            "same": lambda: self._objects[value["as"]],
        }
        return readers[tag]() if tag in readers else self._read_object(value, path)

    def _list(self, items: Any, path: str, size: int | None = None) -> list[Any]:
        if not isinstance(items, list) or (size is not None and len(items) != size):
            raise ModelFileError("The file has a value of another type where a list is required; do not trust it.")
        return self._read(items, path)

    def _dtype(self, name: Any) -> np.dtype[Any]:
        if not _is_dtype(name):
            raise ModelFileError("The file names a data type that is not allowed; do not trust it.")
        return np.dtype(name)

    def _read_dict(self, value: dict[str, Any], path: str) -> dict[Any, Any]:
        keys = self._list(value["keys"], f"{path}.keys")
        return dict(zip(keys, self._list(value["values"], path, size=len(keys)), strict=True))

    def _read_objects(self, value: dict[str, Any], path: str) -> NDArray[Any]:
        items, shape = self._list(value["items"], path), value["shape"]
        if not all(isinstance(item, _PLAIN) for item in items) or not all(type(n) is int and n >= 0 for n in shape):
            raise ModelFileError("The file has an array of objects other than text, numbers and None; do not trust it.")
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array.reshape(shape)

    def _read_object(self, value: dict[str, Any], path: str) -> Any:
        recipe = recipe_named(value.get("class"))
        if value.get("$") != "object" or recipe is None:
            raise ModelFileError(
                "The file contains an object of a class that is not allowed, or that this version does not know. If "
                "you trust the file, upgrade fairtransport."
            )
        kind = recipe.load_class()
        siblings, self._objects = self._objects, {}
        params, fitted = (
            {name: self._read(part, f"{path}.{name}") for name, part in value[section].items()}
            for section in ("params", "fitted")
        )
        self._objects = siblings
        recipe.check(params, fitted)
        if set(params) - set(_defaults(kind)):
            raise ModelFileError(
                f"{kind.__name__} of the installed library lacks parameters that the file contains; install the "
                "versions that wrote the file (see fairtransport.persistence.describe)."
            )
        made = self._objects[path] = kind(**params)
        vars(made).update(fitted)
        if fitted and recipe.is_consistent is not None and not recipe.is_consistent(made):
            raise ModelFileError(f"The attributes of a {kind.__name__} in the file do not agree; do not trust it.")
        if "output" in value:
            output = self._read(value["output"], path)
            if not isinstance(output, dict) or set(output) != {"transform"} or output["transform"] not in _OUTPUTS:
                raise ModelFileError("The file requires an output of an unknown library; do not trust it.")
            vars(made)[_OUTPUT] = output
        if "requests" in value:
            vars(made)[_REQUESTS] = _read_requests(made, value["requests"])
        paths = {where.rpartition(".")[2]: where for where in self._changes if where.rpartition(".")[0] == path}
        if paths:
            vars(made)[_SUMMARIES] = {
                "people": self._people,
                "values": {name: vars(made).get(name) for name in paths},
                "changes": {name: self._changes[where] for name, where in paths.items()},
            }
        return made


def _defaults(kind: type) -> dict[str, Any]:
    """Return the parameters of a class and their defaults."""
    signature = inspect.signature(kind)
    return {name: one.default for name, one in signature.parameters.items() if one.kind is not one.VAR_KEYWORD}


def _is_default(value: Any, default: Any) -> bool:
    if value is default:
        return True
    if type(value) is not type(default) or not isinstance(value, (bool, int, float, str)):
        return False
    return value == default or (isinstance(value, float) and math.isnan(value) and math.isnan(default))


def _write_requests(requests: Any) -> dict[str, dict[str, Any]]:
    written = {
        method: {name: alias for name, alias in request.requests.items() if alias is not None}
        for method, request in vars(requests).items()
        if method != "owner"
    }
    return {method: aliases for method, aliases in written.items() if aliases}


def _read_requests(made: Any, stored: Any) -> Any:
    requests = get_routing_for_object(made)
    for method, aliases in stored.items():
        request: Any = getattr(requests, method, None) if method != "owner" else None
        if not hasattr(request, "add_request") or not isinstance(aliases, dict):
            raise ModelFileError("The file requests metadata for a method that does not exist; do not trust it.")
        for name, alias in aliases.items():
            if not isinstance(alias, (bool, str)):
                raise ModelFileError("The file requests metadata under something other than a name; do not trust it.")
            request.add_request(param=name, alias=alias)
    return requests


def _name_steps(root: Any, path: str) -> str:
    """Return a path with the names of steps instead of their positions: ``step 'scaler' of model``."""
    steps: list[str] = []
    value, rest = root, path.split(".")[1:]
    for number, part in enumerate(rest):
        if isinstance(value, dict):
            value = list(value.values())
        try:
            value = value[int(part)] if part.isdigit() else vars(value)[part]
        except (IndexError, KeyError, TypeError, ValueError):
            return path
        if isinstance(value, tuple) and value and isinstance(value[0], str):
            steps, after = [*steps, f"step {value[0]!r}"], rest[number + 2 :]
    if not steps:
        return path
    attributes = ".".join(part for part in after if not part.isdigit())
    return " of ".join([*filter(None, [attributes]), *steps[::-1], "the model"])


def _refusal(value: Any, path: str) -> str:
    if callable(value) and not hasattr(value, "get_params"):
        return (
            f"{path} is a function, and a model file contains no code. If it selects columns, name them instead; "
            "otherwise set another value before saving."
        )
    if type(value).__name__ in {"RandomState", "Generator"}:
        return f"{path} is a random number generator, which a model file cannot store; set a number or None first."
    return (
        f"{path} is a {type(value).__module__}.{type(value).__name__}, which a model file cannot store. It can store "
        f"{', '.join(known_classes())}, and trees of scikit-learn, LightGBM and XGBoost. Replace a transformer "
        "by one of these or apply it before; save another model in the format of its library, and a QuantileRepair of "
        "its scores in a model file."
    )


def _write_dtype(_: Writer, dtype: np.dtype[Any], path: str) -> dict[str, Any]:
    name = dtype.str if dtype.kind == "U" else dtype.name
    if not _is_dtype(name):
        raise TypeError(f"{path} has a data type that a model file cannot store: {dtype}.")
    return {"$": "dtype", "name": name}


def _is_dtype(name: Any) -> bool:
    return isinstance(name, str) and (name in _NUMPY or _TEXT_DTYPE.fullmatch(name) is not None)


def _write_type(_: Writer, kind: type, path: str) -> dict[str, Any]:
    for name, known in _TYPES.items():
        if known is kind:
            return {"$": "type", "name": name}
    raise TypeError(
        f"{path} is the class {kind.__name__}, which a model file cannot store; only number types are allowed."
    )


_WRITERS: tuple[tuple[type, Callable[[Writer, Any, str], Any]], ...] = (
    (np.ndarray, Writer._write_array),  # noqa: SLF001
    (list, lambda to, value, path: [to.write(item, f"{path}.{index}") for index, item in enumerate(value)]),
    (tuple, lambda to, value, path: {"$": "tuple", "items": to.write(list(value), path)}),
    (
        dict,
        lambda to, value, path: {
            "$": "dict",
            "keys": to.write(list(value), f"{path}.keys"),
            "values": to.write(list(value.values()), path),
        },
    ),
    (slice, lambda to, value, path: {"$": "slice", "items": to.write([value.start, value.stop, value.step], path)}),
    (np.dtype, _write_dtype),
    (type, _write_type),
)


# Files.

PEOPLE_PER_POINT = 5
_KIND = "model"
_MAX_CHANGE = 0.01  # of the range: mean change of the repaired scores of a group without a warning

_REVEALS = (
    "Weights of the model, which were learned from people's data. Names of columns; labels of the groups, and how many "
    "training rows each had; the categories that occurred, and means, deviations, extremes, quantiles and imputed "
    "values of columns. Points of the distributions of scores, each the mean of at least {people} training rows' "
    "scores or a score that as many share. No row, and no single person's score. It is no guarantee: a category or a "
    "group that only one person has is in the file, and weights can tell about people with rare features. Keep it as "
    "you keep aggregate statistics."
)
_REVEALS_TREES = (
    " Of trees: the values of columns at which they split, and the value of each leaf. In a random forest or a deep "
    "tree a leaf may be that of one training row, whose label it then has."
)
_REVEALS_SCORES = (
    "Saved with people_per_point=1: the scores of single training rows, group by group, are in the file as they were. "
    "Weights of the model. Names of columns, labels and sizes of groups, categories, means, deviations and imputed "
    "values of columns. Keep it as you keep the training data."
)


class ModelFileWarning(UserWarning):
    """A model may behave slightly differently after saving or loading."""


def save(model: Any, path: str | os.PathLike[str], *, people_per_point: int = PEOPLE_PER_POINT) -> Path:
    """Write a fitted model to one file, without pickle.

    Parameters
    ----------
    model : estimator
        A model of this package, or a linear model, tree or forest of scikit-learn or a model of LightGBM or XGBoost,
        alone, in a `Pipeline` or in a repair. Of trees the nodes are stored, not the parameters: they come back as a
        `TreeClassifier` or `TreeRegressor`, which is scored but not trained.
    path : path
        The file, for instance ``"model.ft"``. An existing file is replaced atomically: after a crash, a kill or on a
        full disk, either the old or the new file is complete.
    people_per_point : int, default=5
        Scores of individual training rows are not stored. The maps of a repair and the target distribution are
        reduced to points that each represent at least so many rows: the mean of their scores, or a score that they
        share. 1 stores them exactly.

    Returns
    -------
    Path
        The path of the file.

    Warns
    -----
    ModelFileWarning
        If the reduction changes the repaired scores of a group by more than 0.01 of their range on average, as it may
        in a group of a few dozen rows. `describe` returns the exact change, in units of the score.

    Notes
    -----
    Predictions of a loaded linear model are equal to the last bit. Those of a loaded repair differ by at most the
    change that the file states. A loaded model that is saved again gives the same file with the same libraries.

    **What the file reveals about people** is in the file, and returned by `describe`: weights, names of columns, labels
    and sizes of groups, categories, means and deviations of columns, and points of distributions of scores; no row and
    no score of an individual, unless ``people_per_point=1``. A category or group with a single person is in the file.

    Examples
    --------
    >>> import tempfile, numpy as np, fairtransport as ft
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + group[:, None] * [1.0, 0.0, 0.0]
    >>> y = (X @ [1.0, 1.0, 0.5] + rng.logistic(size=2000) > 0.5).astype(int)
    >>> model = ft.TransportClassifier().fit(X, y, sensitive_features=group)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = ft.load(ft.save(model, f"{folder}/model.ft"))
    >>> bool(np.all(again.predict_proba(X) == model.predict_proba(X)))
    True
    """
    content, changes = pack_model(model, people_per_point)
    largest = max((change.mean for name, change in changes.items() if name.endswith(".maps_")), default=0.0)
    if largest > _MAX_CHANGE * _score_width(model):
        warn_caller(
            f"The file stores one point for every {people_per_point} scores, which changes the repaired scores of a "
            f"small group by {largest:.3g} on average. Merge small groups, or pass people_per_point=1 if the file may "
            "contain scores of individuals.",
            ModelFileWarning,
        )
    return write_atomically(path, content)


def _score_width(model: Any) -> float:
    """Return the width of the range of a repair's scores: as given, or, where it was learned, of 98 % of them."""
    while not hasattr(model, "extrapolates"):
        inner = getattr(model, "repair_", getattr(model, "estimator_", None))
        if inner is None:
            return 1.0
        model = inner
    low, high = np.quantile(model.target_, [0.01, 0.99]) if model.extrapolates else model.range_
    return float(high - low)


def pack_model(model: Any, people_per_point: int = PEOPLE_PER_POINT) -> tuple[bytes, dict[str, Change]]:
    """Return the content that `save` writes, and the change that each summary makes."""
    people = check_count(people_per_point, name="people_per_point")
    if isinstance(model, RowScorer):
        model = model.estimator_
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise ValueError(f"This {type(model).__name__} is not fitted; fit it before saving it.") from None
    except TypeError:  # not an estimator; the writer raises a clear error
        pass
    writer = Writer(people)
    content = writer.write(model)
    if not hasattr(model, "get_params") or isinstance(model, type):
        raise TypeError(f"save needs a fitted model; got a {type(model).__name__}.")
    changes = {name: writer.changes[name] for name in sorted(writer.changes)}
    schema = {
        "model": content,
        "people_per_point": people,
        "changes": {name: list(change) for name, change in changes.items()},
    }
    reveals = _REVEALS_SCORES if people == 1 else _REVEALS.format(people=people)
    if any(name.endswith(f".{THRESHOLDS}") for name in writer.arrays):
        reveals += _REVEALS_TREES
    versions = {"scikit-learn": sklearn.__version__} if writer.uses_sklearn else {}
    return pack_container(_KIND, schema, writer.arrays, reveals=reveals, versions=versions), changes


def unpack_model(content: bytes) -> Any:
    """Return the model of the content that `pack_model` returned; raises as `load` does."""
    return _model_of(unpack_container(content, kind=_KIND))


def sign(path: str | os.PathLike[str], key: Any, *, password: bytes | None = None, max_bytes: int = MAX_BYTES) -> Path:
    """Sign a model file, so that ``load(path, verify=...)`` can tell who wrote it.

    Parameters
    ----------
    path : path
        A model file, which is replaced atomically by the same file with a signature. An earlier signature is replaced.
    key : path, bytes or key
        Ed25519 private key, in PEM; `fairtransport.persistence.make_keys` writes one, and its public key.
    password : bytes, optional
        Password of the private key.
    max_bytes : int, default=256 MiB
        See `load`. A file that is not an intact model file raises ModelFileError.

    Returns
    -------
    Path
        The path of the file.

    Notes
    -----
    The signature covers every byte of the file, and needs the extra ``signing``. It says who signed the file, not when:
    a file that was signed once stays valid until the key is replaced. The model is not loaded: sign files that you have
    written or checked.

    Examples
    --------
    >>> import tempfile, numpy as np, fairtransport as ft
    >>> from fairtransport.persistence import make_keys
    >>> repair = ft.QuantileRepair().fit(np.arange(100) / 99, sensitive_features=np.arange(100) % 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     private, public = make_keys(f"{folder}/signing.key")
    ...     path = ft.persistence.sign(ft.save(repair, f"{folder}/repair.ft"), private)
    ...     ft.load(path, verify=public)
    QuantileRepair()
    """
    content = read_file(path, max_bytes=max_bytes)
    unpack_container(content, kind=_KIND, max_bytes=max_bytes)
    return write_atomically(path, sign_container(content, key, password=password))


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES, verify: Any = None) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : path
    max_bytes : int, default=256 MiB
        Largest size of the file. Reading needs up to three times its size, and 100 MiB, of memory.
    verify : path, bytes or key, or list of these, optional
        Ed25519 public key, in PEM. The file must have been signed with the private key of this one, or of one of these;
        that is checked before anything else in it is read. See `sign`.

    Returns
    -------
    estimator
        The fitted model, with its parameters; a classifier of two classes or a regressor of another library, or a
        pipeline, as the ``estimator_`` of a `fairtransport.tabular.RowScorer`. So everything that predicts has
        ``predict``, ``predict_proba`` (classifiers), ``feature_names_in_``, ``needs_groups_`` and ``score_rows``.

    Raises
    ------
    ModelFileError
        If the file is damaged, is not a model file, or has an unknown version. A subclass of ValueError. No file can
        run code: classes are looked up in a fixed list, and arrays are read without pickle.
    SignatureError
        If ``verify`` is given and the file has no valid signature. A subclass of ModelFileError.

    Warns
    -----
    ModelFileWarning
        If the file contains estimators of another minor version of scikit-learn than the installed one.
    """
    model = _model_of(read_container(path, kind=_KIND, max_bytes=max_bytes, verify=verify))
    if hasattr(model, "score_rows"):
        return model
    is_classifier = hasattr(model, "predict_proba") and np.size(getattr(model, "classes_", ())) == 2
    return RowScorer(model) if is_classifier or is_regressor(model) else model


def describe(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Return a description of a model file without loading the model.

    Parameters
    ----------
    path, max_bytes
        See `load`.

    Returns
    -------
    dict
        ``class``, ``made_by`` (versions), ``format_version``, ``is_signed`` (whether there is a signature, which is not
        checked), ``reveals`` (what the file reveals about people), ``people_per_point``, and ``changes``. For each
        summary, that is the ``largest`` change of a repaired score and the ``mean`` change over the training rows of
        the group where it is largest (``maps_``); or of a quantile, where the mean is the Wasserstein-1 distance
        (``target_``, ``target``).
    """
    container = read_container(path, kind=_KIND, max_bytes=max_bytes)
    people, changes = _summary_of(container)
    model = container.schema.get("model")
    return {
        "class": model.get("class") if isinstance(model, dict) else None,
        "made_by": container.made_by,
        "format_version": container.format_version,
        "is_signed": container.is_signed,
        "reveals": container.reveals,
        "people_per_point": people,
        "changes": {name: change._asdict() for name, change in changes.items() if not name.endswith("rows_at_knots_")},
    }


def _model_of(container: Container) -> Any:
    people, changes = _summary_of(container)
    theirs, ours = container.made_by.get("scikit-learn"), sklearn.__version__
    if theirs is not None and theirs.split(".")[:2] != ours.split(".")[:2]:
        warn_caller(
            f"The file contains estimators of another version of scikit-learn than {ours}, which is installed; "
            "fairtransport.persistence.describe names it. Check some predictions, or save the model again.",
            ModelFileWarning,
        )
    try:
        model = Reader(container.arrays, people=people, changes=changes).read_model(container.schema["model"])
    except ModelFileError:
        raise
    except Exception as error:  # noqa: BLE001 - hostile content may raise anything in a class
        raise ModelFileError(
            f"The file is intact, but its model cannot be restored ({type(error).__name__}): it was changed, or "
            "written by another version. Save the model again."
        ) from None
    if not hasattr(model, "get_params"):
        raise ModelFileError("The file does not contain a model; do not trust it.")
    return model


def _summary_of(container: Container) -> tuple[int, dict[str, Change]]:
    people, changes = (container.schema.get(key, 0) for key in ("people_per_point", "changes"))
    try:
        parsed = {name: Change(float(largest), float(mean)) for name, (largest, mean) in changes.items()}
        return check_count(people, name="people_per_point"), parsed
    except (AttributeError, TypeError, ValueError):
        raise ModelFileError("The file does not state how its scores were summarized; do not trust it.") from None
