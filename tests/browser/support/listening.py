"""What goes wrong in a tab without being seen: scripts that fail, what the policy forbids, and what is not there."""

from __future__ import annotations

from playwright.sync_api import ConsoleMessage, Page, Response

__all__ = ["complaints_of"]

_AWAY = ("Failed to load resource", "htmx:sendError", "htmx:afterRequest")
"""What is told of a server that is away: some tests are about that, and pages come back by themselves."""


def complaints_of(page: Page) -> list[str]:
    """Listen to a tab; the list grows with what is heard."""
    complaints: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(_AWAY):
            complaints.append(f"{page.url}: {message.text}")

    def see(response: Response) -> None:
        if response.status >= 400 and "/static/" in response.url:
            complaints.append(f"{response.url}: {response.status}")

    page.on("pageerror", lambda error: complaints.append(f"{page.url}: {error}"))
    page.on("console", hear)
    page.on("response", see)
    return complaints
