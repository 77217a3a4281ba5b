import json

import numpy as np
import pytest
from matplotlib.figure import Figure

from fairtransport.paper import reproduction
from fairtransport.paper.finding import Claim, Finding, Part, Table


class Item:
    """A stand-in for a figure's module."""

    calls = 0

    @staticmethod
    def parts(*, quick):
        def compute(stop):
            Item.calls += 1
            return {"value": np.array(1.0 if quick else 2.0)}

        return [Part("one", {"quick": quick}, compute)]

    @staticmethod
    def assemble(results, *, quick):
        value = float(results["one"]["value"])
        assert value == (1.0 if quick else 2.0)
        figure = Figure()
        figure.add_subplot().plot([0, value])
        return Finding(
            "figure1",
            "Figure 1: <b>bold</b>",
            "A caption & more.",
            figures={"figure1": figure},
            tables={"figure1": Table(("a",), ((value,),))},
            shown={"short": Table(("a|b",), (("<i>",),))},
            claims=(
                Claim("holds", "1.0", f"{value:.1f}", "agrees"),
                Claim("a | b", "", "<script>alert(1)</script>", "differs", "because"),
            ),
        )


@pytest.fixture
def item(monkeypatch):
    Item.calls = 0
    monkeypatch.setattr(reproduction, "_item", lambda _: Item)


def test_writes_one_folder(item, tmp_path):
    done = reproduction.reproduce(["figure1"], tmp_path / "out", quick=True)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"index.html", "summary.md", "figure1.png", "figure1.svg", "figure1.csv", "parts"}
    assert done.files[0] == tmp_path / "out" / "index.html"
    assert done.tally == "Claims checked: 2. Of these 1 agree, 0 better than in the paper, 1 differ."
    assert (tmp_path / "out" / "figure1.csv").read_text() == "a\n1.0\n"


def test_page_is_self_contained_and_inert(item, tmp_path):
    page = reproduction.reproduce(["figure1"], tmp_path, quick=True).files[0].read_text(encoding="utf-8")
    assert "http://" not in page
    assert "https://" not in page
    assert "<script>" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page
    assert "data:image/png;base64," in page
    assert "Quick run" in page


def test_summary_lists_every_claim(item, tmp_path):
    reproduction.reproduce(["figure1"], tmp_path)
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "| Figure 1 | holds | 1.0 | 2.0 | ✓ agrees |" in summary
    assert "a \\| b" in summary
    assert "(because) | ≠ differs" in summary
    assert "Quick run" not in summary


def test_a_finished_run_is_not_repeated(item, tmp_path):
    reproduction.reproduce(["figure1"], tmp_path)
    reproduction.reproduce(["figure1"], tmp_path)
    assert Item.calls == 1


def test_unknown_name(tmp_path):
    with pytest.raises(ValueError, match="'figure4', 'ablation'"):
        reproduction.reproduce(["figure9"], tmp_path)


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", reproduction.ITEMS)
def test_parts_have_distinct_names_and_settings_that_json_can_hold(name, quick):
    parts = reproduction._item(name).parts(quick=quick)
    assert len({part.name for part in parts}) == len({part.digest for part in parts}) == len(parts)
    assert all(json.loads(json.dumps(part.settings)) == part.settings for part in parts)
