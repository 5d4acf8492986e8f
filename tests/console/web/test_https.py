"""Behind a proxy that speaks TLS: cookies, origins, addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import PASSWORD, Browser

from roundhouse.build.home import Home
from roundhouse.console.access.accounts import add_account, hash_password
from roundhouse.console.database.database import Database
from roundhouse.console.settings import ConsoleSettings
from roundhouse.console.web.app import create_app
from roundhouse.errors import UsageError

PUBLIC = "https://console.example"
FORM = {"name": "ann", "password": PASSWORD}
COOKIE = "__Host-roundhouse_login"


@pytest.fixture
def behind_tls(database: Database, tmp_path: Path) -> Iterator[Browser]:
    with database.writing() as session:
        add_account(session, "ann", hash_password(PASSWORD), "admin")
    app = create_app(ConsoleSettings(home=Home(tmp_path), public_url=PUBLIC), database)
    with Browser(app, base_url=PUBLIC, raise_server_exceptions=False) as browser:
        yield browser


def log_in(browser: Browser) -> str:
    answer = browser.post("/login", data=FORM, headers={"origin": PUBLIC}, follow_redirects=False)
    assert answer.status_code == 303, answer.text
    return answer.headers["set-cookie"]


def test_the_login_is_bound_to_this_host_and_to_https(behind_tls: Browser) -> None:
    cookie = log_in(behind_tls)
    assert cookie.startswith(f"{COOKIE}=")
    assert all(part in cookie for part in ("; Secure", "; HttpOnly", "; Path=/", "; SameSite=lax"))
    assert "Domain" not in cookie
    assert behind_tls.get("/", follow_redirects=False).status_code == 200


def test_a_cookie_that_another_host_of_the_domain_may_have_set_is_not_looked_at(behind_tls: Browser) -> None:
    log_in(behind_tls)
    token = behind_tls.cookies[COOKIE]
    behind_tls.cookies.clear()
    behind_tls.cookies.set("roundhouse_login", token)
    assert behind_tls.get("/", follow_redirects=False).status_code == 303


def test_logging_out_really_removes_the_cookie(behind_tls: Browser) -> None:
    """A browser takes a cookie with this prefix, one that ends it too, only when it is Secure and has the path /."""
    log_in(behind_tls)
    form = {"form_token": behind_tls.form_token()}
    answer = behind_tls.post("/logout", data=form, headers={"origin": PUBLIC}, follow_redirects=False)
    ended = next(cookie for cookie in answer.headers.get_list("set-cookie") if cookie.startswith(COOKIE))
    assert all(part in ended for part in ("Max-Age=0", "; Secure", "; Path=/"))


def test_every_cookie_is_secure_and_every_answer_asks_for_https(behind_tls: Browser) -> None:
    log_in(behind_tls)
    form = {"form_token": behind_tls.form_token()} | {"name": "bob", "password": PASSWORD, "role": "viewer"}
    answer = behind_tls.post("/users", data=form, headers={"origin": PUBLIC}, follow_redirects=False)
    assert "roundhouse_flash" in answer.headers["set-cookie"]
    assert all("; Secure" in cookie for cookie in answer.headers.get_list("set-cookie"))
    for path in ("/login", "/nowhere", "/healthz", "/users/bob"):
        assert behind_tls.get(path).headers["strict-transport-security"].startswith("max-age=")


@pytest.mark.parametrize("origin", ["http://console.example", "https://evil.example", "https://console.example:8443", "null"])
def test_a_page_that_did_not_come_by_https_from_here_changes_nothing(behind_tls: Browser, origin: str) -> None:
    assert behind_tls.post("/login", data=FORM, headers={"origin": origin}).status_code == 403


def test_the_guard_knows_the_cookie_by_its_name_behind_tls(behind_tls: Browser) -> None:
    log_in(behind_tls)
    assert behind_tls.post("/logout").status_code == 403
    assert behind_tls.get("/", follow_redirects=False).status_code == 200


def test_a_proxy_may_ask_under_its_own_name_for_this_host(database: Database, tmp_path: Path) -> None:
    with database.writing() as session:
        add_account(session, "ann", hash_password(PASSWORD), "admin")
    app = create_app(ConsoleSettings(home=Home(tmp_path), public_url=PUBLIC), database)
    with Browser(app, base_url="http://127.0.0.1:8080") as upstream:
        answer = upstream.post("/login", data=FORM, headers={"origin": PUBLIC}, follow_redirects=False)
        assert answer.status_code == 303
        cookie = {"cookie": f"{COOKIE}={answer.cookies[COOKIE]}", "origin": PUBLIC}
        page = upstream.get("/account", headers=cookie).text
        token = re.search(r'name="form_token" value="([^"]+)"', page)
        assert token is not None
        wish = {"form_token": token[1], "name": "t", "scopes": "read", "days": "7"}
        made = upstream.post("/account/tokens", data=wish, headers=cookie)
        assert f"{PUBLIC}/api/v1/account" in made.text
        assert "127.0.0.1:8080" not in made.text


@pytest.mark.parametrize(
    ("given", "is_now"),
    [
        ("https://console.example/", "https://console.example"),
        ("https://Console.Example:443", "https://console.example"),
        ("http://10.0.0.1:8080", "http://10.0.0.1:8080"),
    ],
)
def test_a_public_url_is_kept_as_browsers_write_it(tmp_path: Path, given: str, is_now: str) -> None:
    assert ConsoleSettings(home=Home(tmp_path), public_url=given).public_url == is_now


@pytest.mark.parametrize(
    "given",
    ["console.example", "https://", "ftp://x", "https://x/sub", "https://a@x", "https://x?y", "https://x:99999", "https://["],
)
def test_what_is_no_public_url(tmp_path: Path, given: str) -> None:
    with pytest.raises(UsageError, match="--public-url"):
        ConsoleSettings(home=Home(tmp_path), public_url=given)


def test_whose_word_is_taken_for_an_address(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert ConsoleSettings(home=home).trusted_proxies == ()
    assert ConsoleSettings(home=home, proxies=("10.0.0.5",)).trusted_proxies == ()
    assert ConsoleSettings(home=home, public_url=PUBLIC).trusted_proxies == ("127.0.0.1", "::1")
    assert ConsoleSettings(home=home, public_url=PUBLIC, proxies=("10.0.0.0/24",)).trusted_proxies == ("10.0.0.0/24",)
    with pytest.raises(UsageError, match="--proxy"):
        ConsoleSettings(home=home, proxies=("*",))


@pytest.mark.parametrize(
    ("settings", "address", "exposed"),
    [
        ({}, "http://127.0.0.1:9", False),
        ({"host": "::1"}, "http://[::1]:9", False),
        ({"host": "localhost"}, "http://localhost:9", False),
        ({"host": "0.0.0.0"}, "http://127.0.0.1:9", True),
        ({"host": "::"}, "http://127.0.0.1:9", True),
        ({"host": "10.0.0.1"}, "http://10.0.0.1:9", True),
        ({"host": "0.0.0.0", "public_url": PUBLIC}, PUBLIC, False),
        ({"host": "0.0.0.0", "public_url": "http://x"}, "http://x", True),
    ],
)
def test_the_link_that_is_printed_can_be_followed_and_listening_in_clear_is_said(
    tmp_path: Path, settings: dict[str, str], address: str, exposed: bool
) -> None:
    made = ConsoleSettings(home=Home(tmp_path), **settings)
    assert (made.address(9), made.is_exposed) == (address, exposed)
    assert made.is_nameless is (settings.get("host") in ("0.0.0.0", "::") and "public_url" not in settings)
