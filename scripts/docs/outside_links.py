"""Links of docs/ that leave it: those to examples lead to the gallery, others become their words."""

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
        Its place in docs/.
    docs : Path
        The folder. A link to a file that does not exist is a warning, which ends the build.
    """
    here = (docs / page).parent

    def link(found: re.Match[str]) -> str:
        words, address = found.groups()
        goal = (here / address.partition("#")[0]).resolve()
        if goal.is_relative_to(docs.resolve()):
            return found.group()
        if not goal.exists():
            _LOG.warning("%s has a link to %s, which does not exist.", page, address)
        if goal.parent.name == "examples" and goal.suffix == ".py" and not goal.name.startswith("_"):
            up = "../" * (len(PurePosixPath(page).parts) - 1)
            return f"[{words}]({up}gallery/{goal.stem}.md)"
        return words if "`" in words else f"`{words}`"

    return _LINK.sub(link, markdown)
