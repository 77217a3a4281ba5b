"""Checkpoints of a stream with correct checksums and any content, restored; then a batch is processed."""

from __future__ import annotations

import copy
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from changes import Source, change_array, change_json

from fairtransport.persistence import unpack_model
from fairtransport.storage import pack_container, unpack_container
from fairtransport.stream._scorers import scorer_for
from fairtransport.stream._state import AdjusterOptions, StreamState

sys.path.append(str(Path(__file__).parents[3]))
from tests.persistence.models import fitted

SHARE = 2
REFUSALS = (KeyError, TypeError, ValueError)  # those that the store turns into its own

_ROWS = 40
_OPTIONS = AdjusterOptions(1e-3, 1, 2, 3, 1.0, 1000.0, 10, 5)
_DRAWS = np.random.default_rng(0)


def _checkpoint(name: str) -> tuple:
    model, X, group = fitted(name)
    scorer = scorer_for(model)
    content = scorer.pack()
    state = StreamState.start(type(scorer).unpack(content), _OPTIONS, "run")
    for start in range(0, 120, _ROWS):
        state.process(X[start : start + _ROWS], group[start : start + _ROWS])
    container = unpack_container(pack_container("checkpoint", state.schema(3), state.arrays()))
    return container, content, X[:_ROWS], group[:_ROWS]


with warnings.catch_warnings(action="ignore"):
    _BASES = [_checkpoint(name) for name in ("COT", "COT of each group", "repair")]


def seeds() -> list[bytes]:
    """Return a case for each model without a change, and with changes at random."""
    drawn = [bytes([number, 1 + number % 3]) + _DRAWS.bytes(30) for number in range(60)]
    return [*(bytes([number, 0]) for number in range(len(_BASES))), *drawn, b'\0\1\1\0\0\5{"title": "x"}']


def case(data: bytes) -> None:
    """Apply the changes, restore the state of the stream and process a batch."""
    source = Source(data)
    container, content, X, group = _BASES[source.byte() % len(_BASES)]
    schema, arrays = copy.deepcopy(container.schema), dict(container.arrays)
    for _ in range(source.byte() % 4):
        if source.byte() % 2:
            change_json(schema, source)
        else:
            change_array(arrays, source)
    read = {name: np.array(array, order="C") for name, array in arrays.items()}
    with warnings.catch_warnings(action="ignore"):
        start = type(scorer_for(unpack_model(content))).unpack(content)
        state = StreamState.from_checkpoint(replace(container, schema=schema, arrays=read), start)
        if max(state.options.quiet_updates, state.options.alarm_updates) > 100:  # would only take long
            return
        scores = state.process(X, group).scores
    if len(scores) != _ROWS or not ((scores >= -1e-12) & (scores <= 1.0 + 1e-12)).all():
        raise RuntimeError("A restored stream gives scores that are none.")
