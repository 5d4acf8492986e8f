"""Whether somebody with a keyboard sees where they are, and stays there."""

from __future__ import annotations

from playwright.sync_api import Page

__all__ = ["lost_by_refreshing", "not_seen_to_have_focus"]

_CAN_HAVE_FOCUS = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']"
_SEEN = """selector => {
  const looks = element => {
    // What shows that a hidden field has the focus is drawn around its label, or around both.
    const near = [element, element.nextElementSibling, element.parentElement, element.closest("label")];
    return near.map(each => {
      if (!each) return "";
      const style = getComputedStyle(each);
      return [style.outlineStyle, style.outlineWidth, style.outlineColor, style.boxShadow].join();
    }).join(";");
  };
  const unseen = [];
  document.activeElement.blur();
  for (const element of document.querySelectorAll(selector)) {
    if (!element.checkVisibility({ visibilityProperty: true }) || element.disabled) continue;
    const before = looks(element);
    element.focus({ preventScroll: true });
    if (document.activeElement !== element) unseen.push(`cannot have the focus: ${element.outerHTML.slice(0, 160)}`);
    else if (looks(element) === before) unseen.push(`focus is not seen: ${element.outerHTML.slice(0, 160)}`);
    element.blur();
  }
  return unseen;
}"""
_LOST = """async selector => {
  const lost = [];
  const parts = () => [...document.querySelectorAll("[hx-get][hx-trigger^=every]")];
  const within = part => [...part.querySelectorAll(selector)].filter(each => each.checkVisibility() && !each.disabled);
  const refresh = async index => {
    const part = parts()[index];
    const swap = { source: part, target: part, swap: "outerHTML", select: part.getAttribute("hx-select") ?? undefined };
    await htmx.ajax("GET", part.getAttribute("hx-get"), swap);
    await new Promise(done => setTimeout(done, 50));
  };
  for (let index = 0; index < parts().length; index += 1) {
    const many = within(parts()[index]).length;
    for (const at of new Set([0, 1, Math.floor(many / 2), many - 1])) {
      const element = within(parts()[index])[at];
      if (!element) continue;
      element.focus();
      await refresh(index);
      const now = document.activeElement;
      if (within(parts()[index])[at] !== now) lost.push(`${element.outerHTML.slice(0, 160)} to ${now.outerHTML.slice(0, 80)}`);
    }
    const scrolls = each => each.scrollWidth > each.clientWidth + 40;
    const frames = () => [...parts()[index].querySelectorAll(".table-frame")].filter(scrolls);
    for (const each of frames()) each.scrollLeft = 40;
    await refresh(index);
    for (const each of frames()) if (each.scrollLeft !== 40) lost.push(`scrolled back: ${each.ariaLabel}`);
    const closed = () => [...parts()[index].querySelectorAll("details:not([open])")];
    for (const each of closed()) each.open = true;
    await refresh(index);
    for (const each of closed()) lost.push(`closed: ${each.textContent.trim().slice(0, 80)}`);
  }
  return lost;
}"""


def not_seen_to_have_focus(page: Page) -> list[str]:
    """What can have the focus and looks the same with it. Styles must not take time."""
    page.keyboard.press("Tab")  # so that the page knows that somebody uses a keyboard
    return list(page.evaluate(_SEEN, _CAN_HAVE_FOCUS))


def lost_by_refreshing(page: Page) -> list[str]:
    """What had the focus, was scrolled or open, in a part of the page that comes again and again, and is not after it came."""
    return list(page.evaluate(_LOST, _CAN_HAVE_FOCUS))
