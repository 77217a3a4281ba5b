"""Search for the rows of a batch that make an operation fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["separate_failures"]

Row = TypeVar("Row")
Result = TypeVar("Result")


def separate_failures(
    rows: Sequence[Row], operation: Callable[[Sequence[Row]], Result]
) -> tuple[list[Row], Result | None, list[tuple[Row, Exception]]]:
    """Apply an operation to a batch, without the rows for which it fails.

    Parameters
    ----------
    rows : sequence
    operation : callable
        Takes some of the rows. It must not change anything, because it is tried with several subsets.

    Returns
    -------
    kept : list
        The rows without those that fail, in their order.
    result : object or None
        What the operation returned for the kept rows; None if there are none.
    failures : list of (row, Exception)
        Each of the other rows, with the error that it caused.

    Notes
    -----
    The whole batch is tried first. If it fails, its halves are added one after the other, and halved again where they
    fail: for k failing rows of n the operation is called about 2 k log2(n) times. A row that fails alone is never kept,
    and the operation succeeds for the kept rows together. ``KeyboardInterrupt``, ``SystemExit`` and ``MemoryError`` are
    not failures of a row and are raised.

    Examples
    --------
    >>> kept, result, failures = separate_failures([4, 2, 0, 1], lambda rows: [4 / row for row in rows])
    >>> kept, result, [(row, type(error).__name__) for row, error in failures]
    ([4, 2, 1], [1.0, 2.0, 4.0], [(0, 'ZeroDivisionError')])
    """
    kept: list[Row] = []
    result: Result | None = None
    failures: list[tuple[Row, Exception]] = []
    waiting = [rows] if rows else []
    while waiting:
        part = waiting.pop()
        candidate = [*kept, *part]
        try:
            result = operation(candidate)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a failure of these rows
            if len(part) == 1:
                failures.append((part[0], error))
            else:
                middle = len(part) // 2
                waiting += [part[middle:], part[:middle]]
        else:
            kept = candidate
    return kept, result, failures
