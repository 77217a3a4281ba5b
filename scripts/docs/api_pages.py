"""The pages of the API reference: one for each package, with its functions, and one for each class."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

__all__ = ["PACKAGES", "Package", "api_pages", "exports", "summary_first"]

#: Title and introduction of each page; a name is shown with the first package that exports it.
PACKAGES = {
    "fairtransport": ("fairtransport", "The names that most users need: `import fairtransport as ft`."),
    "fairtransport.auditing": ("auditing", "The records that an audit consists of."),
    "fairtransport.metrics": ("metrics", "Error rates and disparities, computed exactly from the scores."),
    "fairtransport.linear": (
        "linear",
        "Linear models trained for parity: settings, dual variables, the paper's trainer.",
    ),
    "fairtransport.boosting": ("boosting", "Boosted trees trained for parity (extra `boosting`)."),
    "fairtransport.torch": ("torch", "The penalty as a torch module (extra `torch`)."),
    "fairtransport.repair": ("repair", "Repair of scores: settings, tables, and the state of a stream."),
    "fairtransport.selection": ("selection", "The trade-off between error and disparity."),
    "fairtransport.causal": ("causal", "Counterfactuals and effects along a causal graph (extra `causal`)."),
    "fairtransport.criteria": ("criteria", "Criteria of fairness, resolved into comparisons of samples."),
    "fairtransport.criteria.penalty": ("penalties", "Penalties: their value and gradient from scores and groups."),
    "fairtransport.strata": ("strata", "Strata of people within which groups are compared."),
    "fairtransport.tabular": ("tabular", "Models of raw tables."),
    "fairtransport.tables": ("tables", "Tables on any engine, and files larger than memory (extra `tables`)."),
    "fairtransport.storage": ("storage", "Files replaced only when complete, and the container of model files."),
    "fairtransport.persistence": ("persistence", "Model files, signatures and what files may contain."),
    "fairtransport.persistence.onnx": ("onnx", "Models as ONNX graphs (extra `onnx`)."),
    "fairtransport.report": ("report", "Plots and HTML reports (extra `report`)."),
    "fairtransport.stream": ("stream", "Continual adjustment of models in use."),
    "fairtransport.serving": ("serving", "Scores over HTTP (extra `serve`)."),
    "fairtransport.mlflow": ("mlflow", "Models in MLflow (extra `mlflow`)."),
    "fairtransport.datasets": ("datasets", "The three data sets of the paper, and subsampling to other class rates."),
    "fairtransport.transport": ("transport", "Optimal transport on the line."),
    "fairtransport.checks": ("checks", "Checks for estimators with sensitive features."),
}
_NOT_OBJECTS = {"__version__", "datasets", "metrics"}
_SIGNATURE = re.compile(
    r'(<div class="doc-signature highlight">.*?</div>)(\s*<div class="doc doc-contents first">\s*)(<p>.*?</p>)',
    re.DOTALL,
)


@dataclass(frozen=True)
class Package:
    """A package of the reference: its title, the address of its page, and title and address of each class."""

    title: str
    address: str
    classes: tuple[tuple[str, str], ...]
    texts: tuple[tuple[str, str], ...]  # address and text of each page


@lru_cache(maxsize=1)
def api_pages(root: Path) -> list[Package]:
    """Return the packages with their pages."""
    packages, shown = [], set[str]()
    for module, (title, introduction) in PACKAGES.items():
        names = [name for name in exports(root, module) if name not in shown]
        shown.update(names)
        if names:
            packages.append(_package(root, module, title, introduction, names))
    return packages


def _package(root: Path, module: str, title: str, introduction: str, names: list[str]) -> Package:
    rows, others, classes, texts = [], [], [], []
    for name in names:
        home, definition = _definition(root, module, name)
        summary = (ast.get_docstring(definition) or "").partition("\n")[0] if definition else ""
        address = f"{name}.md" if isinstance(definition, ast.ClassDef) else f"#{home}"
        rows.append(f"| [`{name}`]({address}) | {summary.replace('|', '&#124;')} |")
        if isinstance(definition, ast.ClassDef):
            classes.append((name, f"api/{address}"))
            texts.append((f"api/{address}", f"::: {home}\n    options:\n      heading_level: 1\n"))
        else:
            others.append(f"::: {home}")
    parts = [f"# {title}", introduction, "\n".join(["| name | |", "| --- | --- |", *rows]), *others]
    page = (f"api/{title}.md", "\n\n".join(parts) + "\n")
    return Package(title, page[0], tuple(classes), (page, *texts))


def summary_first(page: str) -> str:
    """Return the page of a class with the signature folded below the first sentence."""
    return _SIGNATURE.sub(r"\2\3<details><summary>Signature</summary>\1</details>", page, count=1)


def exports(root: Path, module: str) -> list[str]:
    """Return the names in a module's ``__all__``, or none if there is no such module."""
    tree = _tree(root, module)
    for node in tree.body if tree else ():
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__all__" for target in node.targets):
            return [name for name in ast.literal_eval(node.value) if name not in _NOT_OBJECTS]
    return []


def _definition(root: Path, module: str, name: str) -> tuple[str, ast.ClassDef | ast.FunctionDef | None]:
    """Return the full name and the definition of an exported object, following the imports of its package."""
    tree = _tree(root, module)
    for node in tree.body if tree else ():
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return f"{module}.{name}", node
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ImportFrom) and node.module and name in {alias.name for alias in node.names}:
            return _definition(root, node.module, name)
    return f"{module}.{name}", None


def _tree(root: Path, module: str) -> ast.Module | None:
    path = root / "src" / Path(*module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.exists():
            return ast.parse(file.read_text(encoding="utf-8"))
    return None
