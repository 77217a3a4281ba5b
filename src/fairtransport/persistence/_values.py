"""Conversion of estimators and other values to JSON and arrays, and back, for an explicit list of types.

JSON has no tuples, arrays, infinite numbers or estimators; these become a dict with the key ``"$"``, the type's tag.
"""

from __future__ import annotations

import inspect
import math
import re
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.metadata_routing import get_routing_for_object

from fairtransport.persistence.recipes._registry import (
    known_classes,
    recipe_for,
    recipe_named,
    types_by_kind,
    types_by_tag,
)
from fairtransport.storage import ModelFileError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fairtransport.persistence._summaries import Change
    from fairtransport.persistence.recipes import Recipe

_PLAIN = (bool, int, float, str, type(None))
_FLOATS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_BUILTIN = {"bool": bool, "float": float, "int": int, "object": object, "str": str}
_NUMPY = (
    *("bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64"),
    *("object", "uint8", "uint16", "uint32", "uint64"),
)
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
        self._summarize(value, recipe, both, kept, path)
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

    def _summarize(self, value: Any, recipe: Recipe, both: dict[str, Any], kept: dict[str, Any], path: str) -> None:
        """Replace scores of individuals by summaries, unless they are summaries from a file already."""
        if recipe.summarize is None:
            return
        for name, (summary, change) in recipe.summarize(value, self.people).items():
            where = f"{path}.{name}"
            if kept["people"] >= self.people and both[name] is kept["values"].get(name):
                self.changes[where] = kept["changes"][name]
                continue
            both[name] = summary
            self.changes[where] = change


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
            "dtype": lambda: np.dtype(_known_dtype(value["name"])),
            "type": lambda: _known_type(value["name"]),
            "array": lambda: self._arrays.pop(value["name"]),
            "objects": lambda: self._read_objects(value, path),
            "same": lambda: self._objects[value["as"]],
        }
        return readers[tag]() if tag in readers else self._read_object(value, path)

    def _list(self, items: Any, path: str, size: int | None = None) -> list[Any]:
        if not isinstance(items, list) or (size is not None and len(items) != size):
            raise ModelFileError("The file has a value of another type where a list is required; do not trust it.")
        return self._read(items, path)

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
            vars(made)[_OUTPUT] = _checked_output(self._read(value["output"], path))
        if "requests" in value:
            vars(made)[_REQUESTS] = _read_requests(made, value["requests"])
        self._keep_summaries(made, path)
        return made

    def _keep_summaries(self, made: Any, path: str) -> None:
        paths = {where.rpartition(".")[2]: where for where in self._changes if where.rpartition(".")[0] == path}
        if paths:
            vars(made)[_SUMMARIES] = {
                "people": self._people,
                "values": {name: vars(made).get(name) for name in paths},
                "changes": {name: self._changes[where] for name, where in paths.items()},
            }


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


def _checked_output(value: Any) -> Any:
    """Return the container type of `set_output`, which names a module."""
    if not isinstance(value, dict) or set(value) != {"transform"} or value["transform"] not in _OUTPUTS:
        raise ModelFileError("The file requires an output of an unknown library; do not trust it.")
    return value


def _write_requests(requests: Any) -> dict[str, dict[str, Any]]:
    written = {}
    for method, request in vars(requests).items():
        if method != "owner" and request.requests:
            written[method] = {name: alias for name, alias in request.requests.items() if alias is not None}
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
    try:
        _known_dtype(name)
    except ModelFileError:
        raise TypeError(f"{path} has a data type that a model file cannot store: {dtype}.") from None
    return {"$": "dtype", "name": name}


def _known_dtype(name: Any) -> str:
    if name in _NUMPY or (isinstance(name, str) and _TEXT_DTYPE.fullmatch(name)):
        return str(name)
    raise ModelFileError("The file names a data type that is not allowed; do not trust it.")


def _write_type(_: Writer, kind: type, path: str) -> dict[str, Any]:
    name = kind.__name__
    if _BUILTIN.get(name) is kind:
        return {"$": "type", "name": name}
    if issubclass(kind, np.generic) and name in _NUMPY:
        return {"$": "type", "name": f"numpy.{name}"}
    raise TypeError(f"{path} is the class {name}, which a model file cannot store; only number types are allowed.")


def _known_type(name: Any) -> type:
    if name in _BUILTIN:
        return _BUILTIN[name]
    if isinstance(name, str) and name.startswith("numpy.") and name[6:] in _NUMPY:
        return np.dtype(name[6:]).type
    raise ModelFileError("The file names a type that is not allowed; do not trust it.")


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
    (
        slice,
        lambda to, value, path: {"$": "slice", "items": to.write([value.start, value.stop, value.step], path)},
    ),
    (np.dtype, _write_dtype),
    (type, _write_type),
)
