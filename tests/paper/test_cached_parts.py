import os
import signal
import threading
import time

import numpy as np
import pytest

from fairtransport.paper.finding import Part, run_parts


def counted(name, calls, *, value=1.0, settings=None):
    def compute(stop):
        calls.append(name)
        return {"value": np.array([value])}

    return Part(name, settings or {"value": value}, compute)


def test_results_come_in_order_whatever_the_number_of_jobs():
    for jobs in (1, 3):
        calls = []
        parts = [counted(f"p{i}", calls, value=float(i)) for i in range(7)]
        results = run_parts(parts, n_jobs=jobs)
        assert list(results) == [p.name for p in parts]
        assert [r["value"][0] for r in results.values()] == list(range(7))


def test_finished_parts_are_not_repeated(tmp_path):
    calls = []
    parts = [counted("a", calls), counted("b", calls)]
    run_parts(parts[:1], folder=tmp_path)
    results = run_parts(parts, folder=tmp_path)
    assert calls == ["a", "b"]
    assert set(results) == {"a", "b"}


def test_changed_settings_are_computed_anew(tmp_path):
    calls = []
    run_parts([counted("a", calls, value=1.0)], folder=tmp_path)
    results = run_parts([counted("a", calls, value=2.0)], folder=tmp_path)
    assert calls == ["a", "a"]
    assert results["a"]["value"][0] == 2.0


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 cut", b"nonsense"])
def test_damaged_parts_are_computed_again(tmp_path, damage):
    calls = []
    part = counted("a", calls)
    run_parts([part], folder=tmp_path)
    part.path(tmp_path).write_bytes(damage)
    assert run_parts([part], folder=tmp_path)["a"]["value"][0] == 1.0
    assert calls == ["a", "a"]


def test_an_error_in_a_part_reaches_the_caller_and_keeps_the_others(tmp_path):
    calls = []

    def fail(stop):
        raise RuntimeError("part failed")

    parts = [counted("a", calls), Part("bad", {}, fail, cost=0.5)]
    with pytest.raises(RuntimeError, match="part failed"):
        run_parts(parts, folder=tmp_path)
    run_parts(parts[:1], folder=tmp_path)
    assert calls == ["a"]
    assert not list(tmp_path.glob(".*"))


def test_ctrl_c_stops_running_parts_and_keeps_finished_ones(tmp_path):
    calls = []

    def endless(stop):
        for _ in range(3000):
            stop.check()
            time.sleep(0.01)
        return {}

    quick, slow = counted("quick", calls), Part("slow", {}, endless, cost=0.1)
    timer = threading.Timer(0.6, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_parts([quick, slow], folder=tmp_path)
    timer.join()
    assert time.monotonic() - began < 15
    assert run_parts([quick], folder=tmp_path)
    assert calls == ["quick"]


def test_progress_is_shown(capsys):
    run_parts([counted("a", []), counted("b", [])], title="figures", show=True)
    assert "figures: 100% 2/2 parts" in capsys.readouterr().err
