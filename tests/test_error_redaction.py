"""An error leaves the package as it is only if a ``raise`` statement of the package made it."""

from __future__ import annotations

import inspect
import re
import traceback

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_array

import fairtransport as ft
from fairtransport import metrics
from fairtransport._validation import check_choice, check_vector
from fairtransport._validation.error_redaction import redact_errors, redacted

CANARY = "CANARY7"


def package_function(body):
    """A function as if it stood in a module of the package."""
    namespace = {"__name__": "fairtransport.somewhere", "np": np, "check_array": check_array, "pd": pd}
    source = "def call(X, action=None):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    exec(source, namespace)  # noqa: S102 - to be told apart by the module's name
    return namespace["call"]


def raised(function, *arguments):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any
        function(*arguments)
    return caught.value


def printed(error):
    return "".join(traceback.format_exception(error))


OTHERS = {
    "compiled code": ("return float(X)", ValueError),
    "numpy": ("return np.asarray([X], dtype=float)", ValueError),
    "scikit-learn": ("return check_array(np.full((3, 3), 7.31173) * 1j)", ValueError),
    "a key": ("return {}[X]", KeyError),
    "a series": ("return pd.Series([1])[X]", KeyError),
    "bytes": ("return X.encode('utf-16').decode('ascii')", ValueError),
    "division": ("return 1 // len(X[:0])", ZeroDivisionError),
    "own words with the other's": (
        "try:\n    float(X)\nexcept ValueError as error:\n    raise ValueError(f'Not a number: {error}') from None",
        ValueError,
    ),
    "a callable of the user": ("return action()", RuntimeError),
}


@pytest.mark.parametrize("case", OTHERS)
def test_what_others_say_is_left_out(case):
    def of_the_user():
        raise OwnError(CANARY)

    body, kind = OTHERS[case]
    error = raised(redact_errors(package_function(body)), CANARY, of_the_user)
    assert type(error) is kind
    assert CANARY not in printed(error)
    assert "7.31173" not in printed(error)
    assert error.__context__ is None
    assert error.__cause__ is None


class OwnError(Exception):
    """Of a user's estimator."""


def test_our_own_words_pass_with_all_that_is_safe_behind_them():
    error = raised(redact_errors(package_function("raise ValueError('X has 3 rows.')")), CANARY)
    assert str(error) == "X has 3 rows."
    body = "try:\n    raise TypeError('first')\nexcept TypeError as error:\n    raise ValueError('second') from error"
    assert str(raised(redact_errors(package_function(body)), CANARY).__cause__) == "first"
    body = "try:\n    float(X)\nexcept ValueError:\n    raise TypeError('X must be a number.')"
    error = raised(redact_errors(package_function(body)), CANARY)
    assert (str(error), error.__context__) == ("X must be a number.", None)


def test_the_message_tells_types_and_shapes_and_the_traceback_the_place():
    error = raised(redact_errors(package_function("return X @ X")), np.full((5, 2), CANARY, dtype=object))
    assert "call: ValueError in fairtransport.somewhere" in str(error)
    assert "X: ndarray of object of shape (5, 2)" in str(error)
    assert [frame.name for frame in traceback.extract_tb(error.__traceback__)][-1] == "call"


def test_our_own_code_sees_what_was_raised():
    """A function of the package that calls another may handle the library's error by its type and text."""
    inner = redact_errors(package_function("return float(X)"))
    handled = package_function("try:\n    action(X)\nexcept ValueError as error:\n    return str(error)")
    assert CANARY in handled(CANARY, inner)


def test_twice_is_once_and_the_signature_stays():
    def call(X, *, action=None):
        """Say."""

    guarded = redact_errors(call)
    assert redact_errors(guarded) is guarded
    assert inspect.signature(guarded) == inspect.signature(call)
    assert guarded.__doc__ == "Say."


X, Y, GROUP = np.arange(24.0).reshape(12, 2), np.arange(12) % 2, np.arange(12) // 2 % 2
NAMED = pd.DataFrame(X, columns=["a", "b"])
FITTED = LogisticRegression().fit(X, Y)
KEPT = {
    "not fitted": (lambda: LogisticRegression().predict(X), NotFittedError, "instance is not fitted yet"),
    "columns": (lambda: FITTED.predict(X[:, :1]), ValueError, "X has 1 features, but LogisticRegression is"),
    "missing": (lambda: FITTED.predict(X * np.nan), ValueError, "Input X contains NaN."),
    "infinite": (lambda: FITTED.predict(X + np.inf), ValueError, "Input X contains infinity"),
    "no rows": (lambda: FITTED.predict(X[:0]), ValueError, "Found array with 0 sample(s) (shape=(0, 2))"),
    "complex": (lambda: FITTED.predict(X * 1j), ValueError, "Complex data not supported."),
    "names": (
        lambda: LogisticRegression().fit(NAMED, Y).predict(NAMED.rename(columns={"b": "c"})),
        ValueError,
        "Feature names unseen at fit time:\n- c",
    ),
    "categories": (
        lambda: OneHotEncoder().fit([["a"]]).transform([[CANARY]]),
        ValueError,
        "X has categories in column 0 that were not seen in fit.",
    ),
    "an argument": (lambda: FITTED.predict(X, who=1), TypeError, "got an unexpected keyword argument 'who'"),
}  # fmt: skip


@pytest.mark.parametrize("case", KEPT)
def test_helpful_messages_without_values_are_kept(case):
    """With the scikit-learn that is installed: a new version may word them anew."""
    action, kind, message = KEPT[case]
    error = raised(redact_errors(package_function("return action()")), X, action)
    assert type(error) is kind
    assert message in str(error)
    assert CANARY not in str(error)
    assert not re.search(r"\d\.\d", str(error))


def test_names_of_files_and_modules_are_no_values():
    assert "missing.ft" in str(raised(ft.load, "missing.ft"))
    error = ImportError("no module")
    assert redacted(error) is error


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
    with pytest.warns(UserWarning, match="min_group_size") as caught:
        ft.QuantileRepair().fit([0.1, 0.2, 0.3, 0.4], sensitive_features=[*"aabb"])
    assert caught[0].filename == __file__


def test_a_public_function_redacts():
    error = raised(lambda: metrics.error_rate([CANARY, "b"], [0.1, 0.2], threshold=[CANARY]))
    assert CANARY not in printed(error)


def test_text_columns_lazy_tables_and_forgotten_arguments_are_named():
    frame = pd.DataFrame({"age": [1.0, 2.0] * 20, "job": ["CANARY", "b"] * 20})
    model, y, sex = ft.TransportClassifier(), [0, 1] * 20, ["F", "M"] * 20
    with pytest.raises(ValueError, match=r"^X has text in column 'job'; encode it as numbers"):
        model.fit(frame, y, sensitive_features=sex)
    with pytest.raises(ValueError, match=r"^X has text; encode it as numbers"):  # one column is no table
        model.fit(frame["job"], y, sensitive_features=sex)
    with pytest.raises(ValueError, match=r"X is a lazy table; collect it first"):
        model.fit(pl.from_pandas(frame[["age"]]).lazy(), y, sensitive_features=sex)
    with pytest.raises(TypeError, match=r"^TransportClassifier\.fit\(\) missing 1 required"):
        model.fit(frame, y)
