from __future__ import annotations

import numpy as np
import pytest

from fairtransport import make_groups
from fairtransport.report import METRICS, Comparison, MethodOutcome, verdict


def sentences(*figures, floor=0.0368):
    """The verdict about methods with these pairs of error and pairwise disparity."""
    names = [("LR", "Logistic regression, no parity"), ("COT", "Continuous transport")][: len(figures)]
    outcomes = tuple(
        MethodOutcome(
            name,
            title,
            {**dict.fromkeys(METRICS, 0.5), "error_rate": error, "strong_pairwise_disparity": disparity},
            1.0,
            np.array([0.1, 0.2, 0.3, 0.4]),
        )
        for (name, title), (error, disparity) in zip(names, figures, strict=True)
    )
    groups = make_groups(list("abcd"))
    floors = {"strong_pairwise_disparity": floor} if floor else {}
    return verdict(Comparison("toy", groups, np.zeros(4), np.array([0.2]), outcomes, floors, {}))


def test_whole_sentence_by_hand():
    # 0.81 / 0.0368 = 22.0; 100 * (0.179 - 0.150) = 2.9
    assert sentences((0.150, 0.81), (0.179, 0.05)) == (
        "LR (logistic regression, no parity) scores the four groups differently: pairwise disparity 0.81, 22 times the "
        "noise floor of 0.04. COT (continuous transport) brings it to 0.05, 1.4 times the floor, and makes 2.9 more "
        "errors per 100 people."
    )


@pytest.mark.parametrize(
    ("figures", "part"),
    [
        (((0.15, 0.06),), "scores the four groups alike: pairwise disparity 0.06, noise floor 0.04."),
        (((0.15, 0.8), (0.18, 0.03)), "brings it to 0.03, no more than chance would show, and"),
        (((0.15, 0.8), (0.15, 0.9)), "raises it to 0.90, 24 times the floor, and makes as many errors."),
        (((0.15, 9.5), (0.14, 10.5)), "raises it to 10.50"),
        (((0.15, 0.8), (0.14, 0.8)), "leaves it at 0.80, 22 times the floor, and makes 1.0 fewer errors per 100"),
    ],
)
def test_other_cases(figures, part):
    assert part in sentences(*figures)


def test_names_are_cleaned(hostile):
    assert verdict(hostile).isprintable()
