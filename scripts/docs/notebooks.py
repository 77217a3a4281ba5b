"""Write the tours as notebooks, with the output that the pages show: ``python scripts/docs/notebooks.py``.

The tests run every block of these pages and compare what it prints, and compare the notebooks with the pages.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

__all__ = ["TOURS", "notebook"]

ROOT = Path(__file__).parents[2]
#: The pages, by the name of the notebook.
TOURS = {"getting_started": "getting_started.md", "train": "train.md", "operate": "operate.md"}
_BLOCK = re.compile(r"^```(python|sh|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_GENERATED = re.compile(r"\[([^\]]+)\]\((?:api|gallery)/[^)]*\)")
_LINK = re.compile(r"\]\((?!https?:|#)([^)]+)\)")


def notebook(page: Path) -> str:
    """Return the text of a notebook with the prose, the code and the output of a page."""
    cells: list[dict[str, Any]] = []
    parts = _BLOCK.split(page.read_text(encoding="utf-8"))
    for position in range(0, len(parts), 3):
        _add_prose(cells, parts[position])
        if position + 2 < len(parts):
            _add_block(cells, *parts[position + 1 : position + 3])
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    document = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    return json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _add_prose(cells: list[dict[str, Any]], text: str) -> None:
    text = _GENERATED.sub(r"\1", text).strip()
    text = _LINK.sub(r"](../../docs/\1)", text)
    if text:
        cells.append({"cell_type": "markdown", "metadata": {}, "source": _lines(text)})


def _add_block(cells: list[dict[str, Any]], language: str, text: str) -> None:
    if language == "text":
        cells[-1]["outputs"] = [{"name": "stdout", "output_type": "stream", "text": _lines(text)}]
        return
    count = 1 + sum(cell["cell_type"] == "code" for cell in cells)
    source = ("%%bash\n" if language == "sh" else "") + text.rstrip("\n")
    cells.append(
        {"cell_type": "code", "execution_count": count, "metadata": {}, "outputs": [], "source": _lines(source)}
    )


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    for name, page in TOURS.items():
        path = ROOT / "examples" / "notebooks" / f"{name}.ipynb"
        path.parent.mkdir(exist_ok=True)
        path.write_text(notebook(ROOT / "docs" / page), encoding="utf-8")
