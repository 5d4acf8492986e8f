"""The look of the console in Chromium: policy, themes, accessibility, and what the scripts do."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from gallery import Gallery, serving
from playwright.sync_api import Browser, Page, expect


@pytest.fixture(scope="module")
def gallery() -> Iterator[Gallery]:
    with serving() as gallery:
        yield gallery


@pytest.fixture
def shown(gallery: Gallery, page: Page) -> Page:
    """The gallery, with its chart drawn. The fixture ``page`` fails on anything that the policy forbids."""
    gallery.log_requests.clear()
    page.goto(f"{gallery.address}/gallery")
    expect(page.locator(".u-wrap")).to_be_visible()
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_stands_in_the_way_of_anybody(gallery: Gallery, chromium: Browser, scheme: str) -> None:
    with chromium.new_context(color_scheme="dark" if scheme == "dark" else "light") as context:
        page = context.new_page()
        page.goto(f"{gallery.address}/gallery?danger")
        expect(page.locator(".u-wrap")).to_be_visible()
        for summary in page.locator(".disclosure > summary").all():
            summary.click()
        page.locator(".danger > summary").click()
        found = Axe().run(page).response["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    assert serious == [], json.dumps([(each["id"], [node["html"] for node in each["nodes"]]) for each in serious], indent=1)


def test_the_theme_is_kept_and_the_chart_follows(shown: Page) -> None:
    def ground() -> str:
        return str(shown.evaluate("getComputedStyle(document.body.parentElement).backgroundColor"))

    light = ground()
    shown.get_by_role("button", name="Dark").click()
    expect(shown.locator("html")).to_have_attribute("data-theme", "dark")
    assert ground() != light
    expect(shown.locator(".u-wrap")).to_have_count(1)
    shown.reload()
    expect(shown.locator("html")).to_have_attribute("data-theme", "dark")
    expect(shown.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")


def test_a_log_resumes_where_it_broke_off_and_writes_text(gallery: Gallery, shown: Page) -> None:
    log = shown.get_by_role("log", name="Log", exact=True)
    expect(log).to_contain_text("Error: the last line")
    lines = log.locator(".log-text").all_text_contents()
    assert lines[-3:] == ["resumed", "<b>no markup</b>", "Error: the last line"]
    assert gallery.log_requests == [("1025", None), ("1025", "1027")]
    shown.get_by_role("button", name="First error").first.click()
    expect(log.locator(".log-found")).to_have_text("1028Error: the last line")


def test_a_log_comes_again_after_a_proxy_had_no_answer(gallery: Gallery, page: Page) -> None:
    gallery.log_refusals = 1
    page.goto(f"{gallery.address}/gallery")
    expect(page.get_by_role("log", name="Log", exact=True)).to_contain_text("Error: the last line", timeout=30_000)
    expect(page.locator("[data-log-state]").first).to_have_text("ended")


def test_a_page_that_nobody_looks_at_holds_no_connection(gallery: Gallery, page: Page) -> None:
    page.add_init_script("Object.defineProperty(document, 'hidden', { get: () => window.nobodyLooks ?? true });")
    gallery.log_requests.clear()
    page.goto(f"{gallery.address}/gallery")
    expect(page.locator(".u-wrap")).to_be_visible()
    assert gallery.log_requests == []
    page.evaluate("window.nobodyLooks = false; document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.get_by_role("log").first).to_contain_text("the last line")
    assert gallery.log_requests[0] == ("1025", None)


def test_numbers_live(shown: Page) -> None:
    expect(shown.locator("[data-live-value=tokens_per_s]")).to_have_text("91.7")
    expect(shown.locator("[data-live-value=waiting]")).to_have_text("1,234")
    expect(shown.locator("[data-live-value=kv_bytes]")).to_have_text("127.2 MiB")
    expect(shown.locator("[data-live-value=pages]")).to_have_text("50.0%")


def test_copying_says_so(shown: Page) -> None:
    shown.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = shown.get_by_role("button", name="Copy curl")
    button.click()
    expect(button).to_have_class("icon-button copy copied")
    assert "v1/chat/completions" in shown.evaluate("navigator.clipboard.readText()")


def test_a_form_is_sent_once_and_says_so(shown: Page) -> None:
    shown.route("**/cancel", lambda route: route.fulfill(status=204))  # the page stays: this is what one sees meanwhile
    shown.get_by_role("button", name="Cancel build").click()
    expect(shown.get_by_role("button", name="cancelling…")).to_be_disabled()


def test_the_button_that_was_pressed_is_sent_along(gallery: Gallery, shown: Page) -> None:
    gallery.posts.clear()
    shown.get_by_role("button", name="Add to compare").click()
    shown.wait_for_load_state()
    expect(shown.locator(".u-wrap")).to_be_visible()
    assert gallery.posts[-1]["compare"] == "1"
    assert gallery.posts[-1]["weights"] == "int4_awq"


def test_dangers_ask_once_and_escape_keeps(shown: Page) -> None:
    summary = shown.locator(".danger > summary")
    summary.focus()
    shown.keyboard.press("Enter")
    expect(shown.get_by_text("Its benchmarks stay.")).to_be_visible()
    shown.keyboard.press("Escape")
    expect(shown.get_by_text("Its benchmarks stay.")).to_be_hidden()
    expect(summary).to_be_focused()


def test_the_first_key_leads_to_the_content(shown: Page) -> None:
    shown.keyboard.press("Tab")
    expect(shown.get_by_role("link", name="Skip to content")).to_be_focused()
    shown.keyboard.press("Enter")
    expect(shown.locator("main")).to_be_focused()


def test_no_page_is_wider_than_its_window(shown: Page) -> None:
    for width in (1280, 768, 480, 360):
        shown.set_viewport_size({"width": width, "height": 800})
        shown.wait_for_function(
            "document.querySelector('.u-wrap').clientWidth <= document.querySelector('.chart-plot').clientWidth"
        )
        assert shown.evaluate("document.documentElement.scrollWidth") == width


def test_everything_can_be_read_and_reached_without_scripts(gallery: Gallery, chromium: Browser) -> None:
    with chromium.new_context(java_script_enabled=False, viewport={"width": 480, "height": 800}) as context:
        page = context.new_page()
        page.goto(f"{gallery.address}/gallery")
        page.get_by_text("Menu", exact=True).click()
        expect(page.get_by_role("link", name="Engines").first).to_be_visible()
        expect(page.get_by_role("log").first).to_contain_text("roundhouse build smollm2-135m-int4")
        page.get_by_text("As a table").click()
        expect(page.get_by_role("region", name="Tokens per second")).to_be_visible()
        page.locator(".danger > summary").click()
        expect(page.get_by_role("button", name="Delete engine")).to_be_visible()
        assert page.locator("button:visible", has_text="Copy").count() == 0


def test_motion_stops_for_who_wants_none(gallery: Gallery, chromium: Browser) -> None:
    with chromium.new_context(reduced_motion="reduce") as context:
        page = context.new_page()
        page.goto(f"{gallery.address}/gallery")
        assert page.locator(".moves").first.evaluate("each => getComputedStyle(each).animationName") == "none"
