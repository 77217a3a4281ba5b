"""The verdict on an audit: what is established, how much it matters, and which groups it refers to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from math import comb
from typing import TYPE_CHECKING, Any, Literal

from fairtransport._text import count_word, one_line, percent, plain
from fairtransport.auditing.errors.summary import errors_sentence
from fairtransport.auditing.proportions import Estimate
from fairtransport.auditing.records import (
    compared_groups,
    cut_text,
    four_fifths_text,
    group_text,
    points_text,
    threshold_text,
    unit_points,
)
from fairtransport.groups import MIN_SHOWN_ROWS

if TYPE_CHECKING:
    from fairtransport.auditing.records import AuditData, GroupSummary, ThresholdSummary

Status = Literal["matters", "different", "small", "alike", "cannot_tell", "too_few_rows", "constant"]

#: Said wherever demographic parity and equalized odds are shown together.
CRITERIA_CONFLICT = (
    "Demographic parity and equalized odds conflict in general: where outcomes are not equally frequent in all "
    "groups, no informative score satisfies both."
)

_PARITY = "demographic_parity"
_MAX_NAMES = 5


@dataclass(frozen=True)
class Verdict:
    """The conclusion of an audit about the differences between groups.

    It refers to the groups with enough rows to be judged, and never contradicts the intervals and p-values of the
    audit. ``print(verdict)`` shows it as text.

    Parameters
    ----------
    status : str
        ``"matters"``: a difference is established, of at least ``materiality``. ``"small"``: one is established, and
        none reaches ``materiality``. ``"different"``: one is established, whose size may be on either side.
        ``"alike"``: none is established, and none can reach ``materiality``. ``"cannot_tell"``: none is established,
        and one that matters cannot be ruled out. ``"too_few_rows"``: fewer than two groups have enough rows.
        ``"constant"``: all scores are equal.
    sentence, points : str, tuple of str
        The verdict in words, and further sentences. Names of groups stand between U+2068 and U+2069.
    judged, set_aside : tuple of str, dict of str to str
        Names of the groups that the verdict refers to, and of the others, with the reason.
    different : bool
        Whether a difference is established: whether the p-value is at most 1 - confidence.
    matters : bool or None
        Whether a difference of at least ``materiality`` is established; False where there is none, with confidence, and
        None where neither is certain.
    higher, lower, ordered
        The two groups whose difference is most certain, and whether it is established that ``higher`` is scored higher.
    difference, mean_difference : Estimate or None
        The distance between these two, and the mean over all pairs: the difference between shares above a threshold,
        averaged over all thresholds (with ``ranks``, over all shares of people selected).
    p_value : float or None
        Of no difference between any of the groups.
    n_pairs : int
        Number of pairs of groups, for which p-values of pairs and the interval of ``difference`` are adjusted.
    materiality, confidence : float
        As in the settings of the audit.
    criterion : str
        In words, such as ``"equalized odds"`` or ``"conditional parity"``.
    ranks : bool
        Whether differences are those of ranks: for scores without known bounds.
    """

    status: Status
    sentence: str
    points: tuple[str, ...]
    judged: tuple[str, ...]
    set_aside: Mapping[str, str]
    different: bool
    matters: bool | None
    higher: str | None
    lower: str | None
    ordered: bool
    difference: Estimate | None
    mean_difference: Estimate | None
    p_value: float | None
    n_pairs: int
    materiality: float
    confidence: float
    criterion: str = "demographic parity"
    ranks: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain values; names of groups are not marked."""
        sentences = {"sentence": plain(self.sentence), "points": [plain(point) for point in self.points]}
        return {**asdict(self), **sentences, "set_aside": dict(self.set_aside)}

    def __str__(self) -> str:
        return plain(" ".join([self.sentence, *self.points]))


