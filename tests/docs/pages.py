"""Run a page as a reader would: its blocks in order, in an empty folder; what it says they print is printed."""

import contextlib
import io
import os
import re
from pathlib import Path

from tests.processes import run_block, with_command

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_DECIMAL = re.compile(r"\d*\.\d+(?:e-?\d+)?")


def blocks(page):
    """The page's blocks: language and text."""
    return _BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))


def run_page(page, folder, monkeypatch):
    """Run all blocks of a page; return how many were run and how many printed what they should."""
    monkeypatch.chdir(folder)
    names = {"__name__": "page"}
    printed, ran, compared = "", 0, 0
    for number, (language, text) in enumerate(blocks(page)):
        if language == "python":
            caught = io.StringIO()
            with contextlib.redirect_stdout(caught):
                exec(compile(text, f"{page}, block {number}", "exec"), names)  # noqa: S102 - our own text
            printed, ran = caught.getvalue(), ran + 1
        elif language == "sh":
            printed, ran = shell(text, folder), ran + 1
        elif language == "text":
            assert alike(text, printed), f"{page}, block {number} prints:\n{printed}"
            compared += 1
        else:
            raise AssertionError(f"{page}, block {number}: nobody runs {language or 'a block without language'}")
    return ran, compared


def alike(told, printed):
    """Whether two texts have the same words; decimals may differ by a tenth or .015: machines round differently."""
    words = [_DECIMAL.sub("#", " ".join(text.split())) for text in (told, printed)]
    figures = [[float(found) for found in _DECIMAL.findall(text)] for text in (told, printed)]
    return words[0] == words[1] and all(
        abs(one - other) <= max(0.015, 0.1 * abs(one)) for one, other in zip(*figures, strict=True)
    )


def shell(text, folder):
    """Run commands in bash, with this library's program on the path; the last one has to succeed, as all before."""
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return run_block("sh", text, folder, {**with_command(folder / ".bin"), "PYTHONPATH": path, "COLUMNS": "80"})
