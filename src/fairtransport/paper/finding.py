"""What reproducing one table or figure yields: pictures, the numbers behind them, and claims checked."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairtransport.paper._cached_parts import Part, Result

__all__ = ["VERDICTS", "Claim", "Finding", "Item", "Table"]

VERDICTS = ("agrees", "better", "differs")


@dataclass(frozen=True)
class Claim:
    """One claim of the paper, checked.

    Attributes
    ----------
    text : str
        The claim in our words.
    paper : str
        The paper's figure, or "" where it gives none.
    ours : str
        What we measured, with its spread.
    verdict : {"agrees", "better", "differs"}
        Decided by the code from the numbers, never written by hand.
    reason : str
        Why it differs, as far as known; or how it was decided.
    """

    text: str
    paper: str
    ours: str
    verdict: str
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers behind a picture: names of the columns and rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def to_csv(self) -> str:
        """Write as CSV with a header."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return text.getvalue()


@dataclass(frozen=True, eq=False)
class Finding:
    """One table or figure, reproduced."""

    name: str
    title: str
    caption: str
    figures: Mapping[str, Any] = field(default_factory=dict)  # file stem -> matplotlib Figure
    tables: Mapping[str, Table] = field(default_factory=dict)  # file stem -> numbers
    shown: Mapping[str, Table] = field(default_factory=dict)  # short tables to print on the page
    claims: tuple[Claim, ...] = ()


class Item(Protocol):
    """What every module ``figure1`` ... ``ablation`` offers."""

    def parts(self, *, quick: bool) -> Sequence[Part]:
        """Return the computations, smaller with ``quick``."""
        ...

    def assemble(self, results: Mapping[str, Result], *, quick: bool) -> Finding:
        """Draw and judge from the parts' results."""
        ...
