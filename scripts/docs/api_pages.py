"""The API's pages: one for each room, with every name that it exports; read from the source, nothing is imported."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

__all__ = ["api_pages", "exports"]

#: Title and opening words of each page; rooms that do not exist yet are left out.
ROOMS = {
    "fairtransport": ("fairtransport", "What most people need: `import fairtransport as ft`."),
    "fairtransport.metrics": ("metrics", "Errors and disparities, exact on the scores given."),
    "fairtransport.datasets": ("datasets", "The three data sets of the paper, and other worlds made of them."),
    "fairtransport.report": ("report", "Pictures and pages (extra `report`)."),
    "fairtransport.stream": ("stream", "Continual adjustment of models in use."),
    "fairtransport.torch": ("torch", "The penalty as a torch module (extra `torch`)."),
    "fairtransport.boosting": ("boosting", "The penalty as an objective of boosted trees (extra `boosting`)."),
    "fairtransport.tables": ("tables", "Tables on any engine, and files."),
    "fairtransport.histograms": ("histograms", "Scores of groups as a small summary."),
    "fairtransport.penalties": ("penalties", "Scores and groups to a value and a gradient."),
    "fairtransport.transport": ("transport", "The mathematics: arrays in, arrays out."),
    "fairtransport.checks": ("checks", "What a fair estimator owes its users, as a test suite."),
}
_NOT_OBJECTS = {"__version__", "datasets", "metrics"}


@lru_cache(maxsize=1)
def api_pages(root: Path) -> list[tuple[str, str, str]]:
    """Return address, title and text of each page."""
    pages = []
    for module, (title, words) in ROOMS.items():
        names = exports(root, module)
        if not names:
            continue
        parts = [f"# {title}", words, *(f"::: {_home(root, module, name)}" for name in names)]
        pages.append((f"api/{title}.md", title, "\n\n".join(parts) + "\n"))
    return pages


def exports(root: Path, module: str) -> list[str]:
    """Return the names in a module's ``__all__``; none when there is no such module."""
    tree = _tree(root, module)
    for node in tree.body if tree else ():
        if isinstance(node, ast.Assign) and any(getattr(one, "id", "") == "__all__" for one in node.targets):
            return [name for name in ast.literal_eval(node.value) if name not in _NOT_OBJECTS]
    return []


def _home(root: Path, module: str, name: str) -> str:
    """Return the full name under which an exported object is defined, where the imports of its room say it."""
    tree = _tree(root, module)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ImportFrom) and node.module and name in {one.name for one in node.names}:
            return f"{node.module}.{name}"
    return f"{module}.{name}"


def _tree(root: Path, module: str) -> ast.Module | None:
    path = root / "src" / Path(*module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.exists():
            return ast.parse(file.read_text(encoding="utf-8"))
    return None
