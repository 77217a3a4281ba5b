"""The readers under `make fuzz`, with hypothesis: seeds that are cut, mixed and overwritten, and bytes of any kind."""

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts" / "fuzz"))
import targets

EXAMPLES = {"model_use": 60, "table_file": 40, "trees": 400}  # a model is used, a query started, trees read for each
every = pytest.mark.parametrize("name", targets.target_names())


@every
def test_seeds_are_worth_something(name):
    """Some are accepted and some refused, so that mutations begin on both sides."""
    target = targets.load_target(name)
    accepted = [targets.attempt(target, seed) for seed in target.seeds()]
    assert any(accepted)
    assert not all(accepted)
    assert target.SHARE > 0


def _mutations(seeds):
    def change(draw):
        data = bytearray(draw(st.sampled_from(seeds)))
        for _ in range(draw(st.integers(1, 4))):
            at = draw(st.integers(0, len(data)))
            piece = draw(
                st.binary(max_size=6) | st.sampled_from([b"\0", b"..", b"/", b"\n", b'"', b"[" * 200, b"1e999"])
            )
            data[at : at + draw(st.sampled_from([0, len(piece), 40]))] = piece
        return bytes(data)

    return st.composite(change)()


@every
def test_no_crash_but_our_own_errors(name):
    target = targets.load_target(name)

    @settings(max_examples=EXAMPLES.get(name, 200), suppress_health_check=[HealthCheck.too_slow])
    @given(_mutations(target.seeds()) | st.binary(max_size=200))
    def check(data):
        targets.attempt(target, data)

    check()


class _Loose:
    """A reader that does what readers must not do."""

    REFUSALS = (ValueError,)

    @staticmethod
    def case(data):
        if data == b"tells":
            raise ValueError(f"cannot read {targets.CANARY}")
        if data == b"crash":
            raise IndexError("oh")


@pytest.mark.parametrize(("data", "error"), [(b"tells", AssertionError), (b"crash", IndexError)])
def test_findings_are_found(data, error, monkeypatch):
    monkeypatch.setattr(targets, "describe_error", str)  # as if the error was raised in the package
    assert targets.attempt(_Loose, b"fine")
    with pytest.raises(error):
        targets.attempt(_Loose, data)
