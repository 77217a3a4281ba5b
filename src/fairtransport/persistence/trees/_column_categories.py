"""Categories of the columns of a table, which XGBoost stores with its trees since version 3.1."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairtransport.persistence.trees._checks import MAX_CATEGORIES, check_numbers, check_within, require

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

__all__ = ["ColumnCategories"]

_TEXT = 0
# Types of categories that are numbers, by the number that XGBoost gives them.
_DTYPES: dict[int, Any] = {9: np.int8, 10: np.uint8, 11: np.int16, 13: np.int32, 15: np.int64}
_FLIP_SIGN = bytes((byte + 128) % 256 for byte in range(256))


@dataclass(frozen=True, eq=False)
class ColumnCategories:
    """Categories of all columns; all arrays are vectors of int64.

    Attributes
    ----------
    kind, n_values : array of shape (n_columns,) or (0,)
        Type and number of the categories of each column: 0 is text. Without elements if no column has categories.
    numbers : array
        Categories that are numbers.
    lengths, content : array
        Categories that are text: the length of each, and the bytes of all.
    """

    kind: Integers
    n_values: Integers
    numbers: Integers
    lengths: Integers
    content: Integers

    @classmethod
    def array_names(cls) -> list[str]:
        """Return the names of the arrays."""
        return [one.name for one in fields(cls)]

    def check(self, n_columns: int) -> None:
        """Raise InvalidTreesError unless the arrays agree with each other and with the number of columns."""
        check_numbers(vars(self), integers=self.array_names(), reals=())
        require(self.kind.size in {0, n_columns}, "categories are not those of the columns")
        require(self.n_values.size == self.kind.size, "categories are not those of the columns")
        require(set(self.kind.tolist()) <= {_TEXT, *_DTYPES}, "categories are of an unknown type")
        check_within(self.n_values, 0, MAX_CATEGORIES + 1, "a number of categories")
        require(self.n_values.sum() <= MAX_CATEGORIES, f"columns have more than {MAX_CATEGORIES} categories")
        text = self.kind == _TEXT
        require(self.n_values[text].sum() == self.lengths.size, "categories do not sum to their number")
        require(self.n_values[~text].sum() == self.numbers.size, "categories do not sum to their number")
        check_within(self.lengths, 0, self.content.size + 1, "the length of a category")
        require(self.lengths.sum() == self.content.size, "lengths of categories do not sum to their bytes")
        check_within(self.content, 0, 256, "a byte of a category")
        for kind, numbers in zip(self.kind[~text].tolist(), _split(self.numbers, self.n_values[~text]), strict=True):
            limits = np.iinfo(_DTYPES[kind])
            require(np.all((numbers >= limits.min) & (numbers <= limits.max)), "a category is out of range")

    def to_dict(self) -> dict[str, Any]:
        """Return the categories as XGBoost stores them."""
        text = self.kind == _TEXT
        lengths = _split(self.lengths, self.n_values[text])
        contents = iter(_split(self.content, np.array([length.sum() for length in lengths], dtype=np.int64)))
        of_texts, numbers = iter(lengths), iter(_split(self.numbers, self.n_values[~text]))
        columns: list[dict[str, Any]] = []
        orders = [np.zeros(0, dtype=np.int64)]
        for kind in self.kind.tolist():
            if kind == _TEXT:
                offsets = np.concatenate(([0], np.cumsum(next(of_texts))))
                content = next(contents).astype(np.uint8)
                orders.append(_order_of_texts(content.tobytes(), offsets.tolist()))
                kept = offsets if offsets.size > 1 else offsets[:0]
                columns.append({"offsets": kept.astype(np.int32), "values": content.view(np.int8)})
            else:
                values = next(numbers)
                orders.append(np.argsort(values, kind="stable"))
                columns.append({"type": kind, "values": values.astype(_DTYPES[kind])})
        return {
            "enc": columns,
            "feature_segments": np.concatenate(([0], np.cumsum(self.n_values))).astype(np.int32),
            "sorted_idx": np.concatenate(orders).astype(np.int32),
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Return the categories that XGBoost stored."""
        kinds: list[int] = []
        n_values: list[int] = []
        numbers, lengths, contents = ([np.zeros(0, dtype=np.int64)] for _ in range(3))
        for column in stored["enc"]:
            if "offsets" in column:
                kinds.append(_TEXT)
                lengths.append(np.diff(column["offsets"]).astype(np.int64))
                contents.append(np.asarray(column["values"], dtype=np.int8).view(np.uint8).astype(np.int64))
                n_values.append(lengths[-1].size)
            else:
                require(column["type"] in _DTYPES, "it has categories of another type than text and integers")
                kinds.append(column["type"])
                numbers.append(np.asarray(column["values"], dtype=np.int64))
                n_values.append(numbers[-1].size)
        if not any(n_values):
            kinds, n_values = [], []
        counts = (np.array(part, dtype=np.int64) for part in (kinds, n_values))
        result = cls(*counts, *(np.concatenate(parts) for parts in (numbers, lengths, contents)))
        result.check(len(kinds))
        if kinds:
            order = result.to_dict()["sorted_idx"]
            require(np.array_equal(order, stored["sorted_idx"]), "its categories have another order than expected")
        return result

    def equals(self, other: Self) -> bool:
        """Return whether all categories are equal."""
        return all(np.array_equal(value, getattr(other, name)) for name, value in vars(self).items())


def _split(array: Integers, sizes: Integers) -> list[Integers]:
    """Split into parts of these sizes, which sum to the size of the array."""
    return np.split(array, np.cumsum(sizes)[:-1]) if sizes.size else []


def _order_of_texts(content: bytes, offsets: list[int]) -> Integers:
    """Return the order of categories by their bytes, which XGBoost compares as signed numbers."""
    signed = content.translate(_FLIP_SIGN)
    texts = [signed[begin:end] for begin, end in pairwise(offsets)]
    return np.array(sorted(range(len(texts)), key=texts.__getitem__), dtype=np.int64)
