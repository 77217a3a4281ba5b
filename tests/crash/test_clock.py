"""A clock that jumps, to and fro: no file is lost, and no model changes."""

import itertools
import os
import time

import numpy as np
import pytest
from tests.worlds import people

import fairtransport as ft
from fairtransport.linear import SgdSettings
from fairtransport.storage import write_atomically

DAY = 86_400.0
CLOCKS = ("time", "monotonic", "perf_counter")


@pytest.fixture
def jumping(monkeypatch):
    """Every look at any clock shows another day."""
    jumps = itertools.cycle([0.0, -DAY, 2 * DAY, -5 * DAY, 0.5])
    for name in CLOCKS:
        real = getattr(time, name)
        monkeypatch.setattr(time, name, lambda real=real: real() + next(jumps))


MODELS = [
    ft.TransportClassifier(),
    ft.TransportClassifier(solver=SgdSettings(n_updates=700, random_state=0)),
    ft.TransportClassifier(distance="discrete"),
]


@pytest.mark.filterwarnings("ignore::fairtransport.FairnessWarning")
@pytest.mark.parametrize("number", range(len(MODELS)))
def test_no_model_depends_on_the_clock(number, jumping, monkeypatch):
    X, y, group = people(400)
    model = MODELS[number].fit(X, y, sensitive_features=group)
    found = model.coef_.copy()
    monkeypatch.undo()
    np.testing.assert_array_equal(model.fit(X, y, sensitive_features=group).coef_, found)


def test_files_from_the_future_and_the_past(tmp_path):
    """The file that is replaced, and leftovers, may have any time."""
    path = tmp_path / "model.ft"
    write_atomically(path, b"old")
    leftover = tmp_path / ".model.ft.123.part"
    for when in (0.0, time.time() + 1000 * DAY):
        leftover.write_bytes(b"")
        for one in (path, leftover):
            os.utime(one, (when, when))
        write_atomically(path, b"new")
        assert path.read_bytes() == b"new"
        assert leftover.exists() == (when > 0)  # what is from the future may be somebody's at work


def test_a_writer_whose_file_is_taken_for_a_leftover_writes_again(tmp_path, monkeypatch):
    """Between its last byte and its renaming, another process, whose clock is a day ahead, cleans up."""
    path, real, leaps = tmp_path / "model.ft", os.fsync, [DAY]

    def clean_up(handle):
        real(handle)
        if leaps:
            ahead = leaps.pop()
            monkeypatch.setattr(time, "time", lambda now=time.time: now() + ahead)
            write_atomically(path, b"other")

    write_atomically(path, b"old")
    monkeypatch.setattr("os.fsync", clean_up)
    write_atomically(path, b"mine")
    assert path.read_bytes() == b"mine"
    assert [one.name for one in tmp_path.iterdir()] == ["model.ft"]


def test_a_writer_that_is_always_cleaned_up_says_so(tmp_path, monkeypatch):
    path, real = tmp_path / "model.ft", os.fsync

    def clean_up(handle):
        real(handle)
        for part in tmp_path.glob(".*.part"):
            part.unlink()

    write_atomically(path, b"old")
    monkeypatch.setattr("os.fsync", clean_up)
    with pytest.raises(FileNotFoundError, match="removed twice; the existing file is unchanged"):
        write_atomically(path, b"mine")
    assert path.read_bytes() == b"old"
