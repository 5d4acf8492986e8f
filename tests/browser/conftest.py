"""Debian's Chromium against a real console. Skips with a reason where there is no Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from listening import complaints_of
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from real_console import PATIENCE_S, RealConsole
from steps import CHROMIUM_ARGUMENTS, make_first_account
from workshop import Workshop, workshop

from roundhouse.build.home import Home
from roundhouse.console.supervisor.folder import deployments_of
from roundhouse.console.supervisor.process import stop

expect.set_options(timeout=PATIENCE_S * 1000)  # nothing waits for so long that works, however busy the machine is


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for all tests of a module; each takes a context of its own.

    Not for all of them: while playwright runs, nothing else in this thread can run an event loop.
    """
    binary = shutil.which("chromium")
    if binary is None:
        pytest.skip("there is no chromium on PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=binary, args=CHROMIUM_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """A browser window's own cookies and storage."""
    with chromium.new_context(viewport={"width": 1280, "height": 900}) as context:
        yield context


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A tab. A script that fails, a file that is not there, and what the policy forbids fail the test."""
    page = context.new_page()
    complaints = complaints_of(page)
    yield page
    assert complaints == []


@pytest.fixture
def console(tmp_path: Path) -> Iterator[RealConsole]:
    """A new console with nothing in it."""
    home = Home(tmp_path / "a home")
    with RealConsole(home.path) as console:
        yield console
    for folder in deployments_of(home):  # they outlive the console, as they should
        stop(folder, drain_s=0)


@pytest.fixture(scope="session")
def shared_workshop(tmp_path_factory: pytest.TempPathFactory, tiny_model: Callable[[str], Path]) -> Iterator[Workshop]:
    """A console with a worker that many tests share: each builds something of its own, and leaves nothing under way."""
    with workshop(tmp_path_factory.mktemp("a workshop"), tiny_model("llama")) as made:
        yield made


@pytest.fixture
def admin(console: RealConsole, page: Page) -> Page:
    """The first account's tab, on the home page."""
    make_first_account(console, page)
    return page
