"""What strangers try: paths, hosts, headers, cookies, values that cannot be, and many at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from browsing import ORIGIN, PASSWORD, BrowserMaker
from sqlalchemy import select, text
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionError

from roundhouse.console.access.accounts import add_account, hash_password
from roundhouse.console.database.database import Database, database_url, shown_url
from roundhouse.console.models import AuditEntry, User
from roundhouse.console.web.rendering import redirect, static_base


@pytest.mark.parametrize(
    "path",
    [
        "/../settings.py",
        "/%2e%2e/settings.py",
        "/..%2fsettings.py",
        "/..%5csettings.py",
        "/css/../../settings.py",
        "//etc/passwd",
        "/%2fetc%2fpasswd",
        "/%00",
        "/css",
        "/" + "a" * 5000,
    ],
)
def test_nothing_but_static_files_is_read(browser: BrowserMaker, path: str) -> None:
    answer = browser().get(static_base() + path)
    assert answer.status_code in (404, 422), answer.text[:200]
    assert "ConsoleSettings" not in answer.text
    assert answer.headers["cache-control"] == "no-store"


def test_static_files_are_kept_and_pages_are_not(browser: BrowserMaker) -> None:
    assert "immutable" in browser().get(f"{static_base()}/css/base.css").headers["cache-control"]
    assert browser("viewer").get("/").headers["cache-control"] == "no-store"


@pytest.mark.parametrize("host", ["127.0.0.1/evil", "evil@127.0.0.1", "127.0.0.1:80:80", "127.0.0.1 evil", "localhost."])
def test_a_host_is_a_name_and_a_port_and_nothing_else(browser: BrowserMaker, host: str) -> None:
    assert browser().get("/login", headers={"host": host}).status_code == 421


def test_probes_come_by_address(browser: BrowserMaker) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        assert browser().get(path, headers={"host": "10.42.0.17:8080"}).status_code == 200
    assert browser().get("/metrics", headers={"host": "10.42.0.17:8080"}).status_code == 421


@pytest.mark.parametrize("path", ["https://evil.example", "//evil.example", "/\\evil.example", "/a\r\nset-cookie: x=1", ""])
def test_no_answer_leads_elsewhere(path: str) -> None:
    with pytest.raises(ValueError, match="no path of ours"):
        redirect(path)


def test_a_line_break_makes_no_header(browser: BrowserMaker) -> None:
    answer = browser().get("/builds%0d%0aset-cookie:%20x=1?a=%0d%0ab", follow_redirects=False)
    assert "set-cookie" not in answer.headers
    answer = browser().get("/?a=%0d%0aset-cookie:%20x=1", follow_redirects=False)
    assert answer.status_code == 303
    assert "\n" not in answer.headers["location"]


@pytest.mark.parametrize(
    "value", ["NQ==", "W10=", "bnVsbA==", "e30=", "=", "WyJkb25lIiwgNV0=", "W1tb" * 900, "WyJ4IiwgImEiXQ=="]
)
def test_a_sentence_that_is_none_is_not_shown(browser: BrowserMaker, value: str) -> None:
    viewer = browser("viewer")
    answer = viewer.get(
        "/", headers={"cookie": f"roundhouse_login={viewer.cookies['roundhouse_login']}; roundhouse_flash={value}"}
    )
    assert answer.status_code == 200
    assert "flash-" not in answer.text


def test_a_long_sentence_fits_a_cookie(browser: BrowserMaker) -> None:
    assert len(redirect("/", "€" * 1000).headers["set-cookie"]) < 4096


@pytest.mark.parametrize("path", ["/users/%00", "/users?text=%00", "/audit?who=%00", "/workers/%00", "/workers?host=%00"])
def test_a_text_that_no_database_keeps_is_a_mistake_and_no_fault(browser: BrowserMaker, path: str) -> None:
    assert browser("admin").get(path).status_code in (200, 404, 422)


def test_a_name_that_no_database_keeps_logs_nobody_in(browser: BrowserMaker) -> None:
    form = {"name": "\x00", "password": "x"}
    assert browser().post("/login", data=form, headers={"origin": ORIGIN}).status_code in (401, 422)


@pytest.mark.parametrize("path", ["/nowhere", "/users", "/workers/nobody", "/audit/0"])
def test_who_is_logged_in_sees_errors_within_the_frame(browser: BrowserMaker, path: str) -> None:
    page = browser("viewer").get(path)
    assert page.status_code >= 400
    assert "the-viewer" in page.text
    assert 'aria-label="Console"' in page.text
    assert 'aria-label="Console"' not in browser().get("/nowhere").text


def test_a_fault_is_answered_with_all_headers_and_tells_nothing(
    browser: BrowserMaker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    viewer = browser("viewer")

    def fail(*_: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr("roundhouse.console.web.pages.workers.list_workers", fail)
    answer = viewer.get("/workers")
    assert answer.status_code == 500
    assert "a secret" not in answer.text
    assert answer.headers["content-security-policy"].startswith("default-src 'self';")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-frame-options"] == "DENY"
    assert viewer.get("/metrics").text.count('route="/workers",status="500"} 1.0') == 1


class DriverError(Exception):
    """What a database's driver raises."""

    sqlstate: str | None = None


