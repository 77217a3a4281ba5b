"""Limits on the metrics of an audit, such as ``mean=.1``, for use in a pipeline."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import fairtransport as ft
from fairtransport.cli._errors import misuse

if TYPE_CHECKING:
    from fairtransport.auditing import Audit, Estimate, Reading

#: Exit status when a limit is exceeded, and in no other case.
EXCEEDED = 2

_FEW_ROWS = "fewer than two groups have the rows that it needs"
_BOUNDED = "scores have known bounds, as probabilities do; limit mean or largest instead"


def _groups_judged(audit: Audit) -> bool:
    return sum(group.judged for group in audit.groups) >= 2


def _strata_judged(audit: Audit) -> bool:
    return audit.within is None or audit.within.judged


def _labels_judged(criterion: str, *labels: str) -> Callable[[Audit], bool]:
    """Return what tells whether groups can be judged among people with the same label."""

    def judged(audit: Audit) -> bool:
        if audit.settings.criterion == criterion:
            return _strata_judged(audit)
        if audit.separation is None:
            return _groups_judged(audit)
        parts = [getattr(audit.separation, label) for label in labels]
        return all(part is not None and part.judged for part in parts)

    return judged


def _conditional(audit: Audit) -> list[Reading | None]:
    return [] if audit.within is None else [audit.within.mean_readings.get(audit.settings.pairs_metric)]


def _separation(audit: Audit) -> list[Reading | None]:
    if audit.settings.criterion == "equalized_odds":
        return _conditional(audit)
    return [audit.separation.disparity] if audit.separation is not None else []


def _opportunity(audit: Audit) -> list[Reading | None]:
    if audit.settings.criterion == "equal_opportunity":
        return _conditional(audit)
    positives = None if audit.separation is None else audit.separation.positives
    return [positives.disparity] if positives is not None else []


def _ratios(audit: Audit) -> list[Estimate]:
    judged = [at.ratio for at in audit.thresholds if at.four_fifths is not None]
    return judged or [ft.auditing.Estimate(1.0, 1.0, 1.0)]  # no one is selected, so that all rates are equal


class Metric(NamedTuple):
    """A metric of an audit that can have a limit: its estimates, one for each threshold if it depends on one.

    ``needs`` is an option, ``judged`` tells whether enough groups are judged, ``unless`` why there may be no estimate.
    """

    name: str
    estimates: Callable[[Audit], Sequence[Estimate | Reading | None]]
    needs: str | None = None
    judged: Callable[[Audit], bool] = _groups_judged
    unless: str = _FEW_ROWS


def _reading(name: str, unless: str = _FEW_ROWS) -> Metric:
    return Metric(name, lambda audit: [audit.readings.get(name)], unless=unless)


def _labelled(name: str, estimates: Callable[[Audit], Sequence[Estimate | Reading | None]]) -> Metric:
    return Metric(name, estimates, "--label", unless=f"{_FEW_ROWS}, or scores are not probabilities")


def _gap(name: str) -> Metric:
    """Return the largest difference of a rate between groups."""

    def estimates(audit: Audit) -> list[Estimate]:
        gaps = [at.gaps[name] for at in audit.error_rates]
        return [gap.difference for gap in gaps if gap is not None]

    return _labelled(name, estimates)


#: Metrics that have an upper limit, and those that have a lower one, by their short names.
ABOVE = {
    "mean": Metric("mean_distance", lambda audit: [audit.mean_pairwise_distance]),
    "largest": Metric("largest_distance", lambda audit: [audit.largest_distance]),
    "rank": _reading("rank_disparity", _BOUNDED),
    "ks": _reading("kolmogorov_smirnov_disparity", _BOUNDED),
    "spdd": _reading("strong_pairwise_disparity"),
    "sdd": _reading("strong_demographic_disparity"),
    "wass1": _reading("wasserstein_disparity"),
    "err": _reading("error_rate", "labels are numbers, not classes")._replace(needs="--label", judged=lambda _: True),
    "difference": Metric("rate_difference", lambda audit: [at.difference for at in audit.thresholds]),
    "tpr": _gap("true_positive_rate"),
    "fpr": _gap("false_positive_rate"),
    "fnr": _gap("false_negative_rate"),
    "ppv": _gap("positive_predictive_value"),
    "npv": _gap("negative_predictive_value"),
    "acc": _gap("accuracy"),
    "eo": _labelled("equalized_odds", lambda audit: [at.equalized_odds for at in audit.error_rates]),
    "eop": _labelled("equal_opportunity", lambda audit: [at.equal_opportunity for at in audit.error_rates]),
    "ece": _labelled(
        "expected_calibration_error",
        lambda audit: [] if audit.calibration is None else [audit.calibration.largest_error],
    ),
    "separation": Metric(
        "separation_disparity", _separation, "--label", _labels_judged("equalized_odds", "negatives", "positives")
    ),
    "opportunity": Metric(
        "opportunity_disparity", _opportunity, "--label", _labels_judged("equal_opportunity", "positives")
    ),
    "conditional": Metric("conditional_disparity", _conditional, "--strata", _strata_judged),
}
BELOW = {"ratio": Metric("rate_ratio", _ratios)}


@dataclass(frozen=True)
class Limit:
    """A bound on one metric of an audit."""

    alias: str
    metric: Metric
    bound: float
    upper: bool

    def exceeded(self, audit: Audit, *, surely: bool = False) -> str | None:
        """Return a message if the limit is exceeded at any threshold, and None otherwise.

        Disparities are corrected for their upward bias and refer to the groups that are judged, as in the verdict. With
        ``surely`` a limit counts as exceeded only if the whole confidence interval lies beyond the bound; where too few
        groups can be judged, a limit on a difference between groups then never does.
        """
        if surely and not self.metric.judged(audit):
            return None
        estimates = [one for one in self.metric.estimates(audit) if one is not None]
        if not estimates:
            raise ValueError(f"A limit on {self.alias} cannot be judged: {self.metric.unless}.")
        side = 1.0 if self.upper else -1.0

        def decisive(one: Estimate | Reading) -> float:
            return side * ((one.low if self.upper else one.high) if surely else _value(one))

        worst = max(estimates, key=decisive)
        if not decisive(worst) > side * self.bound:
            return None
        found = f"{_value(worst):.4g} ({worst.low:.4g} to {worst.high:.4g})"
        return f"limit exceeded: {self.alias} is {found} {'>' if self.upper else '<'} {self.bound:g}"


def _value(estimate: Estimate | Reading) -> float:
    """Return an estimate, corrected if it is biased."""
    return float(getattr(estimate, "corrected", estimate.value))


def parse_limits(
    above: Sequence[str], below: Sequence[str], *, labelled: bool, stratified: bool = False
) -> list[Limit]:
    """Return the limits that options give as ``NAME=NUMBER``."""
    limits = [_parse(text, ABOVE, option="--fail-above", upper=True) for text in above]
    limits += [_parse(text, BELOW, option="--fail-below", upper=False) for text in below]
    given = {None: True, "--label": labelled, "--strata": stratified}
    for limit in limits:
        if not given[limit.metric.needs]:
            raise misuse(f"A limit on {limit.alias} needs {limit.metric.needs}")
    return limits


def _parse(text: str, known: dict[str, Metric], *, option: str, upper: bool) -> Limit:
    alias, _, number = text.partition("=")
    names = known | {metric.name: metric for metric in known.values()}
    metric = names.get(alias.strip())
    if metric is None:
        listed = ", ".join(f"{short} ({one.name})" for short, one in known.items())
        raise misuse(f"{option} does not know the metric {alias!r}; it knows {listed}")
    try:
        bound = float(number)
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound):
        raise misuse(f"{option} must be NAME=NUMBER, such as {next(iter(known))}=.1; got {text!r}")
    return Limit(alias.strip(), metric, bound, upper)
