"""Redaction of errors that other libraries raise inside a call of this package: their messages quote rows.

Scikit-learn prints the matrix that it cannot use, Python the text that is no number, pandas the key that is missing. An
error leaves a public function or method unchanged only if a ``raise`` statement of this package made it. Any other
message is left out, except the parts known to be made of shapes, types and names alone (`_SAFE_PARTS`) and those that
are said again in words of our own (`_REWORDED`).

Every package calls `redact_public_errors` once, so that nothing that it exports can be forgotten.
"""

from __future__ import annotations

import dis
import inspect
import re
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

T = TypeVar("T")

_RAISE = dis.opmap["RAISE_VARARGS"]
_GUARDED = "_redacts_errors"

# Parts of other libraries' messages that are made of shapes, types, names of classes and of columns, and nothing else.
_SAFE_PARTS = (
    r"Complex data not supported",
    r"Found array with \d+ (sample|feature)\(s\) \(shape=\([\d, ]+\)\) while a minimum of \d+ is required( by \w+)?",
    r"Found array with dim \d+, while dim <= \d is required( by \w+)?",
    r"Found input variables with inconsistent numbers of samples: \[[\d, ]+\]",
    r"Input( \w+)? contains (NaN|infinity or a value too large for dtype\('\w+'\))",
    r"Sparse data was passed( for \w+)?, but dense data is required",
    r"The feature names should match those that were passed during fit\.\n[\s\S]*",
    r"This \w+ instance is not fitted yet\. Call 'fit' with appropriate arguments before using this estimator",
    r"The '\w+' parameter of \w+ must be (?:(?! Got )[^'\n])*",
    r"<class '[\w.]+'> is a class, not an instance",
    r"Unknown label type: [a-z-]+",
    r"X has \d+ features, but \w+ is expecting \d+ features as input",
    r"input_features (is not equal to feature_names_in_|should have length equal to number of features)",
    r"k-fold cross-validation requires at least one train/test split",
    r"n_splits=\d+ cannot be greater than the number of members in each class",
    r"y should be a 1d array, got an array of shape \([\d, ]*\) instead",
    r"The number of features in data \(\d+\) is not the same as it was in training data \(\d+\)",
    r"Feature shape mismatch, expected: \d+, got \d+",
    r"(float|int)\(\) argument must be a string.* or a real number, not '\w+'",
    r"[\w.<>]+\(\) (got an unexpected keyword argument|got multiple values for argument) '\w+'",
    r"[\w.<>]+\(\) missing \d+ required [\w-]+ arguments?: [\w', ]+",
    r"[\w.<>]+\(\) takes [\w ]+ positional arguments? but \d+ (was|were) given",
    r"'[\w.]+' object has no attribute '\w+'",
    r"operands could not be broadcast together with shapes [\d(), ]+",
    r"setting an array element with a sequence",
)

# What a message says -> the same without the values.
_UNSEEN = (
    "X has categories{column} that were not seen in fit. Drop these rows, or let the encoder accept them "
    "(handle_unknown='ignore' or 'infrequent_if_exist')."
)
_REWORDED = {
    r"could not convert": "{X} has text{texts}; encode it as numbers first, for instance with OneHotEncoder.",
    r"Expected 2D array, got (1D|scalar) array": (
        "Expected 2D array, got an array of another shape. Reshape your data: one row for each sample."
    ),
    r"Found unknown categories|unknown value": _UNSEEN,
    r"previously unseen labels|Mix of label input types": (
        "y has labels that are not the two classes of the model, or not of their type."
    ),
    r"Cannot clone object|is not an estimator instance": "estimator must be an instance of a scikit-learn estimator.",
    r"cannot be used to seed": "random_state must be None, a whole number from 0 to 4294967295 or a RandomState.",
    r"Expected `?cv`? as an integer": "cv must be a number of folds, a splitter or a list of splits.",
}
_COLUMN = re.compile(r"\] in column (\d+) during")

