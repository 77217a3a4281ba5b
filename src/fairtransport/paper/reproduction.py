"""The reproduced paper in one folder: figures, the numbers behind them, and a page that lists each claim."""

from __future__ import annotations

import importlib
import platform
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtransport import __version__
from fairtransport._extras import check_report
from fairtransport._validation import check_choice
from fairtransport.paper.finding import run_parts
from fairtransport.report.style.figures import figure_bytes, image_address
from fairtransport.report.style.web_pages import color_scheme, date_text, template_environment
from fairtransport.storage import write_atomically

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from fairtransport.paper.finding import Finding, Item

ITEMS = ("table1", "figure1", "figure2", "figure3", "figure4", "ablation")
"""What can be reproduced, in the order of the page; each is a module of this package."""

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
    items = {name: _item(name) for name in ITEMS if name in names}
    parts = {name: list(item.parts(quick=quick)) for name, item in items.items()}
    every = [part for several in parts.values() for part in several]
    results = run_parts(every, folder=home / "parts", n_jobs=n_jobs, title="reproducing the paper", show=show)
    findings = tuple(
        item.assemble({part.name: results[part.name] for part in parts[name]}, quick=quick)
        for name, item in items.items()
    )
    files = _write(findings, home, quick=quick)
    return Reproduction(findings, files, quick)


def _item(name: str) -> Item:
    module: Any = importlib.import_module(f"fairtransport.paper.{name}")
    item: Item = module
    return item


def _write(findings: Sequence[Finding], home: Path, *, quick: bool) -> tuple[Path, ...]:
    contents: dict[str, bytes] = {}
    images: dict[str, bytes] = {}
    for finding in findings:
        for stem, figure in finding.figures.items():
            images[stem] = figure_bytes(figure, "png")
            contents[f"{stem}.png"] = images[stem]
            contents[f"{stem}.svg"] = figure_bytes(figure, "svg")
        for stem, table in finding.tables.items():
            contents[f"{stem}.csv"] = table.to_csv().encode()
    contents["summary.md"] = summary(findings, quick=quick).encode()
    contents["index.html"] = _page(findings, images, quick=quick).encode()
    for name, content in contents.items():
        write_atomically(home / name, content)
    return tuple(home / name for name in sorted(contents, key=lambda n: n != "index.html"))


def summary(findings: Sequence[Finding], *, quick: bool) -> str:
    """Return the findings in Markdown."""
    lines = ["# The paper, checked", "", _tally(findings), "", _ABBREVIATIONS]
    if quick:
        lines += ["", "**Quick run: fewer updates and seeds; the figures are rough.**"]
    lines += ["", "| where | claim, in our words | paper | ours | verdict |", "| --- | --- | --- | --- | --- |"]
    for finding in findings:
        for claim in finding.claims:
            ours = claim.ours + (f" ({claim.reason})" if claim.reason else "")
            cells = (_short(finding), claim.text, claim.paper or "-", ours, f"{_MARKS[claim.verdict]} {claim.verdict}")
            lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    for finding in findings:
        lines += ["", f"## {finding.title}", ""]
        lines += [f"![{finding.title}]({stem}.png)" for stem in finding.figures]
        lines += ["", finding.caption]
        for stem, table in finding.shown.items():
            lines += [
                "",
                f"<!-- {stem} -->",
                "| " + " | ".join(table.columns) + " |",
                "| --- " * len(table.columns) + "|",
            ]
            lines += ["| " + " | ".join(map(str, row)) + " |" for row in table.rows]
    lines += ["", f"fairtransport {__version__}; {_machine()}."]
    return "\n".join(lines) + "\n"


def _page(findings: Sequence[Finding], images: dict[str, bytes], *, quick: bool) -> str:
    environment = template_environment("fairtransport.paper")
    names = [finding.name for finding in findings]
    page: str = environment.get_template("reproduction.html").render(
        title="Fairness with Continuous Optimal Transport, checked",
        tally=_tally(findings),
        abbreviations=_ABBREVIATIONS,
        quick=quick,
        marks=_MARKS,
        findings=[_shown(finding, images) for finding in findings],
        command=("all" if tuple(names) == ITEMS else " ".join(names)) + (" --quick" if quick else ""),
        version=__version__,
        written=date_text(),
        machine=_machine(),
        colours=color_scheme(),
    )
    return page


def _shown(finding: Finding, images: dict[str, bytes]) -> dict[str, Any]:
    return {
        "name": finding.name,
        "short": _short(finding),
        "title": finding.title,
        "caption": finding.caption,
        "claims": finding.claims,
        "images": [
            {"data": image_address(images[stem], "png"), "alt": f"{finding.title}. {finding.caption}"}
            for stem in finding.figures
        ],
        "shown": list(finding.shown.values()),
        "files": [f"{stem}.csv" for stem in finding.tables],
    }


def _short(finding: Finding) -> str:
    return finding.title.partition(":")[0]


def _tally(findings: Sequence[Finding]) -> str:
    counts = Counter(claim.verdict for finding in findings for claim in finding.claims)
    verdicts = f"{counts['agrees']} agree, {counts['better']} better than in the paper, {counts['differs']} differ"
    return f"Claims checked: {counts.total()}. Of these {verdicts}."


def _machine() -> str:
    return f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
