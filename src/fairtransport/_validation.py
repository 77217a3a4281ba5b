"""Validation of arguments, and errors as commands and servers may show them.

Our own messages contain names, counts and shapes, never a score, a group value or a row. Those of other libraries may
quote one: they reach Python callers as they are, and leave the process only through `describe_error`.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtransport._arrays import Floats

# Kinds of dtypes that NumPy converts to floats: by dropping the imaginary part, or by counting time units.
_NOT_REAL = {"c": "complex numbers", "M": "dates", "m": "durations"}


def check_vector(values: ArrayLike, *, name: str) -> Floats:
    """Return ``values`` as a finite, non-empty float64 vector."""
    array = check_column(_as_floats(values, name), name=name)
    if array.size == 0:
        raise ValueError(f"{name} is empty; at least one value is needed.")
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(array.sum())  # a quick test; the sum of large numbers may overflow
    bad = 0 if finite else int(array.size - np.count_nonzero(np.isfinite(array)))
    if bad:
        raise ValueError(f"{name} has {bad} NaN or infinite values; remove or impute them first.")
    return array


#: What to do about scores outside the range that is assumed.
OTHER_RANGES = (
    "Give the range of possible scores with range=(low, high), such as range=(1, 10) for deciles or range=(0, 100) for "
    "percentages; if these are logits, apply the logistic function first."
)


def _as_floats(values: ArrayLike, name: str) -> Floats:
    """Return an array of floats, and raise for what NumPy would convert to numbers that mean something else."""
    try:
        given = np.asanyarray(values)
        # Of objects, a library may know better which number they are; missing ones are NaN.
        unusable = _NOT_REAL.get(given.dtype.kind)
        array = np.asarray(values if given.dtype.kind == "O" else given, dtype=None if unusable else np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must contain numbers; it could not be read as an array of floats.") from None
    if unusable:
        raise TypeError(f"{name} must contain real numbers; it has {unusable}.")
    n_masked = int(np.count_nonzero(given.mask)) if isinstance(given, np.ma.MaskedArray) else 0
    if n_masked:
        raise ValueError(f"{name} has {n_masked} masked values; remove or impute them first.")
    return array


def check_column(array: NDArray[Any], *, name: str) -> NDArray[Any]:
    """Return a vector, or a matrix of one column as a vector."""
    if array.ndim == 2 and array.shape[1] == 1:
        return array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension; it has shape {array.shape}.")
    return array


def check_scores(scores: ArrayLike, *, name: str = "scores") -> Floats:
    """Return ``scores`` as a finite vector within [0, 1]."""
    array = check_vector(scores, name=name)
    outside = int(np.count_nonzero((array < 0) | (array > 1)))
    if outside:
        raise ValueError(
            f"{name} has {outside} of {array.size} values outside [0, 1]; probabilities are needed. "
            "If these are logits, apply the logistic function first."
        )
    return array


def check_weights(weights: ArrayLike | None, *, size: int, name: str = "sample_weight") -> Floats | None:
    """Return weights that are non-negative with a positive sum; None stays None."""
    if weights is None:
        return None
    array = check_vector(weights, name=name)
    check_length(array, size=size, name=name)
    negative = int(np.count_nonzero(array < 0))
    if negative:
        raise ValueError(f"{name} has {negative} negative values; weights must be zero or more.")
    if not array.sum() > 0:
        raise ValueError(f"{name} sums to zero; at least one weight must be positive.")
    return array


def check_length(array: Any, *, size: int, name: str) -> None:
    """Raise ValueError unless ``array`` has ``size`` rows."""
    if len(array) != size:
        raise ValueError(f"{name} has {len(array)} rows, but the scores or features have {size}.")


def check_choice(value: Any, allowed: Collection[str], *, name: str) -> str:
    """Return ``value`` if it is one of the ``allowed`` strings."""
    if not isinstance(value, str) or value not in allowed:
        words = ", ".join(repr(word) for word in allowed)
        raise ValueError(f"{name} must be one of {words}; got {_say(value)}.")
    return value


def _say(value: Any) -> str:
    """Return a parameter as it was given, or only its type where it may be data in the wrong place."""
    return repr(value) if value is None or isinstance(value, (str, bool, int, float)) else type(value).__name__


def check_count(value: Any, *, name: str, least: int = 1) -> int:
    """Return ``value`` as an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be a whole number; got {type(value).__name__}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}; got {value}.")
    return int(value)


def check_flag(value: Any, *, name: str) -> bool:
    """Return ``value`` if it is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False; got {type(value).__name__}.")
    return bool(value)


def check_real(
    value: Any, *, name: str, least: float = 0.0, strict: bool = False, most: float = np.inf, finite: bool = True
) -> float:
    """Return ``value`` as a float in [least, most] (``strict``: above ``least``)."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number; got {type(value).__name__}.")
    number = float(value)
    too_low = number <= least if strict else number < least
    if np.isnan(number) or too_low or number > most or (finite and np.isinf(number)):
        bound = f"above {least:g}" if strict else f"at least {least:g}"
        limit = "" if np.isinf(most) else f" and at most {most:g}"
        raise ValueError(f"{name} must be {'a finite number ' if finite else ''}{bound}{limit}; got {number:g}.")
    return number


# Errors whose messages have names of files and modules, or sizes, whoever raises them.
_HARMLESS = (ImportError, MemoryError)
_PACKAGE = f"{Path(__file__).parent}{os.sep}"


def describe_error(error: BaseException) -> str:
    """Return an error without values of a caller: its message if a ``raise`` of this package made it, else its type."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.strerror}: {error.filename}"
    frames = traceback.extract_tb(error.__traceback__)
    # An error of compiled code, as from `float(text)`, has the frame of its caller, at a line that is no raise.
    ours = frames and frames[-1].filename.startswith(_PACKAGE) and str(frames[-1].line).startswith("raise")
    if ours or isinstance(error, _HARMLESS):
        return str(error) or type(error).__name__
    where = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}; its message is left out, because it may quote values."
