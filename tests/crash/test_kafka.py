"""kill -9 of a stream between topics: each message is scored once, as if nothing had happened.

``python -m benchmarks kafka_kills`` has more kills.
"""

from pathlib import Path

import pytest
from tests.processes import run_script

pytestmark = pytest.mark.trust


@pytest.mark.parametrize(("kind", "n_kills"), [("topic", 25), ("file", 4)])
def test_kills_change_nothing_that_readers_of_committed_messages_see(tmp_path, kind, n_kills):
    result = run_script(Path(__file__).with_name("killed_kafka.py"), tmp_path, kind, n_kills)
    assert result["wrong"] == []
    assert result["kills"] >= n_kills
    assert result["finished"] >= 2
    assert result["rows"] == 98  # 100, less those that are not JSON
    assert kind == "file" or result["aborted"] > 0  # messages that were sent, and that no reader may see
