"""Two people at the same job, and people who click twice."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, expect
from workshop import BUILD_MS, Workshop, watched


def test_two_people_see_a_build_go_along_and_end(shared_workshop: Workshop, chromium: Browser) -> None:
    with shared_workshop.window(chromium, "operator") as asks, shared_workshop.window(chromium, "viewer") as looks:
        job_id = shared_workshop.queue(asks, "watched")
        looks.goto(f"{shared_workshop.url}/builds/{job_id}")
        for page in (asks, looks):
            expect(page.get_by_role("log")).to_contain_text("load:")
            expect(page.locator("#page-chip")).to_have_text("running")
        _is_offered(looks, [])
        _is_offered(asks, ["Cancel it"])
        for page in (asks, looks):
            expect(page.locator("#page-chip")).to_have_text("succeeded", timeout=BUILD_MS)
            expect(page.locator("[data-log-state]")).to_have_text("ended")
            expect(page.get_by_role("link", name="Open the engine")).to_be_visible()
        lines = watched(asks)
        assert lines == watched(looks)
        assert [number for number, _ in lines] == list(range(1, len(lines) + 1))
        assert lines[-1][1].startswith("publish:")


def test_what_one_cancels_the_other_sees_end(shared_workshop: Workshop, chromium: Browser) -> None:
    with shared_workshop.window(chromium, "operator") as cancels, shared_workshop.window(chromium, "admin") as sees:
        job_id = shared_workshop.queue(cancels, "stopped")
        sees.goto(f"{shared_workshop.url}/builds/{job_id}")
        expect(sees.get_by_role("log")).to_contain_text("plan:")
        expect(sees.locator("#page-chip")).to_have_text("running")
        cancels.get_by_text("Cancel…").click()
        cancels.get_by_role("button", name="Cancel it").click()
        for page in (cancels, sees):
            expect(page.locator("#page-chip")).to_have_text("cancelled")
            _is_offered(page, ["Try again"])
        # Who had the page open before cancels what has ended: they are told so, and nothing else happens.
        expect(sees.get_by_text("Cancel…")).to_have_count(0)


def test_who_clicks_twice_asks_once(shared_workshop: Workshop, chromium: Browser) -> None:
    with shared_workshop.window(chromium, "operator") as page, shared_workshop.window(chromium, "viewer") as looks:
        shared_workshop.fill(page, shared_workshop.recipe("clicked"))
        looks.goto(f"{shared_workshop.url}/builds?text=clicked")
        other = page.context.new_page()  # a tab with the same form, as a browser restores it
        shared_workshop.fill(other, shared_workshop.recipe("clicked"))
        key = page.locator("#build-form [name=idempotency_key]").input_value()
        other.locator("#build-form [name=idempotency_key]").evaluate("(field, key) => { field.value = key; }", key)
        page.get_by_role("button", name="Queue this build").dblclick()
        expect(page.get_by_role("heading", level=1)).to_have_text("Build clicked")
        other.get_by_role("button", name="Queue this build").click()
        expect(other.get_by_role("heading", level=1)).to_have_text("Build clicked")
        assert page.url == other.url
        (job,) = shared_workshop.jobs("clicked")
        assert page.url.endswith(f"/builds/{job.id}")
        looks.reload()
        expect(looks.get_by_role("region", name="Jobs").get_by_role("link", name="clicked")).to_have_count(1)
        page.get_by_text("Cancel…").click()
        page.get_by_role("button", name="Cancel it").click()
        expect(page.locator("#page-chip")).to_have_text("cancelled")


def _is_offered(page: Page, what: list[str]) -> None:
    """The buttons of a page's content that send something, once they are these."""
    buttons = page.locator("main form[method=post] button[type=submit]")
    expect(buttons).to_have_text([re.compile(rf"^\s*{each}\s*$") for each in what])
