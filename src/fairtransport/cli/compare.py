"""``fairtransport compare``: what changed between two audits of the same groups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtransport._extras import load_extra
from fairtransport.cli import _options as shared
from fairtransport.cli._errors import misuse
from fairtransport.cli._limits import audit_files
from fairtransport.cli._output import JsonOutput, prepare_files, print_paths, spinner

if TYPE_CHECKING:
    from fairtransport.auditing import Audit


@shared.with_reading_options
def run_compare(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="Audit (.json) or file of scores.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="Audit (.json) or file of scores.")],
    *,
    scores: Annotated[
        str | None,
        typer.Option(
            "--scores", metavar="COLUMNS", help="Column with the scores; two, such as s,t, where AFTER has another."
        ),
    ] = None,
    sensitive: shared.OptionalSensitive = None,
    label: shared.OptionalLabel = None,
    positive: shared.Positive = None,
    weight: shared.Weight = None,
    names: Annotated[
        str | None, typer.Option("--names", metavar="A,B", help="Names of the two [default: those of the files].")
    ] = None,
    threshold: Annotated[
        list[float] | None,
        typer.Option("--threshold", metavar="X", help="Scores above X are selected; may be repeated."),
    ] = None,
    score_range: shared.ScoreRange = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PATH", help="Write a self-contained HTML report.")
    ] = None,
    json_path: shared.JsonPath = None,
    force: shared.Force = False,
    seed: shared.Seed = 0,
    reading: shared.Reading,
) -> None:
    """Compare two audits of the same groups: two months, two models, before and after repair.

    Each of the two is an audit that `fairtransport audit --json` wrote, or a file of scores, which is audited first;
    then --scores and --sensitive are needed.

    \b
    Example:
      fairtransport compare march.json april.json --html change.html
      fairtransport compare scores.csv repaired.csv --sensitive race \\
          --scores s,s_repaired
    """  # noqa: D301 - \b keeps the lines of the example
    json_output = JsonOutput(json_path)
    prepare_files([html, json_output.path], force=force, inputs=[before, after])
    if html is not None:
        load_extra("jinja2")  # fails before anything is computed
    titles = _titles(names, before, after)
    columns = [part.strip() for part in scores.split(",")] if scores is not None else []
    if len(columns) > 2:
        raise misuse("--scores must be one column, or one for each of the two files")
    policy = shared.make_policy("keep", 30, 200)
    options: dict[str, Any] = {
        "names": {"sensitive": sensitive or (), "label": label, "weight": weight},
        "positive": positive,
        "reading": reading,
        "counting": {"range": shared.parse_range(score_range), "groups": policy},
        "drawing": {
            "thresholds": threshold or None,
            "target": "barycenter",
            "confidence": 0.95,
            "n_bootstrap": 1000,
            "n_permutations": 1000,
            "groups": policy,
        },
        "seed": seed,
    }
    audits = [
        _read(path, columns[min(index, len(columns) - 1)] if columns else None, **options)
        for index, path in enumerate((before, after))
    ]
    from fairtransport.auditing import compare  # noqa: PLC0415 - loaded by now

    comparison = compare(audits[0], audits[1], names=titles)
    if html is not None:
        with spinner("Writing the page"):
            comparison.to_html(html)
    json_output.write(comparison.to_json(indent=2))
    if json_output.to_stdout:
        return
    typer.echo(str(comparison))
    print_paths({"Page": html, "JSON": json_output.path})


def _titles(names: str | None, before: str, after: str) -> tuple[str, str]:
    if names is None:
        one, other = Path(before).name, Path(after).name
        return (one, other) if one != other else (before, after)
    parts = [part.strip() for part in names.split(",")]
    if len(parts) != 2 or not all(parts):
        raise misuse("--names must be two names, such as March,April")
    return parts[0], parts[1]


def _read(
    path: str,
    score: str | None,
    *,
    names: dict[str, Any],
    positive: str | None,
    reading: dict[str, Any],
    counting: dict[str, Any],
    drawing: dict[str, Any],
    seed: int,
) -> Audit:
    """Return the audit in a file of JSON, or of the scores in a table."""
    if Path(path).suffix.lower() == ".json" and reading["format"] is None:
        from fairtransport.auditing import Audit  # noqa: PLC0415 - numba takes a while

        return Audit.from_json(Path(path))
    if score is None or not names["sensitive"]:
        raise ValueError(f"{path} is a file of scores; name its columns with --scores and --sensitive.")
    columns = {"score": score, **names}
    return audit_files([path], columns, positive, reading=reading, counting=dict(counting), drawing=drawing, seed=seed)
