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


@pytest.mark.parametrize("cls", [cls for pair in PAIRS for cls in pair])
def test_every_parameter_is_described(cls):
    assert set(entries(cls, "Parameters")) == set(cls().get_params())
