"""Names of groups, typed or read from files: grouped, encoded, stored and read again."""

from __future__ import annotations

import json

from fairtransport import GroupPolicy
from fairtransport.groups import Groups, make_groups
from fairtransport.storage import ModelFileError
from fairtransport.storage.schema import from_json

SHARE = 2
REFUSALS = (ValueError, TypeError)  # ModelFileError is a ValueError


def seeds() -> list[bytes]:
    """Return columns of text, tables and specs."""
    lists = [["a", "b", "CANARY7"], [1, 1.0, True, None], ["", "\0", "\u202e"], [["B", "F"], ["W", "M"]], [[1], [2, 3]]]
    dicts = [{"race": ["B", "W"], "sex": ["F", "CANARY7"]}, {"a": [1], "b": [1, 2]}, make_groups(["F", "M"]).to_spec()]
    return [b"=1,+2\n-3\n@x\n<script>CANARY7", *(b"\0" + json.dumps(value).encode() for value in (*lists, *dicts))]


def case(data: bytes) -> None:
    """Read a case that begins with a zero byte as JSON, and any other case as lines of text."""
    if data[:1] == b"\0":
        _as_json(from_json(data[1:], name="case"))
        return
    names = data.decode("utf-8", errors="replace").split("\n")
    groups = make_groups(names)
    codes = groups.codes.tolist()
    if [groups.labels[code] for code in codes] != names or len(set(groups.names)) != len(groups):
        raise RuntimeError("A row is in the wrong group, or two groups have the same name.")
    again = Groups.from_spec(json.loads(json.dumps(groups.to_spec())))
    if again.encode(names).codes.tolist() != codes:
        raise RuntimeError("Groups encode rows differently after storing.")


def _as_json(value: object) -> None:
    if isinstance(value, dict) and "labels" in value:
        Groups.from_spec(value)
        return
    groups = make_groups(value, groups=GroupPolicy(missing="group"))
    try:
        spec = groups.to_spec()
    except TypeError:  # infinite numbers
        return
    if Groups.from_spec(spec).encode(value).counts.tolist() != groups.counts.tolist():
        raise RuntimeError("Groups count rows differently after storing.")


__all__ = ["REFUSALS", "SHARE", "ModelFileError", "case", "seeds"]