def form_verdict(audit: AuditData) -> Verdict:
    """Form the verdict on an audit, of all people or of people who are alike, as its criterion asks."""
    settings, within, shown = audit.settings, audit.within, audit.within or audit
    if within is None:
        compared = compared_groups(audit)
        judged = tuple(index for index in compared if audit.groups[index].judged)
    else:
        compared, judged = within.groups, within.groups if within.judged else ()
    pair, p_value = shown.clearest, shown.readings[settings.pairs_metric].p_value
    p_value = 1.0 if p_value is None else p_value
    different, enough = p_value <= 1 - settings.confidence, len(judged) >= 2
    mean_gap = pair.mean_difference
    largest, materiality = shown.largest_distance, settings.materiality
    matters = True if 0 < largest.low >= materiality else False if largest.high < materiality else None
    return _write(
        audit,
        Verdict(
            status=_status(audit, enough=enough, different=different, matters=matters),
            sentence="",
            points=(),
            judged=tuple(audit.groups[index].name for index in judged),
            set_aside={
                group.name: _reason(group, settings.small_groups.min_size)
                for index, group in enumerate(audit.groups)
                if index not in judged
            },
            different=different and enough,
            matters=matters if enough and (different or matters is False) else None,
            higher=pair.higher,
            lower=pair.lower,
            ordered=mean_gap is not None and mean_gap.low > 0 and mean_gap.value >= pair.distance / 2,
            difference=pair.estimate,
            mean_difference=shown.mean_pairwise_distance,
            p_value=p_value,
            n_pairs=comb(len(compared), 2),
            materiality=materiality,
            confidence=settings.confidence,
            criterion=settings.criterion_text,
            ranks=not settings.bounded,
        ),
    )


def _status(audit: AuditData, *, enough: bool, different: bool, matters: bool | None) -> Status:
    if audit.distinct_scores == 1:
        return "constant"
    if not enough:
        return "too_few_rows"
    if different:
        return "matters" if matters else "small" if matters is False else "different"
    return "alike" if matters is False else "cannot_tell"


def _reason(group: GroupSummary, least: int) -> str:
    rows = f"{group.rows:,} {'row' if group.rows == 1 else 'rows'}"
    if group.effective_rows < min(0.99 * group.rows, least) or group.effective_rows < least <= group.rows:
        return f"{rows} with weights that are worth {math.floor(group.effective_rows):,}"
    return rows


def _write(audit: AuditData, verdict: Verdict) -> Verdict:
    sentence = _sentence(audit, verdict)
    if audit.within is not None and verdict.status != "constant":
        sentence = f"{among_whom(audit)}, {sentence[0].lower()}{sentence[1:]}"
    return replace(verdict, sentence=sentence, points=tuple(_points(audit, verdict)))


def among_whom(audit: AuditData) -> str:
    """Return who the verdict compares, such as ``"Among people with the same outcome"``."""
    settings = audit.settings
    same = " with similar outcomes" if settings.task == "regression" else " with the same outcome"
    parts = {"equalized_odds": same, "equal_opportunity": " with the positive outcome"}
    outcome = parts.get(settings.criterion, "")
    where = f" in the same stratum ({', '.join(map(one_line, settings.strata))})" if settings.strata else ""
    return (
        f"Among people{outcome}{' and' if outcome and where else ''}{where}" if outcome or where else "Among all people"
    )


def _interval(verdict: Verdict, estimate: Estimate) -> str:
    return f"{verdict.confidence:.0%} interval {points_text(estimate.low)} to {points_text(estimate.high)}"


def _p_text(verdict: Verdict) -> str:
    p_value = 1.0 if verdict.p_value is None else verdict.p_value
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"


def _gap(audit: AuditData, verdict: Verdict) -> str:
    """Describe the difference between the two groups that the verdict names."""
    lower, higher = _ends(audit, verdict)
    estimate = verdict.difference
    if estimate is None:
        return f"{higher} and {lower}"
    size = f"{points_text(estimate.value)} percentage points"
    where = f"averaged over {_over(verdict)} ({_interval(verdict, estimate)}, {_p_text(verdict)})"
    if verdict.ordered:
        return f"{higher} is scored higher than {lower}, by {size} {where}"
    return (
        f"the scores of {lower} and {higher} are distributed differently, neither being higher throughout: their "
        f"shares above a threshold lie {size} apart, {where}"
    )


