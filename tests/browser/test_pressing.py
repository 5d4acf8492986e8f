"""People press a button for a tenth of a second, and have just left the field before it."""

from __future__ import annotations

from pathlib import Path

from everything import everything
from playwright.sync_api import Browser, expect
from steps import PRESS_MS
from workshop import Workshop


def test_what_is_pressed_after_typing_stays_under_the_pointer(shared_workshop: Workshop, chromium: Browser) -> None:
    with shared_workshop.window(chromium, "operator") as page:
        page.goto(f"{shared_workshop.url}/plan")
        page.get_by_label("Model", exact=True).fill(str(shared_workshop.model))
        link = page.get_by_role("link", name="Build this")
        expect(link).to_be_visible()
        link.click(delay=PRESS_MS)  # the field loses the focus, and has changed
        expect(page.get_by_role("heading", level=1)).to_have_text("New build")


def test_what_refreshes_itself_stays_while_it_is_pressed(chromium: Browser, tmp_path: Path) -> None:
    with everything(tmp_path) as console, console.browser(chromium, "viewer") as context, context.new_page() as page:
        page.goto(f"{console.url}/builds")
        link = page.get_by_role("row").get_by_role("link").first
        address = link.get_attribute("href")
        link.hover()
        page.mouse.down()
        for _ in range(2):  # it is there, and put in
            with page.expect_response("**/builds/table*"):
                pass
        page.mouse.up()
        expect(page).to_have_url(f"{console.url}{address}")
