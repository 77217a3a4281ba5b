"""The figures of Table 1 as data, and how they are written as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from fairtransport import __version__
from fairtransport.paper._published import METRICS, three_digits
from fairtransport.storage import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["NOISE_FLOOR", "Table1", "Table1Row"]

NOISE_FLOOR = "noise floor"
"""Name of the line below the methods of a data set."""

_BOLD = " **Bold**:\nbelow the paper's by more than the standard error."
_NOTE = f"""\
Test rows; mean ± standard deviation over runs, with the paper's figure in parentheses. Lower is better.{_BOLD}
One figure alone says little, because error and disparity are traded for each other.

- Variants of a method stand beside the paper's figure of that method. *Paper*: the published algorithm. *Anchor*:
  this package's defaults, which keep the logistic loss. *W2*: the Wasserstein-2 barycenter by group size.
- Wass1 is the distance to the target that a method aims at, fixed at logistic regression's scores of the test rows.
- Runs are splits into training and test rows; on Adult, whose split is given, seeds of the training.
- The noise floor is what perfect parity shows on so few test rows: the metric of DPP's scores after shuffling
  group membership, mean over the splits."""


@dataclass(frozen=True)
class Table1Row:
    """One figure of the table.

    Attributes
    ----------
    dataset, method : str
        Data set and method, such as ``"Adult"`` and ``"COT (paper)"``.
    metric : str
        In the paper's spelling: ``"Err-.5"``, ``"Wass1"``, ``"SDD"`` or ``"SPDD"``.
    mean, spread : float
        Mean and standard deviation (0 for a single run) over runs.
    n : int
        Number of runs: seeds on Adult (one for methods without randomness), splits on the others.
    published : float or None
        The paper's figure; that of the method itself for a variant of it.
    floor : float or None
        The metric under perfect parity on as many test rows: DPP's with membership shuffled.
    """

    dataset: str
    method: str
    metric: str
    mean: float
    spread: float
    n: int
    published: float | None
    floor: float | None

    @property
    def beyond(self) -> bool:
        """Whether ours is lower than the published figure, by more than its standard error.

        Never for LR: its figures only show how similar the set-up is to the paper's.
        """
        if self.published is None or self.method == "LR":
            return False
        return round(self.mean + self.spread / math.sqrt(self.n), 3) < self.published

    @property
    def cell(self) -> str:
        """Mean, standard deviation of several runs, and published figure in Markdown."""
        text = three_digits(self.mean) + (f" ± {three_digits(self.spread)}" if self.n > 1 else "")
        text = f"**{text}**" if self.beyond else text
        return text if self.published is None else f"{text} ({three_digits(self.published)})"


@dataclass(frozen=True)
class Table1:
    """All figures, and how to write them down.

    Attributes
    ----------
    rows : tuple of Table1Row
        Data sets, methods and metrics in the paper's order.
    quick : bool
        Whether training was cut short.
    """

    rows: tuple[Table1Row, ...]
    quick: bool = False

    def value(self, dataset: str, method: str, metric: str) -> Table1Row:
        """Return one figure; KeyError when the table does not have it."""
        for row in self.rows:
            if (row.dataset, row.method, row.metric) == (dataset, method, metric):
                return row
        raise KeyError((dataset, method, metric))

    @property
    def caption(self) -> str:
        """What the figures are, as plain text in one line."""
        return _NOTE.replace(_BOLD, "").replace("*", "").replace("\n- ", " ").replace("\n", " ")

    def lines(self, dataset: str) -> Iterator[tuple[str, list[str], int | None]]:
        """Yield each method's name, one cell for each metric, and its number of runs; the noise floor comes last."""
        rows = [row for row in self.rows if row.dataset == dataset]
        for method in dict.fromkeys(row.method for row in rows):
            figures = [row for row in rows if row.method == method]
            yield method, [row.cell for row in figures], figures[0].n
        floors = {row.metric: row.floor for row in rows}
        yield NOISE_FLOOR, ["" if (floor := floors[name]) is None else three_digits(floor) for name in METRICS], None

    @property
    def datasets(self) -> tuple[str, ...]:
        """The data sets in order."""
        return tuple(dict.fromkeys(row.dataset for row in self.rows))

    def to_markdown(self) -> str:
        """Write one table for each data set: ours ± spread (published), bold where ours is lower."""
        text = ["# Table 1: ours beside the published figures", "", _NOTE]
        if self.quick:
            text += ["", "**Quick run: training was cut short and runs are few, so the figures are rough.**"]
        for dataset in self.datasets:
            text += ["", f"## {dataset}", "", f"| | {' | '.join(METRICS)} | runs |", "| --- |" + " ---: |" * 5]
            for method, cells, runs in self.lines(dataset):
                text.append(f"| {method} | {' | '.join(cells)} |" + (" |" if runs is None else f" {runs} |"))
        return "\n".join(text) + "\n"

    def to_csv(self) -> str:
        """Write one line for each figure, with all digits."""
        text = io.StringIO()
        records = [{**asdict(row), "beyond": row.beyond} for row in self.rows]
        writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        return text.getvalue()

    def to_json(self) -> str:
        """Write an object with the version, whether it was quick, and ``rows``."""
        rows = [{**asdict(row), "beyond": row.beyond} for row in self.rows]
        content = {"table": "table1", "version": __version__, "quick": self.quick, "rows": rows}
        return json.dumps(content, indent=1, allow_nan=False) + "\n"

    def write(self, folder: Path) -> list[Path]:
        """Write ``table1.md``, ``table1.csv`` and ``table1.json`` into an existing folder."""
        texts = {"md": self.to_markdown(), "csv": self.to_csv(), "json": self.to_json()}
        return [write_atomically(folder / f"table1.{ending}", text.encode()) for ending, text in texts.items()]