def _ends(audit: AuditData, verdict: Verdict) -> list[str]:
    """Return the names of the lower and the higher group."""
    return [group_text(audit, name) for name in (verdict.lower, verdict.higher) if name is not None]


def _over(verdict: Verdict) -> str:
    """Return what differences are averaged over."""
    thresholds = _thresholds(verdict)
    if verdict.criterion in {"demographic parity", "equal opportunity"}:
        return thresholds
    outcomes = "outcomes" if verdict.ranks else "both outcomes"
    return f"{thresholds} and {outcomes if verdict.criterion == 'equalized odds' else 'strata'}"


def _thresholds(verdict: Verdict) -> str:
    return "all shares of people selected" if verdict.ranks else "all thresholds"


def _sentence(audit: AuditData, verdict: Verdict) -> str:
    """Return the verdict in words, by its status."""
    groups = f"{count_word(len(verdict.judged))} groups"
    material, gap, p_text = f"{points_text(verdict.materiality)} points", _gap(audit, verdict), _p_text(verdict)
    averaged = f"averaged over {_thresholds(verdict)}"
    largest = f"{points_text((audit.within or audit).largest_distance.high)} percentage points"
    confidence = f"({verdict.confidence:.0%} confidence)"
    size = "" if verdict.difference is None else f" of {points_text(verdict.difference.value)} points"
    others = "" if verdict.n_pairs == 1 else f" No two groups lie {material} apart."
    least = audit.settings.small_groups.min_size
    if audit.within is not None:
        too_few = f"no {'stratum' if audit.settings.strata else 'outcome'} has two groups with {least} rows or more"
    else:
        too_few = f"{'only one group has' if verdict.judged else 'no group has'} {least} rows or more"
    sentences: Mapping[Status, str] = {
        "matters": f"The {groups} are scored differently, by enough to matter: {gap}.",
        "different": f"The {groups} are scored differently: {gap}. Whether a difference reaches the {material} that "
        "matter is open.",
        "small": f"A difference{size} between the {groups} is established, and small: {gap}, below the {material} that "
        f"matter.{others}",
        "alike": f"No difference between the {groups} is established ({p_text}), and none that matters is likely: "
        f"{averaged}, the shares of two groups above the threshold lie at most {largest} apart {confidence}, less than "
        f"the {material} that matter.",
        "cannot_tell": f"These rows cannot tell whether the {groups} are scored differently: no difference is "
        f"established ({p_text}), but one of up to {largest}, {averaged}, cannot be ruled out between "
        f"{' and '.join(_ends(audit, verdict))} {confidence}.",
        "too_few_rows": f"Too few rows to judge: {too_few}.",
        "constant": f"All {audit.rows:,} scores are equal, so no group is scored differently from another.",
    }
    return sentences[verdict.status]


def _points(audit: AuditData, verdict: Verdict) -> Iterator[str]:
    if verdict.status == "constant":
        return
    if verdict.mean_difference is not None and verdict.n_pairs > 1 and verdict.status != "too_few_rows":
        mean, largest = verdict.mean_difference, (audit.within or audit).largest_distance
        interval = _interval(verdict, largest)
        if verdict.different and verdict.difference is not None and interval != _interval(verdict, verdict.difference):
            interval += ", whichever pair is the farthest apart"
        yield (
            f"On average over the {verdict.n_pairs:,} pairs of groups, they lie {points_text(mean.value)} percentage "
            f"points apart ({_interval(verdict, mean)}), and their largest distance is {points_text(largest.value)} "
            f"({interval}). P-values of pairs are adjusted for their number (Holm)."
        )
    yield from unit_points(audit)
    yield from _other_criterion(audit)
    if audit.distinct_scores == 2:
        yield "The scores have only two values: a distance is the difference between the shares with the higher one."
    yield from _threshold_points(audit, verdict)
    errors = errors_sentence(audit)
    if errors is not None:
        yield errors
    if verdict.set_aside and verdict.status != "too_few_rows":
        yield _set_aside(audit, verdict)


