"""`Audit`, the result of an audit: figures with confidence intervals, as text, JSON, figures or a page."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._extras import make_frame, render
from fairtransport._validation import check_choice
from fairtransport.auditing._audit_text import audit_text
from fairtransport.auditing._figure_tables import AUDIT_TABLES
from fairtransport.auditing._json_file import (
    FORMAT,
    VERSION,
    decode_histograms,
    decode_record,
    encode_histograms,
    plain_values,
    read_json,
)
from fairtransport.auditing._markdown import audit_markdown
from fairtransport.auditing._pair_summary import summarise_pair
from fairtransport.auditing._rank_scale import RankScale
from fairtransport.auditing.rate_comparisons import compare_rates
from fairtransport.auditing.records import QUANTILE_LEVELS, AuditData
from fairtransport.auditing.verdict import form_verdict
from fairtransport.histograms import display_points
from fairtransport.storage import write_atomically

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.auditing.provenance import Provenance
    from fairtransport.auditing.records import PairSummary, WithinStrata
    from fairtransport.auditing.verdict import Verdict

__all__ = ["Audit"]

_CDF_POINTS = 101  # of the distribution functions in `Audit.to_dict`


@dataclass(frozen=True, eq=False, repr=False)
class Audit(AuditData):
    """The differences between groups' scores, with confidence intervals.

    Returned by `fairtransport.audit`. ``print(audit)`` shows it as text; `to_dict`, `to_json` and `to_html` export it.

    Parameters
    ----------
    groups : tuple of GroupSummary
    readings : dict of str to Reading
        The metrics with their confidence intervals. The disparities are those of the groups that are judged; where
        fewer than two are, of all groups. Scores without known bounds also have ``rank_disparity``, which the verdict
        refers to, and ``kolmogorov_smirnov_disparity``, the largest difference between two groups' shares above any
        threshold; their other disparities are in units of the score.
    thresholds : tuple of ThresholdSummary
    distances : array of shape (n_groups, n_groups)
        Wasserstein-1 distance between every two groups.
    pair_p_values : array of shape (n_groups, n_groups)
        P-values of no difference between every two groups, adjusted for the number of pairs (Holm); NaN where a group
        is not judged.
    farthest : PairSummary
        The two judged groups whose difference is certain to be largest, by the lower confidence limit of their
        distance. Where no difference is established, the two with the largest upper limit.
    largest_distance : float
        Upper confidence limit of the distance between any two groups that are judged.
    metrics_all_groups : dict of str to float
        The three disparities of all groups, with those that are not judged.
    auc : Estimate or None
        Area under the ROC curve of all rows; None without labels.
    error_rates : tuple of ErrorRates
        Selection and error rates by group, for each threshold; empty without labels.
    separation : Separation or None
        Equalized odds over all thresholds; None without labels.
    calibration : Calibration or None
        Reliability curves and calibration errors by group; None without labels.
    cross_auc : CrossAuc or None
        Areas under the ROC curve between groups; None without labels.
    within : WithinStrata or None
        Groups compared among people with the same label (``criterion="equalized_odds"`` or ``"equal_opportunity"``) or
        in the same stratum; None where all people are compared. ``strata`` and ``conditional`` are parts of it.
    histograms : GroupHistograms
        The binned scores of each group.
    settings : Settings
    provenance : Provenance
    rank_distances : array of shape (n_groups, n_groups), or None
        Distance between the ranks of every two groups; None where scores have known bounds.
    regression : RegressionErrors or None
        Errors of predictions by group; None unless labels are real numbers.

    See Also
    --------
    fairtransport.audit : Audit arrays of scores.
    fairtransport.audit_table : Audit a table on any engine.
    fairtransport.compare : Compare two audits of the same groups.
    """

    @cached_property
    def verdict(self) -> Verdict:
        """What the audit establishes, in words and as values; see `Verdict`."""
        return form_verdict(self)

    def cdf(self, points: ArrayLike) -> NDArray[np.float64]:
        """Return the share of each group at or below each point.

        Parameters
        ----------
        points : array-like of shape (n_points,)
            Scores within the range of the audit.

        Returns
        -------
        array of shape (n_groups, n_points)
        """
        return 1.0 - self.histograms.shares_above(points).T

    def error_curves(self, points: ArrayLike) -> dict[str, NDArray[np.float64]]:
        """Return the true and false positive rate of each group at each threshold.

        Parameters
        ----------
        points : array-like of shape (n_points,)
            Thresholds within the range of the audit.

        Returns
        -------
        dict of str to array of shape (n_groups, n_points)
            ``true_positive_rate`` and ``false_positive_rate``, from the histograms: exact for thresholds on nodes. NaN
            where a group has no rows with that label; empty without labels.
        """
        if not self.histograms.has_labels:
            return {}
        curves = {}
        for name, label in (("true_positive_rate", 1), ("false_positive_rate", 0)):
            rows = replace(self.histograms, masses=self.histograms.masses[label : label + 1], squares=None)
            rates = rows.shares_above(points).T
            rates[~(rows.weights > 0)] = np.nan
            curves[name] = rates
        return curves

    def pair(self, one: Any, other: Any) -> PairSummary:
        """Return the distance between two groups, and the scores at which they differ.

        Parameters
        ----------
        one, other : label
            Labels or names of the groups.

        Returns
        -------
        PairSummary

        Examples
        --------
        >>> import fairtransport as ft
        >>> audit = ft.audit([0.1, 0.2, 0.3, 0.9], sensitive_features=["a", "a", "b", "b"], n_bootstrap=99)
        >>> round(audit.pair("a", "b").distance, 3)
        0.45
        """
        pair = self.histograms.groups.index_of(one), self.histograms.groups.index_of(other)
        p_value = float(self.pair_p_values[pair])
        known = None if math.isnan(p_value) else p_value
        distance = float(self.distances[pair])
        if self.rank_distances is None:
            return replace(summarise_pair(self.histograms, *pair, distance), p_value=known)
        scale = RankScale.of(self.histograms)
        ranked = summarise_pair(scale.of_histograms(self.histograms), *pair, float(self.rank_distances[pair]))
        return replace(
            ranked,
            p_value=known,
            most_between=tuple(scale.to_scores(ranked.most_between).tolist()),
            threshold=float(scale.to_scores(ranked.threshold)),
            score_distance=distance,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the histograms as plain values that JSON can represent; NaN and infinity are None."""
        points = display_points(self.histograms, _CDF_POINTS)
        return plain_values(
            {
                "rows": self.rows,
                "verdict": self.verdict.to_dict(),
                "metrics": self.metrics,
                "readings": {name: asdict(reading) for name, reading in self.readings.items()},
                "groups": [asdict(group) for group in self.groups],
                "quantile_levels": QUANTILE_LEVELS,
                "thresholds": [asdict(threshold) for threshold in self.thresholds],
                "distances": self.distances.tolist(),
                "pair_p_values": self.pair_p_values.tolist(),
                "farthest": asdict(self.farthest),
                "largest_distance": self.largest_distance,
                "mean_pairwise_distance": asdict(self.mean_pairwise_distance),
                "metrics_all_groups": dict(self.metrics_all_groups),
                "auc": None if self.auc is None else asdict(self.auc),
                "error_rates": [asdict(rates) for rates in self.error_rates],
                "separation": None if self.separation is None else asdict(self.separation),
                "calibration": None if self.calibration is None else asdict(self.calibration),
                "cross_auc": None if self.cross_auc is None else asdict(self.cross_auc),
                "regression": None if self.regression is None else asdict(self.regression),
                "rank_distances": None if self.rank_distances is None else self.rank_distances.tolist(),
                "within": None if self.within is None else _plain_within(self.within),
                "cdf": {"points": points.tolist(), "groups": self.cdf(points).tolist()},
                "error_curves": {
                    "points": points.tolist(),
                    **{name: curves.tolist() for name, curves in self.error_curves(points).items()},
                },
                "settings": asdict(self.settings),
                "rate_comparisons": [asdict(row) for row in compare_rates(self)],
                "provenance": asdict(self.provenance),
            }
        )

    def to_json(self, path: Any = None, *, indent: int | None = None) -> Any:
        """Write the audit as JSON, from which `from_json` restores it.

        Parameters
        ----------
        path : path, optional
            File to write; an existing file is replaced atomically. Without a path the JSON is returned.
        indent : int, optional
            As in `json.dumps`.

        Returns
        -------
        Path or str
            `to_dict`, with the histograms as compressed arrays. NaN is null, and infinity the text "Infinity".
        """
        content = {
            "format": FORMAT,
            "version": VERSION,
            **self.to_dict(),
            "histograms": encode_histograms(self.histograms),
        }
        text = json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False)
        if path is None:
            return text
        write_atomically(Path(path), f"{text}\n".encode())
        return Path(path)

    @classmethod
    def from_json(cls, source: Any) -> Audit:
        """Restore an audit from JSON.

        Parameters
        ----------
        source : path or str
            A file that `to_json` or ``fairtransport audit --json`` wrote, or its text.

        Returns
        -------
        Audit

        Raises
        ------
        ValueError
            Where the file is no audit, of another version, or damaged.

        Examples
        --------
        >>> import fairtransport as ft
        >>> audit = ft.audit([0.1, 0.2, 0.3, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
        >>> str(Audit.from_json(audit.to_json())) == str(audit)
        True
        """
        content = read_json(source)
        content["histograms"] = decode_histograms(content.get("histograms"))
        audit: Audit = decode_record(cls, content, _record_namespace())
        return audit

    def to_frame(self, table: str = "groups", *, library: str | None = None) -> Any:
        """Return a table of the audit as a data frame; requires pandas, polars or pyarrow.

        Parameters
        ----------
        table : str, default "groups"
            ``"groups"``; ``"metrics"``; ``"thresholds"``, the selection rates; ``"rates"``, their comparison by the
            four-fifths rule, statistical and practical significance; ``"pairs"``; ``"strata"``, the labels or
            strata that groups are compared within; with labels of classes ``"separation"``, ``"error_rates"``,
            ``"calibration"``, ``"reliability"`` and ``"cross_auc"``; and with real-valued labels ``"residuals"``, the
            errors by group, and ``"residual_deciles"``.
        library : {"pandas", "polars", "pyarrow"}, optional
            By default pandas, or polars where pandas is not installed.

        Returns
        -------
        DataFrame or Table
            One row for each figure; intervals are columns with the endings ``_low`` and ``_high``.
        """
        check_choice(table, tuple(AUDIT_TABLES), name="table")
        return make_frame(AUDIT_TABLES[table](self), library)

    def to_markdown(self, path: Any = None, *, title: str | None = None) -> Any:
        """Write the audit as Markdown, for a model card or a report.

        Parameters
        ----------
        path : path, optional
            File to write; an existing file is replaced atomically. Without a path the text is returned.
        title : str, optional

        Returns
        -------
        Path or str
        """
        text = audit_markdown(self, self.verdict, title)
        if path is None:
            return text
        write_atomically(Path(path), text.encode())
        return Path(path)

    def with_provenance(self, provenance: Provenance | None = None, **values: Any) -> Audit:
        """Return the audit with what is known about its origin, for its page and its files.

        Parameters
        ----------
        provenance : Provenance, optional
            Replaces what is known so far.
        **values
            Parts to add to it, such as ``title="March"`` or ``filters=("region = north",)``.

        Returns
        -------
        Audit
        """
        return replace(self, provenance=replace(provenance or self.provenance, **values))

    def plot(self, kind: str = "distribution", **options: Any) -> Any:
        """Plot the audit; requires the extra ``report``.

        Parameters
        ----------
        kind : {"distribution", "cdf", "pairs", "map", "separation", "errors", "reliability"}, default "distribution"
            The distributions of the groups' scores; their distribution functions, with the distance between the
            farthest pair as the area between them; the matrix of pairwise distances; the maps of a repair; or, with
            labels, the distribution functions among people with the same outcome, the error rates at a threshold and
            the reliability curves.
        **options
            ``ax=``, and the other parameters of the display's ``from_audit``.

        Returns
        -------
        Display
            `fairtransport.report.GroupDistributionDisplay`, `CdfDisplay`, `PairwiseDisparityDisplay`,
            `TransportMapDisplay`, `SeparationDisplay`, `ErrorRateDisplay` or `ReliabilityDisplay`, with ``ax_`` and
            ``figure_``.
        """
        return render("plot_audit", self, kind=kind, **options)

    def to_html(self, path: Any = None, **options: Any) -> Any:
        """Write the audit as a self-contained HTML page; requires the extra ``report``.

        Parameters
        ----------
        path : path, optional
            File to write, in an existing folder. An existing file is replaced atomically. Without a path the page is
            returned as text.
        title : str, optional
            Heading of the page.
        repair_target : str, label or array, default "barycenter_w2"
            Target of the repair that the page shows; as in `fairtransport.QuantileRepair`.
        effects : CounterfactualAudit, optional
            Result of `fairtransport.audit_counterfactual`, for a section on the paths of a causal graph.

        Returns
        -------
        Path or str
            One file that works offline: no network request, under 5 MB for any number of rows and up to 200 groups.
        """
        return render("audit_to_html", self, path=path, **options)

    def _repr_html_(self) -> str:
        """Show the verdict and the groups in a notebook."""
        return str(render("audit_repr_html", self))

    def __repr__(self) -> str:
        metric = self.settings.pairs_metric
        spdd = (self.conditional or self.readings)[metric]
        name = "pairwise disparity" if self.settings.bounded else "rank disparity"
        criterion = "" if self.within is None else f"{self.settings.criterion_text}: "
        text = f"{self.rows} rows in {len(self.groups)} groups, {criterion}{name} {spdd.value:.3f}"
        return f"Audit({text}, {spdd.low:.3f} to {spdd.high:.3f})"

    def __str__(self) -> str:
        return audit_text(self, self.verdict)


def _plain_within(within: WithinStrata) -> dict[str, Any]:
    matrices = {name: getattr(within, name).tolist() for name in ("distances", "pair_p_values")}
    return {**asdict(within), **matrices}


@cache
def _record_namespace() -> dict[str, Any]:
    """Return the names that the fields of records are declared with."""
    from fairtransport.auditing import errors, proportions, provenance, records  # noqa: PLC0415 - only to read files

    names: dict[str, Any] = {"Mapping": Mapping, "NDArray": np.ndarray, "np": np, "GroupHistograms": Any}
    for module in (errors, proportions, provenance, records):
        names |= {name: value for name, value in vars(module).items() if isinstance(value, type)}
    return names
