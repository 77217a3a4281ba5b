"""Conversion of estimators to JSON and arrays, and back, by recipe."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any

from sklearn.utils.metadata_routing import get_routing_for_object

from fairtransport.persistence._values import Reader, Writer
from fairtransport.persistence.recipes import Recipe, known_classes, recipe_for, recipe_named
from fairtransport.storage import ModelFileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.persistence._summaries import Change

__all__ = ["ObjectReader", "ObjectWriter"]

# Attribute of a loaded estimator: its summaries, so that saving it again does not summarize them again.
_SUMMARIES = "_summaries_of_file"

_OUTPUT = "_sklearn_output_config"
_OUTPUTS = (None, "default", "pandas", "polars")
_REQUESTS = "_metadata_request"


class ObjectWriter:
    """Writer of one object with everything that it contains.

    Parameters
    ----------
    people : int
        Least number of people per point of a summary.

    Attributes
    ----------
    changes : dict of str to Change
        Change that each summary makes, by path.
    uses_sklearn : bool
        Whether estimators of scikit-learn were written.
    """

    def __init__(self, people: int) -> None:
        self.people = people
        self.changes: dict[str, Change] = {}
        self.uses_sklearn = False
        self._writer = Writer(self._write)
        self._root: Any = None
        self._seen: dict[int, tuple[str, Any]] = {}  # objects that the same object contains

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of the object by path."""
        return self._writer.arrays

    def write(self, value: Any, path: str = "model") -> Any:
        """Return the JSON of an object."""
        if path == "model":
            self._root = value
        return self._writer.write(value, path)

    def _write(self, value: Any, path: str) -> dict[str, Any]:
        recipe = recipe_for(value)
        if recipe is None:
            raise TypeError(_refusal(value, _name_steps(self._root, path)))
        if id(value) in self._seen:
            return {"$": "same", "as": self._seen[id(value)][0]}
        siblings, self._seen = self._seen, {}
        try:
            return self._write_parts(value, recipe, path)
        finally:
            self._seen = siblings
            self._seen[id(value)] = (path, value)

    def _write_parts(self, value: Any, recipe: Recipe, path: str) -> dict[str, Any]:
        self.uses_sklearn |= recipe.class_name.startswith("sklearn.")
        attributes = dict(vars(value))
        kept = attributes.pop(_SUMMARIES, None) or {"values": {}, "people": 1, "changes": {}}
        requests, output = attributes.pop(_REQUESTS, None), attributes.pop(_OUTPUT, None)
        defaults = _defaults(type(value))
        if recipe.stored is not None:
            attributes |= recipe.stored(value)
        params = {name: attributes.pop(name) for name in defaults if name in attributes}
        unknown = sorted(set(attributes) - set(recipe.attributes))
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


class ObjectReader:
    """Reader of what an `ObjectWriter` wrote.

    Parameters
    ----------
    arrays : dict of str to ndarray
    people : int
        Least number of people per point of a summary in the file.
    changes : dict of str to Change
        Change that each summary made, by path.
    """

    def __init__(self, arrays: dict[str, NDArray[Any]], *, people: int, changes: dict[str, Change]) -> None:
        self._people, self._changes = people, changes
        self._reader = Reader(arrays, self._read)
        self._objects: dict[str, Any] = {}  # complete ones that the same object contains; so there are no cycles

    def read(self, value: Any, path: str = "model") -> Any:
        """Return the object of its JSON."""
        result = self._reader.read(value, path)
        if self._reader.n_unread:
            raise ModelFileError(f"The file has {self._reader.n_unread} arrays that its model does not use.")
        return result

    def _read(self, value: dict[str, Any], path: str) -> Any:
        if value.get("$") == "same":
            return self._objects[value["as"]]
        recipe = recipe_named(value.get("class"))
        if value.get("$") != "object" or recipe is None:
            raise ModelFileError(
                "The file contains an object of a class that is not allowed, or that this version does not know. If "
                "you trust the file, upgrade fairtransport."
            )
        kind = recipe.load_class()
        siblings, self._objects = self._objects, {}
        params, fitted = (
            {name: self._reader.read(part, f"{path}.{name}") for name, part in value[section].items()}
            for section in ("params", "fitted")
        )
        self._objects = siblings
        _check_params(recipe, params)
        if set(params) - set(_defaults(kind)):
            raise ModelFileError(
                f"{kind.__name__} of the installed library lacks parameters that the file contains; install the "
                "versions that wrote the file (see fairtransport.persistence.describe)."
            )
        _check_fitted(recipe, fitted)
        made = self._objects[path] = kind(**params)
        vars(made).update(fitted)
        if fitted and recipe.is_consistent is not None and not recipe.is_consistent(made):
            raise ModelFileError(f"The attributes of a {kind.__name__} in the file do not agree; do not trust it.")
        if "output" in value:
            vars(made)[_OUTPUT] = _checked_output(self._reader.read(value["output"], path))
        if "requests" in value:
            vars(made)[_REQUESTS] = _read_requests(made, value["requests"])
        self._keep_summaries(made, recipe, path)
        return made

    def _keep_summaries(self, made: Any, recipe: Recipe, path: str) -> None:
        if recipe.summarize is None:
            return
        paths = {where.rpartition(".")[2]: where for where in self._changes if where.rpartition(".")[0] == path}
        if paths:
            vars(made)[_SUMMARIES] = {
                "people": self._people,
                "values": {name: vars(made).get(name) for name in paths},
                "changes": {name: self._changes[where] for name, where in paths.items()},
            }


def _check_params(recipe: Recipe, params: dict[str, Any]) -> None:
    invalid = [name for name, value in params.items() if name not in recipe.params or not recipe.params[name](value)]
    if invalid:
        names = ", ".join(sorted(set(invalid) & set(recipe.params))) or "its parameters"
        raise ModelFileError(f"{recipe.class_name} in the file is not valid in {names}; do not trust it.")


def _check_fitted(recipe: Recipe, fitted: dict[str, Any]) -> None:
    checks, required = recipe.attributes, set(recipe.required)
    invalid = [name for name, value in fitted.items() if name not in checks or not checks[name](value)]
    present = required & set(fitted)
    if invalid or (present and present != required):
        names = ", ".join(sorted(set(invalid) & set(checks))) or "its fitted attributes"
        raise ModelFileError(f"{recipe.class_name} in the file is not valid in {names}; do not trust it.")


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
        f"{', '.join(known_classes())}, and boosted trees of scikit-learn, LightGBM and XGBoost. Replace a transformer "
        "by one of these or apply it before; save another model in the format of its library, and a QuantileRepair of "
        "its scores in a model file."
    )
