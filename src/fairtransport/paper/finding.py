"""The result of reproducing one table or figure: figures, the numbers behind them, and the claims checked."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairtransport.paper._cached_parts import Part, Result

__all__ = ["VERDICTS", "Claim", "Finding", "Item", "Table", "verdict"]

VERDICTS = ("agrees", "better", "differs")


def verdict(*, holds: bool) -> str:
    """Return whether our figures agree with a claim of the paper."""
    return "agrees" if holds else "differs"


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
        How the verdict was decided, or why ours differs as far as known.
    """

    text: str
    paper: str
    ours: str
    verdict: str
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Table:
    """The numbers behind a figure."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def to_csv(self) -> str:
        """Return the table as CSV with a header."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return text.getvalue()


@dataclass(frozen=True, eq=False)
class Finding:
    """One reproduced table or figure."""

    name: str
    title: str
    caption: str
    figures: Mapping[str, Any] = field(default_factory=dict)  # file stem -> matplotlib Figure
    tables: Mapping[str, Table] = field(default_factory=dict)  # file stem -> numbers
    shown: Mapping[str, Table] = field(default_factory=dict)  # short tables to print on the page
    claims: tuple[Claim, ...] = ()


class Item(Protocol):
    """The interface of the modules ``table1``, ``figure1`` to ``figure4`` and ``ablation``."""

    def parts(self, *, quick: bool) -> Sequence[Part]:
        """Return the computations.

        Parameters
        ----------
        quick : bool
            Fewer settings and seeds, and shorter runs.
        """
        ...

    def assemble(self, results: Mapping[str, Result], *, quick: bool) -> Finding:
        """Draw the figures and check the claims.

        Parameters
        ----------
        results : mapping
            Name of a part -> its result, for every part of ``parts(quick=quick)``.
        quick : bool
            As for `parts`.
        """
        ...
