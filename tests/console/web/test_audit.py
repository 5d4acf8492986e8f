"""The audit log: everything that was done, found again."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from browsing import ORIGIN, PASSWORD, BrowserMaker
from counting import count_queries
from populated import populate
from sqlalchemy import select, update

from roundhouse.build.home import Home
from roundhouse.console.access.actor import Actor
from roundhouse.console.access.audit import audit, audit_repeated
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.models import AuditEntry


def fill(database: Database) -> None:
    ann = Actor(1, "ann", "admin", "browser", "10.0.0.1")
    bob = Actor(2, "bob", "operator", "token ci", "10.0.0.2")
    with database.writing() as session:
        for day in range(1, 29):
            who = ann if day % 2 else bob
            audit(session, who, "user.add" if day % 4 else "build", "user" if day % 4 else "job", f"subject-{day}", day=day)
            session.flush()
            session.scalars(select(AuditEntry).order_by(AuditEntry.id.desc()).limit(1)).one().at = datetime(
                2026, 2, day, 12, tzinfo=UTC
            )


def test_entries_are_found_by_all_that_they_say(browser: BrowserMaker, database: Database) -> None:
    admin = browser("admin")
    fill(database)

    def total(query: str) -> int:
        found: int = admin.get(f"/api/v1/audit?{query}").json()["total"]
        return found

    assert total("who=bob") == 14
    assert total("action=user") == 21
    assert total("action=use") == 0
    assert total("action=user.add&who=ann") == 14
    assert total("subject_kind=job") == 7
    assert total("subject=subject-3") == 1
    assert total("since=2026-02-27&until=2026-02-28") == 2
    assert total("since=2026-02-28&until=2026-02-28&who=ann") == 0
    assert total("until=0001-01-01") == 0
    assert total("until=9999-12-31&who=ann") == 14
    page = admin.get("/audit?who=bob&size=5&since=")
    assert "1–5 of 14" in page.text
    assert "/audit?who=bob&amp;page=2&amp;size=5" in page.text
    assert admin.get("/audit?since=yesterday").status_code == 422
    assert "Nothing like this was done." in admin.get("/audit?who=nobody").text


def test_an_entry_has_an_address_of_its_own(browser: BrowserMaker, database: Database) -> None:
    admin = browser("admin")
    fill(database)
    newest = admin.get("/api/v1/audit?who=bob").json()["items"][0]
    page = admin.get(f"/audit/{newest['id']}").text
    assert "2026-02-28 12:00:00 UTC" in page
    assert "token ci" in page
    assert admin.get("/audit/999999").status_code == 404
    assert admin.get("/audit/99999999999999999999").status_code == 404
    assert admin.get("/audit/0").status_code == 404


def test_a_page_takes_as_many_statements_whatever_is_on_it(browser: BrowserMaker, database: Database) -> None:
    admin = browser("admin")
    fill(database)
    with count_queries(database) as few:
        admin.get("/audit?size=1")
    with count_queries(database) as many:
        admin.get("/audit?size=100")
    assert len(few) == len(many)


def test_what_was_typed_into_a_login_that_failed_is_not_written_down(browser: BrowserMaker, database: Database) -> None:
    browser("admin")
    for name in ("the-admin", "my secret password"):
        browser().post("/login", data={"name": name, "password": "wrong"}, headers={"origin": ORIGIN})
    with database.reading() as session:
        failed = session.scalars(select(AuditEntry).where(AuditEntry.action == "login.failed").order_by(AuditEntry.id)).all()
    assert [(entry.who, entry.subject) for entry in failed] == [
        ("the-admin", "the-admin"),
        ("no such account", "no such account"),
    ]


def test_logins_that_fail_again_and_again_are_one_entry_that_counts_them(browser: BrowserMaker, database: Database) -> None:
    admin = browser("admin")
    names = [f"stranger-{number}" for number in range(5)] + ["the-admin"] * 3
    for name in names:
        browser().post("/login", data={"name": name, "password": "wrong"}, headers={"origin": ORIGIN})
    failed = [entry for entry in admin.get("/api/v1/audit").json()["items"] if entry["action"] == "login.failed"]
    assert [(entry["who"], entry["detail"]) for entry in failed] == [
        ("the-admin", {"times": 3}),
        ("no such account", {"times": 5}),
    ]
    with database.writing() as session:
        session.execute(update(AuditEntry).values(at=utc_now() - timedelta(minutes=11)))
    browser().post("/login", data={"name": "another", "password": "wrong"}, headers={"origin": ORIGIN})
    newest = admin.get("/api/v1/audit").json()["items"][0]
    assert (newest["action"], newest["detail"]) == ("login.failed", {}), "what is long over is not counted on"


def test_only_what_is_the_same_is_counted_together(database: Database) -> None:
    with database.writing() as session:
        for name, address in (("ann", "10.0.0.1"), ("ann", "10.0.0.2"), ("bob", "10.0.0.1"), ("ann", "10.0.0.1")):
            audit_repeated(session, Actor(0, name, "viewer", "browser", address), "login.failed", "user", name)
    with database.reading() as session:
        entries = session.scalars(select(AuditEntry).order_by(AuditEntry.id)).all()
    assert [(each.who, each.address, each.detail) for each in entries] == [
        ("ann", "10.0.0.1", {"times": 2}),
        ("ann", "10.0.0.2", {}),
        ("bob", "10.0.0.1", {}),
    ]


def test_details_are_text_and_nothing_else(browser: BrowserMaker, database: Database) -> None:
    admin = browser("admin")
    evil = "<script>alert(1)</script>"
    with database.writing() as session:
        audit(session, Actor(1, evil, "admin", evil, evil), evil, evil, evil, what=[evil], more={"x": evil})
    newest = admin.get("/api/v1/audit").json()["items"][0]["id"]
    for page in ("/audit", f"/audit/{newest}"):
        assert "<script>alert" not in admin.get(page).text
        assert "&lt;script&gt;" in admin.get(page).text


def test_who_is_refused_for_trying_too_often_is_written_down_once(browser: BrowserMaker, database: Database) -> None:
    nobody = browser()
    wrong = {"name": "my secret password", "password": "wrong"}
    statuses = [nobody.post("/login", data=wrong, headers={"origin": ORIGIN}).status_code for _ in range(12)]
    assert statuses.count(429) > 1
    with database.reading() as session:
        refused = session.scalars(select(AuditEntry).where(AuditEntry.action == "login.throttled")).all()
    assert [entry.who for entry in refused] == ["anybody"]


def test_a_long_detail_makes_no_long_page(browser: BrowserMaker, database: Database) -> None:
    admin = browser("admin")
    with database.writing() as session:
        audit(session, Actor(1, "ann", "admin", "browser", "x"), "drill", "job", "1", faults=["<free early>"] * 100_000)
    newest = admin.get("/api/v1/audit").json()["items"][0]
    assert len(newest["detail"]["faults"]) == 100_000
    for page, most in (("/audit", 150), (f"/audit/{newest['id']}", 5000)):
        text = admin.get(page).text
        assert "…" in text
        assert "&lt;free early&gt;, &lt;" in text
        assert text.count("free early") * len("<free early>") < most


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_every_link_of_the_log_leads_somewhere(browser: BrowserMaker, database: Database, tmp_path: Path) -> None:
    """Entries of everything that can be done, made by doing it."""
    there = populate(database, Home(tmp_path / "home"))
    admin = browser("admin")
    browser().post("/login", data={"name": "nobody", "password": "x"}, headers={"origin": ORIGIN})
    headers = {"origin": ORIGIN, "x-form-token": admin.form_token()}
    wishes: tuple[tuple[str, str, dict[str, object] | None], ...] = (
        ("POST", "/builds", {"recipe": {"model": "demo:smollm2"}}),
        ("POST", "/drills", {"seed": 1, "steps": 10, "faults": ["freed_early"]}),
        ("POST", "/jobs/{job_id}/retry", None),
        ("POST", "/jobs/{job_id}/cancel", None),
        ("POST", "/engines/{engine_id}/verify", None),
        ("POST", "/deployments", {"settings": {"engine_id": there.known["engine_id"], "name": "another"}}),
        ("POST", "/deployments/{deployment_id}/unload", None),
        ("POST", "/deployments/{deployment_id}/key", None),
        ("DELETE", "/deployments/bbbbbbbb", None),
        ("POST", "/users", {"name": "new", "password": PASSWORD, "role": "viewer"}),
        ("PATCH", "/users/new", {"role": "operator", "enabled": False}),
        ("POST", "/account/tokens", {"name": "t", "scopes": ["read"]}),
        ("DELETE", "/users/{name}/tokens/{token_id}", None),
        ("DELETE", "/users/{name}/logins", None),
        ("PATCH", "/settings", {"job_log_days": 7}),
    )
    refused = []
    for method, path, body in wishes:
        answer = admin.request(method, f"/api/v1{path.format(**there.known)}", json=body, headers=headers)
        if answer.status_code >= 300:
            refused.append(f"{method} {path}: {answer.text}")
    assert refused == []
    assert admin.get("/api/v1/audit").json()["total"] > len(wishes)
    page = admin.get("/audit?size=200").text
    links = {html.unescape(link) for link in re.findall(r'href="(/[^"]*)"', page)}
    assert {link.split("/")[1] for link in links} >= {"builds", "engines", "deployments", "users"}
    wrong = {link: status for link in links if (status := admin.get(link).status_code) != 200}
    assert wrong == {}
