"""A browser without a screen: what tests of pages act as."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from starlette.testclient import TestClient

PASSWORD = "correct horse battery"
ORIGIN = "http://127.0.0.1"


class Browser(TestClient):
    """A client that behaves as a browser does: it says where a form comes from, and follows to the next page."""

    def form_token(self, path: str = "/") -> str:
        found = re.search(r'name="form_token" value="([^"]+)"', self.get(path).text)
        assert found is not None, f"{path} has no form token"
        return found[1]

    def submit(
        self,
        path: str,
        data: dict[str, str] | None = None,
        *,
        page: str = "/",
        files: Sequence[tuple[str, tuple[str, bytes]]] = (),
    ) -> object:
        """Send a form that a page of ours shows; files by the field's name, each with its own."""
        typed = {"form_token": self.form_token(page), **(data or {})}
        return self.post(path, data=typed, files=list(files) or None, headers={"origin": ORIGIN})

    def log_in(self, name: str, password: str = PASSWORD) -> None:
        answer = self.post("/login", data={"name": name, "password": password}, headers={"origin": ORIGIN})
        assert answer.status_code == 200, answer.text


BrowserMaker = Callable[..., Browser]
