"""A row that cannot be read, converted or scored is set aside, whatever the error, and nothing else changes."""

import contextlib
import copy
import itertools
import json
import os
from functools import partial

import numpy as np
import pytest

import fairtransport as ft
from fairtransport.stream import ContinualAdjuster
from fairtransport.stream._scorers import scorer_for
from fairtransport.stream._state import AdjusterOptions, StreamState
from fairtransport.stream.input import LineSource, input_schema_for
from fairtransport.stream.loop import RunOptions, StreamRun
from fairtransport.tabular.rows import CallBudget, separate_failures

from .worlds import cot, features, raw_scores, repair

DOT = partial(ft.TransportClassifier, distance="discrete")


ERRORS = [OverflowError, RecursionError, UnicodeError, ZeroDivisionError, OSError, StopIteration, AssertionError]
NOT_OF_A_ROW = [KeyboardInterrupt, SystemExit, MemoryError]
POISON = 4.125  # in the first column


def lines(n=20, poison=()):
    rng = np.random.default_rng(0)
    X, sex = features(rng, n)
    X[list(poison), 0] = POISON
    return [
        f'{{"x":{x!r},"y":{y!r},"z":{z!r},"sex":"{own}"}}'.encode()
        for (x, y, z), own in zip(X.tolist(), sex, strict=True)
    ]


@pytest.mark.parametrize("n_rows", range(7))
def test_exactly_the_rows_that_fail_are_separated(n_rows):
    for n_failing in range(n_rows + 1):
        for failing in itertools.combinations(range(n_rows), n_failing):
            calls = []

            def operation(rows, failing=failing, calls=calls):
                calls.append(rows)
                if not {*failing}.isdisjoint(rows):
                    raise ValueError
                return sum(rows)

            kept, result, failures = separate_failures(range(n_rows), operation)
            assert kept == [row for row in range(n_rows) if row not in failing]
            assert result == (sum(kept) if kept else None)
            assert [row for row, _ in failures] == list(failing)
            depth = max(1, (n_rows - 1).bit_length())
            assert len(calls) <= 2 + 2 * n_failing * depth
            assert sum(map(len, calls)) <= (2 + depth) * n_rows


def test_rows_of_one_sender_do_not_use_up_the_calls_of_another():
    def operation(rows):
        if any(row % 2 for row in rows):
            raise ValueError
        return len(rows)

    parts = [(range(100), CallBudget(10)), (range(100, 104), CallBudget())]
    kept, result, failures = separate_failures(range(104), operation, parts)
    assert {100, 102} <= {*kept}
    assert len(kept) < 10
    assert result == len(kept) == 104 - len(failures)
    assert parts[0][1].calls < 0


def test_rows_that_fail_only_together_are_all_set_aside():
    def operation(rows):
        if len(rows) > 2:
            raise ValueError

    assert separate_failures(range(3), operation)[0] == []


def poisoned(function, error, has_poison):
    """Return the function, made to raise where a poisoned row is among its arguments."""

    def wrapped(*arguments, **keywords):
        if any(map(has_poison, (*arguments, *keywords.values()))):
            raise error("CANARY")
        return function(*arguments, **keywords)

    return wrapped


def contents(state):
    arrays = {name: array.tobytes() for name, array in state.arrays().items()}
    history = [*map(dict, state.history.points())]
    return state.schema(0), arrays, history, [scorer.pack() for scorer in (state.original, state.accepted)]


def batches_of(kind):
    rng = np.random.default_rng(1)
    for _ in range(3):
        if kind is ft.QuantileRepair:
            yield raw_scores(rng, 40)
        else:
            yield features(rng, 40)


METHODS = ["encode", "score", "learn", "learn_new_groups", "discount_past", "add_groups", "distance", "project"]


@pytest.mark.parametrize(
    ("kind", "adopt", "error"),
    [
        (ft.TransportClassifier, True, ValueError),
        (ft.QuantileRepair, True, ValueError),
        pytest.param(ft.TransportClassifier, False, KeyboardInterrupt, marks=pytest.mark.trust),
        pytest.param(DOT, True, ValueError, marks=pytest.mark.trust),
        pytest.param(ft.QuantileRepair, False, KeyboardInterrupt, marks=pytest.mark.trust),
    ],
)
def test_a_batch_that_fails_anywhere_leaves_the_state_as_it_was(monkeypatch, kind, adopt, error):
    policy = ft.GroupPolicy(new="adopt" if adopt else "error")
    model = repair(groups=policy) if kind is ft.QuantileRepair else cot(kind=kind, groups=policy)
    options = AdjusterOptions(
        alarm_rate=1.0,  # so that an alarm is raised, too
        quiet_updates=1, alarm_updates=2, alarm_batches=3, trust_radius=0.01, monitor_half_life=100.0,
        checkpoint_every=None, keep_checkpoints=1,
    )  # fmt: skip
    state, reached = StreamState.start(scorer_for(model), options, ""), set()
    for number, (X, sex) in enumerate(batches_of(kind)):
        groups = {"sex": np.where(np.arange(40) == 7, "new" if adopt and number == 2 else sex, sex)}
        before = contents(state)
        for method, after in itertools.product(METHODS, [False, True]):
            trial = copy.deepcopy(state)
            with monkeypatch.context() as patch, contextlib.suppress(error):
                patch_method(patch, type(trial.current), method, error, reached, after=after)
                trial.process(X, groups)
                continue  # the method is not called in this batch
            assert contents(trial) == before, method
        state.process(X, groups)
    assert {"encode", "score", "learn", "distance", "project"} <= reached
    assert not adopt or {"learn_new_groups", "add_groups"} <= reached


