"""The live page of a stream in a browser: it follows the stream, reports when it stops, and loads nothing else."""

import subprocess
import sys
import time
from contextlib import contextmanager
from datetime import UTC, datetime

import numpy as np
import pytest
from playwright.sync_api import expect
from scipy.stats import wasserstein_distance
from tests.browser.conftest import HOSTILE

from fairtransport.serving.live_page import serve_page

pytestmark = pytest.mark.browser

# Snapshots like those of `ContinualAdjuster.snapshot`, after any number of batches.

NAMES = ("Black, Female", "Black, Male", "White, Female", "White, Male")
BINS = 32


def history(batches, *, jump=None, gap=1.0, end=None):
    """Disparity near its floor, with a jump and what follows it."""
    rng = np.random.default_rng(0)
    end = time.time() if end is None else end
    noise = rng.normal(size=batches)
    points = []
    for k in range(batches):
        since = np.inf if jump is None or k < jump else k - jump
        points.append(
            {
                "batch": k + 1,
                "rows": 100 * (k + 1),
                "time": datetime.fromtimestamp(end - gap * (batches - 1 - k), UTC).isoformat(),
                "disparity": 0.02 + 0.004 * noise[k] + 0.13 * np.exp(-since / 25),
                "noise_floor": 0.035 + 0.02 / (1 + k / 20),
                "alarm": since in (0, 4),
                "updates": 200 if since < 60 else (10 if k % 17 == 0 else 0),
                "moved": 0.05 + 0.4 * (0 if np.isinf(since) else 1 - np.exp(-since / 25)),
                "agreement": 0.985 - 0.03 * (0 if np.isinf(since) else 1 - np.exp(-since / 25)),
            }
        )
    return points


def shares(apart):
    edges = np.linspace(0, 1, BINS + 1)
    at = (edges[1:] + edges[:-1]) / 2
    density = at**1.2 * (1 - at) ** (3.5 - apart)
    return density / density.sum()


def snapshot(batches=400, *, names=NAMES, jump=250, duals=True, target=True, **changes):
    spread = np.linspace(-1, 1, len(names))
    grid = np.linspace(0, 1, 51)
    points = history(batches, jump=jump, **{key: changes.pop(key) for key in ("gap", "end") if key in changes})
    return {
        "title": "Adult income, race and sex",
        "updated": points[-1]["time"] if points else datetime.now(UTC).isoformat(),
        "rows": 100 * batches,
        "batches": batches,
        "rejected": 3,
        "rows_without_group": 0,
        "version": 1 + batches // 50,
        "frozen": False,
        "groups": list(names),
        "sizes": np.linspace(300, 2000, len(names)),
        "edges": np.linspace(0, 1, BINS + 1),
        "histograms": {name: shares(one) for name, one in zip(names, spread, strict=True)},
        "target": shares(0.0) if target else None,
        "history": points,
        "duals": {"grid": grid, "names": list(names), "values": [0.1 * one * np.sin(3 * grid) for one in spread]}
        if duals
        else None,
        "spent": {"updates": 12345, "seconds": 4.2, "batches_adjusted": 81},
        "alarm_rate": 1e-4,
        **changes,
    }


MANY = tuple(f"Region {k}, people with a rather long name" for k in range(60))
SNAPSHOTS = {
    "four": {},
    "sixty": {"names": MANY},
    "hostile": {"names": (*HOSTILE, "__proto__"), "title": "<img src=x onerror=alert(3)>"},
    "repair": {"duals": False, "target": False},
    "one batch": {"batches": 1, "jump": None},
    "empty": {"batches": 0},
}


@pytest.fixture
def open_live_page(open_url):
    """Open the page of a box whose ``now`` is the snapshot."""

    @contextmanager
    def opened(box, **options):
        with serve_page(lambda: box["now"]) as live, open_url(live.url, **options) as page:
            page.live = live
            expect(page.locator('[data-card="rows"] strong')).to_have_text(f"{box['now']['rows']:,}")
            yield page

    return opened


def state(page):
    return page.locator(".state")


@pytest.mark.parametrize("kind", SNAPSHOTS)
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_opens_without_messages_and_fits_the_screen(open_live_page, kind, width, dark):
    with open_live_page({"now": snapshot(**SNAPSHOTS[kind])}, width=width, dark=dark) as page:
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        for figure in page.locator(".chart .plot").all():  # each draws something, or says that there is nothing
            assert figure.locator("path.curve, path.bars, text.nothing").count() >= 1
        assert {request.rpartition("/")[2] for request in page.seen.requests} == {"", "page.css", "page.js", "events"}


