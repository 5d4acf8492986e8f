"""People press a button for a tenth of a second, and have just left the field before it."""

from __future__ import annotations

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
