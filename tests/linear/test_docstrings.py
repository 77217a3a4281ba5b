"""Both transport classifiers, and both regressors, describe shared parameters and attributes in the same words."""

import re

import pytest

from fairtransport.linear import (
    ContinuousTransportClassifier,
    ContinuousTransportRegressor,
    DiscreteTransportClassifier,
    DiscreteTransportRegressor,
)

PAIRS = [
    (ContinuousTransportClassifier, DiscreteTransportClassifier),
    (ContinuousTransportRegressor, DiscreteTransportRegressor),
]


def entries(cls, section):
    """Return the description of each entry of a numpydoc section by its name."""
    text = re.search(rf"\n    {section}\n    -+\n(.*?)\n\n", cls.__doc__, re.DOTALL).group(1)
    parts = re.split(r"\n(?=    \w)", f"\n{text}")[1:]
    return {part.split(" :")[0].strip(): part for part in parts}


@pytest.mark.parametrize("section", ["Parameters", "Attributes"])
@pytest.mark.parametrize("pair", PAIRS)
def test_shared_entries_have_the_same_text(pair, section):
    one, other = (entries(cls, section) for cls in pair)
    assert set(other) < set(one)
    assert other == {name: one[name] for name in other}


@pytest.mark.parametrize("cls", [cls for pair in PAIRS for cls in pair])
def test_every_parameter_is_described(cls):
    assert set(entries(cls, "Parameters")) == set(cls().get_params())
