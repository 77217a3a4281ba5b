"""An audit as Markdown, for model cards and reports: the verdict, and the tables of its page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fairtransport._text import one_line, plain
from fairtransport.auditing.tables import audit_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fairtransport.auditing import Audit

DISCLAIMER = (
    "These figures describe differences between scores and decisions. Whether a difference is lawful or justified "
    "depends on the decision that the scores are for and on the law that applies, and is not for statistics to say."
)


def audit_markdown(audit: Audit, *, title: str | None = None) -> str:
    """Return an audit as Markdown: verdict, provenance, and tables that a model card can take over."""
    return "\n".join(_lines(audit, title)).rstrip() + "\n"


def _lines(audit: Audit, title: str | None) -> Iterator[str]:
    heading = title or audit.provenance.title or f"Scores by {', '.join(map(one_line, audit.settings.columns))}"
    yield from (f"# {_cell(heading)}", "", _cell(plain(audit.verdict.sentence)))
    for point in audit.verdict.points:
        yield from ("", f"- {_cell(plain(point))}")
    yield ""
    if provenance := list(audit.provenance.lines()):
        yield "## What was audited"
        yield from _table(["", ""], provenance)
    for table in audit_tables(audit):
        yield from (f"## {_cell(table.title)}", "", _cell(table.words))
        rows = ((f"{row.head} ({row.note})" if row.note else row.head, *table.texts(row)) for row in table.rows)
        yield from _table(table.heads, rows)
    yield from ("## How to read this", "")
    yield (
        f"Intervals have {audit.settings.confidence:.0%} confidence. Groups with fewer than "
        f"{audit.settings.small_groups.min_size} rows are shown and not judged. {DISCLAIMER}"
    )


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield from ("", f"| {' | '.join(map(_cell, header))} |", f"| {' | '.join('---' for _ in header)} |")
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"
    yield ""


def _cell(text: str) -> str:
    """Return a text of one line that Markdown does not read as markup."""
    return re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", one_line(text))
