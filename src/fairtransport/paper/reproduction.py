"""The reproduced paper in one folder: figures, the numbers behind them, and a page that lists each claim."""

from __future__ import annotations

import importlib
import os
import platform
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtransport import __version__
from fairtransport._extras import check_report
from fairtransport._validation import check_choice
from fairtransport.paper.finding import Finding, run_parts
from fairtransport.report.style.figures import figure_bytes, image_address
from fairtransport.report.style.web_pages import render_template
from fairtransport.storage import write_atomically

ITEMS = ("table1", "figure1", "figure2", "figure3", "figure4", "ablation")
"""The parts that can be reproduced, in the order of the page; each is a module of this package."""

_ABBREVIATIONS = (
    "Methods: logistic regression (LR), discrete optimal transport (DOT), demographic parity post-processing (DPP) and "
    "continuous optimal transport (COT). Metrics: error rate at threshold .5 (Err-.5), Wasserstein-1 distance to the "
    "target (Wass1), strong demographic disparity (SDD) and strong pairwise demographic disparity (SPDD)."
)
_MARKS = {"agrees": "✓", "better": "▲", "differs": "≠"}


@dataclass(frozen=True, eq=False)
class Reproduction:
    """The findings, and the files that were written."""

    findings: tuple[Finding, ...]
    files: tuple[Path, ...]
    quick: bool

    @property
    def tally(self) -> str:
        """Number of claims that agree, are better than in the paper, or differ, as a sentence."""
        return _tally(self.findings)


def reproduce(
    names: Sequence[str], folder: str | os.PathLike[str], *, quick: bool = False, n_jobs: int = 1, show: bool = False
) -> Reproduction:
    """Reproduce tables and figures of the paper and write them to a folder."""
    for name in names:
        check_choice(name, ITEMS, name="what to reproduce")
    check_report()
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    items = [_item(name) for name in ITEMS if name in names]
    parts = [part for item in items for part in item.parts(quick=quick)]
    results = run_parts(parts, folder=home / "parts", n_jobs=n_jobs, title="reproducing the paper", show=show)
    findings = tuple(item.assemble(results, quick=quick) for item in items)
    contents = _contents(findings, quick=quick)
    for name, content in contents.items():
        write_atomically(home / name, content)
    files = tuple(home / name for name in sorted(contents, key=lambda name: name != "index.html"))
    return Reproduction(findings, files, quick)


def _item(name: str) -> Any:
    """Return the module of a table or figure: ``parts`` are its computations, ``assemble`` makes the finding."""
    return importlib.import_module(f"fairtransport.paper.{name}")


def _contents(findings: Sequence[Finding], *, quick: bool) -> dict[str, bytes]:
    """Return the files by name."""
    contents: dict[str, bytes] = {}
    for finding in findings:
        for stem, figure in finding.figures.items():
            contents |= {f"{stem}.{kind}": figure_bytes(figure, kind) for kind in ("png", "svg")}
        contents |= {f"{stem}.csv": table.to_csv().encode() for stem, table in finding.tables.items()}
    names = [finding.name for finding in findings]
    page = render_template(
        "reproduction.html",
        package="fairtransport.paper",
        title="Fairness with Continuous Optimal Transport, checked",
        tally=_tally(findings),
        abbreviations=_ABBREVIATIONS,
        quick=quick,
        marks=_MARKS,
        findings=findings,
        images={stem: image_address(contents[f"{stem}.png"], "png") for one in findings for stem in one.figures},
        command=("all" if tuple(names) == ITEMS else " ".join(names)) + (" --quick" if quick else ""),
        machine=_machine(),
    )
    return {**contents, "summary.md": summary(findings, quick=quick).encode(), "index.html": page.encode()}


def summary(findings: Sequence[Finding], *, quick: bool) -> str:
    """Return the findings in Markdown."""
    lines = ["# The paper, checked", "", _tally(findings), "", _ABBREVIATIONS]
    if quick:
        lines += ["", "**Quick run: fewer updates and seeds; the figures are rough.**"]
    claims = []
    for finding in findings:
        for claim in finding.claims:
            ours = claim.ours + (f" ({claim.reason})" if claim.reason else "")
            cells = (finding.short, claim.text, claim.paper or "-", ours, f"{_MARKS[claim.verdict]} {claim.verdict}")
            claims.append([cell.replace("|", "\\|").replace("\n", " ") for cell in cells])
    lines += ["", *_table(("where", "claim, in our words", "paper", "ours", "verdict"), claims)]
    for finding in findings:
        lines += ["", f"## {finding.title}", ""]
        lines += [f"![{finding.title}]({stem}.png)" for stem in finding.figures]
        lines += ["", finding.caption]
        for stem, table in finding.shown.items():
            lines += ["", f"<!-- {stem} -->", *_table(table.columns, table.rows)]
    lines += ["", f"fairtransport {__version__}; {_machine()}."]
    return "\n".join(lines) + "\n"


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    return [f"| {' | '.join(map(str, row))} |" for row in (columns, ["---"] * len(columns), *rows)]


def _tally(findings: Sequence[Finding]) -> str:
    counts = Counter(claim.verdict for finding in findings for claim in finding.claims)
    verdicts = f"{counts['agrees']} agree, {counts['better']} better than in the paper, {counts['differs']} differ"
    return f"Claims checked: {counts.total()}. Of these {verdicts}."


def _machine() -> str:
    return f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
