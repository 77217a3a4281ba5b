"""Arguments are checked without quoting them, and errors are described without the values that libraries quote."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport import metrics
from fairtransport._validation import check_choice, check_vector, describe_error
from fairtransport.auditing import Inference

CANARY = "CANARY7"


def raised(function, *arguments):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any
        function(*arguments)
    return caught.value


class Unreadable:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError(CANARY)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: float(CANARY), "ValueError"),
        (lambda: ft.make_groups(Unreadable()), "RuntimeError"),
        (lambda: pd.Series([1])[CANARY], "KeyError"),
    ],
)
def test_messages_of_other_libraries_are_left_out(call, name):
    text = describe_error(raised(call))
    assert text.startswith(name)
    assert "its message is left out" in text
    assert CANARY not in text


def test_our_own_messages_and_names_of_files_are_kept():
    assert describe_error(raised(ft.make_groups, [])).startswith("sensitive_features")
    assert describe_error(raised(ft.load, "missing.ft")) == "No such file or directory: missing.ft"
    assert describe_error(ImportError("no module")) == "no module"


def spoilt(column, value):
    """The columns of twelve people, of which one has a canary."""
    columns = {"X": np.arange(24.0).reshape(12, 2), "y": np.arange(12) % 2, "s": np.linspace(0.1, 0.9, 12)}
    columns |= {"g": np.repeat(["a", "b"], 6), "w": np.ones(12)}
    columns[column] = columns[column].astype(object if isinstance(value, str) or column == "g" else float)
    columns[column].flat[5] = value
    return columns


@pytest.mark.parametrize("value", [CANARY, 7.3117311, -7.3117311e300])
@pytest.mark.parametrize("column", [*"Xysgw"])
@pytest.mark.filterwarnings("always")
def test_our_own_messages_quote_no_value(column, value, recwarn):
    d = spoilt(column, value)
    rest = {"sensitive_features": d["g"], "sample_weight": d["w"]}
    quick = {"inference": Inference(n_bootstrap=20, n_permutations=20)}
    named = {"score": "s", "sensitive_features": "g", "label": "y", "weight": "w"}
    frame = pd.DataFrame({name: d[name] for name in "sgyw"})
    texts = []
    for call in (
        lambda: ft.make_groups(d["g"], groups=ft.GroupPolicy(missing="error")).index_of(f"{CANARY}?"),
        lambda: ft.audit(d["s"], d["y"], **rest, **quick),
        lambda: ft.audit_table(frame, **named, **quick),
        lambda: metrics.strong_pairwise_disparity(d["s"], **rest),
        lambda: metrics.wasserstein_disparity(d["s"], **rest, target=CANARY),
        lambda: ft.QuantileRepair().fit(d["s"], **rest),
        lambda: ft.QuantileRepairClassifier(LogisticRegression()).fit(d["X"], d["y"], **rest),
        lambda: ft.TransportClassifier(parity_weight=1.0).fit(d["X"], d["y"], **rest),
    ):
        try:
            call()
        except Exception as error:  # noqa: BLE001 - whatever it is, its text is looked at
            texts.append(describe_error(error))
    assert texts
    texts += [str(warning.message) for warning in recwarn if warning.category.__module__.startswith("fairtransport")]
    assert not [text for text in texts if CANARY in text or "73117" in text or "7.3" in text]


def test_python_callers_get_the_error_of_the_library():
    error = raised(lambda: ft.make_groups(Unreadable()))
    assert (type(error), str(error)) == (RuntimeError, CANARY)


def test_metrics_can_be_pickled():
    for name in metrics.__all__:
        assert pickle.loads(pickle.dumps(getattr(metrics, name))) is getattr(metrics, name)  # noqa: S301 - our own


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (np.array([0.5 + 0j]), "complex numbers"),
        (np.array(["2026-01-01"], dtype="M8[D]"), "dates"),
        (np.array([5], dtype="m8[s]"), "durations"),
        (np.ma.array([0.1, 0.2], mask=[True, False]), "1 masked"),
        ([10**400], "could not be read"),
        (pd.Series(["2026-01-01"], dtype="datetime64[ns]"), "dates"),
    ],
)
def test_what_numpy_would_turn_into_other_numbers_is_refused(values, told):
    with pytest.raises((TypeError, ValueError), match=told):
        check_vector(values, name="scores")


@pytest.mark.parametrize("values", [[0.5], np.ma.array([0.5]), pd.Series([0.5]), pl.Series([0.5]), [np.float32(0.5)]])
def test_numbers_of_any_library_are_taken(values):
    assert check_vector(values, name="scores").tolist() == [0.5]


def test_data_in_the_place_of_an_option_is_not_shown():
    with pytest.raises(ValueError, match="got list"):
        check_choice([CANARY], ("a", "b"), name="option")
    with pytest.raises(ValueError, match="got 'c'"):
        check_choice("c", ("a", "b"), name="option")


def test_a_warning_names_the_line_of_the_call():
    with pytest.warns(UserWarning, match="min_size") as caught:
        ft.QuantileRepair().fit([0.1, 0.2, 0.3, 0.4], sensitive_features=[*"aabb"])
    assert caught[0].filename == __file__
