"""Estimators -> JSON and arrays, and back, by recipe."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any

from sklearn.utils.metadata_routing import get_routing_for_object

from fairtransport.persistence._values import Reader, Writer
from fairtransport.persistence.recipes._registry import Recipe, known_classes, recipe_for, recipe_named
from fairtransport.storage import ModelFileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.persistence._summaries import Change

__all__ = ["KEPT", "ObjectReader", "ObjectWriter"]

#: On a loaded estimator: the summaries it was given, so that saving it again does not summarise them again.
KEPT = "_summaries_of_file"

_OUTPUT = "_sklearn_output_config"
_REQUESTS = "_metadata_request"


class ObjectWriter:
    """Writes one object with all that is in it."""

    def __init__(self, people: int) -> None:
        self.people = people
        self.changes: dict[str, Change] = {}
        self.uses_sklearn = False
        self._writer = Writer(self._write)
        self._seen: dict[int, tuple[str, Any]] = {}

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of the object, by path."""
        return self._writer.arrays

    def write(self, value: Any, path: str = "model") -> Any:
        """Return the JSON of an object."""
        return self._writer.write(value, path)

    def _write(self, value: Any, path: str) -> dict[str, Any]:
        recipe = recipe_for(value)
        if recipe is None:
            raise TypeError(_cannot(value, path))
        if id(value) in self._seen:
            return {"$": "same", "as": self._seen[id(value)][0]}
        self._seen[id(value)] = (path, value)
        self.uses_sklearn |= recipe.name.startswith("sklearn.")
        held = dict(vars(value))
        kept = held.pop(KEPT, None) or {"values": {}, "people": 1, "changes": {}}
        requests, output = held.pop(_REQUESTS, None), held.pop(_OUTPUT, None)
        params = {name: held.pop(name) for name in _defaults(type(value)) if name in held}
        unknown = sorted(set(held) - set(recipe.fitted))
        if unknown:
            raise TypeError(
                f"{path} ({type(value).__name__}) has attributes that a model file does not know: "
                f"{', '.join(unknown)}. Delete them if they are yours; if they come from a newer library, upgrade "
                "fairtransport."
            )
        both = {**params, **held}
        if recipe.before_saving is not None:
            self._summarise(value, recipe, both, kept, path)
        defaults = _defaults(type(value))
        parts: dict[str, Any] = {
            "$": "object",
            "class": recipe.name,
            "params": {
                recipe.stored_names.get(name, name): self.write(both[name], f"{path}.{name}")
                for name in params
                if not _is_default(both[name], defaults[name])
            },
            "fitted": {name: self.write(both[name], f"{path}.{name}") for name in sorted(set(both) - set(params))},
        }
        if output is not None:
            parts["output"] = self.write(output, path)
        if requests is not None:
            parts["requests"] = _write_requests(requests)
        return parts

    def _summarise(self, value: Any, recipe: Recipe, both: dict[str, Any], kept: dict[str, Any], path: str) -> None:
        """Put summaries in the place of people's scores, unless they are summaries from a file already."""
        if recipe.before_saving is None:
            return
        for name, (summary, change) in recipe.before_saving(value, self.people).items():
            told = f"{path}.{name}"
            if kept["people"] >= self.people and both[name] is kept["values"].get(name):
                self.changes[told] = kept["changes"][name]
                continue
            both[name] = summary
            self.changes[told] = change


