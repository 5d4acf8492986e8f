"""What other sites can do with somebody's browser: nothing."""

from __future__ import annotations

import pytest
from browsing import ORIGIN, BrowserMaker


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": ORIGIN, "sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {},
    ],
)
def test_a_form_from_elsewhere_is_refused(browser: BrowserMaker, headers: dict[str, str]) -> None:
    viewer = browser("viewer")
    form = {"form_token": viewer.form_token()}
    assert viewer.post("/logout", data=form, headers=headers).status_code == 403
    assert viewer.get("/", follow_redirects=False).status_code == 200


@pytest.mark.parametrize("token", [None, "", "guessed", "é"])
def test_a_form_needs_the_token_of_its_login(browser: BrowserMaker, token: str | None) -> None:
    viewer = browser("viewer")
    form = {} if token is None else {"form_token": token}
    assert viewer.post("/logout", data=form, headers={"origin": ORIGIN}).status_code == 403
    assert viewer.get("/", follow_redirects=False).status_code == 200


def test_another_logins_token_is_worth_nothing(browser: BrowserMaker) -> None:
    viewer, operator = browser("viewer"), browser("operator")
    form = {"form_token": operator.form_token()}
    assert viewer.post("/logout", data=form, headers={"origin": ORIGIN}).status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[", "evil.example:80"])
def test_another_name_that_leads_here_is_refused(browser: BrowserMaker, host: str) -> None:
    assert browser().get("/login", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9999", "[::1]:8080", "LOCALHOST:1"])
def test_our_names_are_let_in(browser: BrowserMaker, host: str) -> None:
    assert browser().get("/healthz", headers={"host": host}).status_code == 200


def test_a_large_body_is_refused(browser: BrowserMaker) -> None:
    form = {"name": "x", "password": "y" * 2**20}
    assert browser().post("/login", data=form, headers={"origin": ORIGIN}).status_code == 413


def test_every_answer_says_what_a_page_may_do(browser: BrowserMaker) -> None:
    for path in ("/login", "/nowhere", "/healthz"):
        headers = browser().get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'self';")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert "strict-transport-security" not in headers
