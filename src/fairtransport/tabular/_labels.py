"""The two labels of a raw table, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._labels import positive_label
from fairtransport.tabular.value_parsing import normalize_text, number_parser

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["order_labels"]


def order_labels(words: list[str], codes: NDArray[np.int64], name: str, positive: str | None) -> NDArray[Any]:
    """Return the two labels of a column as text, the positive one last: by default the larger.

    Parameters
    ----------
    words : list of str
        Labels that occur.
    codes : ndarray of int
        Index of the label of each row; -1 where it is missing.
    name : str
        Name of the column.
    positive : str, optional
        The positive label; 1 and 1.0 are the same.

    Returns
    -------
    ndarray of str of shape (2,)
        Labels that are numbers are compared as numbers.

    Raises
    ------
    ValueError
        When there are not two labels, or ``positive`` is neither of them.

    Examples
    --------
    >>> order_labels(["10", "9"], np.array([0, 1]), "y", None).tolist()
    ['9', '10']
    """
    if len(words) != 2:
        n_missing = int(np.count_nonzero(codes < 0))
        missing = f" and {n_missing:,} rows without a label" if n_missing else ""
        hint = " If they are amounts or classes, make a column of two labels first." if len(words) > 2 else ""
        labels = "label" if len(words) == 1 else "labels"
        raise ValueError(f"Column {name!r} has {len(words)} different {labels}{missing}; two are needed.{hint}")
    ordered = sorted(words, key=_sort_key)
    pos_label = None
    if positive is not None:
        pos_label = _find_label(positive, words)
        if pos_label is None:
            raise ValueError(f"positive is none of the 2 labels of column {name!r}; write it as the column does.")
    last = positive_label(ordered, pos_label, source=f"Column {name!r}")
    return np.array(sorted(ordered, key=lambda word: word == last))


def _sort_key(word: str) -> tuple[bool, float, str]:
    number = number_parser(".")(word)
    return (number is None, 0.0 if number is None else number, word)


def _find_label(positive: str, words: list[str]) -> str | None:
    word = normalize_text(positive)
    if word in words:
        return word
    read = number_parser(".")
    number = read(positive)
    return next((word for word in words if number is not None and read(word) == number), None)
