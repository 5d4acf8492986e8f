"""The main things, done with a keyboard alone."""

from __future__ import annotations

from playwright.sync_api import Browser, Page, expect
from steps import PASSWORD
from workshop import Workshop

MOST_STOPS = 120
"""Nothing on a page is further away than that many tabs."""
_NAME = """() => {
  const { activeElement: at } = document;
  const label = at.getAttribute("aria-label") ?? [...at.labels ?? []].map(each => each.textContent).join(" ");
  return (label || at.textContent).trim();
}"""
_RING = """() => {
  const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(document.activeElement);
  return (outlineStyle !== "none" && outlineWidth !== "0px") || boxShadow !== "none";
}"""


def tab_to(page: Page, name: str, *, key: str = "Tab") -> None:
    """Press Tab until something with this name has the focus; wherever it is on the way, that is seen."""
    passed = []
    for _ in range(MOST_STOPS):
        page.keyboard.press(key)
        at = str(page.evaluate(_NAME))
        passed.append(at)
        assert page.evaluate(_RING), f"it is not seen that {at!r} has the focus"
        if at == name or at.startswith(f"{name} optional"):
            return
    raise AssertionError(f"{name!r} was not reached, but {passed}")


def test_a_build_is_asked_for_and_cancelled(shared_workshop: Workshop, chromium: Browser) -> None:
    with chromium.new_context(reduced_motion="reduce") as context, context.new_page() as page:
        press = page.keyboard.press
        page.goto(f"{shared_workshop.url}/builds")
        expect(page.get_by_label("Name")).to_be_focused()
        page.keyboard.type("the-operator")
        tab_to(page, "Password")
        page.keyboard.type(PASSWORD)
        press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Builds")  # where one wanted to go

        tab_to(page, "Skip to content")
        press("Enter")
        tab_to(page, "New build")
        press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("New build")
        tab_to(page, "Recipe")
        press("Control+A")
        page.keyboard.type(shared_workshop.recipe("by-keyboard"))
        expect(page.locator("#answer")).to_contain_text("LlamaForCausalLM, 2 layers")
        expect(page.get_by_label("Recipe")).to_be_focused()  # the answer came without taking it
        tab_to(page, "Queue this build")
        press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Build by-keyboard")

        tab_to(page, "Cancel…")
        press("Space")
        expect(page.get_by_role("button", name="Cancel it")).to_be_visible()
        press("Escape")
        expect(page.get_by_role("button", name="Cancel it")).to_be_hidden()
        press("Enter")
        with page.expect_response("**/live?*"):  # what is open stays so while the page goes on
            pass
        tab_to(page, "Cancel it")
        press("Enter")
        expect(page.locator("#page-chip")).to_have_text("cancelled")
        tab_to(page, "Try again")


def test_the_menu_of_a_narrow_page(shared_workshop: Workshop, chromium: Browser) -> None:
    with shared_workshop.window(chromium, "viewer", reduced_motion="reduce") as page:
        page.set_viewport_size({"width": 480, "height": 800})
        page.goto(f"{shared_workshop.url}/")
        menu, engines = page.get_by_text("Menu", exact=True), page.get_by_role("link", name="Engines")
        tab_to(page, "Menu")
        page.keyboard.press("Enter")
        expect(engines).to_be_visible()
        tab_to(page, "Engines")
        page.keyboard.press("Escape")
        expect(engines).to_be_hidden()
        expect(menu.locator("xpath=..")).to_be_focused()  # where one was
        page.keyboard.press("Space")
        expect(engines).to_be_visible()
        tab_to(page, "Plan")
        tab_to(page, "Menu", key="Shift+Tab")
        tab_to(page, "Engines")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Engines")
