"""``fairtransport compare``: what changed between two audits of the same groups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

import fairtransport as ft
from fairtransport._extras import load_extra
from fairtransport.cli import _options as shared
from fairtransport.cli._errors import misuse
from fairtransport.cli._file_audits import AuditPlan
from fairtransport.cli._output import Output, spinner

if TYPE_CHECKING:
    from fairtransport.auditing import Audit


@shared.described(
    before=shared.argument("BEFORE", "Audit (.json) or file of scores."),
    after=shared.argument("AFTER", "Audit (.json) or file of scores [default: BEFORE, for two columns of one file]."),
    scores=shared.option("COLUMNS", "Column with the scores; two, such as s,t, where AFTER has another."),
    names=shared.option("A,B", "Names of the two [default: those of the files]."),
    threshold=shared.option("X", "Scores above X are selected; may be repeated."),
)
def run_compare(
    before: str,
    after: str | None = None,
    *,
    scores: str | None = None,
    sensitive: list[str] | None = None,
    label: str | None = None,
    pos_label: str | None = None,
    weight: str | None = None,
    names: str | None = None,
    threshold: list[float] | None = None,
    score_range: str | None = None,
    html: Path | None = None,
    output: Output,
    seed: int = 0,
    reading: shared.ReadingOptions,
) -> None:
    """Compare two audits of the same groups: two months, two models, before and after repair.

    Each of the two is an audit that `fairtransport audit --json` wrote, or a file of scores, which is audited first;
    then --scores and --sensitive are needed.

    \b
    Example:
      fairtransport compare march.json april.json --html change.html
      fairtransport compare repaired.csv --sensitive race --scores s,s_repaired
    """  # noqa: D301 - \b keeps the lines of the example
    columns = shared.split_names([scores or ""])
    if after is None:
        if len(columns) != 2 or _is_audit(before, reading):
            raise misuse("name two files, or two columns of one: --scores before,after")
        after, names = before, names or ",".join(columns)
    output.prepare(html, inputs=[before, after])
    if html is not None:
        load_extra("jinja2")  # fails before anything is computed
    titles = _titles(names, before, after)
    if len(columns) > 2:
        raise misuse("--scores must be one column, or one for each of the two files")
    policy = shared.make_policy("keep", 30, 200)
    drawing = {
        "thresholds": threshold or None,
        "target": "barycenter",
        "inference": ft.auditing.Inference(random_state=seed),
        "groups": policy,
    }
    counting = {"range": shared.parse_range(score_range), "groups": policy}
    audits = []
    for path, score in zip((before, after), [*columns, *columns[-1:], None, None], strict=False):
        roles = {"score": score, "sensitive": sensitive or (), "label": label, "weight": weight}
        audits.append(_read(path, AuditPlan(roles, pos_label, reading, counting, drawing)))
    comparison = ft.compare(audits[0], audits[1], names=titles)
    if html is not None:
        with spinner("Writing the page"):
            comparison.to_html(html)
    if output.write_json(comparison.to_json(indent=2)):
        return
    typer.echo(str(comparison))
    output.print_paths({"Page": html})


def _titles(names: str | None, before: str, after: str) -> tuple[str, str]:
    if names is None:
        one, other = Path(before).name, Path(after).name
        return (one, other) if one != other else (before, after)
    parts = [part.strip() for part in names.split(",")]
    if len(parts) != 2 or not all(parts):
        raise misuse("--names must be two names, such as March,April")
    return parts[0], parts[1]


def _is_audit(path: str, reading: shared.ReadingOptions) -> bool:
    return Path(path).suffix.lower() == ".json" and reading.file_format is None


def _read(path: str, plan: AuditPlan) -> Audit:
    """Return the audit in a file of JSON, or of the scores in a table."""
    if _is_audit(path, plan.reading):
        return ft.Audit.from_json(Path(path))
    if plan.names["score"] is None or not plan.names["sensitive"]:
        raise ValueError(f"{path} is a file of scores; name its columns with --scores and --sensitive.")
    audit: Audit = plan.audit(*plan.count([path]))
    return audit