def test_shows_the_results_of_the_snapshot(open_live_page):
    now = snapshot(400)
    with open_live_page({"now": now}) as page:
        last = now["history"][-1]
        card = lambda name: page.locator(f'[data-card="{name}"]').inner_text()  # noqa: E731
        assert f"{last['disparity']:.3f}" in card("disparity")
        assert f"{last['noise_floor']:.3f}" in card("disparity")
        assert "batch 255" in card("alarms")
        assert "one in 10,000 batches" in card("alarms")
        assert "3 lines rejected" in card("rows")
        assert "12,345" in card("spent")
        assert "4.2 s in 81 of 400" in card("spent")
        assert f"{100 * last['agreement']:.1f}%" in card("agreement")
        assert [int(one.get_attribute("data-batch")) for one in page.locator(".plot .sign").all()] == [251, 255]
        assert "no more than the noise floor" in page.locator("#verdict").inner_text()
        first = page.locator("#batches tbody tr").first.inner_text().split()
        assert first[0] == "400"
        assert f"{last['disparity']:.3f}" in first


def test_distances_in_the_table_are_those_of_scipy(open_live_page):
    now = snapshot()
    with open_live_page({"now": now}) as page:
        fine = (np.arange(32 * 200) + 0.5) / (32 * 200)  # bins filled evenly, as the page has them
        target = np.repeat(now["target"], 200)
        for row, name in zip(page.locator("#groups tbody tr").all(), NAMES, strict=True):
            shares = now["histograms"][name]
            expected = wasserstein_distance(fine, fine, np.repeat(shares, 200), target)
            middles = (now["edges"][1:] + now["edges"][:-1]) / 2
            cells = row.locator("td").all_inner_texts()
            assert float(cells[2]) == pytest.approx(expected, abs=6e-4)
            assert float(cells[1]) == pytest.approx(middles @ shares, abs=6e-4)


def test_follows_a_running_stream(open_live_page):
    box = {"now": snapshot(249)}
    with open_live_page(box) as page:
        expect(state(page)).to_have_attribute("data-state", "running")
        before = page.locator('[data-chart="disparity"] .plot .curve').get_attribute("d")
        assert page.locator(".plot .sign").count() == 0
        box["now"] = snapshot(251)
        expect(page.locator('[data-card="rows"] strong')).to_have_text("25,100")
        expect(page.locator(".plot .sign")).to_have_count(1)
        expect(page.locator("#verdict")).to_contain_text("raised an alarm")
        expect(page.locator("#spoken")).to_contain_text("Alarm")
        assert page.locator('[data-chart="disparity"] .plot .curve').get_attribute("d") != before
        box["now"] = snapshot(252, names=(*NAMES, "adopted"))  # a new group
        expect(page.locator("#groups tbody tr")).to_have_count(5)
        box["now"] = snapshot(253, frozen=True)
        expect(state(page)).to_contain_text("frozen")


def test_pause_stops_the_page_but_not_the_stream(open_live_page):
    box = {"now": snapshot(100)}
    with open_live_page(box) as page:
        page.get_by_role("button", name="Pause this page").press("Enter")
        expect(state(page)).to_contain_text("paused")
        box["now"] = snapshot(120)
        page.wait_for_timeout(2500)  # two looks
        expect(page.locator('[data-card="rows"] strong')).to_have_text("10,000")
        page.get_by_role("button", name="Pause this page").click()
        expect(page.locator('[data-card="rows"] strong')).to_have_text("12,000")


def test_says_when_the_stream_has_ended(open_live_page):
    box = {"now": snapshot(100)}
    with open_live_page(box) as page:
        box["now"] = snapshot(101)
        page.live.close("too many <b>bad</b> lines")
        expect(state(page)).to_have_attribute("data-state", "ended")
        expect(page.locator("#notice")).to_contain_text("has ended: too many <b>bad</b> lines")
        expect(page.locator('[data-card="rows"] strong')).to_have_text("10,100")  # the very last batch is shown
        page.wait_for_timeout(4000)  # no attempt to reach what is gone: it would leave a message


