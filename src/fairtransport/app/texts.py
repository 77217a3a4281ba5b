"""Every English text of the workbench, by name: the lines of ``templates/texts.txt``."""

from importlib import resources

_LINES = resources.files("fairtransport.app").joinpath("templates", "texts.txt").read_text(encoding="utf-8")
TEXTS: dict[str, str] = dict(line.split(" = ", 1) for line in _LINES.splitlines())
