from __future__ import annotations

import base64
import hashlib
import json
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairtransport.report.pages.rendering import content_policy, embedded_json

TEXT = st.text(st.characters(exclude_categories=("Cs",)))


@settings(max_examples=50)
@given(
    st.recursive(
        TEXT | st.integers() | st.booleans() | st.none(), lambda one: st.lists(one) | st.dictionaries(TEXT, one)
    )
)
@example("</script><!--<script>\u2028\u2029&amp;]]>")
def test_json_round_trips_and_cannot_end_its_element(value):
    text = embedded_json(value)
    assert json.loads(text) == value
    assert not re.search("[<>&\u2028\u2029]", text)


def test_numbers_that_are_not_finite_are_rejected():
    with pytest.raises(ValueError, match="not JSON compliant"):
        embedded_json([float("nan")])


def test_policy_allows_exactly_this_style_and_script():
    policy = dict(rule.split(" ", 1) for rule in content_policy("b {}", "run()").split("; "))
    assert policy["default-src"] == "'none'"
    for rule, text in (("style-src", "b {}"), ("script-src", "run()")):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert policy[rule] == f"'sha256-{digest}'"
    assert policy["form-action"] == policy["base-uri"] == "'none'"
    assert "http" not in str(policy)
