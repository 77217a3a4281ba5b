"""`Audit`, the result of an audit: figures with confidence intervals, as text, JSON, figures or a page."""

from __future__ import annotations

import base64
import json
import math
import os
import types
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtransport._arrays import Floats
from fairtransport._extras import make_frame, render
from fairtransport._text import three_digits
from fairtransport._validation import check_choice
from fairtransport.auditing._disparity_readings import summarise_pair
from fairtransport.auditing._evidence import RankScale
from fairtransport.auditing._withholding import withhold_small_groups
from fairtransport.auditing.provenance import Provenance
from fairtransport.auditing.records import QUANTILE_LEVELS, AuditData, compare_rates
from fairtransport.auditing.text import AUDIT_TABLES, audit_lines
from fairtransport.auditing.verdict import form_verdict
from fairtransport.histograms import GroupHistograms, display_points
from fairtransport.storage import write_atomically

if TYPE_CHECKING:
    from fairtransport.auditing.records import PairSummary
    from fairtransport.auditing.verdict import Verdict

# Audits as JSON, and back.

#: What the file says it is, and the version of its layout.
FORMAT, VERSION = "fairtransport audit", 2

_MAX_BYTES = 1 << 28  # of a file
_MAX_ENTRIES = 1 << 19  # occupied bins that are stored; finer histograms are merged
_MAX_INFLATED = 1 << 27  # bytes of an array
_KINDS = {name: np.dtype(name) for name in ("<i8", "<f8", "|b1")}


