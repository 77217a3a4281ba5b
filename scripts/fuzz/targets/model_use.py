"""Model files with correct checksums and any content, loaded and then used.

A case is a list of changes to the file of a fitted model: any value of its JSON, any array. What is loaded must
predict, transform and be saved again, or raise ValueError or TypeError. Its scores are numbers between 0 and 1, one for
each row. It opens no file to write, starts no process and unpickles nothing.
"""

from __future__ import annotations

import copy
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from changes import Source, change_array, change_json
from sklearn.linear_model import LogisticRegression

from fairtransport import BlindRepairClassifier, QuantileRepair, TransportClassifier
from fairtransport.auditing import Inference, audit
from fairtransport.persistence import ModelFileError, pack_model, unpack_model
from fairtransport.persistence._files import _model_of
from fairtransport.storage import unpack_container
from fairtransport.tabular import TableModel

sys.path.append(str(Path(__file__).parents[3]))
from tests.persistence.models import fitted, people, table

SHARE = 6
REFUSALS = (ModelFileError, ValueError, TypeError)

_NAMES = (
    *("COT", "COT of each group", "repair", "repair of a table", "repair of a pipeline"),
    *("raw table to COT", "pipeline to COT"),
)
_ROWS = 40
_X, _Y, _GROUP = people()
_STRATA = np.where(_X[:, 1] > 0, "high", "low")


def _with_criteria() -> list[tuple[Any, Any, Any]]:
    """Return models with a criterion, strata or randomness, their rows and groups."""
    scores, columns = 1 / (1 + np.exp(-_X[:, 0])), {"sensitive_features": _GROUP}
    odds = QuantileRepair(criterion="equalized_odds", randomize=True).fit(scores, _Y == "yes", **columns)
    strata = QuantileRepair().fit(scores, **columns, strata=_STRATA)
    linear = TransportClassifier(criterion="equalized_odds").fit(_X, _Y, **columns, strata=_STRATA)
    blind = BlindRepairClassifier(LogisticRegression(), cv=2).fit(_X, _Y, **columns)
    return [(odds, scores, _GROUP), (strata, scores, _GROUP), (linear, _X, _GROUP), (blind, _X, _GROUP)]


_BASES = [
    (unpack_container(pack_model(model)[0]), X[:_ROWS], group[:_ROWS])
    for model, X, group in (*map(fitted, _NAMES), *_with_criteria())
]
_LABELS = table()[1][:_ROWS]
_DRAWS = np.random.default_rng(0)


def seeds() -> list[bytes]:
    """Return a case for each model without a change, with each kind of change, and with changes at random."""
    unchanged = [bytes([number, 0]) for number in range(len(_BASES))]
    changed = [
        bytes([number, 1, 5 * kind, kind, kind, 3 * kind, kind]) for number in range(len(_BASES)) for kind in range(12)
    ]
    drawn = [bytes([number % len(_BASES), 1 + number % 3]) + _DRAWS.bytes(40) for number in range(60)]
    return [*unchanged, *changed, *drawn, b'\0\1\0\5\x0b{"$": "tuple", "items": [1, "CANARY7"]}']


def case(data: bytes) -> None:
    """Apply the changes to the file of a model, load it and use it."""
    with warnings.catch_warnings(action="ignore"), _GUARD:
        _load_and_use(data)


def _load_and_use(data: bytes) -> None:
    source = Source(data)
    container, X, group = _BASES[source.byte() % len(_BASES)]
    schema, arrays = copy.deepcopy(container.schema), dict(container.arrays)
    for _ in range(source.byte() % 4):
        if source.byte() % 3 == 0:
            change_array(arrays, source)
        else:
            change_json(schema["model"], source)
    read = {name: np.array(array, order="C") for name, array in arrays.items()}
    model = _model_of(replace(container, schema=schema, arrays=read))  # as if read with correct checksums
    _use(model, X, group, also=source.byte() % 8)


def _use(model: Any, X: Any, group: Any, *, also: int) -> None:
    """Call what a user would call; ``also`` selects what takes longer."""
    if also == 1:
        unpack_model(pack_model(model)[0])
    if isinstance(model, TableModel):
        result = model.score_rows(X)
        _check_scores(np.where(np.isin(np.arange(_ROWS), [*result.reasons]), 0.5, result.scores))
    elif isinstance(model, QuantileRepair):
        strata = {"strata": _STRATA[:_ROWS]} if getattr(model, "strata_", None) is not None else {}
        _check_scores(model.transform(X, sensitive_features=group, **strata))
        if also == 2 and not strata and not model.randomize:
            model.partial_fit(X, sensitive_features=group)
    elif hasattr(model, "predict_proba"):
        _use_classifier(model, X, group, also=also)
    elif hasattr(model, "transform"):
        model.transform(X)
        model.get_feature_names_out()


def _use_classifier(model: Any, X: Any, group: Any, *, also: int) -> None:
    grouped = {"sensitive_features": group} if _needs_groups(model) else {}
    probabilities = model.predict_proba(X, **grouped)
    if np.size(getattr(model, "classes_", (0, 1))) == 2:
        _check_scores(probabilities[:, 1])
        if also == 3:
            audit(probabilities[:, 1], sensitive_features=group, inference=Inference(n_bootstrap=20, n_permutations=20))
    if hasattr(model, "duals_"):
        model.duals_.of_group(model.groups_.labels[0], np.linspace(0.0, 1.0, 5))
    if also == 2 and hasattr(model, "partial_fit") and getattr(model, "strata_", None) is None:
        model.partial_fit(X, _LABELS, sensitive_features=group)
    if also == 4:
        model.predict(X, **grouped)


def _needs_groups(model: Any) -> bool:
    return type(model).__name__ == "QuantileRepairClassifier" or getattr(model, "group_specific", False) is True


def _check_scores(scores: Any) -> None:
    known = np.asarray(scores)
    if len(known) != _ROWS or not ((known >= -1e-12) & (known <= 1.0 + 1e-12)).all():
        raise RuntimeError("A loaded model gives scores that are none.")


class _Guard:
    """Raises if a file is opened to be written, a process is started or a pickle is read."""

    _EVENTS = frozenset(
        {
            *("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect"),
            *("os.mkdir", "os.rename", "os.remove", "os.symlink", "os.link", "os.chmod", "pickle.find_class"),
        }
    )

    def __init__(self) -> None:
        self._is_on = False
        sys.addaudithook(self._see)

    def _see(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._is_on:
            return
        to_write = event == "open" and isinstance(args[2], int) and args[2] & 3
        if to_write or event in self._EVENTS:
            self._is_on = False
            raise RuntimeError(f"A model file caused {event}.")

    def __enter__(self) -> None:
        self._is_on = True

    def __exit__(self, *_: object) -> None:
        self._is_on = False


_GUARD = _Guard()
with warnings.catch_warnings(action="ignore"):  # what is compiled, cached and imported at the first use
    for _seed in range(len(_BASES)):
        for _also in range(5):
            _load_and_use(bytes([_seed, 0, _also]))
