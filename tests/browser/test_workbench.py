"""The workbench in a real Chromium, from upload to download.

``WORKBENCH_IMAGES=docs/images pytest -m browser tests/browser/test_workbench.py`` also takes the pictures of
the documentation, and the other widths and colours of each step to look at.
With ``WORKBENCH_AXE=axe.min.js``, from ``npm pack axe-core``, every page is also checked by axe, wide and narrow, light
and dark: no serious finding.
"""

import contextlib
import errno
import http.client
import json
import os
import re
import signal
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image
from tests.browser.conftest import HOSTILE
from tests.workbench import TOKEN, people, running
from tests.worlds import write_table

import fairtransport as ft
from fairtransport.app import projects

pytestmark = pytest.mark.browser
LONG = 120_000  # milliseconds, on a busy machine
HOME = "/home/ada/fairtransport"  # in pictures, in place of the folder of this run
ELSEWHERE = """(home) => {
  const all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (all.nextNode()) all.currentNode.data = all.currentNode.data.replace(/\\/\\S*\\/projects\\d+/g, home);
}"""
IN_DOCS = {(step, 1280, "light"): f"workbench_{step}.png" for step in ("start", "data", "audit", "choose", "take")}
IN_DOCS["choose", 390, "dark"] = "workbench_narrow.png"
IMAGES, AXE = (os.environ.get(name) for name in ("WORKBENCH_IMAGES", "WORKBENCH_AXE"))
FINDINGS = """() => axe.run(document, { iframes: false }).then((found) => found.violations
  .filter((one) => ["serious", "critical"].includes(one.impact))
  .map((one) => [one.id, ...one.nodes.map((node) => node.html.slice(0, 90))]))"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    with running(tmp_path_factory.mktemp("projects")) as (workbench, url):
        yield workbench, url


@pytest.fixture
def admitted(bench, chromium):
    """The cookie that the one-time token is exchanged for, once for all tests of this module."""
    workbench, url = bench
    if not hasattr(workbench, "state"):
        context = chromium.new_context()
        context.set_default_timeout(LONG)
        page = context.new_page()
        page.goto(f"{url}p/none/data?token={TOKEN}")
        page.wait_for_url(url)  # by way of the project that does not exist
        workbench.state = context.storage_state()
        context.close()
    return {"storage_state": workbench.state}


@pytest.fixture
def open_bench(bench, admitted, open_url):
    return lambda **options: open_url(bench[1], **admitted, **options)


def finished(page):
    page.wait_for_selector("#job", state="detached", timeout=LONG)


def press(page, text):
    page.get_by_role("button", name=text, exact=True).first.click()


def send(page, text):
    """Press a button that starts a job, and wait for the page that has its progress, or its result."""
    with page.expect_navigation(timeout=LONG):
        press(page, text)


def picture(page, name):
    """Take the picture of a page: wide, narrow and dark; at every width nothing sticks out."""
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("() => document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        if IMAGES:
            page.evaluate(ELSEWHERE, HOME)
            page.evaluate("() => document.querySelector('iframe')?.scrollIntoView()")
            page.wait_for_timeout(1500)  # until the frame is painted
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)
            assert faint(page) == []
            if AXE:
                page.evaluate(Path(AXE).read_text())
                assert page.evaluate(FINDINGS) == []
            if IMAGES:
                file = Path(IMAGES, IN_DOCS.get((name, width, scheme), f"workbench_{name}_{width}_{scheme}.png"))
                page.screenshot(path=file, full_page=True)
                with Image.open(file) as taken:
                    taken.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(file, optimize=True)
    assert unlabelled(page) == []


def faint(page):
    """Return texts whose contrast to what is behind them is below 4.5, that of WCAG 2 level AA."""
    return page.evaluate(
        """() => {
        const parts = (color) => color.match(/[\\d.]+/g).map(Number);
        const light = (color) => parts(color).slice(0, 3).map((c) => c / 255)
          .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
          .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
        const behind = (one) => {
          const color = getComputedStyle(one).backgroundColor, alpha = parts(color)[3] ?? 1;
          return alpha > 0 ? color : one.parentElement ? behind(one.parentElement) : "rgb(255, 255, 255)";
        };
        const written = (one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        return [...document.querySelectorAll("body *")].filter((one) => written(one) && one.getClientRects().length)
          .filter((one) => !one.closest("svg, .skip, .unseen")).filter((one) => {
            const [a, b] = [light(getComputedStyle(one).color), light(behind(one))].sort((x, y) => y - x);
            return (a + 0.05) / (b + 0.05) < 4.5;
          }).map((one) => one.outerHTML.slice(0, 80));
    }"""
    )


def unlabelled(page):
    """Return what a screen reader could not name: fields, buttons, links, frames, pictures; and repeated ids."""
    return page.evaluate(
        """() => {
        const said = (one) => one.getAttribute("aria-label") || one.title || one.textContent.trim();
        const named = (one) => said(one) || one.labels?.length;
        const all = [...document.querySelectorAll("input:not([type=hidden]), select, button, a, iframe, svg, table")];
        const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
        const wrong = all.filter((one) => !named(one)).map((one) => one.outerHTML.slice(0, 80));
        const heads = document.querySelectorAll("h1, main, body > header, footer").length === 4;
        return [...wrong, ...ids.filter((id, at) => ids.indexOf(id) !== at), ...(heads ? [] : ["landmarks"])];
    }"""
    )


@pytest.fixture
def table(tmp_path):
    people().write_csv(tmp_path / "applicants.csv")
    return tmp_path / "applicants.csv"


def test_from_upload_to_download(bench, open_bench, table):
    with open_bench(expect_messages=True) as page:
        picture(page, "start")
        page.set_input_files("#file", table)
        page.wait_for_selector("form.settings", timeout=LONG)
        assert page.locator("#score").input_value() == "score"
        assert page.locator(".note li").count() == 3  # an identifier, a leak and a proxy
        page.check("input[name=drop][value=salary]")
        picture(page, "data")
        page.uncheck("input[name=sensitive][value=sex]")
        press(page, "Save and continue")
        assert "at least one sensitive column" in page.inner_text("#error-sensitive")
        page.wait_for_function("() => document.activeElement.name === 'sensitive'")
        page.check("input[name=sensitive][value=sex]")
        press(page, "Save and continue")

        page.fill("#thresholds", "half")
        press(page, "Audit")
        assert "Not a threshold of these scores: half" in page.inner_text("#error-thresholds")
        assert page.locator("#thresholds").input_value() == "half"  # nothing typed is lost
        assert page.evaluate("() => document.activeElement.id") == "thresholds"
        page.fill("#thresholds", "0.5, top 10%")
        press(page, "Audit")
        finished(page)
        assert page.locator("main .verdict").inner_text().startswith("Verdict\n\nThe two groups are scored differently")
        frame = page.frame_locator("iframe")
        frame.locator("h1").wait_for(timeout=LONG)
        picture(page, "audit")
        with page.expect_download() as download:
            page.get_by_role("link", name="JSON").click()
        audit = ft.Audit.from_json(download.value.path())
        assert audit.verdict.status == "matters"
        assert len(audit.thresholds) == 2

        page.get_by_role("link", name="Choose").click()
        page.check("input[value=repair]")
        send(page, "Start")
        finished(page)
        page.check("input[value=train]")
        page.check("input[value=blind]")
        send(page, "Start")
        finished(page)
        assert page.locator(".curve h2").all_inner_texts() == [
            "Repair the scores of the file",
            "Blind: the group is not used to score",
        ]
        page.locator("#curve-repair svg a").nth(5).focus()
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("curve=repair&point=5"))
        before, after = (
            float(page.locator(f"#curve-repair .beside tr:nth-child(3) td:nth-child({k})").inner_text()) for k in (2, 3)
        )
        assert after < before
        picture(page, "choose")
        press(page.locator("#curve-repair"), "Take this one away")
        send(page, "Make the files")
        finished(page)
        page.frame_locator("iframe").locator("h1").wait_for(timeout=LONG)
        picture(page, "take")
        with page.expect_download() as download:
            page.get_by_role("link", name="File with repaired scores").click()
        repaired = pl.read_csv(download.value.path())
        assert repaired.columns == [*people().columns, "score_repaired"]
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        press(page, "Copy")
        assert page.evaluate("() => navigator.clipboard.readText()").startswith("fairtransport repair ")
        name = page.url.split("/")[-2]
        assert len(page.seen.messages) == 2  # the forms without groups and with a wrong threshold, status 422

    stored = json.loads((bench[0].projects.home / name / "project.json").read_text())
    assert "F" not in json.dumps(stored["settings"]).replace("False", "")  # roles and settings, no row
    bench[0].projects.open.clear()  # as after a restart: the project is reopened as it was
    with open_bench() as page:
        page.goto(f"{bench[1]}p/{name}/take")
        finished(page)
        assert page.locator(".verdict").count() == 2
        page.get_by_role("link", name="Choose").click()
        assert "point=5" in page.locator("#curve-repair svg a[aria-current]").get_attribute("href")
        page.get_by_role("link", name="Audit", exact=True).click()
        assert page.locator("#thresholds").input_value() == "0.5, top 10%"


@pytest.mark.parametrize(("shipped", "action"), [("adult", "repair"), ("german", "train"), ("communities", "repair")])
def test_shipped_data_sets_are_audited_in_three_clicks_back_returns_and_files_are_taken(open_bench, shipped, action):
    with open_bench() as page:
        page.click(f"button[value={shipped}]")
        page.wait_for_selector("form.settings", timeout=LONG)
        press(page, "Save and continue")
        press(page, "Audit")
        page.wait_for_selector(".verdict", timeout=LONG)
        page.go_back()
        page.wait_for_selector("h1")
        page.go_forward()
        page.wait_for_selector(".verdict")
        page.get_by_role("link", name="Choose").click()
        page.check(f"input[value={action}]")
        send(page, "Start")
        page.locator("summary").first.click()
        page.fill("#min_size", "25")  # typed while the job runs, and the field has not been left when it ends
        finished(page)
        page.wait_for_selector(".curve")
        assert page.locator("#min_size").input_value() == "25"
        if not page.locator(".curve .note").count():  # the job had ended before
            with page.expect_response("**/choose"):
                page.locator("#min_size").blur()
            page.reload()
        assert page.locator(".curve .note").count() == 1  # settings have changed since
        press(page, "Take this one away")
        send(page, "Make the files")
        finished(page)
        assert page.locator(".verdict").count() == 2
        with page.expect_download() as download:
            page.get_by_role("link", name="File with").click()
        made = pl.read_parquet(download.value.path())
        assert made.columns[-1] == ("score_repaired" if action == "repair" else "fair_score")
        assert made[made.columns[-1]].null_count() == 0


def pay_table():
    """A number to predict, and no score."""
    table, rng = people(), np.random.default_rng(1)
    pay = 2000 + 30 * table["hours"].to_numpy() + rng.normal(0, 100, len(table))
    return table.drop("score", "hired", "salary").with_columns(pay=pay.round(2))


@pytest.mark.parametrize(
    ("ending", "link", "read"),
    [
        ("xlsx", "File with repaired scores", pl.read_csv),  # Excel files are not written
        ("feather", "File with the new scores", pl.read_ipc),
        ("jsonl", "File with repaired scores", pl.read_ndjson),
    ],
)
def test_other_formats_and_numbers_to_predict_from_upload_to_download(open_bench, tmp_path, ending, link, read):
    """Scores by demographic parity in Excel; pay, a number, in Feather; equalized odds within regions in JSON lines."""
    table, path = pay_table() if ending == "feather" else people(), tmp_path / f"applicants.{ending}"
    if ending == "xlsx":
        table.to_pandas().to_excel(path, index=False)
    else:
        write_table(path, table)
    with open_bench() as page:
        page.set_input_files("#file", path)
        page.wait_for_selector("form.settings", timeout=LONG)
        if ending == "feather":
            page.select_option("#label", "pay")
            page.fill("#pos_label", "")
        press(page, "Save and continue")
        page.get_by_role("link", name="Choose").click()
        if ending != "feather":
            page.check("input[value=repair]")
        if ending == "jsonl":
            page.locator("summary").first.click()
            page.select_option("#criterion", "equalized_odds")
            page.check("input[name=strata][value=region]")
        send(page, "Start")
        finished(page)
        assert page.locator("section.error").count() == 0
        heads = page.locator(".curve caption + thead").first.inner_text()
        assert ("Missed positives" in heads) == (ending != "feather")
        press(page, "Take this one away")
        send(page, "Make the files")
        finished(page)
        assert page.locator(".verdict").count() == 2
        with page.expect_download() as download:
            page.get_by_role("link", name=link).click()
        taken = read(download.value.path())
        assert taken.columns == [*table.columns, "fair_score" if ending == "feather" else "score_repaired"]
        assert len(taken) == len(table)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_two_million_rows_are_audited_and_repaired_where_they_are_in_bounded_memory(bench, open_bench, tmp_path):
    n = 2_000_000
    table = people(2000).drop("person").sample(n, with_replacement=True, seed=0)
    table.with_columns(note=pl.lit("x" * 500)).write_parquet(tmp_path / "people.parquet")  # 1 GB in memory
    with open_bench() as page:
        page.fill("#path", str(tmp_path / "people.parquet"))
        press(page, "Open")
        page.wait_for_selector("form.settings", timeout=LONG)
        assert re.search(r"the first 1\d\d,\d{3} rows are described", page.inner_text("main"))
        press(page, "Save and continue")
        project = bench[0].projects.open[page.url.split("/")[-2]]

        def peak(button):
            """Return the kB that a job takes, of which the libraries take about 350,000."""
            press(page, button)
            most = 0
            while project.job.running:
                with contextlib.suppress(OSError, IndexError):
                    status = Path(f"/proc/{project.job._process.pid}/status").read_text()
                    most = max(most, int(status.split("VmHWM:")[1].split()[0]))
                page.wait_for_timeout(20)
            finished(page)
            assert page.locator("section.error").count() == 0
            return most

        assert peak("Audit") < 700_000
        assert project.results["audit"]["rows"] == n
        assert [file.name for file in project.folder.iterdir() if file.stat().st_size > 5_000_000] == []  # no copy
        page.get_by_role("link", name="Choose").click()
        page.check("input[value=repair]")
        assert peak("Start") < 1_500_000  # scores, labels and groups are in memory, and the other columns are not
        press(page, "Take this one away")
        assert peak("Make the files") < 1_000_000
        assert pl.scan_parquet(project.folder / "repaired.parquet").select(pl.len()).collect().item() == n


def test_training_survives_a_reload_is_seen_by_two_tabs_and_can_be_cancelled(bench, open_bench, tmp_path):
    people(400_000).drop("score", "salary").write_parquet(tmp_path / "many.parquet")
    with open_bench() as page:
        page.fill("#path", str(tmp_path / "many.parquet"))
        press(page, "Open")
        page.wait_for_selector("form.settings", timeout=LONG)
        press(page, "Save and continue")
        assert page.url.endswith("/choose")
        send(page, "Start")
        job = bench[0].projects.open[page.url.split("/")[-2]].job
        while job.running and job.share <= 0.05:
            time.sleep(0.005)
        os.kill(job._process.pid, signal.SIGSTOP)  # however slow the browser is: the training does not end before it
        assert job.running
        page.wait_for_function("() => document.querySelector('#job progress').value > 0.04", timeout=LONG)
        page.reload()
        assert page.locator("#job progress").evaluate("(bar) => bar.value") > 0.04
        other = page.context.new_page()
        other.goto(page.url)
        assert other.locator("#job").is_visible()
        press(other, "Start")  # one job at a time
        assert "Another step of this project is running" in other.inner_text("main")
        press(other, "Cancel")
        finished(page)
        assert "Cancelled" in page.inner_text("main")
        assert page.locator(".curve").count() == 0
        assert page.locator("input[value=aware]").is_checked()


def test_a_server_that_does_not_answer_is_said_and_asked_again(bench, open_bench, table):
    with open_bench(expect_messages=True) as page:
        page.fill("#path", str(table))
        press(page, "Open")
        page.wait_for_selector("form.settings", timeout=LONG)
        job = bench[0].projects.open[page.url.split("/")[-2]].job
        job.running = True
        page.route("**/job", lambda route: route.abort())
        page.reload()
        page.get_by_text("The workbench does not answer").wait_for(timeout=LONG)
        job.running = False
        page.unroute("**/job")
        finished(page)


def test_hostile_names_are_text_everywhere(open_bench, tmp_path):
    names = dict(
        zip(("sex", "score", "hired", "region"), (HOSTILE[0], HOSTILE[5], HOSTILE[1], HOSTILE[4]), strict=True)
    )
    people().rename(names).with_columns(pl.lit(HOSTILE[5]).alias("constant")).write_parquet(
        tmp_path / "hostile.parquet"
    )
    with open_bench() as page:
        page.set_input_files("#file", tmp_path / "hostile.parquet")
        page.wait_for_selector("form.settings", timeout=LONG)
        page.select_option("#score", names["score"])
        page.select_option("#label", names["hired"])
        page.get_by_role("checkbox", name=names["sex"], exact=True).check()
        assert page.locator("main img, main script").count() == 0
        press(page, "Save and continue")
        press(page, "Audit")
        page.wait_for_selector(".verdict", timeout=LONG)
        assert names["score"] in page.inner_text(".code pre")
        assert page.locator("main img, main script").count() == 0


def test_a_file_that_is_not_a_table_is_explained_in_place(open_bench, tmp_path):
    (tmp_path / "photo.parquet").write_bytes(b"\x89PNG" * 100)
    with open_bench(expect_messages=True) as page:
        page.fill("#path", str(tmp_path / "absent.csv"))
        press(page, "Open")
        assert "There is no such file" in page.inner_text("#error-path")
        assert page.locator("#path").input_value().endswith("absent.csv")
        page.set_input_files("#file", files=[{"name": "photo.png", "mimeType": "image/png", "buffer": b"x"}])
        page.wait_for_selector("#upload-error:not([hidden])")
        page.fill("#path", str(tmp_path / "photo.parquet"))
        press(page, "Open")
        page.wait_for_selector("section.error", timeout=LONG)
        assert "is not a Parquet file" in page.inner_text("section.error")
        assert page.locator("#path").input_value().endswith("photo.parquet")


def test_a_full_disk_is_explained_and_nothing_typed_is_lost(open_bench, table, monkeypatch):
    with open_bench(expect_messages=True) as page:
        page.fill("#path", str(table))
        press(page, "Open")
        page.wait_for_selector("form.settings", timeout=LONG)
        press(page, "Save and continue")

        def full(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(projects, "write_atomically", full)
            page.fill("#thresholds", "0.25")
            press(page, "Audit")
            assert "The disk is full" in page.inner_text("[role=alert]")
            assert page.locator("#thresholds").input_value() == "0.25"
        press(page, "Audit")
        page.wait_for_selector(".verdict", timeout=LONG)


def ask(url, method="GET", path="/", **headers):
    host = url.split("/")[2]
    connection = http.client.HTTPConnection(host, timeout=30)
    connection.request(method, path, headers={"Host": host, **{k.replace("_", "-"): v for k, v in headers.items()}})
    answer = connection.getresponse()
    status, body = answer.status, answer.read().decode()
    connection.close()
    return status, body


def test_only_the_browser_that_was_opened_is_admitted(bench, admitted):
    url = bench[1]
    cookie = "; ".join(f"{one['name']}={one['value']}" for one in admitted["storage_state"]["cookies"])
    assert admitted["storage_state"]["cookies"][0]["sameSite"] == "Strict"
    assert admitted["storage_state"]["cookies"][0]["httpOnly"]
    own = url.rstrip("/")
    assert ask(url, Cookie=cookie)[0] == 200
    assert ask(url)[0] == 403
    assert ask(url, path=f"/?token={TOKEN}")[0] == 403  # it works once
    assert ask(url, path="/?token=wrong")[0] == 403
    assert ask(url, Cookie=cookie.replace("=", "=x"))[0] == 403
    assert ask(url, Cookie=cookie, Host="evil.example")[0] == 403  # a name that resolves to this machine
    assert ask(url, "POST", "/open", Cookie=cookie, Origin="http://evil.example")[0] == 403
    assert ask(url, "POST", "/open", Cookie=cookie)[0] == 403  # a form without an origin
    assert ask(url, Cookie=cookie, Sec_Fetch_Site="cross-site")[0] == 403
    assert ask(url, "POST", "/open", Cookie=cookie, Origin=own)[0] == 422
    for path in ("/p/..%2f..%2fetc/data", "/p/x/file/..%2fproject.json", "/p/none/file/project.json"):
        assert ask(url, path=path, Cookie=cookie)[0] in {303, 404}
