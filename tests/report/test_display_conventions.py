"""Every display follows scikit-learn's conventions, and describes shared parameters in the same words."""

import inspect
import re
from collections import defaultdict
from itertools import takewhile

import pytest

from fairtransport import report
from fairtransport.report.displays._base import Display

DISPLAYS = [getattr(report, name) for name in report.__all__ if name.endswith("Display")]
SHARED = ("audit", "ax", "histograms", "most", "sample_weight", "sensitive_features", "min_size")


def entries(docstring):
    """Return the parameters and attributes of a numpydoc docstring, with their types and descriptions."""
    blocks = re.split(r"\n(?=\w[\w, *]* : )", inspect.cleandoc(docstring))
    for block in blocks[1:]:
        head, *lines = block.splitlines()
        name, _, kind = head.partition(" : ")
        description = takewhile(lambda line: line.startswith("    "), lines)
        yield name, kind, " ".join(line.strip() for line in description)


def constructors(display):
    return [getattr(display, name) for name in dir(display) if name.startswith("from_")]


def test_all_displays_are_public():
    assert len(DISPLAYS) == 12
    assert all(issubclass(display, Display) for display in DISPLAYS)


@pytest.mark.parametrize("display", DISPLAYS)
def test_docstrings_have_the_sections_of_numpydoc(display):
    for section in ("Parameters", "Attributes", "See Also", "Examples"):
        assert f"{section}\n" in inspect.cleandoc(display.__doc__)
    assert constructors(display)
    for method in (display.plot, *constructors(display)):
        assert "ax" in inspect.signature(method).parameters
        assert "Parameters\n" in inspect.cleandoc(method.__doc__)


@pytest.mark.parametrize("display", DISPLAYS)
def test_every_parameter_of_the_class_is_described(display):
    described = {name for names, _, _ in entries(display.__doc__) for name in names.split(", ")}
    assert set(inspect.signature(display).parameters) <= described


def test_shared_parameters_have_the_same_description():
    texts = defaultdict(set)
    for display in DISPLAYS:
        for documented in (display, display.plot, *constructors(display)):
            for name, kind, text in entries(documented.__doc__):
                texts[name].add((kind, text))
    assert {name: texts[name] for name in SHARED if len(texts[name]) != 1} == {}
