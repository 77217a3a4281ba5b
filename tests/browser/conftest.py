"""A real Chromium without network: every request, message and dialog is recorded."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import sync_playwright

#: Names that a page must show as text.
HOSTILE = (
    "<script>alert(1)</script>",
    "=cmd()",
    "\U0001f600 \U0001f469\u200d\U0001f680",
    "x" * 300,
    "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd \u202eevil",
    '"><img src=x onerror=alert(2)>',
)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@dataclass
class Seen:
    """What happened while a page was open."""

    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)  # what no policy has stopped


@pytest.fixture(scope="session")
def chromium():
    with sync_playwright() as playwright:
        own = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=own, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_url(chromium):
    """Open an address; at the end of the test nothing may have gone wrong, unless it was expected."""

    @contextmanager
    def opened(url, *, width=1280, height=900, dark=False, expect_messages=False, **options):
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", **options
        )
        context.set_default_timeout(120_000)  # milliseconds, on a busy machine
        page, seen = context.new_page(), Seen()
        page.on("console", lambda message: seen.messages.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: seen.messages.append(f"error: {error}"))
        page.on("request", lambda request: seen.requests.append(request.url))
        page.on("dialog", lambda dialog: (seen.dialogs.append(dialog.message), dialog.dismiss()))
        context.route(
            lambda address: not address.startswith((url, "file:", "blob:", "data:")),
            lambda route: (seen.outside.append(route.request.url), route.abort()),
        )
        page.goto(url)
        page.seen = seen
        yield page
        context.close()
        assert seen.dialogs == []
        assert seen.outside == []
        if not expect_messages:
            assert seen.messages == []

    return opened


@pytest.fixture
def open_page(open_url):
    """Open a file."""
    return lambda path, **options: open_url(path.as_uri(), **options)
