"""The site is built with warnings as errors; links and anchors lead somewhere; nothing is fetched from elsewhere."""

import importlib
import os
import subprocess
import sys
import threading
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.docs
LONG = 120_000  # milliseconds, on a busy machine


class Page(HTMLParser):
    """What a page links to, loads, and can be linked to by."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.ids, self.pictures = [], [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        elif tag == "link" and found.get("rel") in {"stylesheet", "icon", "preload", "prefetch", "preconnect"}:
            self.loaded.append(found["href"])
        elif found.get("src"):
            self.loaded.append(found["src"])
        if tag == "img":
            self.pictures.append((found.get("src"), found.get("alt")))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "docs"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        command,  # --quiet would let warnings pass
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "WARNING" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    """All pages of the site; those that an example wrote are whole documents of their own."""
    return {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html") if path.name != "404.html"}


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "docs"))
    return importlib.import_module


def test_every_link_and_anchor_leads_somewhere(site, pages):
    broken = []
    for path, page in pages.items():
        for address in [*page.links, *page.loaded]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if goal.is_dir():
                goal /= "index.html"
            if (
                not goal.is_relative_to(site)
                or not goal.exists()
                or (parts.fragment and goal in pages and unquote(parts.fragment) not in pages[goal].ids)
            ):
                broken.append((path.name, address))
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(site, pages):
    outside = {address for page in pages.values() for address in page.loaded if urlsplit(address).netloc}
    assert outside == set()
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert "url(http" not in text
        assert "@import" not in text


def test_every_page_of_docs_is_in_the_site_and_reachable(site, pages):
    linked = {
        (path.parent / unquote(urlsplit(link).path)).resolve() for path, page in pages.items() for link in page.links
    }
    for path in (ROOT / "docs").rglob("*.md"):
        built = site / path.relative_to(ROOT / "docs").with_suffix(".html")
        assert built in pages
        assert built in linked


def test_pages_say_the_version(site):
    version = importlib.import_module("fairtransport").__version__
    assert f"fairtransport {version}" in (site / "index.html").read_text(encoding="utf-8")
    for name, start in {"CHANGELOG.md": "## ", "CITATION.cff": "version: "}.items():
        assert f"\n{start}{version}" in (ROOT / name).read_text(encoding="utf-8")


def test_every_exported_name_is_in_the_reference(site, pages, tool):
    api = tool("api_pages")
    shown = {one.rpartition(".")[2] for path, page in pages.items() if path.parent == site / "api" for one in page.ids}
    names = {name for module in api.PACKAGES for name in api.exports(ROOT, module)}
    assert names <= shown, names - shown
    assert len(names) > 60
    for name in ("TransportClassifier", "CounterfactualTransport", "TransportPenalty", "Strata"):
        text = (site / "api" / f"{name}.html").read_text(encoding="utf-8")  # a page of its own, the sentence first
        assert text.index("<details><summary>Signature") > text.index('class="doc doc-contents first"')


def test_gallery_has_every_example_with_what_it_wrote(site, pages, tool):
    found = tool("gallery").examples(ROOT)
    assert sum(result.endswith(".png") for example in found for result in example.results) >= 15  # run, with a picture
    index = pages[site / "gallery" / "index.html"]
    for example in found:
        assert f"{example.name}.html" in index.links
        for result in example.results:
            assert (site / "gallery" / result).stat().st_size > 5000
        if example.name.startswith("plot_"):
            assert any(source == f"{example.name}.png" for source, _ in index.pictures)


def test_an_example_that_takes_too_long_is_named(tool, tmp_path, monkeypatch):
    gallery = tool("gallery")
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "slow.py").write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setattr(gallery, "_TIMEOUT_S", 0.1)
    monkeypatch.setattr(gallery, "_RESULTS", {"slow": ("slow.html",)})
    with pytest.raises(RuntimeError, match=r"^examples/slow.py did not finish within 0.1 seconds.$"):
        gallery.gallery_files(tmp_path, tmp_path / "cache")
    assert not any((tmp_path / "cache").iterdir())


def test_pictures_are_told_to_those_who_do_not_see_them(pages):
    for path, page in pages.items():
        if path.parent.name != "gallery":
            assert all(alt for _, alt in page.pictures), path.name


def test_in_a_browser(site):
    playwright = importlib.import_module("playwright.sync_api")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = f"http://127.0.0.1:{server.server_address[1]}/"
    shutil = importlib.import_module("shutil")
    own = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    messages, outside = [], []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=own, args=["--no-sandbox", "--disable-gpu"])
        for width, scheme in ((1280, "light"), (390, "dark")):
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
            page = context.new_page()
            page.set_default_timeout(LONG)
            page.on("console", lambda message: messages.append(message.text))
            page.on("pageerror", lambda error: messages.append(str(error)))
            page.on("request", lambda request: outside.append(request.url))
            for name in ("index", "method", "audit", "gallery/index", "gallery/plot_stream", "api/report", "api/Audit"):
                page.goto(f"{home}{name}.html")
                assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            context.close()
        browser.close()
    server.shutdown()
    server.server_close()
    assert messages == []
    assert {address for address in outside if not address.startswith((home, "data:", "blob:"))} == set()


def test_search_works_from_a_disk(site):
    playwright, shutil = importlib.import_module("playwright.sync_api"), importlib.import_module("shutil")
    own = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=own, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(LONG)
        page.goto((site / "api" / "Audit.html").as_uri())
        page.click("input.md-search__input")
        page.keyboard.type("noise floor", delay=50)
        page.wait_for_selector(".md-search-result__item")
        browser.close()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass
