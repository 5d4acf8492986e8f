"""What is wrong with a page for somebody who sees, hears or types otherwise, or has a small screen."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from focusing import not_seen_to_have_focus
from playwright.sync_api import Page, expect

__all__ = ["problems_of"]

WIDTHS = (480, 360)
_AXE = Axe().axe_script
_OF_COLOUR = ["color-contrast", "link-in-text-block"]
_OF_WIDTH = ["scrollable-region-focusable"]
_MENUS = "main details[data-menu]"

_OPEN = "details => details.forEach(each => { each.open = true; })"
_BUILD = """() => {
  const problems = [];
  const say = (what, element) => problems.push(`${what}: ${element.outerHTML.slice(0, 160)}`);
  const headings = document.querySelectorAll("h1");
  if (headings.length !== 1 || !headings[0].innerText.trim()) problems.push(`${headings.length} h1`);
  const title = document.title.split(" · ");
  if (title.length !== 2 || !title[0].trim()) problems.push(`title ${document.title}`);
  for (const field of document.querySelectorAll("input:not([type=hidden]):not([hidden]), select, textarea")) {
    const named = field.getAttribute("aria-label") || field.getAttribute("aria-labelledby");
    if (!named && ![...field.labels].some(each => each.textContent.trim())) say("no label", field);
  }
  for (const form of document.forms) {
    const fields = [...form.elements].filter(each => each.type !== "hidden" && !each.disabled);
    const sends = [...form.elements].some(each => each.type === "submit");
    if (!sends && fields.length) say("no submit button", form);
  }
  return problems;
}"""
_WIDER = """() => {
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth <= clientWidth) return null;
  const out = [...document.querySelectorAll("main *")].find(each => each.getBoundingClientRect().right > clientWidth + 1
    && ![...ancestors(each)].some(above => getComputedStyle(above).overflowX !== "visible"));
  function* ancestors(each) { while ((each = each.parentElement) && each !== document.body) yield each; }
  return `${scrollWidth} px${out ? `, first ${out.outerHTML.slice(0, 160)}` : ""}`;
}"""


def problems_of(page: Page, complaints: list[str], *, whole: bool = True) -> list[str]:
    """Everything that is wrong with the page that is shown, wide and narrow.

    Args:
        page: where it is shown; it has loaded.
        complaints: what was heard from it meanwhile; they are taken.
        whole: whether axe looks at it in both themes, with its navigation and its menus; for one like a page that it has looked
            at so, its content in the light is enough.
    """
    expect(page.locator("[data-chart]:empty")).to_have_count(0)
    found = [*complaints, *page.evaluate(_BUILD)]
    page.locator("main details:not([data-menu])").evaluate_all(_OPEN)
    page.evaluate(_AXE)
    where = None if whole else "main"
    found += _serious(page, "", None, where)
    if whole:
        found += _in_the_dark(page)
    found += not_seen_to_have_focus(page)
    usual = page.viewport_size
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        if wider := page.evaluate(_WIDER):
            found.append(f"wider than {width} px: {wider}")
    found += _serious(page, f" at {WIDTHS[-1]} px", _OF_WIDTH, where)
    if usual is not None:
        page.set_viewport_size(usual)
    complaints.clear()  # axe tries to set styles, which the policy forbids
    return found


def _in_the_dark(page: Page) -> list[str]:
    """What is wrong there; and in menus, opened, in either theme."""
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    found = _serious(page, " in the dark", _OF_COLOUR)
    menus = page.locator(_MENUS)
    menus.evaluate_all(_OPEN)
    if menus.count():
        found += _serious(page, " in an open menu in the dark", None, _MENUS)
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    if menus.count():
        found += _serious(page, " in an open menu", _OF_COLOUR, _MENUS)
    return found


def _serious(page: Page, where: str, rules: list[str] | None, within: str | None = None) -> list[str]:
    options: dict[str, Any] = {"resultTypes": ["violations"], "preload": False} | ({"runOnly": rules} if rules else {})
    result = page.evaluate("([within, options]) => axe.run(within ?? document, options)", [within, options])
    return [
        f"{each['id']}{where}: {node['html'][:200]} ({node.get('failureSummary', '')[:300]})"
        for each in result["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
