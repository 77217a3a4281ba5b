"""The pages of the API reference, one for each package, with every exported name, read from the source."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

__all__ = ["api_pages", "exports"]

#: Title and introduction of each page; packages that do not exist are left out.
PACKAGES = {
    "fairtransport": ("fairtransport", "The names that most users need: `import fairtransport as ft`."),
    "fairtransport.metrics": ("metrics", "Error rates and disparities, computed exactly from the scores."),
    "fairtransport.datasets": ("datasets", "The three data sets of the paper, and subsampling to other class rates."),
    "fairtransport.report": ("report", "Plots and HTML reports (extra `report`)."),
    "fairtransport.stream": ("stream", "Continual adjustment of models in use."),
    "fairtransport.torch": ("torch", "The penalty as a torch module (extra `torch`)."),
    "fairtransport.boosting": ("boosting", "The penalty as an objective of boosted trees (extra `boosting`)."),
    "fairtransport.tables": ("tables", "Tables of any data frame library, and files."),
    "fairtransport.histograms": ("histograms", "Histograms of the scores of groups."),
    "fairtransport.penalties": ("penalties", "Penalties: their value and gradient from scores and groups."),
    "fairtransport.transport": ("transport", "Optimal transport on the line."),
    "fairtransport.checks": ("checks", "Checks for estimators with sensitive features."),
}
_NOT_OBJECTS = {"__version__", "datasets", "metrics"}


@lru_cache(maxsize=1)
def api_pages(root: Path) -> list[tuple[str, str, str]]:
    """Return address, title and text of each page."""
    pages = []
    for module, (title, introduction) in PACKAGES.items():
        names = exports(root, module)
        if not names:
            continue
        parts = [f"# {title}", introduction, *(f"::: {_home(root, module, name)}" for name in names)]
        pages.append((f"api/{title}.md", title, "\n\n".join(parts) + "\n"))
    return pages


def exports(root: Path, module: str) -> list[str]:
    """Return the names in a module's ``__all__``, or none if there is no such module."""
    tree = _tree(root, module)
    for node in tree.body if tree else ():
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__all__" for target in node.targets):
            return [name for name in ast.literal_eval(node.value) if name not in _NOT_OBJECTS]
    return []


def _home(root: Path, module: str, name: str) -> str:
    """Return the full name of the definition of an exported object, according to the imports of its package."""
    tree = _tree(root, module)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ImportFrom) and node.module and name in {alias.name for alias in node.names}:
            return f"{node.module}.{name}"
    return f"{module}.{name}"


def _tree(root: Path, module: str) -> ast.Module | None:
    path = root / "src" / Path(*module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.exists():
            return ast.parse(file.read_text(encoding="utf-8"))
    return None
