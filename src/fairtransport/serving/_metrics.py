"""Figures for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import generate_latest

from fairtransport.metrics import strong_pairwise_disparity
from fairtransport.serving._counters import LATENCY_BOUNDS, REASONS, REPLACED, SCORE_BINS, STATUSES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from fairtransport.serving._counters import RequestCounts, ScoreCounts

__all__ = ["Metrics"]

_MARKS = 10  # bins of the histograms of scores in the metrics


class Metrics:
    """Figures of a server in the format of Prometheus.

    Parameters
    ----------
    requests : RequestCounts
    state : callable
        Returns a dict: ``version`` of the model, ``loaded`` (whether the latest version of the file is served),
        ``task``, ``groups`` (names), ``scores`` (ScoreCounts or None), and ``stream``, the report on the latest batch
        of a server that adjusts its model, or None.
    min_rows : int
        Groups with fewer rows are not shown.
    """

    def __init__(self, requests: RequestCounts, state: Callable[[], Mapping[str, Any]], min_rows: int) -> None:
        self._requests, self._state, self._min_rows = requests, state, min_rows
        self._registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        self._registry.register(self)

    def text(self) -> bytes:
        """Return the figures as text."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Any]:
        """Yield the metrics, as a registry of prometheus-client asks for them."""
        yield from self._request_metrics()
        state = self._state()
        model = GaugeMetricFamily("fairtransport_model", "Version of the model that is served.", labels=["version"])
        model.add_metric([state["version"]], 1.0)
        yield model
        yield GaugeMetricFamily(
            "fairtransport_model_file_loaded",
            "1 if the latest version of the model file is served, 0 if it could not be loaded.",
            value=float(state["loaded"]),
        )
        if state["scores"] is not None:
            yield from self._score_metrics(state["groups"], state["scores"], bounded=state["task"] == "classification")
        if state["stream"] is not None:
            yield from _stream_metrics(state["stream"])

    def _request_metrics(self) -> Iterator[Any]:
        counts = self._requests.total()
        by_status = CounterMetricFamily(
            "fairtransport_requests", "Requests for scores, by the status of the response.", labels=["status"]
        )
        for status, number in zip(STATUSES, counts["statuses"], strict=True):
            if number:
                by_status.add_metric([str(status) if status else "other"], number)
        yield by_status
        cumulated = np.cumsum(counts["latencies"])
        bounds = [*map(str, LATENCY_BOUNDS), "+Inf"]
        latency = HistogramMetricFamily("fairtransport_request_seconds", "Time from a request to its response.")
        latency.add_metric([], [*zip(bounds, cumulated, strict=True)], sum_value=counts["sums"][0])
        yield latency
        yield CounterMetricFamily("fairtransport_rows", "Rows that were received.", value=counts["sums"][1])
        rejected = CounterMetricFamily(
            "fairtransport_rejected_rows", "Rows that have no score, by the kind of the reason.", labels=["reason"]
        )
        for reason, number in zip(REASONS, counts["reasons"], strict=True):
            rejected.add_metric([reason], number)
        yield rejected
        replaced = CounterMetricFamily(
            "fairtransport_replaced_cells", "Cells treated as missing or as a rare category.", labels=["kind"]
        )
        for kind, number in zip(REPLACED, counts["replaced"], strict=True):
            replaced.add_metric([kind], number)
        yield replaced

    def _score_metrics(self, names: Sequence[str], scores: ScoreCounts, *, bounded: bool) -> Iterator[Any]:
        """Yield the distribution of each group's scores; groups with few rows are left out."""
        histograms, sums = scores.total()
        sizes = histograms.sum(axis=1)
        shown = np.flatnonzero(sizes >= self._min_rows)
        if bounded:
            wide = histograms.reshape(len(names), _MARKS, -1).sum(axis=2).cumsum(axis=1)
            bounds = [*map(str, ((np.arange(_MARKS - 1) + 1) / _MARKS).round(6)), "+Inf"]
            sketch = HistogramMetricFamily(
                "fairtransport_scores", "Scores of each group that the requests name.", labels=["group"]
            )
            for group in shown.tolist():
                marks = [*zip(bounds, wide[group], strict=True)]
                sketch.add_metric([names[group]], marks, sum_value=sums[group])
            yield sketch
            if len(shown) > 1:
                yield GaugeMetricFamily(
                    "fairtransport_disparity",
                    "Strong pairwise demographic disparity of all scores since the start of this version.",
                    value=_disparity(histograms[shown]),
                )
            return
        rows = CounterMetricFamily("fairtransport_group_rows", "Scored rows of each group.", labels=["group"])
        total = GaugeMetricFamily("fairtransport_group_mean", "Mean score of each group.", labels=["group"])
        for group in shown.tolist():
            rows.add_metric([names[group]], sizes[group])
            total.add_metric([names[group]], sums[group] / sizes[group])
        yield rows
        yield total


def _disparity(histograms: NDArray[np.float64]) -> float:
    """Return the disparity of histograms, with scores in the middle of their bins."""
    middles = np.tile((np.arange(SCORE_BINS) + 0.5) / SCORE_BINS, len(histograms))
    groups = np.repeat(np.arange(len(histograms)), SCORE_BINS)
    counts = histograms.ravel()
    seen = counts > 0
    return float(strong_pairwise_disparity(middles[seen], sensitive_features=groups[seen], sample_weight=counts[seen]))


def _stream_metrics(report: Any) -> Iterator[Any]:
    """Yield the state of a server that adjusts its model, after the latest batch."""
    gauges = {
        "disparity_before": (report.disparity_before, "Disparity of the original model's scores, recent rows."),
        "disparity_after": (report.disparity_after, "Disparity of the scores that were returned, recent rows."),
        "noise_floor": (report.noise_floor, "Expected disparity of groups of these sizes with equal distributions."),
        "alarm": (float(report.alarm), "1 if the latest batch raised an alarm."),
        "alarm_evidence": (report.evidence, "Evidence that scores have changed; an alarm is raised at 1."),
        "moved": (report.moved, "Distance of the model from the last accepted one."),
        "frozen": (float(report.frozen), "1 if adjusting is suspended."),
    }
    for name, (value, text) in gauges.items():
        yield GaugeMetricFamily(f"fairtransport_stream_{name}", text, value=value)
    yield CounterMetricFamily("fairtransport_stream_batches", "Batches that the model was adjusted to.", report.batch)
    yield CounterMetricFamily(
        "fairtransport_stream_rows_without_group",
        "Rows that belong to no known group: scored, but neither monitored nor learned from.",
        report.rows_without_group,
    )