# What this package adds to the errors of estimators: which fit it was.
_OWN_NOTE = re.compile(r"Raised in [a-z]|With \w+=")

# Built-in types that are made from one text. A redacted error has the first of them that its own type derives from.
_TYPES = (
    ArithmeticError, AttributeError, BufferError, EOFError, FloatingPointError, IndexError, KeyError, LookupError,
    NotImplementedError, OSError, OverflowError, RuntimeError, TypeError, ValueError, ZeroDivisionError,
)  # fmt: skip

# Errors that have names of files, modules and variables, sizes, or the text of a warning, which is printed anyway.
_HARMLESS = (ImportError, MemoryError, NameError, RecursionError, Warning)


def redact_public_errors(namespace: dict[str, Any]) -> None:
    """Apply `redact_errors` to everything that a module exports."""
    for name in namespace["__all__"]:
        namespace[name] = redact_errors(namespace[name])


def redact_errors(target: T) -> T:
    """Guard a function, or all public methods of a class and of its bases here, so that no error quotes a value."""
    if isinstance(target, FunctionType):
        return cast("T", _guarded(target))
    if isinstance(target, type) and not issubclass(target, BaseException):
        for base in target.__mro__:
            if _is_own_module(base.__module__):
                _guard_methods(base)
    return target


def _guard_methods(owner: Any) -> None:
    """Replace the public methods that a class itself defines, and its constructor unless it only stores parameters."""
    for name, member in list(vars(owner).items()):
        constructor = name == "__init__" and not hasattr(owner, "get_params")
        if name.startswith("_") and name != "__call__" and not constructor:
            continue
        if isinstance(member, (classmethod, staticmethod)):
            setattr(owner, name, type(member)(_guarded(member.__func__)))
        elif isinstance(member, FunctionType):
            setattr(owner, name, _guarded(member))


def redacted(error: Exception, name: str = "", arguments: dict[str, Any] | None = None) -> Exception:
    """Return an error that quotes no value, neither itself nor in its chain of causes."""
    if not _is_safe(error):
        given = arguments or {}
        message = _safe_message(error, given) or _unknown_message(error, name, given)
        if name:  # Python names the class that defines a method, which may be a base class
            message = re.sub(r"^[\w.<>]+\(\) (?=missing|got|takes)", f"{name}() ", message)
        kind = next((base for base in type(error).__mro__ if base in _TYPES), RuntimeError)
        replacement = error if str(error) == message else kind(message).with_traceback(error.__traceback__)
        vars(replacement)["_redacted"] = True
        vars(replacement)["__notes__"] = [note for note in getattr(error, "__notes__", ()) if _OWN_NOTE.match(note)]
        error = replacement
    _cut_chain(error)
    return error


