"""Hooks that mkdocs calls while it builds the site: generated pages, links to files outside docs/, formulas."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from api_pages import api_pages, summary_first
from formulas import to_mathml
from gallery import gallery_files
from mkdocs.structure.files import File
from outside_links import resolve

ROOT = Path(__file__).parents[2]
HOW_TO = "How-to"


def on_config(config: Any) -> Any:
    """Name the API's pages in the navigation, put pages that are not named there under "How-to"; say the version."""
    package = (ROOT / "src" / "fairtransport" / "__init__.py").read_text(encoding="utf-8")
    (version,) = re.findall('__version__ = "(.+)"', package)
    config.copyright = f"fairtransport {version}"
    api = [
        {package.title: [package.address, *({name: address} for name, address in package.classes)]}
        for package in api_pages(ROOT)
    ]
    config.nav = [{"API": api} if entry == {"API": "api/"} else entry for entry in config.nav]
    named = set(_addresses(config.nav))
    docs = Path(config.docs_dir)
    pages = sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))
    for entry in config.nav:
        if HOW_TO in entry:
            entry[HOW_TO].extend(address for address in pages if address not in named)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the generated files: the API's pages, and the gallery with its images."""
    for address, text in (page for package in api_pages(ROOT) for page in package.texts):
        files.append(File.generated(config, address, content=text))
    for address, content in gallery_files(ROOT, ROOT / "out" / "docs-cache").items():
        if address.startswith("gallery/") and address != "gallery/index.md" and address.endswith(".md"):
            file = File.generated(config, address, content=content)
            file.inclusion = file.inclusion.NOT_IN_NAV  # reached from the gallery's first page
            files.append(file)
        elif isinstance(content, Path):
            files.append(File.generated(config, address, abs_src_path=str(content)))
        else:
            files.append(File.generated(config, address, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Turn links to files outside docs/ into links to the gallery, or into plain text."""
    return resolve(markdown, page.file.src_uri, Path(config.docs_dir))


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Convert formulas to MathML; fold the signatures of classes."""
    return to_mathml(summary_first(html) if page.file.src_uri.startswith("api/") else html)


def _addresses(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    entries = nav.values() if isinstance(nav, dict) else nav
    return [address for entry in entries for address in _addresses(entry)]