class ObjectReader:
    """Reads what `ObjectWriter` wrote."""

    def __init__(self, arrays: dict[str, NDArray[Any]], *, people: int, changes: dict[str, Change]) -> None:
        self._people, self._changes = people, changes
        self._reader = Reader(arrays, self._read)
        self._made: dict[str, Any] = {}

    def read(self, value: Any, path: str = "model") -> Any:
        """Return the object of JSON."""
        made = self._reader.read(value, path)
        if self._reader.n_unread:
            raise ModelFileError(f"The file has {self._reader.n_unread} arrays that its model does not use.")
        return made

    def _read(self, value: dict[str, Any], path: str) -> Any:
        if value.get("$") == "same":
            return self._made[value["as"]]
        recipe = recipe_named(value.get("class"))
        if value.get("$") != "object" or recipe is None:
            raise ModelFileError(
                "The file holds an object of a class that files may not hold, or that this version does not know. If "
                "you trust it, upgrade fairtransport."
            )
        kind = recipe.load_class()
        names = {stored: name for name, stored in recipe.stored_names.items()}
        stored = {names.get(name, name): part for name, part in value["params"].items()}
        params = {name: self._reader.read(part, f"{path}.{name}") for name, part in stored.items()}
        unknown = set(params) - set(_defaults(kind))
        if unknown:
            raise ModelFileError(
                f"{kind.__name__} of the installed library has not all of the parameters that the file names; install "
                "the versions that wrote the file (fairtransport.persistence.describe)."
            )
        made = kind(**params)
        self._made[path] = made
        fitted = {name: self._reader.read(part, f"{path}.{name}") for name, part in value["fitted"].items()}
        _check_fitted(recipe, fitted)
        vars(made).update(fitted)
        if fitted and recipe.check is not None and not recipe.check(made):
            raise ModelFileError(f"The parts of a {kind.__name__} in the file do not fit together; do not trust it.")
        if "output" in value:
            vars(made)[_OUTPUT] = self._reader.read(value["output"], path)
        if "requests" in value:
            vars(made)[_REQUESTS] = _read_requests(made, value["requests"])
        self._mark(made, recipe, path)
        return made

    def _mark(self, made: Any, recipe: Recipe, path: str) -> None:
        if recipe.before_saving is None:
            return
        held = {told.rpartition(".")[2]: told for told in self._changes if told.rpartition(".")[0] == path}
        if held:
            vars(made)[KEPT] = {
                "people": self._people,
                "values": {name: vars(made).get(name) for name in held},
                "changes": {name: self._changes[told] for name, told in held.items()},
            }


def _check_fitted(recipe: Recipe, fitted: dict[str, Any]) -> None:
    some = set(fitted) & set(recipe.needed)
    bad = [name for name, value in fitted.items() if name not in recipe.fitted or not recipe.fitted[name](value)]
    if bad or (some and some != set(recipe.needed)):
        told = ", ".join(sorted(set(bad) & set(recipe.fitted))) or "its fitted attributes"
        raise ModelFileError(f"{recipe.name} in the file has something wrong in {told}; do not trust it.")


def _defaults(kind: type) -> dict[str, Any]:
    """Parameters of the class and their defaults."""
    signature = inspect.signature(kind)
    return {name: one.default for name, one in signature.parameters.items() if one.kind is not one.VAR_KEYWORD}


def _is_default(value: Any, default: Any) -> bool:
    if value is default:
        return True
    if type(value) is not type(default) or not isinstance(value, (bool, int, float, str)):
        return False
    return value == default or (isinstance(value, float) and math.isnan(value) and math.isnan(default))


def _write_requests(requests: Any) -> dict[str, dict[str, Any]]:
    told = {}
    for method, wanted in vars(requests).items():
        if method != "owner" and wanted.requests:
            told[method] = {name: alias for name, alias in wanted.requests.items() if alias is not None}
    return {method: wanted for method, wanted in told.items() if wanted}


def _read_requests(made: Any, told: Any) -> Any:
    requests = get_routing_for_object(made)
    for method, wanted in told.items():
        own: Any = getattr(requests, method, None) if method != "owner" else None
        if not hasattr(own, "add_request") or not isinstance(wanted, dict):
            raise ModelFileError("The file asks for metadata of a method that there is not; do not trust it.")
        for name, alias in wanted.items():
            if not isinstance(alias, (bool, str)):
                raise ModelFileError("The file asks for metadata under something that is no name; do not trust it.")
            own.add_request(param=name, alias=alias)
    return requests


def _cannot(value: Any, path: str) -> str:
    if callable(value) and not hasattr(value, "get_params"):
        return (
            f"{path} is a function, and a model file holds no code. Where it selects columns, name them instead; "
            "otherwise use another parameter before saving."
        )
    if type(value).__name__ in {"RandomState", "Generator"}:
        return f"{path} is a generator of random numbers, which a model file does not hold; set a number or None first."
    return (
        f"{path} is a {type(value).__module__}.{type(value).__name__}, which a model file cannot hold. It can hold "
        f"{', '.join(known_classes())}. Keep other models with their own library's files, and save the repair of "
        "their scores (QuantileRepair) here."
    )