def patch_method(patch, scorer, method, error, reached, *, after):
    real = getattr(scorer, method)

    def failing(self, *arguments, **keywords):
        reached.add(method)
        if after:
            real(self, *arguments, **keywords)
        raise error("injected")

    patch.setattr(scorer, method, failing)


class Silent:
    def report_batch(self, report, *, lines, rejected):
        pass

    warn = report_batch


def run(folder, content, *, store=True, **options):
    """Return what a run writes: output, rejected lines, journal, and the content of the last checkpoint."""
    folder.mkdir()
    (folder / "rows.jsonl").write_bytes(b"\n".join(content) + b"\n")
    model = cot(**options)
    schema = input_schema_for(model, sensitive=["sex"], features=["x", "y", "z"])
    handle = os.open(folder / "rows.jsonl", os.O_RDONLY)
    written = RunOptions(batch=20, out=folder / "out", rejected=folder / "rejected", max_rejected=1.0)
    with ContinualAdjuster(model, store=folder / "store" if store else None, checkpoint_every=None) as adjuster:
        StreamRun(adjuster, schema, LineSource(handle), written, Silent()).run()
    os.close(handle)
    checkpoints = sorted((folder / "store").glob("checkpoint-*"))
    return {path.name: path.read_bytes() for path in (folder / "out", folder / "store" / "journal.jsonl", *checkpoints)}


def is_poisoned_matrix(value):
    return isinstance(value, np.ndarray) and value.ndim == 2 and (value[:, 0] == POISON).any()


@pytest.mark.parametrize("method", ["score", "learn"])
@pytest.mark.parametrize(
    "error",
    [ERRORS[0], *(pytest.param(error, marks=pytest.mark.trust) for error in ERRORS[1:] if error is not OSError)],
)
def test_any_error_while_scoring_a_line(tmp_path, monkeypatch, method, error):
    """All that a run writes is what it would write if these lines had not been JSON."""
    poison = [3, 4, 27, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 65]
    content = lines(70, poison=poison)
    invalid = [b"CANARY" if index in poison else line for index, line in enumerate(content)]
    scorer = type(scorer_for(cot()))
    monkeypatch.setattr(scorer, method, poisoned(getattr(scorer, method), error, is_poisoned_matrix))
    written = run(tmp_path / "poison", content)
    reasons = [json.loads(line) for line in (tmp_path / "poison" / "rejected").read_text().splitlines()]
    assert [entry["line"] for entry in reasons] == [row + 1 for row in poison]
    assert all(entry["reason"].startswith("cannot be scored (") for entry in reasons)
    expected = run(tmp_path / "invalid", invalid)
    assert written["out"] == expected["out"]
    assert written["journal.jsonl"] == expected["journal.jsonl"]
    assert len(written) == len(expected)


@pytest.mark.parametrize("error", NOT_OF_A_ROW)
def test_an_interrupt_and_a_full_memory_end_the_run(tmp_path, monkeypatch, error):
    scorer = type(scorer_for(cot()))
    monkeypatch.setattr(scorer, "score", poisoned(scorer.score, error, is_poisoned_matrix))
    with pytest.raises(error):
        run(tmp_path / "run", lines(20, poison=[3]))


def test_a_score_that_is_no_finite_number_is_rejected(tmp_path, monkeypatch):
    scorer = type(scorer_for(cot()))
    real = scorer._score
    monkeypatch.setattr(scorer, "_score", lambda self, X, groups: real(self, X, groups) / (X[:, 0] != POISON))
    with np.errstate(divide="ignore", invalid="ignore"):
        written = run(tmp_path / "run", lines(20, poison=[3, 7]))
    scores = [json.loads(line)["score"] for line in written["out"].splitlines()]
    assert len(scores) == 18
    assert all(0.0 < score < 1.0 for score in scores)
