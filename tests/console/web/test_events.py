"""Streams: where they go on, and when they end."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from browsing import Browser, BrowserMaker
from built import ID, add_built
from deployed import add_deployment, add_samples
from fastapi import Request
from sqlalchemy import select

from roundhouse.console.access.tokens import add_token
from roundhouse.console.database.database import Database
from roundhouse.console.jobs import NewJob, enqueue
from roundhouse.console.models import User
from roundhouse.console.web import events
from roundhouse.console.web.who import may_go_on

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
LONGEST_S = 60.0


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a stream has asked whether it may go on; they ask all the time."""
    asked = threading.Event()

    def ask(request: Request) -> bool:
        asked.set()
        return may_go_on(request)

    monkeypatch.setattr(events, "may_go_on", ask)
    for name, value in (("_EVERY_S", 0.01), ("_QUIET_S", 0.0), ("_LONGEST_S", 3 * LONGEST_S)):
        monkeypatch.setattr(events, name, value)
    return asked


def following(client: Browser, path: str, asked: threading.Event, **headers: str) -> threading.Thread:
    """A thread that lives as long as the stream does."""
    stream = threading.Thread(target=lambda: client.get(path, headers=headers), daemon=True)
    stream.start()
    assert asked.wait(LONGEST_S)
    assert stream.is_alive()
    return stream


@pytest.mark.parametrize("end", ["log out", "disable", "end logins", "revoke"])
def test_a_stream_ends_when_the_login_does(browser: BrowserMaker, database: Database, asked: threading.Event, end: str) -> None:
    with database.writing() as session:
        path = f"/builds/{enqueue(session, NewJob('build', 'm')).id}/log/stream"
    viewer, admin, follower = browser("viewer"), browser("admin"), browser()
    headers = {}
    if end == "revoke":
        with database.writing() as session:
            owner = session.scalars(select(User.id).where(User.name == "the-viewer")).one()
            token, secret = add_token(session, owner, "t", ["read"], None)
        headers["authorization"] = f"Bearer {secret}"
    else:
        follower.cookies.update(viewer.cookies)
    ending: dict[str, Callable[[], object]] = {
        "log out": lambda: viewer.submit("/logout"),
        "disable": lambda: admin.submit("/users/the-viewer/disable"),
        "end logins": lambda: admin.submit("/users/the-viewer/logins/end"),
        "revoke": lambda: admin.submit(f"/users/the-viewer/tokens/{token.id}/revoke"),
    }
    stream = following(follower, path, asked, **headers)
    ending[end]()
    stream.join(LONGEST_S)
    assert not stream.is_alive()


@pytest.mark.parametrize("after", ["9" * 16, "9" * 18, "9" * 400, "-1", "x", "²"])
def test_no_event_is_too_far_away(browser: BrowserMaker, database: Database, asked: threading.Event, after: str) -> None:
    with database.writing() as session:
        add_built(session)
        add_deployment(session, "aaaaaaaa", engine_id=ID, state="stopped")
        add_samples(session)
    told = browser("viewer").get(f"/deployments/aaaaaaaa/live?after={after}")
    assert told.status_code == 200
    assert told.text.endswith("event: end\ndata: {}\n\n")