def _other_criterion(audit: AuditData) -> Iterator[str]:
    """Yield what was set aside within labels or strata, and how groups compare among all people."""
    if audit.within is None:
        return
    aside = audit.within.set_aside
    if aside:
        rows = sum(stratum.rows for stratum in aside)
        part = ("stratum" if len(aside) == 1 else "strata") if audit.settings.strata else "outcome"
        yield (
            f"{count_word(len(aside)).capitalize()} {part} with {rows:,} rows {'is' if len(aside) == 1 else 'are'} set "
            "aside: fewer than two groups have enough rows there."
        )
    parity = form_verdict(replace(audit, within=None, settings=replace(audit.settings, criterion=_PARITY, strata=())))
    if parity.status not in {"constant", "too_few_rows"}:
        found = _gap(audit, parity) if parity.different else f"no difference is established ({_p_text(parity)})"
        yield f"Among all people ({parity.criterion}), {found}."
    if audit.settings.criterion != _PARITY:
        yield CRITERIA_CONFLICT


def threshold_sentence(audit: AuditData, at: ThresholdSummary) -> str:
    """Return the lowest and the highest share selected at a threshold, and their ratio."""
    low, high = (group_text(audit, audit.groups[index].name) for index in (at.lowest, at.highest))
    chosen = "selected" if at.favourable == "high" else "flagged"
    where = threshold_text(audit, at)
    if at.four_fifths is None:
        return f"{where} {four_fifths_text(at)}."
    if math.isnan(at.overall):
        return f"{where}, shares are withheld: fewer than two groups have {MIN_SHOWN_ROWS} rows."
    if math.isnan(at.rates[at.lowest].value) or math.isnan(at.rates[at.highest].value):
        return f"{where}, {percent(at.overall)} of all rows are {chosen}."
    if at.lowest == at.highest:
        return f"{where}, {percent(at.rates[at.lowest].value)} of every group are {chosen}."
    ratio = "a ratio of" if at.favourable == "high" else "the shares not flagged have a ratio of"
    return (
        f"{where}, {percent(at.rates[at.lowest].value)} of {low} and {percent(at.rates[at.highest].value)} of {high} "
        f"are {chosen}: {ratio} {at.ratio.value:.2f} ({at.ratio.low:.2f} to {at.ratio.high:.2f}), "
        f"{four_fifths_text(at)}."
    )


def _threshold_points(audit: AuditData, verdict: Verdict) -> Iterator[str]:
    yield threshold_sentence(audit, audit.thresholds[0])
    if verdict.judged and not verdict.different and verdict.status != "too_few_rows":
        cuts = [cut_text(audit, at.threshold) for at in audit.thresholds if at.difference.low > 0]
        if cuts:
            where = f"{'threshold' if len(cuts) == 1 else 'thresholds'} {', '.join(cuts)}"
            yield (
                f"At the {where} alone, the interval of the difference between the lowest and the highest share "
                "excludes 0; over all thresholds this is not beyond chance."
            )


def _set_aside(audit: AuditData, verdict: Verdict) -> str:
    entries = [f"{group_text(audit, name)} ({reason})" for name, reason in list(verdict.set_aside.items())[:_MAX_NAMES]]
    count = len(verdict.set_aside)
    more = f" and {count - _MAX_NAMES} more" if count > _MAX_NAMES else ""
    subject = "One group is" if count == 1 else f"{count_word(count).capitalize()} groups are"
    least, part = audit.settings.small_groups.min_size, ""
    if audit.within is not None:
        part = " in every stratum that is compared" if audit.settings.strata else " of every outcome that is compared"
    return f"{subject} shown but not judged, having fewer than {least} rows{part}: {', '.join(entries)}{more}."
