"""What a page offers: the forms that can be sent, and the links."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import urlsplit

__all__ = ["Offered"]


class Offered(HTMLParser):
    """Reads a page as the server sent it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.sent_to: set[str] = set()
        """Where buttons that are not disabled post something to."""
        self.links: set[str] = set()
        """Paths on this console."""
        self._posts: dict[str, str] = {}
        self._form = ""
        self._elsewhere: list[str] = []
        self.feed(page)
        self.sent_to |= {self._posts[each] for each in self._elsewhere if each in self._posts}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "a" and (href := given.get("href") or "").startswith("/"):
            self.links.add(urlsplit(href).path)
        if tag == "form":
            self._form = given.get("id") or f"form {len(self._posts)}"
            if (given.get("method") or "get").lower() == "post":
                self._posts[self._form] = given.get("action") or ""
        if tag == "button" and (given.get("type") or "submit") == "submit" and "disabled" not in given:
            if "formaction" in given:
                if given.get("formmethod") != "get":
                    self.sent_to.add(given["formaction"] or "")
            else:
                self._elsewhere.append(given.get("form") or self._form)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = ""