def _guarded(function: Any) -> Any:
    """Return the function with a guard around it; one that has a guard is returned unchanged."""
    if not isinstance(function, FunctionType) or hasattr(function, _GUARDED):
        return function
    # Names of this module, for a function that gets the globals of another.
    redact, describe, is_own_module = redacted, _describe_call, _is_own_module
    this_frame: Any = inspect.currentframe

    def guard(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except Exception as error:
            if is_own_module(this_frame().f_back.f_globals.get("__name__")):  # our own code may look at it
                raise
            safe = redact(error, *describe(function, args, options))
        raise safe  # outside of the handler, so that the original is not its context

    # `doctest` finds the functions of a module by their globals.
    moved = FunctionType(guard.__code__, function.__globals__, function.__name__, None, guard.__closure__)
    setattr(moved, _GUARDED, True)
    return wraps(function)(moved)


def _describe_call(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of a function or method, and its arguments by name; none if it was called wrongly."""
    try:
        arguments = dict(inspect.signature(function).bind(*args, **options).arguments)
    except TypeError:
        method = "." in function.__qualname__ and args and not isinstance(args[0], type)
        return f"{type(args[0]).__name__}.{function.__name__}" if method else function.__qualname__, {}
    owner = arguments.pop("self", None)
    arguments.pop("cls", None)
    return function.__qualname__ if owner is None else f"{type(owner).__name__}.{function.__name__}", arguments


def _is_own_module(name: Any) -> bool:
    return f"{name}.".startswith("fairtransport.")


def _is_safe(error: BaseException) -> bool:
    """Return whether a ``raise`` statement of this package made an error, or its type says that it quotes no value."""
    if isinstance(error, _HARMLESS) or vars(error).get("_redacted"):
        return True
    if isinstance(error, OSError) and error.errno is not None:
        return True
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not _is_own_module(trace.tb_frame.f_globals.get("__name__")):
        return False
    # An error of compiled code, as from `float(text)`, has the frame of its caller, at an instruction that is no raise.
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == _RAISE and not _repeats(error)


def _repeats(error: BaseException) -> bool:
    """Return whether an error's message has in it that of an unsafe error, in whose handler it was raised."""
    behind = error.__cause__ or error.__context__
    if behind is None or isinstance(behind, LookupError) or _is_safe(behind):  # a KeyError is only its key
        return False
    return bool(str(behind)) and str(behind) in str(error)


def _safe_message(error: BaseException | None, arguments: dict[str, Any]) -> str | None:
    """Return what an error and its causes say as far as it is safe, or None."""
    if hasattr(arguments.get("X"), "collect_schema") and hasattr(arguments.get("X"), "collect"):
        return "X is a lazy table; collect it first (.collect())."
    while error is not None:
        text = str(error)
        for pattern, words in _REWORDED.items():
            if re.search(pattern, text):
                column = _COLUMN.search(text)
                place = f" in column {column[1]}" if column else ""
                texts = _say_text_columns(arguments.get("X"))
                return words.format(X="X" if "X" in arguments else "An argument", column=place, texts=texts)
        for pattern in _SAFE_PARTS:
            found = re.match(pattern, text)
            if found:
                sentence = found[0] if found[0].endswith((".", "\n")) else f"{found[0]}."
                return text if text in {found[0], sentence} else sentence
        error = error.__cause__ or error.__context__
    return None


def _say_text_columns(X: Any) -> str:
    """Return which columns of a table are not numbers, in words; nothing for arrays."""
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return ""
    kinds = dict(zip(X.columns, X.dtypes, strict=False))
    names = [str(name) for name, kind in kinds.items() if not re.match(r"u?int|float|bool|decimal", str(kind).lower())]
    if not names:
        return ""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f" in column{'s' if len(names) > 1 else ''} {', '.join(map(repr, names[:5]))}{more}"


def _unknown_message(error: BaseException, name: str, arguments: dict[str, Any]) -> str:
    trace, module = error.__traceback__, ""
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        trace = trace.tb_next
    given = "; ".join(f"{key}: {_describe(value)}" for key, value in arguments.items() if value is not None)
    return (
        f"{name + ': ' if name else ''}{type(error).__name__} in {module}; its message is left out, because it may "
        f"quote values.{f' Given {given}.' if given else ''}"
    )


def _describe(value: Any) -> str:
    """Return the type of an argument, and its shape and dtype if it has any."""
    text = type(value).__name__
    if isinstance(value, np.ndarray):
        text += f" of {value.dtype.name}" if value.dtype.names is None else " of structures"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and all(isinstance(size, int) for size in shape):
        return f"{text} of shape {shape}"
    return f"{text} of length {len(value)}" if isinstance(value, (list, tuple, dict)) else text


def _cut_chain(error: BaseException) -> None:
    """Remove causes and contexts from the first on that is not safe."""
    seen = {id(error)}
    while True:
        for name in ("__cause__", "__context__"):
            behind = getattr(error, name)
            if behind is not None and (id(behind) in seen or not _is_safe(behind)):
                suppressed = error.__suppress_context__
                setattr(error, name, None)
                error.__suppress_context__ = suppressed
        following = error.__cause__ or error.__context__
        if following is None:
            return
        seen.add(id(following))
        error = following