class DeadlockError(DriverError):
    """PostgreSQL's."""

    sqlstate = "40P01"


class SerializationError(DriverError):
    """PostgreSQL's, too."""

    sqlstate = "40001"


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (OperationalError("SELECT", {}, DriverError("a secret")), 503, "does not answer"),
        (InterfaceError("SELECT", {}, DriverError("a secret")), 503, "does not answer"),
        (NoConnectionError("a secret"), 503, "does not answer"),
        (IntegrityError("INSERT", {}, DriverError("a secret")), 409, "nothing was done"),
        (OperationalError("SELECT", {}, DeadlockError("a secret")), 409, "nothing was done"),
        (OperationalError("SELECT", {}, SerializationError("a secret")), 409, "nothing was done"),
    ],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_what_a_database_cannot_do_just_now_is_no_fault_of_the_console(
    browser: BrowserMaker, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, said: str
) -> None:
    viewer = browser("viewer")

    def fail(*_: object) -> None:
        raise error

    for module in ("pages", "api"):
        monkeypatch.setattr(f"roundhouse.console.web.{module}.workers.list_workers", fail)
    for path in ("/workers", "/api/v1/workers"):
        answer = viewer.get(path)
        assert answer.status_code == status
        assert said in answer.text
        assert "a secret" not in answer.text


def test_statements_that_fail_do_not_tell_their_parameters(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DBAPIError) as raised, database.writing() as session:
        session.execute(text("SELECT :secret FROM nowhere"), {"secret": "rh_secret"})
    assert "rh_secret" not in str(raised.value)
    with database.writing() as session:
        user = add_account(session, "ann", hash_password(PASSWORD), "viewer")
    with pytest.raises(IntegrityError) as clash, database.writing() as session:
        session.add(User(name="ann", role="admin", password_hash="$argon2$secret", created_at=user.created_at))
    assert "$argon2" not in str(clash.value).split("DETAIL")[0]


@pytest.mark.parametrize(
    "url", ["postgresql://ann:geheim@db/x", "postgresql://ann@db/x?password=geheim", "postgresql://db/x?sslpassword=geheim"]
)
def test_a_database_is_shown_without_its_password(url: str) -> None:
    assert "geheim" not in shown_url(database_url(url, None))  # type: ignore[arg-type]  # no home where there is a URL
    assert "/x" in shown_url(database_url(url, None))  # type: ignore[arg-type]


def test_an_address_that_a_client_made_up_is_not_written_down(browser: BrowserMaker, database: Database) -> None:
    browser("viewer")  # the client of these tests calls itself "testclient"
    with database.reading() as session:
        assert session.scalars(select(AuditEntry.address).where(AuditEntry.action == "login")).all() == ["unknown"]


def test_a_hint_says_how_long_to_wait(browser: BrowserMaker) -> None:
    wrong = {"name": "nobody", "password": "wrong"}
    answers = [browser().post("/login", data=wrong, headers={"origin": ORIGIN}) for _ in range(9)]
    assert answers[-1].status_code == 429
    assert 0 < int(answers[-1].headers["retry-after"]) <= 30


@pytest.mark.parametrize("path", ["/login", "/account/logins/end"])
def test_forty_at_once_all_get_their_answer(browser: BrowserMaker, path: str) -> None:
    """Each reads and then writes: were a connection held while waiting for another, they would wait for each other."""
    viewer = browser("viewer")
    form = {"name": "the-viewer", "password": PASSWORD, "form_token": viewer.form_token()}
    headers = {"origin": ORIGIN}
    if path != "/login":
        headers["cookie"] = f"roundhouse_login={viewer.cookies['roundhouse_login']}"

    def ask(_: int) -> int:
        return browser().post(path, data=form, headers=headers, follow_redirects=False).status_code

    with ThreadPoolExecutor(40) as pool:
        assert set(pool.map(ask, range(40))) <= {303, 429}
    assert viewer.get("/").status_code == 200


@pytest.mark.parametrize(
    ("path", "back"),
    [
        ("/builds/xyz", '<a class="button" href="/builds">Builds</a>'),
        ("/builds/0", '<a class="button" href="/builds">Builds</a>'),
        ("/builds/99999999999999999999/log.txt", '<a class="button" href="/builds">Builds</a>'),
        ("/audit/xyz", '<a class="button" href="/audit">Audit</a>'),
        ("/users/the-admin/tokens/xyz/revoke", '<a class="button" href="/users">Users</a>'),
        ("/integrity/events/xyz", '<a class="button" href="/integrity">Integrity</a>'),
        ("/integrity/drills/xyz", '<a class="button" href="/integrity">Integrity</a>'),
        ("/engines/xyz", '<a class="button" href="/engines">Engines</a>'),
    ],
)
def test_an_id_that_none_can_have_is_not_there_and_the_list_is_offered(browser: BrowserMaker, path: str, back: str) -> None:
    answer = browser("admin").get(path)
    assert answer.status_code == 404
    assert "There is no" in answer.text
    assert "Input should be" not in answer.text
    assert back in answer.text


def test_programs_are_told_which_part_of_an_address_cannot_be(browser: BrowserMaker) -> None:
    answer = browser("admin").get("/api/v1/jobs/xyz")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "job_id")
