"""Kills in the middle of a save, of a stream of files or topics, and of a server that adjusts its model."""

from pathlib import Path

import pytest
from tests.processes import run_script

pytestmark = pytest.mark.trust

KILLS = 200


def test_200_kills_leave_the_old_file_or_the_new_one(tmp_path, record_property):
    record_property("cases", KILLS)
    result = run_script(Path(__file__).with_name("killed_saves.py"), tmp_path / "model.ft", KILLS)
    assert sum(result["seen"]) == KILLS
    assert min(result["seen"]) > 10  # both files won often: the kills were real
    assert result["in_the_middle"] > 5  # and some fell between the first byte and the rename
    assert result["works"]
    assert [path.name for path in tmp_path.iterdir()] == ["model.ft"]


def result_of(tmp_path, kind, n_kills):
    result = run_script(Path(__file__).with_name("killed_streams.py"), tmp_path, kind, n_kills)
    assert result["wrong"] == []
    assert result["kills"] >= n_kills
    return result


@pytest.mark.parametrize("kind", ["COT", "repair"])
def test_200_kills_change_no_byte_of_output_journal_and_model(tmp_path, kind, record_property):
    result = result_of(tmp_path, kind, KILLS)
    record_property("cases", result["kills"])
    assert result["finished"] >= 5  # every one of them equal to the run that was not killed
    # Some kills came between the first byte of a checkpoint and its name. How many depends on the machine; a kill at
    # every single write is tested without chance in test_stream_protocol.py.
    assert result["inside"] >= 1
    assert result["lines"] == 396  # 400, less those that are not JSON


@pytest.mark.parametrize(("kind", "n_kills"), [("topic", 25), ("file", 4)])
def test_kills_change_nothing_that_readers_of_committed_messages_see(tmp_path, kind, n_kills, record_property):
    result = run_script(Path(__file__).with_name("killed_kafka.py"), tmp_path, kind, n_kills)
    assert result["wrong"] == []
    assert result["kills"] >= n_kills
    record_property("cases", result["kills"])
    assert result["finished"] >= 2
    assert result["rows"] == 98  # 100, less those that are not JSON
    assert kind == "file" or result["aborted"] > 0  # messages that were sent, and that no reader may see


def test_200_kills_of_a_server_change_no_score_and_no_byte_of_the_state(tmp_path, record_property):
    result = run_script(Path(__file__).parents[1] / "serving" / "killed_servers.py", tmp_path, KILLS, timeout=1200)
    record_property("cases", result["kills"])
    assert result["wrong"] == []
    assert result["kills"] >= KILLS * 0.9  # all, unless every request is answered before
    assert result["rows"] == result["expected"]
    assert result["repeated"] > 10  # how many met a server that was being killed or started depends on the machine
