"""Small inputs that ask for much, and large ones: refused or read, with memory under the promised limit.

A process of its own reads them one after the other, and says by how much its memory grew at most.
"""

from pathlib import Path

import pytest
from tests.processes import run_script

pytestmark = [
    pytest.mark.trust,
    pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="measures memory as Linux does"),
]

MOST_SECONDS = 240  # for all of them, on a busy machine
ACCEPTED = {"a repair of 3,000,000 knots", "weights of 2^20 columns"}


def test_inputs_that_ask_for_much(tmp_path, record_property):
    found = run_script(Path(__file__).with_name("bombs.py"), tmp_path, timeout=MOST_SECONDS)
    assert len(found) == 45
    record_property("cases", len(found))
    accepted = {name for name, (answer, _, _) in found.items() if answer == "accepted"}
    assert ACCEPTED <= accepted <= {*ACCEPTED, "NUL in a table"}, found
    assert {name: grown for name, (_, grown, most) in found.items() if grown > most} == {}
    assert not list(Path(tmp_path).parent.glob("schema.json"))
