"""The pages of the API reference, one for each package, with every exported name, read from the source."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

__all__ = ["api_pages", "exports"]

#: Title and introduction of each page; packages that do not exist are left out.
PACKAGES = {
    "fairtransport": ("fairtransport", "The names that most users need: `import fairtransport as ft`."),
    "fairtransport.linear": ("linear", "Linear models trained towards parity: settings, duals, the paper's trainer."),
    "fairtransport.repair": ("repair", "Quantile repair: lookup tables and the state of a stream."),
    "fairtransport.selection": ("selection", "The trade-off between error and disparity."),
    "fairtransport.tabular": ("tabular", "Raw tables to scores."),
    "fairtransport.auditing": ("auditing", "The records that an audit consists of."),
    "fairtransport.criteria": ("criteria", "Criteria of fairness, resolved into comparisons of samples."),
    "fairtransport.persistence": ("persistence", "Model files: what they may contain."),
    "fairtransport.metrics": ("metrics", "Error rates and disparities, computed exactly from the scores."),
    "fairtransport.datasets": ("datasets", "The three data sets of the paper, and subsampling to other class rates."),
    "fairtransport.report": ("report", "Plots and HTML reports (extra `report`)."),
    "fairtransport.stream": ("stream", "Continual adjustment of models in use."),
    "fairtransport.serving": ("serving", "Scores over HTTP (extra `serve`)."),
    "fairtransport.mlflow": ("mlflow", "Models in MLflow (extra `mlflow`)."),
    "fairtransport.torch": ("torch", "The penalty as a torch module (extra `torch`)."),
    "fairtransport.boosting": ("boosting", "The penalty as an objective of boosted trees (extra `boosting`)."),
    "fairtransport.criteria.penalty": ("penalties", "Penalties: their value and gradient from scores and groups."),
    "fairtransport.transport": ("transport", "Optimal transport on the line."),
    "fairtransport.checks": ("checks", "Checks for estimators with sensitive features."),
}
_NOT_OBJECTS = {"__version__", "datasets", "metrics"}


@lru_cache(maxsize=1)
def api_pages(root: Path) -> list[tuple[str, str, str]]:
    """Return address, title and text of each page."""
    pages, shown = [], set[str]()
    for module, (title, introduction) in PACKAGES.items():
        homes = [_home(root, module, name) for name in exports(root, module)]
        homes = [home for home in homes if home.rpartition(".")[2] not in shown]  # on the first page that has it
        if not homes:
            continue
        shown.update(home.rpartition(".")[2] for home in homes)
        parts = [f"# {title}", introduction, *(f"::: {home}" for home in homes)]
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
