"""Audits of files, and limits on their metrics such as ``spdd=.1``, for use in a pipeline."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fairtransport.cli import _options as shared
from fairtransport.cli._output import progress_bar, spinner, stderr_is_terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairtransport.auditing import Audit, CorrectedEstimate, Estimate, Provenance, Reading
    from fairtransport.tables import TableCounts

#: Exit status when a limit is exceeded, and in no other case.
EXCEEDED = 2

#: Short and full names of the metrics that have an upper limit, and of those that have a lower one.
ABOVE = {
    "spdd": "strong_pairwise_disparity",
    "sdd": "strong_demographic_disparity",
    "wass1": "wasserstein_disparity",
    "rank": "rank_disparity",
    "ks": "kolmogorov_smirnov_disparity",
    "mean": "mean_distance",
    "largest": "largest_distance",
    "err": "error_rate",
    "difference": "rate_difference",
    "tpr": "true_positive_rate",
    "fpr": "false_positive_rate",
    "fnr": "false_negative_rate",
    "ppv": "positive_predictive_value",
    "npv": "negative_predictive_value",
    "acc": "accuracy",
    "eo": "equalized_odds",
    "eop": "equal_opportunity",
    "ece": "expected_calibration_error",
    "separation": "separation_disparity",
    "opportunity": "opportunity_disparity",
    "conditional": "conditional_disparity",
}
BELOW = {"ratio": "rate_ratio"}

# Largest differences between groups that need labels.
_GAPS = {ABOVE[alias] for alias in ("tpr", "fpr", "fnr", "ppv", "npv", "acc")}
_ODDS = {"equalized_odds", "equal_opportunity"}
_BOUNDED = "scores have known bounds, as probabilities do; limit spdd or largest instead"
_REASONS = {
    "rank_disparity": _BOUNDED,
    "kolmogorov_smirnov_disparity": _BOUNDED,
    "error_rate": "labels are numbers, not classes",
}
_WITHIN_LABELS = {"separation_disparity": "equalized_odds", "opportunity_disparity": "equal_opportunity"}
_LABELLED = {*_GAPS, *_ODDS, *_WITHIN_LABELS, "error_rate", "expected_calibration_error"}


@dataclass(frozen=True)
class Limit:
    """A bound on one metric of an audit."""

    alias: str
    name: str
    bound: float
    upper: bool

    def exceeded(self, audit: Audit, *, surely: bool = False) -> str | None:
        """Return a message if the limit is exceeded, and None otherwise.

        Disparities are corrected for their upward bias and refer to the groups that are judged, as in the verdict. With
        ``surely`` a limit counts as exceeded only if the whole confidence interval lies beyond the bound; where too few
        groups can be judged, a limit on a difference between groups then never does.
        """
        if surely and self.name != "error_rate" and self._too_few_rows(audit):
            return None
        value, low, high = self._estimate(audit, surely=surely)
        decisive = (low if self.upper else high) if surely else value
        if not (decisive > self.bound if self.upper else decisive < self.bound):
            return None
        sign = ">" if self.upper else "<"
        return f"limit exceeded: {self.alias} is {value:.4g} ({low:.4g} to {high:.4g}) {sign} {self.bound:g}"

    def _estimate(self, audit: Audit, *, surely: bool) -> tuple[float, float, float]:
        """Return the metric and its interval, at the worst threshold if it depends on one."""
        estimate: Estimate
        if self.name in _WITHIN_LABELS or self.name == "conditional_disparity":
            within = self._within(audit)
            return within.corrected, within.low, within.high
        if self.name in _LABELLED and self.name != "error_rate":
            errors = self._errors(audit)
            if not errors:
                raise ValueError(
                    f"A limit on {self.alias} cannot be judged: fewer than two groups have the rows that it needs, or "
                    "scores are not probabilities."
                )
            return max(errors, key=lambda each: each[1] if surely else each[0])
        if self.name == "rate_difference":
            differences = (at.difference for at in audit.thresholds)
            estimate = max(differences, key=lambda one: one.low if surely else one.value)
        elif self.name == "rate_ratio":
            judged = [at.ratio for at in audit.thresholds if at.four_fifths is not None]
            if not judged:  # no one is selected, so that all rates are equal
                return 1.0, 1.0, 1.0
            estimate = min(judged, key=lambda one: one.high if surely else one.value)
        elif self.name == "mean_distance":
            estimate = audit.mean_pairwise_distance
        elif self.name == "largest_distance" and audit.farthest.estimate is not None:
            estimate = audit.farthest.estimate
        else:
            reading = audit.readings.get(self.name)
            if reading is None:
                raise ValueError(f"A limit on {self.alias} cannot be judged: {_REASONS[self.name]}.")
            return reading.corrected, reading.low, reading.high
        return estimate.value, estimate.low, estimate.high

    def _too_few_rows(self, audit: Audit) -> bool:
        """Return whether too few groups can be judged, among all people or within labels or strata."""
        if self.name == "conditional_disparity" or self._is_criterion(audit):
            return audit.within is not None and not audit.within.judged
        if self.name == "separation_disparity" and audit.separation is not None:
            parts = (audit.separation.negatives, audit.separation.positives)
            return not all(part is not None and part.judged for part in parts)
        if self.name == "opportunity_disparity" and audit.separation is not None:
            return audit.separation.positives is None or not audit.separation.positives.judged
        return sum(group.judged for group in audit.groups) < 2

    def _is_criterion(self, audit: Audit) -> bool:
        """Return whether the limit is on what the criterion of the audit asks for."""
        return _WITHIN_LABELS.get(self.name) == audit.settings.criterion

    def _within(self, audit: Audit) -> Reading:
        """Return the disparity among people with the same label, or in the same stratum."""
        reading: Reading | None = None
        if self.name == "conditional_disparity" or self._is_criterion(audit):
            reading = audit.conditional.get(audit.settings.pairs_metric)
        elif audit.separation is not None and self.name == "separation_disparity":
            reading = audit.separation.disparity
        elif audit.separation is not None and audit.separation.positives is not None:
            reading = audit.separation.positives.disparity
        if reading is None:
            raise ValueError(f"A limit on {self.alias} cannot be judged: fewer than two groups have the rows it needs.")
        return reading

    def _errors(self, audit: Audit) -> list[tuple[float, float, float]]:
        """Return a metric that needs labels, corrected for its upward bias, at each threshold."""
        estimates: list[CorrectedEstimate | None]
        if self.name == "expected_calibration_error":
            estimates = [None if audit.calibration is None else audit.calibration.largest_error]
        elif self.name in _ODDS:
            estimates = [getattr(at, self.name) for at in audit.error_rates]
        else:
            gaps = [at.gaps[self.name] for at in audit.error_rates]
            estimates = [None if gap is None else gap.difference for gap in gaps]
        return [(each.corrected, each.low, each.high) for each in estimates if each is not None]


def parse_limits(
    above: Sequence[str], below: Sequence[str], *, labelled: bool, stratified: bool = False
) -> list[Limit]:
    """Return the limits that options give as ``NAME=NUMBER``."""
    limits = [_parse(text, ABOVE, option="--fail-above", upper=True) for text in above]
    limits += [_parse(text, BELOW, option="--fail-below", upper=False) for text in below]
    for limit in limits:
        if limit.name in _LABELLED and not labelled:
            raise ValueError(f"A limit on {limit.alias} needs --label.")
        if limit.name == "conditional_disparity" and not stratified:
            raise ValueError(f"A limit on {limit.alias} needs --strata.")
    return limits


def _parse(text: str, known: dict[str, str], *, option: str, upper: bool) -> Limit:
    alias, _, number = text.partition("=")
    name = known.get(alias.strip(), alias.strip())
    if name not in known.values():
        names = ", ".join(f"{short} ({full})" for short, full in known.items())
        raise ValueError(f"{option} does not know the metric {alias!r}; it knows {names}.")
    try:
        bound = float(number)
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound):
        raise ValueError(f"{option} must be NAME=NUMBER, such as {next(iter(known))}=.1; got {text!r}.")
    return Limit(alias.strip(), name, bound, upper)


# Audits of the rows of files: counted where they are, then estimated.


def audit_files(
    files: list[str],
    names: dict[str, Any],
    positive: str | None,
    *,
    reading: dict[str, Any],
    counting: dict[str, Any],
    drawing: dict[str, Any],
    seed: int,
) -> Audit:
    """Audit the rows of files; parameters as in `count_files`."""
    counts, provenance = count_files(
        files, names, positive, reading=reading, counting=counting, drawing=drawing, seed=seed
    )
    audit: Audit = audit_counted(counts, provenance, random_state=seed, **drawing)
    return audit


def count_files(
    files: list[str],
    names: dict[str, Any],
    positive: str | None,
    *,
    reading: dict[str, Any],
    counting: dict[str, Any],
    drawing: dict[str, Any],
    seed: int,
) -> tuple[TableCounts, Provenance]:
    """Count the scores in files, and describe the files and the columns."""
    from fairtransport.tables import count_table, open_files  # noqa: PLC0415 - numba takes a while

    def load_and_check() -> None:
        from fairtransport.auditing.options import check_options  # noqa: PLC0415
        from fairtransport.histograms import DEFAULT_BINS, Grid  # noqa: PLC0415

        score_range = counting["range"]
        grid = None if score_range is None else Grid.over(score_range, counting.get("n_bins", DEFAULT_BINS))
        check_options(grid, **drawing)

    from fairtransport.auditing.options import requested_nodes  # noqa: PLC0415

    counting = {"task": None, **counting, "any_range": True, "nodes": requested_nodes(drawing["thresholds"])}
    with open_files(files, **reading) as table:
        columns, paths = shared.name_columns(table, **names), table.paths
        if positive is not None:
            counting["pos_label"] = table.read_label(columns, positive)
        counts = table.run(count_table, columns, show=stderr_is_terminal(), meanwhile=load_and_check, **counting)
    from fairtransport.auditing.provenance import Provenance, describe_files  # noqa: PLC0415 - loaded by now

    with progress_bar("Hashing the files") as tell:
        sources = describe_files(paths, tell)
    roles = {role: (name,) if isinstance(name, str) else tuple(name) for role, name in vars(columns).items() if name}
    return counts, Provenance.now(
        files=sources, rows=counts.rows, columns=roles, positive=positive, seed=seed, strata_cuts=counts.cuts
    )


def audit_counted(counts: TableCounts, provenance: Provenance, *, by: str | None = None, **options: Any) -> Any:
    """Return the audit of counts or, with a column ``by``, the series of audits; ``options`` are of `audit_counts`."""
    from fairtransport.auditing import audit_counts, audit_counts_by  # noqa: PLC0415 - loaded by now

    with spinner("Intervals and noise floor"):
        if by is None:
            return audit_counts(counts, **options).with_provenance(provenance)
        series = audit_counts_by(counts, by=by, **options)
        return replace(series, overall=series.overall.with_provenance(provenance))
