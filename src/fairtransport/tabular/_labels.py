"""Two labels of a raw table, and which of them is the positive one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport.tabular.cells import number_reader, word_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["two_words"]


def two_words(words: list[str], codes: NDArray[np.int64], name: str, positive: str | None) -> NDArray[Any]:
    """Return the two labels of a column as text, the positive one last: by default the larger.

    Parameters
    ----------
    words : list of str
        Labels that occur.
    codes : ndarray of int
        Each row's; -1 is missing.
    name : str
        Of the column.
    positive : str, optional
        As the user writes it: 1 and 1.0 are alike.

    Raises
    ------
    ValueError
        When there are not two, or the positive one is not among them. The text holds counts, not labels.

    Examples
    --------
    >>> two_words(["10", "9"], np.array([0, 1]), "y", None).tolist()
    ['9', '10']
    """
    if len(words) != 2:
        missing = int(np.count_nonzero(codes < 0))
        told = f" and {missing:,} rows without" if missing else ""
        hint = " If they are amounts or classes, make a column of two labels first." if len(words) > 2 else ""
        raise ValueError(f"Column {name!r} has {len(words)} different label{'s' * (len(words) != 1)}{told}; two are "
                         f"needed.{hint}")  # fmt: skip
    ordered = sorted(words, key=_size)
    if positive is not None:
        wanted = _same_as(positive, words)
        if wanted is None:
            raise ValueError(f"positive is none of the 2 labels of column {name!r}; write it as the column does.")
        ordered.sort(key=lambda word: word == wanted)
    return np.array(ordered)


def _size(word: str) -> tuple[bool, float, str]:
    number = number_reader(".")(word)
    return (number is None, 0.0 if number is None else number, word)


def _same_as(positive: str, words: list[str]) -> str | None:
    given = word_of(positive)
    if given in words:
        return given
    read = number_reader(".")
    number = read(positive)
    return next((word for word in words if number is not None and read(word) == number), None)