def plain_values(value: Any) -> Any:
    """Turn records into dicts, tuples and arrays into lists, NaN into None and infinity into text."""
    if is_dataclass(value):
        value = {part.name: getattr(value, part.name) for part in fields(value)}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain_values(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_values(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value


def read_json(source: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of a JSON file of an audit, or of such text, after checking what it says it is."""
    text, name = _text_of(source)
    try:
        content = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ValueError(f"{name} is not JSON.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{name} is not an audit; Audit.to_json and `fairtransport audit --json` write audits.")
    found = content.get("version")
    if found != VERSION:
        shown = found if isinstance(found, int) else "unknown"
        raise ValueError(
            f"{name} has version {shown} of the layout of audits, and this release reads version {VERSION}. Write the "
            "file again with this release, or read it with the release that wrote it."
        )
    return content


def _text_of(source: str | os.PathLike[str]) -> tuple[str, str]:
    if isinstance(source, str) and source.lstrip()[:1] == "{":
        return source, "The text"
    path = Path(source)
    if path.stat().st_size > _MAX_BYTES:
        raise ValueError(f"{path} has more than {_MAX_BYTES >> 20} MiB, and is no audit.")
    try:
        return path.read_text("utf-8"), str(path)
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not JSON.") from None


def _refuse_constant(name: str) -> float:
    raise ValueError(name)


def decode_record(kind: Any, value: Any, namespace: Mapping[str, Any], path: str = "audit") -> Any:
    """Return a value of JSON as an instance of a type: a dataclass, a tuple, a mapping, an array or a plain value."""
    origin, kinds = get_origin(kind), get_args(kind)
    if origin in {Union, types.UnionType}:
        return _decode_union(kinds, value, namespace, path)
    if is_dataclass(kind):
        return _decode_dataclass(kind, value, namespace, path)
    if np.ndarray in {kind, origin}:
        try:
            return np.asarray(value, dtype=np.float64)  # None becomes NaN
        except (TypeError, ValueError):
            raise _mismatch(path) from None
    if origin is tuple:
        if isinstance(value, list) and kinds[1:] == (Ellipsis,):
            kinds = kinds[:1] * len(value)
        if not isinstance(value, list) or len(kinds) != len(value):
            raise _mismatch(path)
        items = enumerate(zip(kinds, value, strict=True))
        return tuple(decode_record(each, item, namespace, f"{path}[{index}]") for index, (each, item) in items)
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            raise _mismatch(path)
        return {name: decode_record(kinds[1], item, namespace, f"{path}.{name}") for name, item in value.items()}
    return _decode_plain(kind, value, path)


def _decode_union(kinds: tuple[Any, ...], value: Any, namespace: Mapping[str, Any], path: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    *others, last = (kind for kind in kinds if kind is not type(None))
    for kind in others:
        with suppress(ValueError):
            return decode_record(kind, value, namespace, path)
    return decode_record(last, value, namespace, path)


def _decode_dataclass(kind: Any, value: Any, namespace: Mapping[str, Any], path: str) -> Any:
    if not isinstance(value, dict):
        raise _mismatch(path)
    hints = get_type_hints(kind, localns={**namespace})
    values = {}
    for part in fields(kind):
        if part.name in value:
            values[part.name] = decode_record(hints[part.name], value[part.name], namespace, f"{path}.{part.name}")
        elif part.default is MISSING and part.default_factory is MISSING:
            raise ValueError(f"The audit has no {path.partition('.')[2]}.{part.name}.".replace(" .", " "))
    return kind(**values)


def _decode_plain(kind: Any, value: Any, path: str) -> Any:
    if kind is float and value is None:
        return math.nan
    if kind is float and (value in ("Infinity", "-Infinity") or type(value) in {int, float}):
        return float(value)
    if kind is Any or (kind in {bool, int, str} and type(value) is kind):
        return value
    raise _mismatch(path)


def _mismatch(path: str) -> ValueError:
    return ValueError(f"The audit is damaged: {path.partition('.')[2] or path} has another type than audits have.")


def encode_histograms(histograms: GroupHistograms) -> dict[str, Any]:
    """Return histograms as plain values: the occupied bins, as compressed arrays in base 64."""
    while np.count_nonzero(histograms.masses) > _MAX_ENTRIES and _can_halve(histograms):
        histograms = histograms.coarsen(histograms.grid.n_bins // 2)
    arrays = histograms.to_arrays()
    spec = json.loads(str(arrays.pop("spec")))
    return {**spec, **{name: _pack(array) for name, array in arrays.items()}}


def _can_halve(histograms: GroupHistograms) -> bool:
    return bool(histograms.grid.positions) or histograms.grid.n_bins % 2 == 0


def decode_histograms(value: Any) -> GroupHistograms:
    """Return the histograms that `encode_histograms` stored; raise ValueError for anything else."""
    names = ("range", "n_bins", "n_classes", "groups")
    if not isinstance(value, dict) or not {*names, "at", "masses", "rows"} <= {*value}:
        raise ValueError("The audit is damaged: it has no histograms.")
    spec = {name: value[name] for name in names}
    names_of_arrays = ("at", "masses", "rows", "squares", "members", "nodes")
    arrays = {name: _unpack(value[name]) for name in names_of_arrays if name in value}
    return GroupHistograms.from_arrays({"spec": json.dumps(spec), **arrays})


def _pack(array: NDArray[Any]) -> dict[str, Any]:
    data = np.diff(array, prepend=0) if array.dtype.kind == "i" and array.ndim == 1 else array
    kind = next(name for name, dtype in _KINDS.items() if dtype.kind == data.dtype.kind)
    content = zlib.compress(np.ascontiguousarray(data, dtype=kind).tobytes(), 6)
    return {"dtype": kind, "shape": list(array.shape), "data": base64.b64encode(content).decode()}


def _unpack(value: Any) -> NDArray[Any]:
    try:
        kind, shape = value["dtype"], tuple(value["shape"])
        content = base64.b64decode(value["data"], validate=True)
        array = np.frombuffer(_inflate(content), dtype=_KINDS[kind]).reshape([int(size) for size in shape])
    except (KeyError, TypeError, ValueError, zlib.error):
        raise ValueError("The audit is damaged: its histograms cannot be read.") from None
    return np.cumsum(array) if kind == "<i8" and array.ndim == 1 else array


def _inflate(content: bytes) -> bytes:
    inflater = zlib.decompressobj()
    data = inflater.decompress(content, _MAX_INFLATED)
    if not inflater.eof:
        raise ValueError("too much data, or too little")
    return data


_CDF_POINTS = 101  # of the distribution functions in `Audit.to_dict`


@dataclass(frozen=True, eq=False, repr=False)
class Audit(AuditData):
    """The differences between groups' scores, with confidence intervals.

    Returned by `fairtransport.audit`. ``print(audit)`` shows it as text; `to_dict`, `to_json` and `to_html` export it.

    Parameters
    ----------
    groups : tuple of GroupSummary
    readings : dict of str to Reading
        The metrics of the groups that are judged; where fewer than two are, of all groups. Those of the paper are sums
        over groups or pairs; ``mean_readings`` has them as means. Scores without known bounds also have
        ``rank_disparity``, a mean over pairs which the verdict refers to, and ``kolmogorov_smirnov_disparity``.
    thresholds : tuple of ThresholdSummary
    distances, pair_p_values : array of shape (n_groups, n_groups)
        Wasserstein-1 distance between every two groups, and p-values of no difference, adjusted for the number of pairs
        (Holm); NaN where a group is not judged.
    farthest, clearest : PairSummary
        The two judged groups with the largest observed distance, and those that the verdict is about: with the largest
        lower confidence limit or, where no difference is established, upper limit.
    largest_distance : Estimate
        The largest distance between two groups that are judged, corrected for bias; its interval holds for any pair.
    metrics_all_groups : dict of str to float
        The three disparities of all groups, with those that are not judged.
    auc, error_rates, separation, calibration, cross_auc
        With labels of classes: area under the ROC curve, error rates by group for each threshold, equalized odds over
        all thresholds, calibration, and areas between groups. None (``error_rates`` empty) without.
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
    fairtransport.audit, fairtransport.audit_table, fairtransport.compare
    """

    @cached_property
    def shown(self) -> Audit:
        """The audit as text, tables, pages and files show it: figures of groups of fewer than 5 rows are withheld."""
        return withhold_small_groups(self)

    @cached_property
    def verdict(self) -> Verdict:
        """The conclusion of the audit, in words and as values; see `Verdict`."""
        return form_verdict(self)

    def cdf(self, points: ArrayLike) -> Floats:
        """Return the share of each group at or below each point, of shape (n_groups, n_points)."""
        shares = 1.0 - self.histograms.shares_above(points).T
        shares[~(self.histograms.weights > 0)] = np.nan
        return shares

    def error_curves(self, points: ArrayLike) -> dict[str, Floats]:
        """Return ``true_positive_rate`` and ``false_positive_rate`` of each group at each threshold.

        Arrays of shape (n_groups, n_points), exact for thresholds on nodes of the histograms; NaN where a group has no
        rows with that label, and empty without labels.
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
        """Return the distance between two groups, given by label or name, and the scores at which they differ.

        Examples
        --------
        >>> import fairtransport as ft
        >>> audit = ft.audit([0.1, 0.2, 0.3, 0.9], sensitive_features=["a", "a", "b", "b"])
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
        shown, points = self.shown, display_points(self.shown.histograms, _CDF_POINTS)
        figures = {part.name: getattr(shown, part.name) for part in fields(self) if part.name != "histograms"}
        return plain_values(
            {
                "rows": shown.rows,
                "verdict": shown.verdict.to_dict(),
                "metrics": shown.metrics,
                **figures,
                "quantile_levels": QUANTILE_LEVELS,
                "mean_pairwise_distance": shown.mean_pairwise_distance,
                "cdf": {"points": points, "groups": shown.cdf(points)},
                "error_curves": {"points": points, **shown.error_curves(points)},
                "rate_comparisons": compare_rates(shown),
            }
        )

    def to_json(self, path: Any = None, *, indent: int | None = None) -> Any:
        """Write the audit as JSON, from which `from_json` restores it: `to_dict`, and the histograms.

        Parameters
        ----------
        path : path, optional
            File to write; an existing file is replaced atomically. Without a path the JSON is returned.
        indent : int, optional
            As in `json.dumps`.

        Returns
        -------
        Path or str
        """
        content = {
            "format": FORMAT,
            "version": VERSION,
            **self.to_dict(),
            "histograms": encode_histograms(self.shown.histograms),
        }
        text = json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False)
        return text if path is None else write_atomically(path, f"{text}\n".encode())

    @classmethod
    def from_json(cls, source: Any) -> Audit:
        """Restore an audit from a file that `to_json` or ``fairtransport audit --json`` wrote, or from its text.

        Raises
        ------
        ValueError
            Where the file is no audit, of another version, or damaged.

        Examples
        --------
        >>> import fairtransport as ft
        >>> audit = ft.audit([0.1, 0.2, 0.3, 0.9], sensitive_features=["a", "a", "b", "b"])
        >>> str(Audit.from_json(audit.to_json())) == str(audit)
        True
        """
        content = read_json(source)
        content["histograms"] = decode_histograms(content.get("histograms"))
        audit: Audit = decode_record(cls, content, _record_namespace())
        return audit

    def to_frame(self, table: str = "groups", *, library: str | None = None) -> Any:
        """Return a table of the audit as a data frame; intervals are columns with the endings ``_low`` and ``_high``.

        Parameters
        ----------
        table : str, default "groups"
            ``"groups"``; ``"metrics"``; ``"thresholds"``, the selection rates; ``"rates"``, their comparison by the
            four-fifths rule, statistical and practical significance; ``"pairs"``; ``"strata"``; with labels of classes
            ``"separation"``, ``"error_rates"``, ``"calibration"``, ``"reliability"`` and ``"cross_auc"``; and with
            real-valued labels ``"residuals"`` and ``"residual_deciles"``.
        library : {"pandas", "polars", "pyarrow"}, optional
            By default pandas, or polars where pandas is not installed.

        Returns
        -------
        DataFrame or Table
        """
        check_choice(table, tuple(AUDIT_TABLES), name="table")
        return make_frame(AUDIT_TABLES[table](self.shown), library)

    def to_markdown(self, path: Any = None, *, title: str | None = None) -> Any:
        """Write the audit as Markdown, for a model card or a report; without a path the text is returned."""
        text = str(render("pages.documents.audit_markdown", self.shown, title=title))
        return text if path is None else write_atomically(path, text.encode())

    def with_provenance(self, provenance: Provenance | None = None, **values: Any) -> Audit:
        """Return the audit with what is known about its origin, such as ``title="March"``; see `Provenance`."""
        return replace(self, provenance=replace(provenance or self.provenance, **values))

    def plot(self, kind: str = "distribution", **options: Any) -> Any:
        """Plot the audit; requires the extra ``report``.

        Parameters
        ----------
        kind : {"distribution", "cdf", "pairs", "map", "separation", "errors", "reliability"}, default "distribution"
            Distributions of the groups' scores; distribution functions, with the farthest pair; the matrix of pairwise
            distances; the maps of a repair; or, with labels, distribution functions among people with the same outcome,
            the error rates at a threshold and the reliability curves.
        **options
            ``ax=``, and the other parameters of the display's ``from_audit``.

        Returns
        -------
        Display
            One of those in `fairtransport.report`, with ``ax_`` and ``figure_``.
        """
        return render("displays.plot_audit", self, kind=kind, **options)

    def to_html(self, path: Any = None, **options: Any) -> Any:
        """Write the audit as a self-contained HTML page; requires the extra ``report``.

        Parameters
        ----------
        path : path, optional
            File to write, replaced atomically where it exists. Without a path the page is returned as text.
        title : str, optional
            Heading of the page.
        repair_target : str, label or array, default "barycenter_w2"
            Target of the repair that the page shows; as in `fairtransport.QuantileRepair`.
        effects : CounterfactualAudit, optional
            Result of `fairtransport.causal.audit_counterfactual`, for a section on the paths of a causal graph.

        Returns
        -------
        Path or str
            One file that works offline: no network request, under 5 MB for any number of rows and up to 200 groups.
        """
        return render("pages.audit.audit_page", self.shown, path=path, **options)

    def _repr_html_(self) -> str:
        """Show the verdict and the groups in a notebook."""
        return str(render("pages.documents.render_notebook_cell", self.shown))

    def __repr__(self) -> str:
        shown = (self.within or self).mean_readings[self.settings.pairs_metric]
        name = "pairwise disparity" if self.settings.bounded else "rank disparity"
        criterion = "" if self.within is None else f"{self.settings.criterion_text}: "
        text = f"{self.rows} rows in {len(self.groups)} groups, {criterion}{name} {three_digits(shown.value)}"
        return f"Audit({text}, {three_digits(shown.low)} to {three_digits(shown.high)})"

    def __str__(self) -> str:
        return "\n".join(audit_lines(self.shown, self.shown.verdict))


@cache
def _record_namespace() -> dict[str, Any]:
    """Return the names that the fields of records are declared with."""
    from fairtransport.auditing import errors, proportions, provenance, records  # noqa: PLC0415 - only to read files

    modules = (errors, proportions, provenance, records)
    names = {name: value for module in modules for name, value in vars(module).items() if isinstance(value, type)}
    return {**names, "Mapping": Mapping, "Floats": np.ndarray, "GroupHistograms": Any}
