"""From the link in the terminal to the home page."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from real_console import RealConsole


def test_the_first_link_leads_to_the_home_page_and_works_once(console: RealConsole, admin: Page) -> None:
    expect(admin.get_by_role("heading", level=1)).to_have_text("Home")
    admin.goto(console.first_link)
    expect(admin.get_by_role("heading", level=1)).to_have_text("The first account has been made")


def test_a_restart_keeps_accounts_and_logins(console: RealConsole, admin: Page) -> None:
    console.stop()
    console.start()
    assert not any("first account" in line for line in console.lines)
    admin.reload()
    expect(admin.get_by_role("heading", level=1)).to_have_text("Home")
