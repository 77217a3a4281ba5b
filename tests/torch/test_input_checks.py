"""Errors for invalid input: they say what was passed, what is allowed and what to do, and quote no score or group."""

import subprocess
import sys

import pytest
import torch

from fairtransport.torch import TransportPenalty

SCORES = torch.tensor([0.1, 0.5, 0.9, 0.3])
CODES = torch.tensor([0, 1, 0, 1])


@pytest.mark.parametrize(
    ("scores", "codes", "message"),
    [
        (SCORES, CODES + 1, "2 rows have group codes, strata or labels out of range; groups are numbered from 0 to 1"),
        (SCORES, CODES - 1, "2 rows have group codes"),
        (5 * SCORES - 2, CODES, "3 values outside .* logits, apply torch.sigmoid"),
        (torch.where(CODES == 1, torch.nan, SCORES), CODES, "2 NaN values, which the network returned"),
        (SCORES, CODES[:3], "group_codes has 3 rows, but there are 4 scores"),
        (torch.stack([1 - SCORES, SCORES], dim=1), CODES, "pass the second"),
    ],
)
def test_invalid_rows(scores, codes, message):
    penalty = TransportPenalty(2)
    before = {name: value.clone() for name, value in penalty.state_dict().items()}
    with pytest.raises(ValueError, match=message) as caught:
        penalty(scores, codes)
    assert "0.9" not in str(caught.value)
    torch.testing.assert_close(dict(penalty.state_dict()), before)  # invalid rows do not change the state
    penalty(SCORES, CODES)  # each invalid row raises once


@pytest.mark.parametrize(
    ("scores", "codes", "message"),
    [
        (SCORES.numpy(), CODES, "scores must be a tensor of floats; got ndarray"),
        (SCORES, [0, 1, 0, 1], "group_codes must be a tensor of whole numbers; got list"),
        (SCORES, CODES.float(), "group_codes must hold whole numbers; it holds torch.float32"),
        (CODES, CODES, "scores must hold floats"),
    ],
)
def test_invalid_types(scores, codes, message):
    with pytest.raises(TypeError, match=message):
        TransportPenalty(2)(scores, codes)


def test_strata():
    penalty = TransportPenalty(2, n_strata=2)
    with pytest.raises(ValueError, match="strata= is needed"):
        penalty(SCORES, CODES)
    with pytest.raises(ValueError, match=r"out of range; .* strata from 0 to 1"):
        penalty(SCORES, CODES, CODES + 1)
    with pytest.raises(ValueError, match="strata has 3 rows"):
        penalty(SCORES, CODES, CODES[:3])
    penalty(SCORES, CODES, CODES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": 1}, "at least 2; got 1"),
        ({"groups": 0}, "groups must be at least 1"),
        ({"groups": ["a", "a"]}, "each once"),
        ({"groups": 300}, "too many to compare"),
        ({"groups": 2, "distance": "exact"}, "distance must be 'continuous', 'discrete'"),
        ({"groups": 2, "memory_size": -1}, "memory_size"),
        ({"groups": 2, "target_update_interval": 0}, "target_update_interval"),
        ({"groups": 2, "dual_step": -1.0}, "dual_step"),
    ],
)
def test_invalid_settings(options, message):
    with pytest.raises(ValueError, match=message):
        TransportPenalty(**options)


def test_without_torch_the_message_names_the_extra():
    code = "import sys; sys.modules['torch'] = None\nimport fairtransport as ft\nft.torch"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert 'fairtransport.torch needs torch: pip install "fairtransport[torch]"' in done.stderr
