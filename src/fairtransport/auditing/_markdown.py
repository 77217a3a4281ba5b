"""An audit as Markdown, for model cards and reports."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fairtransport._text import one_line, plain, score_text, three_digits
from fairtransport.auditing._audit_text import METRIC_TITLES
from fairtransport.auditing._error_text import FIGURE_TITLES
from fairtransport.auditing.rate_comparisons import compare_rates
from fairtransport.auditing.units import cut_text, distance_text, scores_word, threshold_heading
from fairtransport.auditing.verdict import among_whom

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fairtransport.auditing.proportions import Estimate
    from fairtransport.auditing.records import AuditData, Reading
    from fairtransport.auditing.verdict import Verdict

__all__ = ["DISCLAIMER", "audit_markdown"]

DISCLAIMER = (
    "These figures describe differences between scores and decisions. Whether a difference is lawful or justified "
    "depends on the decision that the scores are for and on the law that applies, and is not for statistics to say."
)
_RATES = {
    "selection_rate": "selected",
    "true_positive_rate": "TPR",
    "false_positive_rate": "FPR",
    "false_negative_rate": "FNR",
    "positive_predictive_value": "PPV",
    "negative_predictive_value": "NPV",
    "accuracy": "accuracy",
}


def audit_markdown(audit: AuditData, verdict: Verdict, title: str | None = None) -> str:
    """Return an audit as Markdown: verdict, provenance, and tables that a model card can take over."""
    return "\n".join(_lines(audit, verdict, title)).rstrip() + "\n"


def _lines(audit: AuditData, verdict: Verdict, title: str | None) -> Iterator[str]:
    heading = title or audit.provenance.title or f"Scores by {', '.join(map(one_line, audit.settings.columns))}"
    yield f"# {_cell(heading)}"
    yield ""
    yield _cell(plain(verdict.sentence))
    for point in verdict.points:
        yield ""
        yield f"- {_cell(plain(point))}"
    yield ""
    provenance = [*audit.provenance.lines()]
    if provenance:
        yield "## What was audited"
        yield from _table(["", ""], provenance)
    if audit.within is not None:
        yield f"## {among_whom(audit)} ({audit.settings.criterion_text})"
        yield from _readings(audit, audit.conditional)
        yield from _table(
            ["stratum" if audit.settings.strata else "outcome", "rows", "groups", "between pairs", "by chance", "p"],
            [
                (
                    stratum.name,
                    f"{stratum.rows:,}",
                    str(stratum.n_groups),
                    *(
                        f"{values[audit.settings.pairs_metric]:.4f}" if values else "set aside"
                        for values in (stratum.metrics, stratum.floors, stratum.p_values)
                    ),
                )
                for stratum in audit.strata
            ],
        )
        yield "## Among all people (demographic parity)"
    else:
        yield "## Differences between groups"
    yield from _readings(audit, audit.readings)
    yield "## Groups"
    headings = [threshold_heading(audit, at) for at in audit.thresholds]
    score = three_digits if audit.settings.bounded else score_text
    yield from _table(
        ["group", "rows", "judged", f"mean {scores_word(audit, plural=False)}", "median", *headings],
        [
            (
                group.name,
                f"{group.rows:,}",
                "yes" if group.judged else "too few rows",
                score(group.mean),
                score(group.quantiles[2]),
                *(_percent(at.rates[index]) for at in audit.thresholds),
            )
            for index, group in enumerate(audit.groups)
        ],
    )
    yield from _rules(audit)
    yield from _error_rates(audit)
    yield from _calibration(audit)
    yield from _residuals(audit)
    yield "## How to read this"
    yield ""
    yield (
        f"Intervals have {audit.settings.confidence:.0%} confidence. Groups with fewer than "
        f"{audit.settings.min_judged_rows} rows are shown and not judged. {DISCLAIMER}"
    )


def _readings(audit: AuditData, readings: Mapping[str, Reading]) -> Iterator[str]:
    yield from _table(
        ["distance (sums over groups or pairs)", "value", _level(audit), "by chance", "p"],
        [
            (
                METRIC_TITLES[name],
                _distance(audit, name, reading.value),
                f"{_distance(audit, name, reading.low)} to {_distance(audit, name, reading.high)}",
                "" if reading.floor is None else _distance(audit, name, reading.floor),
                "" if reading.p_value is None else f"{reading.p_value:.3g}",
            )
            for name, reading in readings.items()
        ],
    )


def _rules(audit: AuditData) -> Iterator[str]:
    comparisons = compare_rates(audit)
    if not comparisons:
        return
    outcome = "selected" if audit.settings.favourable == "high" else "not flagged"
    yield "## Three readings of the selection rates"
    yield ""
    yield (
        f"Each group's rate of being {outcome}, compared with the group that is {outcome} most often. The four-fifths "
        "rule looks at the ratio alone; significance asks whether chance could explain the difference (adjusted for "
        f"the number of groups); a difference of {100 * audit.settings.materiality:g} percentage points or more counts "
        "as practically significant."
    )
    yield from _table(
        ["threshold", "group", "rate", "ratio", "four-fifths rule", "difference", "p", "statistically", "practically"],
        [
            (
                cut_text(audit, row.threshold),
                row.group,
                f"{row.rate.value:.1%}",
                f"{row.ratio.value:.2f} ({row.ratio.low:.2f} to {row.ratio.high:.2f})",
                "met" if row.four_fifths else "not met",
                f"{100 * row.difference.value:.1f} ({100 * row.difference.low:.1f} to {100 * row.difference.high:.1f})",
                f"{row.p_value:.3g}",
                "significant" if row.significant else "not significant",
                "significant" if row.material else "not significant",
            )
            for row in comparisons
        ],
    )


def _error_rates(audit: AuditData) -> Iterator[str]:
    for summary, at in zip(audit.thresholds, audit.error_rates, strict=False):
        yield f"## Error rates, {threshold_heading(audit, summary)}"
        shown = [name for name in at.overall if name in _RATES]
        rows = [(group.name, *(_percent(group.rates[name]) for name in shown)) for group in at.groups]
        yield from _table(
            ["group", *(_RATES[name] for name in shown)],
            [*rows, ("everyone", *(_percent(at.overall[name]) for name in shown))],
        )


def _calibration(audit: AuditData) -> Iterator[str]:
    if audit.calibration is None:
        return
    yield "## Calibration"
    yield from _table(
        ["group", "positive", "expected calibration error", "intercept", "slope"],
        [
            (
                group.name,
                _percent(group.positive_rate),
                *map(_three, (group.expected_error, group.intercept, group.slope)),
            )
            for group in (*audit.calibration.groups, audit.calibration.overall)
        ],
    )


def _residuals(audit: AuditData) -> Iterator[str]:
    errors = audit.regression
    if errors is None:
        return
    yield "## Errors of the predictions"
    yield ""
    yield (
        f"Root mean squared error, mean absolute error and mean residual (label minus prediction) are in units of the "
        f"label, whose standard deviation is {score_text(errors.label_deviation)}; p-values compare with "
        f"{_cell(errors.reference)} and are adjusted for the number of groups (Holm)."
    )
    rows = [(group.name, group.figures, group.p_values) for group in errors.groups]
    yield from _table(
        ["group", *(part for title in FIGURE_TITLES.values() for part in (title, "p"))],
        [
            (name, *(part for figure in FIGURE_TITLES for part in (_score(figures[figure]), _p(p_values.get(figure)))))
            for name, figures, p_values in [*rows, ("everyone", errors.overall, {})]
        ],
    )


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield ""
    yield f"| {' | '.join(map(_cell, header))} |"
    yield f"| {' | '.join('---' for _ in header)} |"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"
    yield ""


def _cell(text: str) -> str:
    """Return a text of one line that Markdown does not read as markup."""
    return re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", one_line(text))


def _level(audit: AuditData) -> str:
    return f"{audit.settings.confidence:.0%} interval"


def _distance(audit: AuditData, metric: str, value: float) -> str:
    return f"{value:.4f}" if audit.settings.bounded else distance_text(audit, value, metric)


def _percent(estimate: Estimate | None) -> str:
    return "" if estimate is None else f"{estimate.value:.1%} ({estimate.low:.1%} to {estimate.high:.1%})"


def _score(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    return f"{score_text(estimate.value)} ({score_text(estimate.low)} to {score_text(estimate.high)})"


def _p(p_value: float | None) -> str:
    return "" if p_value is None else f"{p_value:.3g}"


def _three(estimate: Estimate | None) -> str:
    return "" if estimate is None else f"{estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"
