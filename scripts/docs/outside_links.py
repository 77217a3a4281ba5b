"""Links from docs/ to files outside it: those to examples lead to the gallery, others become plain text."""

from __future__ import annotations

import logging
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["resolve"]

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+[^)\s]+)\)")
_LOG = logging.getLogger("mkdocs.hooks.outside_links")


def resolve(markdown: str, page: str, docs: Path) -> str:
    """Return the page's text with links that work in the site.

    Parameters
    ----------
    markdown : str
        The page's text.
    page : str
        Its path in docs/.
    docs : Path
        The folder of the pages. A link to a missing file is a warning, which ends the build.
    """
    here = (docs / page).parent

    def link(match: re.Match[str]) -> str:
        text, address = match.groups()
        target = (here / address.partition("#")[0]).resolve()
        if target.is_relative_to(docs.resolve()):
            return match.group()
        if not target.exists():
            _LOG.warning("%s has a link to %s, which does not exist.", page, address)
        if target.parent.name == "examples" and target.suffix == ".py" and not target.name.startswith("_"):
            up = "../" * (len(PurePosixPath(page).parts) - 1)
            return f"[{text}]({up}gallery/{target.stem}.md)"
        return text if "`" in text else f"`{text}`"

    return _LINK.sub(link, markdown)
