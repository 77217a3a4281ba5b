"""`Audit`, the result of an audit: figures with confidence intervals, as text, JSON, figures or a page."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._extras import render
from fairtransport.auditing._audit_text import audit_text
from fairtransport.auditing._pair_summary import summarise_pair
from fairtransport.auditing.records import QUANTILE_LEVELS, AuditData

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from fairtransport.auditing.records import PairSummary

__all__ = ["Audit", "plain_values"]

_CDF_POINTS = 101  # of the distribution functions in `Audit.to_dict`


@dataclass(frozen=True, eq=False, repr=False)
class Audit(AuditData):
    """The differences between groups' scores, with confidence intervals.

    Returned by `fairtransport.audit`. ``print(audit)`` shows it as text; `to_dict`, `to_json` and `to_html` export it.

    Parameters
    ----------
    groups : tuple of GroupSummary
    readings : dict of str to Reading
        The metrics with their confidence intervals.
    thresholds : tuple of ThresholdSummary
    distances : array of shape (n_groups, n_groups)
        Wasserstein-1 distance between every two groups.
    farthest : PairSummary
        The two groups that are farthest apart, among those large enough to be judged (among all, where fewer than two
        are).
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
    strata : tuple of StratumSummary
        Empty without strata.
    conditional : dict of str to Reading
        The metrics within strata: the mean over strata, by weight. Empty without strata.
    histograms : GroupHistograms
        The binned scores of each group.
    settings : Settings

    See Also
    --------
    fairtransport.audit : Audit arrays of scores.
    fairtransport.audit_table : Audit a table on any engine.
    fairtransport.compare : Compare two audits of the same groups.
    """

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
        return summarise_pair(self.histograms, *pair, float(self.distances[pair]))

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the histograms as plain values that JSON can represent; NaN and infinity are None."""
        points = self.histograms.grid.from_unit(np.linspace(0, 1, _CDF_POINTS))
        return plain_values(
            {
                "rows": self.rows,
                "metrics": self.metrics,
                "readings": {name: asdict(reading) for name, reading in self.readings.items()},
                "groups": [asdict(group) for group in self.groups],
                "quantile_levels": QUANTILE_LEVELS,
                "thresholds": [asdict(threshold) for threshold in self.thresholds],
                "distances": self.distances.tolist(),
                "farthest": asdict(self.farthest),
                "auc": None if self.auc is None else asdict(self.auc),
                "error_rates": [asdict(rates) for rates in self.error_rates],
                "separation": None if self.separation is None else asdict(self.separation),
                "calibration": None if self.calibration is None else asdict(self.calibration),
                "cross_auc": None if self.cross_auc is None else asdict(self.cross_auc),
                "strata": [asdict(stratum) for stratum in self.strata],
                "conditional": {name: asdict(reading) for name, reading in self.conditional.items()},
                "cdf": {"points": points.tolist(), "groups": self.cdf(points).tolist()},
                "error_curves": {
                    "points": points.tolist(),
                    **{name: curves.tolist() for name, curves in self.error_curves(points).items()},
                },
                "settings": asdict(self.settings),
            }
        )

    def to_json(self, *, indent: int | None = None) -> str:
        """Return `to_dict` as JSON.

        Parameters
        ----------
        indent : int, optional
            As in `json.dumps`.

        Returns
        -------
        str
        """
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def plot(self, kind: str = "distribution", **options: Any) -> Any:
        """Plot the audit; requires the extra ``report``.

        Parameters
        ----------
        kind : {"distribution", "cdf", "pairs", "map"}, default "distribution"
            The distributions of the groups' scores; their distribution functions, with the distance between the
            farthest pair as the area between them; the matrix of pairwise distances; or the maps of a repair.
        **options
            ``ax=``, and the other parameters of the display's ``from_audit``.

        Returns
        -------
        Display
            `fairtransport.report.GroupDistributionDisplay`, `CdfDisplay`, `PairwiseDisparityDisplay` or
            `TransportMapDisplay`, with ``ax_`` and ``figure_``.
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
        spdd = self.readings["strong_pairwise_disparity"]
        text = f"{self.rows} rows in {len(self.groups)} groups, pairwise disparity {spdd.value:.3f}"
        return f"Audit({text}, {spdd.low:.3f} to {spdd.high:.3f})"

    def __str__(self) -> str:
        return audit_text(self)


def plain_values(value: Any) -> Any:
    """Turn tuples into lists, NumPy scalars into Python numbers, and NaN and infinity into None."""
    if isinstance(value, dict):
        return {str(name): plain_values(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_values(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
