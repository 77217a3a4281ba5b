"""Summaries of target distributions, which every family of models has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._validation import check_vector
from fairtransport.persistence._summaries import Change, summarise_quantiles
from fairtransport.transport.line import Sample
from fairtransport.transport.targets import TARGET_SIZE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups

__all__ = ["summarize_target"]


def summarize_target(model: Any, people: int) -> dict[str, tuple[Any, Change]]:
    """Return summaries of the attribute ``target_`` and of the parameter ``target``, if that is an array of scores."""
    summaries: dict[str, tuple[Any, Change]] = {}
    if hasattr(model, "target_"):
        sizes = getattr(model, "group_sizes_", None)
        n_rows = 0.0 if sizes is None else float(np.min(sizes))
        summaries["target_"] = summarise_quantiles(model.target_, people, n_rows)
    if _is_array_of_scores(model.target, _groups_of(model)):
        scores = _ascending(model.target)
        if scores.size <= TARGET_SIZE:  # distinct scores may be of one person each
            summaries["target"] = summarise_quantiles(scores, people, float(scores.size))
        else:
            points = Sample.from_values(scores).equal_mass(TARGET_SIZE)
            summaries["target"] = summarise_quantiles(points, people, 0.0)
    return summaries


def _groups_of(model: Any) -> Groups | None:
    groups: Groups | None = getattr(getattr(model, "repair_", None) or model, "groups_", None)
    return groups


def _is_array_of_scores(target: Any, groups: Groups | None) -> bool:
    """Return whether a parameter ``target`` contains scores, and is not a word or the label of a group."""
    if isinstance(target, Sample):
        return True
    if isinstance(target, tuple) and groups is not None and target in groups.labels:
        return False
    if isinstance(target, (list, tuple)):
        return not any(isinstance(part, str) or part is None for part in target)
    return np.ndim(target) > 0


def _ascending(target: Any) -> NDArray[np.float64]:
    if isinstance(target, Sample):
        return target.equal_mass(TARGET_SIZE)
    return np.sort(check_vector(target, name="target"))
