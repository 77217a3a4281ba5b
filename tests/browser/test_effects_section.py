"""The section on a causal graph in a browser: readable on wide and narrow screens, whatever columns are called."""

import numpy as np
import pandas as pd
import pytest

import fairtransport as ft
from fairtransport.auditing import Inference

pytestmark = pytest.mark.browser

HOSTILE = "</svg><script>alert($_{$1)</script>"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    rng = np.random.default_rng(0)
    group = rng.choice(["<b>F</b>", "M"], 800)
    table = pd.DataFrame({"sex": group, HOSTILE: rng.normal(size=800) + (group == "M")})
    table["a column with a rather long name"] = rng.normal(size=800) + 0.5 * table[HOSTILE]
    names = list(table)
    edges = [(names[0], names[1]), (names[0], names[2]), (names[1], names[2])]

    def score(rows):
        return 1 / (1 + np.exp(-rows[names[1]] - 0.5 * rows[names[2]]))

    transport = ft.causal.CounterfactualTransport(edges, sensitive="sex", quantiles="linear")
    effects = ft.causal.audit_counterfactual(
        score,
        table,
        transport,
        to="M",
        inference=Inference(n_bootstrap=2, n_permutations=2, random_state=0),
        n_orders=0,
    )
    audit = ft.audit(
        score(table),
        sensitive_features={"sex": group},
        inference=Inference(n_bootstrap=20, n_permutations=20, random_state=0),
    )
    return audit.to_html(tmp_path_factory.mktemp("effects") / "page.html", effects=effects), effects


@pytest.mark.parametrize("width", [1280, 390])
def test_the_picture_fits_and_says_the_figures(page, open_page, width):
    path, effects = page
    with open_page(path, width=width) as browser:
        picture = browser.locator("#effects img")
        box = picture.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["height"] > 100  # it was decoded
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        largest = effects.groups[0].effects[f"through {HOSTILE}"]
        assert f"through {HOSTILE} {largest.mean:+.3f}" in picture.get_attribute("alt")
        assert "under this graph" in browser.locator("#effects").inner_text()
        assert browser.locator("section[aria-labelledby=table-effects-0] tbody tr").count() == 6
