"""An audit as text, 80 columns wide."""

from __future__ import annotations

import textwrap
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fairtransport.auditing.proportions import Estimate
    from fairtransport.auditing.result import Audit, Reading, ThresholdSummary

__all__ = ["TITLES", "audit_text", "one_line", "short", "wrap"]

_WIDTH = 80
_NAME = 24
_MOST_GROUPS = 40
_MOST_STRATA = 20
TITLES = {
    "error_rate": "Error",
    "wasserstein_disparity": "Distance to target",
    "strong_demographic_disparity": "Distance to everyone",
    "strong_pairwise_disparity": "Distance between pairs",
}


def audit_text(audit: Audit) -> str:
    """Return the audit as lines of at most 80 signs."""
    return "\n".join(_lines(audit))


def _lines(audit: Audit) -> Iterator[str]:
    settings = audit.settings
    yield from wrap(
        f"Audit of {audit.rows:,} rows in {len(audit.groups)} groups ({', '.join(map(one_line, settings.columns))})"
    )
    for reason, count in settings.set_aside.items():
        yield from wrap(f"Set aside: {count:,} rows, {one_line(reason)}")
    for sentence in settings.small_groups.sentences():
        yield from wrap(sentence)
    yield ""
    yield from _readings(audit.readings.items(), settings.confidence)
    yield ""
    yield from _groups(audit)
    for threshold in audit.thresholds:
        yield ""
        yield from wrap(_threshold(audit, threshold))
    yield ""
    yield from wrap(_farthest(audit))
    if audit.strata:
        yield ""
        yield from _strata(audit)
    if audit.unsure:
        yield ""
        yield from wrap(
            f"Unsure, fewer than {settings.unsure_below} rows: {', '.join(short(name) for name in audit.unsure)}."
        )
    yield ""
    yield from wrap(_method(audit))


def _readings(readings: Iterable[tuple[str, Reading]], confidence: float) -> Iterator[str]:
    yield f"{'':<23}{'value':>8}{f'{confidence:.0%} interval':>18}{'corrected':>11}{'by chance':>11}{'p':>9}"
    for name, reading in readings:
        interval = f"{reading.low:.3f} to {reading.high:.3f}"
        line = f"{TITLES[name]:<23}{reading.value:>8.3f}{interval:>18}"
        if reading.floor is not None:
            line += f"{reading.corrected:>11.3f}{reading.floor:>11.3f}"
        if reading.p_value is not None:
            line += f"{reading.p_value:>9.3g}"
        yield line


def _groups(audit: Audit) -> Iterator[str]:
    labelled = any(group.error is not None for group in audit.groups)
    first = audit.thresholds[0]
    above = f"> {first.threshold:g}"
    tail = f"{'error':>7}{'AUC':>6}" if labelled else ""
    yield f"{'Group':<{_NAME}}{'rows':>11}{'mean':>8}{'median':>8}{above:>8}{tail}"
    for place, group in enumerate(audit.groups[:_MOST_GROUPS]):
        line = f"{short(group.name):<{_NAME}}{group.rows:>11,}{group.mean:>8.3f}{group.quantiles[2]:>8.3f}"
        line += f"{first.rates[place].value:>8.1%}"
        if labelled:
            line += f"{_share(group.error):>7}{'' if group.auc is None else f'{group.auc.value:.2f}':>6}"
        yield line + (" ?" if group.unsure else "")
    if len(audit.groups) > _MOST_GROUPS:
        yield f"... and {len(audit.groups) - _MOST_GROUPS} more groups"


def _threshold(audit: Audit, at: ThresholdSummary) -> str:
    low, high = (audit.groups[place].name for place in (at.lowest, at.highest))
    if at.four_fifths is None:
        return f"Above {at.threshold:g}: nobody is selected."
    rates = f"{at.rates[at.lowest].value:.1%} of {short(low)}, {at.rates[at.highest].value:.1%} of {short(high)}"
    verdict = "meets" if at.four_fifths else "does not meet"
    sure = "" if at.sure else ", but that is not sure"
    interval = f"({at.ratio.low:.2f} to {at.ratio.high:.2f})"
    return f"Above {at.threshold:g}: {rates}; ratio {at.ratio.value:.2f} {interval} {verdict} four fifths{sure}."


def _farthest(audit: Audit) -> str:
    pair = audit.farthest
    return (
        f"Farthest apart: {short(pair.lower)} and {short(pair.higher)}, {pair.distance:.3f}; half of it between "
        f"scores {pair.most_between[0]:.3g} and {pair.most_between[1]:.3g}. Above {pair.threshold:.3g} are "
        f"{pair.shares_above[0]:.1%} of the one and {pair.shares_above[1]:.1%} of the other."
    )


def _strata(audit: Audit) -> Iterator[str]:
    yield f"Within strata (mean over {sum(stratum.share > 0 for stratum in audit.strata)} strata)"
    if audit.conditional:
        yield from _readings(audit.conditional.items(), audit.settings.confidence)
    yield f"{'Stratum':<{_NAME}}{'rows':>11}{'groups':>8}{'unsure':>8}{'pairs':>8}{'by chance':>11}{'p':>9}"
    for stratum in audit.strata[:_MOST_STRATA]:
        line = f"{short(stratum.name):<{_NAME}}{stratum.rows:>11,}{stratum.n_groups:>8}{stratum.n_unsure:>8}"
        key = "strong_pairwise_disparity"
        if key in stratum.metrics:
            line += f"{stratum.metrics[key]:>8.3f}{stratum.floors[key]:>11.3f}{stratum.p_values[key]:>9.3g}"
        yield line if stratum.metrics else f"{line}  set aside"
    if len(audit.strata) > _MOST_STRATA:
        yield f"... and {len(audit.strata) - _MOST_STRATA} more strata"


def _method(audit: Audit) -> str:
    settings = audit.settings
    if settings.exact:
        how = "Figures are exact."
    else:
        how = f"Figures are from {settings.n_bins} bins; a distance is off by at most {1 / settings.n_bins:.2g}."
    lot = "shuffles of the groups" if settings.null == "shuffled" else "draws without difference"
    return (
        f"{how} Target: {one_line(settings.target)}. Intervals from {settings.n_bootstrap} bootstrap replicates, "
        f"'by chance' and p from {settings.n_permutations} {lot}."
    )


def _share(estimate: Estimate | None) -> str:
    return "" if estimate is None else f"{estimate.value:.1%}"


def wrap(text: str) -> list[str]:
    """Return a text as lines of at most 80 signs."""
    return textwrap.wrap(text, _WIDTH, break_on_hyphens=False)


def one_line(text: object) -> str:
    """Leave out what a terminal would act on: control signs, escapes, changes of direction, line ends."""
    seen = (" " if unicodedata.category(sign)[0] in "CZ" else sign for sign in str(text))
    return " ".join("".join(seen).split())


def short(name: str, width: int = _NAME) -> str:
    """Return a name as one line that leaves a space in a column of this width."""
    line = one_line(name)
    return line if len(line) < width else line[: width - 2].rstrip(" ,") + "…"
