"""Answers that were given, by the keys of their requests, so that a request that is sent again gets the same answer."""

from __future__ import annotations

import json
import os
import zlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

from fairtransport.storage import write_atomically

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["AnswerLog", "LoggedAnswer"]


class LoggedAnswer(NamedTuple):
    """One answer.

    Attributes
    ----------
    key : str
        Key of the request.
    check : int
        Checksum of its body. It detects a key that is used for two bodies, and is too short to reveal the body.
    batch : int
        Number of batches of the stream when the answer was given.
    version : str
        Version of the model.
    scores : list of float or None
    reasons : dict of str to str
        By the number of the row.
    """

    key: str
    check: int
    batch: int
    version: str
    scores: list[float | None]
    reasons: dict[str, str]


class AnswerLog:
    """File of the latest answers.

    Parameters
    ----------
    path : Path
        Created if it does not exist.
    most : int
        Answers that are kept; the file has up to twice as many lines.
    batches : int
        Number of batches of the checkpoint from which the stream goes on. Later answers were never given, since an
        answer is given after its checkpoint; they are removed.
    """

    def __init__(self, path: Path, most: int, batches: int) -> None:
        self._path, self._most = path, most
        self._answers: OrderedDict[str, LoggedAnswer] = OrderedDict()
        for answer in _read(path):
            if answer.batch <= batches:
                self._answers[answer.key] = answer
        self._file: Any = None
        self._rewrite()

    def get(self, key: str) -> LoggedAnswer | None:
        """Return the answer to an earlier request."""
        return self._answers.get(key)

    def __len__(self) -> int:
        return len(self._answers)

    def write(self, answers: list[LoggedAnswer]) -> None:
        """Append answers to the file, and flush it to the disk; `get` does not return them yet."""
        if answers:
            self._file.write(b"".join(map(_line, answers)))
            self._file.flush()
            os.fsync(self._file.fileno())
            self._lines += len(answers)

    def confirm(self, answers: list[LoggedAnswer]) -> None:
        """Note that the checkpoint of these answers was written; old ones are removed, if there are many."""
        for answer in answers:
            self._answers[answer.key] = answer
        while len(self._answers) > self._most:
            self._answers.popitem(last=False)
        if self._lines > 2 * self._most:
            self._rewrite()

    def _rewrite(self) -> None:
        if self._file is not None:
            self._file.close()
        write_atomically(self._path, b"".join(map(_line, self._answers.values())))
        self._lines = len(self._answers)
        self._file = self._path.open("ab")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _line(answer: LoggedAnswer) -> bytes:
    text = json.dumps(answer._asdict(), allow_nan=False, separators=(",", ":")).encode()
    return b"%08x %b\n" % (zlib.crc32(text), text)


def _read(path: Path) -> list[LoggedAnswer]:
    """Return the answers up to the first line that is incomplete."""
    answers = []
    if path.exists():
        with path.open("rb") as lines:
            for line in lines:
                text = line[9:-1]
                if not line.endswith(b"\n") or line[:8] != b"%08x" % zlib.crc32(text):
                    break
                answers.append(LoggedAnswer(**json.loads(text)))
    return answers
