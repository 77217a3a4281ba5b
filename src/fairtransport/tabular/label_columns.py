"""The labels of a raw table: two classes as text, or numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport._labels import positive_label, task_of_numbers
from fairtransport.tabular.column_plans import encode_text, known_texts, normalize_text, number_parser, parse_numbers


def read_classes(column: Any, name: str, classes: NDArray[Any]) -> tuple[Ints, Bools]:
    """Return 1 where a row has the positive label, the second, and whether it has a label; other labels raise."""
    words, codes = encode_text(column, name)
    words = known_texts(words, classes.tolist())
    n_unknown = len({*words} - {*classes.tolist()})
    if n_unknown:
        raise ValueError(
            f"Column {name!r} has {n_unknown} label{'s' * (n_unknown > 1)} that the training rows did not have; write "
            "them as they were there."
        )
    positive = [int(word == classes[1]) for word in words]
    return np.array([*positive, 0], dtype=np.int64)[codes], codes >= 0


def read_numbers(column: Any, name: str, decimal: str) -> tuple[Floats, Bools]:
    """Return the number of each row, and whether it has one; text that is no number raises."""
    values, unreadable = parse_numbers(column, name, decimal)
    n_unreadable = int(np.count_nonzero(unreadable))
    if n_unreadable:
        raise ValueError(
            f"Column {name!r} has {n_unreadable:,} labels that are not numbers; a regressor predicts numbers."
        )
    known = np.isfinite(values)
    return np.where(known, values, 0.0), known


def infer_task(column: Any, name: str = "y", decimal: str = ".") -> str:
    """Return ``"classification"`` or ``"regression"`` for a column of labels.

    Parameters
    ----------
    column : array or pyarrow.ChunkedArray
        Labels of people, as text or numbers. Two labels, or words, are classes; other numbers are predicted as such.
    name : str, default="y"
        Name of the column, for messages.
    decimal : {".", ","}, default="."
        The decimal point of numbers in text.
    """
    words, _ = encode_text(column, name)
    numbers = [*map(number_parser(decimal), words)]
    if len(words) <= 2 or None in numbers:
        return "classification"
    whole = all(number.is_integer() for number in numbers if number is not None)
    return task_of_numbers(len(words), whole=whole, source=f"Column {name!r}")


def order_labels(words: list[str], codes: Ints, name: str, positive: str | None) -> NDArray[Any]:
    """Return the two labels of a column as text, the positive one last: by default the larger."""
    if len(words) != 2:
        n_missing = int(np.count_nonzero(codes < 0))
        missing = f" and {n_missing:,} rows without a label" if n_missing else ""
        hint = " If they are amounts or classes, make a column of two labels first." if len(words) > 2 else ""
        labels = "label" if len(words) == 1 else "labels"
        raise ValueError(f"Column {name!r} has {len(words)} different {labels}{missing}; two are needed.{hint}")
    read = number_parser(".")
    numbers = {word: read(word) for word in words}
    ordered = sorted(words, key=lambda word: (numbers[word] is None, numbers[word] or 0.0, word))
    pos_label = None
    if positive is not None:
        number = read(positive)
        same = [word for word in words if number is not None and numbers[word] == number]
        pos_label = next((word for word in [normalize_text(positive), *same] if word in words), None)
        if pos_label is None:
            raise ValueError(f"pos_label is none of the 2 labels of column {name!r}; write it as the column does.")
    last = positive_label(ordered, pos_label, source=f"Column {name!r}")
    return np.array(sorted(ordered, key=lambda word: word == last))