def test_says_when_no_rows_arrive_and_when_they_do_again(open_live_page):
    box = {"now": snapshot(100, gap=2.0, end=time.time() - 45)}
    with open_live_page(box) as page:
        expect(state(page)).to_have_attribute("data-state", "stalled")
        expect(page.locator("#notice")).to_contain_text("usually there is one every 2 s")
        box["now"] = snapshot(101, gap=2.0)
        expect(state(page)).to_have_attribute("data-state", "running")
        expect(page.locator("#notice")).to_be_hidden()
    merged = snapshot(100, gap=60.0, end=time.time() - 45)  # points that stand for 50 batches each
    for point in merged["history"]:
        point["batch"] *= 50
    with open_live_page({"now": merged}) as page:
        expect(page.locator("#notice")).to_contain_text("usually there is one every 1.2 s")
    with open_live_page({"now": snapshot(100, gap=60.0, end=time.time() - 45)}) as page:  # slow by nature
        expect(state(page)).to_have_attribute("data-state", "running")


PROGRAM = """
from fairtransport.serving.live_page import serve_page
import sys, time
page = serve_page(lambda: {"batches": 1, "rows": 1, "updated": "2026-01-01T00:00:00+00:00"})
print(page.url, flush=True)
time.sleep(120)
"""


def test_says_when_the_program_is_gone(chromium):
    program = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
    try:
        page = chromium.new_page()
        page.goto(program.stdout.readline().strip())
        expect(state(page)).to_have_attribute("data-state", "stalled")  # it has no history of today
        program.kill()
        expect(state(page)).to_have_attribute("data-state", "lost", timeout=20_000)
        expect(page.locator("#notice")).to_contain_text("does not respond")
        page.close()
    finally:
        program.kill()
        program.communicate(timeout=20)


def test_a_snapshot_that_fails_is_shown_without_the_error(open_live_page):
    class Box(dict):
        fail = False

        def __getitem__(self, key):
            if self.fail:
                raise RuntimeError("secret of row 7")
            return super().__getitem__(key)

    box = Box(now=snapshot(100))
    with open_live_page(box) as page:
        box.fail = True
        expect(page.locator("#notice")).to_contain_text("without figures")
        assert "secret" not in page.content()
        expect(page.locator('[data-card="rows"] strong')).to_have_text("10,000")  # what was known stays
        box.fail = False
        expect(state(page)).to_have_attribute("data-state", "running")


def test_hostile_names_are_text(open_live_page):
    with open_live_page({"now": snapshot(**SNAPSHOTS["hostile"])}) as page:
        names = page.locator("#groups tbody bdi").all_inner_texts()
        assert names[0] == HOSTILE[0]
        assert names[5] == HOSTILE[5]
        assert "\u202e" not in "".join(names)
        assert names[6] == "__proto__"
        assert page.locator("#groups tbody tr").last.locator("td").last.inner_text() != "\u2013"
        assert page.locator("main img, main script, header img").count() == 0
        assert page.locator("h1").inner_text() == SNAPSHOTS["hostile"]["title"]


def test_points_are_read_by_keyboard_and_pointer(open_live_page):
    now = snapshot(400)
    with open_live_page({"now": now}) as page:
        plot = page.locator('[data-chart="disparity"] .plot')
        plot.focus()
        for key, index in (("ArrowLeft", 398), ("Home", 0), ("ArrowRight", 1), ("End", 399)):
            page.keyboard.press(key)
            expect(plot.locator(".readout")).to_contain_text(f"{now['history'][index]['disparity']:.3f}")
            expect(page.locator("#spoken")).to_contain_text(f"Batch {index + 1}")
        page.keyboard.press("Escape")
        expect(plot.locator(".readout")).to_be_hidden()
        page.locator('[data-chart="histograms"] .plot').hover()
        readout = page.locator('[data-chart="histograms"] .readout')
        expect(readout).to_contain_text("Black, Female")
        expect(readout).to_contain_text("Target")


def test_every_control_is_reached_and_named(open_live_page):
    with open_live_page({"now": snapshot()}) as page:
        tree = page.locator("body").aria_snapshot()
        for words in ("Pause this page", "Disparity over time", "Latest batches", "Dual potentials"):
            assert words in tree
        for one in page.locator("[tabindex]").all():
            assert one.get_attribute("aria-label") or one.get_attribute("aria-labelledby")
        page.keyboard.press("Tab")
        assert page.evaluate("() => document.activeElement.id") == "pause"
