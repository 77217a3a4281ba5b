"""The result of a comparison in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtransport._text import count_word, one_line

if TYPE_CHECKING:
    from fairtransport.report._comparison import Comparison, MethodOutcome

__all__ = ["verdict"]

_METRIC = "strong_pairwise_disparity"
_BEYOND_CHANCE = 2.0  # multiple of the noise floor


def verdict(comparison: Comparison) -> str:
    """State how differently the first method scores the groups and what the last one changes.

    Parameters
    ----------
    comparison : Comparison
        The method without parity first, the method in question last.

    Returns
    -------
    str
        One or two sentences, without line breaks.

    Notes
    -----
    Groups are scored differently if the strong pairwise demographic disparity (SPDD) is at least twice its noise
    floor. Errors are counted at threshold 0.5 and compared per 100 people.

    Examples
    --------
    >>> import numpy as np
    >>> from fairtransport import make_groups
    >>> from fairtransport.report import METRICS, Comparison, MethodOutcome
    >>> groups, scores = make_groups(["a", "b"]), np.array([0.1, 0.9])
    >>> apart, close = dict.fromkeys(METRICS, 0.8), dict.fromkeys(METRICS, 0.04)
    >>> outcomes = (
    ...     MethodOutcome("LR", "Logistic regression", {**apart, "error_rate": 0.15}, 0.5, scores),
    ...     MethodOutcome("COT", "Continuous transport", {**close, "error_rate": 0.18}, 5.0, scores),
    ... )
    >>> floor = {"strong_pairwise_disparity": 0.04}
    >>> print(verdict(Comparison("toy", groups, np.array([0, 1]), scores, outcomes, floor, {})))
    LR (logistic regression) scores the two groups differently: pairwise disparity 0.80, 20 times the noise floor of
    0.04. COT (continuous transport) brings it to 0.04, no more than chance would show, and makes 3.0 more errors
    per 100 people.
    """
    floor = comparison.floor.get(_METRIC, 0.0)
    first = _first(comparison, floor)
    if len(comparison.outcomes) == 1:
        return first
    return f"{first} {_second(comparison, floor)}"


def _first(comparison: Comparison, floor: float) -> str:
    value = comparison.baseline.metrics[_METRIC]
    groups = f"the {count_word(len(comparison.groups))} groups"
    if floor and value < _BEYOND_CHANCE * floor:
        text = f"scores {groups} alike: pairwise disparity {value:.2f}, noise floor {floor:.2f}."
    elif floor:
        text = (
            f"scores {groups} differently: pairwise disparity {value:.2f}, {_times(value / floor)} times the noise "
            f"floor of {floor:.2f}."
        )
    else:
        text = f"scores {groups} with a pairwise disparity of {value:.2f}."
    return f"{_method(comparison.baseline)} {text}"


def _second(comparison: Comparison, floor: float) -> str:
    before, after = (round(outcome.metrics[_METRIC], 2) for outcome in (comparison.baseline, comparison.featured))
    verb = "leaves it at" if after == before else "brings it to" if after < before else "raises it to"
    relation = ""
    if floor and after <= round(floor, 2):
        relation = ", no more than chance would show,"
    elif floor:
        relation = f", {_times(comparison.featured.metrics[_METRIC] / floor)} times the floor,"
    return f"{_method(comparison.featured)} {verb} {after:.2f}{relation} and makes {_errors(comparison)}."


def _errors(comparison: Comparison) -> str:
    extra = 100 * (comparison.featured.metrics["error_rate"] - comparison.baseline.metrics["error_rate"])
    if abs(extra) < 0.05:
        return "as many errors"
    return f"{abs(extra):.1f} {'more' if extra > 0 else 'fewer'} errors per 100 people"


def _times(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 9.5 else f"{ratio:.1f}"


def _method(outcome: MethodOutcome) -> str:
    name, title = one_line(outcome.name), one_line(outcome.title)
    # Within a sentence a title starts with a small letter, unless its first word is an abbreviation.
    start = title[:1].lower() if title[1:2].islower() else title[:1]
    return f"{name} ({start}{title[1:]})" if title else name
