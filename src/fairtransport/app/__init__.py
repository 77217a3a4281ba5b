"""The workbench in the browser (extra: ``app``): audit, choose, repair and train without writing code."""

from importlib import resources

_LINES = resources.files("fairtransport.app").joinpath("templates", "texts.txt").read_text(encoding="utf-8")
#: Every English text of the workbench, by name.
TEXTS: dict[str, str] = dict(line.split(" = ", 1) for line in _LINES.splitlines())
