"""An audit as text of 80 columns."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fairtransport._text import number_text, one_line, plain, score_text, shorten, three_digits, wrap
from fairtransport.auditing._error_text import error_lines
from fairtransport.auditing.units import distance_text, scores_word, threshold_heading, threshold_text
from fairtransport.auditing.verdict import among_whom

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fairtransport.auditing.proportions import Estimate
    from fairtransport.auditing.records import AuditData, Reading, ThresholdSummary
    from fairtransport.auditing.verdict import Verdict

__all__ = ["MAX_GROUPS_SHOWN", "METRIC_TITLES", "audit_text"]

MAX_GROUPS_SHOWN = 40
METRIC_TITLES = {
    "error_rate": "Error",
    "wasserstein_disparity": "To the target, sum",
    "strong_demographic_disparity": "To everyone, sum",
    "strong_pairwise_disparity": "Between pairs, sum",
    "rank_disparity": "Between ranks, sum",
    "kolmogorov_smirnov_disparity": "Largest difference",
}

_MAX_STRATA_SHOWN = 20
_NAME_WIDTH = 24


def audit_text(audit: AuditData, verdict: Verdict) -> str:
    """Return the audit as lines of at most 80 characters."""
    return "\n".join(_lines(audit, verdict))


def _lines(audit: AuditData, verdict: Verdict) -> Iterator[str]:
    settings = audit.settings
    columns = ", ".join(map(one_line, settings.columns))
    yield from wrap(f"Audit of {audit.rows:,} rows in {len(audit.groups)} groups ({columns})")
    for reason, count in settings.set_aside.items():
        yield from wrap(f"Set aside: {count:,} rows, {one_line(reason)}")
    for sentence in settings.small_groups.sentences():
        yield from wrap(sentence)
    for sentence in (verdict.sentence, *verdict.points):
        yield ""
        yield from wrap(one_line(plain(sentence)))
    yield ""
    if audit.strata:
        yield from _strata(audit)
        yield ""
        yield "Among all people (demographic parity)"
    yield from _readings(audit, audit.readings.items())
    yield from _other_sums(audit, verdict)
    yield ""
    yield from _groups(audit)
    if audit.error_rates or audit.regression is not None:
        yield ""
        yield from error_lines(audit, MAX_GROUPS_SHOWN)
    for threshold in audit.thresholds[1:]:  # the verdict has the first
        yield ""
        yield from wrap(_threshold(audit, threshold))
    yield ""
    yield from wrap(_farthest(audit))
    yield ""
    yield from wrap(_method(audit))


def _readings(audit: AuditData, readings: Iterable[tuple[str, Reading]]) -> Iterator[str]:
    level = f"{audit.settings.confidence:.0%} interval"
    yield f"{'Distances':<23}{'value':>8}{level:>18}{'corrected':>11}{'by chance':>11}{'p':>9}"
    for name, reading in readings:
        text = partial(distance_text, audit, metric=name)
        line = f"{METRIC_TITLES[name]:<23}{text(reading.value):>8}{_interval(reading, text):>18}"
        if reading.floor is not None:
            line += f"{text(reading.corrected):>11}{text(reading.floor):>11}"
        if reading.p_value is not None:
            line += f"{reading.p_value:>9.3g}"
        yield line


def _interval(reading: Reading | Estimate, text: Callable[[float], str] = three_digits) -> str:
    low = "<0.001" if text(reading.low) == "0.000" and reading.low > 0 else text(reading.low)
    return f"{low} to {text(reading.high)}"


def _other_sums(audit: AuditData, verdict: Verdict) -> Iterator[str]:
    """Yield the mean over pairs, and the sums over all groups where some are not judged."""
    if verdict.n_pairs > 1:
        mean, reading = audit.mean_pairwise_distance, audit.readings[audit.settings.pairs_metric]
        floor = (reading.floor or 0.0) / verdict.n_pairs
        title = "Between pairs, mean" if audit.settings.bounded else "Between ranks, mean"
        line = f"{title:<23}{reading.value / verdict.n_pairs:>8.3f}{_interval(mean):>18}"
        yield f"{line}{mean.value:>11.3f}{floor:>11.3f}"
    if len(verdict.judged) >= 2 and verdict.set_aside:
        to_target, to_everyone, pairs = (distance_text(audit, value) for value in audit.metrics_all_groups.values())
        yield from wrap(
            f"Sums over all {len(audit.groups)} groups, with those that are not judged: to the target {to_target}, "
            f"to everyone {to_everyone}, between pairs {pairs}."
        )


def _groups(audit: AuditData) -> Iterator[str]:
    has_labels = any(group.error is not None for group in audit.groups)
    first = audit.thresholds[0]
    above = f"> {first.threshold:g}" if first.top_share is None else threshold_heading(audit, first)
    score, width = (three_digits, 8) if audit.settings.bounded else (score_text, 10)
    tail = f"{'error':>7}{'AUC':>6}" if has_labels else ""
    yield f"{'Group':<{_NAME_WIDTH}}{'rows':>11}{'mean':>8}{'median':>8}{above:>{width}}{tail}"
    for group, rate in zip(audit.groups[:MAX_GROUPS_SHOWN], first.rates, strict=False):
        line = f"{_short_name(group.name):<{_NAME_WIDTH}}{group.rows:>11,}{score(group.mean):>8}"
        line += f"{score(group.quantiles[2]):>8}{rate.value:>{width}.1%}"
        if has_labels:
            line += f"{_percent(group.error):>7}{'' if group.auc is None else f'{group.auc.value:.2f}':>6}"
        yield line + (" ?" if not group.judged else "")
    if len(audit.groups) > MAX_GROUPS_SHOWN:
        yield f"... and {len(audit.groups) - MAX_GROUPS_SHOWN} more groups"


def _threshold(audit: AuditData, at: ThresholdSummary) -> str:
    high_is_favourable = at.favourable == "high"
    if at.four_fifths is None:
        return f"{threshold_text(audit, at)}: {'nobody is selected' if high_is_favourable else 'everyone is flagged'}."
    low, high = (
        f"{at.rates[i].value:.1%} of {_short_name(audit.groups[i].name)}" for i in (at.worse_off, at.better_off)
    )
    interval = f"({at.ratio.low:.2f} to {at.ratio.high:.2f})"
    verdict = "meets" if at.four_fifths else "does not meet"
    doubt = "" if at.conclusive else ", but the interval includes 0.80"
    ratio = "ratio" if high_is_favourable else "flagged; ratio of the shares not flagged"
    return (
        f"{threshold_text(audit, at)}: {low}, {high}{';' if high_is_favourable else ''} {ratio} {at.ratio.value:.2f} "
        f"{interval} {verdict} the four-fifths rule{doubt}."
    )


def _farthest(audit: AuditData) -> str:
    pair = audit.farthest
    lower, higher = _short_name(pair.lower), _short_name(pair.higher)
    start, end, cut = (
        f"{value:.3g}" if audit.settings.bounded else number_text(value)
        for value in (*pair.most_between, pair.threshold)
    )
    between = "" if audit.settings.bounded else " between ranks"
    return (
        f"Farthest apart: {lower} and {higher}, distance{between} {pair.distance:.3f}, half of it between "
        f"{scores_word(audit)} {start} and {end}. Above {cut}: "
        f"{pair.shares_above[0]:.1%} of {lower}, {pair.shares_above[1]:.1%} of {higher}."
    )


def _strata(audit: AuditData) -> Iterator[str]:
    number = sum(stratum.weight > 0 for stratum in audit.strata)
    mean = f", mean over {number} {'strata' if audit.settings.strata else 'outcomes'}" if number > 1 else ""
    yield from wrap(f"{among_whom(audit)} ({audit.settings.criterion_text}){mean}")
    if audit.conditional:
        yield from _readings(audit, audit.conditional.items())
    title = "Stratum" if audit.settings.strata else "Outcome"
    yield f"{title:<{_NAME_WIDTH}}{'rows':>11}{'groups':>8}{'judged':>8}{'pairs':>8}{'by chance':>11}{'p':>9}"
    for stratum in audit.strata[:_MAX_STRATA_SHOWN]:
        line = (
            f"{_short_name(stratum.name):<{_NAME_WIDTH}}{stratum.rows:>11,}{stratum.n_groups:>8}{stratum.n_judged:>8}"
        )
        key = audit.settings.pairs_metric
        if key in stratum.metrics:
            line += f"{stratum.metrics[key]:>8.3f}{stratum.floors[key]:>11.3f}{stratum.p_values[key]:>9.3g}"
        yield line if stratum.metrics else f"{line}  set aside"
    if len(audit.strata) > _MAX_STRATA_SHOWN:
        yield f"... and {len(audit.strata) - _MAX_STRATA_SHOWN} more strata"


def _method(audit: AuditData) -> str:
    settings = audit.settings
    if settings.exact:
        precision = "Figures are exact."
    else:
        reading = audit.readings["strong_pairwise_disparity"]
        error = f"{1 / settings.n_bins:.2g}" if settings.bounded else score_text(reading.resolution)
        precision = f"Figures are from {settings.n_bins} bins; a distance is off by at most {error}."
    if not settings.bounded:
        precision += " Distances are in units of the score, those between ranks in shares of people selected."
    null = "permutations of the groups" if settings.null == "permuted" else "draws of each group's noise"
    return (
        f"{precision} Target: {one_line(settings.target)}. Intervals from {settings.n_bootstrap} bootstrap replicates, "
        f"'by chance' and p from {settings.n_permutations} {null}."
    )


def _percent(estimate: Estimate | None) -> str:
    return "" if estimate is None else f"{estimate.value:.1%}"


def _short_name(name: str) -> str:
    return shorten(name, _NAME_WIDTH - 1)
