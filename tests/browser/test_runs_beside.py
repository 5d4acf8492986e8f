"""Runs side by side in Chromium: chosen with buttons, and printed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from everything import RUNS_BESIDE, Everything, everything
from playwright.sync_api import Browser, Page, expect

IDS = [f"{RUNS_BESIDE + 10 * kind:012x}" for kind in range(3)]
ADDRESS = "/benchmarks/compare?" + "&".join(f"run={each}" for each in IDS)


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everything]:
    with everything(tmp_path_factory.mktemp("a console with runs")) as console:
        yield console


@pytest.fixture
def page(console: Everything, chromium: Browser) -> Iterator[Page]:
    options = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"}
    with console.browser(chromium, "viewer", **options) as context, context.new_page() as page:
        page.goto(f"{console.url}{ADDRESS}")
        yield page


def test_buttons_change_what_is_compared_and_the_address_keeps_it(page: Page) -> None:
    page.get_by_role("button", name="Make run 2 the base").click()
    expect(page).to_have_url(re.compile(f"base={IDS[1]}$"))
    page.get_by_role("button", name="Compare at concurrency 1", exact=True).click()
    expect(page).to_have_url(re.compile(f"base={IDS[1]}&at=1$"))
    page.get_by_role("button", name="Take run 3 out").click()
    expect(page).not_to_have_url(re.compile(IDS[2]))
    row = page.get_by_role("row").filter(has_text=IDS[0])
    expect(row).to_contain_text("slower")
    page.get_by_label("More runs, by id").fill(IDS[2])
    page.get_by_role("button", name="Add").click()
    expect(page).to_have_url(re.compile(f"run={IDS[0]}&run={IDS[1]}&run={IDS[2]}&base={IDS[1]}&at=1$"))
    page.go_back()
    expect(page).not_to_have_url(re.compile(IDS[2]))


def test_on_paper_nothing_is_cut_off_or_asks_to_be_pressed(page: Page) -> None:
    page.set_viewport_size({"width": 1040, "height": 1400})  # a page of A4, on its side
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.get_by_role("button", name="Take run 3 out")).to_be_hidden()
    expect(page.locator(".compare-more:visible")).to_have_count(0)
    expect(page.get_by_text("faster").first).to_be_visible()
    cut = page.locator(".compare-runs, table.diff").evaluate_all(
        "tables => tables.filter(each => each.getBoundingClientRect().right > document.documentElement.clientWidth + 1).length"
    )
    assert cut == 0
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)")
