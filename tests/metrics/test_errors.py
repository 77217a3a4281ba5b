"""error_rate: two labels of any kind, strictly above the threshold, weights, and what it refuses."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import zero_one_loss

import fairtransport as ft
from fairtransport.metrics import error_rate, opportunity_disparity

CANARY = 0.123454321


def test_a_score_at_the_threshold_is_not_above_it():
    # The paper decides positively for s > tau.
    assert error_rate([0], [0.5]) == 0.0
    assert error_rate([1], [0.5]) == 1.0
    assert error_rate([1], [np.nextafter(0.5, 1)]) == 0.0
    assert error_rate([0, 1], [0.0, 1.0], 0.0) == 0.0
    assert error_rate([0, 0], [0.5, 1.0], 1.0) == 0.0


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.77])
def test_it_is_sklearns_zero_one_loss(threshold):
    rng = np.random.default_rng(0)
    y, scores, weights = rng.integers(0, 2, 300), rng.random(300), rng.random(300)
    expected = zero_one_loss(y, scores > threshold, sample_weight=weights)
    assert error_rate(y, scores, threshold, sample_weight=weights) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize(
    "labels",
    [
        [False, True, True],
        [0.0, 1.0, 1.0],
        [-1, 1, 1],
        ["no", "yes", "yes"],
        ["0", "1", "1"],
        np.array(["FALSE", "True", "True"], dtype=object),
        np.array([0, 1, 1], dtype=object),
        pd.Series(["no", "yes", "yes"], dtype="category"),
        pd.Series([0, 1, 1], dtype="Int64", index=[5, 6, 7]),
        pl.Series(["no", "yes", "yes"]),
        [[0], [1], [1]],
    ],
    ids=lambda labels: f"{type(labels).__name__}-{np.asarray(labels).dtype}-{np.asarray(labels).ravel()[1]}",
)
def test_labels_that_say_which_is_positive(labels):
    assert error_rate(labels, [0.2, 0.9, 0.1]) == pytest.approx(1 / 3)
    assert error_rate(labels, [0.2, 0.9, 0.8]) == 0.0


@pytest.mark.parametrize("labels", [["ja", "nein"], ["approved", "denied"], ["<=50K", ">50K"], [1, 2], ["bad", "good"]])
def test_other_labels_need_pos_label_everywhere(labels):
    y, group = np.resize(labels, 8), list("aabbaabb")
    scores = np.linspace(0.1, 0.9, 8)
    table = pd.DataFrame({"s": scores, "g": group, "y": y})
    calls = [
        lambda **pos: error_rate(y, scores, **pos),
        lambda **pos: ft.audit(scores, y, sensitive_features=group, **pos),
        lambda **pos: ft.audit_table(table, score="s", sensitive_features="g", label="y", **pos),
        lambda **pos: opportunity_disparity(y, scores, sensitive_features=group, **pos),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"two labels other than 0 and 1.*specify which of them is positive"):
            call()
        call(pos_label=labels[0])


def test_pos_label_turns_the_classes():
    assert error_rate(["bad", "good"], [0.1, 0.9], pos_label="good") == 0.0
    assert error_rate(["bad", "good"], [0.1, 0.9], pos_label="bad") == 1.0
    assert error_rate([0, 1], [0.1, 0.9], pos_label=0) == 1.0


def test_one_class_is_enough_where_its_meaning_is_known():
    assert error_rate([0, 0], [0.1, 0.9]) == 0.5
    assert error_rate([1, 1], [0.1, 0.2]) == 1.0
    assert error_rate([True, True], [0.9, 0.9]) == 0.0
    assert error_rate([False], [0.9]) == 1.0
    assert error_rate(["yes", "yes"], [0.9, 0.1], pos_label="yes") == 0.5
    assert error_rate(["no", "no"], [0.9, 0.1], pos_label="yes") == 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: error_rate([0, 1, 2], [CANARY] * 3), "y_true has 3 different labels; two are needed"),
        (lambda: error_rate(["secret", "secret"], [CANARY] * 2), "y_true has one label only, neither 0 nor 1; specify"),
        (lambda: error_rate([2], [CANARY]), "y_true has one label only"),
        (
            lambda: error_rate(["a", "secret"], [CANARY] * 2, pos_label="c"),
            "two labels, and pos_label is neither of them",
        ),
        (lambda: error_rate([0, 1], [CANARY]), "y_true has 2 rows, but scores has 1"),
        (lambda: error_rate([], [CANARY]), "y_true has 0 rows, but scores has 1"),
        (lambda: error_rate([], []), "scores is empty"),
        (lambda: error_rate([[0, 1]], [CANARY]), "y_true must have one dimension; it has shape (1, 2)"),
        (lambda: error_rate([0, np.nan], [CANARY] * 2), "y_true has 1 missing labels"),
        (lambda: error_rate(["a", None], [CANARY] * 2), "y_true has 1 missing labels"),
        (lambda: error_rate([pd.NA, pd.NaT, 1], [CANARY] * 3), "y_true has 2 missing labels"),
        (lambda: error_rate(np.array(["secret", 1], object), [CANARY] * 2), "y_true mixes labels"),
        (lambda: error_rate([0, 1], [CANARY, 1.5]), "scores has 1 of 2 values outside [0, 1]"),
        (lambda: error_rate([0, 1], [CANARY, np.nan]), "scores has 1 NaN or infinite values"),
        (lambda: error_rate([0, 1], [CANARY, 1], 2.0), "threshold must be a finite number at least 0 and at"),
        (lambda: error_rate([0, 1], [CANARY, 1], np.nan), "threshold must be a finite number"),
        (lambda: error_rate([0, 1], [CANARY, 1], "half"), "threshold must be a number"),
        (lambda: error_rate([0], [CANARY], sample_weight=[1, 1]), "sample_weight has 2 rows"),
        (lambda: error_rate([0], [CANARY], sample_weight=[-1]), "sample_weight has 1 negative values"),
        (lambda: error_rate([0], [CANARY], sample_weight=[0]), "sample_weight sums to zero"),
    ],
)
def test_errors_say_what_is_wrong_and_show_no_value(call, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)) as caught:
        call()
    assert str(CANARY) not in str(caught.value)
    assert "secret" not in str(caught.value)
